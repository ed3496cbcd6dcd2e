"""Add noise of random length in a random direction, on a lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.arrays import Array, Integers
from tacit.noise.bounded import Bounded, Norm, check_norm, round_up
from tacit.noise.exact.gaussian_pairs import LazyNormals, NormalWords
from tacit.noise.exact.interval_arithmetic import (
    FUNCTION_ERROR,
    GUARD_BITS,
    Arithmetic,
    LazyUniform,
    ends,
    exponential_errors,
    exponentials,
    nearest_integer,
)
from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.release import Release, emit
from tacit.noise.source import Source, Words
from tacit.privacy.events import PureEpsilon

_MOST_COORDINATES = 2**31


def sphere(
    bounded: Bounded, epsilon: float, source: Source | None = None
) -> Release[float | Array]:
    """Release a value plus noise of density proportional to exp(-||z|| / width).

        output = h * round((value + width * R * G / ||G||) / h)
        R ~ Gamma(d),   G ~ N(0, I_d),   width = sensitivity / epsilon, rounded up
        noise_std = width * sqrt(d + 1) on each coordinate,   h = lattice_spacing(noise_std)

    Here d is the number of coordinates and ||.|| the Euclidean norm.

    Parameters
    ----------
    bounded : Bounded
        The value, with an L2 sensitivity. An L1 sensitivity is accepted, as it is at least the L2
        one; one coordinate may use any norm.
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

    **Assumes**: the sensitivity; the bits of the source; NumPy's log, log1p, sqrt, sin and cos
    within 2^-44 relative (sin and cos: absolute), and mpmath's interval functions. Timing as for
    `gaussian`; the exact path for d coordinates takes about 10 d microseconds.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import Norm
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.sphere import sphere
    >>> from tacit.privacy import Relation
    >>> weights = Bounded(np.array([0.3, -0.2]), 0.1, Norm.L2, Relation.REPLACE)
    >>> sphere(weights, epsilon=1.0).value.shape
    (2,)
    """
    check_norm(bounded, "sphere", (Norm.L2, Norm.L1))
    spent = checks.finite_epsilon(epsilon)
    if bounded.n_coordinates > _MOST_COORDINATES:
        raise ValueError(
            f"value has {bounded.n_coordinates} coordinates, above 2^31; release it in parts."
        )
    width = round_up(bounded.sensitivity / spent)
    return emit(
        "sphere",
        bounded,
        PureEpsilon(spent, bounded.relation),
        source,
        lambda words: add_sphere(bounded.value, width, words),
    )


def add_sphere(value: float | Array, width: float, source: Source) -> float | Array:
    """Return ``value`` plus noise of density proportional to exp(-||z|| / width), on the lattice.

    **Guarantee**: the law of the result is exactly that of real arithmetic.
    """
    flat = np.asarray(value, dtype=np.float64).ravel()
    spacing = lattice_spacing(width * math.sqrt(flat.size + 1.0))
    ratio = width / spacing
    # value / spacing = whole + fraction, both exact; the noise is only ever added to fraction.
    scaled = flat * (1.0 / spacing)
    whole = np.rint(scaled)
    fraction = scaled - whole
    draw = _Draw.new(flat.size, source)
    with np.errstate(all="ignore"):  # infinities and NaN mark values that floats cannot decide
        position, margin = draw.floats(ratio)
        position += fraction
        nearest = np.rint(position)
        certain = np.abs(position - nearest) <= 0.5 - margin
    left = np.flatnonzero(~certain)
    if left.size:
        nearest[left] = _decide_exactly(draw, left, fraction, ratio, source)
    # -0.0 becomes 0.0: the sign of a zero would reveal the sign of the value
    result = (whole + nearest + 0.0) * spacing
    return result.reshape(value.shape) if isinstance(value, np.ndarray) else float(result[0])


@dataclass(frozen=True)
class _Draw:
    """The random words behind one vector R * G / ||G||.

    G consists of pairs sqrt(2 E) (cos A, sin A), E exponential and A a uniform angle (Box and
    Muller 1958). So ||G||^2 is twice a sum of exponentials, and the exact path needs no inversion.
    For odd d the last sine is unused.
    """

    n_coordinates: int
    radius_words: Words
    angle_words: Words
    length_words: Words

    @staticmethod
    def new(n_coordinates: int, source: Source) -> _Draw:
        n_pairs = (n_coordinates + 1) // 2
        return _Draw(
            n_coordinates,
            source.words(n_pairs),
            source.words(n_pairs),
            source.words(n_coordinates),
        )

    def floats(self, ratio: float) -> tuple[Array, Array]:
        """Return ratio * R * G / ||G|| in floats, and a bound on each coordinate's error.

        First-order bounds, times 2, with |sqrt(x) - sqrt(y)| <= |x - y| / sqrt(x); see the proof.
        The bound is infinite or NaN if floats know nothing.
        """
        energy, lengths = exponentials(self.radius_words), exponentials(self.length_words)
        energy_error = exponential_errors(self.radius_words, energy)
        radius = np.sqrt(2.0 * energy)
        angle = self.angle_words * (2.0**-64 * 2.0 * np.pi)
        pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        g = pairs.ravel()[: self.n_coordinates]
        g_error = 2.0 * energy_error / radius + FUNCTION_ERROR * radius
        g_error = np.repeat(g_error, 2)[: self.n_coordinates]
        square, square_error = 2.0 * energy, 2.0 * energy_error
        if self.n_coordinates % 2:
            square[-1] = g[-1] ** 2
            square_error[-1] = g_error[-1] * (2.0 * abs(g[-1]) + g_error[-1])
        # fsum rounds once, so its error does not grow with the number of coordinates.
        norm = math.sqrt(math.fsum(square.tolist()))
        norm_error = math.fsum(square_error.tolist()) / norm if norm > 0.0 else math.inf
        length = ratio * math.fsum(lengths.tolist())
        length_errors = exponential_errors(self.length_words, lengths)
        length_error = ratio * math.fsum(length_errors.tolist())
        if not (norm_error < 2.0**-8 * norm and length_error < 2.0**-8 * length):
            return np.zeros(self.n_coordinates), np.full(self.n_coordinates, np.inf)
        z = g * (length / norm)
        relative = length_error / length + norm_error / norm + 2.0**-49
        error = 2.0 * (np.abs(z) * relative + g_error * (length / norm)) + 2.0**-51
        return z, error


def _decide_exactly(
    draw: _Draw, left: npt.NDArray[np.intp], fraction: Array, ratio: float, source: Source
) -> Array:
    """Return round(fraction + ratio * R * G / ||G||) at the coordinates ``left``."""
    # The exact path uses E = -log(1 - U).
    words = NormalWords(draw.n_coordinates, ~draw.radius_words[None], draw.angle_words[None])
    lengths = [LazyUniform(int(word)) for word in draw.length_words]
    decided = decide_sphere(words.row(0), lengths, left, fraction, ratio, source)
    return decided.astype(np.float64)


def decide_sphere(
    normals: LazyNormals,
    lengths: list[LazyUniform],
    left: npt.NDArray[np.intp],
    fraction: Array,
    ratio: float,
    source: Source,
) -> Integers:
    """Return round(fraction + ratio * R * G / ||G||) at the coordinates ``left``, exactly."""
    decided: dict[int, int] = {}
    while True:
        if normals.is_interior and all(u.is_interior for u in lengths):
            pending = [int(i) for i in left if int(i) not in decided]
            decided |= _decide_some(pending, normals, lengths, fraction, ratio)
            if len(decided) == len(left):
                return np.array([decided[int(i)] for i in left], dtype=np.int64)
        normals = normals.refined(source)
        lengths = [u.refined(source) for u in lengths]


def _decide_some(
    pending: list[int],
    normals: LazyNormals,
    lengths: list[LazyUniform],
    fraction: Array,
    ratio: float,
) -> dict[int, int]:
    """Return the rounded coordinates that the drawn bits decide."""
    arithmetic = Arithmetic(lengths[0].n_bits + GUARD_BITS + 2 * len(lengths).bit_length())
    square = normals.square(arithmetic)
    if ends(square)[0] <= 0:
        return {}
    length = arithmetic.sum_of_exponentials(lengths) * arithmetic.number(ratio)
    factor = length / arithmetic.context.sqrt(square)
    decided: dict[int, int] = {}
    for i in pending:
        position = normals.coordinate(i, arithmetic) * factor
        nearest = nearest_integer(position + arithmetic.number(float(fraction[i])))
        if nearest is not None:
            decided[i] = nearest
    return decided
