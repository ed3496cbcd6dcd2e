"""Choose the sanitizer with the least noise."""

from __future__ import annotations

from tacit.local.sanitizers.additive import GaussianNoise, SphereNoise
from tacit.local.sanitizers.base import Sanitizer
from tacit.local.sanitizers.cap import HalfSphere, PrivUnit


def least_noise(epsilon: float, delta: float, n_features: int, norm: float = 1.0) -> Sanitizer:
    """Return the sanitizer with the least root-mean-square norm within a cost.

    Parameters
    ----------
    epsilon, delta : float
        The cost of one report. With delta 0 only pure sanitizers are considered.
    n_features : int
        The number of coordinates of a gradient.
    norm : float
        The bound to which gradients are clipped.

    Notes
    -----
    **Guarantee**: the choice depends on these four numbers alone.

    Examples
    --------
    >>> from tacit.local import least_noise
    >>> least_noise(1.0, 0.0, n_features=50).kind
    'priv_unit'
    """
    candidates: list[Sanitizer] = [
        PrivUnit(epsilon, n_features, norm),
        HalfSphere(epsilon, n_features, norm),
        SphereNoise(epsilon, n_features, norm),
    ]
    if delta != 0.0:
        candidates.append(GaussianNoise(epsilon, delta, n_features, norm))
    return min(candidates, key=lambda sanitizer: sanitizer.rms_norm)
