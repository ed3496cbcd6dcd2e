from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse

from tacit.erm import Objective
from tacit.erm.losses import (
    DistanceLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
    SmoothHingeLoss,
    SoftmaxLoss,
    SquaredDistanceLoss,
    SquaredLoss,
)
from tacit.erm.losses.base import clip_slopes
from tacit.erm.objective import n_changed, records_gradient
from tacit.privacy import Relation
from tacit.records import Bounds, MemoryRecords

NORMS = [
    pytest.param(r, marks=() if r in (0.1, 12.0) else pytest.mark.slow) for r in (0.1, 1, 12, 100)
]
LOSSES = [
    (LogisticLoss(), (-1.0, 1.0)),
    (SmoothHingeLoss(0.5), (-1.0, 1.0)),
    (HuberLoss(0.7), (-2.0, 2.0)),
    (SquaredLoss(3.0, 2.0), (-2.0, 2.0)),
    (QuantileLoss(0.8, smoothing=0.3), (-2.0, 2.0)),
    (PoissonLoss(4.0, 6.0), (0.0, 6.0)),
]
N_FEATURES = 3


def bounds_of(row_norm, intercept, labels=(-1.0, 1.0)):
    return Bounds(row_norm=row_norm, label_range=labels, intercept=0.25 * row_norm * intercept)


def worst_records(objective, rng, n=400):
    """Return single records, most far beyond the bounds, with both extreme labels."""
    d = N_FEATURES
    rows = rng.standard_normal((n, d)) * objective.bounds.row_norm * 10
    if isinstance(objective.loss, SoftmaxLoss):
        labels = np.arange(n) % objective.loss.n_classes
    else:
        labels = np.resize(objective.bounds.label_range, n)
    return rows, labels.astype(float)


def greatest(objective, rng):
    """Return the greatest gradient norm and Hessian norm of one record over many weights."""
    rows, labels = worst_records(objective, rng)
    gradients, hessians = [0.0], [0.0]
    R = objective.row_norm
    for i in range(len(rows)):
        records = MemoryRecords(rows[i : i + 1], labels[i : i + 1], objective.bounds)
        vector = records._block(0, 1).points()[0]
        direction = vector / np.linalg.norm(vector)
        score = rng.choice([rng.uniform(-3, 3), rng.normal(0, 1000), rng.uniform(2.2, 2.31)])
        if isinstance(objective.loss, SoftmaxLoss):
            k = objective.loss.n_classes
            target = rng.standard_normal(k) * rng.choice([0.1, 50.0])
            if i % 2:
                target[rng.permutation(k)[:2]] = 500.0
            w = np.outer(direction, target / R)
            p = objective.loss.d1(target[None], np.zeros(1))[0] + np.eye(k)[0]
            hessians.append(
                np.linalg.norm(np.diag(p) - np.outer(p, p), 2) * np.linalg.norm(vector) ** 2
            )
        else:
            w = direction * score / R
            (hessian,) = records.sum(lambda b, w=w: (objective.loss.hessian(b, w),))
            hessians.append(np.linalg.norm(hessian, 2))
        gradients.append(np.linalg.norm(records_gradient(objective, records, w)))
    return max(gradients), max(hessians)


@pytest.mark.parametrize("intercept", [0, 1], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("row_norm", NORMS)
@pytest.mark.parametrize(("loss", "labels"), LOSSES, ids=lambda case: str(case)[:30])
def test_constants_are_the_greatest_norms_of_one_record(loss, labels, row_norm, intercept):
    objective = Objective(loss, bounds_of(row_norm, intercept, labels))
    gradient, hessian = greatest(objective, np.random.default_rng(7))
    assert 0.98 * objective.lipschitz <= gradient <= objective.lipschitz
    assert 0.98 * objective.smoothness <= hessian <= objective.smoothness
    assert objective.loss.hessian_rank == 1
    assert objective.hessian_trace == objective.smoothness


@pytest.mark.parametrize("intercept", [0, 1], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("row_norm", NORMS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_constants_of_softmax(n_classes, row_norm, intercept):
    objective = Objective(SoftmaxLoss(n_classes), bounds_of(row_norm, intercept, (0.0, 9.0)))
    gradient, hessian = greatest(objective, np.random.default_rng(8))
    assert 0.98 * objective.lipschitz <= gradient <= objective.lipschitz
    assert 0.98 * objective.smoothness <= hessian <= objective.smoothness * (1 + 1e-12)
    # diag(p) - p p' at p = 1/K has trace 1 - 1/K and rank K - 1
    p = np.full(n_classes, 1 / n_classes)
    at_centre = np.diag(p) - np.outer(p, p)
    trace = np.trace(at_centre) * objective.row_norm**2
    assert objective.hessian_trace == pytest.approx(trace)
    assert objective.loss.hessian_rank == np.linalg.matrix_rank(at_centre)


@dataclasses.dataclass(frozen=True)
class RForRSquared(Objective):
    @property
    def smoothness(self):
        return self.loss.smoothness * self.row_norm


@dataclasses.dataclass(frozen=True)
class InterceptForgotten(Objective):
    @property
    def row_norm(self):
        return self.bounds.row_norm


@dataclasses.dataclass(frozen=True)
class NoRowNorm(Objective):
    @property
    def lipschitz(self):
        return self.loss.lipschitz


@pytest.mark.parametrize("row_norm", [0.1, 12.0, 100.0])
@pytest.mark.parametrize("kind", [RForRSquared, InterceptForgotten, NoRowNorm])
def test_mistakes_in_the_constants_are_caught(kind, row_norm):
    wrong = kind(LogisticLoss(), bounds_of(row_norm, 1))
    right = Objective(LogisticLoss(), wrong.bounds)
    gradient, hessian = greatest(right, np.random.default_rng(9))
    sound = (
        0.98 * wrong.lipschitz <= gradient <= wrong.lipschitz
        and 0.98 * wrong.smoothness <= hessian <= wrong.smoothness
    )
    assert not sound


def records_of(objective, n=40, seed=0, sparse=False):
    rows, labels = worst_records(objective, np.random.default_rng(seed), n)
    rows[::3] /= 50  # some within the norm
    return MemoryRecords(scipy.sparse.csr_array(rows) if sparse else rows, labels, objective.bounds)


def numerical(function, w):
    step = 1e-6 * max(1.0, np.abs(w).max())
    moves = [step * unit.reshape(w.shape) for unit in np.eye(w.size)]
    return np.array([(function(w + m) - function(w - m)) / (2 * step) for m in moves])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [0, 1])
@pytest.mark.parametrize(
    ("loss", "labels"), [*LOSSES, (SoftmaxLoss(3), (0.0, 2.0))], ids=lambda case: str(case)[:30]
)
def test_gradient_and_curvature_are_derivatives(loss, labels, intercept, sparse):
    objective = Objective(loss, bounds_of(1.0, intercept, labels))
    records = records_of(objective, sparse=sparse)
    shape = objective.shape(N_FEATURES)
    assert math.prod(shape) == objective.dimension(N_FEATURES)
    w = np.random.default_rng(1).standard_normal(shape)

    def value(at):
        return float(records.sum(lambda b: (np.asarray(np.sum(objective.loss.values(b, at))),))[0])

    def gradient(at):
        return records_gradient(objective, records, at)

    assert gradient(w).shape == shape
    assert np.allclose(numerical(value, w), gradient(w).ravel(), rtol=1e-5, atol=1e-5)
    if isinstance(loss, SoftmaxLoss):
        with pytest.raises(TypeError, match="one score"):
            objective.loss.hessian(records._block(0, 1), w)
    else:
        (hessian,) = records.sum(lambda b: (objective.loss.hessian(b, w),))
        assert np.allclose(numerical(gradient, w), hessian, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss", [SquaredDistanceLoss(), DistanceLoss()], ids=str)
def test_gradients_of_point_losses(loss):
    objective = Objective(loss, Bounds(row_norm=2.0))
    records = MemoryRecords(
        np.random.default_rng(2).standard_normal((30, 3)) * 3, None, objective.bounds
    )
    w = np.array([0.3, -0.2, 1.0])

    def value(at):
        return float(records.sum(lambda b: (np.asarray(np.sum(objective.loss.values(b, at))),))[0])

    assert np.allclose(numerical(value, w), records_gradient(objective, records, w), atol=1e-6)
    assert not objective.is_linear_model
    assert objective.lipschitz == loss.lipschitz
    assert objective.smoothness == loss.smoothness
    with pytest.raises(TypeError, match="one score"):
        objective.loss.hessian(records._block(0, 1), w)


@pytest.mark.parametrize("clip", [1e-3, 0.5, 7.0])
@pytest.mark.parametrize(
    ("loss", "labels"),
    [
        (SquaredLoss(), (-50.0, 50.0)),
        (LogisticLoss(), (-1.0, 1.0)),
        (HingeLoss(), (-1.0, 1.0)),
        (SoftmaxLoss(3), (0.0, 2.0)),
        (SquaredDistanceLoss(), None),
        (DistanceLoss(), None),
    ],
    ids=lambda case: str(case)[:25],
)
def test_clipped_gradients_of_one_record_are_within_the_clip(loss, labels, clip):
    is_point = labels is None
    bounds = Bounds(row_norm=12.0, label_range=labels, intercept=0.0 if is_point else 3.0)
    objective = Objective(loss, bounds)
    rng = np.random.default_rng(10)
    rows = rng.standard_normal((100, 3)) * np.geomspace(1e-3, 1e6, 100)[:, None]
    y = None if is_point else np.rint(rng.uniform(labels[0], labels[1], 100))
    if labels == (-1.0, 1.0):
        y = rng.choice([-1.0, 1.0], 100)
    w = rng.standard_normal(objective.shape(3)) * 5
    longest, total = 0.0, np.zeros_like(w)
    for i in range(100):
        one = MemoryRecords(rows[i : i + 1], None if y is None else y[i : i + 1], bounds)
        gradient = records_gradient(objective, one, w, clip=clip)
        longest = max(longest, float(np.linalg.norm(gradient)))
        total = total + gradient
    assert longest <= clip * (1 + 1e-12)
    assert longest > 0.5 * min(clip, objective.lipschitz)
    together = records_gradient(objective, MemoryRecords(rows, y, bounds), w, clip=clip)
    assert np.allclose(together, total, rtol=1e-9, atol=1e-12 * clip)


def test_clip_slopes():
    one = np.array([-3.0, -0.5, 0.0, 0.5, 1e300])
    assert clip_slopes(one, 1.0).tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert clip_slopes(one, math.inf) is one
    several = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    clipped = clip_slopes(several, 1.0)
    assert np.allclose(clipped, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]])
    assert np.array_equal(several, [[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])


def test_neighbours():
    assert n_changed(Relation.ADD_REMOVE) == 1
    assert n_changed(Relation.REPLACE) == 2


def test_score_unit_and_regularization():
    objective = Objective(SquaredLoss(), Bounds(label_range=(-3.0, 2.0)))
    assert objective.score_unit == 3.0
    assert Objective(LogisticLoss(), Bounds()).score_unit == 1.0
    assert objective.with_regularization(2.0).regularization == 2.0
    assert objective.regularization is None
    for wrong in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"regularization must be finite.*None lets theory"):
            Objective(LogisticLoss(), Bounds(), regularization=wrong)


def test_a_loss_with_labels_needs_labels():
    objective = Objective(LogisticLoss(), Bounds())
    records = MemoryRecords(np.ones((2, 3)), None, Bounds())
    with pytest.raises(ValueError, match="needs labels"):
        records_gradient(objective, records, np.zeros(3))


@pytest.mark.parametrize("mechanism", ["objective_perturbation", "output_perturbation"])
@pytest.mark.parametrize("case", ["logistic", "squared", "softmax", "poisson"])
def test_labels_no_loss_allows_are_moved_to_where_its_constants_hold(case, mechanism) -> None:  # type: ignore[no-untyped-def]
    from tacit.erm import minimize
    from tacit.erm.losses import LogisticLoss, PoissonLoss, SoftmaxLoss, SquaredLoss
    from tacit.privacy import Budget
    from tacit.records import Bounds, MemoryRecords
    from tacit.testing import replay

    loss, wild = {
        "logistic": (LogisticLoss(), 50.0),
        "squared": (SquaredLoss(2.0, 1.0), -90.0),
        "softmax": (SoftmaxLoss(3), 7.0),
        "poisson": (PoissonLoss(2.0, 5.0), -40.0),
    }[case]
    bounds = Bounds(label_range=(-100.0, 100.0) if case == "squared" else None)
    rows = np.random.default_rng(0).standard_normal((30, 2))

    def fit(n: int) -> None:
        labels = np.append(np.ones(29), wild)
        records = MemoryRecords(rows[:n], labels[:n], bounds)
        minimize(records, Objective(loss, bounds, 30.0), Budget(1.0, 1e-5), mechanism)

    assert replay(fit, 30, 29) == 1
