"""Objective perturbation: one ordinary minimisation of a randomly tilted objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.minimizer import minimize_certified
from tacit.erm.objective import Objective, moved, records_gradient
from tacit.erm.perturbed import Perturbed
from tacit.erm.plan import CannotSolve, Plan, Problem
from tacit.erm.sets import WholeSpace
from tacit.noise import Bounded, Norm, Release, Source
from tacit.noise.minimizer import (
    GaussianPerturbation,
    SpherePerturbation,
    release_minimizer,
)
from tacit.privacy import (
    Budget,
    BudgetUnreachable,
    Composed,
    Event,
    Gaussian,
    PureEpsilon,
    PureObjective,
    Relation,
    calibrate,
)
from tacit.privacy.gaussian_profile import gaussian_mu
from tacit.records import RecordSource

Array = npt.NDArray[np.float64]

# The output release's share: its mu is 1/50 of the whole (2e-4 of the cost), or 1/100 of epsilon.
_OUTPUT_MULTIPLE = 50.0
_OUTPUT_SHARE = 0.01
# Noise on the output, in units of (noise on the objective) / lam: far below what the
# perturbation itself does to w unless curvature exceeds 1e4 lam, where both are negligible.
_OUTPUT_NOISE = 1e-4

Family = Callable[[float], Event]


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Minimise sum of losses + (lam/2)||w||^2 + <b, w> for random b, to a certified minimum.

    Pure budgets use sphere noise (Chaudhuri et al. 2011 with the tight Jacobian); others use
    Gaussian noise with the tightest proved profile for the loss: logistic, monotone margin
    losses, softmax, any generalised linear loss (docs/proofs/objective_perturbation.md).

    Guarantee: the event of the plan; the minimum is certified, or nothing is released.

    Examples
    --------
    >>> from tacit.erm import Objective, ObjectivePerturbation, Problem
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds
    >>> problem = Problem(Objective(LogisticLoss(), Bounds()), n_features=20)
    >>> plan = ObjectivePerturbation().plan(problem, Budget(1.0, 1e-5))
    >>> round(plan.settings["noise_std"], 2)
    3.73
    """

    name = "objective_perturbation"

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Choose lam if it was left open, calibrate the noise, say what is expected."""
        _check_applies(problem)
        lam = problem.objective.regularization
        if lam == 0.0:
            raise CannotSolve(
                "objective perturbation needs strong convexity, and regularization is 0; pass a "
                "positive one, or None to let theory choose."
            )
        if lam is None:
            lam = _choose_regularization(problem, budget, _family_of(budget))
        chosen = problem.with_regularization(lam)
        try:
            noise = _least_noise(chosen, budget)
        except BudgetUnreachable as error:
            raise CannotSolve(
                f"regularization {lam:.3g} is too weak for epsilon {budget.epsilon:g}: what one "
                "record does to the curvature alone costs more. Raise regularization to "
                f"{problem.objective.hessian_trace / budget.epsilon:.3g} or above, or leave it "
                "None."
            ) from error
        event = _family_of(budget)(chosen, budget)(noise)
        squared = _squared_noise(budget, noise, problem.dimension)
        return Plan(
            mechanism=self,
            problem=chosen,
            budget=budget,
            event=event,
            excess_risk=problem.risk_of_noise(squared, lam),
            reason="one release; the noise of one Gaussian mechanism; no step size"
            if not budget.is_pure
            else "one release with pure epsilon; no step size",
            settings={
                "regularization": lam,
                "noise_radius" if budget.is_pure else "noise_std": noise,
            },
        )

    def solve(self, plan: Plan, records: RecordSource, source: Source | None) -> Release[Array]:
        """Draw b, minimise, certify, release."""
        objective, lam = plan.problem.objective, plan.settings["regularization"]
        perturbation, tolerance = _perturbation(plan, lam)

        def minimize(b: Array) -> Array:
            problem = Perturbed(objective, records, b)
            return minimize_certified(problem, np.zeros(plan.problem.shape), tolerance)[0]

        def implied(weights: Array) -> Bounded:
            total = records_gradient(objective, records, weights)
            reach = moved(plan.budget.relation) * objective.lipschitz
            return Bounded(total, reach * (1 + 1e-6), Norm.L2, plan.budget.relation)

        return release_minimizer(perturbation, minimize, implied, plan.event, source)


def _check_applies(problem: Problem) -> None:
    objective = problem.objective
    if not objective.is_linear_model:
        raise CannotSolve(
            f"{type(objective.loss).__name__} is not a function of <w, x>, so the proof of "
            "objective perturbation does not hold; use 'noisy_gradient'."
        )
    if not isinstance(objective.feasible, WholeSpace):
        raise CannotSolve(
            "objective perturbation is proved over the whole space; use 'noisy_gradient' for a "
            "constraint."
        )
    if not math.isfinite(objective.smoothness):
        raise CannotSolve(
            f"{type(objective.loss).__name__} has no bounded second derivative; use its smooth "
            "form, or 'noisy_gradient'."
        )
    if not math.isfinite(objective.lipschitz):
        raise CannotSolve(
            f"{type(objective.loss).__name__} has no bounded slope; use HuberLoss, which is the "
            "squared loss with clipped residuals, or 'sufficient_statistics'."
        )


def _guess(problem: Problem) -> float:
    return problem.objective.lipschitz


def _main_event(problem: Problem, relation: Relation, noise: float) -> Event:
    """Return the event of the perturbation alone: the tightest proved for the loss."""
    objective = problem.objective
    lam, size = _ridge(objective), objective.row_norm
    event = objective.loss.perturbed_event(size, lam, noise, relation)
    assert event is not None
    return event


def _ridge(objective: Objective) -> float:
    if objective.regularization is None:
        raise ValueError("regularization must be chosen first.")
    return objective.regularization


def _least_noise(problem: Problem, budget: Budget) -> float:
    family = _family_of(budget)
    # A ridge so weak that the curvature alone overspends is refused here, by the closed form of
    # the main event: with all its mass at infinity a loss distribution cannot be convolved.
    _bare(family, problem, budget)(budget)
    return _noise_of(calibrate(family(problem, budget), budget, guess=_guess(problem)))


def _family_of(budget: Budget) -> Callable[[Problem, Budget], Family]:
    return _pure_family if budget.is_pure else _family


def _family(problem: Problem, budget: Budget) -> Family:
    _check_relation(problem, budget.relation)
    multiplier = _OUTPUT_MULTIPLE / gaussian_mu(budget.epsilon, budget.delta)
    output = Gaussian(multiplier, budget.relation)
    return lambda noise: Composed((_main_event(problem, budget.relation, noise), output))


def _pure_family(problem: Problem, budget: Budget) -> Family:
    objective = problem.objective
    output = PureEpsilon(_OUTPUT_SHARE * budget.epsilon, budget.relation)

    def family(radius: float) -> Event:
        main = PureObjective(
            objective.lipschitz,
            objective.hessian_trace,
            _ridge(objective),
            radius,
            objective.loss.hessian_rank,
            budget.relation,
        )
        return Composed((main, output))

    return family


def _check_relation(problem: Problem, relation: Relation) -> None:
    loss = problem.objective.loss
    if relation is Relation.REPLACE and not loss.monotone:
        raise CannotSolve(
            f"objective perturbation with {type(loss).__name__} is proved for ADD_REMOVE only; "
            "use 'noisy_gradient' under REPLACE, or a pure budget."
        )


def _noise_of(event: Event) -> float:
    if not isinstance(event, Composed):
        raise TypeError(f"expected a composed event, got {event!r}.")
    main = event.events[0]
    noise: float = main.noise_radius if isinstance(main, PureObjective) else main.noise_std  # type: ignore[attr-defined]
    return noise


def _squared_noise(budget: Budget, noise: float, dimension: int) -> float:
    # E||b||^2: d s^2 for a Gaussian, d (d + 1) r^2 for sphere noise
    return noise**2 * dimension * (dimension + 1 if budget.is_pure else 1)


def _choose_regularization(
    problem: Problem, budget: Budget, family: Callable[[Problem, Budget], Family]
) -> float:
    """Return the lam with the least predicted risk, on a grid of factors of 1.25.

    Less regularization means more noise for the Jacobian, more means more bias; and lam is kept
    at least noise_std R / (2 score unit), where the noise alone moves scores by a few units.
    """
    objective = problem.objective
    unit = objective.row_norm / (2 * objective.score_unit)
    free = objective.loss.free_regularization(objective.row_norm, budget.epsilon)
    if free is not None and not budget.is_pure:  # the search is over
        reach = moved(budget.relation) / gaussian_mu(budget.epsilon, budget.delta)
        return max(free, unit * reach * objective.lipschitz)
    best, best_risk, best_noise = math.nan, math.inf, math.nan
    least = objective.hessian_trace / budget.epsilon
    for lam in least * 1.25 ** np.arange(-4, 28):
        chosen = problem.with_regularization(float(lam))
        bare = _bare(family, chosen, budget)
        try:
            noise = bare(budget)
        except BudgetUnreachable:
            continue
        risk = problem.risk_of_noise(_squared_noise(budget, noise, problem.dimension), float(lam))
        if risk < best_risk:
            best, best_risk, best_noise = float(lam), risk, noise
        elif risk > 2 * best_risk:
            break
    if math.isnan(best):
        raise CannotSolve(f"no regularization meets {budget} with objective perturbation.")
    return best if budget.is_pure else max(best, unit * best_noise)


def _bare(
    family: Callable[[Problem, Budget], Family], problem: Problem, budget: Budget
) -> Callable[[Budget], float]:
    """Return a calibration of the main event alone, which has a closed form and is fast."""
    if family is _family:
        _check_relation(problem, budget.relation)

        def main(noise: float) -> Event:
            return Composed((_main_event(problem, budget.relation, noise),))

        return lambda b: _noise_of(calibrate(main, b, guess=_guess(problem)))
    return lambda b: _noise_of(calibrate(family(problem, b), b, guess=_guess(problem)))


def _perturbation(
    plan: Plan, lam: float
) -> tuple[GaussianPerturbation | SpherePerturbation, float]:
    """Return the noise and the gradient norm to certify.

    A gradient norm of tau puts a point within tau / lam of the exact minimiser (strong
    convexity), so two such points differ by at most 2 tau / lam: the sensitivity of the output
    release. The float error of b counts as part of tau.
    """
    shape, event = plan.problem.shape, plan.event
    if not isinstance(event, Composed):
        raise TypeError("not a plan of objective perturbation.")
    output = event.events[1]
    if isinstance(output, Gaussian):
        noise = plan.settings["noise_std"]
        error = GaussianPerturbation(noise, 1.0, shape).error
        per_tau = 2 / lam * output.noise_multiplier  # output noise for tau = 1
        tau = max(_OUTPUT_NOISE * noise / lam / per_tau, 2 * error)
        return GaussianPerturbation(noise, tau * per_tau, shape), tau - error
    if isinstance(output, PureEpsilon):
        radius = plan.settings["noise_radius"]
        error = SpherePerturbation(radius, 1.0, shape).error
        per_tau = 2 / lam / output.epsilon
        tau = max(_OUTPUT_NOISE * radius / lam / per_tau, 2 * error)
        return SpherePerturbation(radius, tau * per_tau, shape), tau - error
    raise TypeError(f"unexpected output event {output!r}.")
