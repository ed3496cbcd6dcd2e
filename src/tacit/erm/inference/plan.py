"""Plan a share of the budget for standard errors: two matrices at the released weights.

    H = sum d2 x x'      the Hessian; a record adds at most beta R^2 in Frobenius norm
    M = sum d1^2 x x'    the squared gradients, at most L^2; omitted if it equals H

Noisy sums of clipped norms are released first. They give a clipping norm for the records' parts of
H, so that noise is scaled to typical parts (docs/proofs/inference.md, section 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.erm.constraints import WholeSpace
from tacit.erm.inference.estimator_law import Errors, Law, PerturbedMinimizerLaw, Solved
from tacit.erm.inference.standard_errors import Middle, Noisy, Total, errors_of
from tacit.erm.objective import Objective
from tacit.erm.planning.plan import CannotSolve, Mechanism, NoiseError, Plan, Problem
from tacit.erm.planning.planner import MECHANISMS, choose_plan
from tacit.privacy import Budget, Composed, Gaussian, Guarantee
from tacit.privacy.accounting.gaussian_profile import gaussian_epsilon, gaussian_mu
from tacit.queries import GaussianNoise, NoisySum, Session, Slot
from tacit.queries.hessian import ClippedNorms, OuterProducts, SecondDerivatives, SquaredSlopes
from tacit.queries.moments import unpack
from tacit.queries.split_budget import split_gaussian
from tacit.records import RecordSource

Array = npt.NDArray[np.float64]

# Split of the inference share: 10 % clipping sums, 60 % H (it is inverted), 30 % M.
_CLIPPING_NORMS, _HESSIAN, _SQUARES = 0.1, 0.6, 0.3
# The weights' share is searched until the whole plan costs between this share of the budget and
# all of it.
_TIGHT = 0.999
_MOST_TRIES = 20


# A loss to clipping that is accepted in any case; it widens intervals by half of it.
_NEGLIGIBLE = 0.02


@dataclass(frozen=True)
class PlanWithErrors(Plan):
    """A plan for the weights within a part of a budget, and for their errors within the rest.

    The clipping sums, H and M have a slot each; the event of a matrix known otherwise is None.
    """

    weights: Plan = field(kw_only=True)
    clipping_norms: Gaussian = field(kw_only=True)
    hessian: Gaussian | None = field(kw_only=True, default=None)
    squares: Gaussian | None = field(kw_only=True, default=None)

    def slots(self) -> Mapping[str, Slot]:
        """Return the slots of the weights' own plan, of the clipping sums, of H and of M."""
        matrices = {"hessian": self.hessian, "squares": self.squares}
        return {
            "weights": Slot(self.weights.event),
            "clipping norm": Slot(self.clipping_norms),
            **{name: Slot(event) for name, event in matrices.items() if event is not None},
        }

    def solve(self, session: Session) -> Solved:
        """Release the weights, then the matrices at these weights, and compute standard errors."""
        child = session.child("weights", self.weights)
        solved = self.weights.solve(child)
        child.close()
        law, at = solved.law, solved.weights
        assert law is not None, "a mechanism that has one"
        curvature, second_derivatives = self._curvature(law, at, session)
        middle = None
        if self.squares is not None:
            matrix, total = _ask_matrix(session, "squares", _squares(law, at), self.squares)
            middle = Middle(matrix, total, second_derivatives)
        return Solved(at, law, errors_of(at, law, curvature, middle))

    def _curvature(self, law: Law, at: Array, session: Session) -> tuple[Noisy, Total]:
        """Release H, clipped to a chosen norm, and the sum of second derivatives."""
        matrix = _hessian(law, at)
        norms = ClippedNorms(
            matrix.coefficients, matrix.row_norm, matrix.has_matrix, matrix.has_total
        )
        query = NoisySum(norms, GaussianNoise(self.clipping_norms.noise_multiplier))
        noisy, std = np.asarray(session.ask(query, "clipping norm")), query.noise_std(session.facts)
        scale = norms.total_weight
        total = Total(noisy[-1] / scale, std / scale) if scale else Total(0.0, 0.0)
        if self.hessian is None:
            assert law.gram is not None, "a mechanism that released it"
            return Noisy(law.gram, 0.0), total
        multiplier = self.hessian.noise_multiplier
        limit = clipping_norm(norms.limits, noisy[:-1], std, multiplier, at.size)
        clipped = replace(matrix, has_total=False, most=limit)
        return _ask_matrix(session, "hessian", clipped, self.hessian)[0], total

    def noise_in_words(self, number: Callable[[float], str]) -> str:
        """Describe the noise of the weights' own plan."""
        return self.weights.noise_in_words(number)

    def noise_error(self, weight_norm: float | None) -> NoiseError:
        """Return the error bars of the weights' own plan."""
        return self.weights.noise_error(weight_norm)


def _hessian(law: Law, weights: Array) -> OuterProducts:
    """Return the statistic H at given weights; a clipped d1 has second derivative 0."""
    loss = law.objective.loss
    return OuterProducts(
        SecondDerivatives(loss, weights, law.slope_limit),
        law.objective.gradient_scale,
        has_matrix=law.gram is None,
        has_total=not loss.is_likelihood,
    )


def _squares(law: Law, weights: Array) -> OuterProducts:
    """Return the statistic M at given weights."""
    # Clip residuals to the label bound, however wide the loss is.
    limit = min(law.slope_limit, law.objective.bounds.label_bound)
    return OuterProducts(
        SquaredSlopes(law.objective.loss, weights, limit), law.objective.gradient_scale
    )


def _ask_matrix(
    session: Session, slot: str, products: OuterProducts, planned: Gaussian
) -> tuple[Noisy, Total]:
    """Release the matrix with symmetric noise, and the sum of its coefficients c with noise."""
    query = NoisySum(products, GaussianNoise(planned.noise_multiplier))
    noisy, std = np.asarray(session.ask(query, slot)), query.noise_std(session.facts)
    weight = products.total_weight
    total = Total(noisy[-1] / weight, std / weight) if weight else Total(0.0, 0.0)
    return Noisy(unpack(noisy[:-1], session.facts.n_coordinates), std), total


def clipping_norm(limits: Array, sums: Array, std: float, noise_multiplier: float, d: int) -> float:
    """Return the least clipping norm that loses little, for a matrix of d columns.

        loss + its noise <= max(negligible, z limit sqrt(2 d) / (sum / 2 d))

    Noise is proportional to the largest part a record may have, C R^2; most parts are far smaller.
    The second bound compares the norm of the noise with half of an average eigenvalue. The search
    goes from the greatest limit down and stops at the first that loses more
    (docs/proofs/inference.md, section 1).

    Parameters
    ----------
    limits
        Candidate clipping norms, in descending order.
    sums, std
        Noisy sums of min(norm, limit) over the records, and their noise.
    noise_multiplier
        The noise multiplier of the matrix to release.
    d
        The number of columns of the matrix.
    """
    whole = max(float(sums[0]), std)
    hidden = noise_multiplier * limits * math.sqrt(2 * d) * 2 * d / whole
    lost = 1 - sums / whole + std / whole
    lost[0] = 0.0
    bad = np.flatnonzero(lost > np.maximum(hidden, _NEGLIGIBLE))
    return float(limits[bad[0] - 1 if bad.size else -1])


def plan_with_errors(
    problem: Problem, budget: Budget, mechanism: str | Mechanism, share: float
) -> Plan:
    """Return a plan that reserves a share of the budget's mu^2 for standard errors.

    Raises
    ------
    CannotSolve
        If standard errors are not derived for the problem or the mechanism.

    Examples
    --------
    >>> from tacit.erm import Objective, Problem
    >>> from tacit.erm.inference.plan import plan_with_errors
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Budget, Guarantee
    >>> from tacit.records import Bounds
    >>> problem = Problem(Objective(LogisticLoss(), Bounds()), n_features=20)
    >>> plan = plan_with_errors(problem, Budget(1.0, 1e-6), "auto", 0.1)
    >>> 0.999 <= Guarantee(plan.event).epsilon(1e-6) <= 1.0
    True
    """
    check_has_errors(problem.objective, budget, share)
    # Standard errors assume one record per person.
    arguments = replace(problem, even_ridge=True, one_each=True), budget, mechanism, share
    try:
        hash(arguments)
    except TypeError:  # a mechanism that holds an array is not hashable
        return _searched(*arguments)
    return _remembered(*arguments)


def _searched(problem: Problem, budget: Budget, mechanism: str | Mechanism, share: float) -> Plan:
    """Search the plan that `plan_with_errors` describes."""
    # Search the remaining budget on the scale of mu^2, on which costs nearly add up.
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
        # 1e-9 below the exact value, so that rounding cannot exceed the budget
        left -= gaussian_mu(cost, budget.delta) ** 2 - spendable * (1 - 1e-9)
        if left <= 0.0:
            break
    if found is None:
        raise CannotSolve(
            f"no plan for weights and standard errors was found within {budget}; choose a smaller "
            "inference share, or another mechanism."
        )
    return found


# A plan depends on public facts alone, and the search is slow: compute it once.
_remembered = lru_cache(maxsize=256)(_searched)


def _together(weights: Plan, budget: Budget, share: float) -> PlanWithErrors:
    """Combine the plan of the weights with the events of the matrices that are still needed."""
    mechanism = weights.mechanism
    if not mechanism.has_law:
        raise CannotSolve(
            f"standard errors are not derived for {mechanism.name}; choose one of "
            f"{[name for name, kind in MECHANISMS.items() if kind.has_law]}, or set inference=0."
        )
    parts = _parts(weights, budget, share)
    return PlanWithErrors(
        mechanism=mechanism,
        problem=weights.problem,
        budget=budget,
        event=Composed((weights.event, *parts.values())),
        excess_risk=weights.excess_risk,
        reason=weights.reason,
        settings={
            **weights.settings,
            "inference_noise_multiplier": min(part.noise_multiplier for part in parts.values()),
        },
        rejected=weights.rejected,
        weights=weights,
        **parts,
    )


def _parts(weights: Plan, budget: Budget, share: float) -> dict[str, Gaussian]:
    """Divide the share of mu^2 among the clipping sums, H and M, as far as they are needed."""
    sizes = {
        "clipping_norms": _CLIPPING_NORMS,
        "hessian": 0.0 if weights.mechanism.uses_moments else _HESSIAN,
        "squares": 0.0 if weights.problem.objective.loss.is_likelihood else _SQUARES,
    }
    whole = share / sum(sizes.values())
    parts = split_gaussian(budget, {name: whole * size for name, size in sizes.items()})
    return {name: Gaussian(noise.multiplier, budget.relation) for name, noise in parts.items()}


def check_share(share: float, most: float = 1.0) -> None:
    """Refuse a value that is not a share of a budget."""
    if not 0.0 <= share < most:
        raise ValueError(
            f"inference must be a share of the budget, from 0 to below {most:g}, got {share!r}; "
            "0.1 is usual."
        )


def check_gaussian_share(budget: Budget, share: float, most: float = 1.0) -> None:
    """Refuse an invalid share, and a pure budget, which cannot pay for Gaussian noise."""
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
            f"{type(objective.loss).__name__} has no bounded second derivative, so that it has no "
            "Hessian; use its smooth form, or set inference=0."
        )
    if not isinstance(objective.feasible, WholeSpace):
        raise CannotSolve(
            "standard errors hold inside a constraint, not on its boundary; drop it, or set "
            "inference=0."
        )


def errors_without_noise(records: RecordSource, objective: Objective, weights: Array) -> Errors:
    """Return the standard errors of a minimiser without noise, from sampling alone."""
    ridge = objective.regularization or 0.0
    law = PerturbedMinimizerLaw(objective, objective.loss.lipschitz, None, ridge)
    matrix, second_derivatives = _hessian(law, weights).sums(records)
    middle = None
    if not objective.loss.is_likelihood:
        outer, total = _squares(law, weights).sums(records)
        middle = Middle(Noisy(outer, 0.0), Total(total, 0.0), Total(second_derivatives, 0.0))
    return errors_of(weights, law, Noisy(matrix, 0.0), middle)
