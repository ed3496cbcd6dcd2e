"""What released weights have lost to noise and ridge, as far as releases tell.

A plan predicts its excess risk from public facts alone, with what is typical of tables. A fit knows
more: how curved the losses are, how long its weights are and how long their noise is. Of a law
w = P(H) (H w0 + e) (`laws`), of which a share k was kept, direction by direction

    E[excess] = h / 2 (k^2 var + (1 - k h P(h))^2 w0^2)

per record after division by n. How far the truth w0 reaches is what is left of the weights' length
when the noise in it is taken off: E w^2 = (h P(h))^2 w0^2 + var. It is post-processing, and nothing
is decided by it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.erm.laws import Law, TiltLaw
from tacit.erm.objective import Objective
from tacit.erm.plan import MOST_DIRECTIONS, TYPICAL_SHARE, TYPICAL_SPECTRUM, Problem
from tacit.erm.preconditioner import Turned
from tacit.erm.tilts import Tilt
from tacit.erm.turning import USUAL_BEND

Array = npt.NDArray[np.float64]

_SEEN = 0.1  # of the level of noise: below it a moment is lost
_LEAST_CURVED = 0.01  # of the ridge: of directions below that nothing is learned
# Of the sampling error: what bounded slopes let a fit differ from one without bounds.
_OF_SAMPLING = 0.25


def expected_risk(
    law: Law, squared_length: float, n_slopes: int, trace: float, kept: float, n_records: float
) -> float:
    """Return the excess risk per record of slopes of which a law and a share are known.

    Only the trace of H is: its directions, fifty a score at most, are taken to differ as those of a
    typical table do.
    """
    directions = min(n_slopes, MOST_DIRECTIONS * law.objective.n_outputs)
    h = trace / directions * TYPICAL_SPECTRUM
    return _expected(law, h, directions, n_slopes, squared_length, kept, n_records)


def expected_risk_there(
    asked: Turned, there: Problem, tilt: Tilt, found: Array, n_records: float
) -> float:
    """Return the excess risk per record of weights released in the coordinates of a moment.

    The moments there are lam0 (1 - a_j), a_j the eigenvalues of A^2, where they are seen above
    their noise. All of them add up to n r^2, r the rows' root mean square there, which is known
    well: what is left is spread over the others.
    """
    objective, ridge = there.objective, tilt.regularization
    bend = USUAL_BEND * objective.loss.smoothness
    shares = np.linalg.eigvalsh(asked.coordinates.matrix) ** 2
    moments = np.asarray(asked.moment * (1 - shares), dtype=np.float64)
    unseen = moments < _SEEN * asked.moment
    if unseen.any():
        among = int(unseen.sum())
        left = (n_records * asked.row_norm**2 - float(moments[~unseen].sum())) / among
        moments[unseen] = _spread(left, _LEAST_CURVED * ridge / bend, asked.moment, among)
    law = TiltLaw(objective, objective.loss.lipschitz, None, ridge, tilt.std(there.dimension), 0.0)
    length = float(np.sum(found**2))
    return _expected(law, bend * moments, found.size, found.size, length, 1.0, n_records)


def _expected(
    law: Law,
    h: Array,
    directions: int,
    n_slopes: int,
    squared_length: float,
    kept: float,
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
    reach = 2 * directions * float(np.mean(shares**2 / h))
    explains = max(squared_length - noise, unsure) / reach
    loss = objective.loss.guess(objective.bounds)
    if loss is not None:  # no more than a model that knows nothing loses
        explains = min(explains, loss * n_records / directions)
    lost = kept**2 * h * variances / 2 + (1 - kept * shares) ** 2 * explains
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
