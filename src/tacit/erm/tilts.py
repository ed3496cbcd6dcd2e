"""The random tilt of an objective: which ridge, which noise, and what both cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tacit.erm.counting import (
    COUNT_MULTIPLE,
    PURE_SHARE,
    GaussianQuestion,
    LaplaceQuestion,
    Question,
)
from tacit.erm.losses import AnyLoss
from tacit.erm.losses.base import Sizes
from tacit.erm.objective import Objective
from tacit.erm.plan import Plan, Problem, Settings
from tacit.erm.preconditioner import SecondMoment
from tacit.noise.minimizer import GaussianPerturbation, SpherePerturbation
from tacit.privacy import (
    Budget,
    Composed,
    Event,
    Gaussian,
    PureEpsilon,
    PureObjective,
    Relation,
)
from tacit.privacy.calibration import least_noise
from tacit.privacy.gaussian_profile import gaussian_mu
from tacit.records import Bounds

# The output release's share: its mu is 1/50 of the whole (2e-4 of the cost), or 1/100 of epsilon.
_OUTPUT_MULTIPLE = 50.0
_OUTPUT_SHARE = 0.01
# Noise on the output, in units of (noise on the objective) / lam: far below what the
# perturbation itself does to w unless curvature exceeds 1e4 lam, where both are negligible.
_OUTPUT_NOISE = 1e-4
_COMPOSED_ORDER = 4.0
# Along a direction that no record has noise moves scores by two units at most where slopes run
# further, and by four under sphere noise, whose epsilon is so large that a ridge of half, which
# costs a quarter of the error in all other directions, counts for more.
_GAUSSIAN_UNITS, _SPHERE_UNITS = 2.0, 4.0
# What is asked for where rows may be far from even: a twentieth of mu^2.
MOMENT = SecondMoment(share=0.05)

# Certified is a little less than noise on the output covers: more than roundings of a few products.
_CERTIFIED = 1 - 2.0**-45

Covered = tuple[GaussianPerturbation | SpherePerturbation, float]


@dataclass(frozen=True)
class GaussianTilt(Settings):
    """The ridge, and b with independent Gaussian entries."""

    regularization: float
    noise_std: float
    count_noise_multiplier: float = 0.0  # 0 where the number of records is not asked for
    steadying: float = 0.0  # a further ridge, on every weight but the intercept's
    row_scale: float = 1.0  # how long rows count beside the intercept's coordinate
    trace_noise_multiplier: float = 0.0  # 0 where weights are not shrunk
    moment_noise_multiplier: float = 0.0  # 0 where the rows' second moment is not asked for

    def main(self, objective: Objective, budget: Budget) -> Event:
        """Return the event that the loss declares for b."""
        size = objective.bounds.length(self.row_scale)
        scaled = Sizes(
            objective.row_norm * size, objective.lipschitz * size, objective.smoothness * size**2
        )
        event = objective.loss.perturbed_event(
            scaled, least_ridge(self), self.noise_std, budget.relation
        )
        assert event is not None, "refused by _check_applies"
        return event

    def output(self, budget: Budget) -> Gaussian:
        """Return a Gaussian with a fiftieth of the mu."""
        multiplier = _OUTPUT_MULTIPLE / gaussian_mu(budget.epsilon, budget.delta)
        return Gaussian(multiplier, budget.relation)

    def gaussian_part(self, objective: Objective, budget: Budget) -> Gaussian:
        """Return a Gaussian release that costs no more than b, the output's noise and the trace.

        The loss that the event of b is the law of is nowhere below that of a Gaussian mechanism of
        multiplier s / L (docs/proofs/objective_perturbation.md, section 15).
        """
        lipschitz = objective.lipschitz * objective.bounds.length(self.row_scale)  # as in `main`
        parts = [lipschitz / self.noise_std, 1 / self.output(budget).noise_multiplier]
        if self.trace_noise_multiplier:
            parts.append(1 / self.trace_noise_multiplier)
        mu = math.sqrt(math.fsum(part**2 for part in parts)) * (1 - 2.0**-40)
        return Gaussian(1 / mu, budget.relation)

    def squared_norm(self, dimension: int) -> float:
        """Return d s^2."""
        return self.noise_std**2 * dimension

    def std(self, dimension: int) -> float:
        """Return s."""
        return self.noise_std

    def in_words(self, number: Callable[[float], str]) -> str:
        """Return its standard deviation."""
        return f"Gaussian noise of standard deviation {number(self.noise_std)}"

    @property
    def noise(self) -> float:
        """S."""
        return self.noise_std

    @property
    def units(self) -> float:
        """How far scores may move where there are no records, in their own units."""
        return _GAUSSIAN_UNITS

    def with_noise(self, noise: float) -> GaussianTilt:
        """Return the same with other noise."""
        return replace(self, noise_std=noise)

    def suited(self, loss: AnyLoss, bounds: Bounds) -> AnyLoss:
        """Return the loss as it is: its event says how it may bend."""
        return loss

    def count_question(self, relation: Relation) -> Question | None:
        """Return how the number of records is asked for, if it is."""
        multiplier = self.count_noise_multiplier
        return GaussianQuestion(multiplier, relation) if multiplier else None

    def trace_question(self, relation: Relation) -> Question | None:
        """Return how the trace of the Hessian is asked for, if it is."""
        multiplier = self.trace_noise_multiplier
        return GaussianQuestion(multiplier, relation) if multiplier else None

    def moment(self, relation: Relation) -> Event | None:
        """Return what the rows' second moment costs, if it is asked for."""
        multiplier = self.moment_noise_multiplier
        return Gaussian(multiplier, relation) if multiplier else None

    @classmethod
    def asking(
        cls, budget: Budget, *, count: bool, trace: bool, moment: bool = False
    ) -> dict[str, float]:
        """Return the settings of what is asked for: each a hundredth of mu^2, a moment more."""
        multiplier = COUNT_MULTIPLE / gaussian_mu(budget.epsilon, budget.delta)
        return {
            "count_noise_multiplier": multiplier if count else 0.0,
            "trace_noise_multiplier": multiplier if trace else 0.0,
            "moment_noise_multiplier": MOMENT.noise_multiplier(budget) if moment else 0.0,
        }

    @classmethod
    def least(cls, family: Callable[[float], Event], budget: Budget, guess: float) -> float:
        """Return the least noise within the budget."""
        return least_noise(family, budget, guess=guess)

    def perturbation(self, shape: tuple[int, ...], budget: Budget) -> Covered:
        """Return Gaussian noise on the objective and the output."""
        per_tau = 2 / self.regularization * self.output(budget).noise_multiplier
        return _covered(GaussianPerturbation, self, self.noise_std, per_tau, shape)


@dataclass(frozen=True)
class SphereTilt(Settings):
    """The ridge, and b with a density proportional to exp(-||b|| / r)."""

    regularization: float
    noise_radius: float
    count_epsilon: float = 0.0  # 0 where the number of records is not asked for
    steadying: float = 0.0  # a further ridge, on every weight but the intercept's
    row_scale: float = 1.0  # how long rows count beside the intercept's coordinate
    trace_epsilon: float = 0.0  # 0 where weights are not shrunk

    def main(self, objective: Objective, budget: Budget) -> Event:
        """Return the pure event."""
        size = objective.bounds.length(self.row_scale)
        return PureObjective(
            objective.lipschitz * size,
            objective.hessian_trace * size**2,
            least_ridge(self),
            self.noise_radius,
            objective.loss.hessian_rank,
            budget.relation,
        )

    def output(self, budget: Budget) -> PureEpsilon:
        """Return a hundredth of epsilon."""
        return PureEpsilon(_OUTPUT_SHARE * budget.epsilon, budget.relation)

    def squared_norm(self, dimension: int) -> float:
        """Return d (d + 1) r^2."""
        return self.noise_radius**2 * dimension * (dimension + 1)

    def std(self, dimension: int) -> float:
        """Return sqrt(d + 1) r."""
        return self.noise_radius * math.sqrt(dimension + 1)

    def in_words(self, number: Callable[[float], str]) -> str:
        """Return its mean length."""
        return f"Noise of mean length {number(self.noise_radius)} a dimension"

    @property
    def noise(self) -> float:
        """R."""
        return self.noise_radius

    @property
    def units(self) -> float:
        """How far scores may move where there are no records, in their own units."""
        return _SPHERE_UNITS

    def with_noise(self, noise: float) -> SphereTilt:
        """Return the same with other noise."""
        return replace(self, noise_radius=noise)

    def suited(self, loss: AnyLoss, bounds: Bounds) -> AnyLoss:
        """Return the loss nearest to what is meant: only its greatest curvature costs."""
        return loss.sharpened(bounds)

    def count_question(self, relation: Relation) -> Question | None:
        """Return how the number of records is asked for, if it is."""
        return LaplaceQuestion(self.count_epsilon, relation) if self.count_epsilon else None

    def trace_question(self, relation: Relation) -> Question | None:
        """Return how the trace of the Hessian is asked for, if it is."""
        return LaplaceQuestion(self.trace_epsilon, relation) if self.trace_epsilon else None

    def moment(self, relation: Relation) -> Event | None:
        """Return that none is asked for."""
        return None

    @classmethod
    def asking(
        cls, budget: Budget, *, count: bool, trace: bool, moment: bool = False
    ) -> dict[str, float]:
        """Return the settings of what is asked for: each a fiftieth of epsilon, no moment."""
        del moment  # is for Gaussian noise
        epsilon = PURE_SHARE * budget.epsilon
        return {
            "count_epsilon": epsilon if count else 0.0,
            "trace_epsilon": epsilon if trace else 0.0,
        }

    @classmethod
    def least(cls, family: Callable[[float], Event], budget: Budget, guess: float) -> float:
        """Return the least noise within epsilon; a delta is left alone."""
        return least_noise(family, replace(budget, delta=0.0), guess=guess)

    def perturbation(self, shape: tuple[int, ...], budget: Budget) -> Covered:
        """Return sphere noise on the objective and the output."""
        per_tau = 2 / self.regularization / self.output(budget).epsilon
        return _covered(SpherePerturbation, self, self.noise_radius, per_tau, shape)


Tilt = GaussianTilt | SphereTilt


def least_ridge(tilt: Tilt) -> float:
    """Return the least ridge of any weight, where rows are as long as they count.

    Weights v of rows are a times the weights w of rows that count a times as long, so that a ridge
    of lam + steadying on v is one of a^2 (lam + steadying) on w. Only where that is at least lam,
    the ridge on the intercept's weight, is the objective lam-strongly convex in w
    (docs/proofs/objective_perturbation.md, section 13).
    """
    return min(tilt.regularization, (tilt.regularization + tilt.steadying) * tilt.row_scale**2)


def _covered(
    law: type[GaussianPerturbation] | type[SpherePerturbation],
    tilt: Tilt,
    noise: float,
    per_tau: float,
    shape: tuple[int, ...],
) -> Covered:
    """Return the noise, and the gradient norm tau to certify, for output noise of tau per_tau.

    A gradient norm of tau puts a point within tau / lam of the exact minimiser (strong convexity),
    so two such points differ by at most 2 tau / lam: the sensitivity of the output release. The
    float error of b counts as part of tau.
    """
    error = law(noise, 1.0, shape).error
    tau = max(_OUTPUT_NOISE * noise / tilt.regularization / per_tau, 2 * error)
    return law(noise, tau * per_tau, shape), (tau - error) * _CERTIFIED


def event_of(tilt: Tilt, objective: Objective, budget: Budget) -> Event:
    """Return the event of all releases of a tilt."""
    main, output = tilt.main(objective, budget), tilt.output(budget)
    asked = tilt.count_question(budget.relation), tilt.trace_question(budget.relation)
    moment = tilt.moment(budget.relation)
    events = [question.event for question in asked if question]
    return Composed((main, output, *events, *([moment] if moment else [])))


def tilt_in(plan: Plan) -> Tilt:
    """Return the tilt that a plan's settings are of."""
    return SphereTilt.of(plan) if "noise_radius" in plan.settings else GaussianTilt.of(plan)


def tilts_for(problem: Problem, budget: Budget) -> tuple[type[Tilt], ...]:
    """Return the laws of b that a budget calls for, the usual one first.

    Gaussian noise has a standard deviation of L / mu, sphere noise one of sqrt(d + 1) L / epsilon.
    But whoever composes pays for a pure release what is promised of it, and for a Gaussian one far
    less: sphere noise stands where epsilon is at most what Gaussian noise of the same budget costs
    at a Renyi order of 4. With delta = 1e-6 that is from epsilon 18 on.
    """
    if budget.is_pure:
        return (SphereTilt,)
    mu = gaussian_mu(budget.epsilon, budget.delta)
    if problem.even_ridge or budget.epsilon > _COMPOSED_ORDER * mu**2 / 2:
        return (GaussianTilt,)
    return GaussianTilt, SphereTilt


def steep(objective: Objective, units: float) -> float:
    """Return R / (units of the score): a ridge above this times the noise bounds what noise does.

    Along a direction that no record has, weights are noise over ridge, and scores then a few units.
    """
    return objective.row_norm / (units * objective.score_unit)
