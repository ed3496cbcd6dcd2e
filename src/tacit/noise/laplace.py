"""Run the Laplace mechanism on a lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit import checks
from tacit.arrays import Array
from tacit.noise.bounded import Bounded, Norm, check_norm, round_up
from tacit.noise.exact.interval_arithmetic import Arithmetic, Enclosure, ends, magnitude_bits
from tacit.noise.exact.lattice import add_rounded, lattice_spacing
from tacit.noise.release import Release, emit
from tacit.noise.source import Source
from tacit.privacy.events import PureEpsilon


@dataclass(frozen=True)
class LaplaceLaw:
    """The Laplace law of mean absolute value 1: P(Z > x) = exp(-x) / 2 for x > 0."""

    def quantile(self, tail: Array) -> Array:
        """Return -log(2 tail)."""
        z: Array = -np.log(2.0 * tail)
        return z

    def enclose_tail(self, x: Fraction, precision: int) -> Enclosure:
        """Return bounds on exp(-x) / 2."""
        arithmetic = Arithmetic(precision + magnitude_bits(x) + 8)
        low, high = ends(arithmetic.context.exp(-arithmetic.number(x)))
        return low / 2, high / 2


def laplace(
    bounded: Bounded, epsilon: float, source: Source | None = None
) -> Release[float | Array]:
    """Release a value plus Laplace noise, independent on every coordinate.

        output = h * round((value + width * Laplace(1)) / h)
        width = sensitivity / epsilon, rounded up
        noise_std = sqrt(2) * width,   h = lattice_spacing(noise_std)

    Parameters
    ----------
    bounded : Bounded
        The value, with an L1 sensitivity; one coordinate may use any norm.
    epsilon : float
        The greatest privacy loss.
    source : Source, optional
        Source of random bits. By default a new `secure_source` for this release.

    Returns
    -------
    Release
        The noisy value, of the shape of the input, with ``PureEpsilon(epsilon)`` as event.

    Notes
    -----
    **Guarantee**

    1. The law of the output is exactly the law above in real arithmetic, so the release is
       epsilon-DP with delta 0 (docs/proofs/lazily_exact_noise.md).
    2. Every output is a multiple of h, whatever the value.
    3. Wrong arguments are refused before anything is drawn.

    **Assumes**: the sensitivity; the bits of the source; NumPy's log within 2^-40 (1 + |z|) of
    the truth and mpmath's interval exp. Timing as for `gaussian`.

    Examples
    --------
    >>> from tacit.noise import Norm
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.laplace import laplace
    >>> from tacit.privacy import Relation
    >>> count = Bounded(120.0, 1.0, Norm.L1, Relation.ADD_REMOVE)
    >>> release = laplace(count, epsilon=0.5)
    >>> isinstance(release.value, float), release.event.epsilon
    (True, 0.5)
    """
    check_norm(bounded, "laplace", (Norm.L1,))
    spent = checks.finite_epsilon(epsilon)
    width = round_up(bounded.sensitivity / spent)
    spacing = lattice_spacing(math.sqrt(2.0) * width)
    return emit(
        "laplace",
        bounded,
        PureEpsilon(spent, bounded.relation),
        source,
        lambda words: add_rounded(bounded.value, width, spacing, LaplaceLaw(), words),
    )
