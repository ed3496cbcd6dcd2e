"""The exponential mechanism: exact on a line, and over public candidates in any dimension.

In a ball of up to four dimensions `tacit.erm.ball` draws it exactly. In more, sampling exp(-k F)
needs a Markov chain whose distance from its target would have to be proved small; no diagnostic
proves that, so tacit offers none. `PublicCandidates` and noisy gradient descent are the honest
alternatives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.erm.objective import moved
from tacit.erm.plan import CannotSolve, Mechanism, Plan, Problem, Settings
from tacit.noise import Bounded, Grid, Norm, Release, Source, select, select_on_line
from tacit.privacy import Budget, ExponentialMechanism, Relation
from tacit.records import Block, MemoryRecords, RecordSource
from tacit.records.summing import needs_fine_sums

Array = npt.NDArray[np.float64]

_FLOAT_SLACK = 1e-4  # charged to the sensitivity for the float error of a sum
# Denominators of levels and ranks: their product is a whole number of 52 bits.
_FINEST_LEVEL = 2**20
_FARTHEST_RANK = 2**32


@dataclass(frozen=True)
class LineSettings(Settings):
    """What to aim at, how far one record moves its rank, and how far off to expect to be."""

    rank_error: float
    level: float
    sensitivity: float


@dataclass(frozen=True)
class QuantileOnALine(Mechanism):
    """The quantile of one column, exactly and purely private.

    Scores every point t of a public grid by its rank error, u(t) = -|#{x < t} - level * n|, and
    draws t with probability proportional to exp(epsilon u / (2 Delta)); Delta = 1 under REPLACE
    and max(level, 1 - level) under ADD_REMOVE. The utility is constant between records, so the
    draw costs one sort. For level = p / q, the nearest fraction with q up to 2^20, both are
    multiplied by q: whole numbers, so that no rounding moves a utility.

    Examples
    --------
    >>> from tacit.erm import QuantileOnALine
    >>> QuantileOnALine(0.0, 100.0).n_points
    1048576
    """

    lower: float
    upper: float
    n_points: int = 2**20

    name = "exponential_mechanism"
    title = "Exponential mechanism"
    is_named = False

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Check that the problem is a quantile of one column."""
        level = problem.objective.loss.level
        if level is None or problem.dimension != 1:
            raise CannotSolve(
                "the exact sampler on a line is for quantiles of one column; use "
                "PublicCandidates for other losses in few dimensions."
            )
        delta = ranks_moved(level, budget.relation)
        ranks = 2 * delta / budget.epsilon * math.log(self.n_points)
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=ExponentialMechanism(budget.epsilon, budget.relation),
            excess_risk=ranks / problem.n_records,
            reason="exact sampling; pure epsilon; the error is in ranks, not in units",
            settings=LineSettings(ranks, level, delta).shown(),
        )

    def draw(self, plan: Plan, records: RecordSource, source: Source | None) -> Release[Array]:
        """Sort, score, draw."""
        if not isinstance(records, MemoryRecords):
            raise CannotSolve("the exact quantile needs records in memory.")
        level, relation = _fraction(LineSettings.of(plan).level), plan.budget.relation
        if hasattr(records.rows, "tocsr"):
            raise CannotSolve("the exact quantile needs dense records; pass X.toarray().")
        values = np.asarray(records.rows, dtype=np.float64).ravel()
        # What is not finite counts as 0, as in every sum; a NaN would be sorted beyond the end.
        values = np.where(np.isfinite(values), values, 0.0)
        values = np.sort(np.clip(values, self.lower, self.upper))
        knots = np.concatenate([[self.lower], values, [self.upper]])
        utility = rank_utility(np.arange(values.size + 1), values.size, level)
        keep = np.diff(knots) > 0
        pieces = np.repeat(utility[keep][:, None], 2, axis=1)
        ends = np.concatenate([knots[:-1][keep], [self.upper]])
        bounded = Bounded(pieces, _rank_sensitivity(level, relation), Norm.LINF, relation)
        release = select_on_line(
            ends,
            bounded,
            Grid(self.lower, self.upper, self.n_points),
            plan.budget.epsilon,
            source=source,
        )
        return Release(np.array([release.value]), release.event)


def _fraction(level: float) -> Fraction:
    return Fraction(level).limit_denominator(_FINEST_LEVEL)


def _rank_sensitivity(level: Fraction, relation: Relation) -> float:
    p, q = level.numerator, level.denominator
    return float(q if relation is Relation.REPLACE else max(p, q - p))


def ranks_moved(level: float, relation: Relation) -> float:
    """Return how many ranks one record moves a utility: at most 1.

    Examples
    --------
    >>> from tacit.erm.exponential_mechanism import ranks_moved
    >>> from tacit.privacy import Relation
    >>> ranks_moved(0.5, Relation.ADD_REMOVE), ranks_moved(0.5, Relation.REPLACE)
    (0.5, 1.0)
    """
    fraction = _fraction(level)
    return _rank_sensitivity(fraction, relation) / fraction.denominator


def rank_utility(below: npt.NDArray[np.int64], n: int, level: Fraction) -> Array:
    """Return -min(|q below - p n|, q (2^32 - 1)) for level = p / q: whole numbers, exactly.

    One record more or less moves q below - p n by p or q - p, one replaced moves it by q, and a
    minimum with a constant moves by no more: ranks that far off are equally bad.

        p n = q whole + part;   where |below - whole| >= 2^32, |q (below - whole) - part| is at
        least q (2^32 - 1), so that the gap can be cut there before it is multiplied

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from tacit.erm.exponential_mechanism import rank_utility
    >>> rank_utility(np.arange(4), 3, Fraction(1, 10))
    array([ -3.,  -7., -17., -27.])
    """
    p, q = level.numerator, level.denominator
    whole, part = divmod(p * n, q)
    gap = np.clip(below - whole, -_FARTHEST_RANK, _FARTHEST_RANK)
    utility: Array = -np.minimum(np.abs(q * gap - part), q * (_FARTHEST_RANK - 1)).astype(float)
    return utility


@dataclass(frozen=True)
class CandidateSettings(Settings):
    """How far one record moves a utility."""

    sensitivity: float


@dataclass(frozen=True)
class PublicCandidates(Mechanism):
    """The exponential mechanism over weights chosen without the data.

    Scores each candidate by minus its empirical risk, relative to the first candidate; the
    utility of a record is bounded by L times the candidates' distance from it.

    Parameters
    ----------
    candidates
        One row per candidate: a grid, a random net, models fitted on public data.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm import PublicCandidates
    >>> len(PublicCandidates(np.zeros((3, 2))).candidates)
    3
    """

    candidates: Array

    name = "public_candidates"
    title = "Public candidates"
    is_named = False

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Bound the utilities."""
        objective = problem.objective
        if self.candidates.ndim != 2 or self.candidates.shape[1] != problem.dimension:
            raise CannotSolve(
                f"candidates must have {problem.dimension} columns, got shape "
                f"{self.candidates.shape}."
            )
        if not math.isfinite(objective.lipschitz):
            raise CannotSolve("the loss has no bounded slope, so utilities have no sensitivity.")
        reach = float(np.linalg.norm(self.candidates - self.candidates[0], axis=1).max())
        delta = moved(budget.relation) * objective.lipschitz * max(reach, 1e-300)
        wide = 2 * delta / budget.epsilon * math.log(len(self.candidates))
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=ExponentialMechanism(budget.epsilon, budget.relation),
            excess_risk=wide / problem.n_records,
            reason="pure epsilon; no better than the best candidate",
            settings=CandidateSettings(delta).shown(),
        )

    def draw(self, plan: Plan, records: RecordSource, source: Source | None) -> Release[Array]:
        """Score the candidates in one pass, draw one."""
        objective, shape = plan.problem.objective, plan.problem.shape
        ridge = objective.regularization or 0.0
        weights = [w.reshape(shape) for w in self.candidates]
        # A record's excess loss is at most L times the distance: held to it against float error.
        limits = objective.lipschitz * np.linalg.norm(self.candidates - self.candidates[0], axis=1)

        def excesses(block: Block) -> tuple[Array]:
            base = objective.loss.values(block, weights[0])
            parts = zip(weights, limits, strict=True)
            return (
                np.array(
                    [np.clip(objective.loss.values(block, w) - base, -r, r).sum() for w, r in parts]
                ),
            )

        (excess,) = records.sum(excesses, fine=needs_fine_sums(records, _FLOAT_SLACK))
        penalty = ridge / 2 * np.sum(self.candidates**2, axis=1)
        # The penalty is public, but adding it rounds: by 2^-53 of the sum on either neighbour.
        utility = CandidateSettings.of(plan).sensitivity
        reach = utility * (1 + _FLOAT_SLACK) + 2.0**-51 * penalty.max()
        bounded = Bounded(-(excess + penalty), float(reach), Norm.LINF, plan.budget.relation)
        release = select(bounded, plan.budget.epsilon, source=source)
        return Release(self.candidates[int(release.value)].reshape(shape), release.event)
