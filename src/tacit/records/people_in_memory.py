"""Hold records of people in memory, with each person's records in one block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tacit.disk_arrays import is_on_disk, own, rows_at
from tacit.records.block import Block, of_a_class
from tacit.records.bounds import Bounds
from tacit.records.memory import MemoryRecords
from tacit.records.people import People
from tacit.records.person_sums import MOST_COUNTED
from tacit.records.sampling import Sample, Words, poisson_choice


class PeopleInMemory(MemoryRecords):
    """Rows and labels in memory, sorted by person; a block knows the first row of each person.

    Parameters
    ----------
    rows, labels, bounds, weights
        As in `MemoryRecords`.
    people
        The person of each row; rows without a person are dropped.

    Notes
    -----
    **Guarantee**. All rows of a person are in one block, and a block has no more people than an
    ordinary block has rows: its edges move to the start of the next person. Rows on disk are sorted
    on disk.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds
    >>> from tacit.records.people import people_of
    >>> from tacit.records.people_in_memory import PeopleInMemory
    >>> rows = np.array([[1.0], [2.0], [3.0]])
    >>> records = PeopleInMemory(rows, None, Bounds(3.0), people_of(["ann", "bob", "ann"]))
    >>> records.rows.ravel(), records.one_each().count()
    (array([1., 3., 2.]), 2)
    """

    def __init__(
        self,
        rows: Any,
        labels: Any | None,
        bounds: Bounds,
        people: People,
        weights: Any | None = None,
    ) -> None:
        if len(people) != rows.shape[0]:
            raise ValueError(
                "rows and identifiers are of different lengths; pass one identifier for each row."
            )
        labels = None if labels is None else own(np.asarray(labels))
        counting = of_a_class(labels, bounds)
        if counting is not None:
            people, at = people.where(counting), np.flatnonzero(counting)
            rows = rows_at(rows, at) if is_on_disk(rows) else rows[at]
            labels, weights = (
                None if values is None else np.asarray(values)[at] for values in (labels, weights)
            )
        order = people.order()
        if not np.array_equal(order, np.arange(len(people))):
            if is_on_disk(rows):
                rows = rows_at(rows, order)
            else:
                rows = rows.tocsr()[order] if hasattr(rows, "tocsr") else rows[order]
            labels, weights = (
                None if values is None else np.asarray(values)[order]
                for values in (labels, weights)
            )
        super().__init__(rows, labels, bounds, weights)
        self._people = People(people.owner[order], people.words)
        self._sizes = people.sizes()
        self._starts = np.cumsum(self._sizes) - self._sizes

    def counted(self) -> int:
        """Return the number of records, counting at most `MOST_COUNTED` of each person. Private."""
        return int(np.minimum(self._sizes, MOST_COUNTED).sum())

    def everybody(self) -> PeopleInMemory:
        """Return all records."""
        return self

    def one_each(self) -> MemoryRecords:
        """Return one record of each person, chosen by the person's word."""
        return self.where(self._people.one_each())

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each person, with all their records, independently with probability ``rate``."""
        kept = np.repeat(poisson_choice(rate, len(self._sizes), words), self._sizes)
        labels, weights = (
            None if values is None else values[kept] for values in (self._labels, self._weights)
        )
        people = self._people.where(kept)
        return Sample(PeopleInMemory(self.rows[kept], labels, self.bounds, people, weights), rate)

    def _block(self, start: int, stop: int) -> Block:
        first, last = np.searchsorted(self._starts, [start, stop])
        begin, end = np.append(self._starts, self.count())[[first, last]]
        block = super()._block(begin, end)
        return replace(block, people=self._starts[first:last] - begin)
