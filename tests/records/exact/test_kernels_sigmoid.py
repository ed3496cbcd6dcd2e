"""The sigmoid of lattice sums is near the true one, and its bits are those of IEEE's operations."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tacit.records.exact.kernels import FARTHEST, LN2, LOG2E, sigmoid

POINTS = np.concatenate(
    [
        np.linspace(-50.0, 50.0, 20_001),
        np.random.default_rng(0).normal(size=20_000) * 3.0,
        [0.0, -0.0, 5e-324, -5e-324, 1e-300, 700.0, -700.0, 1e300, -1e300, np.inf, -np.inf],
    ]
)


def test_it_is_near_the_true_one() -> None:
    with np.errstate(over="ignore"):
        true = 1 / (1 + np.exp(-POINTS.astype(np.longdouble)))
    assert np.abs(sigmoid(POINTS) - true).max() < 2.0**-48


def test_it_is_nearly_symmetric_and_within_its_range() -> None:
    values = sigmoid(POINTS)
    assert values.min() >= 0.0
    assert values.max() <= 1.0
    assert np.abs(values + sigmoid(-POINTS) - 1.0).max() < 2.0**-48
    assert sigmoid(np.array([0.0])) == 0.5


def rounded(value: Fraction) -> Fraction:
    """Return a number rounded to a double, half to even."""
    return Fraction(value.numerator / value.denominator)


def by_hand(z: float) -> float:
    """Return the sigmoid with every operation done in fractions and rounded by itself."""
    x = min(max(Fraction(z), Fraction(-FARTHEST)), Fraction(FARTHEST))
    k = Fraction(round(rounded(x * Fraction(LOG2E))))
    r = rounded(x - rounded(k * Fraction(LN2)))
    square = rounded(r * r)
    even = rounded(rounded(square * 30) + 3360)
    even = rounded(rounded(even * square) + 30240)
    odd = rounded(rounded(rounded(square + 420) * square) + 15120)
    odd = rounded(odd * r)
    top = rounded(rounded(even + odd) * Fraction(2) ** int(k))
    return float(rounded(top / rounded(rounded(even - odd) + top)))


def test_its_bits_are_those_of_the_operations_one_by_one() -> None:
    # A machine that fuses two of them, or whose exp it were, would give others.
    points = POINTS[np.isfinite(POINTS)][::17]
    assert np.array_equal(sigmoid(points), [by_hand(float(z)) for z in points])


def test_an_entry_depends_on_its_own_score_alone() -> None:
    alone = np.concatenate([sigmoid(z[None]) for z in POINTS[::101]])
    assert np.array_equal(alone, sigmoid(POINTS)[::101])
    assert np.array_equal(alone, sigmoid(POINTS[::101]))
