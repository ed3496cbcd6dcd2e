"""Count records, classes, and the values that enough records have."""

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
from tacit.records.exact.lattice import LatticeBlock, exact_totals
from tacit.records.grouped import MOST_COUNTED
from tacit.records.reweighted import class_codes


@dataclass(frozen=True)
class Count:
    """The number of records, or the sum of their weights, each at most 1.

    If all records of a person are used, at most `MOST_COUNTED` of them are counted.

    Parameters
    ----------
    norm
        The norm of the sensitivity; for a single number all norms agree.
    """

    norm: Norm = Norm.L2

    @classmethod
    def tried(cls) -> tuple[Count, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return cls(), cls(Norm.L1)

    def applies(self, facts: Facts) -> bool:
        """Return whether the count can change; under REPLACE it cannot."""
        return facts.relation is not Relation.REPLACE

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1, or the number of counted records per person. A replacement counts as one."""
        most = float(MOST_COUNTED) if facts.sums_by_person else 1.0
        return Sensitivity(most, self.norm, "noisy_gradient.md#4-the-count")

    def total(self, records: Private, facts: Facts) -> float:
        """Return the number. Private."""
        return float(total_of(records, self, facts))

    def held(self, records: Private, facts: Facts) -> float:
        """Return the number. Private."""
        return _count(records, facts)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the function that adds up weights of at most 1."""
        return (exact_totals,)


def _count(records: Any, facts: Facts) -> float:
    if facts.sums_by_person:
        return float(records.counted())
    if records.bounds.max_weight is None:
        return float(records.count())
    return float(exact_totals(records, lambda block: block.weighed(np.ones(block.n_rows)), 1.0))


@dataclass(frozen=True)
class ClassCounts:
    """The number of records of each class, or the sum of their weights.

    A record is in one count, with a weight of at most 1. A replaced record may change its class.

    Parameters
    ----------
    norm
        L2 for Gaussian noise, L1 for Laplace noise.
    """

    norm: Norm = Norm.L2

    @classmethod
    def tried(cls) -> tuple[ClassCounts, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return cls(), cls(Norm.L1)

    def applies(self, facts: Facts) -> bool:
        """Return whether there are classes."""
        return facts.bounds.n_classes is not None

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1; under REPLACE 2 in L1 and sqrt(2) in L2."""
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
        """Return the functions that add up weights of at most 1 and assign classes."""
        return exact_totals, class_codes


# One list per column, with one value per record: None for a missing value.
Columns = Sequence[Sequence[str | None]]
Counts = dict[tuple[int, str], float]


@dataclass(frozen=True)
class FrequentValues:
    """The values whose noisy count exceeds a threshold, with their noisy counts.

    The query is asked of columns of values, not of a `RecordSource`. A record has at most one value
    per column, and is thus in ``n_columns`` counts. The answer is a dictionary by column and value.

    Proof: docs/proofs/preprocessing.md, section 2.

    Parameters
    ----------
    n_columns
        The number of columns.
    noise_multiplier
        The noise multiplier of the Gaussian noise on all counts together.
    leak
        The probability with which a value of a single record may appear.

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
        """Return the instances that are tried on `neighbours`."""
        # The leak is so large that values of single records do appear.
        return cls(1, 2.0, 0.3), cls(3, 2.0, 0.3)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Columns, Columns]]:
        """Yield columns of neighbours that differ as much as possible."""
        common = [None, "b", *["a"] * 50, *["c"] * 30]
        for one in ("a", "new", None):
            other = [*common] if facts.relation.adds_or_removes else [*common, "c"]
            yield [other] * self.n_columns, [[*common, one]] * self.n_columns

    def event(self, facts: Facts) -> Event:
        """Return the cost of asking: Gaussian noise, and a leak with small probability."""
        if facts.sampling_rate is not None:
            raise ValueError("frequent values cannot be asked of a Poisson sample.")
        return frequent_event(self.noise_multiplier, self.leak, facts.relation)

    def count_std(self, facts: Facts) -> float:
        """Return the standard deviation of the noise on a count."""
        return count_std(self.noise_multiplier, self.n_columns, facts.relation)

    def threshold(self, facts: Facts) -> float:
        """Return the threshold that a noisy count must exceed."""
        return threshold(self.noise_multiplier, self.n_columns, self.leak, facts.relation)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Counts]:
        """Return the frequent values."""
        if len(records) != self.n_columns:
            raise ValueError(f"there are {len(records)} columns, and {self.n_columns} are counted.")
        counts, z, relation = value_counts(records), self.noise_multiplier, facts.relation
        return frequent(counts, self.n_columns, z, self.leak, relation, source)


def value_counts(columns: Columns) -> dict[tuple[int, str], int]:
    """Return the number of records with each value, by the index of its column. Private.

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
