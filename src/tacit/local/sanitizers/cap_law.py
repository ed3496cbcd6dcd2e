"""The law of a cap in closed form: its mass, its mean, and the cap of the longest mean.

V is uniform on the cap {v in S^(d-1): <v, u> >= gamma} with probability p, else uniform on the
rest of the sphere. Proofs: docs/proofs/local_sanitizers.md, sections 2 and 3.
"""

from __future__ import annotations

import math
from functools import lru_cache

from tacit.noise import Cap

# Caps are optimised over multiples of this, so that gamma is a short number in a message.
GAMMA_STEP = 2.0**-24
# A smaller cap would gain less than 2^-20 of the mean.
LARGEST_GAMMA = 1.0 - 2.0**-20
# Nor is a cap of a smaller share of the sphere looked at: `Cap` stops at 2^-64.
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
        return 0.0  # two points: every cap is the same one
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
    # Cap's p is below 1: something must always be possible outside the cap.
    p = min(float(expit(odds)), 1.0 - 2.0**-53)
    step = 1
    while Cap(d, gamma, p).epsilon > epsilon:
        p, step = p - step * math.ulp(p), 2 * step
    return Cap(d, gamma, p)
