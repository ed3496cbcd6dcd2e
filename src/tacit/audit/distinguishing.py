"""Tell neighbouring data sets apart by many fits of each, or by canaries in one fit."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr, ndtri

from tacit.audit.confidence_bounds import (
    at_most,
    epsilon_of_errors,
    epsilon_promised,
    mu_of_errors,
    mu_of_pairs,
)
from tacit.audit.results import Finding
from tacit.privacy import Budget, Event
from tacit.privacy.accounting.gaussian_profile import gaussian_epsilon

Array = npt.NDArray[np.float64]

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
