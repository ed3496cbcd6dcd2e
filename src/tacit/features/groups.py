"""Groups of columns: made alike, and what that takes away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.features.domain import Domain
from tacit.features.feature_map import FeatureMap

Array = npt.NDArray[np.float64]

# A group whose numbers differ by less than this, relative to 1, is held for constant.
_EVEN = 1e-5
# Of logarithms: numbers that spread by less than a hundredth hardly do, a tenth is usual.
FAINT = 0.01
USUAL = 0.1


def group_sizes(groups: int | Sequence[int], n: int) -> tuple[int, ...]:
    """Return how many of n neighbouring columns each group has: of so many groups, or of sizes.

    Examples
    --------
    >>> from tacit.features.groups import group_sizes
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
class Groups:
    """Rows whose groups of neighbouring columns have mean 0 and lengths as said, of norm 1."""

    domain: Domain
    sizes: tuple[int, ...]
    lengths: tuple[float, ...]

    @property
    def n_columns(self) -> int:
        """How many numbers a row has that it makes."""
        return self.domain.n_columns

    def __call__(self, rows: Any, out: Array) -> None:
        """Write what it makes of finite rows."""
        sizes = np.array(self.sizes)
        # a group of more columns has smaller ones; where all are of one size this is the length
        each = np.array(self.lengths) / np.sqrt(sizes / sizes.max())
        for row, made in zip(self.domain.held(rows), out, strict=True):
            centred, _, spread = levelled(row, sizes)
            made[:] = to_unit(centred / np.repeat(spread / each, sizes))


def levelled(row: Array, sizes: npt.NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Return a row less the mean of each group, these means, and how far groups spread around them.

        spread^2 = mean of squares + 1e-10

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.groups import levelled
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
    """Columns in groups, each of mean 0 and of one length in every row; rows of norm 1.

    Group normalisation without parameters of its own (Wu and He 2018), which makes scatterings of
    bright and of dim images alike: each row by itself, so that nothing is learned.

    Parameters
    ----------
    groups : int or sequence of int, default=27
        How many groups of neighbouring columns, all of one size, or the sizes of groups, repeated
        as often as there are columns for.
    lengths : sequence of float or None
        The length of each group beside the others; None for the same.
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
        """Return what makes a row of one in the domain."""
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
        """Return where the rows it makes are: on the sphere."""
        self.row_map(domain)
        return Domain(domain.names, 1.0)


@dataclass(frozen=True)
class Levels:
    """What `GroupNormalization` takes away: the mean of each group and how far it spreads.

        mean,  log((spread + FAINT) / USUAL)

    Of the logarithms of a photograph's scatterings they say how light, how coloured and how rough
    it is. The means first; rows of any norm.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features import Domain
    >>> from tacit.features.groups import Levels
    >>> out = np.empty((1, 4))
    >>> Levels(Domain(("a", "b", "c"), 9.0), (2, 1))(np.array([[2.0, 2.18, 4.0]]), out)
    >>> out.round(2)
    array([[ 2.09,  4.  ,  0.  , -2.3 ]])
    """

    domain: Domain
    sizes: tuple[int, ...]

    @property
    def n_columns(self) -> int:
        """How many numbers a row has that it makes."""
        return 2 * len(self.sizes)

    def __call__(self, rows: Any, out: Array) -> None:
        """Write what it makes of finite rows."""
        sizes = np.array(self.sizes)
        for row, made in zip(self.domain.held(rows), out, strict=True):
            _, means, spread = levelled(row, sizes)
            made[:] = np.concatenate([means, np.log((spread + FAINT) / USUAL)])
