"""Define private queries: a statistic, its sensitivity and its noise.

A `Statistic` computes a total over records and states its sensitivity, with the name of the proof.
A `Query` joins a statistic with noise; its event, the cost of asking, follows from the two. Nothing
in this module holds a record: queries are made from public facts, before records are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from tacit.arrays import Array as Array
from tacit.noise import Norm, Release, Source
from tacit.privacy import Event, Relation
from tacit.records import Bounds

T = TypeVar("T")


@dataclass(frozen=True)
class Facts:
    """The public facts of the records that a query is asked of.

    Parameters
    ----------
    bounds
        The declared bounds of every record, which are enforced.
    n_features
        The number of columns of a row.
    relation
        The relation between neighbours. It also says whether a record or a person is protected: a
        sensitivity follows from the relation, never from the type of the records.
    sums_by_person
        Whether all records of a person are used and their sum is clipped. By default one record
        per person is used.
    sampling_rate
        The rate of the Poisson sample that the query is asked of; None for all records.

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
            raise ValueError("sums_by_person needs Relation.ADD_REMOVE_PERSON; pass that relation.")

    @property
    def n_coordinates(self) -> int:
        """The length of a row with its intercept."""
        return self.n_features + (1 if self.bounds.intercept else 0)

    @property
    def n_changed(self) -> float:
        """The number of records that differ between neighbours: 2 under REPLACE, else 1."""
        return 2.0 if self.relation is Relation.REPLACE else 1.0


def plain_facts(relation: Relation) -> Facts:
    """Return the facts for data other than a `RecordSource`; each query clips its own input.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries.base import plain_facts
    >>> plain_facts(Relation.REPLACE).n_changed
    2.0
    """
    return Facts(Bounds(), 1, relation)


@dataclass(frozen=True)
class Sensitivity:
    """The most by which one privacy unit can move a total.

    Parameters
    ----------
    value
        The bound, above 0.
    norm
        The norm of the bound.
    proof
        The page and section that prove it, below ``docs/proofs``.
    """

    value: float
    norm: Norm
    proof: str


@dataclass(frozen=True, eq=False)
class Held:
    """A total that was computed once, for several queries; nothing but its session can read it.

    See `Session.hold`. A session refuses what another one holds: a total of all records, asked of
    at the price of a sample, would cost too little. A statistic refuses what is held for another
    one: a matrix would be released with the noise of a count.
    """

    _total: Any
    _statistic: CanBeHeld
    _session: object = None

    def __repr__(self) -> str:
        return "Held(...)"


# The argument of `total`: records, or a held total. A query of other data (votes, a batch, a
# column) documents its argument in its own `total`.
Private = Any


class Statistic(Protocol):
    """A total over records; it holds words and numbers, but no records and no closures over them.

    A class with parameters names the instances that conformance tests try: ``tried()``, or
    ``tried_on(objectives)`` if it needs a loss. A statistic that does not apply to all records, or
    that cannot change between neighbours, has a method ``applies(facts)``. One with an
    ``objective`` is tried on records within its bounds. One over other data than a `RecordSource`
    (votes, scores, batches) has ``neighbours(facts)``, which yields pairs of such data.
    """

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return the most by which one privacy unit moves the total, from public facts alone."""

    def total(self, records: Private, facts: Facts) -> float | Array:
        """Return the total over records, or from a held total. Private."""

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that bound one privacy unit's part; they are trusted code."""


class CanBeHeld(Protocol):
    """A statistic with a costly total from which other statistics can be computed."""

    def held(self, records: Private, facts: Facts) -> Any:
        """Return the value that the session holds. Private."""


class Query(Protocol[T]):
    """A private question; a session asks it after its price was charged."""

    def event(self, facts: Facts) -> Event:
        """Return the cost of asking, which follows from the statistic and the noise."""

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
