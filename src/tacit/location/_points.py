"""Rows as points around a public centre."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.public_facts import center_of, row_norm_of
from tacit.records import RecordSource, UnreadRecords, UnreadTable
from tacit.records.people_in_source import PeopleInSource
from tacit.records.unread import has_people, read_people

Array = npt.NDArray[np.float64]


def ball_of(declared: Any) -> float:
    """Return the radius of the ball that rows are moved into."""
    meaning = "records farther from center are moved that near, and noise is proportional to it"
    return row_norm_of(declared, meaning)


def centre_of(declared: Any, table: UnreadTable) -> Array:
    """Return the point from which a table's rows are measured."""
    centre = center_of(declared, table.n_columns)
    if isinstance(table, UnreadRecords) and centre.any():
        raise ValueError(
            "a record source clips its rows around 0, wherever center is; subtract center from "
            "the rows in the source, and pass None for it."
        )
    return centre


def dense_rows(table: UnreadTable) -> Array:
    """Read a table as float64; of each person one record, where it is known whose they are."""
    rows, _ = table.read()
    if has_people(table):
        rows = rows[read_people(table).one_each()]
    return np.asarray(rows, dtype=np.float64)


def one_of_each(records: RecordSource, table: UnreadTable) -> RecordSource:
    """Return a source's records; of each person one, where it is known whose they are."""
    if has_people(table):
        return PeopleInSource(records, table.identifiers()).one_each()
    return records
