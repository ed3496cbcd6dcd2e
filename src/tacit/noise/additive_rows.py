"""Draw rows of Gaussian and of sphere noise before their values are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.noise.exact import GUARD_BITS, Arithmetic, LazyUniform, nearest_integer
from tacit.noise.generator import Source, Words
from tacit.noise.lattice import lattice_spacing
from tacit.noise.normals import LOG_ERROR, UNIT, LazyNormals, NormalWords
from tacit.noise.prepared_noise import Kernel, Steps, add_row
from tacit.noise.sphere import decide_sphere

Array = npt.NDArray[np.float64]

MOST_ROWS, MOST_COORDINATES = 2**31, 2**20
# Numbers processed at once; they fit into a cache.
_BLOCK_NUMBERS = 1 << 14
# Float error of (fraction + noise), at most 2^15 in size: two roundings of 2^-53 * 2^15.
_ROUNDING_MARGIN = 2.0**-36
# First-order error bounds are multiplied by this factor, which covers second-order terms.
_SECOND_ORDER = 1.01


@dataclass(frozen=True, eq=False)
class _AdditiveRows:
    """Rows that are added to a value: floats with error bounds, and their random words."""

    kernel: ClassVar[Kernel] = staticmethod(add_row)

    floats: Array
    coins: Array
    margins: Array
    scale: float
    ratio: float
    words: NormalWords
    source: Source


@dataclass(frozen=True, eq=False)
class GaussianRows(_AdditiveRows):
    """Rows of independent Gaussian noise; see `prepare_gaussian`."""

    def exactly(self, i: int, value: Array, norm: float) -> Steps:
        """Return round(value * scale + ratio * G) in exact arithmetic."""
        whole, fraction, steps, left = _start(self.floats[i], self.margins[i], value, self.scale)
        normals = self.words.row(i)
        while left:
            if normals.is_interior:
                decided = _decide_normals(left, normals, fraction, self.ratio)
                for j, nearest in decided.items():
                    steps[j] = whole[j] + nearest
                left = [j for j in left if j not in decided]
            if left:
                normals = normals.refined(self.source)
        return steps


@dataclass(frozen=True, eq=False)
class SphereRows(_AdditiveRows):
    """Rows of noise of density proportional to exp(-||z|| / width); see `prepare_sphere`."""

    length_words: Words

    def exactly(self, i: int, value: Array, norm: float) -> Steps:
        """Return round(value * scale + ratio * R * G / ||G||) in exact arithmetic."""
        whole, fraction, steps, left = _start(self.floats[i], self.margins[i], value, self.scale)
        lengths = [LazyUniform(int(word)) for word in self.length_words[i]]
        index = np.array(left, dtype=np.intp)
        nearest = decide_sphere(
            self.words.row(i), lengths, index, fraction, self.ratio, self.source
        )
        steps[index] = whole[index] + nearest
        return steps


def prepare_gaussian(n: int, d: int, noise_std: float, source: Source) -> GaussianRows:
    """Draw ``n`` rows of Gaussian noise for values of ``d`` coordinates.

        steps = round((value + N(0, noise_std^2 I)) / h),   h = lattice_spacing(noise_std)

    Notes
    -----
    **Guarantee**. Steps decided by `add_row` or `exactly` have exactly the law above in real
    arithmetic (docs/proofs/cap_mechanism.md, section 4). Wrong arguments are refused before
    anything is drawn.

    **Assumes**: the bits of the source; NumPy's log within 2^-47 relative and correctly rounded
    roots; mpmath's interval functions.

    Examples
    --------
    >>> from tacit.noise import prepare_gaussian, secure_source
    >>> rows = prepare_gaussian(10, 3, noise_std=1.5, source=secure_source())
    >>> rows.floats.shape, rows.scale
    ((10, 3), 1024.0)
    """
    check_shape(n, d)
    std = checks.positive("noise_std", noise_std, remedy="calibrate it to a Budget.")
    spacing = lattice_spacing(std)
    ratio = std / spacing  # exact: a power of two
    words = NormalWords.new(n, d, source)
    floats, margins = np.empty((n, d)), np.empty(n)
    with np.errstate(all="ignore"):  # infinities and NaN mark rows that floats cannot decide
        for rows in blocks(n, d):
            error = words.floats(rows, ratio, floats[rows])
            margins[rows] = _SECOND_ORDER * error + _ROUNDING_MARGIN
    forget_unknown(floats, margins)
    return GaussianRows(floats, np.zeros(n), margins, 1.0 / spacing, ratio, words, source)


def prepare_sphere(n: int, d: int, width: float, source: Source) -> SphereRows:
    """Draw ``n`` rows of noise of density proportional to exp(-||z|| / width).

        steps = round((value + width * R * G / ||G||) / h)
        R ~ Gamma(d),   G ~ N(0, I_d),   h = lattice_spacing(width * sqrt(d + 1))

    Notes
    -----
    **Guarantee** and **Assumes** as for `prepare_gaussian`.

    Examples
    --------
    >>> from tacit.noise import prepare_sphere, secure_source
    >>> prepare_sphere(10, 3, width=4.0, source=secure_source()).scale
    128.0
    """
    check_shape(n, d)
    size = checks.positive("width", width, remedy="pass sensitivity / epsilon.")
    spacing = lattice_spacing(size * math.sqrt(d + 1.0))
    ratio = size / spacing
    words = NormalWords.new(n, d, source)
    length_words = source.words(n * d).reshape(n, d)
    floats, margins = np.empty((n, d)), np.empty(n)
    with np.errstate(all="ignore"):
        for rows in blocks(n, d):
            length, length_error = _lengths(length_words[rows])
            relative = words.directions(rows, ratio * length, floats[rows])
            error = ratio * (length_error + length * (relative + 4.0 * UNIT))
            margins[rows] = _SECOND_ORDER * error + _ROUNDING_MARGIN
    forget_unknown(floats, margins)
    return SphereRows(
        floats, np.zeros(n), margins, 1.0 / spacing, ratio, words, source, length_words
    )


def blocks(n: int, d: int) -> list[slice]:
    """Return slices of rows that fit into a cache."""
    size = max(1, _BLOCK_NUMBERS // d)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def forget_unknown(floats: Array, margins: Array) -> None:
    """Give rows without a useful error bound an infinite margin and zeros."""
    unknown = ~(margins < 0.5)
    margins[unknown] = np.inf
    floats[unknown] = 0.0


def check_shape(n: int, d: int) -> None:
    """Raise if the numbers of rows and coordinates are out of range."""
    checks.count("n", n, least=0, most=MOST_ROWS, remedy="prepare rows in batches.")
    checks.count("d", d, least=1, most=MOST_COORDINATES, remedy="pass the length of a value.")


def _lengths(words: Words) -> tuple[Array, Array]:
    """Return float sums of exponentials -log(1 - U) and bounds on their errors."""
    kept = np.invert(words)
    length = -np.log(kept * 2.0**-64).sum(axis=1)
    d = words.shape[1]
    error = d * (2.0 * UNIT + 1.0 / kept.min(axis=1)) + (LOG_ERROR + d * UNIT) * length
    return length, error


def _start(
    floats: Array, margin: float, value: Array, scale: float
) -> tuple[Steps, Array, Steps, list[int]]:
    """Return the whole part, the fraction, the steps by floats and the undecided coordinates."""
    scaled = value * scale
    whole = np.rint(scaled)
    fraction = scaled - whole
    position = fraction + floats
    nearest = np.rint(position)
    left = np.flatnonzero(~(np.abs(position - nearest) <= 0.5 - margin))
    return (
        whole.astype(np.int64),
        fraction,
        (whole + nearest).astype(np.int64),
        [int(j) for j in left],
    )


def _decide_normals(
    left: list[int], normals: LazyNormals, fraction: Array, ratio: float
) -> dict[int, int]:
    """Return the coordinates of round(fraction + ratio * G) that the drawn bits decide."""
    arithmetic = Arithmetic(normals.radii[0].n_bits + GUARD_BITS)
    factor = arithmetic.number(ratio)
    decided: dict[int, int] = {}
    for j in left:
        position = normals.coordinate(j, arithmetic) * factor
        nearest = nearest_integer(position + arithmetic.number(Fraction(float(fraction[j]))))
        if nearest is not None:
            decided[j] = nearest
    return decided
