"""Estimate the excess risk of released weights, and shrink the weights.

A plan predicts its excess risk from public facts and typical tables alone. A fit knows more: the
curvature of the losses, the norm of its weights and the size of their noise. Let the law of the
weights be w = P(H) (H w0 + e) (`estimator_law`), with noise e and the private Hessian H, and let
the weights be multiplied by k. Then, direction by direction,

    E[excess] = h / 2 (k^2 var + (1 - k h P(h))^2 w0^2)

per record after division by n. The size of the truth w0 follows from the norm of the weights less
that of the noise: E w^2 = (h P(h))^2 w0^2 + var. The estimate is post-processing, and nothing
depends on it.

Shrinkage uses the same law. For p slopes, the expected squared norm of the noise is at least that
of equal curvature in all directions:

    E||P e||^2 >= p V(h),   h = trace(H) / p

V(h), the variance of a weight at curvature h, is convex and decreasing (Jensen). The trace is
released with a hundredth of the budget. The slopes are multiplied by

    (1 - (p + sqrt(2 p)) V / ||w||^2) / (h P(h)),   clipped to [0, 1]

The first factor is that of James and Stein (1961): it lowers the error for every w0, for any
multiple of V below 2 (p - 2). The squared norm of the noise of p weights is p V, with standard
deviation sqrt(2 p) V, so that a model without information becomes its constant intercept. The
second factor undoes the shrinkage of the ridge: h P(h) is the share of the truth in the weights.
Weights never grow. For large n or epsilon V vanishes and nothing is shrunk.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.erm.constraints import WholeSpace
from tacit.erm.mechanisms.objective_perturbation.adapt import TYPICAL_SECOND_DERIVATIVE
from tacit.erm.mechanisms.objective_perturbation.perturbation import PerturbationSettings
from tacit.erm.objective import Objective
from tacit.erm.plan import (
    MOST_DIRECTIONS,
    TYPICAL_SHARE,
    TYPICAL_SPECTRUM,
    Law,
    PerturbedMinimizerLaw,
    Problem,
)
from tacit.erm.preconditioning import Preconditioner
from tacit.queries import HessianTrace, Noise, NoisySum, Session

_SEEN = 0.1  # share of the noise level lam0 below which a moment is not visible
_LEAST_CURVED = 0.01  # share of the ridge: directions of smaller curvature learn nothing
# Share of the sampling error by which a bounded loss makes a fit differ from an unbounded one.
_OF_SAMPLING = 0.25


def expected_risk(
    law: Law, squared_length: float, n_slopes: int, trace: float, retained: float, n_records: float
) -> float:
    """Estimate the excess risk per record of shrunk slopes, from their law and the trace of H.

    Only the trace of H is known. Its spectrum is assumed to be that of a typical table, with at
    most fifty directions per score.
    """
    directions = min(n_slopes, MOST_DIRECTIONS * law.objective.n_outputs)
    h = trace / directions * TYPICAL_SPECTRUM
    return _expected(law, h, directions, n_slopes, squared_length, retained, n_records)


def preconditioned_risk(
    preconditioner: Preconditioner,
    preconditioned: Problem,
    perturbation: PerturbationSettings,
    found: Array,
    n_records: float,
) -> float:
    """Estimate the excess risk per record of weights released in preconditioned coordinates.

    The moments in these coordinates are lam0 (1 - a_j), with a_j the eigenvalues of A^2, if they
    exceed their noise. Their sum is n r^2, with r the root mean square of the rows, which is known
    accurately. The remainder of the sum is spread over the moments below the noise.
    """
    objective, ridge = preconditioned.objective, perturbation.regularization
    second_derivative = TYPICAL_SECOND_DERIVATIVE * objective.loss.smoothness
    shares = np.linalg.eigvalsh(preconditioner.coordinates.matrix) ** 2
    moments = np.asarray(preconditioner.moment * (1 - shares), dtype=np.float64)
    unseen = moments < _SEEN * preconditioner.moment
    if unseen.any():
        among = int(unseen.sum())
        left = (n_records * preconditioner.row_norm**2 - float(moments[~unseen].sum())) / among
        moments[unseen] = _spread(
            left, _LEAST_CURVED * ridge / second_derivative, preconditioner.moment, among
        )
    law = PerturbedMinimizerLaw(
        objective,
        objective.loss.lipschitz,
        None,
        ridge,
        perturbation.std(preconditioned.dimension),
        0.0,
    )
    length = float(np.sum(found**2))
    return _expected(
        law, second_derivative * moments, found.size, found.size, length, 1.0, n_records
    )


def _expected(
    law: Law,
    h: Array,
    directions: int,
    n_slopes: int,
    squared_length: float,
    retained: float,
    n_records: float,
) -> float:
    """Estimate the excess risk for directions of curvatures h; each explains e = h w0^2 / 2.

    Weights outside these directions are noise. The truth is at least one standard deviation of the
    noise's squared norm, since a smaller truth cannot be distinguished from noise.
    """
    objective = law.objective
    shares = law.share(h)
    variances = np.array([law.variance(float(each)) for each in h])
    idle = law.variance(1e-9 * float(h.min())) if directions < n_slopes else 0.0
    noise = directions * float(variances.mean()) + (n_slopes - directions) * idle
    unsure = math.sqrt(2 / n_slopes) * noise
    distance = 2 * directions * float(np.mean(shares**2 / h))
    explains = max(squared_length - noise, unsure) / distance
    loss = objective.loss.guess(objective.bounds)
    if loss is not None:  # at most the loss of a model without information
        explains = min(explains, loss * n_records / directions)
    lost = retained**2 * h * variances / 2 + (1 - retained * shares) ** 2 * explains
    slopes = _bounded_slopes(objective, n_slopes, n_records)
    return directions * float(lost.mean()) / n_records + slopes


def _spread(mean: float, low: float, high: float, count: int) -> Array:
    """Return log-spaced values in [low, high] with the given mean."""
    low = min(low, high)
    if mean >= high or mean <= low:
        return np.full(count, min(max(mean, low), high))
    places = (np.arange(count) + 0.5) / count

    def between(a: float, b: float) -> Array:
        spread: Array = a * (b / a) ** places
        return spread

    raises = float(between(low, high).mean()) < mean  # then raise the lower end
    least, most = low, high
    for _ in range(50):
        middle = math.sqrt(least * most)
        numbers = between(middle, high) if raises else between(low, middle)
        least, most = (middle, most) if float(numbers.mean()) < mean else (least, middle)
    return between(least, high) if raises else between(low, least)


def _bounded_slopes(objective: Objective, n_slopes: int, n_records: float) -> float:
    """Estimate the excess risk of a regression from its bounded loss.

    Large residuals count for less, so the fit differs from least squares by a share of the sampling
    error p sigma^2 / 2 n, with sigma^2 / 2 the unexplained loss.
    """
    loss = objective.loss.guess(objective.bounds)
    if loss is None or not math.isfinite(objective.bounds.label_bound):
        return 0.0
    return _OF_SAMPLING * n_slopes / n_records * (1 - TYPICAL_SHARE) * loss


# James-Stein shrinkage lowers the error from three weights on.
_LEAST_SLOPES = 3
# Classifiers keep at least half: the sign of a score does not depend on the norm of the weights.
# Noise that cost `MAY_COST` before then costs a quarter of it, less than 2 %.
_LEAST_OF_CLASSES = 0.5


class Shrunk(NamedTuple):
    """Shrunk weights, and their excess risk as estimated from the trace of the Hessian."""

    weights: Array
    risk: float


def can_shrink(problem: Problem) -> bool:
    """Return whether weights are shrunk: the ridge is not set and no law is requested."""
    objective = problem.objective
    slopes = problem.n_features * objective.n_outputs
    return (
        objective.is_linear_model
        and objective.regularization is None
        and math.isfinite(objective.hessian_trace)
        and isinstance(objective.feasible, WholeSpace)
        and not problem.even_ridge
        and slopes >= _LEAST_SLOPES
    )


def shrunk(
    weights: Array,
    law: Law,
    session: Session,
    noise: Noise,
    slot: str,
    n_records: float,
) -> Shrunk:
    """Shrink released weights by their estimated noise; the intercept is unchanged.

    ``n_records``, public or released, is used for the risk alone.
    """
    objective = law.objective
    trace = session.ask(NoisySum(HessianTrace(objective, weights), noise), slot)
    end = -1 if objective.bounds.intercept else None
    slopes = weights[:end]
    # at least its own noise: a smaller trace carries no information
    most = noise.std(1.0) * objective.loss.hessian_trace * objective.bounds.row_norm**2
    eigenvalue = max(float(np.asarray(trace)), most) / slopes.size
    p, length = slopes.size, float(np.sum(slopes**2))
    surely_noise = min(p + math.sqrt(2 * p), 2 * (p - 2)) * law.variance(eigenvalue)
    truth = law.share(np.array([eigenvalue]))[0]
    result = weights.copy()
    factor = (1.0 - surely_noise / length) / truth if surely_noise < length else 0.0
    least = 0.0 if math.isfinite(objective.bounds.label_bound) else _LEAST_OF_CLASSES
    factor = min(max(factor, least), 1.0)
    result[:end] *= factor
    risk = expected_risk(law, length, p, p * eigenvalue, factor, n_records)
    return Shrunk(result, risk)
