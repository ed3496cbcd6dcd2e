"""Minimising a perturbed objective to a certified gradient norm.

    G(w) = sum_i loss_i(w) + (lam / 2) ||w||^2 + <b, w>

Newton's method where the Hessian is small, L-BFGS followed by Newton steps solved by conjugate
gradients elsewhere. What counts is the certificate: the gradient norm at the returned point,
computed in double precision over small blocks, plus a bound on its own float error. Failing to
certify is an error, never a retry with fresh noise.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.erm.newton import line_search, newton
from tacit.erm.objective import Objective
from tacit.erm.perturbed import Perturbed
from tacit.erm.sets import WholeSpace
from tacit.queries.minimizer import CertifiedSolver
from tacit.records import RecordSource
from tacit.records.coordinates import Coordinates

Array = npt.NDArray[np.float64]

_NEWTON_DIMENSION = 600
_MAX_STEPS = 60


class NotCertified(RuntimeError):
    """The minimiser's gradient norm could not be brought below what the proof needs."""


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
    """Return what minimises an objective plus <b, w> over records, to a certified gradient norm."""

    def solve(records: RecordSource, b: Array, tolerance: float) -> Array:
        perturbed = Perturbed(objective, records, b, further_ridge, coordinates)
        return minimize_certified(perturbed, np.zeros(b.shape), tolerance)[0]

    return solve


def minimize_exactly(problem: Perturbed, start: Array) -> Array:
    """Return the minimiser as closely as double precision allows; nothing is certified."""
    if not isinstance(problem.objective.feasible, WholeSpace):
        return _projected_descent(problem, start)
    _, gradient = problem.value_and_gradient(start)
    target = 1e-12 * float(np.linalg.norm(gradient))
    if _fits_newton(problem, start):
        start = newton(problem, start, target)
        _, gradient = problem.value_and_gradient(start)
        if float(np.linalg.norm(gradient)) <= 1e4 * target:
            return start  # else it stopped where the Hessian is flat
    return _lbfgs(problem, start, target)


def _projected_descent(problem: Perturbed, w: Array) -> Array:
    """Accelerated projected gradient steps with backtracking (Beck and Teboulle 2009)."""
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
    # L-BFGS stalls when values stop changing in double precision; Newton steps go on from there.
    value, gradient = problem.value_and_gradient(w)
    for _ in range(_MAX_STEPS):
        if float(np.linalg.norm(gradient)) <= target or not _is_smooth(problem.objective):
            break
        step = _newton_cg_step(problem, w, gradient)
        w, value, gradient, moved_on = line_search(problem, w, value, gradient, step)
        if not moved_on:
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
        bend = float(np.vdot(direction, image))
        if bend <= 0.0:  # flat in this direction: nothing to divide by
            break
        alpha = rho / bend
        p = p + alpha * direction
        residual = residual - alpha * image
        new_rho = float(np.vdot(residual, residual))
        if new_rho <= goal:
            break
        direction = residual + (new_rho / rho) * direction
        rho = new_rho
    return p if np.any(p) else residual
