"""The Gaussian mechanism on a lattice, and Gaussian noise by a smooth sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tacit import checks
from tacit.arrays import Array
from tacit.noise.bounded import Bounded, Norm, check_norm, round_up
from tacit.noise.exact.interval_arithmetic import Enclosure
from tacit.noise.exact.lattice import Ahead, add_rounded, lattice_spacing
from tacit.noise.release import Release, emit
from tacit.noise.source import Source, secure_source
from tacit.privacy.events import Gaussian, SmoothGaussian


@dataclass(frozen=True)
class GaussianLaw:
    """The standard Gaussian: P(Z > x) = erfc(x / sqrt(2)) / 2."""

    def quantile(self, tail: Array) -> Array:
        """Return -ndtri(tail)."""
        from scipy.special import ndtri

        z: Array = -ndtri(tail)
        return z

    def enclose_tail(self, x: Fraction, precision: int) -> Enclosure:
        """Return bounds on erfc(x / sqrt(2)) / 2.

        mpmath computes erfc to its working precision. Rounding x changes the tail by a relative
        x^2 2^-p; 40 bits of room cover both for any x below 2^15.
        """
        import mpmath

        context = _context(precision + 40)
        argument = context.mpf(x.numerator) / context.mpf(x.denominator) / context.sqrt(2)
        tail = context.erfc(argument) / 2
        middle = Fraction(*mpmath.libmp.to_rational(tail._mpf_))
        slack = middle / (1 << precision)
        return middle - slack, middle + slack


@lru_cache(maxsize=64)
def _context(precision: int) -> Any:
    # The precision of a context never changes, so sharing it is safe.
    import mpmath

    context = mpmath.mp.clone()
    context.prec = precision
    return context


def draw_ahead(n_coordinates: int, source: Source | None = None) -> Ahead:
    """Draw Gaussian noise for a value of so many coordinates that is not known yet.

    Pass it to `gaussian` once the value is computed; each can be used once.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import Norm
    >>> from tacit.noise.gaussian import draw_ahead
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.gaussian import gaussian
    >>> from tacit.privacy import Relation
    >>> noise = draw_ahead(3)
    >>> total = Bounded(np.zeros(3), 1.0, Norm.L2, Relation.ADD_REMOVE)
    >>> gaussian(total, 2.0, ahead=noise).value.shape
    (3,)
    """
    n = checks.count("n_coordinates", n_coordinates)
    return Ahead(n, GaussianLaw(), secure_source() if source is None else source)


def gaussian(
    bounded: Bounded,
    noise_multiplier: float,
    source: Source | None = None,
    *,
    ahead: Ahead | None = None,
) -> Release[float | Array]:
    """Release a value plus Gaussian noise.

        output = h * round((value + N(0, noise_std^2 I)) / h)
        noise_std = noise_multiplier * sensitivity, rounded up
        h = lattice_spacing(noise_std)

    Parameters
    ----------
    bounded : Bounded
        The value, with an L2 sensitivity. An L1 sensitivity is accepted, as it is at least the L2
        one; one coordinate may use any norm.
    noise_multiplier : float
        Standard deviation of the noise over the sensitivity; calibrate it with
        `tacit.privacy.calibrate`.
    source : Source, optional
        Source of random bits. By default a new `secure_source` for this release.
    ahead : Ahead, optional
        Noise from `draw_ahead`, with its own source.

    Returns
    -------
    Release
        The noisy value, of the shape of the input, with ``Gaussian(noise_multiplier)`` as event.

    Notes
    -----
    **Guarantee**

    1. The law of the output is exactly the law above in real arithmetic, so the release is
       exactly mu-GDP with mu = 1 / noise_multiplier; no delta is added for floats
       (docs/proofs/lazily_exact_noise.md).
    2. Every output is a multiple of h, whatever the value.
    3. Wrong arguments are refused before anything is drawn.

    **Assumes**: the sensitivity; the bits of the source; SciPy's ndtri within 2^-40 (1 + |z|) of
    the truth; mpmath's erfc correct except for the last 30 bits of its working precision, 168 bits
    or more. About one draw in four million takes a fraction of a millisecond longer, with a
    probability that hardly depends on the value. An attacker who can time single draws is out of
    scope.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import Norm
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.gaussian import gaussian
    >>> from tacit.privacy import Relation
    >>> total = Bounded(np.array([3.0, 5.0]), 1.0, Norm.L2, Relation.ADD_REMOVE)
    >>> release = gaussian(total, noise_multiplier=2.0)
    >>> release.value.shape, release.event.noise_multiplier
    ((2,), 2.0)
    """
    check_norm(bounded, "gaussian", (Norm.L2, Norm.L1))
    multiplier = checks.positive(
        "noise_multiplier",
        noise_multiplier,
        remedy="calibrate it to a Budget with tacit.privacy.calibrate; zero noise protects "
        "nothing and must be recorded as NonPrivate(reason=...).",
    )
    noise_std = round_up(multiplier * bounded.sensitivity)
    spacing = lattice_spacing(noise_std)
    if ahead is not None:
        if source is not None and source is not ahead.source:
            raise ValueError("noise drawn ahead has its own source; leave source out.")
        source = ahead.source
    return emit(
        "gaussian",
        bounded,
        Gaussian(multiplier, bounded.relation),
        source,
        lambda words: add_rounded(bounded.value, noise_std, spacing, GaussianLaw(), words, ahead),
    )


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
    >>> from tacit.noise.gaussian import smooth_gaussian
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
