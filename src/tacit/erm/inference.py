"""A share of the budget kept for standard errors: two matrices, released at the released weights.

    H = sum d2 x x'      the Hessian; a record adds at most beta R^2 in Frobenius norm
    M = sum d1^2 x x'    the squared gradients, at most L^2; left out where it equals H

First it is asked how large records' parts of H are, so that noise is for these
(docs/proofs/inference.md, section 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.erm.clipping import asked
from tacit.erm.laws import Errors, Law, Solved, TiltLaw
from tacit.erm.matrices import hessian, squares
from tacit.erm.objective import Objective
from tacit.erm.plan import CannotSolve, Mechanism, NoiseError, Plan, Problem, receipt
from tacit.erm.planner import choose_plan
from tacit.erm.sets import WholeSpace
from tacit.erm.standard_errors import Middle, Noisy, Total, errors_of
from tacit.noise import Release, Source, secure_source
from tacit.privacy import Budget, Composed, Event, Gaussian, Guarantee
from tacit.privacy.gaussian_profile import gaussian_epsilon, gaussian_mu
from tacit.records import RecordSource

Array = npt.NDArray[np.float64]

# How the share is divided among what is asked first, H and M. H is inverted, M is not; and of what
# is asked first only sums are needed.
_ASKED, _HESSIAN, _SQUARES = 0.1, 0.6, 0.3
# The weights' part is tried until the whole costs between this share of the budget and all of it.
_TIGHT = 0.999
_MOST_TRIES = 20


@dataclass(frozen=True)
class PlanWithErrors(Plan):
    """A plan for the weights within a part of a budget, and for their errors within the rest.

    What is asked first, H and M have a part each; None where the matrix is known without.
    """

    weights: Plan = field(kw_only=True)
    asked: Gaussian = field(kw_only=True)
    hessian: Gaussian | None = field(kw_only=True)
    squares: Gaussian | None = field(kw_only=True)

    def solve(self, records: RecordSource, source: Source | None) -> Release[Array]:
        """Release the weights, then at them the matrices; standard errors follow."""
        source = secure_source() if source is None else source
        solved = self.weights.solve(records, source)
        law = solved.law if isinstance(solved, Solved) else None
        assert law is not None, "a mechanism that has one"
        at, events, middle = np.asarray(solved.value), [solved.event], None
        curvature, turning, costs = self._curvature(law, at, records, source)
        events += costs
        if self.squares is not None:
            matrix, total, event = squares(law, at).noisy(records, self.squares, source)
            events.append(event)
            middle = Middle(matrix, total, turning)
        return Solved(at, receipt(events, self.event), law, errors_of(at, law, curvature, middle))

    def _curvature(
        self, law: Law, at: Array, records: RecordSource, source: Source
    ) -> tuple[Noisy, Total, list[Event]]:
        """Return H, the sum of second derivatives, and what they cost."""
        statistic = hessian(law, at)
        curve, event = asked(statistic, records, self.asked, source)
        if self.hessian is None:
            assert law.gram is not None, "a mechanism that released it"
            return Noisy(law.gram, 0.0), curve.total, [event]
        limit = curve.limit(self.hessian.noise_multiplier, at.size)
        clipped = replace(statistic, has_total=False, most=limit)
        matrix, _, cost = clipped.noisy(records, self.hessian, source)
        return matrix, curve.total, [event, cost]

    def noise_in_words(self, number: Callable[[float], str]) -> str:
        """Return what the weights' own plan says."""
        return self.weights.noise_in_words(number)

    def noise_error(self, weight_norm: float | None) -> NoiseError:
        """Return what the weights' own plan says."""
        return self.weights.noise_error(weight_norm)


def plan_with_errors(
    problem: Problem, budget: Budget, mechanism: str | Mechanism, share: float
) -> Plan:
    """Return a plan that keeps a share of the budget's mu^2 for standard errors; all of it if 0.

    Raises
    ------
    CannotSolve
        If standard errors are not derived for the problem or the mechanism.

    Examples
    --------
    >>> from tacit.erm import Objective, Problem
    >>> from tacit.erm.inference import plan_with_errors
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Budget, Guarantee
    >>> from tacit.records import Bounds
    >>> problem = Problem(Objective(LogisticLoss(), Bounds()), n_features=20)
    >>> plan = plan_with_errors(problem, Budget(1.0, 1e-6), "auto", 0.1)
    >>> 0.999 <= Guarantee(plan.event).epsilon(1e-6) <= 1.0
    True
    """
    if not share:
        return choose_plan(problem, budget, mechanism)
    check_has_errors(problem.objective, budget, share)
    # what records of one person say together has other errors than these
    told = replace(problem, even_ridge=True, one_each=True), budget, mechanism, share
    try:
        hash(told)
    except TypeError:  # a mechanism that holds an array cannot be remembered
        return _searched(*told)
    return _remembered(*told)


def _searched(problem: Problem, budget: Budget, mechanism: str | Mechanism, share: float) -> Plan:
    """Return the plan that `plan_with_errors` describes."""
    # What is left is searched for on the scale of mu^2, on which costs nearly add up.
    spendable = gaussian_mu(budget.epsilon, budget.delta) ** 2
    left, found = spendable * (1 - share), None
    for _ in range(_MOST_TRIES):
        epsilon = gaussian_epsilon(math.sqrt(left), budget.delta)
        weights = choose_plan(problem, replace(budget, epsilon=epsilon), mechanism)
        whole = _together(weights, budget, share)
        cost = Guarantee(whole.event).epsilon(budget.delta)
        if cost <= budget.epsilon:
            found = whole
            if cost >= _TIGHT * budget.epsilon:
                return whole
        # a hair less than would do, so that rounding does not matter
        left -= gaussian_mu(cost, budget.delta) ** 2 - spendable * (1 - 1e-9)
        if left <= 0.0:
            break
    if found is None:
        raise CannotSolve(
            f"no plan for weights and standard errors was found within {budget}; choose a smaller "
            "inference share, or another mechanism."
        )
    return found


# It follows from public facts alone, and the search takes a while: worked out once.
_remembered = lru_cache(maxsize=256)(_searched)


def _together(weights: Plan, budget: Budget, share: float) -> PlanWithErrors:
    """Return the plan of weights with that of the matrices they still need."""
    mechanism = weights.mechanism
    if not mechanism.has_law:
        raise CannotSolve(
            f"standard errors are not derived for {mechanism.name}; choose "
            "'objective_perturbation', 'noisy_gradient' or, for least squares, "
            "'sufficient_statistics', or set inference=0."
        )
    first, second, third = _parts(weights, budget, share)
    needed = [part for part in (first, second, third) if part is not None]
    return PlanWithErrors(
        mechanism=mechanism,
        problem=weights.problem,
        budget=budget,
        event=Composed((weights.event, *needed)),
        excess_risk=weights.excess_risk,
        reason=weights.reason,
        settings={
            **weights.settings,
            "inference_noise_multiplier": min(part.noise_multiplier for part in needed),
        },
        rejected=weights.rejected,
        weights=weights,
        asked=first,
        hessian=second,
        squares=third,
    )


def _parts(
    weights: Plan, budget: Budget, share: float
) -> tuple[Gaussian, Gaussian | None, Gaussian | None]:
    """Divide the share of mu^2 among what is asked first, H and M, as far as they are needed."""
    of_hessian = 0.0 if weights.mechanism.uses_moments else _HESSIAN
    of_squares = 0.0 if weights.problem.objective.loss.is_likelihood else _SQUARES
    in_all = _ASKED + of_hessian + of_squares
    whole = share * gaussian_mu(budget.epsilon, budget.delta) ** 2 / in_all

    def part(size: float) -> Gaussian:
        return Gaussian(1 / math.sqrt(whole * size), budget.relation)

    return (
        part(_ASKED),
        part(of_hessian) if of_hessian else None,
        part(of_squares) if of_squares else None,
    )


def check_share(share: float, most: float = 1.0) -> None:
    """Refuse what is no share of a budget."""
    if not 0.0 <= share < most:
        raise ValueError(
            f"inference is a share of the budget, from 0 to below {most:g}, got {share!r}; 0.1 is "
            "usual."
        )


def check_gaussian_share(budget: Budget, share: float, most: float = 1.0) -> None:
    """Refuse what `check_share` does, and a budget that has no share for Gaussian noise."""
    check_share(share, most)
    if share and budget.is_pure and not budget.is_infinite:
        raise CannotSolve(
            "standard errors are released with Gaussian noise, which needs delta > 0; set delta, "
            "or inference=0."
        )


def check_has_errors(objective: Objective, budget: Budget, share: float) -> None:
    """Refuse a problem for which standard errors are not derived."""
    check_gaussian_share(budget, share)
    if not objective.is_linear_model or objective.n_outputs > 1:
        raise CannotSolve(
            f"standard errors are derived for losses of one score, not "
            f"{type(objective.loss).__name__}; fit two classes at a time, or set inference=0."
        )
    if not (math.isfinite(objective.smoothness) or budget.is_infinite):
        raise CannotSolve(
            f"{type(objective.loss).__name__} has no bounded second derivative, so there is no "
            "Hessian to go by; use its smooth form, or set inference=0."
        )
    if not isinstance(objective.feasible, WholeSpace):
        raise CannotSolve(
            "standard errors hold inside a constraint, not at its edge; drop it, or set "
            "inference=0."
        )


def errors_without_noise(records: RecordSource, objective: Objective, weights: Array) -> Errors:
    """Return the errors of a minimiser without noise: sampling alone."""
    ridge = objective.regularization or 0.0
    law = TiltLaw(objective, objective.loss.lipschitz, None, ridge)
    matrix, turning = hessian(law, weights).sums(records)
    middle = None
    if not objective.loss.is_likelihood:
        outer, total = squares(law, weights).sums(records)
        middle = Middle(Noisy(outer, 0.0), Total(total, 0.0), Total(turning, 0.0))
    return errors_of(weights, law, Noisy(matrix, 0.0), middle)
