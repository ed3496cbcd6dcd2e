"""The minimiser of an objective: with noise on the result, or of a randomly perturbed objective.

`RegularizedMinimizer` is a statistic: the minimiser itself, stable by its ridge, to which noise is
added (output perturbation). `PerturbedMinimizer` minimises the objective plus a random linear term
<b, w> (objective perturbation); its sensitivity is that of the gradient, and what a certificate
leaves open is covered by noise on the output.
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
from tacit.records.linear_transform import Coordinates
from tacit.row_clipping import clip_factors

# The share of the sensitivity left for an approximate minimiser, of which a little, 1e-13 of the
# sensitivity, is left for the roundings of a few products.
_APPROXIMATE = 1e-4
_CERTIFIED = 1 - 2.0**-30
# Certified is a little less than noise on the output covers: more than roundings of a few products.
_COVERED = 1 - 2.0**-45
# Charged to the gradient's sensitivity for the float error of an audit's sum.
_AUDIT_SLACK = 1e-6
# Noise on the output, in units of (noise on the objective) / lam: far below what the
# perturbation itself does to w unless curvature exceeds 1e4 lam, where both are negligible.
_OUTPUT_NOISE = 1e-4

# Minimises over records plus <b, w>, to a certified gradient norm of at most a tolerance.
CertifiedSolver = Callable[[RecordSource, Array, float], Array]


class Sizes(NamedTuple):
    """What is derived of one record: R, L (R to the first power), beta (R squared)."""

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
        What is minimised, its ridge set.
    solve
        Minimises to a certified gradient norm.
    shape
        Of the weights.
    """

    objective: Differentiable
    shape: tuple[int, ...]
    solve: CertifiedSolver

    @classmethod
    def tried_on(cls, objectives: Sequence[Any]) -> tuple[RegularizedMinimizer, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
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
        """Return L / lam, or 2 L / lam, and what an approximate minimum adds."""
        exact = facts.n_changed * self.objective.lipschitz / self._ridge
        return Sensitivity(
            exact * (1 + _APPROXIMATE), Norm.L2, "output_perturbation.md#1-sensitivity"
        )

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the minimiser. Private."""
        # 2 tau / lam is the share _APPROXIMATE of the exact sensitivity, or a little less
        stated = self.sensitivity(facts).value
        tau = stated / (1 + _APPROXIMATE) * _APPROXIMATE * self._ridge / 2 * _CERTIFIED
        return self.solve(records, np.zeros(self.shape), tau)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what clips rows, what bounds a gradient, and what certifies a minimum."""
        return clip_factors, self.objective.loss.d1, self.solve


@dataclass(frozen=True)
class GaussianObjectiveNoise:
    """b with independent Gaussian entries, and Gaussian noise on the output.

    ``output_multiplier`` is the output's noise in units of what a certificate leaves open.
    """

    std: float
    output_multiplier: float

    def main(self, objective: Differentiable, ridge: float, size: float, facts: Facts) -> Event:
        """Return the event that the loss declares for b, rows counting ``size`` times as long."""
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
        """Return the laws of b and of the output's noise, and the gradient norm to certify."""
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
        """Return the laws of b and of the output's noise, and the gradient norm to certify."""
        per_tau = 2 / ridge / self.output_epsilon
        tau, tolerance = _tolerance(
            self.radius, ridge, per_tau, SpherePerturbation(self.radius, 1.0, shape).error
        )
        return SpherePerturbation(self.radius, tau * per_tau, shape), tolerance


ObjectiveNoise = GaussianObjectiveNoise | SphereObjectiveNoise


def _tolerance(noise: float, ridge: float, per_tau: float, error: float) -> tuple[float, float]:
    """Return the gradient norm tau that noise of tau per_tau covers, and what a solver has of it.

    A gradient norm of tau puts a point within tau / lam of the exact minimiser (strong convexity),
    so two such points differ by at most 2 tau / lam: the sensitivity of the output release. The
    float error of b counts as part of tau (docs/proofs/objective_perturbation.md, section 10).
    """
    tau = max(_OUTPUT_NOISE * noise / ridge / per_tau, 2 * error)
    return tau, (tau - error) * _COVERED


@dataclass(frozen=True, eq=False)
class PerturbedMinimizer:
    """The minimiser of sum of losses + (lam/2)||w||^2 + <b, w> for random b.

    Parameters
    ----------
    objective
        Its constants, and the loss that declares the event.
    shape
        Of the weights.
    noise
        The laws of b and of the noise on the output.
    ridge
        lam, on every weight.
    solve
        Minimises the objective plus <b, w> to a certified gradient norm, a further ridge included.
    further_ridge
        On every weight but the intercept's.
    row_scale
        How long rows count beside the intercept's coordinate, at most 1.
    coordinates
        A, if weights v and rows A x are those of a preconditioner; records are then weighted so
        that none counts for more than a row as long as the objective declares
        (docs/proofs/objective_perturbation.md, section 14).
    gradients
        The objective whose gradients are summed; the same, but in other coordinates, where its
        bounds are those of the rows.

    Notes
    -----
    **Guarantee**: the event is the one that the loss declares for the least ridge of any weight
    (`least_ridge`), and that of the output's noise; the minimum is certified, or nothing is
    released.
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
        """Return L, or 2 L: that of the gradients' sum, from which an audit recovers b."""
        lipschitz = self.objective.lipschitz * self.objective.bounds.length(self.row_scale)
        value = facts.n_changed * lipschitz * (1 + _AUDIT_SLACK)
        return Sensitivity(value, Norm.L2, "objective_perturbation.md#1-the-density-of-w")

    def gradient(self, records: RecordSource, weights: Array) -> Array:
        """Return the sum of the records' gradients at weights, rows as long as they count."""
        objective = self.gradients or self.objective
        at = weights if self.coordinates is None else self.coordinates.of(weights)
        (total,) = records.sum(lambda block: (objective.gradient(block, at),))
        return self._scales * (total if self.coordinates is None else self.coordinates.of(total))

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Array]:
        """Draw b, minimise to a certificate, add the noise on the output."""
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
        """For every weight how long its column counts."""
        scales = np.full(self.shape, self.row_scale)
        if self.objective.bounds.intercept:
            scales[-1] = 1.0
        return scales

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what clips rows, what bounds a gradient, and what certifies a minimum."""
        return clip_factors, self.objective.loss.d1, self.solve


def perturbed_event(
    objective: Differentiable, noise: ObjectiveNoise, ridge: float, row_scale: float, facts: Facts
) -> Composed:
    """Return what a perturbed minimiser costs: the event of b, and that of the output's noise.

    ``ridge`` is the least of any weight (`least_ridge`).
    """
    size = objective.bounds.length(row_scale)
    return Composed((noise.main(objective, ridge, size, facts), noise.output(facts)))


def least_ridge(ridge: float, further: float, row_scale: float) -> float:
    """Return the least ridge of any weight, where rows are as long as they count.

    Weights v of rows are a times the weights w of rows that count a times as long, so that a ridge
    of lam + further on v is one of a^2 (lam + further) on w. Only where that is at least lam, the
    ridge on the intercept's weight, is the objective lam-strongly convex in w
    (docs/proofs/objective_perturbation.md, section 13).
    """
    return min(ridge, (ridge + further) * row_scale**2)
