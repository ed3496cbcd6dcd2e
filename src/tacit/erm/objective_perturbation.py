"""Objective perturbation: one ordinary minimisation of a randomly tilted objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tacit.erm.counting import ask_count
from tacit.erm.descending import descended, may_ask
from tacit.erm.expecting import expected_risk_there
from tacit.erm.following import following
from tacit.erm.laws import Solved, TiltLaw
from tacit.erm.minimizer import certified_solver
from tacit.erm.objective import Objective, moved
from tacit.erm.perturbed import slopes_error
from tacit.erm.plan import (
    CannotSolve,
    Mechanism,
    NoiseError,
    Plan,
    Problem,
)
from tacit.erm.preconditioner import Turned
from tacit.erm.sets import WholeSpace
from tacit.erm.shrinking import can_shrink, shrunk
from tacit.erm.tilts import (
    MOMENT,
    SphereTilt,
    Tilt,
    asked_events,
    event_of,
    minimizer_event,
    slots_of,
    steep,
    tilt_in,
    tilts_for,
)
from tacit.erm.turning import best_turned, can_certify, may_turn, turned_following
from tacit.privacy import Budget, BudgetUnreachable, Event, Relation
from tacit.privacy.gaussian_profile import gaussian_mu
from tacit.queries import PerturbedMinimizer, Reweighted, Session, Slot
from tacit.queries.split_budget import least_rest
from tacit.records import LeverageWeights
from tacit.records.summing import fine_rows, float_error

Array = npt.NDArray[np.float64]

_FOR_CURVATURE = 1 / 20  # of a pure epsilon, for what a record does to the curvature
_LARGE = 500.0
_USUAL_SCORE = 10.0  # of the longest row along the weights, in units of scores
_CLEARLY = 2.0  # by so much another law of noise must have less risk than the usual one


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
    has_law = True
    tilts = True

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Choose lam if it was left open, calibrate the noise, say what is expected."""
        _check_applies(problem)
        if problem.objective.regularization == 0.0:
            raise CannotSolve(
                "objective perturbation needs strong convexity, and regularization is 0; pass a "
                "positive one, or None to let theory choose."
            )
        usual, *others = tilts_for(problem, budget)
        plans = [self._planned(problem, budget, usual)]
        for tilt in others:
            try:
                plans.append(self._planned(problem, budget, tilt))
            except CannotSolve:  # then the usual one stands
                continue
        return min(plans, key=lambda plan: plan.excess_risk * (1 if plan is plans[0] else _CLEARLY))

    def _planned(self, problem: Problem, budget: Budget, kind: type[Tilt]) -> Plan:
        """Return the plan with one law of noise."""
        lam, is_pure = problem.objective.regularization, kind is SphereTilt
        _check_relation(problem, budget, is_pure=is_pure)
        open_ridge = lam is None
        if lam is None:
            lam = _choose_regularization(problem, budget, kind)
        try:
            tilt = _least_tilt(problem, budget, lam, kind, open_ridge=open_ridge)
        except BudgetUnreachable as error:
            raise CannotSolve(
                f"regularization {lam:.3g} is too weak for epsilon {budget.epsilon:g}: what one "
                "record does to the curvature alone costs more. Raise regularization to "
                f"{problem.objective.hessian_trace / budget.epsilon:.3g} or above, or leave it "
                "None."
            ) from error
        problem = problem.with_regularization(lam)
        expected = problem, tilt
        if open_ridge:
            expected = following(tilt, problem, problem.n_predicted)
            public = problem.objective.bounds.total_weight is not None
            if public and not tilt.moment_noise:
                problem, tilt = expected
        if not tilt.moment_noise:
            _check_certifiable(problem, tilt, budget)
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=event_of(tilt, problem.objective, budget, problem.facts(budget.relation)),
            excess_risk=_risk(*expected),
            reason="one release with pure epsilon; no step size"
            if is_pure
            else "one release; the noise of one Gaussian mechanism; no step size",
            settings=tilt.shown(),
        )

    def predicted(self, plan: Plan, problem: Problem) -> float:
        """Return the risk of what would follow from that count, or of what was planned."""
        tilt = tilt_in(plan)
        if tilt.count_noise or tilt.moment_noise:
            return _risk(*following(tilt, problem, problem.n_predicted))
        return _risk(problem, tilt)

    def slots(self, plan: Plan) -> dict[str, Slot]:
        """Return the minimiser, and what it is adapted by."""
        return slots_of(tilt_in(plan), plan.problem, plan.budget)

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Count the records if that is private, adapt the noise, draw b, minimise, certify."""
        budget, problem, tilt = plan.budget, plan.problem, tilt_in(plan)
        steps = plan.slots().get("steps")
        if session.facts.bounds.max_weight is not None:
            steps = None  # not proved of records that were weighted after planning
        n, at_least = float(problem.n_records), None
        if tilt.count_noise:
            n, at_least = ask_count(session, tilt.count_noise, "count")
        if tilt.moment_noise and may_turn(problem, budget, n):
            moment = MOMENT.ask(session, "second moment", problem, budget, n)
            turned = best_turned(moment, tilt, problem, n)
            if turned:
                there, after = turned_following(tilt, problem, turned, n)
                if can_certify(after, problem, turned, budget, n):
                    weighted = session.on(
                        Reweighted(LeverageWeights(turned.coordinates, there.objective.row_norm))
                    )
                    # where moments are seen there is little to shrink
                    found = weighted.ask(_minimizer_there(there, after, turned, plan), "weights")
                    lost = expected_risk_there(moment, there, after, found, n)
                    return Solved(turned.coordinates.of(found), risk=lost)
                if steps:
                    return Solved(descended(plan, steps, session, moment, n))
        if tilt.count_noise and steps and may_ask(plan, steps, tilt, n):
            return Solved(descended(plan, steps, session, None, n))
        if tilt.count_noise or tilt.moment_noise:
            problem, tilt = following(tilt, problem, n, at_least)
        query = _minimizer(problem, tilt, budget)
        weights, law, risk = session.ask(query, "weights"), _law(problem, tilt, budget), None
        if tilt.trace_noise:
            weights, risk = shrunk(weights, law, session, tilt.trace_noise, "trace", n)
        return Solved(weights, law, risk=risk)

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Return how much noise the objective gets."""
        return f"{tilt_in(plan).in_words(number)} tilts the objective once."

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Bound the effect of a random tilt b of the objective.

        The minimiser is a function of b whose derivative is -(H + lam I)^-1, with H >= 0 because
        the loss is convex, so it moves at most 1/lam times as far as b. For Gaussian b the
        Poincare inequality turns that into a bound on each weight's variance, (noise_std / lam)^2;
        it is attained where the records say nothing, H = 0. For sphere noise, whose covariance is
        (d + 1) r^2 I, the same holds to first order. A loss that is widened keeps noise_std / lam
        at most 1 / steep. Shrunk weights lie between James and Stein's, which err less, and these:
        over all of them the mean square is at most doubled.
        """
        tilt, objective = tilt_in(plan), plan.problem.objective
        std = tilt.std(plan.problem.dimension) / tilt.regularization
        widens = objective.loss.widened(2.0) != objective.loss
        if (tilt.count_noise and widens) or tilt.moment_noise:
            std = max(std, 1 / steep(objective, tilt.units))
        if tilt.trace_noise:
            std *= math.sqrt(2.0)
        return NoiseError(
            std,
            "Error bars show the most that the standard deviation of the noise can be. It is "
            "smaller for a feature that many records tell about; how much smaller depends on "
            "the records, which are private, so it is not stated.",
            is_bound=True,
        )


def _minimizer(problem: Problem, tilt: Tilt, budget: Budget) -> PerturbedMinimizer:
    """Return the question: the minimiser of the tilted objective, over rows as they are."""
    objective = problem.objective
    return PerturbedMinimizer(
        objective,
        problem.shape,
        tilt.law(budget),
        tilt.regularization,
        certified_solver(objective, further_ridge=tilt.steadying),
        tilt.steadying,
        tilt.row_scale,
    )


def _minimizer_there(there: Problem, tilt: Tilt, turned: Turned, plan: Plan) -> PerturbedMinimizer:
    """Return the same in the coordinates of a second moment; what is released are weights there.

    Records longer there than ``there`` declares count for less, and so do no more than others
    (docs/proofs/objective_perturbation.md, section 14).
    """
    # of records as they are: their own bounds say how they are clipped and how sums are rounded
    own = replace(there.objective, bounds=plan.problem.objective.bounds)
    return PerturbedMinimizer(
        there.objective,
        there.shape,
        tilt.law(plan.budget),
        tilt.regularization,
        certified_solver(own, coordinates=turned.coordinates),
        coordinates=turned.coordinates,
        gradients=own,
    )


def _law(problem: Problem, tilt: Tilt, budget: Budget) -> TiltLaw:
    """Return how the weights come about, in the records' own coordinates."""
    laws, _ = tilt.law(budget).laws(tilt.regularization, problem.shape)
    return TiltLaw(
        problem.objective,
        problem.objective.loss.lipschitz,
        None,
        tilt.regularization + tilt.steadying,
        tilt.std(problem.dimension) / tilt.row_scale,
        laws.output_std,
    )


def _check_certifiable(problem: Problem, tilt: Tilt, budget: Budget) -> None:
    """Refuse a public number of records so large that a certificate is not to be expected.

    The solver stops at half of what is to be certified, and rounding at weights of a usual length
    must be below the other half. It would be found out after the charge, too, and what was paid
    would be lost.
    """
    objective, n = problem.objective, problem.objective.bounds.total_weight
    if n is None:
        return
    _, tolerance = tilt.law(budget).laws(tilt.regularization, problem.shape)
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
            f"{type(objective.loss).__name__} has no bounded slope; use HuberLoss, which is the "
            "squared loss with clipped residuals, or 'sufficient_statistics'."
        )


def _check_relation(problem: Problem, budget: Budget, *, is_pure: bool) -> None:
    loss = problem.objective.loss
    if budget.relation is Relation.REPLACE and not (is_pure or loss.monotone):
        raise CannotSolve(
            f"objective perturbation with {type(loss).__name__} is proved for ADD_REMOVE only; "
            "use 'noisy_gradient' under REPLACE, or a pure budget."
        )


def _least_tilt(
    problem: Problem, budget: Budget, lam: float, kind: type[Tilt], *, open_ridge: bool
) -> Tilt:
    objective = problem.objective
    asked = kind.asking(
        budget,
        count=open_ridge and objective.bounds.total_weight is None,
        trace=open_ridge and can_shrink(problem),
        moment=open_ridge and may_turn(problem, budget, problem.n_records),
    )

    facts = problem.facts(budget.relation)

    def family(noise: float) -> Event:
        return minimizer_event(kind(lam, noise, **asked), objective, budget, facts)

    parts = asked_events(kind(lam, 1.0, **asked), facts)
    return kind(lam, _least_noise(family, budget, kind, parts, objective.lipschitz), **asked)


def _risk(problem: Problem, tilt: Tilt) -> float:
    ridge = tilt.regularization + tilt.steadying
    return problem.risk_of_noise(tilt.squared_norm(problem.dimension) / tilt.row_scale**2, ridge)


def _quick_noise(problem: Problem, budget: Budget, lam: float, kind: type[Tilt]) -> float:
    """Return the least noise of the main event alone, which has a closed form and is fast."""
    objective, facts = problem.objective, problem.facts(budget.relation)

    def family(noise: float) -> Event:
        return kind(lam, noise).main_event(objective, facts)

    return _least_noise(family, budget, kind, (), objective.lipschitz)


def _least_noise(
    family: Callable[[float], Event],
    budget: Budget,
    kind: type[Tilt],
    parts: tuple[Event, ...],
    guess: float,
) -> float:
    """Return the least noise within the budget, beside its parts; sphere noise needs no delta."""
    within = replace(budget, delta=0.0) if kind is SphereTilt else budget
    return least_rest(family, within, parts, guess=guess)


def _choose_regularization(problem: Problem, budget: Budget, kind: type[Tilt]) -> float:
    """Return the lam with the least predicted risk, on a grid of factors of 1.25.

    Less regularization means more noise for the Jacobian, more means more bias; and lam is kept
    at least noise_std R / (2 score unit), where the noise alone moves scores by a few units.
    """
    objective = problem.objective
    is_pure = kind is SphereTilt
    unit = steep(objective, kind(1.0, 1.0).units)
    free = objective.loss.free_regularization(objective.row_norm, budget.epsilon)
    if free is not None and not is_pure:  # no need to search
        reach = moved(budget.relation) / gaussian_mu(budget.epsilon, budget.delta)
        return max(free, unit * reach * objective.lipschitz)
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
    """Return the ridge with which what a record does to the curvature costs a little of epsilon.

        r log(1 + T / (r lam)) = epsilon / 20

    More would be for the number of records that is assumed, and there may be fewer.
    """
    rank = objective.loss.hessian_rank
    jacobian = _FOR_CURVATURE * budget.epsilon / rank
    return objective.hessian_trace / rank / math.expm1(min(jacobian, _LARGE))
