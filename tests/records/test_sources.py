"""Every record source of tacit, through the checks that any must pass."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tacit.records
from tacit.records import Bounds, ChunkedRecords, MemoryRecords, RecordSource
from tacit.records.people_in_memory import PeopleInMemory
from tacit.testing import check_record_source


def memory(kind: Any) -> Any:
    def make(rows: Any, labels: Any, bounds: Bounds) -> RecordSource:
        plain = isinstance(rows, np.ndarray) and rows.dtype == np.float64
        return MemoryRecords(kind(rows) if plain else rows, labels, bounds)

    return make


def cut(rows: Any, labels: Any, sizes: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of these sizes, again and again, until there are no more rows."""
    start, turn = 0, 0
    while start < rows.shape[0]:
        stop = start + sizes[turn % len(sizes)]
        yield rows[start:stop], None if labels is None else labels[start:stop]
        start, turn = stop, turn + 1


def chunked(kind: Any, *sizes: int) -> Any:
    def make(rows: Any, labels: Any, bounds: Bounds) -> RecordSource:
        plain = isinstance(rows, np.ndarray) and rows.dtype == np.float64
        table = kind(rows) if plain else rows
        return ChunkedRecords(lambda: cut(table, labels, sizes), rows.shape[1], bounds)

    return make


def single(rows: Any) -> Any:
    return rows.astype(np.float32)


# class, way of making it
SOURCES: dict[str, tuple[type[Any], Any]] = {
    "memory": (MemoryRecords, MemoryRecords),
    "memory-float32": (MemoryRecords, memory(single)),
    "memory-columns": (MemoryRecords, memory(np.asfortranarray)),
    "memory-sparse": (MemoryRecords, memory(scipy.sparse.csr_array)),
    "chunked-whole": (ChunkedRecords, chunked(np.asarray, 10_000)),
    "chunked-empty-blocks": (ChunkedRecords, chunked(np.asarray, 0, 100, 0, 0, 33)),
    "chunked-float32": (ChunkedRecords, chunked(single, 128)),
    "chunked-columns": (ChunkedRecords, chunked(np.asfortranarray, 70, 80)),
    "chunked-sparse": (ChunkedRecords, chunked(scipy.sparse.csc_array, 0, 90)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_sound(name: str) -> None:
    check_record_source(SOURCES[name][1])


def implementations() -> set[type[Any]]:
    """Every class of tacit.records that has what a RecordSource has, found and not listed."""
    needed = {n for n in vars(RecordSource) if not n.startswith("_")} - {"bounds"}
    found = set()
    for module in pkgutil.walk_packages(tacit.records.__path__, "tacit.records."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and needed <= set(dir(value)) and value is not RecordSource:
                found.add(value)
    return found


def test_no_source_is_left_out() -> None:
    assert {MemoryRecords, ChunkedRecords} <= implementations()
    # Neighbours of PeopleInMemory differ in a person: tests/records/test_people_in_memory.py.
    assert implementations() == {cls for cls, _ in SOURCES.values()} | {PeopleInMemory}
