"""Compute the Renyi divergence of the Poisson-sampled Gaussian at all orders at once.

    r(a) = log( sum_k C(a,k) q^k (1-q)^(a-k) exp(k (k-1) / (2 z^2)) ) / (a - 1)

for integer a, with q the sampling rate and z the noise multiplier (docs/proofs/events.md, section
4). All (a, k) pairs lie in one flat array. The binomials are computed once per set of orders, and
each call takes one exponential of the array.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

Array = npt.NDArray[np.float64]


@lru_cache(maxsize=4)
def _terms(orders: tuple[int, ...]) -> tuple[Array, Array, Array, npt.NDArray[np.int64]]:
    a = np.repeat(np.array(orders, dtype=np.float64), np.array(orders) + 1)
    k = np.concatenate([np.arange(n + 1, dtype=np.float64) for n in orders])
    log_binomial = gammaln(a + 1) - gammaln(k + 1) - gammaln(a - k + 1)
    starts = np.concatenate([[0], np.cumsum(np.array(orders) + 1)[:-1]])
    return log_binomial, k, a - k, starts


def sampled_gaussian_renyi(rate: float, noise_multiplier: float, orders: Array) -> Array:
    """Return r(a) for each order; a fractional order gets the next integer's (r is increasing).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy.sampled_gaussian import sampled_gaussian_renyi
    >>> sampled_gaussian_renyi(0.01, 1.0, np.array([2.0])).round(8)
    array([0.00017181])
    """
    ceiling = np.maximum(np.ceil(orders), 2.0)
    unique, inverse = np.unique(ceiling, return_inverse=True)
    log_binomial, k, rest, starts = _terms(tuple(int(a) for a in unique))
    exponents = k * (k - 1) / (2 * noise_multiplier**2)
    log_terms = log_binomial + k * math.log(rate) + rest * math.log1p(-rate) + exponents
    peaks = np.maximum.reduceat(log_terms, starts)
    lengths = np.diff(np.append(starts, log_terms.size))
    sums = np.add.reduceat(np.exp(log_terms - np.repeat(peaks, lengths)), starts)
    # The sum is at least 1; rounding must not make a divergence negative.
    log_sums = np.maximum(peaks + np.log(sums), 0.0) + 1e-15 * lengths
    result: Array = (log_sums / (unique - 1))[inverse]
    return result
