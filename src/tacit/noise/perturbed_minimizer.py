"""Release the minimiser of a randomly perturbed objective.

The perturbation is an ideal real vector b, known to floats within a stated error. The minimiser is
known within a certified distance. Noise on the output, drawn on a public lattice, covers both gaps
(docs/proofs/objective_perturbation.md, section 10).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array
from tacit.noise.bounded import Bounded
from tacit.noise.exact.lattice import add_rounded, lattice_spacing
from tacit.noise.gaussian import GaussianLaw
from tacit.noise.release import Release, emit_implied
from tacit.noise.source import Source
from tacit.noise.sphere import add_sphere
from tacit.privacy.events import Event

# |float variable - ideal variable| for one standard Gaussian whose tail is known to 41 bits or
# more: 2^-43 (1 + |z|) for ndtri, 2^-41 for the bits not drawn, |z| < 13.
_GAUSSIAN_ERROR = 2.0**-38
# A direction is used only if the Gaussian vector has at least this norm, in units of sqrt(d).
_LEAST_LENGTH = 2.0**-8
# Relative error of a float sphere vector: 2 * 2^-43 / 2^-8 for the direction, less for the rest.
_SPHERE_ERROR = 2.0**-33
# A smaller 64-bit word is a uniform variable with fewer than 41 significant bits.
_OPEN = 1 << 41


@dataclass(frozen=True)
class GaussianPerturbation:
    """b ~ N(0, noise_std^2 I), and Gaussian noise on the output.

    ``error`` bounds ||float b - ideal b||; ``output_std`` is the noise on the minimiser.
    """

    noise_std: float
    output_std: float
    shape: tuple[int, ...]

    @property
    def error(self) -> float:
        """Bound on the distance between the float vector and the ideal one."""
        return self.noise_std * _GAUSSIAN_ERROR * math.sqrt(math.prod(self.shape))

    def draw(self, source: Source) -> Array:
        """Return b to within ``error``."""
        return self.noise_std * _gaussian_floats(math.prod(self.shape), source).reshape(self.shape)

    def add_output_noise(self, weights: Array, source: Source) -> Array:
        """Return the weights plus noise, on the public lattice."""
        spacing = lattice_spacing(self.output_std)
        noisy = add_rounded(weights, self.output_std, spacing, GaussianLaw(), source)
        return np.asarray(noisy)


@dataclass(frozen=True)
class SpherePerturbation:
    """b with density proportional to exp(-||b|| / noise_radius), and sphere noise on the output.

    ``error`` bounds ||float b - ideal b|| except with probability below 2^-200.
    """

    noise_radius: float
    output_radius: float
    shape: tuple[int, ...]

    @property
    def output_std(self) -> float:
        """The standard deviation of a coordinate of the output's noise: sqrt(d + 1) radius."""
        return self.output_radius * math.sqrt(math.prod(self.shape) + 1)

    @property
    def error(self) -> float:
        """Bound on the distance between the float vector and the ideal one."""
        d = math.prod(self.shape)
        # P[Gamma(d) > d + 17 sqrt(d) + 140] < 2^-200 (Bernstein)
        largest = d + 17 * math.sqrt(d) + 140
        return self.noise_radius * _SPHERE_ERROR * largest

    def draw(self, source: Source) -> Array:
        """Return b to within ``error``: a Gamma(d) radius times a uniform direction."""
        d = math.prod(self.shape)
        g = _gaussian_floats(d, source)
        # A vector this short has no accurate direction: draw again. Norm and direction of a
        # Gaussian vector are independent, so this does not change the law of the direction.
        while float(np.linalg.norm(g)) < _LEAST_LENGTH * math.sqrt(d):
            g = _gaussian_floats(d, source)
        radius = float(_exponential_floats(d, source).sum())
        b: Array = self.noise_radius * radius * (g / np.linalg.norm(g))
        return b.reshape(self.shape)

    def add_output_noise(self, weights: Array, source: Source) -> Array:
        """Return the weights plus noise, on the public lattice."""
        return np.asarray(add_sphere(weights, self.output_radius, source))


def _gaussian_floats(n: int, source: Source) -> Array:
    """Return n standard Gaussians, each within _GAUSSIAN_ERROR of an ideal one."""
    from scipy.special import ndtri

    words = source.words(n)
    positive = words < np.uint64(1 << 63)
    tails = np.where(positive, words, ~words)
    p = tails * 2.0**-64 + 2.0**-65
    for i in np.flatnonzero(tails < np.uint64(_OPEN)):
        p[i] = _refined(int(tails[i]), source)
    z: Array = -ndtri(p)
    return np.where(positive, z, -z)


def _exponential_floats(n: int, source: Source) -> Array:
    """Return n standard exponentials -log U, each within 2^-40 (1 + E) of an ideal one."""
    words = source.words(n)
    p = words * 2.0**-64 + 2.0**-65
    for i in np.flatnonzero(words < np.uint64(_OPEN)):
        p[i] = _refined(int(words[i]), source)
    values: Array = -np.log(np.minimum(p, 1.0))
    return values


def _refined(word: int, source: Source) -> float:
    """Return a uniform variable that begins with ``word``, to 41 significant bits or more.

    In the far tail 64 bits do not determine the quantile: draw 64 more until they do.
    """
    n_bits = 64
    while word < _OPEN:
        word, n_bits = word << 64 | int(source.words(1)[0]), n_bits + 64
    return math.ldexp(word + 0.5, -n_bits)


def release_minimizer(
    perturbation: GaussianPerturbation | SpherePerturbation,
    minimize: Callable[[Array], Array],
    implied: Callable[[Array], Bounded],
    event: Event,
    source: Source | None = None,
) -> Release[Array]:
    """Release the minimiser that ``minimize`` finds for a random linear perturbation.

    Parameters
    ----------
    perturbation
        The laws of b and of the noise on the output.
    minimize
        Returns a point for a vector b. The point is certified to be within the sensitivity of the
        output noise of the exact minimiser for any b' within ``perturbation.error`` of b.
    implied
        Returns the records' gradient sum at a released point, with its sensitivity. An audit
        compares it between neighbours, since b = -(gradient sum + regulariser) at the minimiser.
    event
        Event of the release, including the output noise.

    Notes
    -----
    **Guarantee**. ``value`` is on a public lattice, and its law is that of the exact minimiser
    for an ideal b, displaced by at most the certified distance, plus the output noise.
    """

    def draw(bits: Source) -> Array:
        weights = minimize(perturbation.draw(bits))
        return perturbation.add_output_noise(weights, bits)

    return emit_implied("minimizer", implied, event, source, draw)
