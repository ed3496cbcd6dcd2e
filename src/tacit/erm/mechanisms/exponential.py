"""The exponential mechanism: on a line, over public candidates, and for weights in a ball.

`tacit.queries.selection` has the utilities, their sensitivities and the draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array
from tacit.erm.constraints import L2Ball
from tacit.erm.plan import CannotSolve, Mechanism, Plan, Problem, Settings, Solved
from tacit.noise.selection.ball import MOST_DIMENSIONS
from tacit.privacy import Budget
from tacit.queries import Quantile, Selection, Session
from tacit.queries.selection import CandidateRisks, RiskInBall


@dataclass(frozen=True)
class LineSettings(Settings):
    """Quantile level, sensitivity of the rank utility, and expected rank error."""

    rank_error: float
    level: float
    sensitivity: float


@dataclass(frozen=True)
class QuantileOnALine(Mechanism):
    """Draw the quantile of one column exactly, with pure epsilon.

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
    key = "quantile_on_a_line"
    proof = "selection_on_a_line.md"
    suits = (
        (
            "median, quantile of a column (`tacit.location.Median`)",
            "pure, sampled exactly; the error is in ranks",
        ),
    )
    is_named = False

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Check that the problem is a quantile of one column."""
        level = problem.objective.loss.level
        if level is None or problem.dimension != 1:
            raise CannotSolve(
                "the exact sampler on a line is for quantiles of one column; use "
                "PublicCandidates for other losses in few dimensions."
            )
        query, facts = self._selection(level, budget), problem.facts(budget.relation)
        delta = query.utility.rank_sensitivity(facts)
        ranks = 2 * delta / budget.epsilon * math.log(self.n_points)
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=query.event(facts),
            excess_risk=ranks / problem.n_records,
            reason="exact sampling; pure epsilon; the error is in ranks, not in the column's unit",
            settings=LineSettings(ranks, level, delta).shown(),
        )

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Sort the column, score the grid points and draw one."""
        query = self._selection(LineSettings.of(plan).level, plan.budget)
        return Solved(np.array([session.ask(query, "weights")]))

    def _selection(self, level: float, budget: Budget) -> Selection[Quantile]:
        quantile = Quantile(level, self.lower, self.upper, n_points=self.n_points)
        return Selection(quantile, budget.epsilon)


@dataclass(frozen=True)
class CandidateSettings(Settings):
    """The sensitivity of the utilities."""

    sensitivity: float


@dataclass(frozen=True)
class PublicCandidates(Mechanism):
    """Apply the exponential mechanism to weights that were chosen without the data.

    Scores each candidate by minus its empirical risk, relative to the first candidate. One record
    moves this utility by at most L times the largest distance of a candidate from the first.

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
    page = "exponential_mechanism.md"
    proof = "selection_in_a_ball.md"
    suits = (("a choice among public models", "pure; no better than the best of them"),)
    is_named = False

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Bound the sensitivity of the utilities."""
        objective = problem.objective
        if self.candidates.ndim != 2 or self.candidates.shape[1] != problem.dimension:
            raise CannotSolve(
                f"candidates must have {problem.dimension} columns, got shape "
                f"{self.candidates.shape}."
            )
        if not math.isfinite(objective.lipschitz):
            raise CannotSolve("the loss has no bounded gradient: utilities have no sensitivity.")
        query, facts = self._selection(problem, budget), problem.facts(budget.relation)
        delta = query.utility.utility_sensitivity(facts)
        wide = 2 * delta / budget.epsilon * math.log(len(self.candidates))
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=query.event(facts),
            excess_risk=wide / problem.n_records,
            reason="pure epsilon; no better than the best candidate",
            settings=CandidateSettings(delta).shown(),
        )

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Score the candidates in one pass and draw one."""
        chosen = session.ask(self._selection(plan.problem, plan.budget), "weights")
        return Solved(self.candidates[chosen].reshape(plan.problem.shape))

    def _selection(self, problem: Problem, budget: Budget) -> Selection[CandidateRisks]:
        objective = problem.objective
        risks = CandidateRisks(objective.loss, self.candidates, objective.regularization or 0.0)
        return Selection(risks, budget.epsilon)


@dataclass(frozen=True)
class BallSettings(Settings):
    """The sensitivity of the utility, and the radius of the ball."""

    sensitivity: float
    radius: float


@dataclass(frozen=True)
class ExponentialInABall(Mechanism):
    """Draw weights in a ball with a density that falls with their risk (`ExpMech-ERM`).

        density of w proportional to exp(-epsilon F(w) / (2 Delta)),   ||w|| <= R
        Delta = L R under ADD_REMOVE, 2 L R under REPLACE

    F is the sum of the losses and the ridge, L the greatest norm of a record's gradient. Losses are
    relative to w = 0, so that one record contributes at most L ||w||. The draw is purely private
    and exact, on a lattice in the ball, for up to four weights.

    Parameters
    ----------
    per_radius
        The least number of lattice points from the centre to the sphere.

    Notes
    -----
    **Guarantee**: epsilon-DP, and of bounded range. Proof in docs/proofs/selection_in_a_ball.md.

    **Assumes** that the loss is convex, has its declared Lipschitz constant, and is computed to
    2^-40 of its size. The running time depends on the records.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm import ExponentialInABall, L2Ball
    >>> from tacit.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, (1000, 2))
    >>> model = LogisticRegression(
    ...     2.0, 0.0, row_norm=1.0, fit_intercept=False, constraint=L2Ball(4.0),
    ...     mechanism=ExponentialInABall(),
    ... ).fit(X, X[:, 0] > 0)
    >>> bool(np.linalg.norm(model.coef_) <= 4.0)
    True
    """

    per_radius: int = 2**24

    name = "exponential_in_a_ball"
    title = "Exponential mechanism in a ball"
    page = "exponential_mechanism.md"
    proof = "selection_in_a_ball.md"
    suits = (
        (
            "at most four weights in a ball, pure budget",
            "drawn exactly; needs no second derivative and no solver",
        ),
    )
    is_named = False

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Check dimension, ball and Lipschitz constant, and bound the utility."""
        objective, d = problem.objective, problem.dimension
        if d > MOST_DIMENSIONS:
            raise CannotSolve(
                f"the exponential mechanism in a ball is sampled exactly for up to "
                f"{MOST_DIMENSIONS} weights, and there are {d}; use "
                'mechanism="noisy_gradient", which takes the same ball and many weights.'
            )
        if not isinstance(objective.feasible, L2Ball):
            raise CannotSolve(
                "the exponential mechanism in a ball needs one; pass constraint=L2Ball(5.0), say."
            )
        if not math.isfinite(objective.lipschitz):
            raise CannotSolve(
                f"the gradient of {type(objective.loss).__name__} is unbounded, so that utilities "
                "have no sensitivity; use a loss with a bounded gradient, such as HuberLoss."
            )
        radius, facts = objective.feasible.bound, problem.facts(budget.relation)
        query = self._selection(problem, budget, radius)
        delta = query.utility.utility_sensitivity(facts)
        # For convex F, a draw from exp(-k F) exceeds the minimum of F by at most d / k on average.
        wide = 2 * delta / budget.epsilon * d
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=query.event(facts),
            excess_risk=wide / problem.n_predicted,
            reason="pure epsilon; exact sampling in few dimensions; no smoothness needed",
            settings=BallSettings(delta, radius).shown(),
        )

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Draw weights from the density."""
        query = self._selection(plan.problem, plan.budget, BallSettings.of(plan).radius)
        return Solved(session.ask(query, "weights").reshape(plan.problem.shape))

    def _selection(self, problem: Problem, budget: Budget, radius: float) -> Selection[RiskInBall]:
        objective, penalty = problem.objective, problem.objective.regularization or 0.0
        risk = RiskInBall(objective.loss, radius, penalty, self.per_radius)
        return Selection(risk, budget.epsilon)
