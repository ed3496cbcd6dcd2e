"""A random point of one half of the sphere."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.local.sanitizers.cap_law import widest_cap
from tacit.local.sanitizers.cap_sanitizer import CapSanitizer
from tacit.noise import Cap


@dataclass(frozen=True)
class HalfSphere(CapSanitizer):
    """A uniform point of the gradient's half of the sphere, or of the other half.

        p = e^epsilon / (1 + e^epsilon)
        radius = norm sqrt(pi) Gamma((d+1)/2) / Gamma(d/2) (e^epsilon + 1) / (e^epsilon - 1)

    the L2-ball mechanism of Duchi, Jordan and Wainwright (2018), with d = ``n_features``. It is
    `PrivUnit` with a cap of half the sphere, and nearly as good where epsilon is below 1;
    parameters as there, but for gamma.

    Notes
    -----
    **Guarantee**

    1. A report costs ``PureEpsilon(epsilon, REPLACE)``; no delta is added for floats.
    2. Every report is a multiple of ``spacing`` and lies within radius 2^-20 of the sphere.
    3. E report = gradient, but for a rounding bias of norm below radius 2^-20.
    4. ``tail``: see docs/proofs/local_sanitizers.md, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local.sanitizers import HalfSphere
    >>> sanitizer = HalfSphere(epsilon=1.0, n_features=100)
    >>> round(sanitizer.rms_norm, 2)
    27.05
    >>> report = sanitizer.sanitize(np.zeros(100)).value
    >>> round(float(np.linalg.norm(report)), 2)
    27.05
    """

    kind = "half_sphere"

    epsilon: float
    n_features: int
    norm: float = 1.0

    @property
    def cap(self) -> Cap:
        """Half the sphere."""
        return widest_cap(self.n_features, 0.0, self.epsilon)
