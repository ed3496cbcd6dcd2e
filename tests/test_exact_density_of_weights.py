"""Objective perturbation of weighted records, against its exact density.

The neighbours differ in one record of weight a, for a from near 0 to the greatest and beyond it,
where weights are clipped. What a record of little weight does to the curvature falls more slowly
than what it does to the gradient, so that no weight may be left out (docs/proofs/weights.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import softmax

import tacit.records.block as block_module
from tacit.erm import CannotSolve, Objective, Plan, Problem
from tacit.erm.losses import LogisticLoss, SoftmaxLoss
from tacit.privacy import Budget, LogisticObjective, Relation, SoftmaxObjective
from tacit.records import Bounds, MemoryRecords
from tests.test_exact_density import (
    LOSSES,
    Mechanism,
    Scored,
    exact_delta,
    exact_epsilon,
    neighbours,
    usual_plan,
)

Array = npt.NDArray[np.float64]

MOST = 3.0
WEIGHTS = [
    pytest.param(weight, marks=() if weight in (0.3, np.inf) else pytest.mark.slow)
    for weight in (0.02, 0.1, 0.3, 1.0, 2.0, MOST, 2 * MOST, np.inf)
]
BUDGET = Budget(1.0, 0.05)
LOGISTIC = Scored(LogisticLoss())


def share(weight: float) -> float:
    """What the code makes of a weight."""
    bounds = Bounds(max_weight=MOST)
    records = MemoryRecords(np.ones((1, 1)), np.ones(1), bounds, np.array([weight]))
    (total,) = records.sum(lambda block: (block.weighed(np.ones(1)),))
    return float(total[0])


def planned(scored: Scored, row_norm: float, budget: Budget, ridge: float | None = None) -> Plan:
    bounds = Bounds(
        row_norm=row_norm,
        label_range=scored.label_range,
        n_records=100 if budget.relation is Relation.REPLACE else None,
        max_weight=MOST,
    )
    return usual_plan(Problem(Objective(scored.loss, bounds, ridge), 1), budget)


def worst(plan: Plan, row_norm: float, weight: float, cut: float = 1.0) -> float:
    """Return the worst exact delta (or epsilon) over the budget's, for a record of this weight."""
    budget, found = plan.budget, 0.0
    for a, b in neighbours(plan, row_norm, 0.0, budget.relation):
        # the record that differs is the last one; under REPLACE another one takes its place
        a = replace(a, weights=np.append(np.ones(len(a.y) - 1), share(weight)))
        if budget.relation is Relation.REPLACE:
            b = replace(b, weights=np.append(np.ones(len(b.y) - 1), share(MOST)))
        for one, other in ((a, b), (b, a)):
            if budget.is_pure:
                radius = plan.settings["noise_radius"] * cut
                found = max(found, exact_epsilon(one, other, radius) / budget.epsilon)
            else:
                std = plan.settings["noise_std"] * cut
                found = max(found, exact_delta(one, other, std, budget.epsilon) / budget.delta)
    return found


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("name", LOSSES)
def test_approximate(name: str, weight: float) -> None:
    scored = LOSSES[name]
    for row_norm in (0.3, 12.0):
        for ridge in scored.ridges(row_norm, BUDGET.epsilon):
            assert worst(planned(scored, row_norm, BUDGET, ridge), row_norm, weight) <= 1.002


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("name", LOSSES)
def test_approximate_under_replacement(name: str, weight: float) -> None:
    budget = replace(BUDGET, relation=Relation.REPLACE)
    if not LOSSES[name].loss.monotone:
        with pytest.raises(CannotSolve):
            planned(LOSSES[name], 1.0, budget)
        return
    for ridge in (None, 1.0, 30.0):
        assert worst(planned(LOSSES[name], 1.0, budget, ridge), 1.0, weight) <= 1.002


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("name", LOSSES)
def test_pure(name: str, relation: Relation, weight: float) -> None:
    scored = LOSSES[name]
    for ridge in scored.ridges(1.0, 1.0):
        plan = planned(scored, 1.0, Budget(1.0, 0.0, relation), ridge)
        assert worst(plan, 1.0, weight) <= 1.0


def logistic_excess(event: LogisticObjective, epsilon: float, weights: tuple[float, ...]) -> float:
    """Return the greatest exact delta over the claimed one for a record of one of these weights."""
    loss, lam, s = LogisticLoss(), np.array([event.regularization]), event.noise_std
    claim = float(event.profile(np.array([epsilon]))[0])
    found = 0.0
    for x, y in ([[], []], [[0.4, -1.0], [1.0, -1.0]]):
        rows, labels = event.row_norm * np.array(x), np.array(y)
        without = Mechanism(loss, rows[:, None], labels, lam)
        for weight in weights:
            extended = Mechanism(
                loss,
                np.append(rows, event.row_norm)[:, None],
                np.append(labels, 1.0),
                lam,
                np.append(np.ones(len(labels)), weight),
            )
            for one, other in ((without, extended), (extended, without)):
                found = max(found, exact_delta(one, other, s, epsilon) / claim)
    return found


# lam from where the Jacobian costs at every epsilon (k > 2) to where it is free at each (k < 0):
# there a record of weight 1 cannot be told from Gaussian noise, and k of a smaller one is positive.
RIDGES = [
    pytest.param(ridge, marks=() if ridge in (2.0, 8.1) else pytest.mark.slow)
    for ridge in (0.2, 0.6, 2.0, 7.9, 8.1, 20.0)
]
SHARES = (0.01, 0.1, 0.4, 0.7, 1.0)


@pytest.mark.parametrize("ridge", RIDGES)
def test_the_heaviest_record_is_the_worst(ridge: float) -> None:
    event = LogisticObjective(1.0, ridge, noise_std=2.0)
    for epsilon in (0.01, 0.2, 0.6, 1.5):
        assert logistic_excess(event, epsilon, SHARES) <= 1 + 1e-3


def test_half_the_weight_forgotten_is_caught() -> None:
    event = LogisticObjective(1.0, 2.0, noise_std=2.0)
    assert logistic_excess(event, 0.6, (2.0,)) > 1.5


Records = list[tuple[float, float]]  # weight and label


def softmax_excess(shares: tuple[float, ...]) -> float:
    """Return the greatest delta over the claimed one for three classes and one feature, estimated.

    W has three entries, one a class: b = -(gradient), and the density of W is that of b times the
    determinant. The other records are none, one of the same class, or forty of another, which
    leave the one that differs with its steepest slope. Over 2,000 draws delta is known to about a
    tenth of itself; the union bound over classes leaves more than that.
    """
    lam, s, epsilon = 2.0, 1.5, 1.0
    claim = float(SoftmaxObjective(1.0, 3, lam, s).profile(np.array([epsilon]))[0])
    z = np.random.default_rng(0).standard_normal((2_000, 3))
    loss, eye = SoftmaxLoss(3), np.eye(3)

    def slopes(w: Array, records: Records) -> tuple[Array, Array]:
        gradient, hessian = lam * w, np.broadcast_to(lam * eye, (len(w), 3, 3)).copy()
        for weight, label in records:  # each has the row 1
            p = softmax(w, axis=1)
            gradient = gradient + weight * loss.d1(w, np.full(len(w), label))
            hessian += weight * (p[:, :, None] * eye - p[:, :, None] * p[:, None, :])
        return gradient, hessian

    def delta(of: Records, against: Records) -> float:
        b, w = s * z, np.zeros_like(z)
        for _ in range(12):
            gradient, hessian = slopes(w, of)
            w = w - np.linalg.solve(hessian, (gradient + b)[..., None])[..., 0]
        logs = []
        for records in (of, against):
            gradient, hessian = slopes(w, records)
            log_noise = -np.sum(gradient**2, axis=1) / (2 * s**2)
            logs.append(log_noise + np.linalg.slogdet(hessian)[1])
        return float(np.mean(-np.expm1(np.minimum(epsilon - (logs[0] - logs[1]), 0.0))))

    others: tuple[Records, ...] = ([], [(1.0, 0.0)], [(40.0, 1.0)])
    pairs = [(rest, [*rest, (a, 0.0)]) for a in shares for rest in others]
    return max(max(delta(a, b), delta(b, a)) for a, b in pairs) / claim


def test_softmax() -> None:
    assert softmax_excess(SHARES) <= 1.0


def test_softmax_of_half_the_weight_is_caught() -> None:
    assert softmax_excess((2.0,)) > 1.2


# A test of the tests: each mutant breaks the promise and must be seen to.

SMALL = Budget(1.0, 1e-3)


def test_weights_not_clipped_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_module, "shares_of", lambda w, bounds: w / bounds.max_weight)
    assert worst(planned(LOGISTIC, 1.0, SMALL), 1.0, MOST) <= 1.002
    assert worst(planned(LOGISTIC, 1.0, SMALL), 1.0, 2 * MOST) > 1.5


def test_the_greatest_weight_forgotten_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        block_module, "shares_of", lambda w, bounds: np.clip(w, 0, bounds.max_weight)
    )
    for name in ("logistic-binary", "linear-number", "quantile-number"):
        assert worst(planned(LOSSES[name], 1.0, SMALL), 1.0, MOST) > 1.5


def test_noise_cut_by_a_tenth_is_caught() -> None:
    assert worst(planned(LOGISTIC, 1.0, SMALL), 1.0, MOST, cut=0.9) > 1.1
