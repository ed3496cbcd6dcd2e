"""The cost of a noisy majority against the worst margin, found by trying many."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr

from tacit.privacy import NoisyMajority
from tacit.privacy.majority import majority_renyi


def divergence(t: np.ndarray, shift: float, order: float) -> np.ndarray:
    """Return D_a(Bernoulli(Phi(t)) || Bernoulli(Phi(t + shift)))."""
    yes = order * log_ndtr(t) + (1 - order) * log_ndtr(t + shift)
    no = order * log_ndtr(-t) + (1 - order) * log_ndtr(-t - shift)
    return np.asarray(np.logaddexp(yes, no) / (order - 1))


@pytest.mark.parametrize("shift", [2e-4, 0.01, 0.3, 1.5, 5.0])
@pytest.mark.parametrize("order", [1.3, 2.0, 9.0, 64.0])
def test_it_is_the_worst_margin(shift: float, order: float) -> None:
    worst = divergence(np.linspace(-45.0, 45.0 + order * shift, 300_001), shift, order).max()
    found = majority_renyi(shift, np.array([order]))[0]
    assert worst * (1 - 1e-7) <= found
    assert found <= min(worst * 1.02 + 1e-9, order * shift**2 / 2 * (1 + 1e-12))
    event = NoisyMajority(np.sqrt(2.0) / shift)
    assert event.renyi(np.array([order]))[0] == pytest.approx(found, rel=1e-9)
    assert event.gaussian_bound() == pytest.approx(shift)
