"""A tilted objective in the coordinates that a second moment of the rows asks for.

Noise of equal size in every direction, for rows of length R, costs R^2 sum 1 / m_j, m_j the second
moments of the rows. In coordinates A x in which all moments are about equal rows have a mean square
of r^2, and noise for that length costs about d^2 / n, whatever the m_j are and however much longer
than usual rows may be: the least there is, since sum a_j m_j sum 1 / (a_j m_j) >= d^2.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tacit.erm.perturbed import turning_error
from tacit.erm.plan import Problem
from tacit.erm.preconditioner import Turned
from tacit.erm.tilts import MOMENT, Tilt, steep
from tacit.privacy import Budget

_UP = 1 + 2.0**-50  # so that no float costs more than the plan
_MOST_COLUMNS = 600  # of which a Hessian is formed, and a second moment asked for
# Moments are worth asking for where an even table's would not be far below their noise: it is then
# still seen how long rows are.
_BELOW_NOISE = 4.0
_UNIT, _FAR, _ROOM = 2.0**-53, 100.0, 8.0
USUAL_BEND = 0.5  # of how much a slope may bend
_SEEN = 0.1  # of the level of noise: below it a moment is taken for that


def may_turn(problem: Problem, budget: Budget, n_records: float) -> bool:
    """Return whether the rows' second moment is worth its noise, for so many records."""
    small = problem.n_features <= _MOST_COLUMNS and not problem.even_ridge
    return small and not budget.is_pure and MOMENT.pays(problem, budget, n_records, _BELOW_NOISE)


def best_turned(turned: Turned, tilt: Tilt, problem: Problem, n_records: float) -> Turned | None:
    """Return coordinates with the length that counts in full there, or None to leave rows alone.

    Rows count in full up to their root mean square, further where noise is small, so that with more
    records or budget ever fewer count for less. Slopes that saturate at k cost about 1 / k^4, rows
    that count for less beyond r about 1 / r^4, and noise (k r d / (mu n))^2: all together are least
    for k r that grows like the square root of mu n / d. Slopes have the cube root (`widening`), so
    that rows are left a sixth root. Noise for that length r costs

        r^2 sum (1 / lam0 + 1 / m_j),   and R^2 sum 1 / m_j if rows are left as they are

    with lam0 the level of the noise in the moments, which are known above a tenth of it.
    """
    longest, lam0 = problem.objective.row_norm, turned.moment
    further = math.sqrt(problem.widening(_mu(tilt, problem), n_records))
    length = min(further * turned.row_norm, longest)
    # the eigenvalues of A^2 are lam0 / (m_j + lam0)
    shares = np.linalg.eigvalsh(turned.coordinates.matrix) ** 2
    moments = np.maximum(lam0 / shares - lam0, _SEEN * lam0)
    there = length**2 * float(np.sum(1 / lam0 + 1 / moments))
    if there >= longest**2 * float(np.sum(1 / moments)):
        return None
    return replace(turned, row_norm=length)


def turned_following(
    tilt: Tilt, problem: Problem, turned: Turned, n_records: float
) -> tuple[Problem, Tilt]:
    """Return problem and noise in other coordinates, for so many records.

    Noise and ridge are for rows as long as they count there. But along a direction that no record
    has a row may be as long as declared, and squares do not forgive: of numbers the ridge is no
    less than in the rows' own coordinates, or than what one record of that length usually bends,
    which holds a direction that all records together know less of than one might.
    """
    objective, each = problem.objective, tilt.std(problem.dimension) / tilt.noise
    there = turned.problem(problem.widened(_mu(tilt, problem), n_records))
    size = there.objective.row_norm / objective.row_norm
    noise = tilt.noise * _UP * (there.objective.lipschitz / objective.lipschitz) * _UP
    alone = 0.0
    if math.isfinite(objective.bounds.label_bound):
        alone = min(tilt.regularization, USUAL_BEND * objective.smoothness)
    ridge = max(
        tilt.regularization * size**2 * _UP,  # what the event asks for
        alone,
        steep(objective, tilt.units) * each * noise,
        there.steady_ridge(each * noise, n_records),
    )
    followed = replace(tilt.with_noise(noise), regularization=ridge, steadying=0.0, row_scale=1.0)
    return there.with_regularization(ridge), followed


def can_certify(
    tilt: Tilt, problem: Problem, turned: Turned, budget: Budget, n_records: float
) -> bool:
    """Return whether so many records leave room for a certificate in double precision.

    There noise is smaller and with it the gradient norm to certify, and rounding is larger. A fit
    that cannot be certified is an error, so that rows are left alone long before.
    """
    objective = problem.objective
    _, tolerance = tilt.law(budget).laws(tilt.regularization, problem.shape)
    steep, smooth = objective.lipschitz, objective.smoothness
    far = _FAR * objective.score_unit / objective.row_norm
    slopes = n_records * _UNIT * (24 * steep + smooth * (problem.n_features + 5) * far)
    return slopes + turning_error(turned.coordinates, n_records, steep) <= tolerance / _ROOM


def _mu(tilt: Tilt, problem: Problem) -> float:
    return problem.objective.lipschitz / tilt.std(problem.dimension)
