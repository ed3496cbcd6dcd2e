"""Compare many fits of two neighbouring data sets by a score that distinguishes them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tacit.audit.finding import Finding
from tacit.audit.limits import (
    at_most,
    epsilon_of_errors,
    epsilon_promised,
    mu_of_errors,
    mu_of_pairs,
)
from tacit.privacy import Budget, Event
from tacit.privacy.gaussian_profile import gaussian_epsilon

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
    >>> from tacit.audit.two_worlds import findings_of
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
