"""Objective perturbation: one ordinary minimisation of a randomly tilted objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.counting import noisy_count
from tacit.erm.descending import descended, may_ask, may_descend
from tacit.erm.expecting import expected_risk_there
from tacit.erm.following import covers, following
from tacit.erm.laws import Solved
from tacit.erm.objective import Objective, moved
from tacit.erm.perturbed import slopes_error
from tacit.erm.plan import (
    CannotSolve,
    Mechanism,
    NoiseError,
    Plan,
    Problem,
    receipt,
)
from tacit.erm.sets import WholeSpace
from tacit.erm.shrinking import can_shrink, shrunk
from tacit.erm.tilting import tilted, tilted_there
from tacit.erm.tilts import (
    MOMENT,
    SphereTilt,
    Tilt,
    event_of,
    steep,
    tilt_in,
    tilts_for,
)
from tacit.erm.turning import best_turned, can_certify, may_turn, turned_following
from tacit.noise import Release, Source, secure_source
from tacit.privacy import Budget, BudgetUnreachable, Composed, Event, Relation
from tacit.privacy.gaussian_profile import gaussian_mu
from tacit.records import RecordSource
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
            if public and not tilt.moment(budget.relation):
                problem, tilt = expected
        if not tilt.moment(budget.relation):
            _check_certifiable(problem, tilt, budget)
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=event_of(tilt, problem.objective, budget),
            excess_risk=_risk(*expected),
            reason="one release with pure epsilon; no step size"
            if is_pure
            else "one release; the noise of one Gaussian mechanism; no step size",
            settings=tilt.shown(),
        )

    def predicted(self, plan: Plan, problem: Problem) -> float:
        """Return the risk of what would follow from that count, or of what was planned."""
        tilt = tilt_in(plan)
        if tilt.count_question(plan.budget.relation) or tilt.moment(plan.budget.relation):
            return _risk(*following(tilt, problem, problem.n_predicted))
        return _risk(problem, tilt)

    def solve(self, plan: Plan, records: RecordSource, source: Source | None) -> Release[Array]:
        """Ask how many records there are if that is private, draw b, minimise, certify, release."""
        source = secure_source() if source is None else source
        budget, problem, tilt, events = plan.budget, plan.problem, tilt_in(plan), list[Event]()
        # What is released is charged as planned: following the count only makes it cost less.
        event = Composed((tilt.main(problem.objective, budget), tilt.output(budget)))
        n, at_least = float(problem.n_records), None
        count, moment = tilt.count_question(budget.relation), tilt.moment(budget.relation)
        trace = tilt.trace_question(budget.relation)
        unspent = [trace.event] if trace else []  # where weights are not shrunk
        if count:
            counted = noisy_count(records, count, source)
            events.append(counted.event)
            n, at_least = counted.n_records, counted.at_least
        if moment and may_turn(problem, budget, n):
            asked = MOMENT.ask(problem, records, budget, n, source)
            moment, turned = asked.event, best_turned(asked, tilt, problem, n)
            if turned:
                there, after = turned_following(tilt, problem, turned, n)
            if turned and can_certify(after, problem, turned, budget, n):
                _check_covered(plan, after, there)
                released = tilted_there(there, turned, after, budget, records, event, source)
                # where moments are seen there is little to shrink
                events += [moment, released.event, *unspent]
                found = np.asarray(released.value)
                lost = expected_risk_there(asked, there, after, found, n)
                weights = turned.coordinates.of(found)
                return Solved(weights, receipt(events, plan.event), risk=lost)
            if turned and may_descend(plan, tilt, records):
                weights = descended(plan, tilt, asked, records, n, source)
                events += [moment, event, *unspent]
                return Solved(weights, receipt(events, plan.event))
        if count and may_ask(plan, tilt, records, n):
            weights = descended(plan, tilt, None, records, n, source)
            return Solved(weights, receipt([*events, event, *unspent], plan.event))
        if count or moment:
            problem, tilt = following(tilt, problem, n, at_least)
            _check_covered(plan, tilt, problem)
        released, law = tilted(problem, tilt, budget, records, event, source)
        weights, risk = np.asarray(released.value), None
        if trace:
            weights, cost, risk = shrunk(weights, law, records, trace, n, source)
            events.append(cost)
        events += [released.event, *([moment] if moment else [])]  # spent or not
        return Solved(weights, receipt(events, plan.event), law, risk=risk)

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
        counts = tilt.count_question(plan.budget.relation) is not None
        if (counts and widens) or tilt.moment(plan.budget.relation):
            std = max(std, 1 / steep(objective, tilt.units))
        if tilt.trace_question(plan.budget.relation):
            std *= math.sqrt(2.0)
        return NoiseError(
            std,
            "Error bars show the most that the standard deviation of the noise can be. It is "
            "smaller for a feature that many records tell about; how much smaller depends on "
            "the records, which are private, so it is not stated.",
            is_bound=True,
        )


def _check_covered(plan: Plan, tilt: Tilt, problem: Problem) -> None:
    if not covers(tilt_in(plan), plan.problem.objective, tilt, problem.objective):
        raise RuntimeError("the noise that follows the count costs more than was planned.")


def _check_certifiable(problem: Problem, tilt: Tilt, budget: Budget) -> None:
    """Refuse a public number of records so large that a certificate is not to be expected.

    The solver stops at half of what is to be certified, and rounding at weights of a usual length
    must be below the other half. It would be found out after the charge, too, and what was paid
    would be lost.
    """
    objective, n = problem.objective, problem.objective.bounds.total_weight
    if n is None:
        return
    _, tolerance = tilt.perturbation(problem.shape, budget)
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

    def family(noise: float) -> Event:
        return event_of(kind(lam, noise, **asked), objective, budget)

    return kind(lam, kind.least(family, budget, objective.lipschitz), **asked)


def _risk(problem: Problem, tilt: Tilt) -> float:
    ridge = tilt.regularization + tilt.steadying
    return problem.risk_of_noise(tilt.squared_norm(problem.dimension) / tilt.row_scale**2, ridge)


def _quick_noise(objective: Objective, budget: Budget, lam: float, kind: type[Tilt]) -> float:
    """Return the least noise of the main event alone, which has a closed form and is fast."""

    def family(noise: float) -> Event:
        return Composed((kind(lam, noise).main(objective, budget),))

    return kind.least(family, budget, objective.lipschitz)


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
            noise = _quick_noise(objective, budget, lam, kind)
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
