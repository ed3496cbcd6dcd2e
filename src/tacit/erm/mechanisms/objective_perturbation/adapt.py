"""Adapt noise, ridge, loss width and preconditioner to the noisy count and second moment.

The event charged is that of a plan; what is drawn for a released count costs no more
(docs/proofs/objective_perturbation.md, section 13), and the plan's slot refuses what does
(`tacit.queries.CoveredBy`).

Noise of equal size in every direction, for rows of length R, costs R^2 sum 1 / m_j, m_j the second
moments of the rows. In coordinates A x in which all moments are about equal rows have a mean square
of r^2, and noise for that length costs about d^2 / n, whatever the m_j are and however much longer
than usual rows may be: the least there is, since sum a_j m_j sum 1 / (a_j m_j) >= d^2.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tacit.erm.mechanisms.objective_perturbation.perturbation import (
    MOMENT,
    PerturbationSettings,
    ridge_per_noise,
)
from tacit.erm.planning.plan import Problem
from tacit.erm.preconditioning import Preconditioner
from tacit.erm.solvers.perturbed_objective import preconditioning_error
from tacit.privacy import Budget

_UP = 1 + 2.0**-50  # so that no float costs more than the plan


def adapt_to_count(
    perturbation: PerturbationSettings,
    problem: Problem,
    n_records: float,
    at_least: float | None = None,
) -> tuple[Problem, PerturbationSettings]:
    """Return problem and noise for so many records: slopes may run further where they allow it.

    A constant needs few of them, so that it is rows that go without where the count is noise: what
    is left to them follows from ``at_least``.
    """
    objective, each = problem.objective, perturbation.std(problem.dimension) / perturbation.noise
    problem = problem.with_wider_slope(objective.lipschitz / (each * perturbation.noise), n_records)
    loss = perturbation.suited(problem.objective.loss, objective.bounds)
    problem = replace(problem, objective=replace(problem.objective, loss=loss))
    wide = problem.objective.lipschitz / objective.lipschitz
    noise = perturbation.noise * wide * _UP if wide > 1.0 else perturbation.noise
    ridge = max(
        perturbation.regularization, ridge_per_noise(objective, perturbation.units) * each * noise
    )
    scale = 1.0
    if not problem.even_ridge:
        scale = problem.row_scale(each * noise, ridge, at_least or n_records)
    if scale < 1.0:  # noise and ridge are in units of rows and of their squares
        size = objective.bounds.length(scale)
        noise, ridge = noise * size * _UP, ridge * size**2 * _UP
    slope_ridge = problem.held(each * noise, ridge, scale, n_records) - ridge
    if problem.even_ridge:
        ridge, slope_ridge = ridge + slope_ridge, 0.0
    followed = replace(
        perturbation.with_noise(noise),
        regularization=ridge,
        slope_ridge=slope_ridge,
        row_scale=scale,
    )
    return problem.with_regularization(ridge), followed


_MOST_COLUMNS = 600  # of which a Hessian is formed, and a second moment asked for
# Moments are worth asking for where an even table's would not be far below their noise: it is then
# still seen how long rows are.
_BELOW_NOISE = 4.0
_UNIT, _FAR, _ROOM = 2.0**-53, 100.0, 8.0
TYPICAL_SECOND_DERIVATIVE = 0.5  # of how much a slope may bend
_SEEN = 0.1  # of the level of noise: below it a moment is taken for that


def may_turn(problem: Problem, budget: Budget, n_records: float) -> bool:
    """Return whether the rows' second moment is worth its noise, for so many records."""
    small = problem.n_features <= _MOST_COLUMNS and not problem.even_ridge
    return small and not budget.is_pure and MOMENT.pays(problem, budget, n_records, _BELOW_NOISE)


def best_preconditioner(
    preconditioner: Preconditioner,
    perturbation: PerturbationSettings,
    problem: Problem,
    n_records: float,
) -> Preconditioner | None:
    """Return coordinates with the length that counts in full there, or None to leave rows alone.

    Rows count in full up to their root mean square, further where noise is small, so that with more
    records or budget ever fewer count for less. Slopes that saturate at k cost about 1 / k^4, rows
    that count for less beyond r about 1 / r^4, and noise (k r d / (mu n))^2: all together are least
    for k r that grows like the square root of mu n / d. Slopes have the cube root (`widening`), so
    that rows are left a sixth root. Noise for that length r costs

        r^2 sum (1 / lam0 + 1 / m_j),   and R^2 sum 1 / m_j if rows are left as they are

    with lam0 the level of the noise in the moments, which are known above a tenth of it.
    """
    longest, lam0 = problem.objective.row_norm, preconditioner.moment
    further = math.sqrt(problem.widening(_mu(perturbation, problem), n_records))
    length = min(further * preconditioner.row_norm, longest)
    # the eigenvalues of A^2 are lam0 / (m_j + lam0)
    shares = np.linalg.eigvalsh(preconditioner.coordinates.matrix) ** 2
    moments = np.maximum(lam0 / shares - lam0, _SEEN * lam0)
    preconditioned = length**2 * float(np.sum(1 / lam0 + 1 / moments))
    if preconditioned >= longest**2 * float(np.sum(1 / moments)):
        return None
    return replace(preconditioner, row_norm=length)


def adapt_preconditioned(
    perturbation: PerturbationSettings,
    problem: Problem,
    preconditioner: Preconditioner,
    n_records: float,
) -> tuple[Problem, PerturbationSettings]:
    """Return problem and noise in other coordinates, for so many records.

    Noise and ridge are for rows as long as they count there. But along a direction that no record
    has a row may be as long as declared, and squares do not forgive: of numbers the ridge is no
    less than in the rows' own coordinates, or than what one record of that length usually bends,
    which holds a direction that all records together know less of than one might.
    """
    objective, each = problem.objective, perturbation.std(problem.dimension) / perturbation.noise
    preconditioned = preconditioner.problem(
        problem.with_wider_slope(_mu(perturbation, problem), n_records)
    )
    size = preconditioned.objective.row_norm / objective.row_norm
    noise = (
        perturbation.noise * _UP * (preconditioned.objective.lipschitz / objective.lipschitz) * _UP
    )
    alone = 0.0
    if math.isfinite(objective.bounds.label_bound):
        alone = min(perturbation.regularization, TYPICAL_SECOND_DERIVATIVE * objective.smoothness)
    ridge = max(
        perturbation.regularization * size**2 * _UP,  # what the event asks for
        alone,
        ridge_per_noise(objective, perturbation.units) * each * noise,
        preconditioned.steady_ridge(each * noise, n_records),
    )
    followed = replace(
        perturbation.with_noise(noise), regularization=ridge, slope_ridge=0.0, row_scale=1.0
    )
    return preconditioned.with_regularization(ridge), followed


def can_certify(
    perturbation: PerturbationSettings,
    problem: Problem,
    preconditioner: Preconditioner,
    budget: Budget,
    n_records: float,
) -> bool:
    """Return whether so many records leave room for a certificate in double precision.

    There noise is smaller and with it the gradient norm to certify, and rounding is larger. A fit
    that cannot be certified is an error, so that rows are left alone long before.
    """
    objective = problem.objective
    _, tolerance = perturbation.law(budget).laws(perturbation.regularization, problem.shape)
    lipschitz, smooth = objective.lipschitz, objective.smoothness
    far = _FAR * objective.score_unit / objective.row_norm
    slopes = n_records * _UNIT * (24 * lipschitz + smooth * (problem.n_features + 5) * far)
    return (
        slopes + preconditioning_error(preconditioner.coordinates, n_records, lipschitz)
        <= tolerance / _ROOM
    )


def _mu(perturbation: PerturbationSettings, problem: Problem) -> float:
    return problem.objective.lipschitz / perturbation.std(problem.dimension)
