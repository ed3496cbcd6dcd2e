"""Output perturbation: minimise exactly, then add noise to the minimiser."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.minimizer import minimize_certified
from tacit.erm.objective import moved
from tacit.erm.perturbed import Perturbed
from tacit.erm.plan import (
    CannotSolve,
    Mechanism,
    NoiseError,
    Plan,
    Problem,
    Settings,
)
from tacit.erm.sets import WholeSpace
from tacit.noise import Bounded, Norm, Release, Source, gaussian, sphere
from tacit.privacy import Budget, Gaussian, PureEpsilon
from tacit.privacy.calibration import gaussian_multiplier
from tacit.records import RecordSource

Array = npt.NDArray[np.float64]

# The share of the sensitivity left for an approximate minimiser.
_APPROXIMATE = 1e-4
# Of that share a little is left, 1e-13 of the sensitivity, for the roundings of a few products.
_CERTIFIED = 1 - 2.0**-30


@dataclass(frozen=True)
class OutputSettings(Settings):
    """The ridge, and how far one record moves the minimiser."""

    regularization: float
    sensitivity: float


@dataclass(frozen=True)
class OutputPerturbation(Mechanism):
    """Release the regularised minimiser plus noise scaled to its sensitivity.

        sensitivity = L / lam (ADD_REMOVE) or 2 L / lam (REPLACE), SUM form

    Proof: with w, w' the minimisers, strong convexity gives lam ||w - w'||^2 <= <gradient
    difference, w - w'> <= (number of changed records) L ||w - w'||. A point with certified
    gradient norm tau is within tau / lam of its minimiser, which adds 2 tau / lam.

    Guarantee: pure budgets get sphere noise, others Gaussian noise, exactly calibrated.

    Examples
    --------
    >>> from tacit.erm import Objective, OutputPerturbation, Problem
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds
    >>> problem = Problem(Objective(LogisticLoss(), Bounds(), regularization=10.0), 20)
    >>> round(OutputPerturbation().plan(problem, Budget(1.0)).settings["sensitivity"], 3)
    0.1
    """

    name = "output_perturbation"
    title = "Output perturbation"

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Choose lam if it was left open and calibrate the noise."""
        objective = problem.objective
        if not isinstance(objective.feasible, WholeSpace):
            raise CannotSolve(
                "the minimiser is certified over the whole space only; use "
                "'noisy_gradient' for a constraint."
            )
        if not (objective.is_linear_model and math.isfinite(objective.smoothness)):
            raise CannotSolve(
                f"{type(objective.loss).__name__} has no gradient to certify a minimum by; use "
                "its smooth form, or 'noisy_gradient'."
            )
        if not math.isfinite(objective.lipschitz):
            raise CannotSolve(
                f"{type(objective.loss).__name__} has no bounded slope; use HuberLoss or "
                "'sufficient_statistics'."
            )
        noise = _noise_over_sensitivity(budget, problem.dimension)
        lam = objective.regularization
        if lam == 0.0:
            raise CannotSolve("output perturbation needs a positive regularization, got 0.")
        if lam is None:
            lam = _choose_regularization(problem, budget, noise)
        reach = moved(budget.relation) * objective.lipschitz / lam * (1 + _APPROXIMATE)
        return Plan(
            mechanism=self,
            problem=problem.with_regularization(lam),
            budget=budget,
            event=PureEpsilon(budget.epsilon, budget.relation)
            if budget.is_pure
            else Gaussian(gaussian_multiplier(budget), budget.relation),
            excess_risk=_risk(problem, budget, noise, lam),
            reason="the minimiser itself is stable; noise on the weights, any solver",
            settings=OutputSettings(lam, reach).shown(),
        )

    def solve(self, plan: Plan, records: RecordSource, source: Source | None) -> Release[Array]:
        """Minimise to a certificate, then release."""
        settings, budget = OutputSettings.of(plan), plan.budget
        lam, reach = settings.regularization, settings.sensitivity
        problem = Perturbed(plan.problem.objective, records, np.zeros(plan.problem.shape))
        # 2 tau / lam is the share _APPROXIMATE of the exact sensitivity, or a little less
        tau = reach / (1 + _APPROXIMATE) * _APPROXIMATE * lam / 2 * _CERTIFIED
        weights, _ = minimize_certified(problem, np.zeros(plan.problem.shape), tau)
        bounded = Bounded(weights, reach, Norm.L2, budget.relation)
        if budget.is_pure:
            release = sphere(bounded, budget.epsilon, source)
        else:
            release = gaussian(bounded, gaussian_multiplier(budget), source)
        return Release(np.asarray(release.value), release.event)

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Return how much noise a weight gets."""
        return f"Noise of standard deviation {number(_std(plan))} is added to each weight once."

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Return the standard deviation of the noise itself."""
        return NoiseError(
            _std(plan),
            "Error bars are one standard deviation of the noise, known exactly: the same amount "
            "was added to every weight.",
        )


def _std(plan: Plan) -> float:
    """Return the standard deviation of the noise on each weight."""
    sensitivity, dimension = OutputSettings.of(plan).sensitivity, plan.problem.dimension
    if plan.budget.is_pure:
        # Sphere noise of scale s has E||noise||^2 = d (d + 1) s^2 over d weights.
        return sensitivity / plan.budget.epsilon * math.sqrt(dimension + 1)
    return sensitivity * gaussian_multiplier(plan.budget)


def _noise_over_sensitivity(budget: Budget, dimension: int) -> float:
    """Return sqrt(E||noise||^2) per unit of sensitivity."""
    if budget.is_pure:
        return math.sqrt(dimension * (dimension + 1)) / budget.epsilon
    return gaussian_multiplier(budget) * math.sqrt(dimension)


def _risk(problem: Problem, budget: Budget, noise: float, lam: float) -> float:
    """Predict (beta / 2) E||noise on w||^2 plus the ridge's bias."""
    objective = problem.objective
    squared = (noise * moved(budget.relation) * objective.lipschitz / lam) ** 2
    noisy = objective.smoothness / 2 * squared
    return noisy + problem.risk_of_noise(0.0, lam)


def _choose_regularization(problem: Problem, budget: Budget, noise: float) -> float:
    grid = problem.objective.row_norm**2 * np.geomspace(1e-2, 1e6, 200)
    return float(min(grid, key=lambda lam: _risk(problem, budget, noise, float(lam))))
