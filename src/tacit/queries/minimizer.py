"""Release the minimiser of an objective, with output noise or by objective perturbation.

`RegularizedMinimizer` is a statistic: the minimiser itself, stable by its ridge, to which noise is
added (output perturbation). `PerturbedMinimizer` minimises the objective plus a random linear term
<b, w> (objective perturbation). Its sensitivity is that of the gradient. Noise on the output covers
the gap between a certified point and the exact minimiser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tacit.noise import Norm, Release, Source
from tacit.noise.bounded import Bounded
from tacit.noise.perturbed_minimizer import (
    GaussianPerturbation,
    SpherePerturbation,
    release_minimizer,
)
from tacit.privacy import Composed, Event, Gaussian, PureEpsilon, PureObjective
from tacit.queries.base import Array, Facts, Private, Sensitivity
from tacit.queries.gradient import Differentiable
from tacit.records import RecordSource
from tacit.records.block import Coordinates
from tacit.row_clipping import clip_factors

# Share of the sensitivity for an approximate minimiser. Of it, 1e-13 of the sensitivity covers the
# rounding of a few products.
_APPROXIMATE = 1e-4
_CERTIFIED = 1 - 2.0**-30
# The certified norm is slightly below the norm that output noise covers, to allow for rounding.
_COVERED = 1 - 2.0**-45
# Part of the gradient's sensitivity for the float error of an audit's sum.
_AUDIT_SLACK = 1e-6
# Noise on the output, in units of (noise on the objective) / lam. It is far below the effect of the
# perturbation on w unless the curvature exceeds 1e4 lam, in which case both are negligible.
_OUTPUT_NOISE = 1e-4

# Minimises the objective over records plus <b, w>, to a certified gradient norm of a tolerance.
CertifiedSolver = Callable[[RecordSource, Array, float], Array]


class Sizes(NamedTuple):
    """Per-record constants: R, L (R to the first power), beta (R squared)."""

    row_norm: float
    lipschitz: float
    smoothness: float


@dataclass(frozen=True, eq=False)
class RegularizedMinimizer:
    """The minimiser of the losses and (lam/2) ||w||^2, to a certified gradient norm.

        sensitivity = L / lam (ADD_REMOVE) or 2 L / lam (REPLACE), SUM form

    Proof: with w, w' the minimisers, strong convexity gives lam ||w - w'||^2 <= <gradient
    difference, w - w'> <= (number of changed records) L ||w - w'||. A point with certified
    gradient norm tau is within tau / lam of its minimiser, which adds 2 tau / lam.

    Parameters
    ----------
    objective
        The objective, with its ridge set.
    solve
        A solver that minimises to a certified gradient norm.
    shape
        The shape of the weights.
    """

    objective: Differentiable
    shape: tuple[int, ...]
    solve: CertifiedSolver

    @classmethod
    def tried_on(cls, objectives: Sequence[Any]) -> tuple[RegularizedMinimizer, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return tuple(
            cls(one, one.shape(3), one.certified_solver())
            for one in objectives
            if hasattr(one, "certified_solver")
        )

    @property
    def _ridge(self) -> float:
        lam = self.objective.regularization
        assert lam, "a plan sets it"
        return lam

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return L / lam, or 2 L / lam, plus the error of an approximate minimum."""
        exact = facts.n_changed * self.objective.lipschitz / self._ridge
        return Sensitivity(
            exact * (1 + _APPROXIMATE), Norm.L2, "output_perturbation.md#1-sensitivity"
        )

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the minimiser. Private."""
        # 2 tau / lam is at most the share _APPROXIMATE of the exact sensitivity.
        stated = self.sensitivity(facts).value
        tau = stated / (1 + _APPROXIMATE) * _APPROXIMATE * self._ridge / 2 * _CERTIFIED
        return self.solve(records, np.zeros(self.shape), tau)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip rows, bound a gradient, and certify a minimum."""
        return clip_factors, self.objective.loss.d1, self.solve


@dataclass(frozen=True)
class GaussianObjectiveNoise:
    """b with independent Gaussian entries, and Gaussian noise on the output.

    ``output_multiplier`` is the output noise in units of the gap that a certificate leaves.
    """

    std: float
    output_multiplier: float

    def main(self, objective: Differentiable, ridge: float, size: float, facts: Facts) -> Event:
        """Return the event that the loss declares for b, with rows scaled by ``size``."""
        scaled = Sizes(
            objective.row_norm * size, objective.lipschitz * size, objective.smoothness * size**2
        )
        event = objective.loss.perturbed_event(scaled, ridge, self.std, facts.relation)
        assert isinstance(event, Event), "a plan refuses losses that declare none"
        return event

    def output(self, facts: Facts) -> Event:
        """Return the event of the noise on the output."""
        return Gaussian(self.output_multiplier, facts.relation)

    def laws(self, ridge: float, shape: tuple[int, ...]) -> tuple[GaussianPerturbation, float]:
        """Return the distributions of b and of the output noise, and the tolerance to certify."""
        per_tau = 2 / ridge * self.output_multiplier
        tau, tolerance = _tolerance(
            self.std, ridge, per_tau, GaussianPerturbation(self.std, 1.0, shape).error
        )
        return GaussianPerturbation(self.std, tau * per_tau, shape), tolerance


@dataclass(frozen=True)
class SphereObjectiveNoise:
    """b with a density proportional to exp(-||b|| / r), and sphere noise on the output: pure."""

    radius: float
    output_epsilon: float

    def main(self, objective: Differentiable, ridge: float, size: float, facts: Facts) -> Event:
        """Return the pure event."""
        return PureObjective(
            objective.lipschitz * size,
            objective.hessian_trace * size**2,
            ridge,
            self.radius,
            objective.loss.hessian_rank,
            facts.relation,
        )

    def output(self, facts: Facts) -> Event:
        """Return the event of the noise on the output."""
        return PureEpsilon(self.output_epsilon, facts.relation)

    def laws(self, ridge: float, shape: tuple[int, ...]) -> tuple[SpherePerturbation, float]:
        """Return the distributions of b and of the output noise, and the tolerance to certify."""
        per_tau = 2 / ridge / self.output_epsilon
        tau, tolerance = _tolerance(
            self.radius, ridge, per_tau, SpherePerturbation(self.radius, 1.0, shape).error
        )
        return SpherePerturbation(self.radius, tau * per_tau, shape), tolerance


ObjectiveNoise = GaussianObjectiveNoise | SphereObjectiveNoise


def _tolerance(noise: float, ridge: float, per_tau: float, error: float) -> tuple[float, float]:
    """Return the tolerance tau that noise of tau per_tau covers, and the solver's part of it.

    A gradient norm of tau puts a point within tau / lam of the exact minimiser (strong convexity).
    Two such points differ by at most 2 tau / lam, the sensitivity of the output release. The float
    error of b counts as part of tau (docs/proofs/objective_perturbation.md, section 10).
    """
    tau = max(_OUTPUT_NOISE * noise / ridge / per_tau, 2 * error)
    return tau, (tau - error) * _COVERED


@dataclass(frozen=True, eq=False)
class PerturbedMinimizer:
    """The minimiser of sum of losses + (lam/2)||w||^2 + <b, w> for random b.

    Parameters
    ----------
    objective
        The objective: its constants, and the loss that declares the event.
    shape
        The shape of the weights.
    noise
        The distributions of b and of the output noise.
    ridge
        lam, on every weight.
    solve
        A solver of the objective plus <b, w>, further ridge included, to a certified gradient norm.
    further_ridge
        An additional ridge on every weight except the intercept.
    row_scale
        The factor on feature rows, relative to the intercept's coordinate, at most 1.
    coordinates
        A, if the weights v and the rows A x are preconditioned. Records are then weighted so that
        none contributes more than a row of the declared norm
        (docs/proofs/objective_perturbation.md, section 14).
    gradients
        The objective whose gradients are summed. It differs from ``objective`` only with
        ``coordinates``: its bounds are then those of the original rows.

    Notes
    -----
    **Guarantee**: the event composes that of the output noise with that declared by the loss for
    the least ridge of any weight (`least_ridge`). The minimum is certified, or nothing is released.
    """

    objective: Differentiable
    shape: tuple[int, ...]
    noise: ObjectiveNoise
    ridge: float
    solve: CertifiedSolver
    further_ridge: float = 0.0
    row_scale: float = 1.0
    coordinates: Coordinates | None = None
    gradients: Differentiable | None = field(default=None, kw_only=True)

    def event(self, facts: Facts) -> Event:
        """Return the event of b, and that of the noise on the output."""
        least = least_ridge(self.ridge, self.further_ridge, self.row_scale)
        return perturbed_event(self.objective, self.noise, least, self.row_scale, facts)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return L, or 2 L: that of the gradient sum, from which an audit recovers b."""
        lipschitz = self.objective.lipschitz * self.objective.bounds.length(self.row_scale)
        value = facts.n_changed * lipschitz * (1 + _AUDIT_SLACK)
        return Sensitivity(value, Norm.L2, "objective_perturbation.md#1-the-density-of-w")

    def gradient(self, records: RecordSource, weights: Array) -> Array:
        """Return the sum of the records' gradients at weights, for scaled rows."""
        objective = self.gradients or self.objective
        at = weights if self.coordinates is None else self.coordinates.of(weights)
        (total,) = records.sum(lambda block: (objective.gradient(block, at),))
        return self._scales * (total if self.coordinates is None else self.coordinates.of(total))

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Array]:
        """Draw b, minimise to a certificate, and add output noise.

        ``self.solve`` is `certified_solver` of `erm/solvers.py`: Newton or L-BFGS until the norm of
        the gradient, rounding included, is certified; else it raises `NotCertified`. The noise is
        drawn by `release_minimizer` of `noise/perturbed_minimizer.py`: b first, output noise last.
        """
        laws, tolerance = self.noise.laws(self.ridge, self.shape)
        # Scaling rows by a scales weights by 1 / a and gradients by a.
        scales, stated = self._scales, self.sensitivity(facts)

        def minimize(b: Array) -> Array:
            return self.solve(records, b / scales, tolerance)

        def implied(weights: Array) -> Bounded:
            total = self.gradient(records, weights)
            return Bounded(total, stated.value, stated.norm, facts.relation)

        return release_minimizer(laws, minimize, implied, self.event(facts), source)

    @property
    def _scales(self) -> Array:
        """The factor on the column of every weight."""
        scales = np.full(self.shape, self.row_scale)
        if self.objective.bounds.intercept:
            scales[-1] = 1.0
        return scales

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip rows, bound a gradient, and certify a minimum."""
        return clip_factors, self.objective.loss.d1, self.solve


def perturbed_event(
    objective: Differentiable, noise: ObjectiveNoise, ridge: float, row_scale: float, facts: Facts
) -> Composed:
    """Return the cost of a perturbed minimiser: the events of b and of the output noise.

    ``ridge`` is the least of any weight (`least_ridge`).
    """
    size = objective.bounds.length(row_scale)
    return Composed((noise.main(objective, ridge, size, facts), noise.output(facts)))


def least_ridge(ridge: float, further: float, row_scale: float) -> float:
    """Return the least ridge of any weight, for scaled rows.

    If rows are scaled by a, the weights v of the unscaled rows are a times the weights w of the
    scaled rows. A ridge of lam + further on v is then one of a^2 (lam + further) on w. The
    objective is lam-strongly convex in w only if this is at least lam, the ridge on the intercept
    (docs/proofs/objective_perturbation.md, section 13).
    """
    return min(ridge, (ridge + further) * row_scale**2)
