"""Every record source of tacit, through the checks that any must pass."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse

import tacit.records
import tacit.records.memory as memory_module
from tacit.disk_arrays import disk_array
from tacit.records import Bounds, ChunkedRecords, MemoryRecords, RecordSource
from tacit.records.files import ParquetRecords
from tacit.records.grouped import PeopleInMemory
from tacit.records.lazy_table import MappedRows
from tacit.records.reweighted import ReweightedRecords
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


class Copied:
    """A map that changes nothing."""

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns

    def __call__(self, rows: Any, out: Any) -> None:
        out[:] = rows.toarray() if hasattr(rows, "tocsr") else rows


def mapped(rows: Any, labels: Any, bounds: Bounds) -> RecordSource:
    """Return records whose rows are made anew in every pass, however few they are."""
    with mock.patch.object(memory_module, "CACHED_BYTES", -1):
        records = MemoryRecords(MappedRows(rows, Copied(rows.shape[1])), labels, bounds)
    assert isinstance(records.rows, MappedRows)
    return records


def single(rows: Any) -> Any:
    return rows.astype(np.float32)


def on_disk(rows: Any) -> Any:
    stored = disk_array(rows.shape, np.float32)
    stored[:] = rows
    return stored


# class, way of making it
SOURCES: dict[str, tuple[type[Any], Any]] = {
    "memory": (MemoryRecords, MemoryRecords),
    "memory-float32": (MemoryRecords, memory(single)),
    "memory-on-disk": (MemoryRecords, memory(on_disk)),
    "memory-columns": (MemoryRecords, memory(np.asfortranarray)),
    "memory-sparse": (MemoryRecords, memory(scipy.sparse.csr_array)),
    "memory-mapped": (MemoryRecords, mapped),
    "memory-mapped-kept": (
        MemoryRecords,
        lambda rows, *rest: MemoryRecords(MappedRows(rows, Copied(rows.shape[1])), *rest),
    ),
    "chunked-whole": (ChunkedRecords, chunked(np.asarray, 10_000)),
    "chunked-empty-blocks": (ChunkedRecords, chunked(np.asarray, 0, 100, 0, 0, 33)),
    "chunked-float32": (ChunkedRecords, chunked(single, 128)),
    "chunked-columns": (ChunkedRecords, chunked(np.asfortranarray, 70, 80)),
    "chunked-sparse": (ChunkedRecords, chunked(scipy.sparse.csc_array, 0, 90)),
}


def implementations() -> set[type[Any]]:
    """Every class of tacit.records that has what a RecordSource has, found and not listed."""
    needed = {n for n in vars(RecordSource) if not n.startswith("_")} - {"bounds"}
    found = set()
    for module in pkgutil.walk_packages(tacit.records.__path__, "tacit.records."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and needed <= set(dir(value)) and value is not RecordSource:
                found.add(value)
    return found


# Neighbours of PeopleInMemory differ in a person: tests/records/test_grouped_people_in_memory.py.
# Reweighted records forward to one of these, with other bounds: estimators/test_sample_weights.py.
# Records in files have tests of their own: tests/records/test_files.py.
OTHERS = {ParquetRecords, PeopleInMemory, ReweightedRecords}
# A source that is new says itself how it is made of rows, labels and bounds.
FOUND = {
    cls.__name__: (cls, cls.tried)
    for cls in sorted(implementations() - OTHERS, key=lambda cls: cls.__name__)
    if hasattr(cls, "tried")
}
MADE = SOURCES | FOUND


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_a_source_is_sound(name: str) -> None:
    check_record_source(MADE[name][1])


def test_no_source_is_left_out() -> None:
    assert {MemoryRecords, ChunkedRecords} <= implementations()
    left = implementations() - {cls for cls, _ in MADE.values()} - OTHERS
    assert not left, f"{left}: declare how it is made, tried(rows, labels, bounds)"
