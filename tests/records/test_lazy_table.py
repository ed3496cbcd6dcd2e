"""Rows that are made of others: lazily, block by block, each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.features import GaussianKernel, RandomFourierFeatures
from tacit.records import Block, Bounds, MemoryRecords
from tacit.records import memory as memory_module
from tacit.records.block import usual_rows
from tacit.records.grouped import PeopleInMemory
from tacit.records.lazy_table import MappedRows
from tacit.records.privacy_unit import people_of

ROWS = np.random.default_rng(0).uniform(-1, 1, (900, 4))


class Counting:
    """Random waves, which count the rows that they make and how many at once at most."""

    n_columns = 3000

    def __init__(self) -> None:
        features = RandomFourierFeatures(GaussianKernel(1.0), self.n_columns // 2, seed=1)
        self.function = features.fit(ROWS).row_map(features.domain_)
        self.made, self.most = 0, 0

    def __call__(self, rows: Any, out: Any) -> None:
        self.made, self.most = self.made + len(rows), max(self.most, len(rows))
        self.function(rows, out)


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "CACHED_BYTES", 0)


def total(block: Block) -> tuple[Any]:
    return (block.weighted_sum(np.ones(block.n_rows)),)


@pytest.mark.usefixtures("streaming")
def test_a_pass_makes_each_row_once_and_a_block_at_a_time() -> None:
    counting = Counting()
    records = MemoryRecords(MappedRows(ROWS, counting), None, Bounds())
    assert counting.made == 0
    for turn in (1, 2):
        records.sum(total)
        assert counting.made == turn * len(ROWS)
    assert counting.most <= usual_rows(counting.n_columns) < len(ROWS)


def test_few_rows_are_made_once() -> None:
    counting = Counting()
    records = MemoryRecords(MappedRows(ROWS, counting), None, Bounds())
    for _ in range(3):
        records.sum(total)
    assert counting.made == len(ROWS)


@pytest.mark.usefixtures("streaming")
def test_people_and_samples_are_those_of_the_whole_table() -> None:
    rows = MappedRows(ROWS, Counting())
    people = people_of((np.arange(len(ROWS)) % 300).tolist())
    whole = np.asarray(rows)
    for lazy, held in (
        (
            PeopleInMemory(rows, None, Bounds(), people),
            PeopleInMemory(whole, None, Bounds(), people),
        ),
        (
            MemoryRecords(rows, None, Bounds()).every(3),
            MemoryRecords(whole, None, Bounds()).every(3),
        ),
    ):
        for a, b in zip(lazy.sum(total), held.sum(total), strict=True):
            assert a.tobytes() == b.tobytes()
        assert lazy.clip_factors().tobytes() == held.clip_factors().tobytes()


@pytest.mark.usefixtures("streaming")
def test_rows_longer_than_their_bound_are_scaled_down_in_every_pass() -> None:
    records = MemoryRecords(MappedRows(ROWS, Counting()), None, Bounds(row_norm=0.5))
    for _ in range(2):
        (norms,) = records.sum(lambda block: (np.linalg.norm(block.points(), axis=1).max(),))
        assert norms <= 0.5 * len(list(range(0, len(ROWS), usual_rows(3000))))


@pytest.mark.slow
def test_maps_of_maps() -> None:
    inner, outer = Counting(), Counting()
    outer.function = (
        RandomFourierFeatures(GaussianKernel(1.0), 1500, seed=2)
        .fit(np.zeros((1, 3000)))
        .row_map(RandomFourierFeatures().fit(np.zeros((1, 3000))).domain_)
    )
    twice = MappedRows(MappedRows(ROWS, inner), outer)
    by_hand = np.empty((len(ROWS), 3000))
    outer.function(np.asarray(MappedRows(ROWS, inner)), by_hand)
    assert np.asarray(twice).tobytes() == by_hand.tobytes()
    assert twice[:7].made().tobytes() == by_hand[:7].tobytes()
