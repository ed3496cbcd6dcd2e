from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import pkgutil
from typing import Any

import numpy as np
import pytest

from tacit.erm import losses
from tacit.erm.losses import (
    LOSSES,
    AnyLoss,
    DistanceLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    Loss,
    PoissonLoss,
    QuantileLoss,
    SmoothHingeLoss,
    SoftmaxLoss,
    SquaredDistanceLoss,
    SquaredLoss,
)
from tacit.erm.losses.base import clip_slopes
from tacit.records import Bounds, MemoryRecords
from tacit.testing import check_loss, check_point_loss

MARGIN = (-1.0, 1.0)
REAL = (-3.0, 0.0, 0.5, 2.0)

ALL = [case for kind in LOSSES.values() for case in kind.examples()]
CASES = [(loss, labels) for loss, labels in ALL if loss.is_linear]
POINTS = [loss for loss, _ in ALL if not loss.is_linear]


@pytest.mark.parametrize("seed", [0, 41])
@pytest.mark.parametrize(("loss", "labels"), CASES, ids=lambda case: str(case)[:40])
def test_losses_are_what_they_declare(loss, labels, seed):
    check_loss(loss, labels, seed=seed)


@pytest.mark.parametrize("dimension", [1, 2, 30])
@pytest.mark.parametrize("loss", POINTS, ids=str)
def test_point_losses_are_what_they_declare(loss, dimension):
    check_point_loss(loss, dimension)


def kinds_below(kind):
    return {kind}.union(*map(kinds_below, kind.__subclasses__()))


def test_every_loss_of_the_package_is_in_the_table():
    for module in pkgutil.iter_modules(losses.__path__):
        importlib.import_module(f"{losses.__name__}.{module.name}")
    own = {kind for kind in kinds_below(AnyLoss) if kind.__module__.startswith("tacit.")}
    assert {kind for kind in own if not inspect.isabstract(kind)} == set(LOSSES.values())
    assert {kind.__name__ for kind in own} == set(losses.__all__)


def test_every_loss_has_examples_and_a_word_that_files_may_rely_on():
    for word, kind in LOSSES.items():
        assert word == f"{kind.key}_loss"
        assert kind.examples()
        assert {type(loss) for loss, _ in kind.examples()} == {kind}


# A test of the tests: each mistake is one that has shipped somewhere.


def mutant(loss, **changes):
    """Return the loss with some of what it declares or computes replaced."""
    kind = type(loss)
    members = {
        name: property(lambda self, v=value: v) if isinstance(value, float | int) else value
        for name, value in changes.items()
    }
    wrong: Any = dataclasses.dataclass(frozen=True)(type(f"Wrong{kind.__name__}", (kind,), members))
    return wrong(**dataclasses.asdict(loss))


FINITE = [c for c in CASES if math.isfinite(c[0].lipschitz)]
SMOOTH = [c for c in CASES if math.isfinite(c[0].smoothness)]


@pytest.mark.parametrize(("loss", "labels"), FINITE, ids=lambda case: str(case)[:40])
@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_wrong_lipschitz_constant_is_caught(loss, labels, factor):
    wrong = mutant(loss, lipschitz=factor * loss.lipschitz)
    with pytest.raises(AssertionError, match=r"lipschitz of .*Wrong"):
        check_loss(wrong, labels)


@pytest.mark.parametrize(("loss", "labels"), SMOOTH, ids=lambda case: str(case)[:40])
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_wrong_smoothness_is_caught(loss, labels, factor):
    wrong = mutant(loss, smoothness=factor * loss.smoothness)
    with pytest.raises(AssertionError, match=r"smoothness of|d2 of"):
        check_loss(wrong, labels)


@pytest.mark.parametrize(
    ("loss", "labels", "changes", "message"),
    [
        (LogisticLoss(), MARGIN, {"monotone": False}, "declares monotone = False"),
        (HuberLoss(), REAL, {"monotone": True}, "declares monotone = True"),
        (HingeLoss(), MARGIN, {"smoothness": 1.0}, "smoothness of"),
        (
            LogisticLoss(),
            MARGIN,
            {"d1": lambda self, z, y: 1.001 * LogisticLoss.d1(self, z, y)},
            "d1 of",
        ),
        (HuberLoss(), REAL, {"d1": lambda self, z, y: -HuberLoss.d1(self, z, y)}, "d1 of"),
        (LogisticLoss(), MARGIN, {"d2": lambda self, z, y: 0.25 + 0 * z}, "d2 of"),
        (LogisticLoss(), MARGIN, {"d2": lambda self, z, y: -LogisticLoss.d2(self, z, y)}, "d2 of"),
        (HuberLoss(), REAL, {"value": lambda self, z, y: -HuberLoss.value(self, z, y)}, "d1 of"),
        (SoftmaxLoss(3), (0.0, 1.0), {"lipschitz": 1.0}, "lipschitz of"),
        (SoftmaxLoss(3), (0.0, 1.0), {"hessian_trace": 0.6}, "hessian_trace of"),
        (SoftmaxLoss(3), (0.0, 1.0), {"hessian_trace": 0.7}, "hessian_trace of"),
        (SoftmaxLoss(3), (0.0, 1.0), {"hessian_rank": 1}, "hessian_rank of"),
        (SoftmaxLoss(3), (0.0, 1.0), {"hessian_times": Loss.hessian_times}, "bend of"),
        (
            SoftmaxLoss(10),
            (0.0, 1.0),
            # the order of additions follows from the number of records
            {"d1": lambda self, z, y: _naive_slopes(z, y)},
            "d1 of .* depends on the records around",
        ),
        (
            LogisticLoss(),
            MARGIN,
            {"d2": lambda self, z, y: LogisticLoss.d2(self, z, y) * (1 + 2.0**-52 * (len(z) > 1))},
            "d2 of .* depends on the records around",
        ),
        (LogisticLoss(), MARGIN, {"hessian_trace": 0.2}, "hessian_trace of"),
        (LogisticLoss(), MARGIN, {"hessian_rank": 2}, "hessian_rank of"),
        (LogisticLoss(), MARGIN, {"hessian_times": lambda self, z, y, s: s / 4}, "bend of"),
        (
            SoftmaxLoss(3),
            (0.0, 1.0),
            {"d2": lambda self, z, y: 0.99 * SoftmaxLoss.d2(self, z, y)},
            "d2 of",
        ),
        (
            SoftmaxLoss(3),
            (0.0, 1.0),
            {"value": lambda self, z, y: 1.001 * SoftmaxLoss.value(self, z, y)},
            "d1 of",
        ),
    ],
)
def test_a_wrong_loss_is_caught(loss, labels, changes, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(mutant(loss, **changes), labels)


def _naive_slopes(score, label):
    p = np.exp(np.ascontiguousarray(score.T) - score.max(axis=1))
    p /= p.sum(axis=0)
    p[label.astype(int), np.arange(len(score))] -= 1.0
    return p.T.copy()


def test_a_loss_that_can_be_changed_is_caught():
    thawed = dataclasses.make_dataclass("Thawed", [], bases=())
    with pytest.raises(AssertionError, match="frozen"):
        check_loss(thawed(), MARGIN)

    def greedy(self, z, y):
        d1 = LogisticLoss.d1(self, z, y)
        z *= 0.0
        return d1

    in_place = mutant(LogisticLoss(), d1=greedy)
    with pytest.raises(AssertionError, match="changes its arguments"):
        check_loss(in_place, MARGIN)


@pytest.mark.parametrize(
    ("loss", "changes", "message"),
    [
        (DistanceLoss(), {"lipschitz": 0.95}, "lipschitz of"),
        (DistanceLoss(), {"lipschitz": 1.05}, "lipschitz of"),
        (DistanceLoss(), {"smoothness": 100.0}, "smoothness of"),
        (SquaredDistanceLoss(), {"smoothness": 0.9}, "smoothness of"),
        (SquaredDistanceLoss(), {"smoothness": 1.1}, "smoothness of"),
        (SquaredDistanceLoss(), {"gradients": lambda self, w, x: 1.01 * (w - x)}, "subgradients"),
        (SquaredDistanceLoss(), {"gradients": lambda self, w, x: x - w}, "subgradients"),
        (
            DistanceLoss(),
            # squares of 1e-162 lose their digits: vectors longer than 1
            {"gradients": lambda self, w, x: _naive_directions(w - x)},
            "lipschitz of",
        ),
    ],
)
def test_a_wrong_point_loss_is_caught(loss, changes, message):
    with pytest.raises(AssertionError, match=message):
        check_point_loss(mutant(loss, **changes))


def _naive_directions(away):
    size = np.linalg.norm(away, axis=1, keepdims=True)
    return np.where(size > 0, away / np.where(size > 0, size, 1.0), 0.0)


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: HuberLoss(0.0), r"knot must be positive.*got 0\.0; pass the residual"),
        (lambda: HuberLoss(math.inf), "use SquaredLoss"),
        (lambda: HuberLoss(math.nan), "knot"),
        (lambda: QuantileLoss(1.0), r"level must be between 0 and 1.*0\.5 is a median"),
        (lambda: QuantileLoss(0.5, -1.0), "smoothing must be .*0 is the exact loss"),
        (lambda: QuantileLoss(0.5, math.inf), "smoothing"),
        (lambda: SmoothHingeLoss(0.0), r"smoothing must be in \(0, 1\].*try 0\.5"),
        (lambda: SmoothHingeLoss(2.0), "smoothing"),
        (lambda: SquaredLoss(score_bound=-1.0), "score_bound must be positive.*leave it infinite"),
        (lambda: SquaredLoss(label_bound=math.nan), "label_bound must be positive"),
        (lambda: PoissonLoss(slope_bound=0.0), "slope_bound must be positive.*leave it infinite"),
        (lambda: PoissonLoss(1.0, -2.0), "label_bound must be positive"),
        (lambda: SoftmaxLoss(1), "n_classes must be a whole number of at least 2.*such as 3"),
        (lambda: SoftmaxLoss(2.5), "n_classes"),
    ],
)
def test_wrong_parameters_are_refused_with_a_remedy(make, remedy):
    with pytest.raises(ValueError, match=remedy):
        make()


def test_slopes_do_not_exceed_the_constant_by_rounding():
    for bound in (0.1, 1.0, 3.7):
        label = np.linspace(0.0, 1e6, 1001)
        score = np.log(np.maximum(label + bound, 1e-9)) + 1e-3
        assert np.max(np.abs(PoissonLoss(bound, 1e6).d1(score, label))) <= bound


def test_losses_are_finite_far_out():
    score = np.array([-1e300, -800.0, 800.0, 1e300])
    for loss, labels in CASES:
        if not isinstance(loss, Loss) or loss.n_outputs > 1 or not math.isfinite(loss.lipschitz):
            continue
        for label in labels:
            assert np.all(np.isfinite(loss.d1(score, np.full(4, label))))


@pytest.mark.parametrize("n_classes", [2, 7, 8, 9, 40, 129, 9000])
def test_slopes_of_classes_are_a_function_of_the_record_alone(n_classes):
    """Whatever the block and its layout, and however many classes: NumPy adds 8 on in pairs."""
    rng, n, loss = np.random.default_rng(n_classes), 12, SoftmaxLoss(n_classes)
    scores = 3 * rng.standard_normal((n, n_classes))
    labels = rng.integers(0, n_classes, n).astype(float)
    for method in (loss.d1, loss.d2):
        whole = method(scores, labels)
        for size in (1, 2, 3, 5, n):
            for start in range(n - size + 1):
                at = slice(start, start + size)
                for order in ("C", "F"):
                    part = method(np.array(scores[at], order=order), labels[at])
                    assert np.array_equal(part, whole[at]), (method.__name__, size, order)


@pytest.mark.parametrize("n_classes", [3, 10, 129])
def test_sizes_and_traces_of_slopes_do_not_depend_on_their_layout(n_classes):
    """A loss of somebody else's may hand over rows one column after another."""
    rows = np.random.default_rng(0).standard_normal((30, n_classes))

    class Columns(SoftmaxLoss):
        def d2(self, score, label):
            return np.asfortranarray(rows[: len(score)] ** 2)

    clipped = clip_slopes(np.asfortranarray(rows), 0.5)
    for i, row in enumerate(rows):
        assert np.array_equal(clip_slopes(row[None], 0.5)[0], clipped[i])
    bounds = Bounds(n_classes=n_classes)

    def traces(n):
        table = MemoryRecords(np.ones((n, 1)), np.zeros(n), bounds)
        of = Columns(n_classes)
        return table.sum(lambda b: (of.hessian_trace_per_record(b, np.zeros((1, n_classes)))[:1],))[
            0
        ]

    assert traces(1) == traces(30)
