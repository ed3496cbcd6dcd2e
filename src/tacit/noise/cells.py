"""Cover a ball by boxes of lattice points, each with a plane above a concave utility."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.noise.bounded import LARGEST_VALUE
from tacit.noise.exact import Arithmetic, magnitude_bits
from tacit.noise.run import SERIES_ERROR, Run, log_series

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Tangents = Callable[[Array], tuple[Array, Array]]

MOST_DIMENSIONS = 4
# An axis with little observed curvature is still split once the others are this much finer.
_LEAST_BEND = 0.01


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
    >>> from tacit.noise import BallLattice
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
    def reach(self) -> int:
        """A power of two above every coordinate of a candidate, in units of the spacing."""
        return 1 << math.isqrt(self.squared_radius).bit_length()

    def contains(self, point: Indices) -> bool:
        """Return whether a point, in units of the spacing, is a candidate."""
        return sum(int(i) ** 2 for i in point) <= self.squared_radius


@dataclass(frozen=True)
class Cells:
    """Boxes that contain every candidate once; box b is first[b], ..., first[b] + size[b] - 1.

    Over box b the utility is at most value[b] + <slope[b], i - centre[b]>, i in units of the
    spacing: a plane, all doubles. ``bend`` is the observed curvature along each axis, infinite
    before the first observation. It only decides where to split.
    """

    first: Indices
    size: Indices
    value: Array
    slope: Array
    bend: Array

    @staticmethod
    def whole(lattice: BallLattice, tangents: Tangents, rate: float) -> Cells:
        """Return one box around the ball."""
        reach, shape = lattice.reach, (1, lattice.dimension)
        first, size = np.full(shape, -reach), np.full(shape, 2 * reach)
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
        turned = (slope[: chosen.size] - slope[chosen.size :])[row, axis] / half[row, axis]
        bend = self.bend[chosen].copy()
        bend[row, axis] = np.maximum(turned, 0.0)
        value, slope = _lower_planes(first, size, value, slope, lattice, rate)
        halves = Cells(first, size, value, slope, np.tile(bend, (2, 1)))
        rest = np.ones(self.value.size, dtype=bool)
        rest[chosen] = False
        return self._where(rest)._and(halves._where(_touches(first, size, lattice)))

    def _axes(self, chosen: Indices, lattice: BallLattice) -> Indices:
        """Return the axis along which each chosen box is furthest from its plane."""
        bend, size = self.bend[chosen], self.size[chosen].astype(np.float64)
        # Where the sphere cuts a box, add the sphere's curvature: |slope| / radius.
        cut = _leaves(self.first[chosen], self.size[chosen], lattice)
        steep = np.linalg.norm(self.slope[chosen], axis=1) / math.sqrt(lattice.squared_radius)
        bend = bend + np.where(cut, steep, 0.0)[:, None]
        known = np.where(np.isfinite(bend), bend, 0.0)
        bend = np.maximum(bend, _LEAST_BEND * known.max(axis=1, keepdims=True) + 1e-300)
        # An axis of one point cannot be halved; among unobserved axes split the longest first.
        gap = np.where(np.isinf(bend), 1e300 * size, bend * size**2)
        axes: Indices = np.argmax(np.where(size > 1, gap, -1.0), axis=1)
        return axes

    def _where(self, kept: npt.NDArray[np.bool_]) -> Cells:
        return Cells(
            self.first[kept], self.size[kept], self.value[kept], self.slope[kept], self.bend[kept]
        )

    def _and(self, others: Cells) -> Cells:
        return Cells(
            np.concatenate([self.first, others.first]),
            np.concatenate([self.size, others.size]),
            np.concatenate([self.value, others.value]),
            np.concatenate([self.slope, others.slope]),
            np.concatenate([self.bend, others.bend]),
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


def _touches(first: Indices, size: Indices, lattice: BallLattice) -> npt.NDArray[np.bool_]:
    """Return which boxes may contain a candidate: those whose nearest point is in the ball."""
    last = first + size - 1
    nearest = np.clip(0, first, last)
    kept: npt.NDArray[np.bool_] = np.sum(nearest**2, axis=1) <= lattice.squared_radius
    return kept


def _leaves(first: Indices, size: Indices, lattice: BallLattice) -> npt.NDArray[np.bool_]:
    """Return which boxes contain a point outside the ball."""
    furthest = np.maximum(np.abs(first), np.abs(first + size - 1))
    leaving: npt.NDArray[np.bool_] = np.sum(furthest**2, axis=1) > lattice.squared_radius
    return leaving
