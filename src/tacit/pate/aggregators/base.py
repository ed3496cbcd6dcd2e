"""What every way of adding up votes says of itself: which questions it asks, and its noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.pate.teachers import facts_of
from tacit.privacy import Budget, Event, Relation
from tacit.queries import Facts, Held, Query, Session, Slot, Votes, composed
from tacit.queries.votes_cost import Table

# One class for each query, by its number, or UNANSWERED.
Answers = npt.NDArray[np.int64]
UNANSWERED = -1
MOST_CLASSES = 65_535


@dataclass(frozen=True)
class Aggregator(ABC):
    """Turns the votes of teachers into answers that may leave.

    A class says which `tacit.queries` it asks of the votes; what that costs follows from them.
    """

    # What it is called in a plan, and what it does, in a sentence.
    name: ClassVar[str]
    reason: ClassVar[str]
    # The fields that say how much noise there is: None until a plan decides them.
    noise: ClassVar[tuple[str, ...]] = ("noise_std",)
    most_classes: ClassVar[int] = MOST_CLASSES
    # Whether it is considered where nobody names one.
    by_default: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in self.noise:
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name))

    @property
    def settings(self) -> dict[str, float]:
        """Return its noise, and whatever else was decided."""
        return {name: self.decided(name) for name in self.noise}

    def decided(self, name: str) -> float:
        """Return a number that a plan has decided."""
        value: float | None = getattr(self, name)
        if value is None:
            raise ValueError(f"{name} is not decided yet; call planned(budget, n_queries) first.")
        return value

    def undecided(self) -> Self:
        """Return the same without its noise."""
        return replace(self, **dict.fromkeys(self.noise))

    @abstractmethod
    def planned(self, budget: Budget, n_queries: int) -> Self:
        """Return the same with its noise decided: as given, or the least within the budget."""

    @abstractmethod
    def queries(self, votes: Votes) -> Mapping[str, Query[Any]]:
        """Return what it asks of the votes, by slot, once its noise is decided."""

    def slots(self, votes: Votes, facts: Facts) -> dict[str, Slot]:
        """Return what a plan pays for: each of its questions, once."""
        return {name: Slot(query.event(facts)) for name, query in self.queries(votes).items()}

    def event(self, n_queries: int, relation: Relation) -> Event:
        """Return what it costs, once its noise is decided."""
        # How many teachers and classes there are does not matter to the cost.
        return composed(self.slots(Votes(n_queries, 1, 2), facts_of(relation)))

    def answers(self, session: Session, votes: Votes, held: Held) -> Answers:
        """Ask for the answer to each query, and for nothing else of the votes."""
        ((slot, query),) = self.queries(votes).items()
        answers: Answers = session.ask(query, slot, of=held)
        return answers

    @abstractmethod
    def right(self, consensus: float, n_teachers: int) -> float:
        """Return with which probability a query is answered by what most teachers say.

        ``consensus`` is the share of teachers who agree; all others agree on something else.
        """

    def cost_table(self, votes: Votes, order: float) -> Table | None:
        """Return how the votes' own cost is computed at an order, if that is proved."""
        return None
