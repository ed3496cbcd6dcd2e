"""Draw one of many public candidates by its utility: the exponential mechanism.

`Quantile` is drawn exactly on a line, `RiskInBall` in a ball of up to four dimensions. In higher
dimensions, sampling exp(-k F) needs a Markov chain with a proved bound on its distance from the
target. No diagnostic proves such a bound, so tacit has no such sampler. Use `CandidateRisks` or
noisy gradient descent instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from tacit.arrays import Integers
from tacit.noise import Grid, Norm, Release, Source
from tacit.noise.bounded import Bounded
from tacit.noise.selection.ball import BallLattice, Concave, select_in_ball
from tacit.noise.selection.finite import select
from tacit.noise.selection.line import select_on_line
from tacit.privacy import Event, ExponentialMechanism, Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity, Statistic
from tacit.records import Block, Bounds, MemoryRecords, RecordSource
from tacit.records.block import needs_fine_sums

# Part of the sensitivity for the float error of a sum; in a ball, half of it is for its terms.
_FLOAT_SLACK = 1e-4
# Bound on the float error of a loss, relative to its size and to L times the norm of the score.
_LOSS_ERROR = 2.0**-40
_SECTION_1 = "selection_in_a_ball.md#1-the-mechanism"


class Utility(Statistic, Protocol):
    """A statistic with one utility per candidate; its sensitivity is in LINF."""

    def drawn(self, records: Private, facts: Facts, epsilon: float, source: Source) -> Release[Any]:
        """Return a candidate, with probability exp(epsilon utility / (2 sensitivity)) / Z."""


U = TypeVar("U", bound=Utility)


@dataclass(frozen=True)
class Selection(Generic[U]):
    """A public candidate, drawn with a probability that grows with its utility.

        P(i) proportional to exp(epsilon utility_i / (2 sensitivity))

    Parameters
    ----------
    utility
        `Quantile`, `CandidateRisks` or `RiskInBall`; the answer is a point, an index or weights.
    epsilon
        The range of the privacy loss.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts
    >>> from tacit.queries.selection import Quantile, Selection
    >>> from tacit.records import Bounds
    >>> facts = Facts(Bounds(), 1, Relation.REPLACE)
    >>> Selection(Quantile(0.5, 0.0, 1.0), epsilon=0.3).event(facts)
    ExponentialMechanism(epsilon=0.3, relation=<Relation.REPLACE: 'replace'>)
    """

    utility: U
    epsilon: float

    def event(self, facts: Facts) -> Event:
        """Return the cost of asking."""
        return selection_event(self.epsilon, facts)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Any]:
        """Return the drawn candidate."""
        return self.utility.drawn(records, facts, self.epsilon, source)


def selection_event(epsilon: float, facts: Facts) -> Event:
    """Return the cost of a selection with any utility.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts
    >>> from tacit.queries.selection import selection_event
    >>> from tacit.records import Bounds
    >>> selection_event(0.5, Facts(Bounds(), 1, Relation.ADD_REMOVE)).epsilon
    0.5
    """
    if facts.sampling_rate is not None:
        raise ValueError("a Poisson sample needs Gaussian noise: no other noise is accounted for.")
    return ExponentialMechanism(epsilon, facts.relation)


class Loss(Protocol):
    """A convex loss with a bounded derivative, such as those of `tacit.erm.losses`."""

    @property
    def lipschitz(self) -> float:
        """The bound on the derivative."""

    @property
    def n_outputs(self) -> int:
        """The number of scores per record."""

    def gradient_scale(self, row_norm: float) -> float:
        """Return the greatest factor between the derivative and a gradient's norm."""

    def values(self, block: Block, weights: Array) -> Array:
        """Return the loss of every record, times its weight."""

    def gradient(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        """Return the sum of the records' gradients."""


def _lipschitz(loss: Loss, facts: Facts) -> float:
    """Return L, the greatest norm of one record's gradient."""
    return loss.lipschitz * loss.gradient_scale(facts.bounds.total_norm)


def _shape(loss: Loss, facts: Facts) -> tuple[int, ...]:
    n, outputs = facts.n_coordinates, loss.n_outputs
    return (n, outputs) if outputs > 1 else (n,)


@dataclass(frozen=True, eq=False)
class CandidateRisks:
    """Minus the empirical risk of public weights, relative to the first of them.

        utility_i = -(sum of loss(w_i) - loss(w_0) over records + (lam / 2) ||w_i||^2)

    A record's term is clipped to L ||w_i - w_0||, with L its Lipschitz constant. A `Selection` of
    this utility answers with an index.

    Parameters
    ----------
    loss
        A loss with a bounded derivative.
    candidates
        One row per candidate.
    regularization
        lam.
    """

    loss: Loss
    candidates: Array = field(repr=False)
    regularization: float = 0.0

    @classmethod
    def tried(cls) -> tuple[CandidateRisks, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return tuple(cls(_Score(), np.eye(d) - 0.5, 0.3) for d in (3, 4))

    def applies(self, facts: Facts) -> bool:
        """Return whether candidates have the length of rows."""
        return bool(self.candidates.shape[1] == math.prod(_shape(self.loss, facts)))

    def utility_sensitivity(self, facts: Facts) -> float:
        """Return the sensitivity of a utility in real numbers: L times the greatest distance."""
        widest = float(np.linalg.norm(self.candidates - self.candidates[0], axis=1).max())
        return facts.n_changed * _lipschitz(self.loss, facts) * max(widest, 1e-300)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return L times the greatest distance, twice that for REPLACE, plus the rounding."""
        # The penalty is public, but adding it rounds by 2^-53 of the sum on either neighbour.
        value = (
            self.utility_sensitivity(facts) * (1 + _FLOAT_SLACK) + 2.0**-51 * self._penalty().max()
        )
        return Sensitivity(float(value), Norm.LINF, _SECTION_1)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the utilities, in one pass. Private."""
        weights = [w.reshape(_shape(self.loss, facts)) for w in self.candidates]
        # A record's excess loss is at most L times the distance; clip it against float error.
        distances = np.linalg.norm(self.candidates - self.candidates[0], axis=1)
        limits = _lipschitz(self.loss, facts) * distances

        def excesses(block: Block) -> tuple[Array]:
            base = self.loss.values(block, weights[0])
            parts = zip(weights, limits, strict=True)
            return (
                np.array(
                    [np.clip(self.loss.values(block, w) - base, -r, r).sum() for w, r in parts]
                ),
            )

        (excess,) = records.sum(excesses, fine=needs_fine_sums(records, _FLOAT_SLACK))
        utility: Array = -(excess + self._penalty())
        return utility

    def _penalty(self) -> Array:
        penalty: Array = self.regularization / 2 * np.sum(self.candidates**2, axis=1)
        return penalty

    def drawn(self, records: Private, facts: Facts, epsilon: float, source: Source) -> Release[int]:
        """Return the index of the drawn candidate. Called by a `Selection` only."""
        stated = self.sensitivity(facts)
        bounded = Bounded(self.total(records, facts), stated.value, stated.norm, facts.relation)
        return select(bounded, epsilon, source=source)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the function that computes a record's loss."""
        return (self.loss.values,)


@dataclass(frozen=True)
class RiskInBall:
    """Minus the empirical risk of weights in a ball of few dimensions, relative to that of 0.

        utility(w) = -(sum of loss(w) - loss(0) over records + (lam / 2) ||w||^2),   ||w|| <= R

    A record's term is clipped to L ||w||, with L its Lipschitz constant. A `Selection` of this
    utility answers with the coordinates of a point of a fine lattice.

    Parameters
    ----------
    loss
        A convex loss with a bounded derivative, computed to 2^-40 of its size.
    radius
        R.
    regularization
        lam.
    per_radius
        The least number of lattice points from the centre to the sphere.
    """

    loss: Loss
    radius: float
    regularization: float = 0.0
    per_radius: int = 2**24

    @classmethod
    def tried(cls) -> tuple[RiskInBall, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (cls(_Score(), 1.5, 0.3),)

    def utility_sensitivity(self, facts: Facts) -> float:
        """Return the sensitivity of a utility in real numbers: L R, or 2 L R."""
        return facts.n_changed * _lipschitz(self.loss, facts) * self.radius

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return L R, twice that under REPLACE, plus the rounding."""
        # The penalty is public, but adding it rounds by 2^-53 of the sum on either neighbour.
        rounding = 2.0**-51 * _penalty(self, self.radius)
        value = self.utility_sensitivity(facts) * (1 + _FLOAT_SLACK) + rounding
        return Sensitivity(value, Norm.LINF, _SECTION_1)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the utility of the outermost points on each axis, for tests. Private."""
        ends = self.radius * np.eye(math.prod(_shape(self.loss, facts)))
        risk = _Risk(self, records, facts)
        return np.array([-risk.at(w) for w in np.vstack([ends, -ends])])

    def concave(self, records: Private, facts: Facts) -> Concave:
        """Return the utility as a function of a point. Private."""
        risk = _Risk(self, records, facts)
        stated = self.sensitivity(facts).value
        return Concave(lambda w: -risk.at(w), risk.falling, risk.error(), stated, facts.relation)

    def drawn(
        self, records: Private, facts: Facts, epsilon: float, source: Source
    ) -> Release[Array]:
        """Return weights, drawn by their risk. Called by a `Selection` only."""
        lattice = BallLattice(self.radius, math.prod(_shape(self.loss, facts)), self.per_radius)
        return select_in_ball(self.concave(records, facts), lattice, epsilon, source=source)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that compute and clip a record's loss."""
        return self.loss.values, _Risk.at


def _penalty(utility: RiskInBall, size: float) -> float:
    """Return (lam / 2) ||w||^2."""
    return utility.regularization / 2 * size**2


@dataclass(frozen=True)
class _Risk:
    """The sum of the losses relative to w = 0, and the ridge, over given records."""

    utility: RiskInBall
    records: RecordSource
    facts: Facts

    def at(self, point: Array) -> float:
        """Return F(w) - F(0): a record counts for at most L ||w||, to the last bit."""
        size = float(np.linalg.norm(point))
        loss, w = self.utility.loss, self._weights(point)
        limit = _lipschitz(loss, self.facts) * size

        def excess(block: Block) -> tuple[Array]:
            differences = loss.values(block, w) - loss.values(block, self._nowhere)
            return (np.clip(differences, -limit, limit).sum(),)

        fine = needs_fine_sums(self.records, _FLOAT_SLACK / 2)
        (total,) = self.records.sum(excess, fine=fine)
        return float(total) + _penalty(self.utility, size)

    def falling(self, points: Array) -> tuple[Array, Array]:
        """Return -F and its gradients at points, one per row, in one pass over the records."""
        loss, bounds = self.utility.loss, self.facts.bounds
        weights = [self._weights(point) for point in points]

        def both(block: Block) -> tuple[Array, Array]:
            start = loss.values(block, self._nowhere)
            values = [(loss.values(block, w) - start).sum() for w in weights]
            slopes = [loss.gradient(block, w, bounds, math.inf) for w in weights]
            return np.array(values), np.array(slopes)

        values, gradients = self.records.sum(both)
        ridge, sizes = self.utility.regularization, np.linalg.norm(points, axis=1)
        slopes = gradients.reshape(points.shape) + ridge * points
        return -(values + ridge / 2 * sizes**2), -slopes

    def _weights(self, point: Array) -> Array:
        return point.reshape(_shape(self.utility.loss, self.facts))

    @property
    def _nowhere(self) -> Array:
        return np.zeros(_shape(self.utility.loss, self.facts))

    def error(self) -> float:
        """Bound how far -F may lie above a tangent plane in floats, within 4 radii of 0.

        A sum of n terms of size t has an error of t times the records' ``sum_error``. A term has an
        error of 2^-40 of its parts: the loss at 0, and L times a distance of at most 8 radii.
        """
        loss, far = self.utility.loss, 8 * self.utility.radius
        (size,) = self.records.sum(lambda block: (np.abs(loss.values(block, self._nowhere)).sum(),))
        slope = _lipschitz(loss, self.facts) * far
        sums = 3 * self.records.sum_error() * slope
        terms = 2 * _LOSS_ERROR * (float(size) + (self.records.count() + 1) * slope)
        return float(sums + terms + 2.0**-44 * _penalty(self.utility, far))


@dataclass(frozen=True)
class _Score:
    """A loss equal to the score: one record moves it as far as it can move any loss."""

    lipschitz: float = 1.0
    n_outputs: int = 1

    def gradient_scale(self, row_norm: float) -> float:
        return row_norm

    def values(self, block: Block, weights: Array) -> Array:
        return block.weighed(block.scores(weights))

    def gradient(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        return block.weighted_sum(np.ones(block.n_rows))


# Bound on the denominators of levels; with 2^32 ranks, products are integers of 52 bits.
_FINEST_LEVEL = 2**20
_FARTHEST_RANK = 2**32  # rank errors are clipped below it
GRID_POINTS = 2**20  # default resolution of the public interval


@dataclass(frozen=True)
class Quantile:
    """The quantile of a column: the point t of a public grid with the least rank error.

        utility(t) = -q |#{x <= t} - (p / q) n|,   p / q the level

    p / q is the nearest fraction with q up to 2^20, so that utilities are integers and exact. The
    utility is constant between values: a draw costs one sort. Ask it in a `Selection`.

    Whole numbers have many ties: the ranks of a number t go from #{x < t} to #{x <= t}. With
    ``whole`` the grid is the whole numbers, and the error is the distance to that interval:

        utility(t) = -max(0, p n - q #{x <= t}, q #{x < t} - p n)

    Parameters
    ----------
    level
        The level, between 0 and 1.
    lower, upper
        The public interval; values outside are clipped to it.
    column
        The index of the column.
    counts_missing
        Whether a value that is not finite counts as 0, as in every sum; otherwise it is ignored.
    n_points
        The least number of grid points, unless ``whole``.
    whole
        Whether the quantile is a whole number. Values are rounded, each by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts, Session, Slot
    >>> from tacit.queries.selection import Quantile, Selection
    >>> from tacit.records import Bounds, MemoryRecords
    >>> facts = Facts(Bounds(), 1, Relation.ADD_REMOVE)
    >>> median = Selection(Quantile(0.5, 0.0, 100.0), epsilon=1.0)
    >>> slots = {"median": Slot(median.event(facts))}
    >>> records = MemoryRecords(np.arange(1000.0)[:, None] / 10, None, facts.bounds)
    >>> session = Session(records, facts, median.event(facts), slots)
    >>> 45 < session.ask(median, "median") < 55
    True
    """

    level: float
    lower: float
    upper: float
    column: int = 0
    counts_missing: bool = True
    n_points: int = GRID_POINTS
    whole: bool = False

    def __post_init__(self) -> None:
        if self.whole and math.ceil(self.lower) >= math.floor(self.upper):
            raise ValueError(
                f"there are no two whole numbers between {self.lower:g} and {self.upper:g}; pass "
                "wider bounds, or whole=False."
            )
        _ = self._grid  # refuses bounds that no grid of doubles fits, before a charge

    @classmethod
    def tried(cls) -> tuple[Quantile, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        parameters: dict[str, Any] = {"lower": -0.5, "upper": 0.7, "n_points": 64}
        return (
            cls(0.3, **parameters),
            cls(0.5, column=1, counts_missing=False, **parameters),
            cls(0.3, lower=-1.0, upper=1.0, whole=True),
        )

    def applies(self, facts: Facts) -> bool:
        """Return whether the column exists."""
        return self.column < facts.n_features

    @property
    def fraction(self) -> Fraction:
        """The level as a fraction p / q."""
        return Fraction(self.level).limit_denominator(_FINEST_LEVEL)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return max(p, q - p), or q under REPLACE."""
        p, q = self.fraction.numerator, self.fraction.denominator
        value = float(q if facts.relation is Relation.REPLACE else max(p, q - p))
        return Sensitivity(value, Norm.LINF, "selection_on_a_line.md#5-ranks")

    def rank_sensitivity(self, facts: Facts) -> float:
        """Return the sensitivity of a utility in ranks: at most 1.

        Examples
        --------
        >>> from tacit.privacy import Relation
        >>> from tacit.queries import Facts
        >>> from tacit.queries.selection import Quantile
        >>> from tacit.records import Bounds
        >>> Quantile(0.5, 0.0, 1.0).rank_sensitivity(Facts(Bounds(), 1, Relation.ADD_REMOVE))
        0.5
        """
        return self.sensitivity(facts).value / self.fraction.denominator

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the utility of every grid point. Private."""
        ends, utility = self._pieces(records)
        grid = self._grid
        points = np.arange(grid.first, grid.last + 1) * grid.spacing
        # The last interval is closed.
        at = np.minimum(np.searchsorted(ends, points, side="right") - 1, utility.size - 1)
        return np.asarray(utility[at])

    def drawn(
        self, records: Private, facts: Facts, epsilon: float, source: Source
    ) -> Release[float]:
        """Return a grid point, drawn by its utility. Called by a `Selection` only."""
        ends, utility = self._pieces(records)
        stated = self.sensitivity(facts)
        both_ends = np.repeat(utility[:, None], 2, axis=1)
        bounded = Bounded(both_ends, stated.value, stated.norm, facts.relation)
        release = select_on_line(ends, bounded, self._grid, epsilon, source=source)
        if not self.whole:
            return release
        # Two candidates are beyond the interval, since the last piece is closed.
        return replace(release, value=min(release.value, float(math.floor(self.upper))))

    @property
    def _grid(self) -> Grid:
        if not self.whole:
            return Grid(self.lower, self.upper, self.n_points)
        low, high = math.ceil(self.lower), math.floor(self.upper)
        return Grid(low, high + 2, high + 2 - low)  # of spacing 1

    def _pieces(self, records: Private) -> tuple[Array, Array]:
        """Return the jumps of the utility, with both ends of the line, and its values between."""
        if not isinstance(records, MemoryRecords):
            raise ValueError("the exact quantile needs records in memory; load them first.")
        if hasattr(records.rows, "tocsr"):
            raise ValueError("the exact quantile needs dense records; pass X.toarray().")
        values = np.asarray(records.rows, dtype=np.float64)[:, self.column]
        # NaN would be sorted beyond the end.
        finite = np.isfinite(values)
        values = np.where(finite, values, 0.0) if self.counts_missing else values[finite]
        if self.whole:
            return self._pieces_of_whole_numbers(np.rint(values))
        values = np.sort(np.clip(values, self.lower, self.upper))
        knots = np.concatenate([[self.lower], values, [self.upper]])
        utility = rank_utility(np.arange(values.size + 1), values.size, self.fraction)
        keep = np.diff(knots) > 0
        return np.concatenate([knots[:-1][keep], [self.upper]]), utility[keep]

    def _pieces_of_whole_numbers(self, values: Array) -> tuple[Array, Array]:
        """Return pieces [t, t + 1) of the numbers t that occur, and the pieces between them."""
        low, high = math.ceil(self.lower), math.floor(self.upper)
        numbers, counts = np.unique(np.clip(values, low, high), return_counts=True)
        up_to = np.cumsum(counts)
        n, level = values.size, self.fraction
        below = _rank_gap(up_to - counts, n, level)  # q #{x < t} - p n
        above = _rank_gap(up_to, n, level)  # q #{x <= t} - p n
        at = -np.maximum(0.0, np.maximum(below, -above))
        between = -np.abs(above)  # no value is there: both counts are equal
        first = -np.abs(_rank_gap(np.zeros(1, dtype=np.int64), n, level))
        occurring = np.stack([numbers, numbers + 1], axis=1).ravel()
        knots = np.concatenate([[low], occurring, [high + 2]])
        utility = np.concatenate([first, np.stack([at, between], axis=1).ravel()])
        keep = np.diff(knots) > 0
        return np.concatenate([knots[:-1][keep], [high + 2]]), utility[keep]

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that score ranks."""
        return rank_utility, _rank_gap


def rank_utility(below: Integers, n: int, level: Fraction) -> Array:
    """Return -min(|q below - p n|, q (2^32 - 1)) for level = p / q: whole numbers, exactly.

    Adding or removing a record moves q below - p n by p or q - p, replacing one by q. A minimum
    with a constant moves by no more: all ranks that far off are equally bad.

        p n = q whole + part;   if |below - whole| >= 2^32, |q (below - whole) - part| is at
        least q (2^32 - 1), so that the gap can be clipped before it is multiplied

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from tacit.queries.selection import rank_utility
    >>> rank_utility(np.arange(4), 3, Fraction(1, 10))
    array([ -3.,  -7., -17., -27.])
    """
    utility: Array = -np.abs(_rank_gap(below, n, level))
    return utility


def _rank_gap(below: Integers, n: int, level: Fraction) -> Array:
    """Return q below - p n, clipped to +- q (2^32 - 1): whole numbers, exactly."""
    p, q = level.numerator, level.denominator
    whole, part = divmod(p * n, q)
    gap = np.clip(below - whole, -_FARTHEST_RANK, _FARTHEST_RANK)
    most = q * (_FARTHEST_RANK - 1)
    return np.clip(q * gap - part, -most, most).astype(np.float64)
