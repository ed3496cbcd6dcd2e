"""Estimate the excess risk that noise and ridge cost released weights, and shrink them.

A plan predicts its excess risk from public facts alone, with what is typical of tables. A fit knows
more: how curved the losses are, how long its weights are and how long their noise is. Of a law
w = P(H) (H w0 + e) (`laws`), of which a share k was kept, direction by direction

    E[excess] = h / 2 (k^2 var + (1 - k h P(h))^2 w0^2)

per record after division by n. How far the truth w0 reaches is what is left of the weights' length
when the noise in it is taken off: E w^2 = (h P(h))^2 w0^2 + var. It is post-processing, and nothing
is decided by it.

Around the weights w0 that the records ask for, released ones have a known law, w = P(H) (H w0 + e)
(`laws`), with noise e and the private Hessian H. Of p slopes the noise has on average at least the
squared length that it would have if all directions were equally curved,

    E||P e||^2 >= p V(h),   h = trace(H) / p

with V(h) the variance of a weight at curvature h, convex and falling (Jensen). The trace is asked
for with a hundredth of the budget. All but this share of the slopes is taken off:

    (1 - (p + sqrt(2 p)) V / ||w||^2) / (h P(h)),   between 0 and 1

The first factor is that of James and Stein (1961), by which the error falls whatever w0 is for any
multiple of V below 2 (p - 2). Noise of p weights is p V long, give or take sqrt(2 p) V, so that a
model that learned nothing becomes the constant that its intercept is. The second takes back what
the ridge took off already, h P(h) being the share of the truth in the weights; none are made
longer. Where n or epsilon is large V vanishes and nothing is taken off.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.erm.constraints import WholeSpace
from tacit.erm.inference.estimator_law import Law, PerturbedMinimizerLaw
from tacit.erm.mechanisms.objective_perturbation.adapt import TYPICAL_SECOND_DERIVATIVE
from tacit.erm.mechanisms.objective_perturbation.perturbation import PerturbationSettings
from tacit.erm.objective import Objective
from tacit.erm.planning.plan import MOST_DIRECTIONS, TYPICAL_SHARE, TYPICAL_SPECTRUM, Problem
from tacit.erm.preconditioning import Preconditioner
from tacit.queries import HessianTrace, Noise, NoisySum, Session

Array = npt.NDArray[np.float64]

_SEEN = 0.1  # of the level of noise: below it a moment is lost
_LEAST_CURVED = 0.01  # of the ridge: of directions below that nothing is learned
# Of the sampling error: what bounded slopes let a fit differ from one without bounds.
_OF_SAMPLING = 0.25


def expected_risk(
    law: Law, squared_length: float, n_slopes: int, trace: float, retained: float, n_records: float
) -> float:
    """Return the excess risk per record of slopes of which a law and a share are known.

    Only the trace of H is: its directions, fifty a score at most, are taken to differ as those of a
    typical table do.
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
    """Return the excess risk per record of weights released in the coordinates of a moment.

    The moments there are lam0 (1 - a_j), a_j the eigenvalues of A^2, where they are seen above
    their noise. All of them add up to n r^2, r the rows' root mean square there, which is known
    well: what is left is spread over the others.
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
    """Return the same for directions of curvatures h, each of which explains e = h w0^2 / 2.

    Weights that belong to none of them are noise. That the length of noise is itself not known
    better than by its standard deviation is the least that the truth may be.
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
    if loss is not None:  # no more than a model that knows nothing loses
        explains = min(explains, loss * n_records / directions)
    lost = retained**2 * h * variances / 2 + (1 - retained * shares) ** 2 * explains
    slopes = _bounded_slopes(objective, n_slopes, n_records)
    return directions * float(lost.mean()) / n_records + slopes


def _spread(mean: float, low: float, high: float, count: int) -> Array:
    """Return numbers of a mean, even on a logarithmic scale, between two ends where they may be."""
    low = min(low, high)
    if mean >= high or mean <= low:
        return np.full(count, min(max(mean, low), high))
    places = (np.arange(count) + 0.5) / count

    def between(a: float, b: float) -> Array:
        spread: Array = a * (b / a) ** places
        return spread

    raises = float(between(low, high).mean()) < mean  # then the lower end must rise
    least, most = low, high
    for _ in range(50):
        middle = math.sqrt(least * most)
        numbers = between(middle, high) if raises else between(low, middle)
        least, most = (middle, most) if float(numbers.mean()) < mean else (least, middle)
    return between(least, high) if raises else between(low, least)


def _bounded_slopes(objective: Objective, n_slopes: int, n_records: float) -> float:
    """Return what a model of numbers loses because large residuals count for less.

    It differs from least squares by a part of the sampling error, p sigma^2 / 2 n, with sigma^2 / 2
    what cannot be explained.
    """
    loss = objective.loss.guess(objective.bounds)
    if loss is None or not math.isfinite(objective.bounds.label_bound):
        return 0.0
    return _OF_SAMPLING * n_slopes / n_records * (1 - TYPICAL_SHARE) * loss


# Stein's paradox begins with three weights.
_LEAST_SLOPES = 3
# Which class is the likelier does not depend on how long weights are, so that half of them stays:
# noise that cost `MAY_COST` before costs a quarter of it then, less than 2 %.
_LEAST_OF_CLASSES = 0.5


class Shrunk(NamedTuple):
    """Weights, and what was lost as far as the trace of the Hessian tells."""

    weights: Array
    risk: float


def can_shrink(problem: Problem) -> bool:
    """Return whether weights are to be shrunk: the ridge is open and nobody asked for a law."""
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
    """Return released weights without what is surely noise; the intercept is left alone.

    ``n_records`` is the public or released number, for the risk alone.
    """
    objective = law.objective
    trace = session.ask(NoisySum(HessianTrace(objective, weights), noise), slot)
    end = -1 if objective.bounds.intercept else None
    slopes = weights[:end]
    # at least its own noise, below which it says nothing
    most = noise.std(1.0) * objective.loss.hessian_trace * objective.bounds.row_norm**2
    curvature = max(float(np.asarray(trace)), most) / slopes.size
    p, length = slopes.size, float(np.sum(slopes**2))
    surely_noise = min(p + math.sqrt(2 * p), 2 * (p - 2)) * law.variance(curvature)
    truth = law.share(np.array([curvature]))[0]
    result = weights.copy()
    factor = (1.0 - surely_noise / length) / truth if surely_noise < length else 0.0
    least = 0.0 if math.isfinite(objective.bounds.label_bound) else _LEAST_OF_CLASSES
    factor = min(max(factor, least), 1.0)
    result[:end] *= factor
    risk = expected_risk(law, length, p, p * curvature, factor, n_records)
    return Shrunk(result, risk)
