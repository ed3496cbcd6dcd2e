"""Define the interface of aggregators: their queries on the votes, and their noise."""

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
from tacit.queries import Facts, Held, Query, Session, Slot, composed
from tacit.queries.votes import Votes
from tacit.queries.votes_cost import Table

# One class number per query, or UNANSWERED.
Answers = npt.NDArray[np.int64]
UNANSWERED = -1
MOST_CLASSES = 65_535


@dataclass(frozen=True)
class Aggregator(ABC):
    """Turn the votes of teachers into answers that may be released.

    A subclass lists its `tacit.queries` on the votes; the cost follows from them.
    """

    # The name in a plan, and a description in a sentence.
    name: ClassVar[str]
    reason: ClassVar[str]
    # When to use it and what it costs, for the table in docs/pate.md.
    use: ClassVar[str]
    cost: ClassVar[str]
    # The section of docs/proofs that proves its cost.
    proof: ClassVar[str]
    # Whether it can promise delta = 0.
    is_pure: ClassVar[bool] = False
    # The fields that set the noise: None until a plan fixes them.
    noise: ClassVar[tuple[str, ...]] = ("noise_std",)
    most_classes: ClassVar[int] = MOST_CLASSES
    # Whether it is considered if no aggregator is named.
    by_default: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in self.noise:
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name))

    @property
    def settings(self) -> dict[str, float]:
        """Return its noise and the other parameters."""
        return {name: self.decided(name) for name in self.noise}

    def decided(self, name: str) -> float:
        """Return a parameter that a plan has fixed."""
        value: float | None = getattr(self, name)
        if value is None:
            raise ValueError(f"{name} is not decided yet; call planned(budget, n_queries) first.")
        return value

    def undecided(self) -> Self:
        """Return a copy without its noise."""
        return replace(self, **dict.fromkeys(self.noise))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return aggregators for the conformance tests, without their noise."""
        return (cls(),)

    def planned(self, budget: Budget, n_queries: int) -> Self:
        """Return a copy with its noise fixed: as given, or the least within the budget."""
        given = {getattr(self, name) for name in self.noise}
        if None not in given:
            return self
        if given != {None}:
            raise ValueError(f"pass all of {', '.join(self.noise)}, or none of them.")
        if budget.is_pure and not self.is_pure:
            raise ValueError(
                f"{type(self).__name__} needs a delta above 0; pass one, such as delta=1e-6, or "
                "an aggregator of pure noise, such as LNMax()."
            )
        return replace(self, **self.least_noise(budget, n_queries))

    @abstractmethod
    def least_noise(self, budget: Budget, n_queries: int) -> dict[str, float]:
        """Return the least noise within the budget, by the name of its field."""

    @abstractmethod
    def queries(self, votes: Votes) -> Mapping[str, Query[Any]]:
        """Return its queries on the votes, by slot, once its noise is fixed."""

    def slots(self, votes: Votes, facts: Facts) -> dict[str, Slot]:
        """Return the slots of a plan: each of its queries, once."""
        return {name: Slot(query.event(facts)) for name, query in self.queries(votes).items()}

    def event(self, n_queries: int, relation: Relation) -> Event:
        """Return its event, once its noise is fixed."""
        # The cost does not depend on the numbers of teachers and classes.
        return composed(self.slots(Votes(n_queries, 1, 2), facts_of(relation)))

    def answers(self, session: Session, votes: Votes, held: Held) -> Answers:
        """Ask for the answer to each query, and for nothing else of the votes."""
        ((slot, query),) = self.queries(votes).items()
        answers: Answers = session.ask(query, slot, of=held)
        return answers

    @abstractmethod
    def right(self, consensus: float, n_teachers: int) -> float:
        """Return the probability that a query is answered by the majority class.

        ``consensus`` is the share of teachers who agree; all others agree on one other class.
        """

    def cost_table(self, votes: Votes, order: float) -> Table | None:
        """Return how the data-dependent cost is computed at an order, if that is proved."""
        return None
