"""Which values of columns enough records have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tacit.noise import Release, Source
from tacit.noise.frequent import count_std, frequent, frequent_event, threshold
from tacit.privacy import Event
from tacit.queries.base import Facts, Private

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
    >>> from tacit.queries import Facts, FrequentValues, Session, Slot
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
    >>> from tacit.queries.frequent_values import value_counts
    >>> value_counts([["a", "b", "a", None]])
    {(0, 'a'): 2, (0, 'b'): 1}
    """
    return {
        (place, value): n
        for place, column in enumerate(columns)
        for value, n in Counter(column).items()
        if value is not None
    }
