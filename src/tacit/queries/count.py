"""Counts: of records, of classes, and of the values that enough records have."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.noise import Norm, Release, Source
from tacit.noise.bounded import round_up
from tacit.noise.stable_histogram import count_std, frequent, frequent_event, threshold
from tacit.privacy import Event, Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity, total_of
from tacit.records.exact.lattice import LatticeBlock
from tacit.records.exact.sums import exact_totals
from tacit.records.grouped import MOST_COUNTED
from tacit.records.reweighted import class_codes


@dataclass(frozen=True)
class Count:
    """The number of records, or what they weigh together, each at most 1.

    Of a person all of whose records are used at most `MOST_COUNTED` are counted.

    Parameters
    ----------
    norm
        In which its sensitivity is stated; of one number all are the same.
    """

    norm: Norm = Norm.L2

    @classmethod
    def tried(cls) -> tuple[Count, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return cls(), cls(Norm.L1)

    def applies(self, facts: Facts) -> bool:
        """Return whether it can change: it does not where a record takes another's place."""
        return facts.relation is not Relation.REPLACE

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1, or as many records of a person as count. Replacing a record counts as one."""
        most = float(MOST_COUNTED) if facts.sums_by_person else 1.0
        return Sensitivity(most, self.norm, "noisy_gradient.md#4-the-count")

    def total(self, records: Private, facts: Facts) -> float:
        """Return the number. Private."""
        return float(total_of(records, self, facts))

    def held(self, records: Private, facts: Facts) -> float:
        """Return the number. Private."""
        return _count(records, facts)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what adds up weights of at most 1."""
        return (exact_totals,)


def _count(records: Any, facts: Facts) -> float:
    if facts.sums_by_person:
        return float(records.counted())
    if records.bounds.max_weight is None:
        return float(records.count())
    return float(exact_totals(records, lambda block: block.weighed(np.ones(block.n_rows)), 1.0))


@dataclass(frozen=True)
class ClassCounts:
    """The number of records of each class, or what they weigh, one number a class.

    A record is in one count, with a weight of at most 1; one that is replaced may be in another
    after.

    Parameters
    ----------
    norm
        L2 for Gaussian noise, L1 for Laplace noise.
    """

    norm: Norm = Norm.L2

    @classmethod
    def tried(cls) -> tuple[ClassCounts, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return cls(), cls(Norm.L1)

    def applies(self, facts: Facts) -> bool:
        """Return whether there are classes."""
        return facts.bounds.n_classes is not None

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1; for a record that is replaced 2 in L1 and sqrt(2) in L2."""
        value = facts.n_changed
        if self.norm is Norm.L2:
            value = round_up(math.sqrt(value))
        return Sensitivity(value, self.norm, "weights.md#5-weights-of-classes")

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the counts. Private."""
        n_classes = records.bounds.n_classes or 0

        def of_block(block: LatticeBlock) -> Array:
            return block.weighed(np.eye(n_classes)[class_codes(block, n_classes)])

        return exact_totals(records, of_block, 1.0)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what adds up weights of at most 1, and what says which class a record is of."""
        return exact_totals, class_codes


# One list a column, in it one value a record: None where it has none.
Columns = Sequence[Sequence[str | None]]
Counts = dict[tuple[int, str], float]


@dataclass(frozen=True)
class FrequentValues:
    """The values whose noisy count exceeds a threshold, with their noisy counts.

    Asked of columns of values instead of a `RecordSource`: a record has one value a column at most,
    so that it is in ``n_columns`` counts. What is answered is a dictionary by column and value.

    Proof: docs/proofs/preprocessing.md, section 2.

    Parameters
    ----------
    n_columns
        How many columns there are.
    noise_multiplier
        Of the Gaussian noise on all counts together.
    leak
        The probability with which a value that one record has alone may appear.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts, Session, Slot
    >>> from tacit.queries.count import FrequentValues
    >>> from tacit.records import Bounds
    >>> facts = Facts(Bounds(), 1, Relation.ADD_REMOVE)
    >>> query = FrequentValues(1, noise_multiplier=4.0, leak=1e-7)
    >>> slots = {"towns": Slot(query.event(facts))}
    >>> towns = [["Oslo"] * 500 + ["Bergen"] * 300 + ["Utsira"]]
    >>> session = Session(towns, facts, query.event(facts), slots)
    >>> sorted(session.ask(query, "towns"))
    [(0, 'Bergen'), (0, 'Oslo')]
    """

    n_columns: int
    noise_multiplier: float
    leak: float

    @classmethod
    def tried(cls) -> tuple[FrequentValues, ...]:
        """Return the ones that are tried on `neighbours`."""
        # So large a leak that values of one record do appear.
        return cls(1, 2.0, 0.3), cls(3, 2.0, 0.3)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Columns, Columns]]:
        """Yield columns of neighbours, as far apart as there are."""
        common = [None, "b", *["a"] * 50, *["c"] * 30]
        for one in ("a", "new", None):
            other = [*common] if facts.relation.adds_or_removes else [*common, "c"]
            yield [other] * self.n_columns, [[*common, one]] * self.n_columns

    def event(self, facts: Facts) -> Event:
        """Return what asking costs: Gaussian noise, and a rare leak."""
        if facts.sampling_rate is not None:
            raise ValueError("frequent values are not asked of a Poisson sample.")
        return frequent_event(self.noise_multiplier, self.leak, facts.relation)

    def count_std(self, facts: Facts) -> float:
        """Return the standard deviation of the noise on a count."""
        return count_std(self.noise_multiplier, self.n_columns, facts.relation)

    def threshold(self, facts: Facts) -> float:
        """Return what a noisy count must exceed."""
        return threshold(self.noise_multiplier, self.n_columns, self.leak, facts.relation)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Counts]:
        """Return the frequent values."""
        if len(records) != self.n_columns:
            raise ValueError(f"there are {len(records)} columns, and {self.n_columns} are counted.")
        counts, z, relation = value_counts(records), self.noise_multiplier, facts.relation
        return frequent(counts, self.n_columns, z, self.leak, relation, source)


def value_counts(columns: Columns) -> dict[tuple[int, str], int]:
    """Return how many records have each value, by the place of its column. Private.

    Examples
    --------
    >>> from tacit.queries.count import value_counts
    >>> value_counts([["a", "b", "a", None]])
    {(0, 'a'): 2, (0, 'b'): 1}
    """
    return {
        (place, value): n
        for place, column in enumerate(columns)
        for value, n in Counter(column).items()
        if value is not None
    }
