"""What follows from the number of records: slope, ridge, noise, and how long rows count.

The event charged is that of a plan; what is drawn for a released count costs no more
(docs/proofs/objective_perturbation.md, section 13), and the plan's slot refuses what does
(`tacit.queries.CoveredBy`).
"""

from __future__ import annotations

from dataclasses import replace

from tacit.erm.plan import Problem
from tacit.erm.tilts import Tilt, steep

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
