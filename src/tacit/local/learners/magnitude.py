"""How much to bet: the magnitude of BANCO in log space, finite for any evidence and any time.

A bettor with fraction v of its wealth on every coin would have exp(v x - v^2 y) after gains x and
variance y. BANCO holds a mixture of such bettors; the magnitude is the mixture's derivative in x.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.local._compiled import compilable

# Weights are exp(log magnitude): e^50 is already beyond any model, and squares of it are finite.
LARGEST_LOG = 50.0
# exp(-36) is below the last digit.
_REACH = 6.0
_TINY = 1e-300
# A series of z^2 e terms: a hundred here.
_LARGEST_SERIES = 6.0
_N_NODES = 40
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_N_NODES)


@compilable
def log_uniform_magnitude(x: float, y: float, a: float) -> float:
    """Return log m for bettors spread evenly over [-a, a], the poster's mixture, x > 0.

        m = (1 / 2a) integral_{-a}^{a} v exp(v x - v^2 y) dv

    By quadrature, at any x, y and a: the closed form, a difference of error functions, loses all
    its digits where a sqrt(y) is small or x is far above 2 a y.
    """
    return _log_integral(x, y, a, 1) - math.log(a)


@compilable
def log_scale_free_magnitude(x: float, y: float, a: float) -> float:
    """Return log m for bettors of density 1 / (pi v^2) on [-a, a], x > 0.

        m = (2 / pi) integral_0^a sinh(v x) exp(-v^2 y) dv / v   ->   erfi(x / (2 sqrt y)),  a -> oo

    A mixture that has no scale of its own: it costs no log T (docs/proofs/banco.md). Where a is so
    far beyond the integrand's peak that exp(-36) of it is left out, m is erfi, summed from a series
    whose terms are all positive; else by quadrature.
    """
    root = math.sqrt(y)
    z = x / (2.0 * root)
    if z <= _LARGEST_SERIES and a * root - z >= _REACH:
        return math.log(max(_erfi(z), _TINY))
    return _log_integral(x, y, a, -1) + math.log(2.0 / math.pi)


@compilable
def _erfi(z: float) -> float:
    """Return (2 / sqrt(pi)) sum_n z^(2n+1) / (n! (2n+1)), z >= 0."""
    square = z * z
    power = z  # z^(2n+1) / n!
    total = z
    n = 0
    while power > 2.0**-55 * total:
        n += 1
        power *= square / n
        total += power / (2 * n + 1)
    return total * (2.0 / math.sqrt(math.pi))


@compilable
def _log_integral(x: float, y: float, a: float, power: int) -> float:
    """Return log of the integral over [0, a] of v^power sinh(v x) exp(-v^2 y).

    By Gauss and Legendre where the integrand lives: v x - v^2 y is below its peak by at least
    (v - peak)^2 y, and where it still climbs at a, by (a - v) (x - 2 a y) as well.
    """
    peak = min(x / (2.0 * y), a)
    top = peak * x - peak * peak * y
    slope = max(x - 2.0 * a * y, 0.0)
    width = _REACH / math.sqrt(y)
    high = min(peak + width, a)
    low = max(peak - min(width, _REACH**2 / max(slope, _TINY)), 0.0)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    total = 0.0
    for i in range(_N_NODES):
        v = middle + half * _NODES[i]
        # sinh(v x) = e^{v x} (1 - e^{-2 v x}) / 2
        # v x - v^2 y = top - (peak - v) (x - 2 peak y + (peak - v) y), without cancellation
        drop = peak - v
        body = -0.5 * math.exp(-drop * (slope + drop * y)) * math.expm1(-2.0 * v * x)
        total += _WEIGHTS[i] * (body * v if power == 1 else body / v)
    return top + math.log(max(half * total, _TINY))
