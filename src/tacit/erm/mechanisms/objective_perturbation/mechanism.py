"""Plan and run objective perturbation: perturb the objective, minimise, certify.

The normal way of a fit, which `ObjectivePerturbation.solve` follows; steps 2 to 4 are one call,
`PerturbedMinimizer.answer` in `queries/minimizer.py`:

1. count the records and adapt the noise to the count: `adapt.py`;
2. draw b, with the event and the sensitivity of the release: `PerturbedMinimizer` of
   `queries/minimizer.py`, which draws by `noise/perturbed_minimizer.py`;
3. minimise, and certify the minimum: `certified_solver` of `erm/solvers.py`;
4. add noise to the certified minimiser: `noise/perturbed_minimizer.py`;
5. shrink the weights by a released trace: `erm/shrinkage.py`.

Before step 2 the coordinates may be preconditioned by a released second moment (`adapt.py`), and
gradient steps may take the place of steps 2 to 5 (`fallback.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tacit.erm.constraints import WholeSpace
from tacit.erm.losses import AnyLoss
from tacit.erm.mechanisms.objective_perturbation.adapt import (
    adapt_preconditioned,
    adapt_to_count,
    best_preconditioner,
    can_certify,
    may_precondition,
)
from tacit.erm.mechanisms.objective_perturbation.fallback import descend_instead, steps_instead
from tacit.erm.mechanisms.objective_perturbation.perturbation import (
    MOMENT,
    PerturbationSettings,
    SpherePerturbationSettings,
    event_of,
    minimizer_event,
    perturbation_of,
    perturbations_for,
    query_events,
    ridge_per_noise,
    slots_of,
)
from tacit.erm.objective import Objective, n_changed
from tacit.erm.plan import (
    CannotSolve,
    Mechanism,
    NoiseError,
    PerturbedMinimizerLaw,
    Plan,
    Problem,
    Solved,
    ask_count,
    unknown,
)
from tacit.erm.preconditioning import Preconditioner
from tacit.erm.shrinkage import can_shrink, preconditioned_risk, shrunk
from tacit.erm.solvers import certified_solver, slopes_error
from tacit.privacy import Budget, BudgetUnreachable, Event, Relation
from tacit.privacy.accounting.gaussian_profile import gaussian_mu
from tacit.queries import PerturbedMinimizer, Session, Slot
from tacit.queries.noise import least_rest
from tacit.queries.session import Reweighted
from tacit.records.block import fine_rows, float_error
from tacit.records.reweighted import LeverageWeights

_FOR_CURVATURE = 1 / 20  # share of a pure epsilon for the effect of a record on the curvature
_LARGE = 500.0  # keeps expm1 finite
_USUAL_SCORE = 10.0  # assumed score of the longest row, in score units
_CLEARLY = 2.0  # the alternative noise must have less risk by this factor


@dataclass(frozen=True)
class ObjectivePerturbation(Mechanism):
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
    3.87
    """

    name = "objective_perturbation"
    title = "Objective perturbation"
    suits = (
        (
            "logistic regression, linear SVM",
            "one release with the noise of one Gaussian mechanism; no step size",
        ),
        ("Huber, quantile, Poisson, linear regression, ADD_REMOVE", "as above"),
        (
            "pure budget (delta = 0), linear model",
            "sphere noise; the noisy gradient needs delta > 0",
        ),
    )
    has_law = True
    perturbs_objective = True

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Choose lam if it is None, calibrate the noise and predict the risk."""
        _check_applies(problem)
        if problem.objective.regularization == 0.0:
            raise CannotSolve(
                "objective perturbation needs strong convexity, and regularization is 0; pass a "
                "positive one, or None to let theory choose."
            )
        usual, *others = perturbations_for(problem, budget)
        plans = [self._planned(problem, budget, usual)]
        for perturbation in others:
            try:
                plans.append(self._planned(problem, budget, perturbation))
            except CannotSolve:  # keep the default noise
                continue
        return min(plans, key=lambda plan: plan.excess_risk * (1 if plan is plans[0] else _CLEARLY))

    def _planned(self, problem: Problem, budget: Budget, kind: type[PerturbationSettings]) -> Plan:
        """Return the plan with one noise distribution."""
        lam, is_pure = problem.objective.regularization, kind is SpherePerturbationSettings
        _check_relation(problem, budget, is_pure=is_pure)
        open_ridge = lam is None
        adapts = open_ridge or _widens(problem.objective.loss)
        problem = replace(problem, declared_ridge=not open_ridge)
        if lam is None:
            lam = _choose_regularization(problem, budget, kind)
        try:
            perturbation = _least_perturbation(problem, budget, lam, kind, open_ridge=open_ridge)
        except BudgetUnreachable as error:
            raise CannotSolve(
                f"regularization {lam:.3g} is too weak for epsilon {budget.epsilon:g}: the effect "
                "of one record on the curvature alone costs more. Raise regularization to "
                f"{problem.objective.hessian_trace / budget.epsilon:.3g} or above, or leave it "
                "None."
            ) from error
        problem = problem.with_regularization(lam)
        expected = problem, perturbation
        if adapts:
            expected = adapt_to_count(perturbation, problem, problem.n_predicted)
            public = problem.objective.bounds.total_weight is not None
            if public and not perturbation.moment_noise:
                problem, perturbation = expected
        if not perturbation.moment_noise:
            _check_certifiable(problem, perturbation, budget)
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=event_of(perturbation, problem.objective, budget, problem.facts(budget.relation)),
            excess_risk=_risk(*expected),
            reason="one release with pure epsilon; no step size"
            if is_pure
            else "one release; the noise of one Gaussian mechanism; no step size",
            settings=perturbation.shown(),
        )

    def predicted(self, plan: Plan, problem: Problem) -> float:
        """Return the risk after adaptation to that count, or the risk as planned."""
        perturbation = perturbation_of(plan)
        if perturbation.count_noise or perturbation.moment_noise:
            return _risk(*adapt_to_count(perturbation, problem, problem.n_predicted))
        return _risk(problem, perturbation)

    def slots(self, plan: Plan) -> dict[str, Slot]:
        """Return the slots of the minimiser and of the queries that adapt it."""
        return slots_of(perturbation_of(plan), plan.problem, plan.budget)

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Count the records if that is private, adapt the noise, draw b, minimise, certify."""
        budget, problem, perturbation = plan.budget, plan.problem, perturbation_of(plan)
        n, at_least, count = float(problem.n_records), None, None
        if perturbation.count_noise:
            count = ask_count(session, perturbation.count_noise, "count")
            n, at_least = count.n_records, count.at_least

        # The second moment, if the plan has one and this many records are worth its noise.
        moment = preconditioner = None
        if perturbation.moment_noise and may_precondition(problem, budget, n):
            moment = MOMENT.ask(session, "second moment", problem, budget, n)
            preconditioner = best_preconditioner(moment, perturbation, problem, n)
        can_be_certified = True
        if preconditioner:
            preconditioned, after = adapt_preconditioned(perturbation, problem, preconditioner, n)
            can_be_certified = can_certify(after, problem, preconditioner, budget, n)

        # Gradient steps, where a minimum cannot be certified or an unplanned moment pays.
        steps = steps_instead(plan, session.facts, n, can_be_certified=can_be_certified)
        if steps:
            weights, bound = descend_instead(plan, steps, session, moment, n)
            return Solved(weights, count=count, slope_bound=bound)

        # The perturbed minimiser in preconditioned coordinates. It is not shrunk: with an
        # informative second moment there is little to shrink.
        if moment and preconditioner and can_be_certified:
            weighted = session.on(
                Reweighted(
                    LeverageWeights(preconditioner.coordinates, preconditioned.objective.row_norm)
                )
            )
            found = weighted.ask(
                _preconditioned_minimizer(preconditioned, after, preconditioner, plan), "weights"
            )
            return Solved(
                preconditioner.coordinates.of(found),
                risk=preconditioned_risk(moment, preconditioned, after, found, n),
                count=count,
                slope_bound=preconditioned.objective.loss.lipschitz,
            )

        # The perturbed minimiser in the original coordinates.
        if perturbation.count_noise or perturbation.moment_noise:
            problem, perturbation = adapt_to_count(perturbation, problem, n, at_least)
        weights = session.ask(_minimizer(problem, perturbation, budget), "weights")
        law, shrunk_risk = _law(problem, perturbation, budget), None
        if perturbation.trace_noise:
            weights, shrunk_risk = shrunk(
                weights, law, session, perturbation.trace_noise, "trace", n
            )
        bound = problem.objective.loss.lipschitz
        return Solved(weights, law, risk=shrunk_risk, count=count, slope_bound=bound)

    def expected_law(self, plan: Plan, n_records: float) -> PerturbedMinimizerLaw:
        """Return the law after adaptation to this many records, without a preconditioner."""
        problem, perturbation = plan.problem, perturbation_of(plan)
        if perturbation.count_noise or perturbation.moment_noise:
            problem, perturbation = adapt_to_count(perturbation, problem, n_records)
        return _law(problem, perturbation, plan.budget)

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Describe the noise on the objective."""
        return f"{perturbation_of(plan).in_words(number)} perturbs the objective once."

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Bound the effect of the random perturbation b of the objective.

        The derivative of the minimiser with respect to b is -(H + lam I)^-1, with H >= 0 because
        the loss is convex. The minimiser therefore moves at most 1/lam times as far as b. For
        Gaussian b the Poincare inequality bounds each weight's variance by (noise_std / lam)^2.
        The bound is attained for H = 0, without information in the records. For sphere noise,
        whose covariance is (d + 1) r^2 I, the bound holds to first order. A widened
        loss keeps noise_std / lam at most 1 / ridge_per_noise. Shrunk weights lie between the
        James-Stein weights, which err less, and the unshrunk ones: their mean square error over
        all weights is at most doubled.
        """
        perturbation, objective = perturbation_of(plan), plan.problem.objective
        if plan.problem.declared_ridge and perturbation.count_noise:
            return unknown("the noise was adapted to the number of records, which is private.")
        std = perturbation.std(plan.problem.dimension) / perturbation.regularization
        if (perturbation.count_noise and _widens(objective.loss)) or perturbation.moment_noise:
            std = max(std, 1 / ridge_per_noise(objective, perturbation.units))
        if perturbation.trace_noise:
            std *= math.sqrt(2.0)
        return NoiseError(
            std,
            "Error bars show the largest possible standard deviation of the noise. It is smaller "
            "for a feature that many records inform about; how much smaller depends on "
            "the records, which are private, so it is not stated.",
            is_bound=True,
        )


def _widens(loss: AnyLoss) -> bool:
    """Return whether the loss may be widened, so that the number of records is worth its cost."""
    return loss.with_wider_slope(2.0) != loss


def _minimizer(
    problem: Problem, perturbation: PerturbationSettings, budget: Budget
) -> PerturbedMinimizer:
    """Return the query for the minimiser of the perturbed objective, in original coordinates."""
    objective = problem.objective
    return PerturbedMinimizer(
        objective,
        problem.shape,
        perturbation.law(budget),
        perturbation.regularization,
        certified_solver(objective, further_ridge=perturbation.slope_ridge),
        perturbation.slope_ridge,
        perturbation.row_scale,
    )


def _preconditioned_minimizer(
    preconditioned: Problem,
    perturbation: PerturbationSettings,
    preconditioner: Preconditioner,
    plan: Plan,
) -> PerturbedMinimizer:
    """Return the query for the perturbed minimiser in preconditioned coordinates.

    The released weights are in preconditioned coordinates too. Records longer than the norm that
    ``preconditioned`` declares are weighted down, so that no record contributes more than this
    norm allows (docs/proofs/objective_perturbation.md, section 14).
    """
    # Gradients are computed on the original records: their bounds determine clipping and rounding.
    own = replace(preconditioned.objective, bounds=plan.problem.objective.bounds)
    return PerturbedMinimizer(
        preconditioned.objective,
        preconditioned.shape,
        perturbation.law(plan.budget),
        perturbation.regularization,
        certified_solver(own, coordinates=preconditioner.coordinates),
        coordinates=preconditioner.coordinates,
        gradients=own,
    )


def _law(
    problem: Problem, perturbation: PerturbationSettings, budget: Budget
) -> PerturbedMinimizerLaw:
    """Return the asymptotic law of the weights, in the original coordinates."""
    laws, _ = perturbation.law(budget).laws(perturbation.regularization, problem.shape)
    return PerturbedMinimizerLaw(
        problem.objective,
        problem.objective.loss.lipschitz,
        None,
        perturbation.regularization + perturbation.slope_ridge,
        perturbation.std(problem.dimension) / perturbation.row_scale,
        laws.output_std,
    )


def _check_certifiable(
    problem: Problem, perturbation: PerturbationSettings, budget: Budget
) -> None:
    """Refuse a public number of records so large that certification would probably fail.

    The solver stops at half of the tolerance; rounding at weights of typical norm must stay below
    the other half. Without this check the failure would come after the charge, and the budget
    would be lost.
    """
    objective, n = problem.objective, problem.objective.bounds.total_weight
    if n is None:
        return
    _, tolerance = perturbation.law(budget).laws(perturbation.regularization, problem.shape)
    size = _USUAL_SCORE * objective.score_unit / objective.row_norm
    sums = float_error(n, fine_rows(problem.n_features, n), fine=True) * objective.lipschitz
    if sums + slopes_error(objective, n, problem.shape[0], size) > tolerance / 2:
        raise CannotSolve(
            f"n_records is {n:,}, and rounding may move sums of so many gradients by more than "
            f"half of the {tolerance:.3g} to which a minimum must be certified; use "
            "'noisy_gradient', whose sums are exact, or fit on a part of the records."
        )


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
            f"the gradient of {type(objective.loss).__name__} is unbounded; use HuberLoss, the "
            "squared loss with clipped residuals, or 'sufficient_statistics'."
        )


def _check_relation(problem: Problem, budget: Budget, *, is_pure: bool) -> None:
    loss = problem.objective.loss
    if budget.relation is Relation.REPLACE and not (is_pure or loss.monotone):
        raise CannotSolve(
            f"objective perturbation with {type(loss).__name__} is proved for ADD_REMOVE only; "
            "use 'noisy_gradient' under REPLACE, or a pure budget."
        )


def _least_perturbation(
    problem: Problem,
    budget: Budget,
    lam: float,
    kind: type[PerturbationSettings],
    *,
    open_ridge: bool,
) -> PerturbationSettings:
    objective = problem.objective
    calibrated = kind.asking(
        budget,
        count=(open_ridge or _widens(objective.loss)) and objective.bounds.total_weight is None,
        trace=open_ridge and can_shrink(problem),
        moment=open_ridge and may_precondition(problem, budget, problem.n_records),
    )

    facts = problem.facts(budget.relation)

    def family(noise: float) -> Event:
        return minimizer_event(kind(lam, noise, **calibrated), objective, budget, facts)

    parts = query_events(kind(lam, 1.0, **calibrated), facts)
    return kind(lam, _least_noise(family, budget, kind, parts, objective.lipschitz), **calibrated)


def _risk(problem: Problem, perturbation: PerturbationSettings) -> float:
    ridge = perturbation.regularization + perturbation.slope_ridge
    return problem.risk_of_noise(
        perturbation.squared_norm(problem.dimension) / perturbation.row_scale**2, ridge
    )


def _quick_noise(
    problem: Problem, budget: Budget, lam: float, kind: type[PerturbationSettings]
) -> float:
    """Return the least noise of the main event alone, which has a fast closed form."""
    objective, facts = problem.objective, problem.facts(budget.relation)

    def family(noise: float) -> Event:
        return kind(lam, noise).main_event(objective, facts)

    return _least_noise(family, budget, kind, (), objective.lipschitz)


def _least_noise(
    family: Callable[[float], Event],
    budget: Budget,
    kind: type[PerturbationSettings],
    parts: tuple[Event, ...],
    guess: float,
) -> float:
    """Return the least noise that fits the budget beside ``parts``; sphere noise needs no delta."""
    within = replace(budget, delta=0.0) if kind is SpherePerturbationSettings else budget
    return least_rest(family, within, parts, guess=guess)


def _choose_regularization(
    problem: Problem, budget: Budget, kind: type[PerturbationSettings]
) -> float:
    """Return the lam with the least predicted risk, on a grid of factors of 1.25.

    A smaller lam needs more noise for the Jacobian; a larger lam adds bias. lam is also at least
    noise_std R / (units x score unit), so that noise alone moves scores by few score units.
    """
    objective = problem.objective
    is_pure = kind is SpherePerturbationSettings
    unit = ridge_per_noise(objective, kind.units)
    free = objective.loss.free_regularization(objective.row_norm, budget.epsilon)
    if free is not None and not is_pure:  # a closed form: no search needed
        noise_scale = n_changed(budget.relation) / gaussian_mu(budget.epsilon, budget.delta)
        return max(free, unit * noise_scale * objective.lipschitz)
    best, best_risk, best_noise = math.nan, math.inf, math.nan
    least = objective.hessian_trace / budget.epsilon
    for lam in map(float, least * 1.25 ** np.arange(-4, 28)):
        try:
            noise = _quick_noise(problem, budget, lam, kind)
        except BudgetUnreachable:
            continue
        squared = kind(lam, noise).squared_norm(problem.dimension)
        risk = problem.risk_of_noise(squared, lam)
        if risk < best_risk:
            best, best_risk, best_noise = lam, risk, noise
        elif risk > 2 * best_risk:
            break
    if math.isnan(best):
        raise CannotSolve(f"no regularization meets {budget} with objective perturbation.")
    if is_pure:
        best = min(best, _enough(objective, budget))
    return max(best, unit * kind(best, best_noise).std(problem.dimension))


def _enough(objective: Objective, budget: Budget) -> float:
    """Return the ridge at which the effect of a record on the curvature costs epsilon / 20.

        r log(1 + T / (r lam)) = epsilon / 20

    A larger ridge pays only at the assumed number of records, and the true number may be smaller.
    """
    rank = objective.loss.hessian_rank
    jacobian = _FOR_CURVATURE * budget.epsilon / rank
    return objective.hessian_trace / rank / math.expm1(min(jacobian, _LARGE))
