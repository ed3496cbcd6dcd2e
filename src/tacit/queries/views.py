"""Other views of the same records: one of each person, reweighted, or a Poisson sample.

A view is public: words and numbers that follow from a plan and from answers. It says what it does
to the records, and what is then public of them; `Session.on` applies both together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from tacit.noise import Source
from tacit.queries.base import Facts, Private
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
