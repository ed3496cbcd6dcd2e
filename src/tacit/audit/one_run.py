"""Derive bounds from one fit into which each of many canaries went by a coin toss."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtr, ndtri

from tacit.privacy.gaussian_profile import gaussian_epsilon

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
    >>> from tacit.audit import epsilon_of_guesses
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
    >>> from tacit.audit import gaussian_epsilon_of_guesses
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
