"""What the votes at hand cost, if they are as clear as they are: Theorem 6 of Papernot et al. 2018.

The number depends on the votes, so it is private itself: it may be looked at by whoever may look at
the votes, and published only when it is sanitised (`tacit.pate.accounting.sanitised`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, logsumexp

Array = npt.NDArray[np.float64]

# Rows of orders that are worked on at once: a few of them fit a cache.
_BLOCK = 64


def log_chance_of_upset(votes: npt.ArrayLike, noise_std: float) -> Array:
    """Return the log of a bound on the probability that noise dethrones the greatest count.

        q = sum over others of Phi(-gap / (sqrt(2) noise_std)),   at most 1

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate.accounting import log_chance_of_upset
    >>> np.exp(log_chance_of_upset([[125, 125]], 40.0)).round(3)
    array([0.5])
    """
    ordered = np.sort(np.asarray(votes, dtype=np.float64), axis=1)
    gaps = ordered[:, -1:] - ordered[:, :-1]
    result: Array = logsumexp(log_ndtr(gaps * (-1.0 / (np.sqrt(2.0) * noise_std))), axis=1)
    return np.minimum(result, 0.0)


def votes_renyi(votes: npt.ArrayLike, noise_std: float, orders: npt.ArrayLike) -> Array:
    """Return the summed divergence of GNMax on these votes at each order; never more than Q a/s^2.

    Each vote pattern is looked at once, however often it occurs.

    Parameters
    ----------
    votes
        One row of counts for each query.
    noise_std
        The standard deviation of the noise on each count.
    orders
        Orders above 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate.accounting import votes_renyi
    >>> clear = np.array([[250] + [0] * 9])
    >>> bool(abs(votes_renyi(clear, 40.0, [20.0])[0] - 5.3213e-5) < 1e-9)
    True
    """
    log_q, count = np.unique(log_chance_of_upset(votes, noise_std), return_counts=True)
    a = np.asarray(orders, dtype=np.float64)
    total = np.zeros_like(a)
    for start in range(0, log_q.size, _BLOCK):
        rows = slice(start, start + _BLOCK)
        total += count[rows] @ query_renyi(log_q[rows], noise_std, a)
    return total


def query_renyi(log_q: Array, noise_std: float, orders: Array) -> Array:
    """Return the divergence of one query by chance of upset (rows) and order (columns).

    Theorem 6, with q the chance, s the noise, e_i = mu_i / s^2:

        mu_2 = s sqrt(log(1/q)),  mu_1 = mu_2 + 1
        A = (1-q) / (1 - (q e^e_2)^((mu_2 - 1)/mu_2)),  B = e^e_1 / q^(1/(mu_1 - 1))
        r(a) = log((1-q) A^(a-1) + q B^(a-1)) / (a-1)

    where a <= mu_1, mu_2 > 1 and q <= e^((mu_2-1) e_2) / (mu_1/(mu_1-1) mu_2/(mu_2-1))^mu_2;
    elsewhere, and where it is less, a / s^2.
    """
    worst = orders / noise_std**2
    result: Array = np.broadcast_to(worst, (log_q.size, orders.size)).copy()
    mu_2 = noise_std * np.sqrt(-log_q)
    with np.errstate(all="ignore"):  # what is outside the conditions is masked
        e_1, e_2 = (mu_2 + 1) / noise_std**2, mu_2 / noise_std**2
        slopes = np.log1p(1 / mu_2) + np.log(mu_2 / (mu_2 - 1))
        applies = (mu_2 > 1) & (log_q <= (mu_2 - 1) * e_2 - mu_2 * slopes)
        stays = np.log1p(-np.exp(log_q))
        inner = (log_q + e_2) * (mu_2 - 1) / mu_2
        log_a = stays - np.log(-np.expm1(inner))
        log_b = e_1 - log_q / mu_2
        applies &= np.isfinite(log_a) & (inner < 0)
    rows = np.flatnonzero(applies)
    if rows.size:
        power = orders - 1
        upper = _log_sum(
            stays[rows, None] + log_a[rows, None] * power,
            log_q[rows, None] + log_b[rows, None] * power,
        )
        upper /= power
        fits = orders <= mu_2[rows, None] + 1
        result[rows] = np.where(fits, np.minimum(upper, worst), worst)
    return result


def _log_sum(x: Array, y: Array) -> Array:
    """Return log(e^x + e^y), with one exponential."""
    high, low = np.maximum(x, y), np.minimum(x, y)
    low -= high
    np.exp(low, out=low)
    np.log1p(low, out=low)
    high += low
    return high
