"""What is surely noise in released weights is taken off them.

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

from tacit.erm.expecting import expected_risk
from tacit.erm.laws import Law
from tacit.erm.plan import Problem
from tacit.erm.sets import WholeSpace
from tacit.queries import HessianTrace, Noise, NoisySum, Session

Array = npt.NDArray[np.float64]

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
    kept = (1.0 - surely_noise / length) / truth if surely_noise < length else 0.0
    least = 0.0 if math.isfinite(objective.bounds.label_bound) else _LEAST_OF_CLASSES
    kept = min(max(kept, least), 1.0)
    result[:end] *= kept
    risk = expected_risk(law, length, p, p * curvature, kept, n_records)
    return Shrunk(result, risk)
