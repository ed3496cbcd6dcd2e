"""Votes of a few teachers, all of them, with the exact law of the winner."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr

Array = npt.NDArray[np.float64]


def all_votes(n_teachers: int, n_classes: int) -> list[tuple[int, ...]]:
    """Return every way in which teachers can vote, as counts."""
    counts = itertools.product(range(n_teachers + 1), repeat=n_classes)
    return [c for c in counts if sum(c) == n_teachers]


def neighbours(votes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the counts after one teacher votes otherwise."""
    for i, j in itertools.permutations(range(len(votes)), 2):
        if votes[i]:
            moved = list(votes)
            moved[i] -= 1
            moved[j] += 1
            yield tuple(moved)


def winner_law(
    votes: tuple[int, ...], cdf: Callable[[Array], Array], density: Callable[[Array], Array]
) -> Array:
    """Return P(i wins) = integral of density(x - n_i) prod_(j != i) cdf(x - n_j)."""
    grid = np.linspace(min(votes) - 60.0, max(votes) + 60.0, 12_001)
    step = grid[1] - grid[0]
    counts = np.asarray(votes, dtype=np.float64)[:, None]
    below, at = cdf(grid - counts), density(grid - counts)
    each = [
        np.sum(at[i] * np.prod(np.delete(below, i, axis=0), axis=0)) * step
        for i in range(len(votes))
    ]
    return np.array(each) / np.sum(each)


def gaussian_winner(votes: tuple[int, ...], noise_std: float) -> Array:
    """Return the law of GNMax."""
    return winner_law(
        votes,
        lambda x: ndtr(x / noise_std),
        lambda x: np.exp(-0.5 * (x / noise_std) ** 2) / noise_std / np.sqrt(2 * np.pi),
    )


def laplace_winner(votes: tuple[int, ...], gamma: float) -> Array:
    """Return the law of LNMax."""

    def cdf(x: Array) -> Array:
        tail = 0.5 * np.exp(-gamma * np.abs(x))
        return np.where(x < 0, tail, 1 - tail)

    return winner_law(votes, cdf, lambda x: 0.5 * gamma * np.exp(-gamma * np.abs(x)))


def renyi(p: Array, q: Array, order: float) -> float:
    """Return D_order(p || q) of two laws on a few outcomes."""
    return float(logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1))


def delta_of_many(p: Array, q: Array, count: int, epsilon: float) -> float:
    """Return the exact delta of ``count`` independent draws, over all multisets of outcomes."""
    total = 0.0
    for draws in itertools.product(range(len(p)), repeat=count):
        index = list(draws)
        total += max(float(np.prod(p[index]) - np.exp(epsilon) * np.prod(q[index])), 0.0)
    return total
