"""Add Gaussian noise in proportion to a smooth sensitivity, which is itself private."""

from __future__ import annotations

from tacit import checks
from tacit.noise.bounded import Bounded, Norm, round_up
from tacit.noise.gaussian import GaussianLaw
from tacit.noise.generator import Source
from tacit.noise.lattice import add_rounded, lattice_spacing
from tacit.noise.release import Release, emit
from tacit.privacy.events import SmoothGaussian

# A smooth sensitivity below this share of the greatest is raised to it.
LEAST_SHARE = 2.0**-20


def smooth_gaussian(
    value: float,
    sensitivity: float,
    greatest: float,
    event: SmoothGaussian,
    source: Source | None = None,
) -> Release[float]:
    """Release value + (margin + N(0, 1)) * noise_multiplier * sensitivity, rounded up at the end.

    Parameters
    ----------
    value : float
        The number to release.
    sensitivity : float
        Its smooth sensitivity on the given data; private.
    greatest : float
        The greatest value of the sensitivity on any data; public.
    event : SmoothGaussian
        The noise multiplier, smoothness and margin, all fixed in advance.
    source : Source, optional
        Source of random bits. By default a new `secure_source` for this release.

    Notes
    -----
    **Guarantee**

    1. The law is exactly the one above on a public lattice, whose spacing follows from
    ``greatest``, and half a step is added: the release is below ``value`` with probability
    Phi(-margin) at most.
    2. It costs ``event``. The maximum of a smooth sensitivity and a constant is a smooth
    sensitivity too, so raising a small one to the least share changes nothing.

    **Assumes** that ``sensitivity`` is a smooth sensitivity of ``value``.

    Examples
    --------
    >>> from tacit.noise.smooth import smooth_gaussian
    >>> from tacit.privacy import SmoothGaussian
    >>> told = smooth_gaussian(0.5, 1e-6, 1e-3, SmoothGaussian(10.0, 0.01, margin=3.0)).value
    >>> 0.4999 < told < 0.5002
    True
    """
    top = checks.positive("greatest", greatest)
    size = min(max(checks.at_least("sensitivity", sensitivity, 0.0), LEAST_SHARE * top), top)
    width = round_up(event.noise_multiplier * size)
    spacing = lattice_spacing(round_up(event.noise_multiplier * top))
    bounded = Bounded(float(value), top, Norm.L2, event.relation)

    def draw(words: Source) -> float:
        centre = float(value) + event.margin * width
        return float(add_rounded(centre, width, spacing, GaussianLaw(), words)) + spacing / 2

    return emit("smooth_gaussian", bounded, event, source, draw)
