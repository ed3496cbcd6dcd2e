"""Define sanitizers that add noise: Gaussian noise, sphere noise, or none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit import checks
from tacit.local.sanitizers.base import (
    LOG_CHANCE_OF_REFUSAL,
    Array,
    Sanitizer,
    Tail,
    checked_features,
    norm_slack,
)
from tacit.noise import Source
from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.prepared import (
    Kernel,
    PreparedRows,
    Steps,
    add_row,
    prepare_gaussian,
    prepare_sphere,
)
from tacit.privacy import Budget, Gaussian, NonPrivate, Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.privacy.events import Event


@dataclass(frozen=True)
class GaussianNoise(Sanitizer):
    """The gradient plus N(0, noise_std^2) on every coordinate.

        report = h round((gradient + N(0, noise_std^2 I)) / h)
        noise_std = 2 norm noise_multiplier, the least that costs at most (epsilon, delta)

    Parameters
    ----------
    epsilon, delta : float
        The cost of one report; delta is above 0.
    n_features : int
        The number of coordinates of a gradient.
    norm : float
        The bound to which gradients are clipped.

    Notes
    -----
    **Guarantee**

    1. A report costs ``Gaussian(noise_multiplier, REPLACE)``: at most (epsilon, delta), and no
       delta is added for floats.
    2. Every report is a multiple of ``spacing``, a power of two that depends on the parameters.
    3. E report = gradient, but for a rounding bias below e^-(10^7) of the spacing.
    4. ``tail``: variance (noise_std + spacing / 2)^2, for all rates.

    Proofs: docs/proofs/local_sanitizers.md.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import GaussianNoise
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
        """The cost of one report for its sender."""
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
        """Sub-Gaussian at all rates; coordinates are independent, and rounded separately."""
        return Tail(self.noise_std**2, math.inf).plus_rounding(self.spacing / 2.0)

    def prepare(self, n: int, source: Source) -> PreparedRows:
        """Return ``n`` rows of noise."""
        return prepare_gaussian(n, self.n_features, self.noise_std, source)

    def _is_plausible(self, steps: Array) -> bool:
        # P(chi-square_d > d + 2 sqrt(d x) + 2 x) <= e^-x (docs/proofs/local_sanitizers.md, 6)
        d, x = self.n_features, LOG_CHANCE_OF_REFUSAL
        longest = self.noise_std * math.sqrt(d + 2.0 * math.sqrt(d * x) + 2.0 * x) + self.norm
        return _is_within(self, steps, longest)


@dataclass(frozen=True)
class SphereNoise(Sanitizer):
    """The gradient plus noise of density proportional to exp(-epsilon ||z|| / (2 norm)).

        report = h round((gradient + z) / h),   ||z|| ~ width Gamma(d),   width = 2 norm / epsilon
        E exp(v <z, a>) = (1 - (width v)^2)^(-(d+1)/2)          Song, Chaudhuri and Sarwate (2013)

    where d is ``n_features``. Its root-mean-square norm is about sqrt(d) times that of `PrivUnit`:
    it is for comparison. Parameters are as for `PrivUnit`, without gamma.

    Notes
    -----
    **Guarantee**

    1. A report costs ``PureEpsilon(epsilon, REPLACE)``; no delta is added for floats.
    2. Every report is a multiple of ``spacing``, a power of two that depends on the parameters.
    3. E report = gradient, but for a rounding bias below spacing / 10^7 on each coordinate.
    4. ``tail.variance`` = 16 log(4/3) (d + 1) norm^2 / epsilon^2 = 4.603 (d + 1) norm^2 / epsilon^2
       and a few parts in a thousand for the rounding, with ``tail.largest_rate`` = epsilon / (4
       norm).

    Proofs: docs/proofs/local_sanitizers.md.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import SphereNoise
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
        """The tail for rates up to epsilon / (4 norm)."""
        largest_rate = 0.5 / self.width
        rounding = self.spacing * math.sqrt(self.n_features) / 2.0
        # plus_rounding lowers the largest rate by at most this factor: sigma >= width sqrt(d + 1).
        room = 1.0 + rounding / (self.width * math.sqrt(self.n_features + 1.0))
        rounded = Tail(self._variance(largest_rate * room), largest_rate * room).plus_rounding(
            rounding
        )
        return Tail(rounded.variance, largest_rate)

    def _variance(self, largest_rate: float) -> float:
        # 2 log E exp(v <z, a>) / v^2 = -(d + 1) log(1 - (width v)^2) / v^2 increases with v.
        square = (self.width * largest_rate) ** 2
        return -(self.n_features + 1.0) * math.log1p(-square) / square * self.width**2

    def prepare(self, n: int, source: Source) -> PreparedRows:
        """Return ``n`` rows of noise."""
        return prepare_sphere(n, self.n_features, self.width, source)

    def _is_plausible(self, steps: Array) -> bool:
        # P(Gamma(d) > d + sqrt(2 d x) + x) <= e^-x (docs/proofs/local_sanitizers.md, 6)
        d, x = self.n_features, LOG_CHANCE_OF_REFUSAL
        longest = self.width * (d + math.sqrt(2.0 * d * x) + x) + self.norm
        return _is_within(self, steps, longest)


def _is_within(sanitizer: Sanitizer, steps: Array, longest: float) -> bool:
    """Return whether steps are no longer than a report can be, rounding included."""
    d, spacing = sanitizer.n_features, sanitizer.spacing
    most = longest * norm_slack(d) + spacing * math.sqrt(d)
    return float(np.linalg.norm(steps)) * spacing <= most


_STEPS_PER_NORM_BITS = 40


@dataclass(frozen=True)
class NoNoise(Sanitizer):
    """Report the gradient itself, rounded to the 40th bit, without a guarantee.

    Used for an infinite epsilon.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local.sanitizers.additive import NoNoise
    >>> NoNoise(n_features=2).sanitize(np.array([0.5, 0.25])).value
    array([0.5 , 0.25])
    """

    kind = "no_noise"
    delta = 0.0
    epsilon = math.inf

    n_features: int
    norm: float = 1.0

    def __post_init__(self) -> None:
        checked_features(self.n_features)
        checks.positive("norm", self.norm, remedy="pass the bound to which gradients are clipped.")

    @property
    def event(self) -> Event:
        """No promise."""
        return NonPrivate("the budget is infinite", relation=Relation.REPLACE)

    @property
    def spacing(self) -> float:
        """A power of two, about norm / 2^40."""
        return math.ldexp(1.0, math.frexp(self.norm)[1] - _STEPS_PER_NORM_BITS)

    @property
    def rms_norm(self) -> float:
        """The norm."""
        return self.norm

    @property
    def tail(self) -> Tail:
        """A report is its own mean, up to rounding."""
        return Tail(self.spacing**2 * self.n_features)

    def prepare(self, n: int, source: Source) -> PreparedRows:
        """Return ``n`` rows of zeros."""
        return _NoRows(np.zeros((n, self.n_features)), np.zeros(n), 1.0 / self.spacing, source)

    def _is_plausible(self, steps: Array) -> bool:
        return float(np.linalg.norm(steps)) * self.spacing <= self.norm * (1.0 + 2.0**-20)


@dataclass(frozen=True, eq=False)
class _NoRows:
    """Rows without noise."""

    kernel: ClassVar[Kernel] = staticmethod(add_row)

    floats: Array
    coins: Array
    scale: float
    source: Source

    @property
    def margins(self) -> Array:
        """Zeros."""
        # At a half, either neighbour is correct.
        return self.coins

    def exactly(self, i: int, value: Array, norm: float) -> Steps:
        """Return the value in steps."""
        return np.rint(value * self.scale).astype(np.int64)
