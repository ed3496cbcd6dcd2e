from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.privacy import Gaussian, Guarantee
from tacit.testing import exact_delta_1d, exact_epsilon_1d


def normal(shift: float, std: float):  # type: ignore[no-untyped-def]
    return lambda x: -((x - shift) ** 2) / (2 * std**2) - math.log(std * math.sqrt(2 * math.pi))


@pytest.mark.parametrize("std", [0.7, 3.0, 20.0])
def test_gaussian(std: float) -> None:
    support = (-12 * std, 12 * std + 1)
    for delta in (1e-9, 1e-3):
        exact = exact_epsilon_1d(normal(0, std), normal(1, std), support, delta)
        claimed = Guarantee(Gaussian(std)).epsilon(delta)
        assert exact == pytest.approx(claimed, rel=1e-3, abs=1e-9)


def test_directions_differ_and_the_worse_counts() -> None:
    # a sampled Gaussian costs more in one direction
    q = 0.3

    def mixture(x):  # type: ignore[no-untyped-def]
        return np.logaddexp(math.log1p(-q) + normal(0, 1)(x), math.log(q) + normal(1, 1)(x))

    both = exact_delta_1d(mixture, normal(0, 1), 0.3, (-12, 13))
    assert both == exact_delta_1d(normal(0, 1), mixture, 0.3, (-12, 13))


def test_underclaimed_noise_is_seen() -> None:
    exact = exact_epsilon_1d(normal(0, 0.95 * 3), normal(1, 0.95 * 3), (-40, 40), 1e-6)
    assert exact > 1.04 * Guarantee(Gaussian(3.0)).epsilon(1e-6)
