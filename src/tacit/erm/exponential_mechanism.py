"""The exponential mechanism: exact on a line, and over public candidates in any dimension.

`tacit.queries.selection` has the utilities, their sensitivities and the draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.laws import Solved
from tacit.erm.plan import CannotSolve, Mechanism, Plan, Problem, Settings
from tacit.privacy import Budget
from tacit.queries import CandidateRisks, Quantile, Selection, Session

Array = npt.NDArray[np.float64]


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
    and max(level, 1 - level) under ADD_REMOVE (`tacit.queries.Quantile`).

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
        asked, facts = self._selection(level, budget), problem.facts(budget.relation)
        delta = asked.utility.ranks_moved(facts)
        ranks = 2 * delta / budget.epsilon * math.log(self.n_points)
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=asked.event(facts),
            excess_risk=ranks / problem.n_records,
            reason="exact sampling; pure epsilon; the error is in ranks, not in units",
            settings=LineSettings(ranks, level, delta).shown(),
        )

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Sort, score, draw."""
        asked = self._selection(LineSettings.of(plan).level, plan.budget)
        return Solved(np.array([session.ask(asked, "weights")]))

    def _selection(self, level: float, budget: Budget) -> Selection[Quantile]:
        quantile = Quantile(level, self.lower, self.upper, n_points=self.n_points)
        return Selection(quantile, budget.epsilon)


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
        asked, facts = self._selection(problem, budget), problem.facts(budget.relation)
        delta = asked.utility.moved(facts)
        wide = 2 * delta / budget.epsilon * math.log(len(self.candidates))
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=asked.event(facts),
            excess_risk=wide / problem.n_records,
            reason="pure epsilon; no better than the best candidate",
            settings=CandidateSettings(delta).shown(),
        )

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Score the candidates in one pass, draw one."""
        chosen = session.ask(self._selection(plan.problem, plan.budget), "weights")
        return Solved(self.candidates[chosen].reshape(plan.problem.shape))

    def _selection(self, problem: Problem, budget: Budget) -> Selection[CandidateRisks]:
        objective = problem.objective
        risks = CandidateRisks(objective.loss, self.candidates, objective.regularization or 0.0)
        return Selection(risks, budget.epsilon)
