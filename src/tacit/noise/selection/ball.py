"""The exponential mechanism on a lattice of a ball: boxes under planes, for concave utilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.arrays import Array, Mask
from tacit.noise.bounded import LARGEST_VALUE, Bounded, Norm
from tacit.noise.exact.interval_arithmetic import (
    GUARD_BITS,
    Arithmetic,
    LazyUniform,
    ends,
    exponential_errors,
    exponentials,
    magnitude_bits,
    nearest_float,
)
from tacit.noise.release import Release, emit
from tacit.noise.selection.finite import gumbel_max
from tacit.noise.selection.geometric_run import SERIES_ERROR, Run, log_series
from tacit.noise.source import Source
from tacit.privacy.budget import Relation, checked_relation
from tacit.privacy.events import ExponentialMechanism

Indices = npt.NDArray[np.int64]
Tangents = Callable[[Array], tuple[Array, Array]]

MOST_DIMENSIONS = 4
# An axis with little observed curvature is still split once the others are this much finer.
_LEAST_CURVATURE = 0.01


@dataclass(frozen=True)
class BallLattice:
    """Public candidates in a ball: the points h i, i integer, of norm at most the radius.

        h = 2^floor(log2(radius / per_radius))

    h is a power of two, so every coordinate is exact in floats.

    Parameters
    ----------
    radius : float
        The public radius of the ball around 0.
    dimension : int
        From 1 to 4.
    per_radius : int
        The least number of candidates from the centre to the sphere.

    Examples
    --------
    >>> from tacit.noise.selection.ball import BallLattice
    >>> BallLattice(1.0, dimension=2, per_radius=1000).spacing == 2.0**-10
    True
    """

    radius: float
    dimension: int
    per_radius: int = 2**24

    def __post_init__(self) -> None:
        radius = checks.positive("radius", self.radius, remedy="pass the radius of the ball.")
        checks.count(
            "dimension",
            self.dimension,
            least=1,
            most=MOST_DIMENSIONS,
            remedy="the number of boxes grows too fast beyond 4; use noisy gradient descent.",
        )
        checks.count(
            "per_radius", self.per_radius, least=1, most=2**26, remedy="2**24 suits most uses."
        )
        if not 2.0**-900 <= radius <= LARGEST_VALUE:
            raise ValueError(
                f"radius must lie between 2^-900 and 2^500, got {radius!r}; change the units."
            )
        object.__setattr__(self, "radius", radius)

    @property
    def spacing(self) -> float:
        """The distance between neighbouring candidates along an axis."""
        return math.ldexp(1.0, math.frexp(self.radius / self.per_radius)[1] - 1)

    @property
    def squared_radius(self) -> int:
        """The greatest squared norm of a candidate, in units of the squared spacing."""
        return math.floor((Fraction(self.radius) / Fraction(self.spacing)) ** 2)

    @property
    def half_width(self) -> int:
        """A power of two above every coordinate of a candidate, in units of the spacing."""
        return 1 << math.isqrt(self.squared_radius).bit_length()

    def contains(self, point: Indices) -> bool:
        """Return whether a point, in units of the spacing, is a candidate."""
        return sum(int(i) ** 2 for i in point) <= self.squared_radius


@dataclass(frozen=True)
class Cells:
    """Boxes that contain every candidate once; box b is first[b], ..., first[b] + size[b] - 1.

    Over box b the utility is at most value[b] + <slope[b], i - centre[b]>, i in units of the
    spacing: a plane, all doubles. ``curvature`` is the observed curvature along each axis, infinite
    before the first observation. It only decides where to split.
    """

    first: Indices
    size: Indices
    value: Array
    slope: Array
    curvature: Array

    @staticmethod
    def whole(lattice: BallLattice, tangents: Tangents, rate: float) -> Cells:
        """Return one box around the ball."""
        half_width, shape = lattice.half_width, (1, lattice.dimension)
        first, size = np.full(shape, -half_width), np.full(shape, 2 * half_width)
        value, slope = _tangents(first, size, lattice, tangents)
        value, slope = _lower_planes(first, size, value, slope, lattice, rate)
        return Cells(first, size, value, slope, np.full(shape, np.inf))

    def split(
        self, chosen: Indices, lattice: BallLattice, tangents: Tangents, rate: float
    ) -> Cells:
        """Halve the chosen cells, and drop halves outside the ball.

        Boxes of one point stay as they are.
        """
        chosen = chosen[self.size[chosen].max(axis=1) > 1]
        axis, row = self._axes(chosen, lattice), np.arange(chosen.size)
        half = self.size[chosen].copy()
        half[row, axis] //= 2
        right = self.first[chosen].copy()
        right[row, axis] += half[row, axis]
        first, size = np.concatenate([self.first[chosen], right]), np.tile(half, (2, 1))
        value, slope = _tangents(first, size, lattice, tangents)
        second_difference = (slope[: chosen.size] - slope[chosen.size :])[row, axis] / half[
            row, axis
        ]
        curvature = self.curvature[chosen].copy()
        curvature[row, axis] = np.maximum(second_difference, 0.0)
        value, slope = _lower_planes(first, size, value, slope, lattice, rate)
        halves = Cells(first, size, value, slope, np.tile(curvature, (2, 1)))
        rest = np.ones(self.value.size, dtype=bool)
        rest[chosen] = False
        return self._where(rest)._and(halves._where(_touches(first, size, lattice)))

    def _axes(self, chosen: Indices, lattice: BallLattice) -> Indices:
        """Return the axis along which each chosen box is furthest from its plane."""
        curvature, size = self.curvature[chosen], self.size[chosen].astype(np.float64)
        # Where the sphere cuts a box, add the sphere's curvature: |slope| / radius.
        cut = _leaves(self.first[chosen], self.size[chosen], lattice)
        slope_per_radius = np.linalg.norm(self.slope[chosen], axis=1) / math.sqrt(
            lattice.squared_radius
        )
        curvature = curvature + np.where(cut, slope_per_radius, 0.0)[:, None]
        known = np.where(np.isfinite(curvature), curvature, 0.0)
        curvature = np.maximum(
            curvature, _LEAST_CURVATURE * known.max(axis=1, keepdims=True) + 1e-300
        )
        # An axis of one point cannot be halved; among unobserved axes split the longest first.
        gap = np.where(np.isinf(curvature), 1e300 * size, curvature * size**2)
        axes: Indices = np.argmax(np.where(size > 1, gap, -1.0), axis=1)
        return axes

    def _where(self, mask: Mask) -> Cells:
        return Cells(
            self.first[mask],
            self.size[mask],
            self.value[mask],
            self.slope[mask],
            self.curvature[mask],
        )

    def _and(self, others: Cells) -> Cells:
        return Cells(
            np.concatenate([self.first, others.first]),
            np.concatenate([self.size, others.size]),
            np.concatenate([self.value, others.value]),
            np.concatenate([self.slope, others.slope]),
            np.concatenate([self.curvature, others.curvature]),
        )

    def log_masses(self, rate: float) -> tuple[Array, float]:
        """Return the log mass of exp(rate plane) over every box, and a bound on the error."""
        with np.errstate(all="ignore"):
            # Six terms of either sign, each with a relative error below 2^-50.
            terms = rate * (np.abs(self.value) + np.sum(np.abs(self.slope) * self.size, axis=1))
            error = 2.0**-47 * float(np.max(terms)) + MOST_DIMENSIONS * SERIES_ERROR
        return _log_masses(self.value, self.slope, self.size, rate), error

    def box(self, chosen: int, rate: Fraction) -> Box:
        """Return one box in exact numbers."""
        return Box(
            tuple(int(i) for i in self.first[chosen]),
            tuple(int(i) for i in self.size[chosen]),
            rate * Fraction(float(self.value[chosen])),
            tuple(rate * Fraction(float(slope)) for slope in self.slope[chosen]),
        )


@dataclass(frozen=True)
class Box:
    """A box of points under a plane in exact numbers: log-weight value + <slope, i - centre>."""

    first: tuple[int, ...]
    size: tuple[int, ...]
    value: Fraction
    slope: tuple[Fraction, ...]

    @property
    def _runs(self) -> list[Run]:
        pairs = zip(self.slope, self.size, strict=True)
        return [Run(abs(slope) * (n - 1) / 2, abs(slope), n) for slope, n in pairs]

    @property
    def extra_bits(self) -> int:
        """Bits of precision that the log mass needs beyond those of the noise."""
        return magnitude_bits(self.value) + sum(run.extra_bits for run in self._runs)

    def enclose(self, arithmetic: Arithmetic) -> Any:
        """Return an interval around the log mass, which is a sum over the axes."""
        mass = arithmetic.number(self.value)
        for run in self._runs:
            mass = mass + run.enclose(arithmetic)
        return mass

    def log_weight(self, point: Indices) -> Fraction:
        """Return the plane at a point."""
        parts = zip(self.slope, self.first, self.size, point, strict=True)
        return self.value + sum(
            slope * (int(i) - first - Fraction(n - 1, 2)) for slope, first, n, i in parts
        )

    def place(self, steps: list[int]) -> Indices:
        """Return the point so many steps from the corner of greatest weight."""
        parts = zip(self.slope, self.first, self.size, steps, strict=True)
        return np.array([f + n - 1 - m if slope > 0 else f + m for slope, f, n, m in parts])

    def draw(self, source: Any) -> Indices:
        """Return a point with probability exactly proportional to exp(log-weight)."""
        return self.place([run.draw(source) for run in self._runs])


def _log_masses(value: Array, slope: Array, size: Indices, rate: float) -> Array:
    """Return log sum exp(rate plane) over boxes: a geometric series along every axis."""
    with np.errstate(all="ignore"):
        rise = np.abs(slope)
        top = rate * (value + np.sum(rise * ((size - 1) / 2), axis=1))
        masses: Array = top + log_series(rate * rise, size).sum(axis=1)
        return masses


def _tangents(
    first: Indices, size: Indices, lattice: BallLattice, tangents: Tangents
) -> tuple[Array, Array]:
    """Return the tangent planes at the centres, slopes in units of the spacing."""
    value, slope = tangents((first + (size - 1) / 2) * lattice.spacing)
    return value, slope * lattice.spacing


def _lower_planes(
    first: Indices, size: Indices, value: Array, slope: Array, lattice: BallLattice, rate: float
) -> tuple[Array, Array]:
    """Return the plane with less mass: the tangent, or one that uses the ball.

    In the ball ||i||^2 <= S. So for any m >= 0 a concave u is at most u + m (S - ||i||^2), which is
    concave too. Its tangent at the centre c is

        u(c) + m (S - ||c||^2) + <u'(c) - 2 m c, i - c>

    The m with <u'(c) - 2 m c, c> = 0 removes the outward part of the slope. Without it, boxes on
    the sphere would have most of their mass outside the ball.
    """
    centre, most = first + (size - 1) / 2, float(lattice.squared_radius)
    squared = np.sum(centre**2, axis=1)
    pull = np.maximum(np.sum(slope * centre, axis=1), 0.0) / (2 * np.maximum(squared, 1.0))
    inward = 2 * pull[:, None] * centre
    flat = slope - inward
    # Round up, each part by many times its possible error, at the centre and across the box.
    spare = np.abs(value) + pull * (most + squared)
    spare += np.sum((np.abs(slope) + np.abs(inward)) * size, axis=1)
    held = value + pull * (most - squared) + 2.0**-46 * spare
    lower = _log_masses(held, flat, size, rate) < _log_masses(value, slope, size, rate)
    return np.where(lower, held, value), np.where(lower[:, None], flat, slope)


def _touches(first: Indices, size: Indices, lattice: BallLattice) -> Mask:
    """Return which boxes may contain a candidate: those whose nearest point is in the ball."""
    last = first + size - 1
    nearest = np.clip(0, first, last)
    mask: Mask = np.sum(nearest**2, axis=1) <= lattice.squared_radius
    return mask


def _leaves(first: Indices, size: Indices, lattice: BallLattice) -> Mask:
    """Return which boxes contain a point outside the ball."""
    furthest = np.maximum(np.abs(first), np.abs(first + size - 1))
    leaving: Mask = np.sum(furthest**2, axis=1) > lattice.squared_radius
    return leaving


# Boxes are halved until none has more than this share of the mass: 1 / 3^(dimension + 1).
_PER_AXIS = 3


@dataclass(frozen=True)
class Concave:
    """A concave utility of points, computed from records, and its sensitivity.

    Parameters
    ----------
    at : callable
        The utility of one point, as computed.
    tangents : callable
        For points, one a row, the utilities and their gradients, or any supergradients.
    error : float
        How far ``at`` may lie above a tangent plane by the rounding of both, between points at most
        four radii from 0.
    sensitivity : float
        The most that ``at`` moves between neighbours under ``relation``, at any point of the ball.
    relation : Relation
        Relation of the neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise.selection.ball import Concave
    >>> from tacit.privacy import Relation
    >>> rows = np.array([[0.5, 0.0], [0.5, 0.5]])
    >>> utility = Concave(
    ...     at=lambda w: -float(np.abs(rows @ w).sum()),
    ...     tangents=lambda points: (
    ...         -np.abs(points @ rows.T).sum(axis=1),
    ...         -np.sign(points @ rows.T) @ rows,
    ...     ),
    ...     error=1e-12,
    ...     sensitivity=1.0,
    ...     relation=Relation.ADD_REMOVE,
    ... )
    >>> utility.at(np.array([1.0, 0.0]))
    -1.0
    """

    at: Callable[[Array], float]
    tangents: Callable[[Array], tuple[Array, Array]]
    error: float
    sensitivity: float
    relation: Relation

    def __post_init__(self) -> None:
        checks.positive(
            "sensitivity",
            self.sensitivity,
            remedy="pass the most that one record can move the utility at any point of the ball.",
        )
        checks.at_least("error", self.error, 0.0)
        checked_relation(self.relation)

    def raised(self, points: Array) -> tuple[Array, Array]:
        """Return tangents raised by the error, so that no computed utility is above them."""
        value, slope = self.tangents(points)
        return np.nextafter(value + self.error, np.inf), slope


def select_in_ball(
    utility: Concave, lattice: BallLattice, epsilon: float, *, source: Source | None = None
) -> Release[Array]:
    """Choose a point of a ball with probability growing in a concave utility.

        P(x) proportional to exp(epsilon utility(x) / (2 sensitivity)),   x a point of the lattice

    The point is drawn by rejection. Boxes cover the ball, and each has a plane above the utility. A
    box is drawn by its mass under exp(plane), a point in it by exp(plane). The point is accepted
    with probability exp(utility - plane). After a rejection the box is halved and the draw is
    repeated.

    Parameters
    ----------
    utility : Concave
        The utility, which may be private.
    lattice : BallLattice
        The public candidates.
    epsilon : float
        The range of the privacy loss.
    source : Source, optional
        Source of random bits. By default a new `secure_source` for this release.

    Returns
    -------
    Release
        The chosen point, with ``ExponentialMechanism(epsilon)`` as event.

    Notes
    -----
    **Guarantee**

    1. The law of the point is exactly the one above, in real arithmetic, for the utility as
       computed; so the release is epsilon-bounded-range, hence epsilon-DP
       (docs/proofs/selection_in_a_ball.md).
    2. A utility above a plane is refused: it is not concave up to its stated error.
    3. Wrong arguments are refused before anything is drawn.

    **Assumes**: the sensitivity, concavity and the error; the bits of the source; NumPy's log,
    log1p and expm1 within 2^-44 relative; mpmath's interval exp and log. The running time depends
    on the utility, and so on the records.

    Examples
    --------
    The point nearest to 1,000 records that are all at (0.3, 0.4), by sums of distances.

    >>> import numpy as np
    >>> from tacit.noise.selection.ball import BallLattice, Concave
    >>> from tacit.noise.selection.ball import select_in_ball
    >>> from tacit.privacy import Relation
    >>> place = np.array([0.3, 0.4])
    >>> def distances(points):
    ...     return np.linalg.norm(points - place, axis=1)
    >>> utility = Concave(
    ...     at=lambda w: -1000.0 * float(distances(w[None])[0]),
    ...     tangents=lambda points: (
    ...         -1000.0 * distances(points),
    ...         -1000.0 * (points - place) / distances(points)[:, None],
    ...     ),
    ...     error=1e-9,
    ...     sensitivity=1.0,
    ...     relation=Relation.ADD_REMOVE,
    ... )
    >>> release = select_in_ball(utility, BallLattice(1.0, dimension=2), epsilon=2.0)
    >>> bool(np.linalg.norm(release.value - place) < 0.1)
    True
    """
    if not isinstance(utility, Concave):
        raise TypeError(f"utility must be a Concave, got {type(utility).__name__}.")
    if not isinstance(lattice, BallLattice):
        raise TypeError(
            f"lattice must be a BallLattice, got {lattice!r}; pass BallLattice(1.0, 2)."
        )
    rate = Fraction(checks.finite_epsilon(epsilon)) / Fraction(utility.sensitivity) / 2
    return emit(
        "select_in_ball",
        lambda: Bounded(
            np.array([utility.at(point) for point in _probes(lattice)]),
            utility.sensitivity,
            Norm.LINF,
            utility.relation,
        ),
        ExponentialMechanism(float(epsilon), utility.relation),
        source,
        lambda words: _draw(refined(utility, lattice, rate), utility, lattice, rate, words),
        public={"lattice": lattice},
    )


def _probes(lattice: BallLattice) -> Iterator[Array]:
    """Yield public points at which an audit compares utilities: towards faces, edges, corners."""
    for direction in product((-1.0, 0.0, 1.0), repeat=lattice.dimension):
        length = float(np.linalg.norm(direction))
        if length > 0.0:
            steps = np.trunc(np.array(direction) / length * lattice.radius / lattice.spacing)
            yield steps * lattice.spacing


def refined(utility: Concave, lattice: BallLattice, rate: Fraction) -> Cells:
    """Return boxes of which none has more than a small share of the mass."""
    factor = nearest_float(rate)
    cells = Cells.whole(lattice, utility.raised, factor)
    small = -np.log(_PER_AXIS) * (lattice.dimension + 1)
    while True:
        log_mass, _ = cells.log_masses(factor)
        top = log_mass.max()
        share = log_mass - top - np.log(np.exp(log_mass - top).sum())
        large = np.flatnonzero((share > small) & (cells.size.max(axis=1) > 1))
        if large.size == 0:
            return cells
        cells = cells.split(large, lattice, utility.raised, factor)


def _draw(
    cells: Cells, utility: Concave, lattice: BallLattice, rate: Fraction, source: Source
) -> Array:
    """Return a point: proposed under the planes, accepted by the utility."""
    factor = nearest_float(rate)
    while True:
        log_mass, error = cells.log_masses(factor)
        chosen = gumbel_max(log_mass, error, partial(cells.box, rate=rate), source)
        box = cells.box(chosen, rate)
        steps = box.draw(source)
        if lattice.contains(steps):
            point = np.float64(lattice.spacing) * steps
            if exceeds(box.log_weight(steps) - rate * _utility_at(utility, point), source):
                return point
        cells = cells.split(np.array([chosen]), lattice, utility.raised, factor)


def _utility_at(utility: Concave, point: Array) -> Fraction:
    value = float(utility.at(point))
    if not np.isfinite(value):
        raise ValueError("the utility is not finite at a point of the ball; clip its summands.")
    return Fraction(value)


def exceeds(gap: Fraction, source: Source) -> bool:
    """Return True with probability exactly exp(-gap): whether an exponential variable exceeds it.

    Raises
    ------
    RuntimeError
        If the gap is negative: a utility lies above its plane.
    """
    if gap < 0:
        raise RuntimeError(
            "the utility lies above a tangent plane, so it is not concave up to the error stated; "
            "the release is withheld. Pass a concave utility and a bound on its rounding."
        )
    words, rough = source.words(1), nearest_float(gap)
    energy = exponentials(words)
    with np.errstate(divide="ignore"):  # the last word's energy has no upper bound
        error = exponential_errors(words, energy) + 2.0**-50 * rough
    if np.abs(energy - rough)[0] > error[0]:
        return bool(energy[0] > rough)
    uniform = LazyUniform(int(words[0]))
    while True:
        if uniform.is_interior:
            arithmetic = Arithmetic(uniform.n_bits + GUARD_BITS + magnitude_bits(gap))
            low, high = ends(arithmetic.exponential(uniform))
            if low > gap or high < gap:
                return low > gap
        uniform = uniform.refined(source)
