"""Draw a random direction biased towards a value: uniform on a cap, or on its complement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.noise.bounded import Bounded, Norm, check_norm
from tacit.noise.exact import Arithmetic, Enclosure, ends
from tacit.noise.generator import Source
from tacit.noise.prepared_noise import apply_rows, check_values
from tacit.noise.release import Release, emit
from tacit.noise.sphere_coordinate import Latitude
from tacit.privacy.events import PureEpsilon
from tacit.privacy.relation import Relation

Array = npt.NDArray[np.float64]

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
    >>> from tacit.noise import Cap
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
    >>> from tacit.noise import Cap, Norm
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.cap import cap
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
        from tacit.noise.cap_rows import prepare_cap

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
