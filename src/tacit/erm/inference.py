"""A share of the budget kept for standard errors: two matrices, released at the released weights.

    H = sum d2 x x'      the Hessian; a record adds at most beta R^2 in Frobenius norm
    M = sum d1^2 x x'    the squared gradients, at most L^2; left out where it equals H

Both are sums of positive matrices, one a record (docs/proofs/inference.md, section 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tacit.erm.laws import Errors, Law, Solved, TiltLaw, pack, unpack
from tacit.erm.losses.scores import Loss, clip_slopes
from tacit.erm.objective import Objective, needs_fine_sums
from tacit.erm.plan import CannotSolve, Mechanism, NoiseError, Plan, Problem, receipt
from tacit.erm.planner import choose_plan
from tacit.erm.sets import WholeSpace
from tacit.erm.standard_errors import Noisy, errors_of
from tacit.noise import Bounded, Norm, Release, Source, gaussian, secure_source
from tacit.privacy import Budget, Composed, Event, Gaussian, Guarantee, Relation, Repeated
from tacit.privacy.gaussian_profile import gaussian_epsilon, gaussian_mu
from tacit.records import Block, RecordSource

Array = npt.NDArray[np.float64]

_FLOAT_SLACK = 1e-4
# The weights' part is tried until the whole costs between this share of the budget and all of it.
_TIGHT = 0.999
_MOST_TRIES = 20


@dataclass(frozen=True)
class Statistic:
    """A sum of c x x' over the records, with 0 <= c <= size / R^2."""

    coefficients: Callable[[Block], Array]
    size: float

    def exactly(self, records: RecordSource, fine: bool = False) -> Array:
        """Return the sum."""
        (total,) = records.sum(lambda block: (block.gram(self.coefficients(block)),), fine=fine)
        return total

    def noisy(
        self, records: RecordSource, planned: Gaussian, source: Source
    ) -> tuple[Noisy, Event]:
        """Return the sum with symmetric noise, and what it cost."""
        # A record more adds a positive matrix A; another instead, B - A with <A, B> >= 0.
        two = math.sqrt(2.0) if planned.relation is Relation.REPLACE else 1.0
        total = self.exactly(records, needs_fine_sums(records, _FLOAT_SLACK))
        reach = two * self.size * (1 + _FLOAT_SLACK)
        packed = Bounded(pack(total), reach, Norm.L2, planned.relation)
        released = gaussian(packed, planned.noise_multiplier, source)
        matrix = unpack(np.asarray(released.value), total.shape[0])
        return Noisy(matrix, planned.noise_multiplier * reach), released.event


def hessian(law: Law, weights: Array) -> Statistic:
    """Return H at given weights: a slope that is clipped does not turn."""
    loss, limit = _loss(law.objective), law.slope_limit

    def coefficients(block: Block) -> Array:
        # Where a second derivative jumps, rounding shows: scores are a record's own to the bit.
        scores, labels = block.steady_scores(weights), loss.labels(block)
        turning = loss.d2(scores, labels)
        if limit < loss.lipschitz:
            turning = np.where(np.abs(loss.d1(scores, labels)) < limit, turning, 0.0)
        return turning

    return Statistic(coefficients, law.objective.smoothness)


def squares(law: Law, weights: Array) -> Statistic:
    """Return M at given weights."""
    loss, limit = _loss(law.objective), law.slope_limit

    def coefficients(block: Block) -> Array:
        slopes = loss.d1(block.steady_scores(weights), loss.labels(block))
        return clip_slopes(slopes, limit) ** 2

    return Statistic(coefficients, (limit * law.objective.reach) ** 2)


def _loss(objective: Objective) -> Loss:
    loss = objective.loss
    assert isinstance(loss, Loss), "refused by check_has_errors"
    return loss


@dataclass(frozen=True)
class PlanWithErrors(Plan):
    """A plan for the weights within a part of a budget, and for their errors within the rest."""

    weights: Plan = field(kw_only=True)
    each: Gaussian = field(kw_only=True)

    def solve(self, records: RecordSource, source: Source | None) -> Release[Array]:
        """Release the weights, then at them the matrices; standard errors follow."""
        source = secure_source() if source is None else source
        solved = self.weights.solve(records, source)
        law = solved.law if isinstance(solved, Solved) else None
        assert law is not None, "a mechanism that has one"
        at, events, middle = np.asarray(solved.value), [solved.event], None
        if law.gram is not None:
            turning = Noisy(law.gram, 0.0)
        else:
            turning, event = hessian(law, at).noisy(records, self.each, source)
            events.append(event)
        if not law.objective.loss.is_likelihood:
            middle, event = squares(law, at).noisy(records, self.each, source)
            events.append(event)
        errors = errors_of(at, law, turning, middle)
        return Solved(at, receipt(events, self.event), law, errors)

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
    mu = gaussian_mu(budget.epsilon, budget.delta)
    left = gaussian_epsilon(mu * math.sqrt(1 - share), budget.delta)
    found: PlanWithErrors | None = None
    for _ in range(_MOST_TRIES):
        weights = choose_plan(problem, replace(budget, epsilon=left), mechanism)
        whole = _together(weights, budget, share)
        cost = Guarantee(whole.event).epsilon(budget.delta)
        if cost <= budget.epsilon:
            found = whole
            if cost >= _TIGHT * budget.epsilon:
                return whole
        elif found is not None:
            break  # costs do not only grow with what is left; what was found is within
        # aim a hair below, so that rounding does not matter
        left *= budget.epsilon / cost * (1 - 1e-9)
    if found is None:
        raise CannotSolve(
            f"no plan for weights and standard errors was found within {budget}; choose a smaller "
            "inference share, or another mechanism."
        )
    return found


def _together(weights: Plan, budget: Budget, share: float) -> PlanWithErrors:
    """Return the plan of weights with that of the matrices they still need."""
    mechanism, objective = weights.mechanism, weights.problem.objective
    if not mechanism.has_law:
        raise CannotSolve(
            f"standard errors are not derived for {mechanism.name}; choose "
            "'objective_perturbation', 'noisy_gradient' or, for least squares, "
            "'sufficient_statistics', or set inference=0."
        )
    n_matrices = (not mechanism.uses_moments) + (not objective.loss.is_likelihood)
    mu = math.sqrt(share / n_matrices) * gaussian_mu(budget.epsilon, budget.delta)
    each = Gaussian(1 / mu, budget.relation)
    return PlanWithErrors(
        mechanism=mechanism,
        problem=weights.problem,
        budget=budget,
        event=Composed((weights.event, Repeated(each, n_matrices))),
        excess_risk=weights.excess_risk,
        reason=weights.reason,
        settings={**weights.settings, "inference_noise_multiplier": each.noise_multiplier},
        rejected=weights.rejected,
        weights=weights,
        each=each,
    )


def check_has_errors(objective: Objective, budget: Budget, share: float) -> None:
    """Refuse a problem for which standard errors are not derived."""
    if not 0.0 < share < 1.0:
        raise ValueError(
            f"inference is a share of the budget, from 0 to below 1, got {share!r}; 0.1 is usual."
        )
    if budget.is_pure:
        raise CannotSolve(
            "standard errors are released with Gaussian noise, which needs delta > 0; set delta, "
            "or inference=0."
        )
    name = type(objective.loss).__name__
    if not isinstance(objective.loss, Loss) or objective.n_outputs > 1:
        raise CannotSolve(
            f"standard errors are derived for losses of one score, not {name}; fit two classes at "
            "a time, or set inference=0."
        )
    if not math.isfinite(objective.smoothness):
        raise CannotSolve(
            f"{name} has no bounded second derivative, so there is no Hessian to go by; use its "
            "smooth form, or set inference=0."
        )
    if not isinstance(objective.feasible, WholeSpace):
        raise CannotSolve(
            "standard errors hold inside a constraint, not at its edge; drop it, or set "
            "inference=0."
        )


def errors_without_noise(records: RecordSource, objective: Objective, weights: Array) -> Errors:
    """Return the errors of a minimiser without noise: sampling alone."""
    loss, ridge = objective.loss, objective.regularization or 0.0
    law = TiltLaw(objective, loss.lipschitz, None, ridge)
    middle = None
    if not loss.is_likelihood:
        middle = Noisy(squares(law, weights).exactly(records), 0.0)
    return errors_of(weights, law, Noisy(hessian(law, weights).exactly(records), 0.0), middle)
