from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tacit.records.memory as memory_module
from tacit.erm import Objective
from tacit.erm.losses import DistanceLoss, HingeLoss, LogisticLoss, SoftmaxLoss, SquaredLoss
from tacit.records import Bounds, MemoryRecords
from tacit.records.grouped import MOST_COUNTED, PeopleInMemory
from tacit.records.privacy_unit import people_of

N, D = 60, 3
KINDS: dict[str, Any] = {
    "dense": np.asarray,
    "columns": np.asfortranarray,
    "float32": lambda rows: rows.astype(np.float32),
    "sparse": scipy.sparse.csr_array,
    "coo": scipy.sparse.coo_array,
}


def table() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(1)
    rows = (4 * rng.standard_normal((N, D))).astype(np.float32).astype(float)
    # somebody with many records, others with one to four
    unit = np.where(np.arange(N) % 3 == 0, 99, rng.integers(0, 15, N))
    return rows, rng.integers(0, 3, N).astype(float), unit


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "usual_rows", lambda n_features: 7)


def by_hand(objective: Objective, rows: Any, labels: Any, unit: Any, w: Any, clip: float) -> Any:
    """Return the sum over people of their clipped sums, each person's from a table of their own."""
    total = np.zeros_like(w)
    for person in np.unique(unit):
        own = unit == person
        summed = np.zeros_like(w)
        for row, label in zip(rows[own], labels[own], strict=True):
            records = MemoryRecords(row[None, :], np.array([label]), objective.bounds)
            summed += records.sum(lambda b: (objective.gradient(b, w, clip),))[0]
        summed *= min(1.0, MOST_COUNTED / own.sum())
        total += summed * min(1.0, clip / max(float(np.linalg.norm(summed)), 1e-300))
    return total


LOSSES = [LogisticLoss(), HingeLoss(), SquaredLoss(), SoftmaxLoss(3), DistanceLoss()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [0.0, 0.5])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.key)
@pytest.mark.parametrize("clip", [0.3, 2.0])
def test_what_a_person_adds_up_to_is_clipped(
    loss: Any, intercept: float, kind: str, clip: float
) -> None:
    rows, labels, unit = table()
    bounds = Bounds(row_norm=2.0, intercept=intercept)
    objective = Objective(loss, bounds)
    w = np.random.default_rng(2).standard_normal(objective.shape(D))
    records = PeopleInMemory(KINDS[kind](rows), labels, bounds, people_of(unit))
    expected = by_hand(objective, rows, labels, unit, w, clip)
    for fine in (False, True):
        (found,) = records.sum(lambda b: (objective.gradient(b, w, clip),), fine=fine)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_people_with_one_record_each_are_records() -> None:
    rows, labels, _ = table()
    bounds = Bounds(row_norm=2.0, intercept=0.5)
    objective, w = Objective(LogisticLoss(), bounds), np.ones(D + 1)
    people = PeopleInMemory(rows, labels, bounds, people_of(np.arange(N)))
    plain = MemoryRecords(rows, labels, bounds)
    one, other = (
        source.sum(lambda b: (objective.gradient(b, w, 0.4),))[0] for source in (people, plain)
    )
    np.testing.assert_allclose(one, other, rtol=1e-12)
    assert people.counted() == people.count() == N


def test_rows_of_any_size() -> None:
    """Nothing under- or overflows where the rows themselves do not."""
    rows, labels, unit = table()

    def in_units_of(size: float) -> Any:
        bounds = Bounds(row_norm=2.0 * size)
        objective = Objective(LogisticLoss(), bounds)
        records = PeopleInMemory(rows * size, labels, bounds, people_of(unit))
        w = np.ones(D) / size
        return records.sum(lambda b: (objective.gradient(b, w, 2 * size),))[0] / size

    for size in (1e-140, 1e140):
        np.testing.assert_allclose(in_units_of(size), in_units_of(1.0), rtol=1e-9)


def test_a_person_is_in_one_block() -> None:
    rows, labels, unit = table()
    records = PeopleInMemory(rows, labels, Bounds(row_norm=100.0), people_of(unit))
    blocks: list[tuple[int, int]] = []

    def note(block: Any) -> tuple[Any, ...]:
        blocks.append((len(block.people), block.n_rows))
        return (np.zeros(1),)

    records.sum(note)
    assert sum(people for people, _ in blocks) == len(np.unique(unit))
    assert sum(n for _, n in blocks) == N
    assert max(people for people, _ in blocks) <= 7  # what the bound on float error allows
    assert max(n for _, n in blocks) > 7


def test_counts_and_choices() -> None:
    rows, labels, unit = table()
    records = PeopleInMemory(rows, labels, Bounds(row_norm=100.0), people_of(unit))
    _, sizes = np.unique(unit, return_counts=True)
    assert records.counted() == np.minimum(sizes, MOST_COUNTED).sum()
    assert records.one_each().count() == len(sizes)
    # by who they are, not by what they say: other values, the same places
    other = PeopleInMemory(-rows[:, ::-1], labels, Bounds(row_norm=100.0), people_of(unit))
    assert np.array_equal(other.one_each().rows, -records.one_each().rows[:, ::-1])


def test_a_sample_is_of_people() -> None:
    rows, labels, unit = table()
    records = PeopleInMemory(rows, labels, Bounds(row_norm=100.0), people_of(unit))
    words = np.zeros(len(np.unique(unit)), dtype=np.uint64)
    words[1:] = 2**64 - 1
    sample = records.poisson_sample(0.5, lambda n: words[:n]).records
    first = np.unique(unit)[0]
    assert sample.count() == np.sum(unit == first)
    assert isinstance(sample, PeopleInMemory)


def test_empty() -> None:
    records = PeopleInMemory(np.empty((0, D)), np.empty(0), Bounds(), people_of([]))
    objective = Objective(LogisticLoss(), Bounds())
    (found,) = records.sum(lambda b: (objective.gradient(b, np.ones(D), 1.0),))
    assert found.tolist() == [0.0] * D
    assert records.counted() == records.one_each().count() == 0


def test_lengths() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        PeopleInMemory(np.ones((3, 2)), None, Bounds(), people_of([1, 2]))


def test_records_of_nobody_are_left_out() -> None:
    rows = np.arange(8.0).reshape(4, 2)
    for kind in (np.asarray, scipy.sparse.csr_array):
        records = PeopleInMemory(kind(rows), np.arange(4), Bounds(), people_of([None, 7, "", 5]))
        assert records.count() == records.counted() == 2
        assert sorted(records._labels) == [1, 3]
