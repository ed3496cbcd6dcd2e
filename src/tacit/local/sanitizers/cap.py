"""Define sanitizers that report a point of a sphere: PrivUnit's cap and the half sphere.

V is uniform on the cap {v in S^(d-1): <v, u> >= gamma} with probability p, else uniform on the
rest of the sphere. Proofs: docs/proofs/local_sanitizers.md, sections 2 and 3.

For a direction at angle phi to u, with y = z cos(phi) and q = z sin(phi),

    M(y, q) = E exp(z <V, a>) = E_t[exp(y t) Phi_{d-1}(q sqrt(1 - t^2))],     t = <V, u>
    Phi_k(x) = E exp(x W_1), W uniform on S^(k-1)
             <= exp(R - b - c log((c + R) / k)),  R = sqrt(x^2 + b^2), b = k/2 + 1, c = k/2 - 1

The centred logarithm is convex in (y, q), so values on a mesh bound it in between. Proofs, and
the parts that are computed in floats rather than proved: docs/proofs/local_sanitizers.md,
section 5.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tacit import checks
from tacit.local.sanitizers.base import Array, Sanitizer, Tail
from tacit.noise import Cap, Source, prepare_cap
from tacit.noise.prepared import PreparedRows

# Caps are optimised over multiples of this, so that gamma is a short number in a message.
GAMMA_STEP = 2.0**-24
# A smaller cap would gain less than 2^-20 of the mean.
LARGEST_GAMMA = 1.0 - 2.0**-20
# Smaller caps, as a share of the sphere, are not considered: `Cap` stops at 2^-64.
_SMALLEST_SHARE = 2.0**-60
# exp beyond this overflows; an epsilon above it changes no double below.
_LARGEST_EXPONENT = 700.0


def mass(d: int, gamma: float) -> float:
    """Return Q, the probability of the cap under the uniform law.

    Q = I_{1 - gamma^2}((d-1)/2, 1/2) / 2 for gamma >= 0
    """
    from scipy.special import betainc

    if d == 1:
        return 0.5
    return 0.5 * float(betainc((d - 1) / 2, 0.5, (1.0 - gamma) * (1.0 + gamma)))


def first_moment(d: int, gamma: float) -> float:
    """Return kappa = E[t; t >= gamma] under the uniform law, t = <V, u>.

    kappa = (1 - gamma^2)^((d-1)/2) Gamma(d/2) / (2 sqrt(pi) Gamma((d+1)/2))
    """
    from scipy.special import gammaln

    if d == 1:
        return 0.5
    power = (d - 1) / 2 * (math.log1p(-gamma) + math.log1p(gamma))
    return math.exp(power + gammaln(d / 2) - gammaln((d + 1) / 2)) / (2.0 * math.sqrt(math.pi))


def mean_length(cap: Cap) -> float:
    """Return m = E<V, u>.

    m = kappa (p / Q - (1 - p) / (1 - Q)) = kappa (p - Q) / (Q (1 - Q))
    """
    q = cap.share
    return first_moment(cap.d, cap.gamma) * (cap.p - q) / (q * (1.0 - q))


def second_moment(cap: Cap) -> float:
    """Return E<V, u>^2.

    E[t^2; t >= gamma] = ((d - 1) gamma kappa + Q) / d under the uniform law, by parts
    """
    d, gamma, p = cap.d, cap.gamma, cap.p
    q = cap.share
    inside = ((d - 1) * gamma * first_moment(d, gamma) + q) / d
    return p * inside / q + (1.0 - p) * (1.0 / d - inside) / (1.0 - q)


@lru_cache(maxsize=256)
def best_gamma(d: int, epsilon: float) -> float:
    """Return the gamma of the longest mean m among all caps that cost ``epsilon``.

    With p as large as epsilon allows and E = e^epsilon - 1,

        m(gamma) = kappa E / (1 + Q E),     m' = 0  iff  gamma (1/E + Q) = kappa  iff  gamma = m

    The left side minus the right has derivative 1/E + Q > 0, so there is exactly one maximum,
    and it lies between 0 and 1.
    """
    from scipy.optimize import brentq

    if d == 1:
        return 0.0  # on two points all caps are equal
    inverse = 1.0 / math.expm1(min(epsilon, _LARGEST_EXPONENT))

    def slope(gamma: float) -> float:
        return gamma * (inverse + mass(d, gamma)) - first_moment(d, gamma)

    largest = LARGEST_GAMMA
    if mass(d, largest) < _SMALLEST_SHARE:
        largest = float(brentq(lambda gamma: mass(d, gamma) - _SMALLEST_SHARE, 0.0, largest))
    if slope(largest) <= 0.0:
        return math.floor(largest / GAMMA_STEP) * GAMMA_STEP
    gamma = float(brentq(slope, 0.0, largest, xtol=GAMMA_STEP / 4))
    return round(gamma / GAMMA_STEP) * GAMMA_STEP


@lru_cache(maxsize=256)
def widest_cap(d: int, gamma: float, epsilon: float) -> Cap:
    """Return the cap at ``gamma`` with the greatest p that costs at most ``epsilon``.

        p = e^epsilon Q / (1 - Q + e^epsilon Q)

    in floats, then lowered until `Cap.epsilon`, which is never below the truth, allows it.
    """
    from scipy.special import expit

    q = mass(d, gamma)
    odds = epsilon + math.log(q) - math.log1p(-q)
    # p must be below 1, so that points outside the cap stay possible.
    p = min(float(expit(odds)), 1.0 - 2.0**-53)
    step = 1
    while Cap(d, gamma, p).epsilon > epsilon:
        p, step = p - step * math.ulp(p), 2 * step
    return Cap(d, gamma, p)


# The mesh: rays over a quarter of a turn, and the ratio of neighbouring lengths along a ray.
# Together they cost less than 0.6 % of the constant.
_N_RAYS = 16
_RATIO = 1.1
# Below this length the bound is Bennett's, which then costs 0.13 %.
_SHORTEST = 2.0**-9
# Nodes per panel, panels per width of the law, and the widths that hold all but e^-40 of it.
_NODES = 8
_PANELS_PER_WIDTH = 0.5
_WIDTHS = 9.0
# Logarithms are raised by this for the float error of their sums, and the answer by a part in a
# million for that of the quadrature.
_LOG_SLACK = 2.0**-48
_FLOAT_SLACK = 1e-6
# The quadrature is skipped if it could improve the closed form by less than this.
_WORTHWHILE = 1.05


@lru_cache(maxsize=256)
def cap_variance(cap: Cap, largest_rate: float) -> float:
    """Return k with E exp(z X) <= exp(k z^2 / 2), 0 <= z <= largest_rate, X = <V, a> - E<V, a>.

    The vector is +V or -V with any probability and ``a`` any unit vector. This is the quadrature's
    answer; `closed_variance` holds for every z.
    """
    if cap.d == 1:
        return 1.0
    longest = 1.0 / math.cos(math.pi / 4 / _N_RAYS)
    # X <= 1 + m, so 2 log E exp(z X) / z^2 <= 2 (1 + m) / z, at most 1/d beyond this rate.
    largest_rate = min(largest_rate, 2.0 * (1.0 + mean_length(cap)) * cap.d) * longest
    n_lengths = 2 + math.ceil(math.log(largest_rate / _SHORTEST) / math.log(_RATIO))
    lengths = np.geomspace(_SHORTEST, largest_rate, n_lengths)
    on_mesh = _chords(lengths, _greatest_logarithm(cap, lengths)) * longest**2
    return max(on_mesh, _near_zero(cap)) * (1.0 + _FLOAT_SLACK)


def closed_variance(cap: Cap) -> float:
    """Return k with E exp(z X) <= exp(k z^2 / 2) for every z.

    k = min(1, e^epsilon / (d - 1)): Hoeffding; Holley and Stroock with Herbst
    """
    if cap.d == 1:
        return 1.0
    return min(1.0, math.exp(min(cap.epsilon, 700.0)) / (cap.d - 1))


def is_worthwhile(cap: Cap) -> bool:
    """Return whether the quadrature can noticeably improve the closed form."""
    # Nothing is below the variance of the uniform law, 1 / d.
    return cap.d > 1 and closed_variance(cap) > _WORTHWHILE / cap.d


def _near_zero(cap: Cap) -> float:
    """Return a bound for z <= _SHORTEST.

    E exp(z X) <= 1 + Var X (e^(2z) - 1 - 2z) / 4 for X <= 2 (Bennett 1962)
    Var X <= max(E t^2, (1 - E t^2) / (d - 1))
    """
    along = second_moment(cap)
    variance = max(along, (1.0 - along) / (cap.d - 1))
    twice = 2.0 * _SHORTEST
    return variance * 2.0 * (math.expm1(twice) - twice) / twice**2


def _chords(lengths: Array, logarithm: Array) -> float:
    """Return sup 2 f(z) / z^2 over the mesh for a convex f known at ``lengths``.

    Between two neighbours f is below the chord first + slope z; 2 (first + slope z) / z^2 is
    greatest at z = -2 first / slope or at an end.
    """
    slope = np.diff(logarithm) / np.diff(lengths)
    first = logarithm[:-1] - slope * lengths[:-1]
    z = np.clip(-2.0 * first / slope, lengths[:-1], lengths[1:])
    inside = 2.0 * (first + slope * z) / z**2
    return float(max(inside.max(), (2.0 * logarithm / lengths**2).max()))


def _greatest_logarithm(cap: Cap, lengths: Array) -> Array:
    """Return a bound on log E exp(z X), the greatest over rays and over ||g||, for each length."""
    cosines, sines, log_weights = _quadrature(cap, float(lengths[-1]))
    mean = mean_length(cap)
    greatest = np.zeros_like(lengths)
    spare = np.empty((lengths.size, cosines.size))
    for angle in np.linspace(0.0, math.pi / 2, _N_RAYS + 1):
        along, across = lengths * math.cos(angle), lengths * math.sin(angle)
        base = _log_phi(cap.d - 1, np.multiply.outer(across, sines))
        base += log_weights
        exponent = np.multiply.outer(along, cosines)
        up = _log_sum(np.add(base, exponent, out=spare))
        down = _log_sum(np.subtract(base, exponent, out=spare))
        np.maximum(greatest, _over_lengths_of_g(up, down, mean * along), out=greatest)
    return greatest + _LOG_SLACK


def _over_lengths_of_g(up: Array, down: Array, shift: Array) -> Array:
    """Return max over r in [-1, 1] of log((1+r)/2 e^up + (1-r)/2 e^down) - r shift, up >= down.

    Concave in r: log(A + D r) - r shift has its maximum at r = 1/shift - A/D, or at an end.
    """
    top = np.maximum(up, down)
    plus, minus = np.exp(up - top), np.exp(down - top)
    middle, half = (plus + minus) / 2, (plus - minus) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.nan_to_num(np.clip(1.0 / shift - middle / half, -1.0, 1.0))
    # Where r is off by a rounding, or 0 for 0/0 (up = down, shift = 0), the value hardly is.
    result: Array = top + np.log(middle + half * r) - r * shift
    return result


def _log_phi(k: int, x: Array) -> Array:
    """Return a bound on log Phi_k(x), overwriting x: e - c log(1 + e / k), e = R - b.

    Its derivative is x / (c + R). e = x^2 / (R + b) keeps its digits where x is small.
    """
    b, c = k / 2 + 1, k / 2 - 1
    x *= x
    root = np.sqrt(x + b * b)
    root += b
    x /= root
    logarithm = np.log1p(np.divide(x, k, out=root), out=root)
    logarithm *= c
    x -= logarithm
    return x


def _log_sum(exponents: Array) -> Array:
    """Return log sum exp over the last axis; the exponents are overwritten."""
    top = exponents.max(axis=-1, keepdims=True)
    exponents -= top
    np.exp(exponents, out=exponents)
    result: Array = top[..., 0] + np.log(exponents.sum(axis=-1))
    return result


def _quadrature(cap: Cap, largest_rate: float) -> tuple[Array, Array, Array]:
    """Return t, sqrt(1 - t^2) and log weights for the law of t = <V, u>.

    In the angle the law has density proportional to sin^(d-2) on the cap and on the rest. Under
    exponential tilting by any z <= largest_rate it is log-concave in t with modulus d - 3 and a
    mode below 2 largest_rate / d, so that nine widths 1 / sqrt(d - 3) either side hold all but
    e^-40 of it.
    """
    d, gamma = cap.d, cap.gamma
    spread = _WIDTHS / math.sqrt(max(d - 3, 1))
    mode = min(1.0, 2.0 * largest_rate / d)
    low = math.acos(min(1.0, max(gamma, mode) + spread))
    high = math.acos(max(-1.0, min(gamma, -mode) - spread))
    middle = math.acos(gamma)
    panel = 1.0 / (_PANELS_PER_WIDTH * math.sqrt(d + largest_rate))
    parts = [
        _piece(d, low, middle, panel, cap.p),
        _piece(d, middle, high, panel, 1.0 - cap.p),
    ]
    cosines, sines, log_weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    return cosines, sines, log_weights


def _piece(
    d: int, start: float, stop: float, panel: float, probability: float
) -> tuple[Array, Array, Array]:
    """Return Gauss-Legendre nodes for the density sin^(d-2) on [start, stop], normalised."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    edges = np.linspace(start, stop, 1 + max(1, math.ceil((stop - start) / panel)))
    half = np.diff(edges)[:, None] / 2
    angle = ((edges[:-1] + edges[1:])[:, None] / 2 + half * nodes).ravel()
    sine = np.sin(angle)
    log_weight = np.log((half * weights).ravel()) + (d - 2) * np.log(sine)
    log_weight += math.log(probability) - _log_sum(log_weight.copy())
    return np.cos(angle), sine, log_weight


# A betting learner uses log(1 + v g) >= v g - (v g)^2, true for v g >= -0.6838, so it never
# needs the tail beyond the rate 0.6838 / norm.
LEARNER_RATE = 0.6838
# The tail of the ideal point is computed up to this much larger a rate, for the rounding.
_ROOM = 1.0 + 2.0**-8
# Float error of a sum of squares in units of one; far below the rounding, far above d 2^-53.
_SUM_SLACK = 2.0**-30


class CapSanitizer(Sanitizer):
    """Report ``radius`` times a random point of the unit sphere.

        u = +gradient/||gradient|| with probability 1/2 + ||gradient|| / (2 norm), else its negative
        report = radius h round(V / h),   V of the law of ``cap`` about u,   radius = norm / m

    with m = E<V, u>.
    """

    delta = 0.0

    @property
    @abstractmethod
    def cap(self) -> Cap:
        """The law of the point."""

    @cached_property
    def radius(self) -> float:
        """The length of every report, before rounding: norm / m."""
        return self.norm / mean_length(self.cap)

    @property
    def spacing(self) -> float:
        """Radius h, h the lattice of the unit sphere: a power of two that depends on d."""
        return self.radius * self.cap.spacing

    @property
    def rms_norm(self) -> float:
        """The radius; rounding changes it by less than one part in 2^20."""
        return self.radius

    @cached_property
    def tail(self) -> Tail:
        """The least constant known: by quadrature up to 0.6838 / norm, or in closed form."""
        radius, rounding = self.radius, self.spacing * math.sqrt(self.n_features) / 2.0
        closed = Tail(radius**2 * closed_variance(self.cap), math.inf).plus_rounding(rounding)
        if not is_worthwhile(self.cap):
            return closed
        largest_rate = LEARNER_RATE / self.norm
        variance = cap_variance(self.cap, largest_rate * radius * _ROOM)
        tail = Tail(radius**2 * variance, largest_rate * _ROOM).plus_rounding(rounding)
        if tail.variance >= closed.variance or tail.largest_rate < largest_rate:
            return closed
        return Tail(tail.variance, largest_rate)

    def prepare(self, n: int, source: Source) -> PreparedRows:
        """Return ``n`` rows of noise."""
        return prepare_cap(n, self.n_features, self.cap, source)

    def _is_plausible(self, steps: Array) -> bool:
        # Some unit vector rounds to these steps iff the box of half a step around them meets the
        # sphere: its nearest corner is within the sphere, its furthest is not.
        h = self.cap.spacing
        size = np.abs(steps) * h
        nearest = float(np.sum(np.maximum(size - h / 2.0, 0.0) ** 2))
        furthest = float(np.sum((size + h / 2.0) ** 2))
        return nearest <= 1.0 + _SUM_SLACK and furthest >= 1.0 - _SUM_SLACK


@dataclass(frozen=True)
class HalfSphere(CapSanitizer):
    """Report a uniform point of the gradient's half of the sphere, or of the other half.

        p = e^epsilon / (1 + e^epsilon)
        radius = norm sqrt(pi) Gamma((d+1)/2) / Gamma(d/2) (e^epsilon + 1) / (e^epsilon - 1)

    the L2-ball mechanism of Duchi, Jordan and Wainwright (2018), with d = ``n_features``. It is
    `PrivUnit` with a cap of half the sphere, and nearly as good if epsilon is below 1;
    parameters are as there, without gamma.

    Notes
    -----
    **Guarantee**

    1. A report costs ``PureEpsilon(epsilon, REPLACE)``; no delta is added for floats.
    2. Every report is a multiple of ``spacing`` and lies within radius 2^-20 of the sphere.
    3. E report = gradient, but for a rounding bias of norm below radius 2^-20.
    4. ``tail``: see docs/proofs/local_sanitizers.md, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import HalfSphere
    >>> sanitizer = HalfSphere(epsilon=1.0, n_features=100)
    >>> round(sanitizer.rms_norm, 2)
    27.05
    >>> report = sanitizer.sanitize(np.zeros(100)).value
    >>> round(float(np.linalg.norm(report)), 2)
    27.05
    """

    kind = "half_sphere"

    epsilon: float
    n_features: int
    norm: float = 1.0

    @property
    def cap(self) -> Cap:
        """Half the sphere."""
        return widest_cap(self.n_features, 0.0, self.epsilon)


@dataclass(frozen=True)
class PrivUnit(CapSanitizer):
    """Report a uniform point of the cap {v: <v, u> >= gamma} about the gradient, or outside it.

        epsilon = log(p (1 - Q) / ((1 - p) Q)),   Q the share of the sphere in the cap
        radius = norm / m,   m = kappa (p / Q - (1 - p) / (1 - Q))

    Bhowmick et al. (2018), with the p that spends all of epsilon and the gamma that makes the
    radius least; then gamma = m. Asi, Feldman and Talwar (2022) show it to be the best of a large
    family of unbiased reports.

    Parameters
    ----------
    epsilon : float
        The greatest privacy loss of one report.
    n_features : int
        The number of coordinates of a gradient.
    norm : float
        The bound to which gradients are clipped.
    gamma : float, optional
        The start of the cap, in [0, 1). By default the best.

    Notes
    -----
    **Guarantee**

    1. A report costs ``PureEpsilon(epsilon, REPLACE)``, whatever gamma is; no delta is added for
       floats.
    2. Every report is a multiple of ``spacing`` and lies within radius 2^-20 of the sphere.
    3. E report = gradient, but for a rounding bias of norm below radius 2^-20.
    4. ``tail``: see docs/proofs/local_sanitizers.md, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import PrivUnit
    >>> [round(PrivUnit(epsilon, n_features=100).rms_norm, 2) for epsilon in (1.0, 8.0)]
    [25.11, 3.71]
    >>> PrivUnit(1.0, n_features=3).sanitize(np.array([0.6, 0.0, 0.0])).value.shape
    (3,)
    """

    kind = "priv_unit"

    epsilon: float
    n_features: int
    norm: float = 1.0
    gamma: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        gamma = best_gamma(self.n_features, self.epsilon) if self.gamma is None else self.gamma
        checks.number("gamma", gamma, remedy="leave it out for the best.")
        if not 0.0 <= gamma <= LARGEST_GAMMA:
            raise ValueError(
                f"gamma must be in [0, 1 - 2^-20], got {gamma!r}: a cap beyond half the sphere "
                "is never better; leave it out for the best."
            )
        object.__setattr__(self, "gamma", float(gamma))
        try:
            _ = self.cap
        except ValueError as error:
            raise ValueError(
                f"gamma = {gamma!r} makes too small a cap for n_features = {self.n_features} and "
                f"epsilon = {self.epsilon!r}; leave it out for the best."
            ) from error

    @property
    def cap(self) -> Cap:
        """The cap, with the p that spends epsilon."""
        assert self.gamma is not None
        return widest_cap(self.n_features, self.gamma, self.epsilon)
