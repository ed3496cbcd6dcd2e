"""A random point of a cap of the sphere, of the best size."""

from __future__ import annotations

from dataclasses import dataclass

from tacit import checks
from tacit.local.sanitizers.cap_law import LARGEST_GAMMA, best_gamma, widest_cap
from tacit.local.sanitizers.cap_sanitizer import CapSanitizer
from tacit.noise import Cap


@dataclass(frozen=True)
class PrivUnit(CapSanitizer):
    """A uniform point of the cap {v: <v, u> >= gamma} about the gradient's direction, or not of it.

        epsilon = log(p (1 - Q) / ((1 - p) Q)),   Q the share of the sphere in the cap
        radius = norm / m,   m = kappa (p / Q - (1 - p) / (1 - Q))

    Bhowmick et al. (2018), with the p that spends all of epsilon and the gamma that makes the
    radius least; then gamma = m. Asi, Feldman and Talwar (2022) show it to be the best of a large
    family of unbiased reports.

    Parameters
    ----------
    epsilon : float
        The greatest privacy loss of one report.
    n_features : int
        How many coordinates a gradient has.
    norm : float
        The bound to which gradients are clipped.
    gamma : float, optional
        Where the cap begins, in [0, 1). By default the best.

    Notes
    -----
    **Guarantee**

    1. A report costs ``PureEpsilon(epsilon, REPLACE)``, whatever gamma is; no delta is added for
       floats.
    2. Every report is a multiple of ``spacing`` and lies within radius 2^-20 of the sphere.
    3. E report = gradient, but for a rounding bias of norm below radius 2^-20.
    4. ``tail``: see docs/proofs/local_sanitizers.md, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local.sanitizers import PrivUnit
    >>> [round(PrivUnit(epsilon, n_features=100).rms_norm, 2) for epsilon in (1.0, 8.0)]
    [25.11, 3.71]
    >>> PrivUnit(1.0, n_features=3).sanitize(np.array([0.6, 0.0, 0.0])).value.shape
    (3,)
    """

    kind = "priv_unit"

    epsilon: float
    n_features: int
    norm: float = 1.0
    gamma: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        gamma = best_gamma(self.n_features, self.epsilon) if self.gamma is None else self.gamma
        checks.number("gamma", gamma, remedy="leave it out for the best.")
        if not 0.0 <= gamma <= LARGEST_GAMMA:
            raise ValueError(
                f"gamma must be in [0, 1 - 2^-20], got {gamma!r}: a cap beyond half the sphere "
                "is never better; leave it out for the best."
            )
        object.__setattr__(self, "gamma", float(gamma))
        try:
            _ = self.cap
        except ValueError as error:
            raise ValueError(
                f"gamma = {gamma!r} makes too small a cap for n_features = {self.n_features} and "
                f"epsilon = {self.epsilon!r}; leave it out for the best."
            ) from error

    @property
    def cap(self) -> Cap:
        """The cap, with the p that spends epsilon."""
        assert self.gamma is not None
        return widest_cap(self.n_features, self.gamma, self.epsilon)
