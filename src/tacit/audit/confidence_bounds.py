"""Derive lower bounds on epsilon or mu from error rates of a guesser, or from two means.

A guesser between two neighbouring data sets can only be right as often as the release allows. Each
function here turns counts or scores into a lower bound on epsilon or on mu that holds except with
probability ``level`` (docs/proofs/audit.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, chdtri, ndtri, stdtrit

from tacit import checks
from tacit.privacy import Event, Guarantee

Array = npt.NDArray[np.float64]


def at_most(errors: int, trials: int, level: float) -> float:
    """Return an upper confidence limit on a probability from counts (Clopper and Pearson).

    Examples
    --------
    >>> from tacit.audit.confidence_bounds import at_most
    >>> round(at_most(0, 1000, 0.025), 5)
    0.00368
    """
    if errors >= trials:
        return 1.0
    return float(betaincinv(errors + 1, trials - errors, 1 - level))


def epsilon_of_errors(false_alarms: float, misses: float, delta: float) -> float:
    """Return the least epsilon that allows a guesser these error rates, at ``delta``.

        P[guess "with" | with] <= e^epsilon P[guess "with" | without] + delta, and the reverse

    Examples
    --------
    >>> from tacit.audit.confidence_bounds import epsilon_of_errors
    >>> round(epsilon_of_errors(0.00368, 0.00368, 0.0), 2)
    5.6
    """
    pairs = ((false_alarms, misses), (misses, false_alarms))
    ratios = [(1 - delta - one) / other if other > 0 else math.inf for one, other in pairs]
    return max(0.0, *(math.log(ratio) for ratio in ratios if ratio > 0), 0.0)


def mu_of_errors(false_alarms: float, misses: float) -> float:
    """Return the least mu of a Gaussian trade-off curve that allows a guesser these error rates.

        misses >= Phi(Phi^-1(1 - false alarms) - mu)

    Examples
    --------
    >>> from tacit.audit.confidence_bounds import mu_of_errors
    >>> mu_of_errors(0.5, 0.5)
    0.0
    """
    if false_alarms >= 1.0 or misses >= 1.0:
        return 0.0
    return max(float(ndtri(1 - false_alarms) - ndtri(misses)), 0.0)


# Deltas at which a guarantee is compared with error rates: those that few fits can resolve. The
# least epsilon is searched between these powers of 2, to half a percent.
_DELTAS = (0.0, *np.geomspace(1e-4, 0.5, 16).tolist())
_LEAST, _MOST, _LOOKS = -5.0, 5.0, 11


def epsilon_promised(
    false_alarms: float, misses: float, promised: Callable[[float], Event]
) -> float:
    """Return the least epsilon whose guarantee, at every delta, allows these error rates.

    ``promised`` returns the event that is planned at an epsilon; its cost must not decrease in
    epsilon. If the least epsilon is above a claim, the guarantee at the claim is violated at some
    delta.

    Examples
    --------
    >>> from tacit.audit.confidence_bounds import epsilon_promised
    >>> from tacit.privacy import PureEpsilon
    >>> round(epsilon_promised(0.1, 0.1, PureEpsilon), 1)  # log(9), from below
    2.2
    >>> epsilon_promised(0.5, 0.5, PureEpsilon)
    0.0
    """

    def allows(epsilon: float) -> bool:
        promise = Guarantee(promised(epsilon))
        # Compare at every delta: few fits resolve a nearly Gaussian event best at a large one.
        return all(
            epsilon_of_errors(false_alarms, misses, delta) <= promise.epsilon(delta)
            for delta in _DELTAS
        )

    low, high = _LEAST, _MOST
    if allows(2.0**low):
        return 0.0
    if not allows(2.0**high):
        return math.inf
    for _ in range(_LOOKS):
        middle = (low + high) / 2
        low, high = (low, middle) if allows(2.0**middle) else (middle, high)
    return float(2.0**low)


# Share of the level that is used for the difference of means; the rest is for the spread.
_OF_DIFFERENCE = 0.8


def mu_of_pairs(without: Array, with_it: Array, level: float, beside: Array | None = None) -> float:
    """Return a lower bound on mu, if scores are Gaussian with one spread on both data sets.

        mu >= (mean difference of pairs - t sqrt(variance of differences / n)) / spread

    The i-th fits of both data sets are a pair, and may share their noise, which makes the effect of
    the record visible at once. The limits on the mean difference and on the spread both hold except
    with probability ``level`` together. The greater spread of the two data sets counts. Rows
    ``beside``, one for each data set, are numbers of mean 0 with the spread of the scores that the
    record does not move; they improve the estimate of the spread.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.audit.confidence_bounds import mu_of_pairs
    >>> seen = np.linspace(-1.5, 1.5, 101)
    >>> round(mu_of_pairs(seen, seen + 0.6, 0.05), 2)  # the same noise in both worlds
    0.57
    >>> round(mu_of_pairs(seen, seen[::-1] + 0.6, 0.05), 2)
    0.28
    """
    n = checks.count("fits", len(without), least=2)
    changes = with_it - without
    error = float(changes.std(ddof=1)) / math.sqrt(n)
    difference = float(changes.mean()) - float(stdtrit(n - 1, 1 - _OF_DIFFERENCE * level)) * error
    squares = [float(np.square(scores - scores.mean()).sum()) for scores in (without, with_it)]
    degrees = n - 1
    if beside is not None:
        squares = [
            own + float(np.square(row).sum()) for own, row in zip(squares, beside, strict=True)
        ]
        degrees += beside[0].size
    # A chi-square variable is below this with the rest of the level.
    least = float(chdtri(degrees, 1 - (1 - _OF_DIFFERENCE) * level))
    spread = math.sqrt(max(squares) / least)
    return max(difference, 0.0) / spread if spread > 0.0 else (math.inf if difference > 0 else 0.0)
