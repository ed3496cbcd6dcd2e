"""Sums of gradients have the same bits in any order, and move by no more than the clip, exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from tacit.erm import Objective
from tacit.erm.losses import (
    AnyLoss,
    DistanceLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    QuantileLoss,
    SoftmaxLoss,
    SquaredDistanceLoss,
    SquaredLoss,
)
from tacit.privacy import Relation
from tacit.queries import Facts, Gradient
from tacit.records import Bounds, ChunkedRecords, MemoryRecords, RecordSource
from tacit.records.exact.lattice import RowLattice
from tacit.records.grouped import PeopleInMemory
from tacit.records.privacy_unit import people_of
from tacit.records.reweighted import ClassWeights, ReweightedRecords

D, N = 6, 500
SCORES = [LogisticLoss(), SoftmaxLoss(4), HingeLoss(), QuantileLoss(0.3), HuberLoss(0.5)]
POINTS = [DistanceLoss(), SquaredDistanceLoss()]
BOUNDS = Bounds(row_norm=1.5, label_range=(-2.0, 3.0), n_classes=4, intercept=0.375)
ADD = Relation.ADD_REMOVE


def data(n: int = N, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, D)) * rng.choice([0.1, 1.0, 30.0], (n, 1))
    rows[rng.random((n, D)) < 0.3] = 0.0
    return rows.astype(np.float32).astype(float), rng.integers(-1, 4, n).astype(float)


@dataclass(frozen=True)
class TeacherQueries:
    """Gradients of one objective, asked of records of given facts at any weights."""

    objective: Objective
    clip: float
    relation: Relation
    n_records: float
    n_features: int
    sums_by_person: bool = False

    @property
    def facts(self) -> Facts:
        bounds = self.objective.bounds
        return Facts(bounds, self.n_features, self.relation, sums_by_person=self.sums_by_person)

    def at(self, weights: Any) -> Gradient:
        return Gradient(self.objective, self.clip, self.n_records, weights)

    @property
    def sensitivity(self) -> float:
        nowhere = np.zeros(self.objective.shape(self.n_features))
        return self.at(nowhere).sensitivity(self.facts).value

    def __call__(self, records: RecordSource, weights: Any) -> Any:
        return self.at(weights).total(records, self.facts)


def gradient_of(
    loss: AnyLoss, relation: Relation = ADD, n: float = 1000.0, **changes: Any
) -> tuple[TeacherQueries, Bounds, Any]:
    bounds = replace(BOUNDS if loss.is_linear else Bounds(1.5), **changes)
    objective = Objective(loss, bounds)
    exact = TeacherQueries(objective, 0.7, relation, n, D, sums_by_person=relation.by_person)
    return exact, bounds, np.random.default_rng(3).standard_normal(objective.shape(D))


def cut(rows: Any, labels: Any, bounds: Bounds, *sizes: int) -> ChunkedRecords:
    edges = np.cumsum([0, *sizes, len(rows)])

    def read() -> Iterator[tuple[Any, Any]]:
        for a, b in pairwise(edges):
            yield rows[a:b], labels[a:b]

    return ChunkedRecords(read, D, bounds)


@pytest.mark.parametrize("loss", [*SCORES, *POINTS], ids=str)
def test_the_same_bits_for_any_order_and_any_blocks(loss: AnyLoss) -> None:
    exact, bounds, w = gradient_of(loss)
    rows, labels = data()
    order = np.random.default_rng(1).permutation(N)
    ways: list[RecordSource] = [
        MemoryRecords(rows, labels, bounds),
        MemoryRecords(rows[order], labels[order], bounds),
        MemoryRecords(rows.astype(np.float32), labels, bounds),
        MemoryRecords(np.asfortranarray(rows), labels, bounds),
        cut(rows, labels, bounds, 1, 7, 100, 3),
        cut(rows[order], labels[order], bounds, 250),
    ]
    if loss.is_linear:
        ways.append(MemoryRecords(scipy.sparse.csr_array(rows), labels, bounds))
    first, *others = (exact(records, w) for records in ways)
    halves = [exact(MemoryRecords(rows[k::2], labels[k::2], bounds), w) for k in (0, 1)]
    for other in [*others, np.add(*halves)]:
        assert np.array_equal(first, other)


def squared_length(vector: Any) -> Fraction:
    return sum((Fraction(float(v)) ** 2 for v in np.ravel(vector)), Fraction(0))


def moved_by(exact: TeacherQueries, bounds: Bounds, w: Any) -> tuple[Fraction, Fraction]:
    """Return how far single records move a sum, at most and least, by the sensitivity, squared."""
    rows, labels = data()
    sums = [exact(MemoryRecords(rows, labels, bounds), w)]
    for i in range(40):
        kept = np.arange(N) != i
        sums.append(exact(MemoryRecords(rows[kept], labels[kept], bounds), w))
    far = [squared_length(np.subtract(sums[0], s)) for s in sums[1:]]
    gradient_scale = Fraction(exact.sensitivity) ** 2
    return max(far) / gradient_scale, min(far) / gradient_scale


@pytest.mark.parametrize("n", [1000.0, 1e9])
@pytest.mark.parametrize("loss", [*SCORES, *POINTS], ids=str)
def test_a_record_moves_the_sum_by_no_more_than_the_clip(loss: AnyLoss, n: float) -> None:
    exact, bounds, w = gradient_of(loss, n=n)
    assert exact.sensitivity == pytest.approx(0.7, rel=1e-6)
    assert (exact.sensitivity == 0.7) is (n == 1000.0)  # nothing is charged for floats
    most, _ = moved_by(exact, bounds, w)
    assert Fraction(99, 100) < most <= 1


def test_twice_the_clip_under_replace() -> None:
    exact, *_ = gradient_of(LogisticLoss(), Relation.REPLACE)
    assert exact.sensitivity == 1.4


def test_slopes_beyond_the_limit_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = vars(Gradient)["_rows"].fget

    def longer(self: Gradient) -> RowLattice:
        rows: RowLattice = right(self)
        return replace(rows, limit=rows.limit * 1.001)

    monkeypatch.setattr(Gradient, "_rows", property(longer))
    exact, bounds, w = gradient_of(HingeLoss())
    assert moved_by(replace(exact, clip=0.5), bounds, 100 * w)[0] > 1


@pytest.mark.parametrize("loss", SCORES[:2], ids=str)
def test_weights_of_records_and_of_classes(loss: AnyLoss) -> None:
    exact, bounds, w = gradient_of(loss, max_weight=2.0, n_classes=loss.n_outputs)
    bounds = replace(bounds, n_classes=max(loss.n_outputs, 2))
    rows, labels = data()
    weights = np.random.default_rng(9).uniform(-1, 3, N)
    shares = ClassWeights(tuple(np.linspace(0.2, 1.0, bounds.n_classes or 2)))
    records = ReweightedRecords(MemoryRecords(rows, labels, bounds, weights), shares)
    total = exact(records, w)
    order = np.arange(N)[::-1]
    turned = MemoryRecords(rows[order], labels[order], bounds, weights[order])
    assert np.array_equal(total, exact(ReweightedRecords(turned, shares), w))
    near, _ = records.sum(lambda b: (exact.objective.gradient(b, w, 0.7), np.zeros(1)))
    np.testing.assert_allclose(total, near, atol=1e-3 * np.abs(near).max())


@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(4), DistanceLoss()], ids=str)
def test_a_person_moves_the_sum_by_no_more_than_the_clip(loss: AnyLoss) -> None:
    exact, bounds, w = gradient_of(loss, Relation.ADD_REMOVE_PERSON)
    rows, labels = data()
    names = np.random.default_rng(4).integers(0, 90, N)

    def total(kept: Any) -> Any:
        people = people_of(names[kept])
        return exact(PeopleInMemory(rows[kept], labels[kept], bounds, people), w)

    everybody = total(np.full(N, True))
    far = [squared_length(everybody - total(names != name)) for name in range(30)]
    assert Fraction(9, 10) < max(far) / Fraction(exact.sensitivity) ** 2 <= 1
    order = np.argsort(-names, kind="stable")
    assert np.array_equal(total(order), everybody)


@pytest.mark.parametrize("loss", [*SCORES, *POINTS], ids=str)
def test_it_is_the_gradient(loss: AnyLoss) -> None:
    exact, bounds, w = gradient_of(loss)
    records = MemoryRecords(*data(), bounds)
    (near,) = records.sum(lambda b: (exact.objective.gradient(b, w, 0.7),))
    scale = np.abs(near).max()
    np.testing.assert_allclose(exact(records, w), near, atol=2e-3 * scale)


@pytest.mark.parametrize("loss", [*SCORES, *POINTS], ids=str)
def test_no_record_adds_nothing(loss: AnyLoss) -> None:
    exact, bounds, w = gradient_of(loss)
    labels = np.empty(0) if loss.is_linear else None
    nothing = exact(MemoryRecords(np.empty((0, D)), labels, bounds), w)
    assert np.array_equal(nothing, np.zeros(w.shape))


def test_no_record_and_hostile_ones() -> None:
    exact, bounds, w = gradient_of(LogisticLoss())
    nothing = exact(MemoryRecords(np.empty((0, D)), np.empty(0), bounds), w)
    assert np.array_equal(nothing, np.zeros(D + 1))
    rows, labels = data()
    worse = np.vstack([rows, np.full(D, np.nan), np.full(D, 1e308), np.full(D, -np.inf)])
    more = exact(MemoryRecords(worse, np.append(labels, [np.nan, np.inf, 1.0]), bounds), w)
    fewer = exact(MemoryRecords(rows, labels, bounds), w)
    assert squared_length(more - fewer) <= (3 * Fraction(exact.sensitivity)) ** 2


def test_a_record_alone_in_its_block_has_the_slope_it_has_beside_others() -> None:
    """Of ten classes, one of them nearly certain: the last bit of p decides a whole step."""
    bounds = Bounds(row_norm=1.0, n_classes=10)
    exact = TeacherQueries(Objective(SoftmaxLoss(10), bounds), 2.0, ADD, 100, 1)
    w = np.zeros((1, 10))
    w[0, 0] = 36.9  # exp(-36.9) is 0.84 of the last bit of 1
    alone = exact(MemoryRecords(np.array([[1.0]]), np.array([1.0]), bounds), w)
    beside = exact(MemoryRecords(np.array([[1.0], [0.0]]), np.array([1.0, 0.0]), bounds), w)
    assert np.array_equal(alone, beside)


def test_a_second_record_moves_the_sum_by_no_more_than_the_declared_slope() -> None:
    """Of ten classes, and a row that is as long as its steps allow."""
    bounds = Bounds(row_norm=1.0, n_classes=10)
    across = np.arange(1, 30_000)
    up = np.floor(np.sqrt(2.0**30 - 1 - across**2))
    longest = np.argmax(across**2 + up**2)
    unit = np.array([across[longest], up[longest]]) / 2.0**15
    exact = TeacherQueries(
        Objective(SoftmaxLoss(10), bounds), math.sqrt(2) * (1 + 4e-9), ADD, 100, 2
    )
    rows, w = np.stack([0.9 * unit, (1 - 1e-9) * unit]), np.zeros((2, 10))
    for score in np.linspace(36.5, 37.0, 11):
        w[:, 0] = unit * score / 0.9 / (unit @ unit)
        one = exact(MemoryRecords(rows[:1], np.ones(1), bounds), w)
        both = exact(MemoryRecords(rows, np.ones(2), bounds), w)
        moved = squared_length(np.subtract(one, both))
        assert moved <= Fraction(exact.sensitivity) ** 2


@pytest.mark.parametrize(("more", "slope"), [(6, 1 - 2.0**-18), (12, 1.0)])
def test_the_greatest_slope_has_room_for_the_roundings_of_its_limit(
    more: int, slope: float
) -> None:
    """C / R is lowered by 2^-50, 8 u: C is up to 12 u above 1 here, and slopes steps of 2^-18."""
    bounds = Bounds(row_norm=1.0, label_range=(-9.0, 9.0))
    clip = 1 + more * 2.0**-53
    exact = TeacherQueries(Objective(SquaredLoss(), bounds), clip, ADD, 100, 1)
    records = MemoryRecords(np.array([[0.5]]), np.array([-9.0]), bounds)
    assert exact(records, np.zeros(1)) == 0.5 * slope


@pytest.mark.parametrize("clip", [0.7, 1.0])
def test_vectors_are_in_steps_of_33_bits_below_the_clip(clip: float) -> None:
    """So many bits, and 20 for the rows of a block, are what a double holds."""
    bounds, step = Bounds(row_norm=1.0), 2.0**-33
    exact = TeacherQueries(Objective(SquaredDistanceLoss(), bounds), clip, ADD, 100, 2)
    row = np.array([0.125 + 1.75 * step, -0.25 - 2.75 * step])
    records = MemoryRecords(row[None], None, bounds)
    (vector,) = records.sum(lambda b: (exact.objective.gradient(b, np.zeros(2)),))
    whole = np.trunc(vector / step)
    assert not np.array_equal(whole * step, vector)
    np.testing.assert_array_equal(exact(records, np.zeros(2)), whole * step)
    assert np.any(whole % 2 == 1)  # no coarser steps would do
