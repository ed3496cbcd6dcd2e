"""A clipped vector is within its norm in real numbers, and clipping never fails."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.local._compiled import machine_code
from tacit.local.subgradients import clipped
from tacit.row_clipping import clipped_rows


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
            assert np.linalg.norm(clipped(vector, norm)) > norm * (1 - 2e-9)


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


def vectors() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    listed = [[1e200, 0.0], [1e308, 1e308], [3e80, 4e80], [2e90], [3e90], [1e-320], [5e-324, 0.0]]
    sizes = [rng.standard_normal((3, d)) * 10.0 ** rng.uniform(-300, 95, d) for d in (1, 2, 300)]
    spread = [vector for group in sizes for vector in group]
    sphere = [v / np.linalg.norm(v) for v in rng.standard_normal((20, 7))]
    return [*map(np.array, listed), *spread, *sphere, np.zeros(3), np.array([math.inf, math.nan])]


@pytest.mark.parametrize("norm", [1e-3, 1.0, 1e4])
def test_the_rule_is_that_of_every_row(norm: float) -> None:
    for vector in vectors():
        np.testing.assert_allclose(
            clipped(vector, norm), clipped_rows(vector[None], norm)[0], rtol=1e-13, atol=0.0
        )


def test_compiled_it_is_the_same_rule() -> None:
    pytest.importorskip("numba")
    compiled = machine_code(clipped)
    for vector in vectors():
        np.testing.assert_allclose(
            compiled(vector, 1.0), clipped(vector, 1.0), rtol=1e-13, atol=0.0
        )


def test_extreme_sizes() -> None:
    np.testing.assert_allclose(clipped(np.array([3e80, 4e80]), 1.0), [0.6, 0.8], rtol=2e-9)
    np.testing.assert_array_equal(clipped(np.array([1e200, 0.0]), 1.0), [0.0, 0.0])
    np.testing.assert_array_equal(clipped(np.array([5e-324, 0.0]), 1.0), [5e-324, 0.0])
