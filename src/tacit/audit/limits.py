"""From errors of a guesser, or from two means, to what privacy can be at most, with confidence.

Whoever guesses between two neighbouring data sets from one release is right so often only if the
release tells so much: each function here turns counts or scores into a lower bound on epsilon or on
mu that holds except with probability ``level`` (docs/proofs/audit.md).
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


# Where promises are compared with errors: the deltas that few fits can see, and between which
# powers of 2 the least epsilon is looked for, to half a percent.
_DELTAS = (0.0, *np.geomspace(1e-4, 0.5, 16).tolist())
_LEAST, _MOST, _LOOKS = -5.0, 5.0, 11


def epsilon_promised(
    false_alarms: float, misses: float, promised: Callable[[float], Event]
) -> float:
    """Return the least epsilon whose promise, at every delta, allows a guesser such error rates.

    ``promised`` returns what would be released at an epsilon; more of it, or the same, at a greater
    one. Where the least epsilon is above a claim, the promise at the claim is broken at some delta.

    Examples
    --------
    >>> from tacit.audit.limits import epsilon_promised
    >>> from tacit.privacy import PureEpsilon
    >>> round(epsilon_promised(0.1, 0.1, PureEpsilon), 1)  # log(9), from below
    2.2
    >>> epsilon_promised(0.5, 0.5, PureEpsilon)
    0.0
    """

    def allows(epsilon: float) -> bool:
        promise = Guarantee(promised(epsilon))
        # By delta: at a large one few fits tell the most of an event that is nearly Gaussian.
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


# Of what a bound by means may err, how much is left to the difference; the rest is the spread's.
_OF_DIFFERENCE = 0.8


def mu_of_pairs(without: Array, with_it: Array, level: float, beside: Array | None = None) -> float:
    """Return what mu is at least, if scores are Gaussian with one spread in both worlds.

        mu >= (mean difference of pairs - t sqrt(variance of differences / n)) / spread

    The i-th fits of both worlds are a pair, and may have had the same noise: what the record moves
    then shows at once. The mean difference is above its limit, and the spread below its own, except
    with probability ``level`` together. Of two worlds the greater spread counts. Rows ``beside``,
    one for each world, are numbers of mean 0 that the record does not move, of the spread of
    scores: with them it is better known.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.audit.limits import mu_of_pairs
    >>> seen = np.linspace(-1.5, 1.5, 101)
    >>> round(mu_of_pairs(seen, seen + 0.6, 0.05), 2)  # the same noise in both worlds
    0.57
    >>> round(mu_of_pairs(seen, seen[::-1] + 0.6, 0.05), 2)
    0.28
    """
    n = checks.count("fits", len(without), least=2)
    moved = with_it - without
    error = float(moved.std(ddof=1)) / math.sqrt(n)
    difference = float(moved.mean()) - float(stdtrit(n - 1, 1 - _OF_DIFFERENCE * level)) * error
    squares = [float(np.square(scores - scores.mean()).sum()) for scores in (without, with_it)]
    degrees = n - 1
    if beside is not None:
        squares = [
            own + float(np.square(row).sum()) for own, row in zip(squares, beside, strict=True)
        ]
        degrees += beside[0].size
    # A chi-square variable is below this with what is left of the level.
    least = float(chdtri(degrees, 1 - (1 - _OF_DIFFERENCE) * level))
    spread = math.sqrt(max(squares) / least)
    return max(difference, 0.0) / spread if spread > 0.0 else (math.inf if difference > 0 else 0.0)
