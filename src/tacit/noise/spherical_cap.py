"""A random direction that leans towards a value: from a cap, drawn at once or ahead in rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tacit import checks
from tacit.arrays import Array, Mask
from tacit.noise.bounded import Bounded, Norm, check_norm
from tacit.noise.exact.gaussian_pairs import UNIT, LazyNormals, NormalWords
from tacit.noise.exact.interval_arithmetic import (
    GUARD_BITS,
    Arithmetic,
    Enclosure,
    LazyUniform,
    ends,
    nearest_integer,
)
from tacit.noise.exact.sphere_coordinate import Latitude
from tacit.noise.prepared import (
    CHUNK,
    Kernel,
    Steps,
    apply_rows,
    blocks,
    check_shape,
    check_values,
    forget_unknown,
    reflect_row,
    reflected_rows,
    reflection_margin,
)
from tacit.noise.release import Release, emit
from tacit.noise.source import Source, Words
from tacit.privacy.budget import Relation
from tacit.privacy.events import PureEpsilon

MOST_COORDINATES = 2**20
# A smaller p need not be a whole multiple of 2^-64, the resolution of a word.
_LEAST_PROBABILITY = 2.0**-11
# 64-bit words cannot resolve smaller caps.
_LEAST_SHARE = Fraction(1, 2**64)
# Steps per unit of length: 2^20 sqrt(d), within a factor of two.
_STEP_BITS = 20
_SHARE_PRECISION = 120  # bits of the enclosure of the cap's share


@dataclass(frozen=True)
class Cap:
    """The law of a direction V in d dimensions, biased towards a unit vector u.

        with probability p        V uniform on {v : ||v|| = 1, <v, u> >= gamma}
        otherwise                 V uniform on the rest of the sphere

    The release is round(V / spacing), integers.

    Parameters
    ----------
    d : int
        The number of coordinates. For d = 1 the sphere is {-1, 1} and the cap {u}.
    gamma : float
        Boundary of the cap, in (-1, 1); ignored for d = 1, where it may be 1.
    p : float
        The probability of the cap, in [2^-11, 1); it must exceed the cap's share of the sphere.

    Notes
    -----
    **Guarantee**

    1. ``epsilon`` is at least the largest log ratio of densities, log(p (1 - Q) / ((1 - p) Q))
       with Q the share of the sphere in the cap, and at most 2^-50 above it, relative.
    2. ``spacing`` is a power of two and a function of ``d`` alone; steps fit 32 bits.

    Examples
    --------
    >>> from tacit.noise.spherical_cap import Cap
    >>> half = Cap(10, 0.0, 0.75)
    >>> round(half.epsilon, 12), half.spacing == 2.0**-21
    (1.098612288668, True)
    """

    d: int
    gamma: float
    p: float

    def __post_init__(self) -> None:
        checks.count("d", self.d, least=1, most=MOST_COORDINATES, remedy="pass a length.")
        gamma, p = checks.number("gamma", self.gamma), checks.number("p", self.p)
        if not (-1.0 < gamma < 1.0 or (self.d == 1 and gamma == 1.0)):
            raise ValueError(
                f"gamma must be in (-1, 1), got {gamma!r}: the cap or its complement would be "
                "empty."
            )
        if not _LEAST_PROBABILITY <= p < 1.0:
            raise ValueError(f"p must be in [2^-11, 1), got {p!r}; outside no epsilon is finite.")
        object.__setattr__(self, "gamma", gamma)
        object.__setattr__(self, "p", p)
        low, high = self.enclose_share(_SHARE_PRECISION)
        if low < _LEAST_SHARE or high > 1 - _LEAST_SHARE:
            raise ValueError(
                f"gamma={gamma!r} gives the cap a share of {float(low)!r} of the sphere, outside "
                "[2^-64, 1 - 2^-64]; move gamma towards 0."
            )
        if Fraction(p) <= high:
            raise ValueError(
                f"p={p!r} is not above the cap's share {float(high)!r} of the sphere, so V would "
                "not be biased towards the value; raise p or gamma."
            )

    def enclose_share(self, precision: int) -> Enclosure:
        """Return bounds on the share Q of the sphere in the cap, to 2^-precision relative."""
        if self.d == 1:
            return Fraction(1, 2), Fraction(1, 2)
        return _share(self.d, self.gamma, precision)

    @property
    def share(self) -> float:
        """The share of the sphere in the cap, Q = 1/2 I_(1 - gamma^2)((d - 1) / 2, 1/2)."""
        return float(sum(self.enclose_share(_SHARE_PRECISION)) / 2)

    @property
    def epsilon(self) -> float:
        """The largest privacy loss, log(p (1 - Q) / ((1 - p) Q)), rounded up."""
        return _epsilon(self)

    @property
    def spacing(self) -> float:
        """The length of one step, 2^-(20 + floor(log2(d) / 2))."""
        return math.ldexp(1.0, -(_STEP_BITS + (int(self.d).bit_length() - 1) // 2))

    @property
    def event(self) -> PureEpsilon:
        """Event of one release under REPLACE: any value may replace any other."""
        return PureEpsilon(self.epsilon, Relation.REPLACE)


def cap(bounded: Bounded, law: Cap, source: Source | None = None) -> Release[float | Array]:
    """Release a random direction biased towards the direction of a value.

        u = value / ||value||, times -1 with probability 1/2 - ||value|| / (2 norm)
        output = h * round(V / h),   V ~ law about u,   h = law.spacing,  norm = sensitivity / 2

    The random sign makes the mean of V proportional to the value.

    Parameters
    ----------
    bounded : Bounded
        The value, of shape (d,) or a float, with an L2 sensitivity. Its norm is at most half the
        sensitivity.
    law : Cap
        The law of the direction.
    source : Source, optional
        Source of random bits. By default a new `secure_source` for this release.

    Returns
    -------
    Release
        A vector of nearly unit length, of the shape of the input, with
        ``PureEpsilon(law.epsilon)`` as event.

    Notes
    -----
    **Guarantee**

    1. The law of the output is exactly the law above in real arithmetic, so the release is
    epsilon-DP with delta 0, for any two values (docs/proofs/cap_mechanism.md).
    2. Every output is a multiple of h.
    3. Wrong arguments are refused before anything is drawn.

    **Assumes**: the bits of the source; NumPy's log within 2^-47 relative; SciPy's betainccinv,
    betaincc and betaincinv as the proof says; mpmath's interval functions. Timing as for
    `gaussian`: about one release of 50 coordinates in 50,000 takes some milliseconds longer.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise.spherical_cap import Cap
    >>> from tacit.noise import Norm
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.spherical_cap import cap
    >>> from tacit.privacy import Relation
    >>> gradient = Bounded(np.array([0.6, 0.8]), 2.0, Norm.L2, Relation.REPLACE)
    >>> cap(gradient, Cap(2, 0.5, 0.9)).value.shape
    (2,)
    """
    check_norm(bounded, "cap", (Norm.L2,))
    if not isinstance(law, Cap):
        raise TypeError(f"law must be a Cap, got {law!r}; pass Cap(d, gamma, p).")
    value = np.asarray(bounded.value, dtype=np.float64)
    if value.ndim > 1 or value.size != law.d:
        raise ValueError(
            f"value has shape {value.shape}, the law is about {law.d} coordinates; pass a vector "
            "of that length, or use release_rows for many."
        )
    norm = bounded.sensitivity / 2.0
    table = check_values(value.reshape(1, law.d), (1, law.d), norm)

    def draw(words: Source) -> float | Array:

        steps = apply_rows(table, prepare_cap(1, law.d, law, words), norm)[0]
        result: Array = steps * law.spacing
        return result.reshape(value.shape) if value.ndim else float(result[0])

    return emit(
        "cap",
        bounded,
        PureEpsilon(law.epsilon, bounded.relation),
        source,
        draw,
        {"gamma": law.gamma, "p": law.p},
    )


@lru_cache(maxsize=256)
def _share(d: int, gamma: float, precision: int) -> Enclosure:
    if gamma == 0.0:
        return Fraction(1, 2), Fraction(1, 2)
    return Latitude(d).enclose_tail(Fraction(gamma), precision)


@lru_cache(maxsize=256)
def _epsilon(law: Cap) -> float:
    low, _ = law.enclose_share(_SHARE_PRECISION)
    p = Fraction(law.p)
    arithmetic = Arithmetic(_SHARE_PRECISION)
    # The ratio decreases in Q, so the lower bound of Q gives the upper bound of the ratio.
    ratio = p * (1 - low) / ((1 - p) * low)
    exact = ends(arithmetic.context.log(arithmetic.number(ratio)))[1]
    rounded = float(exact)
    return rounded if Fraction(rounded) >= exact else math.nextafter(rounded, math.inf)


# Tails below 2^-30 of the cap or of its complement are decided in exact arithmetic.
_TABLE_OCTAVES = 30
# First-order error bounds are multiplied by this factor, which covers second-order terms.
_SECOND_ORDER = 1.01


@dataclass(frozen=True, eq=False)
class CapRows:
    """Rows of directions with the law of a cap about e1; see `prepare_cap`."""

    kernel: ClassVar[Kernel] = staticmethod(reflect_row)

    cap: Cap
    floats: Array
    coins: Array
    margins: Array
    words: CapWords
    source: Source

    @property
    def scale(self) -> float:
        """Steps per unit of length."""
        return 1.0 / self.cap.spacing

    def exactly(self, i: int, value: Array, norm: float) -> Steps:
        """Return round(V / spacing) in exact arithmetic."""
        steps, left = self._float_steps(i, value, norm)
        row = self.words.row(self.cap, i)
        while left:
            decided = row.decide(value, norm, left)
            steps[list(decided)] = list(decided.values())
            left = [j for j in left if j not in decided]
            row = row.refined(self.source) if left else row
        return steps

    def _float_steps(self, i: int, value: Array, norm: float) -> tuple[Steps, list[int]]:
        """Return the steps by floats, and the coordinates that floats do not decide."""
        one = slice(i, i + 1)
        position, sure = reflected_rows(
            value[None], self.floats[one], self.coins[one], self.scale, norm
        )
        nearest = np.rint(position[0])
        margin = self.margins[i] + reflection_margin(self.cap.d, self.scale)
        left = ~(np.abs(position[0] - nearest) <= 0.5 - margin) | ~sure
        return nearest.astype(np.int64), [int(j) for j in np.flatnonzero(left)]


def prepare_cap(n: int, d: int, cap: Cap, source: Source) -> CapRows:
    """Draw ``n`` rows of directions about e1 = (1, 0, ..., 0).

        V0 = (T, sqrt(1 - T^2) G / ||G||),   G ~ N(0, I_(d-1))
        T = q(Q U) with probability p, otherwise -q((1 - Q) U),   U uniform

    Here q is the inverse tail of the first coordinate of a uniform direction, and Q the cap's share
    of the sphere. `reflect_row` reflects V0 towards a value and rounds it.

    Parameters
    ----------
    n : int
        The number of rows.
    d : int
        The number of coordinates, that of the cap.
    cap : Cap
        The law.
    source : Source
        Source of random bits, now and if more are needed.

    Notes
    -----
    **Guarantee**. Steps decided by `reflect_row` or `exactly` have exactly the law of
    round(V / spacing) in real arithmetic (docs/proofs/cap_mechanism.md).

    **Assumes** what `tacit.noise.spherical_cap` does.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise.spherical_cap import Cap, prepare_cap
    >>> from tacit.noise import secure_source
    >>> rows = prepare_cap(10, 3, Cap(3, 0.2, 0.9), secure_source())
    >>> bool(np.allclose(np.linalg.norm(rows.floats, axis=1), 1.0))
    True
    """
    check_shape(n, d)
    if not isinstance(cap, Cap) or cap.d != d:
        raise ValueError(f"cap must be a Cap of d={d} coordinates, got {cap!r}; make one for it.")
    words = CapWords.new(n, cap, source)
    # The float holds 53 bits of the coin; the others only matter within 2^-53 of the threshold.
    coins: Array = np.multiply(words.coin >> np.uint64(11), 2.0**-53, dtype=np.float64)
    if d == 1:
        floats = np.where(words.is_inside(cap), 1.0, -1.0)[:, None]
        return CapRows(cap, floats, coins, np.full(n, _kernel_margin(cap)), words, source)
    floats, margins = np.empty((n, d)), np.empty(n)
    with np.errstate(all="ignore"):  # infinities and NaN mark rows that floats cannot decide
        t, r, t_error, r_error = _latitudes(words, cap)
        floats[:, 0] = t
        for rows in blocks(n, d):
            error = words.normals.directions(rows, r[rows], floats[rows, 1:])
            margins[rows] = r[rows] * (error + 4.0 * UNIT)
        margins += t_error + r_error
        margins *= _SECOND_ORDER / cap.spacing
        margins += _kernel_margin(cap)
    forget_unknown(floats, margins)
    return CapRows(cap, floats, coins, margins, words, source)


@dataclass(frozen=True, eq=False)
class CapWords:
    """The random words behind n rows: cap or complement, depth in it, direction, coin."""

    choice: Words
    depth: Words
    coin: Words
    normals: NormalWords

    @staticmethod
    def new(n: int, cap: Cap, source: Source) -> CapWords:
        """Draw the words."""
        return CapWords(
            source.words(n), source.words(n), source.words(n), NormalWords.new(n, cap.d - 1, source)
        )

    def is_inside(self, cap: Cap) -> Mask:
        """Return which rows are in the cap: word < p 2^64, an integer."""
        inside: Mask = self.choice < np.uint64(_threshold(cap))
        return inside

    def row(self, cap: Cap, i: int) -> LazyCapRow:
        """Return row ``i`` with only its first 64 bits drawn."""
        return LazyCapRow(
            cap,
            int(self.choice[i]) < _threshold(cap),
            LazyUniform(int(self.depth[i])),
            LazyUniform(int(self.coin[i])),
            self.normals.row(i),
        )


def _threshold(cap: Cap) -> int:
    # p is a double of at least 2^-11, so p 2^64 is an integer.
    return int(Fraction(cap.p) * 2**64)


def _latitudes(words: CapWords, cap: Cap) -> tuple[Array, Array, Array, Array]:
    """Return T and sqrt(1 - T^2) in floats, and bounds on their errors."""
    t, t_error = _first(words.depth, words.is_inside(cap), cap)
    r = np.sqrt((1.0 - t) * (1.0 + t))
    # |sqrt x - sqrt y| <= |x - y| / sqrt x
    r_error = t_error * (2.0 * np.abs(t) + t_error) / r + 4.0 * UNIT
    return t, r, t_error, r_error


def _first(depth: Words, inside: Mask, cap: Cap) -> tuple[Array, Array]:
    """Return the first coordinates T in floats, and bounds on their errors."""
    law = Latitude(cap.d)
    low, high = cap.enclose_share(120)
    share, rest = float(low), float(1 - high)
    side = np.where(inside, share, rest)
    # the tail s = side * U and its complement, each a sum of positive terms
    s = side * (depth * 2.0**-64)
    complement = np.where(inside, rest, share) + side * (np.invert(depth) * 2.0**-64)
    tail = np.minimum(s, complement)
    octaves = _TABLE_OCTAVES + math.ceil(-math.log2(min(share, rest)))
    t = law.fast_quantile(tail, octaves)
    t[(s > complement) == inside] *= -1.0
    # |dq| <= mills |d log tail|; U is known within 2^-64
    error = law.mills * (2.0**-64 * side / tail + 8.0 * UNIT + law.quantile_error) + 2.0 * UNIT
    return t, _SECOND_ORDER * error


def _kernel_margin(cap: Cap) -> float:
    """Return a bound on the float error of `reflect_row`, in steps.

    A sum has at most n = 16 + d / 16 roundings per term, so a coordinate errs by (3 n + 28) 2^-53.
    """
    n = CHUNK + -(-cap.d // CHUNK)
    return (3 * n + 32) * UNIT / cap.spacing


@dataclass(frozen=True)
class LazyCapRow:
    """One row of a cap whose bits are drawn as needed."""

    cap: Cap
    inside: bool
    depth: LazyUniform
    coin: LazyUniform
    normals: LazyNormals

    def refined(self, source: Source) -> LazyCapRow:
        """Return the row with 64 more bits of every uniform variable drawn."""
        return LazyCapRow(
            self.cap,
            self.inside,
            self.depth.refined(source),
            self.coin.refined(source),
            self.normals.refined(source),
        )

    def decide(self, value: Array, norm: float, left: list[int]) -> dict[int, int]:
        """Return the coordinates of round(V / spacing) that the drawn bits decide."""
        exact = [Fraction(float(x)) for x in value]
        positive = _is_positive(self.coin, sum(x * x for x in exact), Fraction(norm))
        if positive is None:
            return {}
        if not any(exact):
            exact[0] = Fraction(1)
        if not positive:
            exact = [-x for x in exact]
        if self.cap.d == 1:
            towards = (exact[0] > 0) == self.inside
            return {0: int(1 / self.cap.spacing) * (1 if towards else -1)}
        if not self.normals.is_interior or not self.depth.is_interior:
            return {}
        return self._decide_direction(exact, left)

    def _decide_direction(self, exact: list[Fraction], left: list[int]) -> dict[int, int]:
        d = self.cap.d
        share_low, share_high = self.cap.enclose_share(self.depth.n_bits + GUARD_BITS)
        bits = -math.floor(math.log2(min(share_low, 1 - share_high)))
        precision = self.depth.n_bits + GUARD_BITS + 2 * d.bit_length() + bits
        arithmetic = Arithmetic(precision)
        share = arithmetic.between(share_low, share_high)
        side = share if self.inside else 1 - share
        latitude = Latitude(d).enclose_quantile(
            side * arithmetic.between(*self.depth.ends), arithmetic
        )
        square = self.normals.square(arithmetic)
        if latitude is None or ends(square)[0] <= 0:
            return {}
        t, r = latitude
        first = t if self.inside else -t
        rest = r / arithmetic.context.sqrt(square)
        v0 = [first, *(g * rest for g in self.normals.coordinates(arithmetic))]
        return _reflected(v0, exact, arithmetic, int(1 / self.cap.spacing), left)


def _reflected(
    v0: list[Any], value: list[Fraction], arithmetic: Arithmetic, scale: int, left: list[int]
) -> dict[int, int]:
    """Return the decided coordinates of round(scale * V); formulas as in `reflect_row`."""
    square = arithmetic.number(sum((x * x for x in value), Fraction(0)))
    inverse = 1 / arithmetic.context.sqrt(square)
    u = [arithmetic.double(float(x)) * inverse for x in value]
    sign = 1 if value[0] >= 0 else -1
    across = arithmetic.context.mpf(0)
    for u_i, v_i in zip(u[1:], v0[1:], strict=True):
        across += u_i * v_i
    along = v0[0] + sign * across / (1 + sign * u[0])
    decided: dict[int, int] = {}
    for i in left:
        reflected = u[0] * v0[0] + across if i == 0 else u[i] * along - sign * v0[i]
        nearest = nearest_integer(scale * reflected)
        if nearest is not None:
            decided[i] = nearest
    return decided


def _is_positive(coin: LazyUniform, square: Fraction | int, norm: Fraction) -> bool | None:
    """Return whether U < 1/2 + ||value|| / (2 norm), i.e. (2 U - 1) norm < ||value||, or None."""
    low, high = ((2 * end - 1) * norm for end in coin.ends)
    if high <= 0 or high * high <= square:
        return True
    return False if low >= 0 and low * low >= square else None
