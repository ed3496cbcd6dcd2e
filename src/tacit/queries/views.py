"""Other views of the same records: one of each person, reweighted, a Poisson sample, or parts.

A view is public: words and numbers that follow from a plan and from answers. It says what it does
to the records, and what is then public of them; `Session.on` applies both together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tacit.noise import Source
from tacit.privacy import Relation
from tacit.queries.base import Facts, Private
from tacit.records.parts import new_key, parts_of
from tacit.records.people import people_of
from tacit.records.people_in_memory import PeopleInMemory
from tacit.records.people_in_source import PeopleInSource
from tacit.records.reweighted import ReweightedRecords, WeightFunction


class View(Protocol):
    """What turns records, and what is public of them, into others."""

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the records in this view, and their facts."""


@dataclass(frozen=True)
class OneRecordEach:
    """One record of each person, chosen by who they are; all records where they are nobody's."""

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return one record of each person."""
        if isinstance(records, PeopleInMemory | PeopleInSource):
            records = records.one_each()
        return records, replace(facts, sums_by_person=False)


@dataclass(frozen=True, eq=False)
class Reweighted:
    """The same records, each times a weight in [0, 1] that is a function of it alone."""

    weight: WeightFunction

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the records with the weights."""
        weighted = ReweightedRecords(records, self.weight)
        return weighted, replace(facts, bounds=self.weight.bounds(facts.bounds))


@dataclass(frozen=True)
class PoissonSample:
    """Each record, or person, independently with probability ``rate``.

    The records themselves say at which rate they were sampled, and that is what a question costs.
    """

    rate: float

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return a fresh sample."""
        sample = records.poisson_sample(self.rate, source.words)
        return sample.records, replace(facts, sampling_rate=sample.rate)


@dataclass(frozen=True, eq=False)
class DisjointParts:
    """Parts of a table of which no two share a record; `Session.parts` asks each by itself."""

    parts: tuple[Private, ...]

    def __repr__(self) -> str:
        return f"DisjointParts({len(self.parts)} parts)"


@dataclass(frozen=True)
class Split:
    """Disjoint parts of an `EncodedTable`; which part a record is in, no other record decides.

    Parameters
    ----------
    shares
        The share of the records that each part gets, about; they add up to 1.
    key
        Random bytes by which records are split, drawn without regard to them; None to draw some.
    """

    shares: tuple[float, ...]
    key: bytes | None = None

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the parts, read now."""
        rows, labels = records.read()
        key = new_key(source) if self.key is None else self.key
        part = parts_of(
            self.shares,
            key,
            facts.relation,
            rows,
            labels,
            people=people_of(records.identifiers()) if records.has_people else None,
            positions=records.places,
        )
        shares = enumerate(self.shares)
        return DisjointParts(tuple(records.part(part == i, share) for i, share in shares)), facts

    def sizes(self, n_records: int | None, relation: Relation) -> list[int | None]:
        """Return how many records each part has, where that follows from their positions alone."""
        if n_records is None or relation is not Relation.REPLACE or self.key is None:
            return [None] * len(self.shares)
        part = parts_of(self.shares, self.key, relation, np.empty((n_records, 0)))
        return [int(n) for n in np.bincount(part, minlength=len(self.shares))]


def check_unit(records: object, facts: Facts) -> None:
    """Refuse records that do not know their people where their sums are clipped, and the reverse.

    What is bounded for one says nothing about the other. Weighted records of people are of neither
    kind: one of each is weighted.
    """
    knows = isinstance(records, PeopleInMemory | PeopleInSource)
    beneath = records
    while isinstance(beneath, ReweightedRecords):
        beneath = beneath.records
    hides = beneath is not records and isinstance(beneath, PeopleInMemory | PeopleInSource)
    if facts.sums_by_person != knows or hides:
        raise ValueError(
            "a plan that adds up what each person has needs records grouped by person, and grouped "
            "records need such a plan; view them as OneRecordEach() otherwise."
        )
