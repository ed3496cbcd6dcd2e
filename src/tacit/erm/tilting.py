"""Minimising a tilted objective and releasing the minimiser: in rows' coordinates, or in others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tacit.erm.following import lipschitz_of, scales_of
from tacit.erm.laws import TiltLaw
from tacit.erm.minimizer import minimize_certified
from tacit.erm.objective import moved, records_gradient
from tacit.erm.perturbed import Perturbed
from tacit.erm.plan import Problem
from tacit.erm.preconditioner import Turned
from tacit.erm.tilts import Tilt
from tacit.noise import Bounded, Norm, Release, Source
from tacit.noise.minimizer import release_minimizer
from tacit.privacy import Budget, Event
from tacit.records import LeverageWeights, RecordSource, ReweightedRecords

Array = npt.NDArray[np.float64]


def tilted(
    problem: Problem,
    tilt: Tilt,
    budget: Budget,
    records: RecordSource,
    event: Event,
    source: Source,
) -> tuple[Release[Array], TiltLaw]:
    """Draw b, minimise, certify and release; and say how the weights came about."""
    objective = problem.objective
    perturbation, tolerance = tilt.perturbation(problem.shape, budget)
    # Of rows a times as long the weights v and their gradient are v / a and a g of these.
    scales = scales_of(tilt, problem)

    def minimize(b: Array) -> Array:
        perturbed = Perturbed(objective, records, b / scales, tilt.steadying)
        return minimize_certified(perturbed, np.zeros(problem.shape), tolerance)[0]

    def implied(weights: Array) -> Bounded:
        total = scales * records_gradient(objective, records, weights)
        return _bounded(total, lipschitz_of(tilt, objective), budget)

    released = release_minimizer(perturbation, minimize, implied, event, source)
    law = TiltLaw(
        objective,
        objective.loss.lipschitz,
        None,
        tilt.regularization + tilt.steadying,
        tilt.std(problem.dimension) / tilt.row_scale,
        perturbation.output_std,
    )
    return released, law


def tilted_there(
    there: Problem,
    turned: Turned,
    tilt: Tilt,
    budget: Budget,
    records: RecordSource,
    event: Event,
    source: Source,
) -> Release[Array]:
    """Do the same in the coordinates of a second moment; what is released are weights in these.

    Records longer there than ``there`` declares count for less, and so do no more than others
    (docs/proofs/objective_perturbation.md, section 14).
    """
    coordinates, length = turned.coordinates, there.objective.row_norm
    weighted = ReweightedRecords(records, LeverageWeights(coordinates, length))
    objective = there.objective
    # of records as they are: their own bounds say how they are clipped and how sums are rounded
    own = replace(objective, bounds=records.bounds)
    perturbation, tolerance = tilt.perturbation(there.shape, budget)

    def minimize(b: Array) -> Array:
        perturbed = Perturbed(own, weighted, b, coordinates=coordinates)
        return minimize_certified(perturbed, np.zeros(there.shape), tolerance)[0]

    def implied(v: Array) -> Bounded:
        total = coordinates.of(records_gradient(own, weighted, coordinates.of(v)))
        return _bounded(total, objective.lipschitz, budget)

    return release_minimizer(perturbation, minimize, implied, event, source)


def _bounded(total: Array, lipschitz: float, budget: Budget) -> Bounded:
    reach = moved(budget.relation) * lipschitz
    return Bounded(total, reach * (1 + 1e-6), Norm.L2, budget.relation)
