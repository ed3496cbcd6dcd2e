"""Rows that others write to between passes, or during one: every sum is of rows in bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from multiprocessing import RawArray
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from tacit.disk_arrays import disk_array, empty_like_rows, may_change
from tacit.erm import Objective
from tacit.erm.losses import LogisticLoss
from tacit.erm.objective import records_gradient
from tacit.noise import Norm, summation
from tacit.noise.summation import bounded_sum
from tacit.privacy import Relation
from tacit.records import Block, Bounds, ChunkedRecords, MemoryRecords, chunked, lazy_table, memory
from tacit.records.block import Coordinates, factors_of, measured
from tacit.records.exact.lattice import LatticeTable
from tacit.records.grouped import PeopleInMemory
from tacit.records.lazy_table import MappedRows
from tacit.records.privacy_unit import people_of
from tacit.row_clipping import clip_factors

N, D, AT = 100, 2, 7
BOUNDS = Bounds(row_norm=1.0)
LABELS = np.ones(N)
HUGE = 1e6


class Same:
    """The row itself, as a map of rows."""

    n_columns = D

    def __call__(self, rows: Any, out: Any) -> None:
        out[:] = rows.toarray() if hasattr(rows, "tocsr") else rows


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows"


def mapped_file(file: Path, dtype: Any = float) -> tuple[Any, Any]:
    """Return rows, and the same to write to."""
    writable = np.memmap(file, dtype=dtype, mode="w+", shape=(N, D))
    writable[:] = 0.1
    return np.memmap(file, dtype=dtype, mode="r", shape=(N, D)), writable


def shared_memory(_: Path) -> tuple[Any, Any]:
    rows = np.frombuffer(RawArray("d", N * D)).reshape(N, D)
    rows[:] = 0.1
    return rows, rows


def with_people(rows: Any, bounds: Bounds) -> MemoryRecords:
    return PeopleInMemory(rows, LABELS, bounds, people_of(range(N)))


def to_be_made(rows: Any, bounds: Bounds) -> MemoryRecords:
    return MemoryRecords(MappedRows(MappedRows(rows, Same()), Same()), LABELS, bounds)


def sparse(rows: Any, bounds: Bounds) -> MemoryRecords:
    columns, starts = np.tile(np.arange(D), N), np.arange(N + 1) * D
    return MemoryRecords(
        scipy.sparse.csr_array((rows.ravel(), columns, starts), shape=rows.shape), LABELS, bounds
    )


WAYS: dict[str, Callable[[Any, Bounds], Any]] = {
    "rows": lambda rows, bounds: MemoryRecords(rows, LABELS, bounds),
    "a view": lambda rows, bounds: MemoryRecords(np.asarray(rows)[:], LABELS, bounds),
    "some": lambda rows, bounds: MemoryRecords(rows, LABELS, bounds).where(slice(0, None)),
    "every": lambda rows, bounds: MemoryRecords(rows, LABELS, bounds).every(AT),
    "measured": lambda rows, bounds: measured(
        MemoryRecords(rows, LABELS, bounds), Coordinates(np.eye(D))
    ),
    "people": with_people,
    "to be made": to_be_made,
    "sparse": sparse,
}


@pytest.fixture(autouse=True)
def make_rows_in_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "CACHED_BYTES", 0)


def longest(records: Any, *, fine: bool = False) -> float:
    """Return how long the longest row of a pass is."""
    found: list[float] = []

    def look(block: Block) -> tuple[Any]:
        found.append(float(np.linalg.norm(block.points(), axis=1).max()))
        return (np.zeros(1),)

    records.sum(look, fine=fine)
    return max(found)


MEMORY = {
    "file": mapped_file,
    "single precision": lambda file: mapped_file(file, np.float32),
    "shared": shared_memory,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", MEMORY)
def test_a_row_that_changes_between_passes_is_within_its_bound(
    way: str, where: str, file: Path
) -> None:
    rows, writable = MEMORY[where](file)
    records = WAYS[way](rows, BOUNDS)
    objective = Objective(LogisticLoss(), BOUNDS)
    before = records_gradient(objective, records, np.zeros(D))
    for odd in (HUGE, np.nan, 3.0):
        writable[AT] = odd
        after = records_gradient(objective, records, np.zeros(D))
        moved = np.linalg.norm(after - before)
        assert moved <= 2 * objective.lipschitz
        assert longest(records) <= 1.0
        assert longest(records, fine=True) <= 1.0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", MEMORY)
def test_a_row_that_changes_once_it_was_measured_is_within_its_bound(
    way: str, where: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, writable = MEMORY[where](file)
    found = factors_of

    def find_and_change(some: Any, bounds: Bounds) -> Any:
        factors = found(some, bounds)
        writable[AT] = HUGE
        return factors

    monkeypatch.setattr(memory, "factors_of", find_and_change)
    records = WAYS[way](rows, BOUNDS)
    for _ in range(2):
        writable[:] = 0.1
        assert longest(records) <= 1.0
        assert np.isfinite(records.sum(lambda b: (b.points().sum(axis=0),))[0]).all()


@pytest.mark.parametrize("where", MEMORY)
def test_a_block_that_changes_once_it_was_measured_is_within_its_bound(
    where: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, writable = MEMORY[where](file)
    found = factors_of

    def find_and_change(some: Any, bounds: Bounds) -> Any:
        factors = found(some, bounds)
        writable[AT] = HUGE
        return factors

    monkeypatch.setattr(chunked, "factors_of", find_and_change)
    monkeypatch.setattr(chunked, "usual_rows", lambda _: N // 2)  # blocks that need no joining
    records = ChunkedRecords(lambda: [(rows, LABELS)], D, BOUNDS)
    assert longest(records) <= 1.0
    with pytest.raises(ValueError, match="the same records"):
        longest(records)


@pytest.mark.parametrize("where", MEMORY)
def test_lengths_are_those_of_the_pass(where: str, file: Path) -> None:
    rows, writable = MEMORY[where](file)
    coordinates = Coordinates(np.eye(D))
    records = measured(MemoryRecords(rows, LABELS, BOUNDS), coordinates)
    writable[AT] = HUGE

    def short(block: Block) -> tuple[Any]:
        own = np.linalg.norm(block.points(), axis=1)
        return (np.array(np.max(own - coordinates.lengths(block))),)

    assert records.sum(short)[0] <= 1e-9


@pytest.mark.parametrize("where", MEMORY)
def test_rows_that_are_chosen_are_clipped_as_they_were_copied(
    where: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, writable = MEMORY[where](file)
    writable[AT] = HUGE

    def change_and_begin(*arguments: Any) -> Any:
        writable[AT] = 0.1
        return empty_like_rows(*arguments)

    monkeypatch.setattr(memory, "empty_like_rows", change_and_begin)  # for clip factors
    assert longest(MemoryRecords(rows, LABELS, BOUNDS).chosen(LABELS > 0)) <= 1.0


def test_a_map_meets_finite_rows_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Strict(Same):
        def __call__(self, rows: Any, out: Any) -> None:
            assert np.isfinite(rows).all()
            super().__call__(rows, out)

    rows, writable = mapped_file(file)
    found = lazy_table._odd

    def find_and_change(some: Any) -> Any:
        odd = found(some)
        writable[AT] = np.nan
        return odd

    monkeypatch.setattr(lazy_table, "_odd", find_and_change)
    assert MappedRows(rows, Strict()).made().max() <= 0.2


def test_steps_are_of_rows_that_were_within_their_bound(file: Path) -> None:
    rows, writable = mapped_file(file)
    records = MemoryRecords(rows, LABELS, BOUNDS)
    for keep in (False, True, True):

        def most(block: Any) -> tuple[Any]:
            return (np.array(np.sqrt(block.squared_norms().max())),)

        assert records.sum_in_steps(most, keep=keep)[0] <= 1.0
        writable[AT] = HUGE


@pytest.mark.parametrize("dtype", [np.int64, float])
def test_labels_and_weights_that_change_are_within_their_bounds(file: Path, dtype: Any) -> None:
    labels = np.memmap(file, dtype=dtype, mode="w+", shape=(N,))
    labels[:] = 1
    bounds = Bounds(label_range=(0.0, 2.0), max_weight=1.0)
    records = MemoryRecords(np.full((N, D), 0.1), labels, bounds, labels)
    table = LatticeTable(np.ones((N, D), np.int16), labels, bounds, labels)
    for odd in (1, 1_000_000, *([np.nan] if dtype is float else [])):
        labels[AT] = odd
        for source in (records, table):
            top, weight = source.sum(lambda b: (b.labels.max(), b.weights.max()))
            assert top <= 2.0
            assert weight <= 1.0


@pytest.mark.parametrize("odd", [HUGE, np.nan])
def test_a_sum_of_rows_that_change(odd: float, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, writable = mapped_file(file)
    found = clip_factors

    def find_and_change(*arguments: Any) -> Any:
        factors = found(*arguments)
        writable[AT] = odd
        return factors

    monkeypatch.setattr(summation, "clip_factors", find_and_change)
    total = bounded_sum(rows, 1.0, Norm.L2, Relation.ADD_REMOVE)
    assert np.linalg.norm(np.asarray(total.value) - 10.0) <= 1e-3


def owned() -> Iterator[tuple[str, Any]]:
    rows = np.ones((4, 2))
    yield "NumPy's", rows
    yield "a view", rows[1:].T
    yield "of bytes", np.frombuffer(bytes(16))
    yield "unpickled", np.frombuffer(memoryview(bytearray(16)))
    # of two types, so that polars cannot hand out columns that happen to lie side by side
    yield "polars", pl.DataFrame({"a": [1.0, 2.0], "b": [1, 2]}).to_numpy()
    yield "nameless", disk_array((4, 2), float)
    yield "of a nameless file", np.asarray(disk_array((4, 2), float))[1:]


@pytest.mark.parametrize(("what", "rows"), list(owned()))
def test_clip_factors_of_memory_that_is_ours_are_found_once(what: str, rows: Any) -> None:
    assert not may_change(rows), what
    rows = np.atleast_2d(rows)
    records = MemoryRecords(rows, None, BOUNDS)
    assert records.clip_factors() is records.clip_factors()


def test_rows_picked_from_a_file_are_ours(file: Path) -> None:
    rows, _ = mapped_file(file)
    assert may_change(rows)
    assert not may_change(rows[np.arange(3)])
    assert not may_change(rows * 2)
