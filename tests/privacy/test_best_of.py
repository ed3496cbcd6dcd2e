"""The best of K runs: what its profile is at the ends, and that counts within a run count."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.privacy import BestOf, Gaussian, PureEpsilon, Repeated
from tacit.privacy.tries import TruncatedNegativeBinomial

LAW = TruncatedNegativeBinomial.of_mean(5)


def test_a_run_of_several_releases_costs_all_of_them() -> None:
    several, one = BestOf(Repeated(PureEpsilon(0.1), 3), LAW), BestOf(PureEpsilon(0.3), LAW)
    assert several.pure_epsilon() == pytest.approx(one.pure_epsilon(), rel=1e-12)
    assert one.pure_epsilon() > 0.3


@pytest.mark.parametrize("base", [PureEpsilon(0.5), Gaussian(1.5)])
def test_the_profile_of_both_signs(base: PureEpsilon | Gaussian) -> None:
    event = BestOf(base, LAW)
    at = np.array([0.02, 0.2, 0.7, 1.1])
    above, below = event.profile(at), event.profile(-at)
    assert above is not None
    assert below is not None
    # H(-e) = 1 - exp(-e) + exp(-e) H(e)
    np.testing.assert_allclose(below, -np.expm1(-at) + np.exp(-at) * above, rtol=1e-12)
    assert np.all(np.diff(above) <= 0.0)
    assert above[0] > 0.01
    # one by one and from a table
    many = event.profile(np.linspace(0.0, 2.0, 201))
    few = event.profile(np.array([0.0, 1.0, 2.0]))
    assert many is not None
    assert few is not None
    np.testing.assert_allclose(many[[0, 100, 200]], few, rtol=1e-2, atol=1e-9)
    assert np.all(many[[0, 100, 200]] >= few * (1 - 1e-9))


def test_beyond_the_greatest_loss_nothing_is_left() -> None:
    event = BestOf(PureEpsilon(0.5), LAW)
    greatest = event.pure_epsilon()
    assert math.isfinite(greatest)
    for n in (1, 100):  # one by one and from a table
        profile = event.profile(np.full(n, greatest))
        assert profile is not None
        assert np.all(profile == 0.0)
    before = event.profile(np.array([0.9 * greatest]))
    assert before is not None
    assert before[0] > 0.0
    orders = np.array([1.5, 4.0, 1e4])
    assert np.all(event.renyi(orders) <= greatest)
