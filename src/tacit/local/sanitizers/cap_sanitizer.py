"""What the sanitizers that answer with a point of a sphere have in common."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property

import numpy as np

from tacit.local.sanitizers.base import Array, Sanitizer, Tail
from tacit.local.sanitizers.cap_law import mean_length
from tacit.local.sanitizers.cap_tail import cap_variance, closed_variance, is_worthwhile
from tacit.noise import Cap, PreparedRows, Source, prepare_cap

# A learner that bets on v uses log(1 + v g) >= v g - (v g)^2, true for v g >= -0.6838, so it never
# asks for the tail beyond 0.6838 / norm.
LEARNER_REACH = 0.6838
# The tail of the ideal point is computed this much further, for the rounding.
_ROOM = 1.0 + 2.0**-8
# Float error of a sum of squares in units of one; far below the rounding, far above d 2^-53.
_SUM_SLACK = 2.0**-30


class CapSanitizer(Sanitizer):
    """Reports ``radius`` times a random point of the unit sphere.

        u = +gradient/||gradient|| with probability 1/2 + ||gradient|| / (2 norm), else its negative
        report = radius h round(V / h),   V of the law of ``cap`` about u,   radius = norm / m

    with m = E<V, u>.
    """

    delta = 0.0

    @property
    @abstractmethod
    def cap(self) -> Cap:
        """The law of the point."""

    @cached_property
    def radius(self) -> float:
        """The length of every report, before rounding: norm / m."""
        return self.norm / mean_length(self.cap)

    @property
    def spacing(self) -> float:
        """Radius h, h the lattice of the unit sphere: a power of two that depends on d."""
        return self.radius * self.cap.spacing

    @property
    def rms_norm(self) -> float:
        """The radius; rounding changes it by less than one part in 2^20."""
        return self.radius

    @cached_property
    def tail(self) -> Tail:
        """The least constant known: by quadrature up to 0.6838 / norm, or in closed form."""
        radius, rounding = self.radius, self.spacing * math.sqrt(self.n_features) / 2.0
        closed = Tail(radius**2 * closed_variance(self.cap), math.inf).plus_rounding(rounding)
        if not is_worthwhile(self.cap):
            return closed
        reach = LEARNER_REACH / self.norm
        variance = cap_variance(self.cap, reach * radius * _ROOM)
        tail = Tail(radius**2 * variance, reach * _ROOM).plus_rounding(rounding)
        if tail.variance >= closed.variance or tail.reach < reach:
            return closed
        return Tail(tail.variance, reach)

    def prepare(self, n: int, source: Source) -> PreparedRows:
        """Return ``n`` rows of noise."""
        return prepare_cap(n, self.n_features, self.cap, source)

    def _is_plausible(self, steps: Array) -> bool:
        # Some unit vector rounds to these steps iff the box of half a step around them meets the
        # sphere: its nearest corner is within the sphere, its furthest is not.
        h = self.cap.spacing
        size = np.abs(steps) * h
        nearest = float(np.sum(np.maximum(size - h / 2.0, 0.0) ** 2))
        furthest = float(np.sum((size + h / 2.0) ** 2))
        return nearest <= 1.0 + _SUM_SLACK and furthest >= 1.0 - _SUM_SLACK
