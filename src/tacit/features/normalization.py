"""Normalise columns: signed logarithms, and groups of columns scaled to equal norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.features.feature_map import Domain, FeatureMap, RowByRow

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SignedLogarithms(RowByRow):
    """The signed logarithm of every number."""

    unit: float

    def features(self, row: Array) -> Array:
        """Return sign(x) log(1 + |x| / unit)."""
        return np.copysign(np.log1p(np.abs(row) / self.unit), row)


class Logarithms(FeatureMap):
    """Replace every number by sign(x) log(1 + |x| / unit); rows keep their columns.

    Numbers far below the unit stay proportional, and those far above it are compressed to their
    ratio. Use it for features such as scatterings, whose size spans several powers of ten.

    Parameters
    ----------
    unit : float, default=1.0
        The size below which a number is nearly unchanged in proportion.
    row_norm, ranges
        As in `Scattering`.

    Notes
    -----
    **Guarantee**. No row is longer than `longest_logarithms`, which is attained.

    Examples
    --------
    >>> from tacit.features import Logarithms
    >>> Logarithms(0.1, ranges=(-1, 1)).fit([[0.0] * 3]).transform([[0.9, -0.1, 0.0]]).round(3)
    array([[ 2.303, -0.693,  0.   ]])
    """

    def __init__(
        self, unit: float = 1.0, *, row_norm: float | None = None, ranges: Any = None
    ) -> None:
        self.unit = unit
        self.row_norm = row_norm
        self.ranges = ranges

    def row_map(self, domain: Domain) -> SignedLogarithms:
        """Return the row map on a domain."""
        remedy = "pass the size below which numbers are faint."
        return SignedLogarithms(domain, checks.positive("unit", self.unit, remedy=remedy))

    def output(self, domain: Domain) -> Domain:
        """Return the domain of the output rows."""
        unit = self.row_map(domain).unit
        ranges = None
        if domain.ranges is not None:
            ends = np.array(domain.ranges)
            ends = np.copysign(np.log1p(np.abs(ends) / unit), ends)
            ranges = tuple((float(low), float(high)) for low, high in ends)
        return Domain(domain.names, longest_logarithms(domain, unit), ranges)


def longest_logarithms(domain: Domain, unit: float) -> float:
    """Return the greatest norm of the logarithms of a row in a domain.

    log(1 + sqrt(t) / u)^2 is concave in t = x^2, since log(1 + s) / (s (1 + s)) falls with s. At a
    given sum of squares, the sum over columns is therefore greatest if all numbers are of equal
    size, or at the end of their range if that is smaller.

    Examples
    --------
    >>> from tacit.features import Domain
    >>> from tacit.features.normalization import longest_logarithms
    >>> round(longest_logarithms(Domain(("a", "b"), 2.0**0.5), 1.0), 3)  # of (1, 1)
    0.98
    """
    left, most = domain.longest**2, 0.0
    largest = np.sort(domain.largest_values)
    for place, end in enumerate(largest):
        size = min(float(end), math.sqrt(left / (len(largest) - place)))
        left = max(left - size**2, 0.0)
        most += math.log1p(size / unit) ** 2
    return math.sqrt(most) * (1 + 1e-12)


# A group whose numbers differ by less than this, relative to 1, counts as constant.
_EVEN = 1e-5
# For logarithms: a spread below a hundredth is negligible, a tenth is typical.
FAINT = 0.01
USUAL = 0.1


def group_sizes(groups: int | Sequence[int], n: int) -> tuple[int, ...]:
    """Return the sizes of groups of neighbouring columns: from a number of groups, or from sizes.

    Examples
    --------
    >>> from tacit.features.normalization import group_sizes
    >>> group_sizes(2, 6), group_sizes((1, 2), 6)
    ((3, 3), (1, 2, 1, 2))
    """
    if isinstance(groups, Sequence):
        sizes = tuple(checks.count("groups", size) for size in groups)
        times = n // max(sum(sizes), 1)
    else:
        sizes, times = (max(n // checks.count("groups", groups), 1),), groups
    if sum(sizes) * times != n:
        raise ValueError(
            f"{n} columns do not divide into groups={groups!r}; pass how many groups of "
            "one size there are, or sizes that add up."
        )
    return sizes * times


@dataclass(frozen=True)
class Groups(RowByRow):
    """Rows of norm 1 whose groups of neighbouring columns have mean 0 and the given norms."""

    sizes: tuple[int, ...]
    lengths: tuple[float, ...]

    def features(self, row: Array) -> Array:
        """Return the normalised row."""
        sizes = np.array(self.sizes)
        # a group of more columns has smaller entries; for groups of one size this is the norm
        each = np.array(self.lengths) / np.sqrt(sizes / sizes.max())
        centred, _, spread = levelled(row, sizes)
        return to_unit(centred / np.repeat(spread / each, sizes))


def levelled(row: Array, sizes: npt.NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Return a row less the mean of each group, these means, and the spreads around them.

        spread^2 = mean of squares + 1e-10

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.normalization import levelled
    >>> centred, means, spread = levelled(np.array([1.0, 3.0, 5.0]), np.array([2, 1]))
    >>> centred, means, spread.round(6)
    (array([-1.,  1.,  0.]), array([2., 5.]), array([1.e+00, 1.e-05]))
    """
    starts = np.cumsum(sizes) - sizes
    means = np.add.reduceat(row, starts) / sizes
    centred = row - np.repeat(means, sizes)
    squares = np.add.reduceat(centred * centred, starts) / sizes
    return centred, means, np.sqrt(squares + _EVEN**2)


def to_unit(vector: Array) -> Array:
    """Return a vector scaled to norm 1, or zeros."""
    length = float(np.sqrt(np.sum(vector * vector)))
    return vector / length if length > 0.0 else vector


class GroupNormalization(FeatureMap):
    """Scale groups of columns to mean 0 and equal norm in every row; rows have norm 1.

    Group normalisation without learned parameters (Wu and He 2018). It makes the scatterings of
    bright and of dim images alike. Each row is normalised on its own, so that nothing is learned.

    Parameters
    ----------
    groups : int or sequence of int, default=27
        The number of groups of neighbouring columns, all of one size, or the sizes of groups,
        repeated to cover all columns.
    lengths : sequence of float or None
        The relative norm of each group; None for equal norms.
    row_norm, ranges
        As in `Scattering`.

    Examples
    --------
    >>> from tacit.features import GroupNormalization
    >>> GroupNormalization(2).fit([[0.0] * 4]).transform([[0.1, 0.3, 0.0, 0.6]]).round(2)
    array([[-0.5,  0.5, -0.5,  0.5]])
    """

    def __init__(
        self,
        groups: int | Sequence[int] = 27,
        *,
        lengths: Sequence[float] | None = None,
        row_norm: float | None = None,
        ranges: Any = None,
    ) -> None:
        self.groups = groups
        self.lengths = lengths
        self.row_norm = row_norm
        self.ranges = ranges

    def row_map(self, domain: Domain) -> Groups:
        """Return the row map on a domain."""
        sizes = group_sizes(self.groups, domain.n_columns)
        if self.lengths is None:
            return Groups(domain, sizes, (1.0,) * len(sizes))
        lengths = tuple(checks.positive("lengths", length) for length in self.lengths)
        if len(lengths) != len(sizes):
            raise ValueError(
                f"there are {len(sizes)} groups and {len(lengths)} lengths; pass one for each."
            )
        return Groups(domain, sizes, lengths)

    def output(self, domain: Domain) -> Domain:
        """Return the domain of the output rows: the unit sphere."""
        self.row_map(domain)
        return Domain(domain.names, 1.0)


@dataclass(frozen=True)
class Levels(RowByRow):
    """The parts that `GroupNormalization` removes: the mean and the spread of each group.

        mean,  log((spread + FAINT) / USUAL)

    For the logarithms of a photograph's scatterings they measure lightness, colour and roughness.
    The means come first; rows have any norm.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features import Domain
    >>> from tacit.features.normalization import Levels
    >>> out = np.empty((1, 4))
    >>> Levels(Domain(("a", "b", "c"), 9.0), (2, 1))(np.array([[2.0, 2.18, 4.0]]), out)
    >>> out.round(2)
    array([[ 2.09,  4.  ,  0.  , -2.3 ]])
    """

    sizes: tuple[int, ...]

    @property
    def n_columns(self) -> int:
        """The number of output columns."""
        return 2 * len(self.sizes)

    def features(self, row: Array) -> Array:
        """Return the means, then the logarithms of the spreads."""
        _, means, spread = levelled(row, np.array(self.sizes))
        return np.concatenate([means, np.log((spread + FAINT) / USUAL)])
