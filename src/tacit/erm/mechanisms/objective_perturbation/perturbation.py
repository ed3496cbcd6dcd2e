"""The random tilt of an objective: which ridge, which noise, and what both cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tacit.erm.losses import AnyLoss
from tacit.erm.objective import Objective
from tacit.erm.planning.plan import NUMBER_SHARE, PURE_SHARE, Plan, Problem, Settings
from tacit.erm.preconditioning import SecondMoment
from tacit.privacy import Budget, Composed, Event, Relation
from tacit.privacy.accounting.gaussian_profile import gaussian_mu
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
class GaussianPerturbationSettings(Settings):
    """The ridge, and b with independent Gaussian entries."""

    regularization: float
    noise_std: float
    count_noise_multiplier: float = 0.0  # 0 where the number of records is not asked for
    slope_ridge: float = 0.0  # a further ridge, on every weight but the intercept's
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

    def with_noise(self, noise: float) -> GaussianPerturbationSettings:
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
class SpherePerturbationSettings(Settings):
    """The ridge, and b with a density proportional to exp(-||b|| / r)."""

    regularization: float
    noise_radius: float
    count_epsilon: float = 0.0  # 0 where the number of records is not asked for
    slope_ridge: float = 0.0  # a further ridge, on every weight but the intercept's
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

    def with_noise(self, noise: float) -> SpherePerturbationSettings:
        """Return the same with other noise."""
        return replace(self, noise_radius=noise)

    def suited(self, loss: AnyLoss, bounds: Bounds) -> AnyLoss:
        """Return the loss nearest to what is meant: only its greatest curvature costs."""
        return loss.without_smoothing(bounds)

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


PerturbationSettings = GaussianPerturbationSettings | SpherePerturbationSettings


def _gaussian(multiplier: float) -> GaussianNoise | None:
    return GaussianNoise(multiplier) if multiplier else None


def minimizer_event(
    perturbation: PerturbationSettings, objective: Objective, budget: Budget, facts: Facts
) -> Composed:
    """Return what the minimiser under a tilt costs, with the noise on the output."""
    ridge = least_ridge(
        perturbation.regularization, perturbation.slope_ridge, perturbation.row_scale
    )
    return perturbed_event(
        objective, perturbation.law(budget), ridge, perturbation.row_scale, facts
    )


def slots_of(
    perturbation: PerturbationSettings, problem: Problem, budget: Budget
) -> dict[str, Slot]:
    """Return what is asked under a tilt: the minimiser, and what it is adapted by.

    Where the proof covers it (Gaussian noise, one record more or less, no weights), minimiser and
    trace may be exchanged for steps of noisy gradient descent.
    """
    facts = problem.facts(budget.relation)
    slots = {
        "weights": Slot(
            minimizer_event(perturbation, problem.objective, budget, facts), CoveredBy()
        )
    }
    if perturbation.count_noise:
        slots["count"] = Slot(perturbation.count_noise.event(facts))
    if perturbation.trace_noise:
        slots["trace"] = Slot(perturbation.trace_noise.event(facts), AtMost())
    if perturbation.moment_noise:
        slots["second moment"] = Slot(perturbation.moment_noise.event(facts), AtMost())
    unweighted = problem.objective.bounds.max_weight is None
    if (
        isinstance(perturbation, GaussianPerturbationSettings)
        and budget.relation is Relation.ADD_REMOVE
        and unweighted
    ):
        names = ("weights", "trace") if perturbation.trace_noise else ("weights",)
        slots["steps"] = exchanged(slots, names)
    return slots


def query_events(perturbation: PerturbationSettings, facts: Facts) -> tuple[Event, ...]:
    """Return the events of what is asked beside the minimiser."""
    requested = (perturbation.count_noise, perturbation.trace_noise, perturbation.moment_noise)
    return tuple(noise.event(facts) for noise in requested if noise)


def event_of(
    perturbation: PerturbationSettings, objective: Objective, budget: Budget, facts: Facts
) -> Event:
    """Return the event of all releases of a tilt."""
    minimizer = minimizer_event(perturbation, objective, budget, facts)
    return Composed((*minimizer.events, *query_events(perturbation, facts)))


def perturbation_of(plan: Plan) -> PerturbationSettings:
    """Return the tilt that a plan's settings are of."""
    return (
        SpherePerturbationSettings.of(plan)
        if "noise_radius" in plan.settings
        else GaussianPerturbationSettings.of(plan)
    )


def perturbations_for(problem: Problem, budget: Budget) -> tuple[type[PerturbationSettings], ...]:
    """Return the laws of b that a budget calls for, the usual one first.

    Gaussian noise has a standard deviation of L / mu, sphere noise one of sqrt(d + 1) L / epsilon.
    But whoever composes pays for a pure release what is promised of it, and for a Gaussian one far
    less: sphere noise stands where epsilon is at most what Gaussian noise of the same budget costs
    at a Renyi order of 4. With delta = 1e-6 that is from epsilon 18 on.
    """
    if budget.is_pure:
        return (SpherePerturbationSettings,)
    mu = gaussian_mu(budget.epsilon, budget.delta)
    if problem.even_ridge or budget.epsilon > _COMPOSED_ORDER * mu**2 / 2:
        return (GaussianPerturbationSettings,)
    return GaussianPerturbationSettings, SpherePerturbationSettings


def ridge_per_noise(objective: Objective, units: float) -> float:
    """Return R / (units of the score): a ridge above this times the noise bounds what noise does.

    Along a direction that no record has, weights are noise over ridge, and scores then a few units.
    """
    return objective.row_norm / (units * objective.score_unit)
