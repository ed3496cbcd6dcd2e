"""Adapt noise, ridge, loss width and preconditioner to the noisy count and second moment.

The plan's event is charged. The noise drawn after the count is known costs no more
(docs/proofs/objective_perturbation.md, section 13), and the plan's slot refuses noise that costs
more (`tacit.queries.CoveredBy`).

Isotropic noise for rows of norm R costs R^2 sum 1 / m_j, with m_j the second moments of the rows.
In coordinates A x with about equal moments, rows have a mean square of r^2, and noise for that norm
costs about d^2 / n. This holds for all m_j and however long the longest rows are. It is the least
possible cost, since sum a_j m_j sum 1 / (a_j m_j) >= d^2.

Noisy gradient descent adapts to the count in its own file, `erm/mechanisms/noisy_gradient.py`.
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
from tacit.erm.objective import Objective
from tacit.erm.plan import Problem
from tacit.erm.preconditioning import Preconditioner
from tacit.erm.solvers import preconditioning_error
from tacit.privacy import Budget

_UP = 1 + 2.0**-50  # rounds noise up, so that float error never makes it cost more than the plan


def adapt_to_count(
    perturbation: PerturbationSettings,
    problem: Problem,
    n_records: float,
    at_least: float | None = None,
) -> tuple[Problem, PerturbationSettings]:
    """Adapt loss width, ridge, noise and row scale to the noisy count.

    The intercept needs few records; if the count is small, the slopes are shrunk instead. Their
    scale is computed from ``at_least``, a lower bound on the count. A ridge that the user declared
    stays, and rows keep their scale: only loss width and noise are adapted.
    """
    objective, each = problem.objective, perturbation.std(problem.dimension) / perturbation.noise
    problem = problem.with_wider_slope(objective.lipschitz / (each * perturbation.noise), n_records)
    loss = perturbation.suited(problem.objective.loss, objective.bounds)
    problem = replace(problem, objective=replace(problem.objective, loss=loss))
    wide = problem.objective.lipschitz / objective.lipschitz
    noise = perturbation.noise * wide * _UP if wide > 1.0 else perturbation.noise
    if problem.declared_ridge:
        return problem, perturbation.with_noise(noise)
    ridge = max(
        perturbation.regularization * _growth_of_curvature(problem, objective),
        ridge_per_noise(objective, perturbation.units) * each * noise,
    )
    scale = 1.0
    if not problem.even_ridge:
        scale = problem.row_scale(each * noise, ridge, at_least or n_records)
    if scale < 1.0:  # noise scales with the row norm, the ridge with its square
        size = objective.bounds.length(scale)
        noise, ridge = noise * size * _UP, ridge * size**2 * _UP
    slope_ridge = problem.held(each * noise, ridge, scale, n_records) - ridge
    if problem.even_ridge:
        ridge, slope_ridge = ridge + slope_ridge, 0.0
    adapted = replace(
        perturbation.with_noise(noise),
        regularization=ridge,
        slope_ridge=slope_ridge,
        row_scale=scale,
    )
    return problem.with_regularization(ridge), adapted


def _growth_of_curvature(wider: Problem, objective: Objective) -> float:
    """Return how many times as large the bound on the second derivative is once widened.

    The event depends on the ridge through its ratio to this bound, so the ridge grows with it.
    """
    growth = wider.objective.loss.smoothness / objective.loss.smoothness
    return growth * _UP if growth > 1.0 else 1.0


_MOST_COLUMNS = 600  # a Hessian is formed and a second moment queried up to this width
# Ask for the second moment only if, for isotropic rows, it is at most 4 times below its noise. Its
# trace, and so the typical row norm, is then still visible.
_BELOW_NOISE = 4.0
# Unit roundoff; the largest expected score, in score units; the margin below the tolerance.
_UNIT, _FAR, _ROOM = 2.0**-53, 100.0, 8.0
TYPICAL_SECOND_DERIVATIVE = 0.5  # share of the greatest second derivative of the loss
_SEEN = 0.1  # share of the noise level lam0 below which moments are raised to it


def may_precondition(problem: Problem, budget: Budget, n_records: float) -> bool:
    """Return whether the second moment of the rows is worth its noise, for this many records."""
    small = problem.n_features <= _MOST_COLUMNS and not problem.even_ridge
    return small and not budget.is_pure and MOMENT.pays(problem, budget, n_records, _BELOW_NOISE)


def best_preconditioner(
    preconditioner: Preconditioner,
    perturbation: PerturbationSettings,
    problem: Problem,
    n_records: float,
) -> Preconditioner | None:
    """Choose the preconditioner and the row clip; None if preconditioning does not pay.

    Rows count in full up to their root mean square, and further if noise is small. With more
    records or budget, ever fewer rows are weighted down. Saturating the loss's gradient at k costs
    about 1 / k^4, weighting rows down beyond r about 1 / r^4, and noise (k r d / (mu n))^2. The sum
    is least if k r grows like the square root of mu n / d. The loss's gradient takes the cube root
    (`widening`), which leaves the sixth root to the rows. Noise for the norm r costs

        r^2 sum (1 / lam0 + 1 / m_j),   and R^2 sum 1 / m_j without preconditioning

    with lam0 the noise level of the moments, which are trusted above a tenth of it.
    """
    longest, lam0 = problem.objective.row_norm, preconditioner.moment
    further = math.sqrt(problem.widening(_mu(perturbation, problem), n_records))
    length = min(further * preconditioner.row_norm, longest)
    # A^2 has the eigenvalues lam0 / (m_j + lam0).
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
    """Adapt problem and noise to the count, in preconditioned coordinates.

    Noise and ridge are scaled to the clipped row norm in these coordinates. In a direction without
    data, however, a row may be as long as declared, and in regression its error is squared. For
    numeric labels the ridge is therefore at least the smaller of two values: the ridge in the
    original coordinates, and the typical second derivative of one record of that norm. This bounds
    the error in directions about which all records together say less than one record could.
    """
    objective, each = problem.objective, perturbation.std(problem.dimension) / perturbation.noise
    wider = problem.with_wider_slope(_mu(perturbation, problem), n_records)
    preconditioned = preconditioner.problem(wider)
    size = preconditioned.objective.row_norm / objective.row_norm
    noise = (
        perturbation.noise * _UP * (preconditioned.objective.lipschitz / objective.lipschitz) * _UP
    )
    alone = 0.0
    if math.isfinite(objective.bounds.label_bound):
        alone = min(perturbation.regularization, TYPICAL_SECOND_DERIVATIVE * objective.smoothness)
    ridge = max(
        # required by the event
        perturbation.regularization * size**2 * _UP * _growth_of_curvature(wider, objective),
        alone,
        ridge_per_noise(objective, perturbation.units) * each * noise,
        preconditioned.stabilizing_ridge(each * noise, n_records),
    )
    adapted = replace(
        perturbation.with_noise(noise), regularization=ridge, slope_ridge=0.0, row_scale=1.0
    )
    return preconditioned.with_regularization(ridge), adapted


def can_certify(
    perturbation: PerturbationSettings,
    problem: Problem,
    preconditioner: Preconditioner,
    budget: Budget,
    n_records: float,
) -> bool:
    """Return whether this many records can be certified in double precision.

    In preconditioned coordinates the noise is smaller, so the tolerance on the gradient norm is
    smaller too, and rounding is larger. A fit that cannot be certified raises an error. The check
    therefore keeps a wide margin (`_ROOM`) before it allows preconditioning.
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
