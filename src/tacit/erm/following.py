"""What follows from the number of records: slope, ridge, noise, and how long rows count.

The event charged is that of a plan; what is drawn for a released count costs no more
(docs/proofs/objective_perturbation.md, section 13).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tacit.erm.objective import Objective
from tacit.erm.plan import Problem
from tacit.erm.tilts import Tilt, least_ridge, steep

Array = npt.NDArray[np.float64]

_UP = 1 + 2.0**-50  # so that no float costs more than the plan


def following(
    tilt: Tilt, problem: Problem, n_records: float, at_least: float | None = None
) -> tuple[Problem, Tilt]:
    """Return problem and noise for so many records: slopes may run further where they allow it.

    A constant needs few of them, so that it is rows that go without where the count is noise: what
    is left to them follows from ``at_least``.
    """
    objective, each = problem.objective, tilt.std(problem.dimension) / tilt.noise
    problem = problem.widened(objective.lipschitz / (each * tilt.noise), n_records)
    loss = tilt.suited(problem.objective.loss, objective.bounds)
    problem = replace(problem, objective=replace(problem.objective, loss=loss))
    wide = problem.objective.lipschitz / objective.lipschitz
    noise = tilt.noise * wide * _UP if wide > 1.0 else tilt.noise
    ridge = max(tilt.regularization, steep(objective, tilt.units) * each * noise)
    scale = 1.0
    if not problem.even_ridge:
        scale = problem.row_scale(each * noise, ridge, at_least or n_records)
    if scale < 1.0:  # noise and ridge are in units of rows and of their squares
        size = objective.bounds.length(scale)
        noise, ridge = noise * size * _UP, ridge * size**2 * _UP
    steadying = problem.held(each * noise, ridge, scale, n_records) - ridge
    if problem.even_ridge:
        ridge, steadying = ridge + steadying, 0.0
    followed = replace(
        tilt.with_noise(noise), regularization=ridge, steadying=steadying, row_scale=scale
    )
    return problem.with_regularization(ridge), followed


def lipschitz_of(tilt: Tilt, objective: Objective) -> float:
    """Return L of rows that count as long as a tilt says."""
    return objective.lipschitz * objective.bounds.length(tilt.row_scale)


def scales_of(tilt: Tilt, problem: Problem) -> Array:
    """Return for every weight how long its column counts."""
    return problem.columns(tilt.row_scale, 1.0)


def covers(planned: Tilt, objective: Objective, other: Tilt, wider: Objective) -> bool:
    """Return whether planned noise on an objective costs at least what another on a wider does.

    Only L / noise and curvature / lam count, and the rank of the latter. L and curvature are those
    of rows as long as they count, and lam is the least ridge on weights of such rows: shorter rows
    need a further ridge (`least_ridge`).
    """

    def costs(tilt: Tilt, of: Objective) -> tuple[float, float, float, float]:
        squared = of.bounds.length(tilt.row_scale) ** 2 / least_ridge(tilt)
        return (
            lipschitz_of(tilt, of) / tilt.noise,
            of.smoothness * squared,
            of.hessian_trace * squared,
            float(of.loss.hessian_rank),
        )

    return all(a <= b for a, b in zip(costs(other, wider), costs(planned, objective), strict=True))
