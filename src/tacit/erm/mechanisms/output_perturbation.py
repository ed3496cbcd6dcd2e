"""Output perturbation: minimise exactly, then add noise to the minimiser."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.erm.constraints import WholeSpace
from tacit.erm.objective import n_changed
from tacit.erm.plan import (
    CannotSolve,
    Mechanism,
    NoiseError,
    Plan,
    Problem,
    Settings,
    Solved,
)
from tacit.erm.solvers import certified_solver
from tacit.privacy import Budget
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import Noise, NoisySum, RegularizedMinimizer, Session, Slot, split_budget


@dataclass(frozen=True)
class OutputSettings(Settings):
    """The ridge, and the sensitivity of the minimiser."""

    regularization: float
    sensitivity: float


@dataclass(frozen=True)
class OutputPerturbation(Mechanism):
    """Release the regularised minimiser plus noise scaled to its sensitivity.

    `tacit.queries.RegularizedMinimizer` states the sensitivity, L / lam, and proves it.

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
    suits = (("a baseline with a four-line proof", "exact sensitivity"),)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Choose lam if it is None, and calibrate the noise."""
        objective = problem.objective
        if not isinstance(objective.feasible, WholeSpace):
            raise CannotSolve(
                "the minimiser is certified over the whole space only; use "
                "'noisy_gradient' for a constraint."
            )
        if not (objective.is_linear_model and math.isfinite(objective.smoothness)):
            raise CannotSolve(
                f"{type(objective.loss).__name__} is not differentiable, so that a minimum cannot "
                "be certified; use its smooth form, or 'noisy_gradient'."
            )
        if not math.isfinite(objective.lipschitz):
            raise CannotSolve(
                f"the gradient of {type(objective.loss).__name__} is unbounded; use HuberLoss or "
                "'sufficient_statistics'."
            )
        noise = _noise_over_sensitivity(budget, problem.dimension)
        lam = objective.regularization
        if lam == 0.0:
            raise CannotSolve("output perturbation needs a positive regularization, got 0.")
        if lam is None:
            lam = _choose_regularization(problem, budget, noise)
        held, facts = problem.with_regularization(lam), problem.facts(budget.relation)
        stated = _minimizer(held).sensitivity(facts)
        return Plan(
            mechanism=self,
            problem=held,
            budget=budget,
            event=_noise(budget).event(facts),
            excess_risk=_risk(problem, budget, noise, lam),
            reason="the minimiser itself is stable; noise on the weights; any solver",
            settings=OutputSettings(lam, stated.value).shown(),
        )

    def slots(self, plan: Plan) -> dict[str, Slot]:
        """Return the slot of the minimiser."""
        return {"weights": Slot(_noise(plan.budget).event(plan.facts))}

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Minimise to a certificate and release the minimiser with noise."""
        query = NoisySum(_minimizer(plan.problem), _noise(plan.budget))
        return Solved(np.asarray(session.ask(query, "weights")))

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Describe the noise on a weight."""
        return f"Noise of standard deviation {number(_std(plan))} is added to each weight once."

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Return the standard deviation of the noise, which is known exactly."""
        return NoiseError(
            _std(plan),
            "Error bars are one standard deviation of the noise, known exactly: every weight got "
            "noise of the same size.",
        )


def _noise(budget: Budget) -> Noise:
    """Return sphere noise for a pure budget, Gaussian noise for others."""
    return split_budget(budget, {"weights": None})["weights"]


def _minimizer(problem: Problem) -> RegularizedMinimizer:
    objective = problem.objective
    return RegularizedMinimizer(objective, problem.shape, certified_solver(objective))


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
    squared = (noise * n_changed(budget.relation) * objective.lipschitz / lam) ** 2
    noisy = objective.smoothness / 2 * squared
    return noisy + problem.risk_of_noise(0.0, lam)


def _choose_regularization(problem: Problem, budget: Budget, noise: float) -> float:
    grid = problem.objective.row_norm**2 * np.geomspace(1e-2, 1e6, 200)
    return float(min(grid, key=lambda lam: _risk(problem, budget, noise, float(lam))))
