"""Gaussian noise, added at home."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit import checks
from tacit.local.sanitizers.base import (
    LOG_CHANCE_OF_REFUSAL,
    Array,
    Sanitizer,
    Tail,
    norm_slack,
)
from tacit.noise import PreparedRows, Source, lattice_spacing, prepare_gaussian
from tacit.privacy import Budget, Gaussian, Relation
from tacit.privacy.calibration import gaussian_multiplier
from tacit.privacy.events import Event


@dataclass(frozen=True)
class GaussianNoise(Sanitizer):
    """The gradient plus N(0, noise_std^2) on every coordinate.

        report = h round((gradient + N(0, noise_std^2 I)) / h)
        noise_std = 2 norm noise_multiplier, the least that costs at most (epsilon, delta)

    Parameters
    ----------
    epsilon, delta : float
        What one report may cost; delta is above 0.
    n_features : int
        How many coordinates a gradient has.
    norm : float
        The bound to which gradients are clipped.

    Notes
    -----
    **Guarantee**

    1. A report costs ``Gaussian(noise_multiplier, REPLACE)``: at most (epsilon, delta), and no
       delta is added for floats.
    2. Every report is a multiple of ``spacing``, a power of two that depends on the parameters.
    3. E report = gradient, but for a rounding bias below e^-(10^7) of the spacing.
    4. ``tail``: variance (noise_std + spacing / 2)^2, infinite reach.

    Proofs: docs/proofs/local_sanitizers.md.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local.sanitizers import GaussianNoise
    >>> sanitizer = GaussianNoise(epsilon=1.0, delta=1e-5, n_features=10)
    >>> round(sanitizer.noise_std, 4)
    7.4613
    >>> sanitizer.sanitize(np.zeros(10)).value.shape
    (10,)
    """

    kind = "gaussian_noise"

    epsilon: float
    delta: float
    n_features: int
    norm: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        delta = checks.positive(
            "delta",
            self.delta,
            most=0.5,
            remedy="Gaussian noise cannot be pure: pass a delta such as 1e-6, or use PrivUnit.",
        )
        object.__setattr__(self, "delta", delta)

    @cached_property
    def noise_multiplier(self) -> float:
        """noise_std / (2 norm): the least within (epsilon, delta)."""
        return gaussian_multiplier(Budget(self.epsilon, self.delta, Relation.REPLACE))

    @property
    def event(self) -> Event:
        """What one report costs the person who sends it."""
        return Gaussian(self.noise_multiplier, Relation.REPLACE)

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise on each coordinate, rounded up."""
        return math.nextafter(
            2.0 * self.norm * norm_slack(self.n_features) * self.noise_multiplier, math.inf
        )

    @property
    def spacing(self) -> float:
        """The lattice of noise with this standard deviation."""
        return lattice_spacing(self.noise_std)

    @property
    def rms_norm(self) -> float:
        """sqrt(norm^2 + d noise_std^2); rounding changes it by less than one part in 2^11."""
        return math.hypot(self.norm, self.noise_std * math.sqrt(self.n_features))

    @property
    def tail(self) -> Tail:
        """Sub-Gaussian everywhere; coordinates are independent, so each is rounded by itself."""
        return Tail(self.noise_std**2, math.inf).plus_rounding(self.spacing / 2.0)

    def prepare(self, n: int, source: Source) -> PreparedRows:
        """Return ``n`` rows of noise."""
        return prepare_gaussian(n, self.n_features, self.noise_std, source)

    def _is_plausible(self, steps: Array) -> bool:
        # P(chi-square_d > d + 2 sqrt(d x) + 2 x) <= e^-x (docs/proofs/local_sanitizers.md, 6)
        d, x = self.n_features, LOG_CHANCE_OF_REFUSAL
        longest = self.noise_std * math.sqrt(d + 2.0 * math.sqrt(d * x) + 2.0 * x) + self.norm
        return float(np.linalg.norm(steps)) * self.spacing <= longest * norm_slack(
            self.n_features
        ) + (self.spacing * math.sqrt(d))
