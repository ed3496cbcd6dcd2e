"""How heavy the tails of a cap's reports are: a bound on its moment generating function.

For a direction at angle phi to u, with y = z cos(phi) and q = z sin(phi),

    M(y, q) = E exp(z <V, a>) = E_t[exp(y t) Phi_{d-1}(q sqrt(1 - t^2))],     t = <V, u>
    Phi_k(x) = E exp(x W_1), W uniform on S^(k-1)
             <= exp(R - b - c log((c + R) / k)),  R = sqrt(x^2 + b^2), b = k/2 + 1, c = k/2 - 1

The centred logarithm is convex in (y, q), so values on a mesh bound it between. Proofs, and what
is computed in floats rather than proved: docs/proofs/local_sanitizers.md, section 5.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.local.sanitizers.cap_law import mean_length, second_moment
from tacit.noise import Cap

Array = npt.NDArray[np.float64]

# The mesh: rays over a quarter of a turn, and the ratio of neighbouring lengths along a ray.
# Together they cost less than 0.6 % of the constant.
_N_RAYS = 16
_RATIO = 1.1
# Below this length the bound is Bennett's, which then costs 0.13 %.
_SHORTEST = 2.0**-9
# Nodes of a panel, panels a width of the law, and how many widths hold all but e^-40 of it.
_NODES = 8
_PANELS_PER_WIDTH = 0.5
_WIDTHS = 9.0
# Logarithms are raised by this for the float error of their sums, and the answer by a part in a
# million for that of the quadrature.
_LOG_SLACK = 2.0**-48
_FLOAT_SLACK = 1e-6
# The quadrature is left out where it could improve the closed form by less than this.
_WORTHWHILE = 1.05


@lru_cache(maxsize=256)
def cap_variance(cap: Cap, reach: float) -> float:
    """Return k with E exp(z X) <= exp(k z^2 / 2) for 0 <= z <= reach, X = <V, a> - E<V, a>.

    The vector is +V or -V with any probability and ``a`` any unit vector. This is the quadrature's
    answer; `closed_variance` holds for every z.
    """
    if cap.d == 1:
        return 1.0
    longest = 1.0 / math.cos(math.pi / 4 / _N_RAYS)
    # X <= 1 + m, so that 2 log E exp(z X) / z^2 <= 2 (1 + m) / z, at most 1/d beyond this reach.
    reach = min(reach, 2.0 * (1.0 + mean_length(cap)) * cap.d) * longest
    n_lengths = 2 + math.ceil(math.log(reach / _SHORTEST) / math.log(_RATIO))
    lengths = np.geomspace(_SHORTEST, reach, n_lengths)
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
    """Say whether the quadrature can improve noticeably on the closed form."""
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
        tilt = np.multiply.outer(along, cosines)
        up = _log_sum(np.add(base, tilt, out=spare))
        down = _log_sum(np.subtract(base, tilt, out=spare))
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


def _quadrature(cap: Cap, reach: float) -> tuple[Array, Array, Array]:
    """Return t, sqrt(1 - t^2) and log weights for the law of t = <V, u>.

    In the angle the law has density proportional to sin^(d-2) on the cap and on the rest. Tilted
    by any z <= reach it is log-concave in t with modulus d - 3 and a mode below 2 reach / d, so
    that nine widths 1 / sqrt(d - 3) either side hold all but e^-40 of it.
    """
    d, gamma = cap.d, cap.gamma
    spread = _WIDTHS / math.sqrt(max(d - 3, 1))
    mode = min(1.0, 2.0 * reach / d)
    low = math.acos(min(1.0, max(gamma, mode) + spread))
    high = math.acos(max(-1.0, min(gamma, -mode) - spread))
    middle = math.acos(gamma)
    panel = 1.0 / (_PANELS_PER_WIDTH * math.sqrt(d + reach))
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
