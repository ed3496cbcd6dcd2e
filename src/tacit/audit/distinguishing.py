"""Bound epsilon or mu from below, by how well two neighbouring data sets are told apart.

A guesser between two neighbouring data sets can only be right as often as the release allows. Each
function here turns counts or scores into a lower bound on epsilon or on mu that holds except with
probability ``level`` (docs/proofs/audit.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, chdtri, expit, ndtr, ndtri, stdtrit

from tacit import checks
from tacit.audit.results import Finding
from tacit.privacy import Budget, Event, Guarantee
from tacit.privacy.accounting.gaussian_profile import gaussian_epsilon

Array = npt.NDArray[np.float64]


def at_most(errors: int, trials: int, level: float) -> float:
    """Return an upper confidence limit on a probability from counts (Clopper and Pearson).

    Examples
    --------
    >>> from tacit.audit.distinguishing import at_most
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
    >>> from tacit.audit.distinguishing import epsilon_of_errors
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
    >>> from tacit.audit.distinguishing import mu_of_errors
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
    >>> from tacit.audit.distinguishing import epsilon_promised
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
    >>> from tacit.audit.distinguishing import mu_of_pairs
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


# Share of the scores that choose a threshold; the others are judged by it.
_CHOOSING = 0.2
_CANDIDATES = 199  # thresholds that are compared


def findings_of(
    without: Array,
    with_it: Array,
    claim: Budget,
    level: float,
    beside: Array | None = None,
    promised: Callable[[float], Event] | None = None,
) -> tuple[Finding, ...]:
    """Return every lower bound that scores of the two data sets allow, each at ``level``.

    Scores are in pairs, which may share their noise. ``beside`` are numbers of both data sets that
    the record does not move, with the spread of the scores. ``promised`` returns the planned event
    at another epsilon.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.audit.distinguishing import findings_of
    >>> from tacit.privacy import Budget
    >>> scores = np.linspace(-2.0, 2.0, 1001)
    >>> [round(f.epsilon, 1) for f in findings_of(scores, scores, Budget(1.0, 1e-6), 0.05)]
    [0.0, 0.0, 0.0]
    """

    def plain(false_alarms: float, misses: float) -> float:
        return epsilon_of_errors(false_alarms, misses, claim.delta)

    free = Finding(
        "by the errors of a guesser",
        _judged(without, with_it, level, plain),
        "nothing of the mechanism",
    )
    whole = () if promised is None else (_of_promise(without, with_it, level, promised),)
    if claim.is_pure:
        return free, *whole

    def on_curve(false_alarms: float, misses: float) -> float:
        return _epsilon(mu_of_errors(false_alarms, misses), claim.delta)

    curve = Finding(
        "by the errors of a guesser, on a Gaussian curve",
        _judged(without, with_it, level, on_curve),
        "that the trade-off curve of the mechanism is a Gaussian one",
    )
    means = Finding(
        "by the difference of means of pairs",
        _epsilon(mu_of_pairs(without, with_it, level, beside), claim.delta),
        "that scores are Gaussian with the same spread in both worlds"
        + ("" if beside is None else " and in all directions"),
    )
    return free, curve, means, *whole


def _of_promise(
    without: Array, with_it: Array, level: float, promised: Callable[[float], Event]
) -> Finding:
    """Return the bound from error rates compared with the guarantee at every delta."""

    def at_most_promised(false_alarms: float, misses: float) -> float:
        return epsilon_promised(false_alarms, misses, promised)

    # Choose the threshold by the Gaussian bound, which is fast to compute and nearly the best.
    found = _judged(without, with_it, level, at_most_promised, by=mu_of_errors)
    return Finding(
        "by the errors of a guesser, on the promised curve",
        found,
        "that the trade-off curve is the one that is promised at some epsilon",
    )


def _epsilon(mu: float, delta: float) -> float:
    if math.isinf(mu):
        return math.inf
    return gaussian_epsilon(mu, delta) if mu > 0.0 else 0.0


def _judged(
    without: Array,
    with_it: Array,
    level: float,
    bound: Callable[[float, float], float],
    by: Callable[[float, float], float] | None = None,
) -> float:
    """Return the bound of a guesser whose threshold was chosen by other fits than it is judged by.

    Each of the two error rates is below its limit except with probability ``level`` / 2. The
    threshold has the greatest bound, or the greatest ``by`` if that is given.
    """
    chosen, judged = zip(_split(without), _split(with_it), strict=True)

    def errors(threshold: float, scores: tuple[Array, Array]) -> tuple[int, int]:
        return int(np.sum(scores[0] > threshold)), int(np.sum(scores[1] <= threshold))

    def limits(counts: tuple[int, int], of: tuple[int, int]) -> tuple[float, float]:
        one, other = (at_most(e, n, level / 2) for e, n in zip(counts, of, strict=True))
        return one, other

    tried, n = (len(chosen[0]), len(chosen[1])), (len(judged[0]), len(judged[1]))

    def promise(threshold: float) -> float:
        # Compare confidence limits, not rates: a few fits in a tail are mostly chance.
        return (by or bound)(*limits(errors(threshold, chosen), tried))

    # The middle comes first: it is chosen if a strict level lets so few fits prove nothing.
    shares = 0.5 + np.linspace(0.0, 0.5, _CANDIDATES // 2 + 1)[:, None] * np.array([1.0, -1.0])
    threshold = max(map(float, np.quantile(np.concatenate(chosen), shares.ravel())), key=promise)
    return max(bound(*limits(errors(threshold, judged), n)), 0.0)


def _split(scores: Array) -> tuple[Array, Array]:
    at = math.ceil(_CHOOSING * len(scores))
    return scores[:at], scores[at:]


_MOST_EPSILON, _MOST_MU, _HALVINGS = 60.0, 40.0, 60  # ends of the bisections, and their steps


def epsilon_of_guesses(
    canaries: int, guesses: int, right: int, delta: float, level: float = 0.05
) -> float:
    """Return a lower bound on epsilon from the number of right guesses in one run.

    Each of ``canaries`` was in the data with probability 1/2; ``guesses`` of them, a number fixed
    in advance, were guessed at. With f(v) = P[Bin(guesses, e^eps / (1 + e^eps)) >= v] the
    probability of so many right guesses is at most

        f(v) + 2 canaries delta max over 1 <= i <= v of (f(v - i) - f(v)) / i

    (Steinke, Nasr and Jagielski 2023). The mechanism may be any.

    Examples
    --------
    >>> from tacit.audit.distinguishing import epsilon_of_guesses
    >>> round(epsilon_of_guesses(100, 100, 75, 0.0), 4)
    0.7022
    """
    from scipy.stats import binom

    def chance(epsilon: float) -> float:
        below = np.arange(right + 1)
        tail = binom.sf(right - below - 1, guesses, float(expit(epsilon)))  # f(v - i)
        more = (tail[1:] - tail[0]) / below[1:] if right else np.zeros(1)
        return float(tail[0] + 2 * canaries * delta * max(more.max(), 0.0))

    low, high = 0.0, _MOST_EPSILON
    if chance(low) > level:
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) <= level else (low, middle)
    return low


def gaussian_epsilon_of_guesses(
    canaries: int, guesses: int, right: int, delta: float, level: float = 0.05
) -> float:
    """Return a tighter lower bound on epsilon for a mechanism with a Gaussian trade-off curve.

    (Mahloujifar, Melis and Chaudhuri 2024.) The right guesses refute curves up to some mu; the
    result is its epsilon at ``delta``.

    Examples
    --------
    >>> from tacit.audit.distinguishing import gaussian_epsilon_of_guesses
    >>> round(gaussian_epsilon_of_guesses(1000, 1000, 750, 1e-5), 3)
    1.819
    """
    low, high = 0.0, _MOST_MU
    if not _refutes(low, canaries, guesses, right, level):
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        refuted = _refutes(middle, canaries, guesses, right, level)
        low, high = (middle, high) if refuted else (low, middle)
    return gaussian_epsilon(low, delta) if low else 0.0


def _refutes(mu: float, canaries: int, guesses: int, right: int, level: float) -> bool:
    """Return whether a mu-Gaussian curve makes so many right guesses too unlikely."""
    hits, misses = level * right / canaries, level * (guesses - right) / canaries
    for i in range(right - 1, -1, -1):
        more = max(misses, float(ndtr(ndtri(hits) - mu))) if hits < 1.0 else 1.0
        hits = min(1.0, hits + i / (guesses - i) * (more - misses))
        misses = more
    return hits + misses > guesses / canaries
