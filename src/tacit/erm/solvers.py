"""Minimise a perturbed objective to a certified gradient norm.

    G(w) = sum_i loss_i(w) + (lam / 2) ||w||^2 + <b, w>

Newton's method is used if the Hessian is small. Otherwise L-BFGS is followed by Newton steps that
are solved by conjugate gradients.

Passes over the records dominate the cost: a gradient is one pass, a Hessian three to four. Hence

- the start is the minimiser of a sample's objective, found recursively from a smaller sample;
- a Hessian, the first being the sample's, is reused while it cuts the gradient to a third, or will
  reach the target for less than a new one costs;
- between Hessians the observed gradients correct the reused one, by the updates of Broyden,
  Fletcher, Goldfarb and Shanno in their two-loop form (Nocedal and Wright 2006, algorithm 7.4).

The proof uses only the certificate: the gradient norm at the returned point over all records,
computed in double precision over small blocks, plus a bound on its own float error. Failing to
certify is an error, never a retry with fresh noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array
from tacit.erm.constraints import WholeSpace
from tacit.erm.objective import Objective
from tacit.queries.minimizer import CertifiedSolver
from tacit.records import RecordSource
from tacit.records.block import Coordinates

_UNIT = 2.0**-53  # u, the unit roundoff of doubles


@dataclass(frozen=True)
class Perturbed:
    """An objective with a linear perturbation, over given records.

    With ``coordinates`` A it is a function of v, with the weights w = A v. Ridge and perturbation
    apply to v, and the gradient in v is A times the gradient in w.
    """

    objective: Objective
    records: RecordSource
    perturbation: Array
    slope_ridge: float = 0.0  # an additional ridge on every weight except the intercept
    coordinates: Coordinates | None = None  # with eigenvalues of at most 1

    @property
    def ridge(self) -> float:
        """The regularization, which the mechanism must have set."""
        lam = self.objective.regularization
        if lam is None:
            raise ValueError("regularization must be set before minimising.")
        return lam

    def thinned(self, step: int) -> Perturbed:
        """Return G / step, estimated from every ``step``-th record."""
        return Perturbed(
            self.objective.with_regularization(self.ridge / step),
            self.records.every(step),
            self.perturbation / step,
            self.slope_ridge / step,
            self.coordinates,
        )

    def preconditioned(self, vectors: Array) -> Array:
        """Return A times vectors: weights from v, or the gradient in v from the gradient in w."""
        return vectors if self.coordinates is None else self.coordinates.of(vectors)

    def ridges(self, w: Array) -> Array:
        """Return the ridge of every weight."""
        ridges = np.full(w.shape, self.ridge + self.slope_ridge)
        if self.objective.bounds.intercept:
            ridges[-1] = self.ridge
        return ridges

    def value_and_gradient(self, w: Array) -> tuple[float, Array]:
        """Return G and its gradient in one pass over the records."""
        loss, at = self.objective.loss, self.preconditioned(w)
        value, gradient = self.records.sum(lambda block: loss.value_and_gradient(block, at))
        held = self.ridges(w) * w
        total = float(value) + float(np.vdot(held, w)) / 2 + float(np.vdot(self.perturbation, w))
        return total, self.preconditioned(gradient) + held + self.perturbation

    def hessian(self, w: Array) -> Array:
        """Return the Hessian of the losses at w."""
        loss, at = self.objective.loss, self.preconditioned(w)
        (total,) = self.records.sum(lambda block: (loss.hessian(block, at),))
        return self.preconditioned(self.preconditioned(total).T)

    def hessian_times(self, w: Array, direction: Array) -> Array:
        """Return the Hessian of G at w times a direction."""
        loss, at, along = (
            self.objective.loss,
            self.preconditioned(w),
            self.preconditioned(direction),
        )
        (total,) = self.records.sum(lambda block: (loss.hessian_product(block, at, along),))
        return self.preconditioned(total) + self.ridges(w) * direction

    def certified_norm(self, w: Array) -> float:
        """Return an upper bound on the true gradient norm at w."""
        at = self.preconditioned(w)
        (total,) = self.records.sum(lambda b: (self.objective.gradient(b, at),), fine=True)
        gradient = self.preconditioned(total) + self.ridges(w) * w + self.perturbation
        # A sum of k squares has relative error at most k u, its root half of that.
        norm = float(np.linalg.norm(gradient)) * (1 + (gradient.size + 8) * _UNIT)
        return norm + self._float_error(w)

    def _float_error(self, w: Array) -> float:
        # sum_error bounds the sum over records; the last two terms have one rounding each.
        size, bound = float(np.linalg.norm(w)), self.objective.lipschitz
        if not (math.isfinite(self.objective.smoothness) and math.isfinite(bound)):
            return math.inf
        slopes = slopes_error(self.objective, self.records.count(), w.shape[0], size)
        sums = self.records.sum_error(fine=True) * bound
        held = (self.ridge + self.slope_ridge) * size
        ends = 4 * _UNIT * (held + float(np.linalg.norm(self.perturbation)))
        preconditioned = preconditioning_error(self.coordinates, self.records.count(), bound)
        return float(slopes + sums + ends + preconditioned)


def slopes_error(objective: Objective, n_records: float, n_weights: int, size: float) -> float:
    """Bound the effect of rounding in the records' derivatives d1 on a gradient.

    ``size`` is the norm of the weights. Each derivative has three errors: smoothness times the
    score's own error (d + 4) u R ||w||, a few u of itself, and a few u of the terms whose
    difference it is (Poisson: exp(z) <= smoothness). Adding an offset o rounds a score by at most
    u (R ||w|| + |o|); the first term is among the four.
    """
    of_score = objective.smoothness / objective.row_norm
    own = 8 * (objective.lipschitz + of_score) + of_score * objective.loss.largest_offset
    return n_records * _UNIT * (objective.smoothness * (n_weights + 4) * size + own)


def preconditioning_error(coordinates: Coordinates | None, n_records: float, bound: float) -> float:
    """Bound the effect of rounding in products with A on a gradient of norm ``bound`` per record.

    A product with A has an error of at most d u |A| of its argument, with |A| the greatest absolute
    row sum. The norm ||A x|| has the same error. A record's weight (norm / ||A x||)^2 has three
    times that error, relative to the least eigenvalue of A.
    """
    if coordinates is None:
        return 0.0
    matrix = coordinates.matrix
    widest = float(np.abs(matrix).sum(axis=1).max())
    least = float(np.abs(np.linalg.eigvalsh(matrix)).min())
    stretch = widest * (1 + 3 / max(least, 1e-300))
    return 2 * len(matrix) * _UNIT * stretch * n_records * bound


Linear = Callable[[Array], Array]

_MAX_STEPS = 60
_KEEP_HESSIAN = 0.3  # reuse a Hessian while a step cuts the gradient norm to this share
# The cost of a new Hessian and the step after it, in passes.
_HESSIAN_PASSES = 5
# A sample of one record in eight costs an eighth of a pass. With 20 records per weight its Hessian
# is within about sqrt(1 / 20) of the full one, and gains most of a digit per pass.
_THINNING = 8
_RECORDS_A_WEIGHT = 20
# Relative to the gradient at the start: about the accuracy of a sample's minimiser.
_SAMPLE_ACCURACY = 1e-3


def newton(problem: Perturbed, w: Array, target: float) -> Array:
    """Take Newton steps until the gradient norm is at most ``target`` or progress stops."""
    w, inverse = _start_from_sample(problem, w)
    value, gradient = problem.value_and_gradient(w)
    norm, met = float(np.linalg.norm(gradient)), list[tuple[Array, Array]]()
    for _ in range(_MAX_STEPS):
        if norm <= target:
            break
        is_fresh = inverse is None
        if inverse is None:
            inverse, met = _inverse_hessian(problem, w), []
        step = -_corrected(inverse, met, gradient)
        at, value, slope, has_progressed = line_search(problem, w, value, gradient, step)
        reached = float(np.linalg.norm(slope))
        if not has_progressed and is_fresh:
            break
        if not has_progressed or _is_slow(norm, reached, target):
            inverse = None
        elif float(np.vdot(at - w, slope - gradient)) > 0.0:
            met.append((at - w, slope - gradient))
        w, gradient, norm = at, slope, reached
    return w


def _is_slow(before: float, now: float, target: float) -> bool:
    """Return whether further steps with this rate of progress cost more than a new Hessian."""
    cut = now / before if before else 0.0
    return cut > _KEEP_HESSIAN and now * min(cut, 1.0) ** _HESSIAN_PASSES > target


def _start_from_sample(problem: Perturbed, w: Array) -> tuple[Array, Linear | None]:
    """Return the minimiser of a sample's objective and its inverse Hessian, or w and None."""
    if problem.records.count() < _THINNING * _RECORDS_A_WEIGHT * w.size:
        return w, None
    sample = problem.thinned(_THINNING)
    _, gradient = sample.value_and_gradient(w)
    w = newton(sample, w, _SAMPLE_ACCURACY * float(np.linalg.norm(gradient)))
    inverse = _inverse_hessian(sample, w)
    return w, lambda g: inverse(g) / _THINNING


def _corrected(inverse: Linear, met: list[tuple[Array, Array]], gradient: Array) -> Array:
    """Return the inverse Hessian times the gradient, corrected by the BFGS updates in ``met``."""
    rest, parts = gradient, list[float]()
    for step, change in reversed(met):
        parts.append(float(np.vdot(step, rest) / np.vdot(step, change)))
        rest = rest - parts[-1] * change
    result = inverse(rest)
    for (step, change), part in zip(met, reversed(parts), strict=True):
        result = result + (part - float(np.vdot(change, result) / np.vdot(step, change))) * step
    return result


def _inverse_hessian(problem: Perturbed, w: Array) -> Callable[[Array], Array]:
    """Return the inverse of the Hessian at w, as a function."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    hessian = problem.hessian(w)
    hessian[np.diag_indices(w.size)] += problem.ridges(w)
    try:
        factor = cho_factor(hessian)
    except LinAlgError:  # singular without a ridge: take the least-norm step
        return lambda g: np.asarray(np.linalg.lstsq(hessian, g, rcond=None)[0], dtype=np.float64)
    return lambda g: np.asarray(cho_solve(factor, g), dtype=np.float64)


def line_search(
    problem: Perturbed, w: Array, value: float, gradient: Array, step: Array
) -> tuple[Array, float, Array, bool]:
    """Halve the step until the value falls or, within its float error, the gradient norm falls."""
    slope, size = float(np.vdot(gradient, step)), 1.0
    norm = float(np.linalg.norm(gradient))
    for _ in range(40):
        candidate = w + size * step
        new_value, new_gradient = problem.value_and_gradient(candidate)
        noise = 1e-13 * (abs(value) + abs(new_value))
        if new_value <= value + 1e-4 * size * slope and -size * slope > noise:
            return candidate, new_value, new_gradient, True
        if new_value <= value + noise and float(np.linalg.norm(new_gradient)) < norm:
            return candidate, new_value, new_gradient, True
        size /= 2
    return w, value, gradient, False


_NEWTON_DIMENSION = 600  # up to this many weights the Hessian is formed and factorised


class NotCertified(RuntimeError):
    """The minimiser's gradient norm could not be certified to the tolerance of the proof."""


def minimize_certified(problem: Perturbed, start: Array, target: float) -> tuple[Array, float]:
    """Return w with a certified gradient norm of at most ``target``, and that norm.

    Raises
    ------
    NotCertified
        If the norm cannot be brought that low in double precision.
    """
    if _fits_newton(problem, start):
        w = newton(problem, start, target / 2)
    else:
        w = _lbfgs(problem, start, target / 2)
    certified = problem.certified_norm(w)
    if not certified <= target:
        raise NotCertified(
            "the minimiser's gradient norm could not be certified to be at most "
            f"{target:.3g}, which the proof needs. Nothing was released, but the budget is spent. "
            "Raise regularization, or use mechanism='noisy_gradient', which needs no minimiser."
        )
    return w, certified


def certified_solver(
    objective: Objective, *, further_ridge: float = 0.0, coordinates: Coordinates | None = None
) -> CertifiedSolver:
    """Return a solver that minimises an objective plus <b, w> to a certified gradient norm."""

    def solve(records: RecordSource, b: Array, tolerance: float) -> Array:
        perturbed = Perturbed(objective, records, b, further_ridge, coordinates)
        return minimize_certified(perturbed, np.zeros(b.shape), tolerance)[0]

    return solve


def minimize_exactly(problem: Perturbed, start: Array) -> Array:
    """Return the minimiser to double precision, without a certificate."""
    if not isinstance(problem.objective.feasible, WholeSpace):
        return _projected_descent(problem, start)
    _, gradient = problem.value_and_gradient(start)
    target = 1e-12 * float(np.linalg.norm(gradient))
    if _fits_newton(problem, start):
        start = newton(problem, start, target)
        _, gradient = problem.value_and_gradient(start)
        if float(np.linalg.norm(gradient)) <= 1e4 * target:
            return start  # otherwise it stopped at a flat Hessian
    return _lbfgs(problem, start, target)


def _projected_descent(problem: Perturbed, w: Array) -> Array:
    """Take accelerated projected gradient steps with backtracking (Beck and Teboulle 2009)."""
    project = problem.objective.feasible.project
    w = project(w)
    at, step, previous = w, 1.0, w
    for t in range(3000):
        value, gradient = problem.value_and_gradient(at)
        while True:
            w = project(at - step * gradient)
            gap = w - at
            bound = value + float(np.vdot(gradient, gap)) + float(np.vdot(gap, gap)) / (2 * step)
            if problem.value_and_gradient(w)[0] <= bound + 1e-12 * abs(bound) or step < 1e-18:
                break
            step /= 2
        if float(np.linalg.norm(w - previous)) <= 1e-12 * (1 + float(np.linalg.norm(w))) and t > 3:
            break
        at, previous = w + t / (t + 3.0) * (w - previous), w
    return w


def _fits_newton(problem: Perturbed, start: Array) -> bool:
    small = start.ndim == 1 and start.size <= _NEWTON_DIMENSION
    return small and _is_smooth(problem.objective)


def _lbfgs(problem: Perturbed, start: Array, target: float) -> Array:
    from scipy.optimize import minimize

    shape = start.shape

    def flat(w: Array) -> tuple[float, Array]:
        value, gradient = problem.value_and_gradient(w.reshape(shape))
        return value, gradient.ravel()

    found = minimize(
        flat,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": 400,
            "maxfun": 600,
            "maxcor": 20,
            "ftol": 0.0,
            "gtol": target / math.sqrt(start.size),
        },
    )
    w: Array = found.x.reshape(shape)
    # L-BFGS stalls once values stop changing in double precision; Newton steps continue.
    value, gradient = problem.value_and_gradient(w)
    for _ in range(_MAX_STEPS):
        if float(np.linalg.norm(gradient)) <= target or not _is_smooth(problem.objective):
            break
        step = _newton_cg_step(problem, w, gradient)
        w, value, gradient, has_progressed = line_search(problem, w, value, gradient, step)
        if not has_progressed:
            break
    return w


def _is_smooth(objective: Objective) -> bool:
    return objective.is_linear_model and math.isfinite(objective.smoothness)


def _newton_cg_step(problem: Perturbed, w: Array, gradient: Array) -> Array:
    # conjugate gradients on H p = -g, to a tenth of the gradient or 50 products
    p = np.zeros_like(w)
    residual = -gradient
    direction = residual.copy()
    rho = float(np.vdot(residual, residual))
    goal = rho * 1e-4
    for _ in range(50):
        image = problem.hessian_times(w, direction)
        curvature = float(np.vdot(direction, image))
        if curvature <= 0.0:  # flat in this direction: the step length is undefined
            break
        alpha = rho / curvature
        p = p + alpha * direction
        residual = residual - alpha * image
        new_rho = float(np.vdot(residual, residual))
        if new_rho <= goal:
            break
        direction = residual + (new_rho / rho) * direction
        rho = new_rho
    return p if np.any(p) else residual
