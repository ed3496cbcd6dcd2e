"""Reports as they are: no privacy, for a run that differs from a private one in one number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit import checks
from tacit.local.sanitizers.base import Array, Sanitizer, checked_features
from tacit.local.tail import Tail
from tacit.noise import PreparedRows, Source, add_row
from tacit.noise.prepared_noise import Kernel, Steps
from tacit.privacy import NonPrivate, Relation
from tacit.privacy.events import Event

_STEPS_PER_NORM_BITS = 40


@dataclass(frozen=True)
class NoNoise(Sanitizer):
    """The gradient itself, rounded to the 40th bit. Carries no promise.

    What an infinite epsilon asks for.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local.sanitizers import NoNoise
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
        """A report is its own mean, but for the rounding."""
        return Tail(self.spacing**2 * self.n_features)

    def prepare(self, n: int, source: Source) -> PreparedRows:
        """Return ``n`` rows of zeros."""
        return _NoRows(np.zeros((n, self.n_features)), np.zeros(n), 1.0 / self.spacing, source)

    def _is_plausible(self, steps: Array) -> bool:
        return float(np.linalg.norm(steps)) * self.spacing <= self.norm * (1.0 + 2.0**-20)


@dataclass(frozen=True, eq=False)
class _NoRows:
    """Rows that hide nothing."""

    kernel: ClassVar[Kernel] = staticmethod(add_row)

    floats: Array
    coins: Array
    scale: float
    source: Source

    @property
    def margins(self) -> Array:
        """Zeros."""
        # Either neighbour of a half will do.
        return self.coins

    def exactly(self, i: int, value: Array, norm: float) -> Steps:
        """Return the value in steps."""
        return np.rint(value * self.scale).astype(np.int64)
