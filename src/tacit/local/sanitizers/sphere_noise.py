"""Noise of random length in a random direction, added at home."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.local.sanitizers.base import (
    LOG_CHANCE_OF_REFUSAL,
    Array,
    Sanitizer,
    Tail,
    norm_slack,
)
from tacit.noise import PreparedRows, Source, lattice_spacing, prepare_sphere


@dataclass(frozen=True)
class SphereNoise(Sanitizer):
    """The gradient plus noise of density proportional to exp(-epsilon ||z|| / (2 norm)).

        report = h round((gradient + z) / h),   ||z|| ~ width Gamma(d),   width = 2 norm / epsilon
        E exp(v <z, a>) = (1 - (width v)^2)^(-(d+1)/2)          Song, Chaudhuri and Sarwate (2013)

    where d is ``n_features``. Its root-mean-square norm is about sqrt(d) times that of `PrivUnit`:
    it is here to compare with. Parameters as for `PrivUnit`, but for gamma.

    Notes
    -----
    **Guarantee**

    1. A report costs ``PureEpsilon(epsilon, REPLACE)``; no delta is added for floats.
    2. Every report is a multiple of ``spacing``, a power of two that depends on the parameters.
    3. E report = gradient, but for a rounding bias below spacing / 10^7 on each coordinate.
    4. ``tail.variance`` = 16 log(4/3) (d + 1) norm^2 / epsilon^2 = 4.603 (d + 1) norm^2 / epsilon^2
       and a few parts in a thousand for the rounding, with ``tail.reach`` = epsilon / (4 norm).

    Proofs: docs/proofs/local_sanitizers.md.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local.sanitizers import SphereNoise
    >>> sanitizer = SphereNoise(epsilon=1.0, n_features=100)
    >>> round(sanitizer.rms_norm)
    201
    >>> sanitizer.sanitize(np.zeros(100)).event.epsilon
    1.0
    """

    kind = "sphere_noise"
    delta = 0.0

    epsilon: float
    n_features: int
    norm: float = 1.0

    @property
    def width(self) -> float:
        """2 norm / epsilon, rounded up."""
        return math.nextafter(
            2.0 * self.norm * norm_slack(self.n_features) / self.epsilon, math.inf
        )

    @property
    def spacing(self) -> float:
        """The lattice of noise with standard deviation width sqrt(d + 1) on each coordinate."""
        return lattice_spacing(self.width * math.sqrt(self.n_features + 1.0))

    @property
    def rms_norm(self) -> float:
        """sqrt(norm^2 + width^2 d (d + 1)); rounding changes it by less than one part in 2^11."""
        d = self.n_features
        return math.hypot(self.norm, self.width * math.sqrt(d * (d + 1.0)))

    @property
    def tail(self) -> Tail:
        """The tail up to epsilon / (4 norm)."""
        reach = 0.5 / self.width
        rounding = self.spacing * math.sqrt(self.n_features) / 2.0
        # plus_rounding shortens the reach by this factor at most: sigma >= width sqrt(d + 1).
        room = 1.0 + rounding / (self.width * math.sqrt(self.n_features + 1.0))
        rounded = Tail(self._variance(reach * room), reach * room).plus_rounding(rounding)
        return Tail(rounded.variance, reach)

    def _variance(self, reach: float) -> float:
        # 2 log E exp(v <z, a>) / v^2 = -(d + 1) log(1 - (width v)^2) / v^2 increases with v.
        square = (self.width * reach) ** 2
        return -(self.n_features + 1.0) * math.log1p(-square) / square * self.width**2

    def prepare(self, n: int, source: Source) -> PreparedRows:
        """Return ``n`` rows of noise."""
        return prepare_sphere(n, self.n_features, self.width, source)

    def _is_plausible(self, steps: Array) -> bool:
        # P(Gamma(d) > d + sqrt(2 d x) + x) <= e^-x (docs/proofs/local_sanitizers.md, 6)
        d, x = self.n_features, LOG_CHANCE_OF_REFUSAL
        longest = self.width * (d + math.sqrt(2.0 * d * x) + x) + self.norm
        return float(np.linalg.norm(steps)) * self.spacing <= longest * norm_slack(
            self.n_features
        ) + (self.spacing * math.sqrt(d))
