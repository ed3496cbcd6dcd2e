"""From errors of a guesser, or from two means, to what privacy can be at most, with confidence.

Whoever guesses between two neighbouring data sets from one release is right so often only if the
release tells so much: each function here turns counts or scores into a lower bound on epsilon or on
mu that holds except with probability ``level`` (docs/proofs/audit.md).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, nctdtr, ndtri

from tacit import checks
from tacit.privacy.roots import decreasing_root

Array = npt.NDArray[np.float64]


def at_most(errors: int, trials: int, level: float) -> float:
    """Return what a probability is at most, given how often it happened (Clopper and Pearson).

    Examples
    --------
    >>> from tacit.audit.limits import at_most
    >>> round(at_most(0, 1000, 0.025), 5)
    0.00368
    """
    if errors >= trials:
        return 1.0
    return float(betaincinv(errors + 1, trials - errors, 1 - level))


def epsilon_of_errors(false_alarms: float, misses: float, delta: float) -> float:
    """Return the least epsilon that allows a guesser such error rates, at ``delta``.

        P[guess "with" | with] <= e^epsilon P[guess "with" | without] + delta, and the reverse

    Examples
    --------
    >>> from tacit.audit.limits import epsilon_of_errors
    >>> round(epsilon_of_errors(0.00368, 0.00368, 0.0), 2)
    5.6
    """
    pairs = ((false_alarms, misses), (misses, false_alarms))
    ratios = [(1 - delta - one) / other if other > 0 else math.inf for one, other in pairs]
    return max(0.0, *(math.log(ratio) for ratio in ratios if ratio > 0), 0.0)


def mu_of_errors(false_alarms: float, misses: float) -> float:
    """Return the least mu of a Gaussian curve that allows a guesser such error rates.

        misses >= Phi(Phi^-1(1 - false alarms) - mu)

    Examples
    --------
    >>> from tacit.audit.limits import mu_of_errors
    >>> mu_of_errors(0.5, 0.5)
    0.0
    """
    if false_alarms >= 1.0 or misses >= 1.0:
        return 0.0
    return max(float(ndtri(1 - false_alarms) - ndtri(misses)), 0.0)


def mu_of_means(without: Array, with_it: Array, level: float, beside: Array | None = None) -> float:
    """Return what mu is at least, if scores are Gaussian with one spread in both worlds.

    The difference of means over the pooled standard deviation is Student's t with noncentrality
    mu / sqrt(1/n + 1/m); the mu at which what was seen, or more, has probability ``level``. Numbers
    ``beside`` them that have mean 0 and the same spread in both worlds make it better known.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.audit.limits import mu_of_means
    >>> seen = np.linspace(-1.5, 1.5, 101)
    >>> round(mu_of_means(seen, seen + 0.6, 0.05), 2)
    0.44
    """
    n, m = checks.count("fits", len(without), least=2), checks.count("fits", len(with_it), least=2)
    degrees, size = n + m - 2, math.sqrt(1 / n + 1 / m)
    squares = float(np.square(without - without.mean()).sum())
    squares += float(np.square(with_it - with_it.mean()).sum())
    if beside is not None:
        degrees, squares = degrees + beside.size, squares + float(np.square(beside).sum())
    t = float(with_it.mean() - without.mean()) / (math.sqrt(squares / degrees) * size)

    def chance_of_less(noncentrality: float) -> float:
        return float(nctdtr(degrees, noncentrality, t)) - (1 - level)

    if chance_of_less(0.0) <= 0.0:
        return 0.0
    return decreasing_root(chance_of_less, max(t, 1.0)) * size
