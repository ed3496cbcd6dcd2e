"""The random tilt of an objective: which ridge, which noise, and what both cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tacit.erm.counting import NUMBER_SHARE, PURE_SHARE
from tacit.erm.losses import AnyLoss
from tacit.erm.objective import Objective
from tacit.erm.plan import Plan, Problem, Settings
from tacit.erm.preconditioner import SecondMoment
from tacit.privacy import Budget, Composed, Event, Relation
from tacit.privacy.gaussian_profile import gaussian_mu
from tacit.queries import (
    AtMost,
    CoveredBy,
    Facts,
    GaussianNoise,
    GaussianObjectiveNoise,
    LaplaceNoise,
    Slot,
    SphereObjectiveNoise,
    exchanged,
)
from tacit.queries.minimizer import least_ridge, perturbed_event
from tacit.queries.split_budget import split_epsilon, split_gaussian
from tacit.records import Bounds

# The output release's share, of mu^2 and of a pure epsilon.
_GAUSSIAN_OUTPUT, _PURE_OUTPUT = 1 / 2500, 0.01
_COMPOSED_ORDER = 4.0
# Along a direction that no record has noise moves scores by two units at most where slopes run
# further, and by four under sphere noise, whose epsilon is so large that a ridge of half, which
# costs a quarter of the error in all other directions, counts for more.
_GAUSSIAN_UNITS, _SPHERE_UNITS = 2.0, 4.0
# What is asked for where rows may be far from even: a twentieth of mu^2.
MOMENT = SecondMoment(share=0.05)


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

    def law(self, budget: Budget) -> GaussianObjectiveNoise:
        """Return the laws of b and of the output's noise, which has a fiftieth of the mu."""
        output = split_gaussian(budget, {"output": _GAUSSIAN_OUTPUT})["output"]
        return GaussianObjectiveNoise(self.noise_std, output.multiplier)

    def main_event(self, objective: Objective, facts: Facts) -> Event:
        """Return the event of b alone, rows as long as they are."""
        law = GaussianObjectiveNoise(self.noise_std, 1.0)
        return law.main(objective, self.regularization, objective.bounds.length(1.0), facts)

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

    @property
    def count_noise(self) -> GaussianNoise | None:
        """The noise on the number of records, if it is asked for."""
        return _gaussian(self.count_noise_multiplier)

    @property
    def trace_noise(self) -> GaussianNoise | None:
        """The noise on the trace of the Hessian, if it is asked for."""
        return _gaussian(self.trace_noise_multiplier)

    @property
    def moment_noise(self) -> GaussianNoise | None:
        """The noise on the rows' second moment, if it is asked for."""
        return _gaussian(self.moment_noise_multiplier)

    @classmethod
    def asking(
        cls, budget: Budget, *, count: bool, trace: bool, moment: bool = False
    ) -> dict[str, float]:
        """Return the settings of what is asked for: each a hundredth of mu^2, a moment more."""
        shares = {
            "count": count * NUMBER_SHARE,
            "trace": trace * NUMBER_SHARE,
            "moment": moment * MOMENT.share,
        }
        parts = split_gaussian(budget, shares)
        return {f"{name}_noise_multiplier": noise.multiplier for name, noise in parts.items()}


@dataclass(frozen=True)
class SphereTilt(Settings):
    """The ridge, and b with a density proportional to exp(-||b|| / r)."""

    regularization: float
    noise_radius: float
    count_epsilon: float = 0.0  # 0 where the number of records is not asked for
    steadying: float = 0.0  # a further ridge, on every weight but the intercept's
    row_scale: float = 1.0  # how long rows count beside the intercept's coordinate
    trace_epsilon: float = 0.0  # 0 where weights are not shrunk

    def law(self, budget: Budget) -> SphereObjectiveNoise:
        """Return the laws of b and of the output's noise, which has a hundredth of epsilon."""
        output = split_epsilon(budget.epsilon, {"output": _PURE_OUTPUT})["output"]
        return SphereObjectiveNoise(self.noise_radius, output)

    def main_event(self, objective: Objective, facts: Facts) -> Event:
        """Return the event of b alone, rows as long as they are."""
        law = SphereObjectiveNoise(self.noise_radius, 1.0)
        return law.main(objective, self.regularization, objective.bounds.length(1.0), facts)

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

    @property
    def count_noise(self) -> LaplaceNoise | None:
        """The noise on the number of records, if it is asked for."""
        return LaplaceNoise(self.count_epsilon) if self.count_epsilon else None

    @property
    def trace_noise(self) -> LaplaceNoise | None:
        """The noise on the trace of the Hessian, if it is asked for."""
        return LaplaceNoise(self.trace_epsilon) if self.trace_epsilon else None

    @property
    def moment_noise(self) -> None:
        """None: the rows' second moment is asked for with Gaussian noise alone."""
        return None

    @classmethod
    def asking(
        cls, budget: Budget, *, count: bool, trace: bool, moment: bool = False
    ) -> dict[str, float]:
        """Return the settings of what is asked for: each a fiftieth of epsilon, no moment."""
        del moment  # is for Gaussian noise
        shares = {"count": count * PURE_SHARE, "trace": trace * PURE_SHARE}
        parts = split_epsilon(budget.epsilon, shares)
        return {f"{name}_epsilon": epsilon for name, epsilon in parts.items()}


Tilt = GaussianTilt | SphereTilt


def _gaussian(multiplier: float) -> GaussianNoise | None:
    return GaussianNoise(multiplier) if multiplier else None


def minimizer_event(tilt: Tilt, objective: Objective, budget: Budget, facts: Facts) -> Composed:
    """Return what the minimiser under a tilt costs, with the noise on the output."""
    ridge = least_ridge(tilt.regularization, tilt.steadying, tilt.row_scale)
    return perturbed_event(objective, tilt.law(budget), ridge, tilt.row_scale, facts)


def slots_of(tilt: Tilt, problem: Problem, budget: Budget) -> dict[str, Slot]:
    """Return what is asked under a tilt: the minimiser, and what it is adapted by.

    Where the proof covers it (Gaussian noise, one record more or less, no weights), minimiser and
    trace may be exchanged for steps of noisy gradient descent.
    """
    facts = problem.facts(budget.relation)
    slots = {"weights": Slot(minimizer_event(tilt, problem.objective, budget, facts), CoveredBy())}
    if tilt.count_noise:
        slots["count"] = Slot(tilt.count_noise.event(facts))
    if tilt.trace_noise:
        slots["trace"] = Slot(tilt.trace_noise.event(facts), AtMost())
    if tilt.moment_noise:
        slots["second moment"] = Slot(tilt.moment_noise.event(facts), AtMost())
    unweighted = problem.objective.bounds.max_weight is None
    if isinstance(tilt, GaussianTilt) and budget.relation is Relation.ADD_REMOVE and unweighted:
        names = ("weights", "trace") if tilt.trace_noise else ("weights",)
        slots["steps"] = exchanged(slots, names)
    return slots


def asked_events(tilt: Tilt, facts: Facts) -> tuple[Event, ...]:
    """Return the events of what is asked beside the minimiser."""
    asked = (tilt.count_noise, tilt.trace_noise, tilt.moment_noise)
    return tuple(noise.event(facts) for noise in asked if noise)


def event_of(tilt: Tilt, objective: Objective, budget: Budget, facts: Facts) -> Event:
    """Return the event of all releases of a tilt."""
    minimizer = minimizer_event(tilt, objective, budget, facts)
    return Composed((*minimizer.events, *asked_events(tilt, facts)))


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
