"""What every way of adding up votes can do."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.noise import Release, Source
from tacit.privacy import Budget, Event, Relation

Array = npt.NDArray[np.float64]
# One class for each query, by its number, or UNANSWERED.
Answers = npt.NDArray[np.int64]
UNANSWERED = -1

Self = TypeVar("Self")


class Aggregator(Protocol):
    """Turns the votes of teachers into answers that may leave, and says what they cost."""

    @property
    def name(self) -> str:
        """What it is called in a plan."""

    @property
    def reason(self) -> str:
        """What it does, in a sentence."""

    @property
    def settings(self) -> dict[str, float]:
        """Its noise and whatever else was decided."""

    def planned(self, budget: Budget, n_queries: int) -> Any:
        """Return the same with its noise decided: as given, or the least within the budget."""

    def event(self, n_queries: int, relation: Relation) -> Event:
        """Return what it costs, once its noise is decided."""

    def answers(self, votes: Array, relation: Relation, source: Source | None) -> Release[Answers]:
        """Return the answer to each query, and nothing else of the votes (queries x classes)."""

    def right(self, consensus: float, n_teachers: int) -> float:
        """Return with which probability a query is answered by what most teachers say.

        ``consensus`` is the share of teachers who agree; all others agree on something else.
        """


def decided(value: float | None, name: str) -> float:
    """Return a number that a plan has decided."""
    if value is None:
        raise ValueError(f"{name} is not decided yet; call planned(budget, n_queries) first.")
    return value


def noiseless(votes: Array) -> Answers:
    """Return what most teachers say, for an infinite budget; the first of several."""
    winners: Answers = np.argmax(votes, axis=1).astype(np.int64)
    return winners
