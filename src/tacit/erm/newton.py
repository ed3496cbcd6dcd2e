"""Newton's method with few passes over many records.

The gradient is a pass, the Hessian three to four, and the records are what costs. So

- the start is the minimiser of a sample's objective, found the same way from a smaller sample;
- a Hessian is kept while it cuts the gradient to a third, or is about to get where it should for
  less than a new one costs, the first being the sample's;
- between Hessians the gradients met on the way correct the one that is kept, by the updates of
  Broyden, Fletcher, Goldfarb and Shanno in their two-loop form (Nocedal and Wright 2006,
  algorithm 7.4).

Where it stops is certified elsewhere, over all records: nothing here is part of a proof.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tacit.erm.perturbed import Perturbed

Array = npt.NDArray[np.float64]
Linear = Callable[[Array], Array]

_MAX_STEPS = 60
_KEEP_HESSIAN = 0.3
# What a new one and the step after it cost, in passes.
_HESSIAN_PASSES = 5
# A sample of one in eight costs an eighth; with 20 records a weight its Hessian is within about
# sqrt(1 / 20) of the whole's, good for the better part of a digit a pass.
_THINNING = 8
_RECORDS_A_WEIGHT = 20
# Of the gradient at the start: about what a sample can tell of the whole.
_SAMPLE_ACCURACY = 1e-3


def newton(problem: Perturbed, w: Array, target: float) -> Array:
    """Return a point with a gradient norm of at most ``target``, or as near as steps get."""
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
        at, value, slope, moved_on = line_search(problem, w, value, gradient, step)
        reached = float(np.linalg.norm(slope))
        if not moved_on and is_fresh:
            break
        if not moved_on or _is_slow(norm, reached, target):
            inverse = None
        elif float(np.vdot(at - w, slope - gradient)) > 0.0:
            met.append((at - w, slope - gradient))
        w, gradient, norm = at, slope, reached
    return w


def _is_slow(before: float, now: float, target: float) -> bool:
    """Return whether steps that cut the gradient like this one cost more than a new Hessian."""
    cut = now / before if before else 0.0
    return cut > _KEEP_HESSIAN and now * min(cut, 1.0) ** _HESSIAN_PASSES > target


def _start_from_sample(problem: Perturbed, w: Array) -> tuple[Array, Linear | None]:
    """Return where a sample's objective is least and the inverse Hessian it suggests, if any."""
    if problem.records.count() < _THINNING * _RECORDS_A_WEIGHT * w.size:
        return w, None
    sample = problem.thinned(_THINNING)
    _, gradient = sample.value_and_gradient(w)
    w = newton(sample, w, _SAMPLE_ACCURACY * float(np.linalg.norm(gradient)))
    inverse = _inverse_hessian(sample, w)
    return w, lambda g: inverse(g) / _THINNING


def _corrected(inverse: Linear, met: list[tuple[Array, Array]], gradient: Array) -> Array:
    """Return the inverse Hessian times the gradient, after the updates of the steps met."""
    rest, parts = gradient, list[float]()
    for step, bend in reversed(met):
        parts.append(float(np.vdot(step, rest) / np.vdot(step, bend)))
        rest = rest - parts[-1] * bend
    result = inverse(rest)
    for (step, bend), part in zip(met, reversed(parts), strict=True):
        result = result + (part - float(np.vdot(bend, result) / np.vdot(step, bend))) * step
    return result


def _inverse_hessian(problem: Perturbed, w: Array) -> Callable[[Array], Array]:
    """Return the inverse of the Hessian at w, as a function."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    hessian = problem.hessian(w)
    hessian[np.diag_indices(w.size)] += problem.ridges(w)
    try:
        factor = cho_factor(hessian)
    except LinAlgError:  # singular without a ridge: the least-norm step
        return lambda g: np.asarray(np.linalg.lstsq(hessian, g, rcond=None)[0], dtype=np.float64)
    return lambda g: np.asarray(cho_solve(factor, g), dtype=np.float64)


def line_search(
    problem: Perturbed, w: Array, value: float, gradient: Array, step: Array
) -> tuple[Array, float, Array, bool]:
    """Halve the step until the value falls, or, within float noise of it, the gradient does."""
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
