"""Plan the queries behind standard errors, and compute the errors from their answers.

The Hessian was released with noise of a known distribution. Many plausible Hessians are drawn
around it. Each gives an estimate and a variance by the law of the weights, and the interval is that
of their mixture. With small noise the draws agree; with large noise the interval is wide
(docs/proofs/inference.md, section 3).

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
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from tacit.arrays import Array
from tacit.erm.constraints import WholeSpace
from tacit.erm.mechanisms import MECHANISMS
from tacit.erm.minimization import choose_plan
from tacit.erm.objective import Objective
from tacit.erm.plan import (
    CannotSolve,
    Errors,
    Law,
    Mechanism,
    NoiseError,
    PerturbedMinimizerLaw,
    Plan,
    Problem,
    Solved,
)
from tacit.privacy import Budget, Composed, Gaussian, Guarantee
from tacit.privacy.accounting.gaussian_profile import gaussian_epsilon, gaussian_mu
from tacit.queries import GaussianNoise, NoisySum, Session, Slot
from tacit.queries.hessian import ClippedNorms, OuterProducts, SecondDerivatives, SquaredSlopes
from tacit.queries.moments import unpack
from tacit.queries.noise import split_gaussian
from tacit.records import RecordSource

# The 97.5 % quantile of a standard normal variable: 95 % lie within it.
WITHIN = 1.959963984540054
_MOST_DRAWS, _LEAST_DRAWS = 400, 20
_MOST_ENTRIES = 1e6  # of all drawn matrices together; it bounds memory and time
# Prior width without information: scores of the longest rows up to this many score units.
_ANYTHING = 30.0
_ROUNDED, _TINY = 1e-12, 1e-100  # relative rounding of eigenvalues; guard against division by 0
# Bisection finds intervals to 2^-30 of their largest possible width.
_HALVINGS = 30


class Noisy(NamedTuple):
    """A symmetric matrix with isotropic noise; ``std`` is that of a diagonal entry."""

    matrix: Array
    std: float


class Total(NamedTuple):
    """A sum with Gaussian noise of this standard deviation."""

    value: float
    std: float


class Middle(NamedTuple):
    """Squared gradients M: the matrix, and the sums of d1^2 and of d2."""

    matrix: Noisy
    squares: Total
    second_derivatives: Total


def errors_of(weights: Array, law: Law, hessian: Noisy, middle: Middle | None) -> Errors:
    """Return estimates corrected for the ridge, and standard errors with valid coverage.

    Parameters
    ----------
    weights
        The released weights.
    law
        Their asymptotic law.
    hessian
        H, the sum of the records' second derivatives.
    middle
        M, the sum of the records' squared gradients; None if it equals H.
    """
    d = weights.size
    # Seed by the dimension: the same release always gives the same standard errors.
    rng = np.random.default_rng(d)
    spread = hessian.std + (middle.matrix.std if middle is not None else 0.0)
    draws = int(np.clip(_MOST_ENTRIES / d**2, _LEAST_DRAWS, _MOST_DRAWS)) if spread else 1
    least = max(_least_eigenvalue(law, d), _ROUNDED * float(np.abs(hessian.matrix).max()), _TINY)
    eigenvalues, axes = _plausible(hessian, draws, rng)
    eigenvalues = _divisible(eigenvalues, least, law)
    inner = np.swapaxes(axes, -1, -2)
    truth = (inner @ weights) / law.share(eigenvalues)
    between = law.noise(eigenvalues, truth) + least * np.eye(d)  # no information is not certainty
    if middle is None:
        between += eigenvalues[..., :, None] * np.eye(d)
    else:
        plausible = (axes * eigenvalues[..., None, :]) @ inner
        between += inner @ _positive(_middles(middle, hessian, plausible, rng)) @ axes
    # U B U' is the covariance of the truth in the eigenbasis, with U = axes / h.
    inverse_axes = axes / eigenvalues[..., None, :]
    variance = np.maximum(np.sum((inverse_axes @ between) * inverse_axes, axis=-1), 0.0)
    centres = (axes @ truth[..., None])[..., 0]
    # The greatest eigenvalue of the noise is near std sqrt(2 d) (semicircle law).
    stands_out = max(hessian.std * math.sqrt(2 * d), least)
    return _pooled(_estimate(weights, law, hessian, stands_out), centres, np.sqrt(variance))


def _estimate(weights: Array, law: Law, hessian: Noisy, least: float) -> Array:
    """Return the weights corrected for the ridge, as far as H exceeds its noise."""
    eigenvalues, axes = np.linalg.eigh(hessian.matrix)
    share = law.share(_divisible(eigenvalues, least, law))
    result: Array = axes @ ((axes.T @ weights) / share)
    return result


def _plausible(noisy: Noisy, draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of matrices that may underlie the noisy one.

    Noise spreads eigenvalues: by b in the released matrix, and by b again in draws around it. b is
    estimated from the draws and subtracted twice (docs/proofs/inference.md, section 3).
    """
    d = noisy.matrix.shape[0]
    released, axes = np.linalg.eigh(noisy.matrix)
    if not noisy.std:
        return np.broadcast_to(released, (draws, d)), np.broadcast_to(axes, (draws, d, d))
    half = rng.standard_normal(((draws + 1) // 2, d, d))
    noise = np.concatenate([half, -half])[:draws]  # antithetic: the mean is exactly 0
    # variance 1 on the diagonal, 1/2 off it
    symmetric = (noise + np.swapaxes(noise, -1, -2)) / 2
    symmetric[:, np.arange(d), np.arange(d)] = noise[:, np.arange(d), np.arange(d)]
    values, axes = np.linalg.eigh(noisy.matrix - noisy.std * symmetric)
    difference = values.mean(axis=0) - released
    return values - 2 * difference, axes


def _middles(middle: Middle, hessian: Noisy, plausible: Array, rng: np.random.Generator) -> Array:
    """Return plausible matrices of squared gradients, for plausible Hessians.

        M = phi H + k D,   D the released M less phi H,   k = 1 - (noise in D)^2 / ||D||^2

    k is at least 0. M is shrunk towards phi H, its value for homoscedastic errors, as far as D may
    be noise (James and Stein 1961). phi is the sum of d1^2 over the sum of d2.
    """
    squares, second_derivatives, matrix = middle.squares, middle.second_derivatives, middle.matrix
    if not (matrix.std or squares.std):
        return np.broadcast_to(matrix.matrix, plausible.shape)
    draws, d = plausible.shape[:2]
    noise = rng.standard_normal((2, draws))
    over = np.maximum(
        second_derivatives.value - second_derivatives.std * noise[0], _least(second_derivatives)
    )
    phis = np.maximum(squares.value - squares.std * noise[1], _least(squares)) / over
    phi = float(np.median(phis))
    away = matrix.matrix - phi * hessian.matrix
    # d (d + 1) / 2 free entries, each with the noise of M and of phi H
    expected = d * (d + 1) / 2 * (matrix.std**2 + (phi * hessian.std) ** 2)
    expected += float(np.var(phis)) * float(np.sum(hessian.matrix**2))
    factor = max(1 - expected / max(float(np.sum(away**2)), _TINY), 0.0)
    result: Array = phis[:, None, None] * plausible + factor * away
    return result


def _least_eigenvalue(law: Law, d: int) -> float:
    """Return the eigenvalue at which noise alone gives a weight an uninformative error."""
    objective, zero = law.objective, np.zeros(d)
    std = math.sqrt(float(law.noise(zero, zero)[0, 0]))
    return std * objective.gradient_scale / (_ANYTHING * objective.score_unit)


def _least(total: Total) -> float:
    """Return the sum, raised to a positive value that noise may hide."""
    return max(total.std, _TINY)


def _positive(matrices: Array) -> Array:
    values, axes = np.linalg.eigh(matrices)
    result: Array = (axes * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(axes, -1, -2)
    return result


def _divisible(eigenvalues: Array, least: float, law: Law) -> Array:
    """Return eigenvalues that are safe to divide by.

    A Hessian is not negative: eigenvalues that noise made negative carry no information. The noisy
    Gram matrix from which the weights were solved is left unchanged.
    """
    size = np.maximum(np.abs(eigenvalues) if law.gram is not None else eigenvalues, least)
    result: Array = size if law.gram is None else np.copysign(size, eigenvalues)
    return result


def _pooled(estimate: Array, centres: Array, stds: Array) -> Errors:
    """Return the estimate, and the half-width of the mixture's 95 % interval over 1.96."""
    away = centres - estimate
    low, high = np.zeros_like(estimate), np.max(np.abs(away) + 3 * stds, axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(_HALVINGS):
            half = (low + high) / 2
            inside = np.mean(ndtr((half - away) / stds) - ndtr((-half - away) / stds), axis=0)
            short = inside < 2 * ndtr(WITHIN) - 1
            low, high = np.where(short, half, low), np.where(short, high, half)
    return Errors(estimate, high / WITHIN)


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
        hessian, second_derivatives = self._ask_hessian(law, at, session)
        middle = None
        if self.squares is not None:
            matrix, total = _ask_matrix(session, "squares", _squares(law, at), self.squares)
            middle = Middle(matrix, total, second_derivatives)
        return Solved(
            at,
            law,
            errors_of(at, law, hessian, middle),
            count=solved.count,
            slope_bound=solved.slope_bound,
        )

    def _ask_hessian(self, law: Law, at: Array, session: Session) -> tuple[Noisy, Total]:
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
    >>> from tacit.erm.inference import plan_with_errors
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
