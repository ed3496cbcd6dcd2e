"""Selections: drawn by the stated sensitivity, at the stated price; half of it is caught."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.erm.losses import HuberLoss, LogisticLoss, SmoothHingeLoss
from tacit.noise import SensitivityViolation, recording, secure_source
from tacit.noise.release import Entry
from tacit.privacy import ExponentialMechanism, Relation
from tacit.queries import Facts, Quantile, Selection, Session, Slot, selection
from tacit.queries import selection as quantile
from tacit.queries.selection import CandidateRisks, RiskInBall, _Risk, rank_utility
from tacit.records import Bounds, ChunkedRecords, MemoryRecords
from tacit.testing import replay

RELATIONS = [Relation.ADD_REMOVE, Relation.REPLACE]
BOUNDS = Bounds(row_norm=2.0)
ROWS = np.random.default_rng(0).normal(0.0, 1.0, (40, 3))


def utilities() -> list[Any]:
    (ball,) = RiskInBall.tried()
    return [*Quantile.tried(), CandidateRisks.tried()[0], replace(ball, per_radius=2**10)]


def neighbours(relation: Relation) -> list[tuple[Any, Any]]:
    """Return tables of which one has a long row more, or its opposite in its place."""
    pairs = []
    for row in np.array([[9.0, -9.0, 0.0], [-9.0, 9.0, 0.0], [0.0, 0.0, 9.0]]):
        other = ROWS if relation.adds_or_removes else np.vstack([ROWS, -row])
        pairs.append((np.vstack([ROWS, row]), other))
    return pairs


def answered(utility: Any, relation: Relation, rows: Any) -> Any:
    facts = Facts(BOUNDS, 3, relation)
    query = Selection(utility, 0.7)
    slots = {"chosen": Slot(query.event(facts))}
    session = Session(MemoryRecords(rows, None, BOUNDS), facts, query.event(facts), slots)
    return session.release(session.ask(query, "chosen"))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("utility", utilities(), ids=str)
def test_it_is_drawn_by_its_utility(utility: Any, relation: Relation) -> None:
    """What a tape notes before the draw is what the statistic states, of the same candidates."""
    facts, records = Facts(BOUNDS, 3, relation), MemoryRecords(ROWS, None, BOUNDS)
    with recording() as tape:
        released = answered(utility, relation, ROWS)
    (entry,) = (entry for entry in tape.entries if isinstance(entry, Entry))
    stated = utility.sensitivity(facts)
    assert entry.bounded.sensitivity == stated.value
    assert entry.bounded.norm is stated.norm
    assert released.event == entry.event == ExponentialMechanism(0.7, relation)
    if not isinstance(utility, RiskInBall):
        total = utility.total(records, facts)
        np.testing.assert_allclose(entry.bounded.value, total, rtol=1e-14)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("utility", utilities(), ids=str)
def test_half_a_sensitivity_is_caught(
    utility: Any, relation: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = neighbours(relation)

    def run(rows: Any) -> Any:
        return answered(utility, relation, rows)

    for one, other in pairs:
        assert replay(run, one, other) == replay(run, other, one) == 1
    stated = type(utility).sensitivity

    def half(self: Any, facts: Facts) -> Any:
        whole = stated(self, facts)
        return replace(whole, value=0.49 * whole.value)

    monkeypatch.setattr(type(utility), "sensitivity", half)
    # In a ball utilities are compared at the point that was drawn: some are far from 0.
    with pytest.raises(SensitivityViolation):
        [replay(run, *pair) for pair in 20 * pairs]


def test_the_utility_of_a_quantile_is_its_rank_error() -> None:
    values = np.array([0.1, 0.3, 0.3, 0.9])
    records = MemoryRecords(values[:, None], None, Bounds())
    quantile = Quantile(0.25, 0.0, 1.0, n_points=16)
    found = quantile.total(records, Facts(Bounds(), 1, Relation.ADD_REMOVE))
    points = np.arange(17) / 16
    below = (values <= points[:, None]).sum(axis=1)
    np.testing.assert_array_equal(found, -4.0 * np.abs(below - 1.0))
    # of those at the upper end, none is below it
    records = MemoryRecords(np.array([[0.5], [1.0], [7.0]]), None, Bounds())
    at_the_end = quantile.total(records, Facts(Bounds(), 1, Relation.ADD_REMOVE))[-1]
    assert at_the_end == -4.0 * abs(1 - 0.75)


@pytest.mark.parametrize("missing", [math.nan, math.inf, -math.inf])
def test_missing_values(missing: float) -> None:
    facts, kept = Facts(Bounds(), 1, Relation.REPLACE), np.array([[0.2], [0.7], [0.8]])
    rows = np.vstack([kept, [[missing]]])
    records = MemoryRecords(rows, None, Bounds())
    alone, with_zero = (
        MemoryRecords(table, None, Bounds()) for table in (kept, np.vstack([kept, [[0.0]]]))
    )
    for counts, same in ((False, alone), (True, with_zero)):
        quantile = Quantile(0.5, -1.0, 1.0, counts_missing=counts, n_points=64)
        found, expected = (quantile.total(one, facts) for one in (records, same))
        np.testing.assert_array_equal(found, expected)
        # a value for none moves no utility by more than is stated
        for other in (alone, with_zero):
            if other.count() == records.count() or not counts:
                utility_sensitivity = np.abs(quantile.total(other, facts) - found).max()
                assert utility_sensitivity <= quantile.sensitivity(facts).value


def test_a_quantile_needs_dense_records_in_memory() -> None:
    facts, quantile = Facts(Bounds(), 1, Relation.REPLACE), Quantile(0.5, 0.0, 1.0)
    records = ChunkedRecords(lambda: [(ROWS[:, :1], None)], 1, Bounds())
    with pytest.raises(ValueError, match="in memory"):
        quantile.total(records, facts)


def test_no_sample_is_selected_from() -> None:
    facts = Facts(Bounds(), 1, Relation.ADD_REMOVE, sampling_rate=0.1)
    with pytest.raises(ValueError, match="Poisson"):
        Selection(Quantile(0.5, 0.0, 1.0), 1.0).event(facts)


def test_ridges_and_slacks_are_in_the_sensitivity() -> None:
    """What neighbours do not attain is held to its formula."""
    facts = Facts(BOUNDS, 3, Relation.REPLACE)
    candidates = CandidateRisks(CandidateRisks.tried()[0].loss, np.eye(3), 1e9)
    assert candidates.utility_sensitivity(facts) == 2 * 2.0 * math.sqrt(2.0)
    stated = candidates.sensitivity(facts).value
    assert stated == pytest.approx(
        candidates.utility_sensitivity(facts) * (1 + 1e-4) + 2.0**-51 * 5e8, rel=1e-13, abs=0.0
    )
    ball = replace(RiskInBall.tried()[0], regularization=1e9)
    assert ball.utility_sensitivity(facts) == 2 * 2.0 * 1.5
    stated = ball.sensitivity(facts).value
    penalty = 1e9 / 2 * 1.5**2
    assert stated == pytest.approx(6.0 * (1 + 1e-4) + 2.0**-51 * penalty, rel=1e-13, abs=0.0)


def test_a_draw_takes_its_bits_from_the_source() -> None:
    class Silent:
        is_secure = True

        def words(self, n: int) -> Any:
            raise AssertionError("drawn")

    source: Any = Silent()
    facts, records = Facts(BOUNDS, 3, Relation.REPLACE), MemoryRecords(ROWS, None, BOUNDS)
    for utility in utilities():
        with pytest.raises(AssertionError, match="drawn"):
            Selection(utility, 1.0).answer(records, facts, source)
        Selection(utility, 1.0).answer(records, facts, secure_source())


@pytest.mark.parametrize("loss", [HuberLoss(0.5), SmoothHingeLoss(1.0), LogisticLoss()])
def test_losses_do_not_depend_on_other_records_of_a_block(loss: Any) -> None:
    """A matrix product rounds by place: nearly equal candidates moved by 2.8 sensitivities."""
    rng = np.random.default_rng(0)
    numbers = isinstance(loss, HuberLoss)
    bounds = Bounds(
        row_norm=1.0,
        label_range=(-1.0, 1.0) if numbers else None,
        n_classes=None if numbers else 2,
    )
    for _ in range(150):
        d, n = int(rng.integers(2, 9)), int(rng.integers(8, 65))
        row, weights = rng.standard_normal(d), rng.standard_normal(d) * 80 / math.sqrt(d)
        row /= np.linalg.norm(row)
        near = weights * (1 + rng.uniform(0, 4) * 1e-15)
        utility = CandidateRisks(loss, np.array([weights, near]))
        facts = Facts(bounds, d, Relation.ADD_REMOVE)
        many, fewer = (
            utility.total(MemoryRecords(np.tile(row, (k, 1)), np.ones(k), bounds), facts)
            for k in (n, n - 1)
        )
        assert np.abs(many - fewer).max() <= utility.sensitivity(facts).value


# Constants, to the digit.


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss()], ids=str)
def test_a_risk_in_floats(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = Bounds(row_norm=2.0, label_range=(-1.0, 1.0))
    facts = Facts(bounds, 3, Relation.ADD_REMOVE)
    labels = np.where(ROWS[:, 0] > 0, 1.0, -1.0)
    records = MemoryRecords(ROWS, labels, bounds)
    utility = RiskInBall(loss, 1.5, regularization=200.0)
    risk, zero, w = _Risk(utility, records, facts), np.zeros(3), np.array([0.5, -0.3, 0.2])

    def summed(at: Any, of: Any = np.asarray) -> float:
        return float(records.sum(lambda block: (of(loss.values(block, at)).sum(),))[0])

    expected = summed(w) - summed(zero) + 100.0 * (w @ w)
    assert risk.at(w) == pytest.approx(expected, rel=1e-12)
    values, slopes = risk.falling(np.vstack([w, zero]))
    assert values == pytest.approx([-expected, 0.0], rel=1e-12, abs=1e-12)
    step = 1e-6 * np.eye(3)
    around = [risk.at(w + h) - risk.at(w - h) for h in step]
    np.testing.assert_allclose(slopes[0], np.array(around) / -2e-6, rtol=1e-5, atol=1e-4)
    # a distance of 8 radii; L times it; three sums, and losses that err by 2^-40
    far, size = 12.0, summed(zero, np.abs)
    slope = loss.lipschitz * loss.gradient_scale(2.0) * far
    terms = 2.0**-39 * (size + 41 * slope)
    room = 3 * records.sum_error() * slope + terms + 2.0**-44 * 100.0 * far**2
    assert risk.error() == pytest.approx(room, rel=1e-9)
    # sums get half of what the sensitivity has for rounding
    asked: list[float] = []
    monkeypatch.setattr(selection, "needs_fine_sums", lambda _, slack: bool(asked.append(slack)))
    risk.at(w)
    assert asked == [0.5e-4]


def test_ranks_that_are_far_off_are_equally_bad() -> None:
    below = np.array([2**32 + 1, 2**33, 2**40, 2**32 - 2])
    utility = rank_utility(below, 2, Fraction(1, 2))
    assert utility.tolist() == [-2.0 * (2**32 - 1)] * 3 + [-2.0 * (2**32 - 3)]
    # levels times ranks are whole numbers that doubles have
    assert quantile._FINEST_LEVEL * quantile._FARTHEST_RANK == 2**52
