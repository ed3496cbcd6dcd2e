"""Compute intervals from noisy counts, near the ends of a range too."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_GRID = 400  # points at which acceptance regions are tabulated
_HALVINGS = 32  # of [0, 1]: ends to ten digits


@dataclass(frozen=True)
class Acceptance:
    """The rejection region of a test of a parameter that cannot be negative.

    x is normal with standard deviation 1 about mu >= 0, and x - mu is accepted in [low, high]
    (Feldman and Cousins 1998). With b the upper end and a the lower one,

        Phi(b) - Phi(a) = confidence,   a = -mu / 2 - b^2 / (2 mu)   while a + mu < 0

    is the region of the greatest likelihood ratios. It is one-sided at mu = 0 and central from
    mu = z on, where z is the two-sided normal quantile.

    Examples
    --------
    >>> from tacit.descriptive.intervals import acceptance
    >>> region = acceptance(0.95)
    >>> round(region.z, 3), round(float(region.high(0.0)), 3), round(float(region.high(5.0)), 3)
    (1.96, 1.645, 1.96)
    """

    z: float
    means: Array
    lows: Array
    highs: Array

    def low(self, mean: Array | float) -> Array:
        """Return the lower end of the accepted deviations."""
        return np.asarray(np.interp(mean, self.means, self.lows))

    def high(self, mean: Array | float) -> Array:
        """Return the upper end of the accepted deviations."""
        return np.asarray(np.interp(mean, self.means, self.highs))


@functools.lru_cache(maxsize=8)
def acceptance(confidence: float) -> Acceptance:
    """Tabulate the acceptance regions at a confidence."""
    from scipy.special import ndtr, ndtri

    z = float(ndtri(0.5 + confidence / 2))
    one_sided = float(ndtri(confidence))
    means = np.linspace(0.0, z, _GRID + 1)[1:]
    low, high = np.full(_GRID, one_sided), np.full(_GRID, z)
    for _ in range(_HALVINGS):
        b = (low + high) / 2
        covered = ndtr(b) - ndtr(-means / 2 - b * b / (2 * means))
        low, high = np.where(covered < confidence, b, low), np.where(covered < confidence, high, b)
    b = (low + high) / 2
    a = -means / 2 - b * b / (2 * means)
    # At 0 everything below is accepted; -40 stands for minus infinity.
    return Acceptance(
        z,
        np.concatenate([[0.0], means]),
        np.concatenate([[-40.0], np.maximum(a, -40.0)]),
        np.concatenate([[one_sided], b]),
    )


def kurtosis_factor(z: float, kurtosis: Array | float) -> Array:
    """Return the factor by which normal quantiles are widened for an excess kurtosis.

        (z + k (z^3 - 3 z) / 24) / z                                  Cornish and Fisher (1938)

    Examples
    --------
    >>> from tacit.descriptive.intervals import kurtosis_factor
    >>> round(float(1.96 * kurtosis_factor(1.96, 3.0)), 2)  # Laplace noise: 2.12
    2.17
    """
    return 1.0 + np.asarray(kurtosis) * (z * z - 3.0) / 24.0


def share_intervals(
    counts: Array, present: Array, variance: Array, fourth: Array, region: Acceptance
) -> tuple[Array, Array]:
    """Return intervals of shares p at which ``counts - p present`` has mean 0.

    Parameters
    ----------
    counts
        The estimated counts, which may be negative.
    present
        The estimated numbers of records of which they are shares, above 0.
    variance
        The variance of ``counts - p present`` as a polynomial in p, (n, 3): constant term first.
    fourth
        Its fourth cumulant, likewise.
    region
        The acceptance region.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.descriptive.intervals import acceptance, share_intervals
    >>> variance = np.array([[100.0, 1000.0, -1000.0]] * 2)  # 100 + 1000 p (1 - p)
    >>> ends = share_intervals(np.array([300.0, -5.0]), np.full(2, 1000.0), variance,
    ...                        np.zeros((2, 1)), acceptance(0.95))
    >>> [end.round(3) for end in ends]
    [array([0.266, 0.   ]), array([0.335, 0.016])]
    """
    # A share above one half is 1 less another: the near end of the range is then 0.
    flipped = counts > present / 2
    small = np.where(flipped, present - counts, counts)

    def accepted(p: Array, upper: bool) -> npt.NDArray[np.bool_]:
        share = np.where(flipped, 1 - p, p)
        square = np.maximum(_polynomial(variance, share), 1e-100)
        std = np.sqrt(square)
        factor = kurtosis_factor(region.z, _polynomial(fourth, share) / square**2)
        deviation = (small - p * present) / std
        mean = p * present / std
        end = region.low(mean) if upper else region.high(mean)
        return deviation >= end * factor if upper else deviation <= end * factor

    def end(outside: Array, upper: bool) -> Array:
        # Deviations fall with p: below the interval they are too large, above it too small.
        whole, inside = outside, np.clip(small / present, 0.0, 1.0)
        for _ in range(_HALVINGS):
            middle = (outside + inside) / 2
            taken = accepted(middle, upper)
            outside, inside = np.where(taken, outside, middle), np.where(taken, middle, inside)
        return np.where(accepted(whole, upper), whole, outside)

    low, high = end(np.zeros(len(counts)), False), end(np.ones(len(counts)), True)
    return np.where(flipped, 1 - high, low), np.where(flipped, 1 - low, high)


def _polynomial(terms: Array, at: Array) -> Array:
    value = terms[:, -1]
    for place in range(terms.shape[1] - 2, -1, -1):
        value = terms[:, place] + at * value
    return value


def count_intervals(
    counts: Array, variance: Array, fourth: Array, region: Acceptance
) -> tuple[Array, Array]:
    """Return intervals of counts, which are not negative, from noise alone.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.descriptive.intervals import acceptance, count_intervals
    >>> ends = count_intervals(np.array([100.0, -3.0]), np.full(2, 16.0), np.zeros(2),
    ...                        acceptance(0.95))
    >>> [end.round(1) for end in ends]
    [array([92.2,  0. ]), array([107.8,   5.1])]
    """
    # As shares of a number that is far above all of them.
    whole = 4.0 * (np.abs(counts) + 100.0 * np.sqrt(variance) + 1.0)
    low, high = share_intervals(counts, whole, variance[:, None], fourth[:, None], region)
    return low * whole, high * whole


def monotone(values: Array) -> Array:
    """Return the nearest non-decreasing numbers (isotonic regression)."""
    from sklearn.isotonic import isotonic_regression

    return np.asarray(isotonic_regression(values))


def non_negative(counts: Array, total: float) -> Array:
    """Return the nearest non-negative numbers with a sum: the projection on a simplex.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.descriptive.intervals import non_negative
    >>> non_negative(np.array([5.0, -2.0, 4.0]), 8.0)
    array([4.5, 0. , 3.5])
    """
    if total <= 0:
        return np.zeros(len(counts))
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(counts - excess[last], 0.0))


def whole_numbers(counts: Array, total: int) -> npt.NDArray[np.int64]:
    """Round non-negative numbers to whole ones with a sum, by the greatest remainders.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.descriptive.intervals import whole_numbers
    >>> whole_numbers(np.array([1.5, 1.4, 0.1]), 3)
    array([2, 1, 0])
    """
    floors = np.floor(counts)
    left = int(total - floors.sum())
    order = np.argsort(-(counts - floors), kind="stable")
    whole = floors.astype(np.int64)
    whole[order[: max(left, 0)]] += 1
    if left < 0:  # rounding of the projection
        whole[order[left:]] = np.maximum(whole[order[left:]] - 1, 0)
    return whole


def first_reaching(cumulative: Array, target: float, at: Array, *, last: bool = False) -> float:
    """Return where a non-decreasing function, linear between points, reaches a target.

    With ``last``, the last such place: on a flat piece the two differ.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.descriptive.intervals import first_reaching
    >>> first_reaching(np.array([0.0, 0.5, 0.5, 1.0]), 0.5, np.arange(4.0))
    1.0
    >>> first_reaching(np.array([0.0, 0.5, 0.5, 1.0]), 0.5, np.arange(4.0), last=True)
    2.0
    """
    if target <= cumulative[0] and not last:
        return float(at[0])
    i = int(np.searchsorted(cumulative, target, side="right" if last else "left"))
    if i >= len(cumulative):
        return float(at[-1])
    if i == 0:
        return float(at[0])
    below, above = cumulative[i - 1], cumulative[i]
    share = 1.0 if above <= below else (target - below) / (above - below)
    return float(at[i - 1] + min(max(share, 0.0), 1.0) * (at[i] - at[i - 1]))


def normal_interval(value: float, variance: float, fourth: float, z: float) -> tuple[float, float]:
    """Return value -+ z standard deviations, widened for the kurtosis of Laplace noise.

    Examples
    --------
    >>> from tacit.descriptive.intervals import normal_interval
    >>> [round(end, 2) for end in normal_interval(10.0, 4.0, 0.0, 1.96)]
    [6.08, 13.92]
    """
    if variance <= 0:
        return value, value
    half = z * math.sqrt(variance) * float(kurtosis_factor(z, fourth / variance**2))
    return value - half, value + half
