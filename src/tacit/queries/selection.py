"""Draw one of many public candidates by its utility: the exponential mechanism.

`Quantile` is drawn exactly on a line, `RiskInBall` in a ball of up to four dimensions. In higher
dimensions, sampling exp(-k F) needs a Markov chain with a proved bound on its distance from the
target. No diagnostic proves such a bound, so tacit has no such sampler. Use `CandidateRisks` or
noisy gradient descent instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from tacit.noise import Norm, Release, Source
from tacit.noise.bounded import Bounded
from tacit.noise.selection.ball import BallLattice, Concave, select_in_ball
from tacit.noise.selection.finite import select
from tacit.privacy import Event, ExponentialMechanism
from tacit.queries.base import Array, Facts, Private, Sensitivity, Statistic
from tacit.records import Block, Bounds, RecordSource
from tacit.records.block_sums import needs_fine_sums

# Part of the sensitivity for the float error of a sum; in a ball, half of it is for its terms.
_FLOAT_SLACK = 1e-4
# Bound on the float error of a loss, relative to its size and to L times the norm of the score.
_LOSS_ERROR = 2.0**-40
_SECTION_1 = "selection_in_a_ball.md#1-the-mechanism"


class Utility(Statistic, Protocol):
    """A statistic with one utility per candidate; its sensitivity is in LINF."""

    def drawn(self, records: Private, facts: Facts, epsilon: float, source: Source) -> Release[Any]:
        """Return a candidate, with probability exp(epsilon utility / (2 sensitivity)) / Z."""


U = TypeVar("U", bound=Utility)


@dataclass(frozen=True)
class Selection(Generic[U]):
    """A public candidate, drawn with a probability that grows with its utility.

        P(i) proportional to exp(epsilon utility_i / (2 sensitivity))

    Parameters
    ----------
    utility
        `Quantile`, `CandidateRisks` or `RiskInBall`; the answer is a point, an index or weights.
    epsilon
        The range of the privacy loss.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts, Quantile, Selection
    >>> from tacit.records import Bounds
    >>> facts = Facts(Bounds(), 1, Relation.REPLACE)
    >>> Selection(Quantile(0.5, 0.0, 1.0), epsilon=0.3).event(facts)
    ExponentialMechanism(epsilon=0.3, relation=<Relation.REPLACE: 'replace'>)
    """

    utility: U
    epsilon: float

    def event(self, facts: Facts) -> Event:
        """Return the cost of asking."""
        return selection_event(self.epsilon, facts)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Any]:
        """Return the drawn candidate."""
        return self.utility.drawn(records, facts, self.epsilon, source)


def selection_event(epsilon: float, facts: Facts) -> Event:
    """Return the cost of a selection with any utility.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts
    >>> from tacit.queries.selection import selection_event
    >>> from tacit.records import Bounds
    >>> selection_event(0.5, Facts(Bounds(), 1, Relation.ADD_REMOVE)).epsilon
    0.5
    """
    if facts.sampling_rate is not None:
        raise ValueError("a Poisson sample needs Gaussian noise: no other noise is accounted for.")
    return ExponentialMechanism(epsilon, facts.relation)


class Loss(Protocol):
    """A convex loss with a bounded derivative, such as those of `tacit.erm.losses`."""

    @property
    def lipschitz(self) -> float:
        """The bound on the derivative."""

    @property
    def n_outputs(self) -> int:
        """The number of scores per record."""

    def gradient_scale(self, row_norm: float) -> float:
        """Return the greatest factor between the derivative and a gradient's norm."""

    def values(self, block: Block, weights: Array) -> Array:
        """Return the loss of every record, times its weight."""

    def gradient(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        """Return the sum of the records' gradients."""


def _lipschitz(loss: Loss, facts: Facts) -> float:
    """Return L, the greatest norm of one record's gradient."""
    return loss.lipschitz * loss.gradient_scale(facts.bounds.total_norm)


def _shape(loss: Loss, facts: Facts) -> tuple[int, ...]:
    n, outputs = facts.n_coordinates, loss.n_outputs
    return (n, outputs) if outputs > 1 else (n,)


@dataclass(frozen=True, eq=False)
class CandidateRisks:
    """Minus the empirical risk of public weights, relative to the first of them.

        utility_i = -(sum of loss(w_i) - loss(w_0) over records + (lam / 2) ||w_i||^2)

    A record's term is clipped to L ||w_i - w_0||, with L its Lipschitz constant. A `Selection` of
    this utility answers with an index.

    Parameters
    ----------
    loss
        A loss with a bounded derivative.
    candidates
        One row per candidate.
    regularization
        lam.
    """

    loss: Loss
    candidates: Array = field(repr=False)
    regularization: float = 0.0

    @classmethod
    def tried(cls) -> tuple[CandidateRisks, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return tuple(cls(_Score(), np.eye(d) - 0.5, 0.3) for d in (3, 4))

    def applies(self, facts: Facts) -> bool:
        """Return whether candidates have the length of rows."""
        return bool(self.candidates.shape[1] == math.prod(_shape(self.loss, facts)))

    def utility_sensitivity(self, facts: Facts) -> float:
        """Return the sensitivity of a utility in real numbers: L times the greatest distance."""
        widest = float(np.linalg.norm(self.candidates - self.candidates[0], axis=1).max())
        return facts.n_changed * _lipschitz(self.loss, facts) * max(widest, 1e-300)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return L times the greatest distance, twice that for REPLACE, plus the rounding."""
        # The penalty is public, but adding it rounds by 2^-53 of the sum on either neighbour.
        value = (
            self.utility_sensitivity(facts) * (1 + _FLOAT_SLACK) + 2.0**-51 * self._penalty().max()
        )
        return Sensitivity(float(value), Norm.LINF, _SECTION_1)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the utilities, in one pass. Private."""
        weights = [w.reshape(_shape(self.loss, facts)) for w in self.candidates]
        # A record's excess loss is at most L times the distance; clip it against float error.
        distances = np.linalg.norm(self.candidates - self.candidates[0], axis=1)
        limits = _lipschitz(self.loss, facts) * distances

        def excesses(block: Block) -> tuple[Array]:
            base = self.loss.values(block, weights[0])
            parts = zip(weights, limits, strict=True)
            return (
                np.array(
                    [np.clip(self.loss.values(block, w) - base, -r, r).sum() for w, r in parts]
                ),
            )

        (excess,) = records.sum(excesses, fine=needs_fine_sums(records, _FLOAT_SLACK))
        utility: Array = -(excess + self._penalty())
        return utility

    def _penalty(self) -> Array:
        penalty: Array = self.regularization / 2 * np.sum(self.candidates**2, axis=1)
        return penalty

    def drawn(self, records: Private, facts: Facts, epsilon: float, source: Source) -> Release[int]:
        """Return the index of the drawn candidate. Called by a `Selection` only."""
        stated = self.sensitivity(facts)
        bounded = Bounded(self.total(records, facts), stated.value, stated.norm, facts.relation)
        return select(bounded, epsilon, source=source)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the function that computes a record's loss."""
        return (self.loss.values,)


@dataclass(frozen=True)
class RiskInBall:
    """Minus the empirical risk of weights in a ball of few dimensions, relative to that of 0.

        utility(w) = -(sum of loss(w) - loss(0) over records + (lam / 2) ||w||^2),   ||w|| <= R

    A record's term is clipped to L ||w||, with L its Lipschitz constant. A `Selection` of this
    utility answers with the coordinates of a point of a fine lattice.

    Parameters
    ----------
    loss
        A convex loss with a bounded derivative, computed to 2^-40 of its size.
    radius
        R.
    regularization
        lam.
    per_radius
        The least number of lattice points from the centre to the sphere.
    """

    loss: Loss
    radius: float
    regularization: float = 0.0
    per_radius: int = 2**24

    @classmethod
    def tried(cls) -> tuple[RiskInBall, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (cls(_Score(), 1.5, 0.3),)

    def utility_sensitivity(self, facts: Facts) -> float:
        """Return the sensitivity of a utility in real numbers: L R, or 2 L R."""
        return facts.n_changed * _lipschitz(self.loss, facts) * self.radius

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return L R, twice that under REPLACE, plus the rounding."""
        # The penalty is public, but adding it rounds by 2^-53 of the sum on either neighbour.
        rounding = 2.0**-51 * _penalty(self, self.radius)
        value = self.utility_sensitivity(facts) * (1 + _FLOAT_SLACK) + rounding
        return Sensitivity(value, Norm.LINF, _SECTION_1)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the utility of the outermost points on each axis, for tests. Private."""
        ends = self.radius * np.eye(math.prod(_shape(self.loss, facts)))
        risk = _Risk(self, records, facts)
        return np.array([-risk.at(w) for w in np.vstack([ends, -ends])])

    def concave(self, records: Private, facts: Facts) -> Concave:
        """Return the utility as a function of a point. Private."""
        risk = _Risk(self, records, facts)
        stated = self.sensitivity(facts).value
        return Concave(lambda w: -risk.at(w), risk.falling, risk.error(), stated, facts.relation)

    def drawn(
        self, records: Private, facts: Facts, epsilon: float, source: Source
    ) -> Release[Array]:
        """Return weights, drawn by their risk. Called by a `Selection` only."""
        lattice = BallLattice(self.radius, math.prod(_shape(self.loss, facts)), self.per_radius)
        return select_in_ball(self.concave(records, facts), lattice, epsilon, source=source)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that compute and clip a record's loss."""
        return self.loss.values, _Risk.at


def _penalty(utility: RiskInBall, size: float) -> float:
    """Return (lam / 2) ||w||^2."""
    return utility.regularization / 2 * size**2


@dataclass(frozen=True)
class _Risk:
    """The sum of the losses relative to w = 0, and the ridge, over given records."""

    utility: RiskInBall
    records: RecordSource
    facts: Facts

    def at(self, point: Array) -> float:
        """Return F(w) - F(0): a record counts for at most L ||w||, to the last bit."""
        size = float(np.linalg.norm(point))
        loss, w = self.utility.loss, self._weights(point)
        limit = _lipschitz(loss, self.facts) * size

        def excess(block: Block) -> tuple[Array]:
            differences = loss.values(block, w) - loss.values(block, self._nowhere)
            return (np.clip(differences, -limit, limit).sum(),)

        fine = needs_fine_sums(self.records, _FLOAT_SLACK / 2)
        (total,) = self.records.sum(excess, fine=fine)
        return float(total) + _penalty(self.utility, size)

    def falling(self, points: Array) -> tuple[Array, Array]:
        """Return -F and its gradients at points, one per row, in one pass over the records."""
        loss, bounds = self.utility.loss, self.facts.bounds
        weights = [self._weights(point) for point in points]

        def both(block: Block) -> tuple[Array, Array]:
            start = loss.values(block, self._nowhere)
            values = [(loss.values(block, w) - start).sum() for w in weights]
            slopes = [loss.gradient(block, w, bounds, math.inf) for w in weights]
            return np.array(values), np.array(slopes)

        values, gradients = self.records.sum(both)
        ridge, sizes = self.utility.regularization, np.linalg.norm(points, axis=1)
        slopes = gradients.reshape(points.shape) + ridge * points
        return -(values + ridge / 2 * sizes**2), -slopes

    def _weights(self, point: Array) -> Array:
        return point.reshape(_shape(self.utility.loss, self.facts))

    @property
    def _nowhere(self) -> Array:
        return np.zeros(_shape(self.utility.loss, self.facts))

    def error(self) -> float:
        """Bound how far -F may lie above a tangent plane in floats, within 4 radii of 0.

        A sum of n terms of size t has an error of t times the records' ``sum_error``. A term has an
        error of 2^-40 of its parts: the loss at 0, and L times a distance of at most 8 radii.
        """
        loss, far = self.utility.loss, 8 * self.utility.radius
        (size,) = self.records.sum(lambda block: (np.abs(loss.values(block, self._nowhere)).sum(),))
        slope = _lipschitz(loss, self.facts) * far
        sums = 3 * self.records.sum_error() * slope
        terms = 2 * _LOSS_ERROR * (float(size) + (self.records.count() + 1) * slope)
        return float(sums + terms + 2.0**-44 * _penalty(self.utility, far))


@dataclass(frozen=True)
class _Score:
    """A loss equal to the score: one record moves it as far as it can move any loss."""

    lipschitz: float = 1.0
    n_outputs: int = 1

    def gradient_scale(self, row_norm: float) -> float:
        return row_norm

    def values(self, block: Block, weights: Array) -> Array:
        return block.weighed(block.scores(weights))

    def gradient(self, block: Block, weights: Array, bounds: Bounds, clip: float) -> Array:
        return block.weighted_sum(np.ones(block.n_rows))
