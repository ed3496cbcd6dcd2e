"""Run the exponential mechanism on a fine public grid of a line, for piecewise linear utilities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.arrays import Array
from tacit.noise.bounded import LARGEST_VALUE, Bounded
from tacit.noise.exact.interval_arithmetic import nearest_float
from tacit.noise.release import Release, emit
from tacit.noise.selection.finite import check_utilities, gumbel_max
from tacit.noise.selection.geometric_run import SERIES_ERROR, Run, log_series
from tacit.noise.source import Source
from tacit.privacy.events import ExponentialMechanism

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """Public candidates on a line: the multiples of a power of two in [lower, upper].

        spacing = 2^floor(log2((upper - lower) / n_points))

    The spacing is a power of two, so a knot's place on the grid is exact in floats.

    Parameters
    ----------
    lower, upper : float
        The public range.
    n_points : int
        The least number of candidates; there are fewer than 2 n_points + 2.

    Examples
    --------
    >>> from tacit.noise import Grid
    >>> Grid(0.0, 1.0, n_points=1000).spacing == 2.0**-10
    True
    """

    lower: float
    upper: float
    n_points: int = 2**20

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not abs(value) <= LARGEST_VALUE:
                raise ValueError(
                    f"{name} must be a finite float of at most 2^500, got {value!r}; pass the "
                    "public range of the answer."
                )
        if not self.lower < self.upper:
            raise ValueError(
                f"lower must be below upper, got {self.lower!r} and {self.upper!r}; swap them."
            )
        checks.count(
            "n_points", self.n_points, least=2, most=2**50, remedy="2**20 suits most uses."
        )
        object.__setattr__(self, "lower", float(self.lower))
        object.__setattr__(self, "upper", float(self.upper))
        largest = max(abs(self.lower), abs(self.upper))
        if self.spacing < 2.0**-1000 or largest / self.spacing >= 2.0**52:
            raise ValueError(
                f"n_points={self.n_points} is finer than doubles near {largest!r} are; "
                "pass fewer points or move the origin."
            )

    @property
    def spacing(self) -> float:
        """The distance between neighbouring candidates."""
        return math.ldexp(1.0, math.frexp((self.upper - self.lower) / self.n_points)[1] - 1)

    @property
    def first(self) -> int:
        """The first candidate, in units of the spacing."""
        return math.ceil(self.lower / self.spacing)

    @property
    def last(self) -> int:
        """The last candidate, in units of the spacing."""
        return math.floor(self.upper / self.spacing)


def select_on_line(
    knots: Array,
    utilities: Bounded,
    grid: Grid,
    epsilon: float,
    *,
    monotone: bool = False,
    source: Source | None = None,
) -> Release[float]:
    """Choose a point of a grid with probability growing in a piecewise linear utility.

        P(x) proportional to exp(rate * utility(x)),   x a point of the grid
        rate = epsilon / (2 sensitivity), or epsilon / sensitivity if monotone

    Parameters
    ----------
    knots : array of shape (n + 1,)
        Boundaries of the pieces, not decreasing, from ``grid.lower`` to ``grid.upper``. Piece j is
        [knots[j], knots[j + 1]), the last one closed. Knots may be private.
    utilities : Bounded
        Either the utility at each knot, shape (n + 1,), linear in between; or the utility at the
        left and the right end of each piece, shape (n, 2), for utilities that jump (constant
        pieces have equal ends). The sensitivity, in the norm LINF, bounds the change of the utility
        at any point of the grid, for neighbours that may have other knots.
    grid : Grid
        The public candidates.
    epsilon : float
        The range of the privacy loss.
    monotone : bool
        Whether adding a record moves the utility in the same direction everywhere. Only for
        ADD_REMOVE.
    source : Source, optional
        Source of random bits. By default a new `secure_source` for this release.

    Returns
    -------
    Release
        The chosen point, with ``ExponentialMechanism(epsilon)`` as event.

    Notes
    -----
    **Guarantee**

    1. The law of the point is exactly the one above, in real arithmetic, for knots and utilities
       as given; so the release is epsilon-bounded-range, hence epsilon-DP
       (docs/proofs/selection_on_a_line.md).
    2. The time is proportional to the number of knots, for any size of the grid.
    3. Wrong arguments are refused before anything is drawn.

    **Assumes**: the sensitivity; ``monotone``, if claimed (a replay checks it at the points of the
    grid); the bits of the source; NumPy's log, log1p and expm1 within 2^-44 relative; mpmath's
    interval exp and log.

    Examples
    --------
    The median of numbers in [0, 10]: minus the sum of distances, clipped to the range.

    >>> import numpy as np
    >>> from tacit.noise import Grid, Norm
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.selection.line import select_on_line
    >>> from tacit.privacy import Relation
    >>> numbers = np.full(1000, 3.0)
    >>> knots = np.array([0.0, 3.0, 10.0])
    >>> utility = -np.abs(knots[:, None] - numbers).sum(axis=1)
    >>> bounded = Bounded(utility, sensitivity=10.0, norm=Norm.LINF, relation=Relation.ADD_REMOVE)
    >>> release = select_on_line(knots, bounded, Grid(0.0, 10.0), epsilon=2.0)
    >>> abs(release.value - 3.0) < 1.0
    True
    """
    rate = check_utilities(utilities, epsilon, monotone, "select_on_line")
    if not isinstance(grid, Grid):
        raise TypeError(f"grid must be a Grid, got {grid!r}; pass Grid(lower, upper).")
    pieces = _Pieces.new(knots, utilities, grid)
    return emit(
        "select_on_line",
        # An audit compares utilities at grid points, since neighbours have other knots.
        lambda: Bounded(
            pieces.on_grid(), utilities.sensitivity, utilities.norm, utilities.relation
        ),
        ExponentialMechanism(float(epsilon), utilities.relation),
        source,
        lambda words: _draw(pieces, rate, words) * grid.spacing,
        public={"monotone": monotone, "grid": grid},
    )


@dataclass(frozen=True)
class _Pieces:
    """Pieces that contain at least one point, in units of the grid's spacing.

    Piece j runs from left[j] to right[j], its utility from low[j] to high[j], and it contains the
    n[j] points first[j], first[j] + 1, ...
    """

    left: Array
    right: Array
    low: Array
    high: Array
    first: Indices
    n: Indices

    @staticmethod
    def new(knots: Array, utilities: Bounded, grid: Grid) -> _Pieces:
        places = np.asarray(knots, dtype=np.float64)
        if places.ndim != 1 or places.size < 2:
            raise ValueError(
                "knots must be one row of at least two numbers; pass at least [lower, upper]."
            )
        sorted_inside = bool(np.all(np.diff(places) >= 0.0))  # False if any is NaN
        if not sorted_inside or places[0] != grid.lower or places[-1] != grid.upper:
            raise ValueError(
                "knots must not decrease and must run from grid.lower to grid.upper; clip the "
                "data to the range, sort them, and put the two ends around them."
            )
        value = np.asarray(utilities.value)
        if value.shape == (places.size,):
            low, high = value[:-1], value[1:]
        elif value.shape == (places.size - 1, 2):
            low, high = value[:, 0], value[:, 1]
        else:
            raise ValueError(
                "utilities do not fit the knots; for k knots pass one number for each, shape "
                "(k,), or the two ends of each piece, shape (k - 1, 2)."
            )
        # Exact: the spacing is a power of two and places are below 2^52 in its units.
        scaled = places * (1.0 / grid.spacing)
        start = np.ceil(scaled)
        start[-1] = grid.last + 1
        count = np.diff(start)
        keep = count > 0
        return _Pieces(
            scaled[:-1][keep],
            scaled[1:][keep],
            low[keep],
            high[keep],
            start[:-1][keep].astype(np.int64),
            count[keep].astype(np.int64),
        )

    def at(self, piece: Any, point: Any) -> Any:
        """Return the utility, in floats, at a point of a piece."""
        left, low = self.left[piece], self.low[piece]
        share = (point - left) / (self.right[piece] - left)
        # A convex combination: its error is relative to the larger of the two ends.
        return low * (1.0 - share) + self.high[piece] * share

    def on_grid(self) -> Array:
        """Return the utility at every point of the grid."""
        piece = np.repeat(np.arange(self.n.size), self.n)
        point = np.arange(self.first[0], self.first[0] + self.n.sum(), dtype=np.float64)
        utility: Array = self.at(piece, point)
        return utility

    def run(self, piece: int, rate: Fraction) -> Run:
        """Return one piece in exact numbers."""
        left, right = Fraction(float(self.left[piece])), Fraction(float(self.right[piece]))
        low, high = Fraction(float(self.low[piece])), Fraction(float(self.high[piece]))
        first, n = int(self.first[piece]), int(self.n[piece])
        slope = rate * (high - low) / (right - left)
        top = first + n - 1 if slope > 0 else first
        return Run(rate * low + slope * (top - left), abs(slope), n)


def _draw(pieces: _Pieces, rate: Fraction, source: Source) -> int:
    """Return a point in units of the spacing: first its piece, then its place in the piece."""
    log_mass, error = _log_masses(pieces, nearest_float(rate))
    chosen = gumbel_max(log_mass, error, lambda i: pieces.run(i, rate), source)
    run = pieces.run(chosen, rate)
    m = run.draw(source)
    rises = pieces.high[chosen] > pieces.low[chosen]
    first, n = int(pieces.first[chosen]), int(pieces.n[chosen])
    return first + n - 1 - m if rises else first + m


def _log_masses(pieces: _Pieces, rate: float) -> tuple[Array, float]:
    """Return the log mass of every piece in floats, and a bound on the error."""
    with np.errstate(all="ignore"):
        fall = np.abs(rate * (pieces.high - pieces.low) / (pieces.right - pieces.left))
        rises = pieces.high > pieces.low
        top = pieces.first + np.where(rises, pieces.n - 1, 0)
        weight = rate * pieces.at(slice(None), top.astype(np.float64))
        log_mass = weight + log_series(fall, pieces.n)
        # Weights err by at most 2^-46 of the largest (docs/proofs/selection_on_a_line.md).
        largest = rate * max(float(np.max(np.abs(pieces.low))), float(np.max(np.abs(pieces.high))))
        return log_mass, 2.0**-46 * largest + SERIES_ERROR
