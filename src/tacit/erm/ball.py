"""The exponential mechanism for weights in a ball of few dimensions, sampled exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.laws import Solved
from tacit.erm.plan import CannotSolve, Mechanism, Plan, Problem, Settings
from tacit.erm.sets import L2Ball
from tacit.noise.cells import MOST_DIMENSIONS
from tacit.privacy import Budget
from tacit.queries import RiskInBall, Selection, Session

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class BallSettings(Settings):
    """How far one record moves a utility, and the radius of the ball."""

    sensitivity: float
    radius: float


@dataclass(frozen=True)
class ExponentialInABall(Mechanism):
    """Weights in a ball, drawn with a density that falls with their risk (`ExpMech-ERM`).

        density of w proportional to exp(-epsilon F(w) / (2 Delta)),   ||w|| <= R
        Delta = L R under ADD_REMOVE, 2 L R under REPLACE

    F is the sum of the losses and the ridge, L the greatest norm of a record's gradient. Losses are
    taken relative to w = 0, so that a record counts for at most L ||w||. Purely private; drawn
    exactly, on a lattice in the ball, for up to four weights.

    Parameters
    ----------
    per_radius
        The least number of lattice points from the centre to the sphere.

    Notes
    -----
    **Guarantee**: epsilon-DP, and of bounded range. Proof in docs/proofs/selection_in_a_ball.md.

    **Assumes** that the loss is convex and Lipschitz as it declares, and is computed to 2^-40 of
    its size. How long it takes depends on the records.

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
    is_named = False

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Check dimension, ball and slope, and bound the utility."""
        objective, d = problem.objective, problem.dimension
        if d > MOST_DIMENSIONS:
            raise CannotSolve(
                f"the exponential mechanism in a ball is sampled exactly for up to "
                f"{MOST_DIMENSIONS} weights, and there are {d}; use "
                'mechanism="noisy_gradient", which is made for many and takes the same ball.'
            )
        if not isinstance(objective.feasible, L2Ball):
            raise CannotSolve(
                "the exponential mechanism in a ball needs one; pass constraint=L2Ball(5.0), say."
            )
        if not math.isfinite(objective.lipschitz):
            raise CannotSolve(
                f"{type(objective.loss).__name__} has no bounded slope, so utilities have no "
                "sensitivity; use a loss that has one, such as Huber's."
            )
        radius, facts = objective.feasible.bound, problem.facts(budget.relation)
        asked = self._selection(problem, budget, radius)
        delta = asked.utility.moved(facts)
        # The density exp(-k F) exceeds the least F by d / k on average, where F is convex.
        wide = 2 * delta / budget.epsilon * d
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=asked.event(facts),
            excess_risk=wide / problem.n_predicted,
            reason="pure epsilon; exact sampling in few dimensions; no smoothness needed",
            settings=BallSettings(delta, radius).shown(),
        )

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Draw weights by their risk."""
        asked = self._selection(plan.problem, plan.budget, BallSettings.of(plan).radius)
        return Solved(session.ask(asked, "weights").reshape(plan.problem.shape))

    def _selection(self, problem: Problem, budget: Budget, radius: float) -> Selection[RiskInBall]:
        objective, penalty = problem.objective, problem.objective.regularization or 0.0
        risk = RiskInBall(objective.loss, radius, penalty, self.per_radius)
        return Selection(risk, budget.epsilon)
