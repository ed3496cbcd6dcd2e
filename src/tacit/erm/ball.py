"""The exponential mechanism for weights in a ball of few dimensions, sampled exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.objective import Objective, moved
from tacit.erm.plan import CannotSolve, Mechanism, Plan, Problem, Settings
from tacit.erm.sets import L2Ball
from tacit.noise import BallLattice, Concave, Release, Source, select_in_ball
from tacit.noise.cells import MOST_DIMENSIONS
from tacit.privacy import Budget, ExponentialMechanism
from tacit.records import Block, RecordSource
from tacit.records.summing import needs_fine_sums

Array = npt.NDArray[np.float64]

# Charged to the sensitivity: half for the float error of a sum, half for that of its terms.
_FLOAT_SLACK = 1e-4
# A loss, relative to its size and to what a score of that length costs, errs by far less in floats.
_LOSS_ERROR = 2.0**-40


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
        radius = objective.feasible.bound
        delta = moved(budget.relation) * objective.lipschitz * radius
        # The density exp(-k F) exceeds the least F by d / k on average, where F is convex.
        wide = 2 * delta / budget.epsilon * d
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=ExponentialMechanism(budget.epsilon, budget.relation),
            excess_risk=wide / problem.n_predicted,
            reason="pure epsilon; exact sampling in few dimensions; no smoothness needed",
            settings=BallSettings(delta, radius).shown(),
        )

    def draw(self, plan: Plan, records: RecordSource, source: Source | None) -> Release[Array]:
        """Draw weights by their risk."""
        shape, settings = plan.problem.shape, BallSettings.of(plan)
        lattice = BallLattice(settings.radius, plan.problem.dimension, self.per_radius)
        risk = _Risk(plan.problem.objective, records, shape)
        utility = Concave(
            at=lambda w: -risk.at(w),
            tangents=risk.falling,
            error=risk.error(settings.radius),
            # The penalty is public, but adding it rounds: by 2^-53 of the sum on either neighbour.
            sensitivity=settings.sensitivity * (1 + _FLOAT_SLACK)
            + 2.0**-51 * risk.penalty(settings.radius),
            relation=plan.budget.relation,
        )
        release = select_in_ball(utility, lattice, plan.budget.epsilon, source=source)
        return Release(release.value.reshape(shape), release.event)


@dataclass(frozen=True)
class _Risk:
    """The sum of the losses relative to w = 0, and the ridge, over given records."""

    objective: Objective
    records: RecordSource
    shape: tuple[int, ...]

    def penalty(self, size: float) -> float:
        """Return (lam / 2) ||w||^2."""
        return (self.objective.regularization or 0.0) / 2 * size**2

    def at(self, point: Array) -> float:
        """Return F(w) - F(0): a record counts for at most L ||w||, to the last bit."""
        size = float(np.linalg.norm(point))
        loss, limit, w = self.objective.loss, self.objective.lipschitz * size, self._weights(point)

        def excess(block: Block) -> tuple[Array]:
            apart = loss.values(block, w) - loss.values(block, self._nowhere)
            return (np.clip(apart, -limit, limit).sum(),)

        fine = needs_fine_sums(self.records, _FLOAT_SLACK / 2)
        (total,) = self.records.sum(excess, fine=fine)
        return float(total) + self.penalty(size)

    def falling(self, points: Array) -> tuple[Array, Array]:
        """Return -F and its gradients at points, one a row, in one pass over the records."""
        objective, weights = self.objective, [self._weights(point) for point in points]

        def both(block: Block) -> tuple[Array, Array]:
            start = objective.loss.values(block, self._nowhere)
            values = [(objective.loss.values(block, w) - start).sum() for w in weights]
            return np.array(values), np.array([objective.gradient(block, w) for w in weights])

        values, gradients = self.records.sum(both)
        ridge, sizes = objective.regularization or 0.0, np.linalg.norm(points, axis=1)
        slopes = gradients.reshape(points.shape) + ridge * points
        return -(values + ridge / 2 * sizes**2), -slopes

    def _weights(self, point: Array) -> Array:
        return point.reshape(self.shape)

    @property
    def _nowhere(self) -> Array:
        return np.zeros(self.shape)

    def error(self, radius: float) -> float:
        """Return how far -F may lie above a tangent plane in floats, within 4 radii of 0.

        A sum of n terms of size t errs by t times the records' ``sum_error``, and a term by
        2^-40 of its parts: the loss at 0, and L times a distance of 8 radii at most.
        """
        loss = self.objective.loss
        (size,) = self.records.sum(lambda block: (np.abs(loss.values(block, self._nowhere)).sum(),))
        far = 8 * radius
        steep = self.objective.lipschitz * far
        sums = 3 * self.records.sum_error() * steep
        terms = 2 * _LOSS_ERROR * (float(size) + (self.records.count() + 1) * steep)
        return float(sums + terms + 2.0**-44 * self.penalty(far))
