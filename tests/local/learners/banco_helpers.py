"""Both learners, their potential, and a compiled loop over reports."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from tacit.local import Banco, PosterBanco
from tacit.local._compiled import machine_code
from tacit.local.learners import (
    LARGEST_LOG,
    log_scale_free_magnitude,
    log_uniform_magnitude,
)
from tacit.local.subgradients import distance_pull

pytest.importorskip("numba")

LEARNERS = [Banco, PosterBanco]
MAGNITUDE = {Banco: log_scale_free_magnitude, PosterBanco: log_uniform_magnitude}
NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)
LARGEST_POINT = math.exp(LARGEST_LOG)


@cache
def compiled(step):
    """Return a loop over reports, each with a pull towards ``target`` added, and one with none."""
    step, pull = machine_code(step), machine_code(distance_pull)

    @machine_code
    def loop(state, reports, numbers, target):
        largest = 0.0
        for i in range(reports.shape[0]):
            report = reports[i]
            if target.size > 0:
                report = report + pull(state.point, target, 0.0, 0.0)
            state = step(state, report, numbers)
            size = np.max(np.abs(state.point)) + np.max(np.abs(state.estimate))
            # a NaN makes every comparison false
            if not size <= 1e30:
                return state, math.inf
            largest = max(largest, size)
        return state, largest

    return loop


NOWHERE = np.empty(0)


def run(learner, reports, target=NOWHERE):
    """Return the state after the reports and the largest coordinate on the way."""
    return compiled(learner.step)(learner.init(reports.shape[1]), reports, learner.settings, target)


def potential(kind, x, y, a):
    """Return psi(x, y) for unit = 1, by 200 nodes."""
    v, w = 0.5 * a * (1.0 + NODES), 0.5 * a * WEIGHTS
    # cosh(v x) exp(-v^2 y) - 1, without cancellation at v = 0
    rise = 2.0 * np.sinh(0.5 * v * x) ** 2 * np.exp(-v * v * y) + np.expm1(-v * v * y)
    if kind is Banco:
        return float(2.0 / math.pi * np.sum(w * rise / v**2))
    return float(np.sum(w * rise) / a)
