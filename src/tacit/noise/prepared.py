"""Rows of noise drawn before the values they hide are known.

Rows are drawn in batches and applied one by one, to a stream of people. Each row goes through a
kernel: plain Python that numba can compile unchanged. It returns whether floats decided every
coordinate. If they did not, `PreparedRows.exactly` decides with more bits.
Proof: docs/proofs/cap_mechanism.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.arrays import Array, Mask
from tacit.noise.bounded import Bounded, Norm
from tacit.noise.exact.gaussian_pairs import LOG_ERROR, UNIT, LazyNormals, NormalWords
from tacit.noise.exact.interval_arithmetic import (
    GUARD_BITS,
    Arithmetic,
    LazyUniform,
    nearest_integer,
)
from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.release import Release, emit
from tacit.noise.source import Source, Words
from tacit.noise.sphere import decide_sphere
from tacit.privacy.budget import Relation
from tacit.privacy.events import Event

Steps = npt.NDArray[np.int64]
# (value, floats_row, coin, margin, scale, norm, steps) -> whether floats decided the steps
Kernel = Callable[[Any, Any, float, float, float, float, Any], bool]

# Steps must be integers that doubles represent exactly.
_MOST_STEPS = 2.0**52
# Relative tolerance of a norm computed in floats, beside its own rounding error.
_NORM_TOLERANCE = 1e-12
# Number of terms that are summed consecutively; the sums of these chunks are added afterwards.
CHUNK = 16
# Bound on the error of the float coin plus the error of the probability it is compared with, apart
# from d 2^-53.
_COIN_MARGIN = 2.0**-40


class PreparedRows(Protocol):
    """n rows of noise, drawn before their values are known.

    **Contract**: row i hides one value, once. Two values behind one row would be revealed up to
    their difference.
    """

    kernel: ClassVar[Kernel]

    @property
    def floats(self) -> Array:
        """Noise in floats for the kernel, shape (n, d)."""

    @property
    def coins(self) -> Array:
        """Uniform doubles in [0, 1), shape (n,); zeros if the kernel uses none."""

    @property
    def margins(self) -> Array:
        """Bound on the float error of any coordinate of a row, in steps; may be infinite."""

    @property
    def scale(self) -> float:
        """Number of steps per unit of the released value."""

    @property
    def source(self) -> Source:
        """Source of the bits."""

    def exactly(self, i: int, value: Array, norm: float) -> Steps:
        """Return the steps of row ``i`` in exact arithmetic, drawing more bits as needed."""


def add_row(
    value: Any,
    floats_row: Any,
    coin: float,  # noqa: ARG001
    margin: float,
    scale: float,
    norm: float,  # noqa: ARG001
    steps: Any,
) -> bool:
    """Write round(value * scale + noise) into ``steps``; return whether it is certain.

    Parameters
    ----------
    value : array of shape (d,)
        The value that the row hides.
    floats_row : array of shape (d,)
        The row's noise, in steps.
    coin, norm : float
        Not used.
    margin : float
        The row's margin, in steps.
    scale : float
        Steps per unit of the value, a power of two.
    steps : array of shape (d,)
        Output: int64, or float64.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise.prepared import add_row
    >>> steps = np.empty(2, np.int64)
    >>> add_row(np.array([1.0, 2.0]), np.array([0.3, -4.2]), 0.0, 1e-9, 8.0, 3.0, steps), steps
    (True, array([ 8, 12]))
    """
    certain = True
    for i in range(value.shape[0]):
        # value * scale = whole + fraction, both exact; noise is only ever added to fraction.
        scaled = value[i] * scale
        whole = np.rint(scaled)
        position = (scaled - whole) + floats_row[i]
        nearest = np.rint(position)
        if not abs(position - nearest) <= 0.5 - margin:
            certain = False
        # Adding 0.0 turns -0.0 into 0.0.
        steps[i] = whole + nearest + 0.0
    return certain


def reflect_row(
    value: Any,
    floats_row: Any,
    coin: float,
    margin: float,
    scale: float,
    norm: float,
    steps: Any,
) -> bool:
    """Write round(V * scale) into ``steps``, V the row reflected towards the value.

        u = value / ||value||, times -1 unless coin < 1/2 + ||value|| / (2 norm)
        V = -s (I - 2 w w^T / w^T w) V0,   w = u + s e1,   s = the sign of u_1

    V0 is ``floats_row``, a direction about e1. The reflection times -s maps e1 to u. No subtraction
    cancels, since w^T w = 2 (1 + |u_1|). Written out, with b = sum_{i>1} u_i V0_i:

        V_1 = u_1 V0_1 + b,   V_i = u_i (V0_1 + s b / (1 + |u_1|)) - s V0_i

    For a value of zero, u is e1.

    Parameters
    ----------
    value : array of shape (d,)
        The value that the row hides, of norm at most ``norm``.
    floats_row : array of shape (d,)
        The row's direction about e1.
    coin : float
        The row's coin.
    margin : float
        The row's margin, in steps.
    scale : float
        Steps per unit of length, a power of two.
    norm : float
        The bound on the norm of any value.
    steps : array of shape (d,)
        Output: int64, or float64.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise.prepared import reflect_row
    >>> steps = np.empty(2, np.int64)
    >>> v = np.array([0.0, -1.0])
    >>> reflect_row(v, np.array([0.6, 0.8]), 0.4, 1e-9, 1024.0, 1.0, steps), steps
    (True, array([-819, -614]))
    """
    d = value.shape[0]
    largest = 0.0
    for i in range(d):
        largest = max(largest, abs(value[i]))
    # u_i = (value_i / largest) * inverse; dividing first keeps squares in range
    square = 0.0
    if largest > 0.0:
        for start in range(0, d, CHUNK):
            part = 0.0
            for i in range(start, min(start + CHUNK, d)):
                ratio = value[i] / largest
                part += ratio * ratio
            square += part
        inverse = 1.0 / np.sqrt(square)
    else:
        inverse = 1.0
    gap = coin - (0.5 + 0.5 * min(1.0, largest / norm * np.sqrt(square)))
    certain = bool(abs(gap) > _COIN_MARGIN + d * 2.0**-53)
    head = value[0] if largest > 0.0 else 1.0
    if gap > 0.0:
        inverse, head = -inverse, -head
    if largest == 0.0:
        largest = np.inf  # every value_i / largest is 0, and u is e1 or -e1
        first = head
    else:
        first = value[0] / largest * inverse
    sign = 1.0 if head >= 0.0 else -1.0
    across = 0.0
    for start in range(0, d, CHUNK):
        part = 0.0
        for i in range(max(start, 1), min(start + CHUNK, d)):
            part += value[i] / largest * inverse * floats_row[i]
        across += part
    along = floats_row[0] + sign * across / (1.0 + abs(first))
    for i in range(d):
        if i == 0:
            position = first * floats_row[0] + across
        else:
            position = value[i] / largest * inverse * along - sign * floats_row[i]
        position *= scale
        nearest = np.rint(position)
        if not abs(position - nearest) <= 0.5 - margin:
            certain = False
        steps[i] = nearest + 0.0
    return certain


def release_rows(
    values: Array,
    prepared: PreparedRows,
    norm: float,
    event: Event,
    source: Source | None = None,
) -> Release[Steps]:
    """Release one row of steps for each row of values.

    Parameters
    ----------
    values : array of shape (n, d)
        One value for each person, of norm at most ``norm``.
    prepared : PreparedRows
        As many rows of noise, which nothing else uses.
    norm : float
        The bound on the norm of any value; public.
    event : Event
        Event of one person's row under REPLACE of that person's record.
    source : Source, optional
        The source the rows were prepared from, which is the default.

    Returns
    -------
    Release
        Integers of shape (n, d), with the event.

    Notes
    -----
    **Guarantee**. The law of the steps is exactly that of real arithmetic. Values above the norm
    (by more than 1e-12, relative), values that are not finite, and rows that do not fit are
    refused before anything is released.

    **Assumes** that the event is the one that the rows were prepared for, and that no row is used
    twice.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise.prepared import prepare_gaussian, release_rows
    >>> from tacit.noise import secure_source
    >>> from tacit.privacy import Gaussian, Relation
    >>> rows = prepare_gaussian(4, 3, noise_std=2.0, source=secure_source())
    >>> release = release_rows(np.zeros((4, 3)), rows, 1.0, Gaussian(1.0, Relation.REPLACE))
    >>> release.value.shape, release.value.dtype
    ((4, 3), dtype('int64'))
    """
    bound = checks.positive("norm", norm, remedy="pass the bound to which values are clipped.")
    table = check_values(values, prepared.floats.shape, bound)
    if type(prepared).kernel is add_row and bound * prepared.scale > _MOST_STEPS:
        raise ValueError(
            f"norm {bound!r} is more than 2^52 steps of {1.0 / prepared.scale!r}; add more noise "
            "or clip to a smaller norm."
        )
    if source is not None and source is not prepared.source:
        raise ValueError(
            "source is not the source the rows were prepared from, so it does not say whether "
            "they are secret; leave it out."
        )
    return emit(
        "rows",
        Bounded(table, 2.0 * bound, Norm.L2, Relation.REPLACE),
        event,
        prepared.source,
        lambda _: apply_rows(table, prepared, bound),
    )


def norm_tolerance(n_coordinates: int) -> float:
    """Return the relative excess over its norm that a vector may have in floats."""
    return _NORM_TOLERANCE + n_coordinates * 2.0**-52


def check_values(values: Array, shape: tuple[int, ...], norm: float) -> Array:
    """Return the values; raise unless they fit the rows and the norm."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64:
        kind = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise TypeError(
            f"values must be a float64 array, got {kind}; convert them before clipping them."
        )
    if values.shape != shape:
        raise ValueError(
            f"values have shape {values.shape}, the prepared rows {shape}; prepare one row for "
            "each value."
        )
    largest = np.max(np.abs(values), axis=1, initial=0.0)
    if not np.all(np.isfinite(largest)):
        raise ValueError("values hold NaN or infinity, which has no direction; drop them first.")
    safe = np.where(largest > 0.0, largest, 1.0)
    lengths = largest * np.sqrt(np.sum((values / safe[:, None]) ** 2, axis=1))
    longest = float(np.max(lengths, initial=0.0))
    if longest > norm * (1.0 + norm_tolerance(values.shape[1])):
        raise ValueError(f"values are longer than norm={norm!r}; clip each of them to the norm.")
    return values


def apply_rows(values: Array, prepared: PreparedRows, norm: float) -> Steps:
    """Return the steps of every row: by floats, and by exact arithmetic where floats are unsure."""
    floats, margins, scale = prepared.floats, prepared.margins, prepared.scale
    if type(prepared).kernel is add_row:
        steps, certain = _add_rows(values, floats, margins, scale)
    else:
        steps, certain = _reflect_rows(values, floats, prepared.coins, margins, scale, norm)
    for i in np.flatnonzero(~certain):
        steps[i] = prepared.exactly(int(i), values[i], norm)
    return steps


def _add_rows(values: Array, floats: Array, margins: Array, scale: float) -> tuple[Steps, Mask]:
    """Do the work of `add_row` for all rows at once."""
    scaled = values * scale
    whole = np.rint(scaled)
    position = (scaled - whole) + floats
    return _rounded(position, margins, whole)


def _reflect_rows(
    values: Array, floats: Array, coins: Array, margins: Array, scale: float, norm: float
) -> tuple[Steps, Mask]:
    """Do the work of `reflect_row` for all rows at once."""
    position, sure = reflected_rows(values, floats, coins, scale, norm)
    steps, certain = _rounded(position, margins + reflection_margin(values.shape[1], scale), 0.0)
    return steps, certain & sure


def reflected_rows(
    values: Array, floats: Array, coins: Array, scale: float, norm: float
) -> tuple[Array, Mask]:
    """Return scale * V for every row, and whether its coin is certain; see `reflect_row`."""
    largest = np.max(np.abs(values), axis=1)
    is_zero = largest == 0.0
    u = values / np.where(is_zero, 1.0, largest)[:, None]
    u[is_zero, 0] = 1.0
    length = np.sqrt(np.einsum("ij,ij->i", u, u))
    gap = coins - (0.5 + 0.5 * np.minimum(1.0, largest / norm * length))
    u /= np.where(gap > 0.0, -length, length)[:, None]
    # The sign of u_1 before any underflow.
    head = np.where(is_zero, 1.0, values[:, 0]) * np.where(gap > 0.0, -1.0, 1.0)
    across = np.einsum("ij,ij->i", u[:, 1:], floats[:, 1:])
    sign = np.where(head >= 0.0, 1.0, -1.0)
    along = floats[:, 0] + sign * across / (1.0 + np.abs(u[:, 0]))
    position: Array = u * along[:, None]
    position -= sign[:, None] * floats
    position[:, 0] = u[:, 0] * floats[:, 0] + across
    position *= scale
    return position, np.abs(gap) > _COIN_MARGIN + values.shape[1] * 2.0**-53


def reflection_margin(d: int, scale: float) -> float:
    """Return the error of `reflected_rows` beyond `reflect_row`: sums of d terms in any order."""
    return 3.0 * d * 2.0**-53 * scale


def _rounded(position: Array, margins: Array, whole: Array | float) -> tuple[Steps, Mask]:
    nearest = np.rint(position)
    position -= nearest
    np.abs(position, out=position)
    certain = np.all(position <= 0.5 - margins[:, None], axis=1)
    return (whole + nearest).astype(np.int64), certain


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
    >>> from tacit.noise.prepared import prepare_gaussian
    >>> from tacit.noise import secure_source
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
    >>> from tacit.noise.prepared import prepare_sphere
    >>> from tacit.noise import secure_source
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
    inverted = np.invert(words)
    length = -np.log(inverted * 2.0**-64).sum(axis=1)
    d = words.shape[1]
    error = d * (2.0 * UNIT + 1.0 / inverted.min(axis=1)) + (LOG_ERROR + d * UNIT) * length
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
