"""Use one record of each person from a source that yields blocks."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tacit.records.people import n_identifiers, people_of
from tacit.records.source import RecordSource


@runtime_checkable
class Choosing(Protocol):
    """A source that can return some of its records, in its own order."""

    def chosen(self, kept: npt.NDArray[np.bool_]) -> RecordSource:
        """Return the marked records; one mark per record."""


class PeopleInSource:
    """A source, and an identifier for each of its records in the source's order.

    A person's records may be in several blocks, so only one of them can be used.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, ChunkedRecords
    >>> from tacit.records.people_in_source import PeopleInSource
    >>> records = ChunkedRecords(lambda: [(np.eye(2), None), (np.eye(2), None)], 2, Bounds())
    >>> PeopleInSource(records, ["ann", "bob", "ann", None]).one_each().count()
    2
    """

    def __init__(self, records: RecordSource, identifiers: Any) -> None:
        n_identifiers(identifiers)
        if not isinstance(records, Choosing):
            raise ValueError(
                "this record source gives sums over records and cannot return one record of "
                "each person; give it a method chosen(marks), pass the rows themselves with unit, "
                "or one record a person without."
            )
        self._records, self._choose, self._identifiers = records, records.chosen, identifiers

    def everybody(self) -> RecordSource:
        """Return all records."""
        return self._records

    def one_each(self) -> RecordSource:
        """Return one record of each person, chosen by the person's word."""
        people = people_of(self._identifiers)
        # Identifiers belong to the records as given, before records of other classes are dropped.
        counting = getattr(self._records, "counting", lambda: None)()
        if len(people) != (self._records.count() if counting is None else len(counting)):
            raise ValueError(
                "the records and unit are of different lengths; pass one identifier for each "
                "record, in the order in which the source gives them."
            )
        people = people if counting is None else people.where(counting)
        kept = np.zeros(len(people), dtype=bool)
        kept[people.one_each()] = True
        return self._choose(kept)
