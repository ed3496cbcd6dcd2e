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
from tacit.erm.objective import Objective, needs_fine_sums
from tacit.erm.plan import CannotSolve, Mechanism, NoiseError, Plan, Problem, receipt
from tacit.erm.planner import choose_plan
from tacit.erm.sets import WholeSpace
from tacit.erm.standard_errors import Middle, Noisy, Total, errors_of
from tacit.noise import Bounded, Norm, Release, Source, gaussian, secure_source
from tacit.privacy import Budget, Composed, Event, Gaussian, Guarantee, Relation, Repeated
from tacit.privacy.gaussian_profile import gaussian_epsilon, gaussian_mu
from tacit.records import Block, RecordSource

Array = npt.NDArray[np.float64]

_FLOAT_SLACK = 1e-4
# What a sum of c counts beside one of c x x', in units of R^2.
_TOTAL_WEIGHT = 0.5
# The weights' part is tried until the whole costs between this share of the budget and all of it.
_TIGHT = 0.999
_MOST_TRIES = 20


@dataclass(frozen=True)
class Statistic:
    """Sums of c x x' and of c over the records, with 0 <= c <= greatest and ||x|| <= R."""

    coefficients: Callable[[Block], Array]
    greatest: float
    row_norm: float
    has_matrix: bool
    has_total: bool

    def sums(self, records: RecordSource, fine: bool = False) -> tuple[Array, float]:
        """Return both without noise."""

        def of(block: Block) -> tuple[Array, Array]:
            c = self.coefficients(block)
            return block.gram(c) if self.has_matrix else np.zeros((0, 0)), np.array(c.sum())

        matrix, total = records.sum(of, fine=fine)
        return matrix, float(total)

    def noisy(
        self, records: RecordSource, planned: Gaussian, source: Source
    ) -> tuple[Noisy, Total, Event]:
        """Return both with noise, the matrix's symmetric, in one release, and what it cost.

        A record adds (c x x', a R^2 c): at most c R^2 sqrt(1 + a^2) long.
        """
        matrix, total = self.sums(records, needs_fine_sums(records, _FLOAT_SLACK))
        weight = _TOTAL_WEIGHT * self.row_norm**2 * self.has_total
        # A record more adds a vector v; another instead, u - v with <u, v> >= 0.
        two = math.sqrt(2.0) if planned.relation is Relation.REPLACE else 1.0
        length = math.hypot(self.row_norm**2 * self.has_matrix, weight)
        reach = two * self.greatest * length * (1 + _FLOAT_SLACK)
        vector = np.append(pack(matrix), weight * total)
        released = gaussian(
            Bounded(vector, reach, Norm.L2, planned.relation), planned.noise_multiplier, source
        )
        noisy, std = np.asarray(released.value), planned.noise_multiplier * reach
        known = Total(noisy[-1] / weight, std / weight) if weight else Total(0.0, 0.0)
        return Noisy(unpack(noisy[:-1], len(matrix)), std), known, released.event


def hessian(law: Law, weights: Array) -> Statistic:
    """Return H at given weights: a slope that is clipped does not turn."""
    loss = law.objective.loss
    return Statistic(
        lambda block: loss.turning(block, weights, law.slope_limit),
        loss.usual_curvature,
        law.objective.reach,
        has_matrix=law.gram is None,
        has_total=not loss.is_likelihood,
    )


def squares(law: Law, weights: Array) -> Statistic:
    """Return M at given weights."""
    loss = law.objective.loss
    # Residuals beyond the labels' own size are not counted larger, however far the loss goes on.
    limit = min(law.slope_limit, law.objective.bounds.label_bound)
    return Statistic(
        lambda block: loss.squared_slopes(block, weights, limit),
        limit**2,
        law.objective.reach,
        has_matrix=True,
        has_total=True,
    )


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
        curvature, turning, event = hessian(law, at).noisy(records, self.each, source)
        events.append(event)
        if not law.objective.loss.is_likelihood:
            matrix, total, event = squares(law, at).noisy(records, self.each, source)
            events.append(event)
            middle = Middle(matrix, total, turning)
        known = curvature if law.gram is None else Noisy(law.gram, 0.0)
        return Solved(at, receipt(events, self.event), law, errors_of(at, law, known, middle))

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
    problem = replace(problem, even_ridge=True)
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


def _together(weights: Plan, budget: Budget, share: float) -> PlanWithErrors:
    """Return the plan of weights with that of the matrices they still need."""
    mechanism, objective = weights.mechanism, weights.problem.objective
    if not mechanism.has_law:
        raise CannotSolve(
            f"standard errors are not derived for {mechanism.name}; choose "
            "'objective_perturbation', 'noisy_gradient' or, for least squares, "
            "'sufficient_statistics', or set inference=0."
        )
    n_releases = 1 if objective.loss.is_likelihood else 2
    mu = math.sqrt(share / n_releases) * gaussian_mu(budget.epsilon, budget.delta)
    each = Gaussian(1 / mu, budget.relation)
    return PlanWithErrors(
        mechanism=mechanism,
        problem=weights.problem,
        budget=budget,
        event=Composed((weights.event, Repeated(each, n_releases))),
        excess_risk=weights.excess_risk,
        reason=weights.reason,
        settings={**weights.settings, "inference_noise_multiplier": each.noise_multiplier},
        rejected=weights.rejected,
        weights=weights,
        each=each,
    )


def check_share(budget: Budget, share: float, most: float = 1.0) -> None:
    """Refuse what is no share of a budget, or a budget without a Gaussian's share."""
    if not 0.0 <= share < most:
        raise ValueError(
            f"inference is a share of the budget, from 0 to below {most:g}, got {share!r}; 0.1 is "
            "usual."
        )
    if share and budget.relation.by_person:
        raise CannotSolve(
            "standard errors are derived for one record a person; leave unit out, or set "
            "inference=0."
        )
    if share and budget.is_pure and not budget.is_infinite:
        raise CannotSolve(
            "standard errors are released with Gaussian noise, which needs delta > 0; set delta, "
            "or inference=0."
        )


def check_has_errors(objective: Objective, budget: Budget, share: float) -> None:
    """Refuse a problem for which standard errors are not derived."""
    check_share(budget, share)
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
