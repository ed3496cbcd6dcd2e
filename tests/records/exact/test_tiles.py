"""Tiles hold the rows they were given, and compiled loops over them give NumPy's bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

import tacit.records.exact.lattice as lattice_table_module
import tacit.records.memory as memory_module
from tacit.disk_arrays import disk_array, is_on_disk
from tacit.erm import Objective
from tacit.erm.losses import HuberLoss, LogisticLoss, SoftmaxLoss
from tacit.privacy import Relation
from tacit.queries import Facts, Gradient
from tacit.records import Bounds, MemoryRecords, RecordSource
from tacit.records.exact.kernels import TILE_ROWS, sigmoid
from tacit.records.exact.lattice import MOST_ROWS, LatticeBlock, LatticeTable, sum_in_steps
from tacit.records.exact.tiles import Tiles
from tacit.records.reweighted import ClassWeights, ReweightedRecords

BOUNDS = Bounds(row_norm=2.0, intercept=0.7, label_range=(-1.0, 1.0), n_classes=2)


def whole(n: int, d: int) -> Any:
    return np.random.default_rng(n + d).integers(-(2**14), 2**14, (n, d)).astype(np.int16)


@pytest.mark.parametrize("shape", [(1, 1), (4095, 3), (4097, 20), (2000, 200), (300, 1500)])
def test_rows_come_back_as_they_were_put(shape: tuple[int, int]) -> None:
    rows, tiles = whole(*shape), Tiles.room_for(np.empty(shape))
    n = shape[0]
    for start in range(0, n, 77):
        tiles.put(start, rows[start : start + 77])
    assert np.array_equal(tiles.rows(), rows)
    places = np.array([n - 1, 0, n // 2])
    assert np.array_equal(tiles.at(places), rows[places])
    size = TILE_ROWS
    assert np.array_equal(tiles[size : 3 * size].rows(), rows[size : 3 * size])
    assert not is_on_disk(tiles.tiles)
    assert is_on_disk(Tiles.room_for(disk_array(shape, np.float32)).tiles)


def gradient(records: RecordSource, loss: Any, w: Any, clip: float, compiles: bool) -> Any:
    exact = Gradient(Objective(loss, records.bounds), clip, 1000.0, w)
    facts = Facts(records.bounds, records.n_features, Relation.ADD_REMOVE)
    with mock.patch.object(memory_module, "is_worth_compiling", return_value=compiles):
        return exact.total(records, facts)


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss(0.5), SoftmaxLoss(3)], ids=str)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (4095, 3), (4097, 20), (3000, 37), (700, 300)])
@pytest.mark.parametrize("clip", [0.01, 0.3, 50.0])
def test_gradients_have_the_same_bits_compiled_or_not(loss: Any, n: int, d: int, clip: float):
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, d)).astype(np.float32)
    labels = rng.choice(np.array([-1, 0, 1], dtype=np.int8), n)
    bounds = Bounds(2.0, intercept=0.7, label_range=(-1.0, 1.0), n_classes=3)
    for scale in (0.1, 3.0, 1e6):
        w = rng.normal(size=Objective(loss, bounds).shape(d)) * scale
        on_disk, files = disk_array((n, d), np.float32), disk_array((n,), np.int8)
        on_disk[:], files[:] = rows, labels
        tiled, plain, mapped = (
            gradient(MemoryRecords(r, y, bounds), loss, w, clip, compiles)
            for r, y, compiles in (
                (rows, labels, True),
                (rows, labels, False),
                (on_disk, files, True),
            )
        )
        assert np.array_equal(tiled, plain)
        assert np.array_equal(mapped, plain)


def test_without_an_intercept_bits_are_the_same_too() -> None:
    rng = np.random.default_rng(5)
    rows, labels = rng.normal(size=(200, 3)), rng.choice([-1.0, 1.0], 200)
    bounds, w = replace(BOUNDS, intercept=0.0), rng.normal(size=3)
    found = [
        gradient(MemoryRecords(rows, labels, bounds), LogisticLoss(), w, 0.5, compiles)
        for compiles in (True, False)
    ]
    assert np.array_equal(*found)


def test_weighted_records_have_the_same_bits_compiled_or_not() -> None:
    rng = np.random.default_rng(4)
    rows, labels = rng.normal(size=(4500, 7)), rng.choice([-1.0, 1.0], 4500)
    w = rng.normal(size=8)
    found = [
        gradient(
            ReweightedRecords(MemoryRecords(rows, labels, BOUNDS), ClassWeights((0.3, 1.0))),
            LogisticLoss(),
            w,
            0.5,
            compiles,
        )
        for compiles in (True, False)
    ]
    assert np.array_equal(*found)


def test_labels_on_disk_outside_their_range_are_held_to_it() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 2))
    labels = disk_array((50,), np.int8)
    labels[:] = np.arange(50) - 20
    w = np.array([0.3, -0.2, 0.1])
    bounds = replace(BOUNDS, n_classes=None)  # numbers, and no classes
    odd = MemoryRecords(rows, labels, bounds)
    held = MemoryRecords(rows, np.clip(np.array(labels), -1, 1), bounds)
    for compiles in (True, False):
        found = [gradient(records, HuberLoss(0.5), w, 0.5, compiles) for records in (odd, held)]
        assert np.array_equal(*found)


@pytest.mark.parametrize("is_mapped", [True, False])
@pytest.mark.parametrize(
    ("dtype", "given", "label_range", "held"),
    [
        (np.int8, [0, 5], (-1.0, 1.0), [0, 1]),  # beyond one end alone
        (np.int8, [-5, 0], (-1.0, 1.0), [-1, 0]),
        (np.int8, [-5, 5], (-1.0, 1.0), [-1, 1]),
        (np.int8, [-1, 1], (-1.0, 1.0), [-1, 1]),
        (np.int8, [-5, 5], None, [-5, 5]),
        (np.float64, [0.25, 5.0], (-1.0, 1.0), [0.25, 1.0]),
        (np.float64, [0.25, np.nan], (-1.0, 1.0), [0.25, 0.0]),
        (np.float64, [np.inf, 0.5], None, [0.0, 0.5]),
        (np.float64, [-np.inf, np.inf], None, [0.0, 0.0]),
    ],
)
def test_labels_are_finite_and_in_their_range_wherever_they_lie(
    dtype: Any,
    given: list[float],
    label_range: tuple[float, float] | None,
    held: list[float],
    is_mapped: bool,
) -> None:
    """Where one label is no number, nothing else would be left of a sum."""
    labels = disk_array((2,), dtype) if is_mapped else np.empty(2, dtype)
    labels[:] = given
    assert is_on_disk(labels) is is_mapped
    records = MemoryRecords(np.ones((2, 1)), labels, Bounds(label_range=label_range))
    seen = list[float]()

    def look(block: LatticeBlock) -> Any:
        seen.extend(np.asarray(block.labels).tolist())
        return (np.zeros(1),)

    sum_in_steps(records, look)
    assert seen == held


def test_the_compiled_logistic_sum_is_the_formula() -> None:
    n, d = 9000, 5
    rows, rng = whole(n, d), np.random.default_rng(1)
    tiles = Tiles.room_for(np.empty((n, d)))
    tiles.put(0, rows)
    labels, w = rng.choice([-1.0, 0.0, 1.0], n), np.round(rng.normal(size=d) * 2**20) / 2**20
    scores = (rows.astype(float) @ w) * 2.0**-13 + 0.3
    slopes = np.clip(np.rint((sigmoid(scores) - (labels > 0)) * 2.0**18), -200_000, 200_000)
    total, of_slopes = tiles.logistic_sum(labels, w * 2**20, 2.0**-33, 0.3, 2.0**18, 200_000)
    assert of_slopes[0] == slopes.sum()
    assert np.array_equal(total, rows.T.astype(float) @ slopes)


def test_samples_and_parts_of_tiles_are_those_of_their_rows() -> None:
    rng = np.random.default_rng(2)
    rows, labels = rng.normal(size=(5000, 6)), rng.choice([-1.0, 1.0], 5000)
    records, w = MemoryRecords(rows, labels, BOUNDS), rng.normal(size=7)
    gradient(records, LogisticLoss(), w, 0.5, True)  # which makes the tiles
    places = np.flatnonzero(rng.random(5000) < 0.1)
    for at in (places, slice(None, None, 3)):
        parts = [records.where(at), MemoryRecords(rows[at], labels[at], BOUNDS)]
        assert np.array_equal(*(gradient(p, LogisticLoss(), w, 0.5, True) for p in parts))


@pytest.mark.parametrize("is_tiled", [True, False])
def test_no_block_has_more_rows_than_floats_add_up(is_tiled: bool) -> None:
    rows = np.ones((2 * MOST_ROWS + 100, 1), dtype=np.int16)
    tiles = Tiles.room_for(rows)
    table = LatticeTable(tiles if is_tiled else rows, None, Bounds())
    seen = list[int]()

    def noted(block: LatticeBlock) -> Any:
        seen.append(block.n_rows)
        return (np.zeros(1),)

    table.sum(noted)
    assert sum(seen) == len(rows)
    assert max(seen) <= MOST_ROWS


@pytest.mark.parametrize("is_tiled", [True, False])
@pytest.mark.parametrize("numbers", [1, 50 * 7, 100 * 7])
def test_every_record_is_in_one_block_whatever_its_size(numbers: int, is_tiled: bool) -> None:
    # A block that began within a tile would have that tile's first rows, once more.
    rows = whole(300, 7)
    tiles = Tiles.room_for(rows)
    tiles.put(0, rows)
    labels = np.arange(300.0)
    table = LatticeTable(tiles if is_tiled else rows, labels, Bounds())
    seen = list[Any]()

    def noted(block: LatticeBlock) -> Any:
        assert block.labels is not None
        seen.extend(zip(block.doubles().tolist(), block.labels.tolist(), strict=True))
        return (block.whole_sum(np.ones(block.n_rows)),)

    with mock.patch.multiple(
        lattice_table_module, _NUMBERS=numbers, _NUMBERS_IN_TILES=numbers, _LEAST_ROWS=TILE_ROWS
    ):
        (total,) = table.sum(noted)
    assert np.array_equal(total, rows.sum(axis=0, dtype=np.float64))
    assert seen == list(zip(rows.astype(float).tolist(), labels.tolist(), strict=True))


def test_without_numba_rows_lie_as_they_came_and_bits_are_the_same() -> None:
    rng = np.random.default_rng(3)
    rows, labels = rng.normal(size=(5000, 6)), rng.choice([-1.0, 1.0], 5000)
    w = rng.normal(size=7)
    tiled, plain = (MemoryRecords(rows, labels, BOUNDS) for _ in range(2))
    first = gradient(tiled, LogisticLoss(), w, 0.5, True)
    with mock.patch.object(memory_module, "compiled", return_value=None):
        second = gradient(plain, LogisticLoss(), w, 0.5, True)
    assert isinstance(tiled._table().rows, Tiles)
    assert isinstance(plain._table().rows, np.ndarray)
    assert np.array_equal(first, second)


@pytest.mark.parametrize("d", [1, 2, 127, 128, 129, 256, 257, 1025])
@pytest.mark.parametrize("n_outputs", [1, 2, 3, 10])
def test_scores_of_the_longest_rows_and_weights_do_not_overflow(d: int, n_outputs: int) -> None:
    # All as long as they may be, and of one sign: sums of limbs have nothing to cancel with.
    rng = np.random.default_rng(d)
    longest = min(int(2**15 / d**0.5), 2**15 - 1)
    rows = np.full((70, d), longest, dtype=np.int16)
    rows[1::3] *= -1
    rows[2::3] *= rng.choice([-1, 1], (23, d)).astype(np.int16)
    tiles = Tiles.room_for(np.empty(rows.shape))
    tiles.put(0, rows)
    for size in (2**12, -(2**12) - 1, 2**13 - 1, int(2**27 / d**0.5)):
        weights = np.full((d, n_outputs), float(size)) - np.arange(n_outputs)
        expected = rows.astype(object) @ weights.astype(int).astype(object)
        assert np.array_equal(tiles.along(weights), expected.astype(float))
        assert np.array_equal(tiles.along(weights[:, 0]), expected[:, 0].astype(float))


@pytest.mark.parametrize("n", [1, 31, 33, 1024, 1025, 5000])
@pytest.mark.parametrize("n_outputs", [1, 2, 3, 10])
def test_sums_of_the_longest_rows_and_slopes_do_not_overflow(n: int, n_outputs: int) -> None:
    rows = np.full((n, 5), 2**15 - 1, dtype=np.int16)
    rows[:, 1] *= -1
    tiles = Tiles.room_for(np.empty(rows.shape))
    tiles.tiles[:] = -1  # whatever lies beyond the last row
    tiles.put(0, rows)
    for slope in (2**18, -(2**18), 2**18 - 257, 255, 256, -256, -257):
        numbers = np.full((n, n_outputs), float(slope)) * np.arange(1, n_outputs + 1) / n_outputs
        numbers = np.trunc(numbers)
        expected = rows.T.astype(object) @ numbers.astype(int).astype(object)
        assert np.array_equal(tiles.down(numbers), expected.astype(float))
        assert np.array_equal(tiles.down(numbers[:, 0]), expected[:, 0].astype(float))


def test_limbs_of_slopes_add_up_below_2_to_the_31() -> None:
    # docs/proofs/exact_sums.md, section 2: one of 16 sums has 64 products over 1,024 rows
    from tacit.records.exact.compiled import _ROWS, SLOPE_BITS
    from tacit.records.exact.lattice import COEFFICIENT_BITS, ROW_BITS

    high = 2 ** (COEFFICIENT_BITS - SLOPE_BITS)
    assert _ROWS // 16 * 2**ROW_BITS * high < 2**31
    assert _ROWS // 16 * 2**ROW_BITS * 2 ** (SLOPE_BITS - 1) < 2**31
