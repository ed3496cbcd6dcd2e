"""One private question: what is computed, how far one record moves it, which noise it gets.

A `Statistic` computes a total over records and states its sensitivity, with the name of the proof.
A `Query` joins a statistic with noise; what asking costs, its event, follows from the two. Nothing
here holds a record: queries are made from public facts, before records are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.noise import Norm, Release, Source
from tacit.privacy import Event, Relation
from tacit.records import Bounds

Array = npt.NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class Facts:
    """All that is public of the records a query is asked of.

    Parameters
    ----------
    bounds
        What is declared about every record, and enforced.
    n_features
        How many columns a row has.
    relation
        Which data sets are neighbours. Who is protected, a record or a person, is part of it:
        a sensitivity follows from the relation, never from the type of the records.
    sums_by_person
        Whether all of a person's records are used, and what they add up to is clipped. By default
        one record of each person is.
    sampling_rate
        The rate of a Poisson sample that the question is asked of; None for all records.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts
    >>> from tacit.records import Bounds
    >>> Facts(Bounds(row_norm=2.0), 3, Relation.ADD_REMOVE).n_coordinates
    3
    """

    bounds: Bounds
    n_features: int
    relation: Relation
    sums_by_person: bool = False
    sampling_rate: float | None = None

    def __post_init__(self) -> None:
        if self.sums_by_person and not self.relation.by_person:
            raise ValueError("sums_by_person goes with Relation.ADD_REMOVE_PERSON alone.")

    @property
    def n_coordinates(self) -> int:
        """How many numbers a row has with its intercept."""
        return self.n_features + (1 if self.bounds.intercept else 0)

    @property
    def n_changed(self) -> float:
        """How many records differ between neighbours: 2 where one takes the place of another."""
        return 2.0 if self.relation is Relation.REPLACE else 1.0


def plain_facts(relation: Relation) -> Facts:
    """Return the facts of what is no `RecordSource`: each question clips what it reads itself.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import plain_facts
    >>> plain_facts(Relation.REPLACE).n_changed
    2.0
    """
    return Facts(Bounds(), 1, relation)


@dataclass(frozen=True)
class Sensitivity:
    """How far one privacy unit can move a total.

    Parameters
    ----------
    value
        The distance, above 0.
    norm
        The norm in which it is measured.
    proof
        The page and section that prove it, below ``docs/proofs``.
    """

    value: float
    norm: Norm
    proof: str


@dataclass(frozen=True, eq=False)
class Held:
    """A total that was computed once and is asked of several times; nobody else can read it.

    See `Session.hold`. A session refuses what another one holds: a total of all records, asked of
    at the price of a sample, would cost too little. A statistic refuses what is held for another
    one: a matrix would be released with the noise of a count.
    """

    _total: Any
    _statistic: CanBeHeld
    _session: object = None

    def __repr__(self) -> str:
        return "Held(...)"


# What a total is computed of: records, or a total that is held. A query that is asked of something
# else than a `RecordSource` (votes, a batch, a column) says so in its own `total`.
Private = Any


class Statistic(Protocol):
    """A total over records: words and numbers, no records and no functions that hold some.

    A class with parameters says which of it conformance tests try: ``tried()``, or
    ``tried_on(objectives)`` if it needs a loss. One that cannot be asked of any records, or that
    need not change between neighbours, has a method ``applies(facts)``; one with an ``objective``
    is tried on records of its bounds. One of something else than a `RecordSource` (votes, scores,
    batches) has ``neighbours(facts)``, which yields pairs of what its total is computed of.
    """

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return how far one privacy unit moves the total, from public facts alone."""

    def total(self, records: Private, facts: Facts) -> float | Array:
        """Return the total over records, or of what is held. Private."""

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that bound what one privacy unit adds: part of what is trusted."""


class CanBeHeld(Protocol):
    """A statistic whose total is costly, and that other statistics can be computed of."""

    def held(self, records: Private, facts: Facts) -> Any:
        """Return what is kept for them. Private."""


class Query(Protocol[T]):
    """A private question that can be asked once its price is charged."""

    def event(self, facts: Facts) -> Event:
        """Return what asking costs; it follows from the statistic and the noise."""

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[T]:
        """Return the noisy answer. Called by a `Session` alone."""


def total_of(records: Private, statistic: CanBeHeld, facts: Facts) -> Any:
    """Return what is held for a statistic, or compute it from records: for statistics alone."""
    if not isinstance(records, Held):
        return statistic.held(records, facts)
    if _any_norm(records._statistic) != _any_norm(statistic):
        raise RuntimeError(f"{statistic} was asked of what is held for {records._statistic}.")
    return records._total


def _any_norm(statistic: Any) -> Any:
    """Return a statistic but for the norm of its sensitivity: its total is the same in each."""
    return replace(statistic, norm=Norm.L2) if hasattr(statistic, "norm") else statistic
