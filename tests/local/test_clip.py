"""A clipped vector is within its norm in real numbers, and clipping never fails."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.local.clip import clipped


def exceeds(vector: np.ndarray, norm: float) -> bool:
    return sum(Fraction(float(x)) ** 2 for x in vector) > Fraction(norm) ** 2


@pytest.mark.parametrize("d", [1, 2, 17, 3000])
@pytest.mark.parametrize("norm", [1.0, 0.3, 2.0**-100, 1e20])
def test_never_longer_than_the_norm(d: int, norm: float) -> None:
    rng = np.random.default_rng(d)
    for size in (0.5, 1.0, 1.0 + 1e-15, 1e9):
        vector = rng.standard_normal(d)
        vector *= size * norm / np.linalg.norm(vector)
        assert not exceeds(clipped(vector, norm), norm)
        if size == 0.5:
            np.testing.assert_array_equal(clipped(vector, norm), vector)
        else:
            assert np.linalg.norm(clipped(vector, norm)) > norm * (1 - 1e-11)


def test_squares_that_a_sum_forgets() -> None:
    # 16 large coordinates, then many whose squares are lost one by one in a sum of floats
    d = 4000
    vector = np.full(d, math.sqrt(0.98 * math.ulp(1 / 16) / 2))
    vector[:16] = 0.25
    assert exceeds(vector, 1.0)
    assert not exceeds(clipped(vector, 1.0), 1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_becomes_zero(bad: float) -> None:
    np.testing.assert_array_equal(clipped(np.array([1.0, bad]), 1.0), [0.0, 0.0])


def test_extreme_sizes() -> None:
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(clipped(np.array([3e300, 4e300]), 1.0), [0.6, 0.8])
    np.testing.assert_array_equal(clipped(np.array([5e-324, 0.0]), 1.0), [5e-324, 0.0])
