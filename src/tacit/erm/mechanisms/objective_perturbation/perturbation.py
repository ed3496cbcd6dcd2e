"""Define the random perturbation of an objective: its ridge, its noise and their cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from tacit.erm.losses import AnyLoss
from tacit.erm.objective import Objective
from tacit.erm.plan import NUMBER_SHARE, PURE_SHARE, Plan, Problem, Settings
from tacit.erm.preconditioning import SecondMoment
from tacit.privacy import Budget, Composed, Event, Relation
from tacit.privacy.accounting.gaussian_profile import gaussian_mu
from tacit.queries import AtMost, CoveredBy, Facts, GaussianNoise, LaplaceNoise, Slot
from tacit.queries.minimizer import (
    GaussianObjectiveNoise,
    SphereObjectiveNoise,
    least_ridge,
    perturbed_event,
)
from tacit.queries.noise import split_epsilon, split_gaussian
from tacit.queries.session import exchanged
from tacit.records import Bounds

# Share of the output release: of mu^2 (Gaussian), of epsilon (pure).
_GAUSSIAN_OUTPUT, _PURE_OUTPUT = 1 / 2500, 0.01
_COMPOSED_ORDER = 4.0  # Renyi order at which sphere and Gaussian noise are compared
# Objective perturbation spends 5 % of mu^2 on the second moment, if rows may be anisotropic.
MOMENT = SecondMoment(share=0.05)


@dataclass(frozen=True)
class GaussianPerturbationSettings(Settings):
    """Settings of Gaussian objective perturbation: the ridge, and b with independent entries."""

    regularization: float
    noise_std: float
    count_noise_multiplier: float = 0.0  # 0: the number of records is not queried
    slope_ridge: float = 0.0  # an additional ridge on every weight except the intercept
    row_scale: float = 1.0  # factor on feature rows, relative to the intercept's coordinate
    trace_noise_multiplier: float = 0.0  # 0: weights are not shrunk
    moment_noise_multiplier: float = 0.0  # 0: the second moment of the rows is not queried
    # Limit on the move of a score in a direction without data, in score units.
    units: ClassVar[float] = 2.0

    def law(self, budget: Budget) -> GaussianObjectiveNoise:
        """Return the distributions of b and of the output noise, which has a fiftieth of the mu."""
        output = split_gaussian(budget, {"output": _GAUSSIAN_OUTPUT})["output"]
        return GaussianObjectiveNoise(self.noise_std, output.multiplier)

    def main_event(self, objective: Objective, facts: Facts) -> Event:
        """Return the event of b alone, for rows at scale 1."""
        law = GaussianObjectiveNoise(self.noise_std, 1.0)
        return law.main(objective, self.regularization, objective.bounds.length(1.0), facts)

    def squared_norm(self, dimension: int) -> float:
        """Return E||b||^2 = d s^2."""
        return self.noise_std**2 * dimension

    def std(self, dimension: int) -> float:
        """Return the standard deviation s of an entry of b."""
        return self.noise_std

    def in_words(self, number: Callable[[float], str]) -> str:
        """Describe the noise by its standard deviation."""
        return f"Gaussian noise of standard deviation {number(self.noise_std)}"

    @property
    def noise(self) -> float:
        """Noise scale: the standard deviation s."""
        return self.noise_std

    def with_noise(self, noise: float) -> GaussianPerturbationSettings:
        """Return a copy with another noise scale."""
        return replace(self, noise_std=noise)

    def suited(self, loss: AnyLoss, bounds: Bounds) -> AnyLoss:
        """Return the loss unchanged: the event accounts for its second derivative."""
        return loss

    @property
    def count_noise(self) -> GaussianNoise | None:
        """The noise on the number of records, or None if it is not queried."""
        return _gaussian(self.count_noise_multiplier)

    @property
    def trace_noise(self) -> GaussianNoise | None:
        """The noise on the trace of the Hessian, or None if it is not queried."""
        return _gaussian(self.trace_noise_multiplier)

    @property
    def moment_noise(self) -> GaussianNoise | None:
        """The noise on the second moment of the rows, or None if it is not queried."""
        return _gaussian(self.moment_noise_multiplier)

    @classmethod
    def asking(
        cls, budget: Budget, *, count: bool, trace: bool, moment: bool = False
    ) -> dict[str, float]:
        """Return the multipliers of the queries: 1 % of mu^2 each, 5 % for a second moment."""
        shares = {
            "count": count * NUMBER_SHARE,
            "trace": trace * NUMBER_SHARE,
            "moment": moment * MOMENT.share,
        }
        parts = split_gaussian(budget, shares)
        return {f"{name}_noise_multiplier": noise.multiplier for name, noise in parts.items()}


@dataclass(frozen=True)
class SpherePerturbationSettings(Settings):
    """Settings of sphere noise: the ridge, and b with a density proportional to exp(-||b|| / r)."""

    regularization: float
    noise_radius: float
    count_epsilon: float = 0.0  # 0: the number of records is not queried
    slope_ridge: float = 0.0  # an additional ridge on every weight except the intercept
    row_scale: float = 1.0  # factor on feature rows, relative to the intercept's coordinate
    trace_epsilon: float = 0.0  # 0: weights are not shrunk
    # Sphere noise is used at such large epsilon that halving the ridge is worth more than a small
    # move of scores in directions without data: it saves error in all other directions.
    units: ClassVar[float] = 4.0

    def law(self, budget: Budget) -> SphereObjectiveNoise:
        """Return the distributions of b and of the output noise, which has 1 % of epsilon."""
        output = split_epsilon(budget.epsilon, {"output": _PURE_OUTPUT})["output"]
        return SphereObjectiveNoise(self.noise_radius, output)

    def main_event(self, objective: Objective, facts: Facts) -> Event:
        """Return the event of b alone, for rows at scale 1."""
        law = SphereObjectiveNoise(self.noise_radius, 1.0)
        return law.main(objective, self.regularization, objective.bounds.length(1.0), facts)

    def squared_norm(self, dimension: int) -> float:
        """Return E||b||^2 = d (d + 1) r^2."""
        return self.noise_radius**2 * dimension * (dimension + 1)

    def std(self, dimension: int) -> float:
        """Return the standard deviation sqrt(d + 1) r of an entry of b."""
        return self.noise_radius * math.sqrt(dimension + 1)

    def in_words(self, number: Callable[[float], str]) -> str:
        """Describe the noise by its mean norm per dimension."""
        return f"Noise of mean length {number(self.noise_radius)} a dimension"

    @property
    def noise(self) -> float:
        """Noise scale: the radius r."""
        return self.noise_radius

    def with_noise(self, noise: float) -> SpherePerturbationSettings:
        """Return a copy with another noise scale."""
        return replace(self, noise_radius=noise)

    def suited(self, loss: AnyLoss, bounds: Bounds) -> AnyLoss:
        """Return the least smoothed loss: sphere noise pays for the maximal curvature only."""
        return loss.without_smoothing(bounds)

    @property
    def count_noise(self) -> LaplaceNoise | None:
        """The noise on the number of records, or None if it is not queried."""
        return LaplaceNoise(self.count_epsilon) if self.count_epsilon else None

    @property
    def trace_noise(self) -> LaplaceNoise | None:
        """The noise on the trace of the Hessian, or None if it is not queried."""
        return LaplaceNoise(self.trace_epsilon) if self.trace_epsilon else None

    @property
    def moment_noise(self) -> None:
        """Always None: sphere noise releases no second moment."""
        return None

    @classmethod
    def asking(
        cls, budget: Budget, *, count: bool, trace: bool, moment: bool = False
    ) -> dict[str, float]:
        """Return the epsilons of the queries: 2 % of epsilon each, and no second moment."""
        del moment  # only Gaussian noise supports a second moment
        shares = {"count": count * PURE_SHARE, "trace": trace * PURE_SHARE}
        parts = split_epsilon(budget.epsilon, shares)
        return {f"{name}_epsilon": epsilon for name, epsilon in parts.items()}


PerturbationSettings = GaussianPerturbationSettings | SpherePerturbationSettings


def _gaussian(multiplier: float) -> GaussianNoise | None:
    return GaussianNoise(multiplier) if multiplier else None


def minimizer_event(
    perturbation: PerturbationSettings, objective: Objective, budget: Budget, facts: Facts
) -> Composed:
    """Return the event of the perturbed minimiser, with the noise on the output."""
    ridge = least_ridge(
        perturbation.regularization, perturbation.slope_ridge, perturbation.row_scale
    )
    return perturbed_event(
        objective, perturbation.law(budget), ridge, perturbation.row_scale, facts
    )


def slots_of(
    perturbation: PerturbationSettings, problem: Problem, budget: Budget
) -> dict[str, Slot]:
    """Return the slots of a perturbed minimisation: the minimiser, and the queries that adapt it.

    Minimiser and trace may be exchanged for steps of noisy gradient descent, if the proof covers
    this: Gaussian noise, ADD_REMOVE, no weights.
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
    """Return the events of the queries other than the minimiser."""
    requested = (perturbation.count_noise, perturbation.trace_noise, perturbation.moment_noise)
    return tuple(noise.event(facts) for noise in requested if noise)


def event_of(
    perturbation: PerturbationSettings, objective: Objective, budget: Budget, facts: Facts
) -> Event:
    """Return the event of all releases of objective perturbation."""
    minimizer = minimizer_event(perturbation, objective, budget, facts)
    return Composed((*minimizer.events, *query_events(perturbation, facts)))


def perturbation_of(plan: Plan) -> PerturbationSettings:
    """Rebuild the perturbation from the settings of a plan."""
    return (
        SpherePerturbationSettings.of(plan)
        if "noise_radius" in plan.settings
        else GaussianPerturbationSettings.of(plan)
    )


def perturbations_for(problem: Problem, budget: Budget) -> tuple[type[PerturbationSettings], ...]:
    """Return the noise distributions to consider for a budget, the default first.

    Gaussian noise has the standard deviation L / mu, sphere noise sqrt(d + 1) L / epsilon. In a
    composition a pure release costs its full epsilon, and a Gaussian release far less. Sphere noise
    is therefore considered only if epsilon is at most the cost of Gaussian noise of the same budget
    at Renyi order 4. With delta = 1e-6 this holds from epsilon 18 on.
    """
    if budget.is_pure:
        return (SpherePerturbationSettings,)
    mu = gaussian_mu(budget.epsilon, budget.delta)
    if problem.even_ridge or budget.epsilon > _COMPOSED_ORDER * mu**2 / 2:
        return (GaussianPerturbationSettings,)
    return GaussianPerturbationSettings, SpherePerturbationSettings


def ridge_per_noise(objective: Objective, units: float) -> float:
    """Return R / (units of the score), the ridge that is needed per unit of noise.

    In a direction without data the weights are noise over ridge. With this ridge, noise moves
    scores by at most ``units`` score units.
    """
    return objective.row_norm / (units * objective.score_unit)
