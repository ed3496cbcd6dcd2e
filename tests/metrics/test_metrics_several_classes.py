"""Several classes: scikit-learn's numbers without noise, intervals that hold them with it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from tacit.metrics import evaluation_plan
from tacit.metrics.evaluate import evaluation_of
from tacit.privacy import Budget, Guarantee
from tests.metrics.helpers import INFINITE, Array, coverage, exact, simulated, sums_of

CLASSES = ("a", "b", "c", "d")


def scored(n_records: int) -> tuple[Array, np.ndarray]:
    rng = np.random.default_rng(3)
    codes = rng.choice(4, n_records, p=[0.4, 0.3, 0.2, 0.1])
    scores = rng.normal(size=(n_records, 4)) + 1.5 * np.eye(4)[codes]
    odds = np.exp(1.5 * scores) * [0.4, 0.3, 0.2, 0.1]
    return odds / odds.sum(axis=1, keepdims=True), np.array(CLASSES)[codes]


def test_without_noise_it_says_what_scikit_learn_says() -> None:
    answers, labels = scored(20_000)
    plan = evaluation_plan(INFINITE, classes=CLASSES, bins=64)
    found = evaluation_of(plan, sums_of(plan, answers, labels), Guarantee(plan.event))
    said = np.array(CLASSES)[answers.argmax(axis=1)]
    assert found["accuracy"].value == metrics.accuracy_score(labels, said)
    assert np.array_equal(found.confusion.counts, metrics.confusion_matrix(labels, said))
    assert found["log_loss"].value == pytest.approx(metrics.log_loss(labels, answers), abs=0.005)
    squares = ((answers - (labels[:, None] == CLASSES)) ** 2).sum(axis=1).mean()
    assert found["brier"].value == pytest.approx(squares, abs=0.005)
    for j, name in enumerate(CLASSES):
        area = metrics.roc_auc_score(labels == name, answers[:, j])
        assert found[f"auc {name}"].value == pytest.approx(area, abs=0.002)


@pytest.mark.slow
def test_intervals_cover_what_the_same_records_say_without_noise() -> None:
    answers, labels = scored(40_000)
    plan = evaluation_plan(Budget(1.0, 1e-6), classes=CLASSES, bins=16)
    sums = sums_of(plan, answers, labels)
    for name, share in coverage(simulated(plan, sums, 1_000), exact(plan, sums)).items():
        assert 0.93 <= share <= 0.97, (name, share)


def test_areas_of_rare_classes_are_refused() -> None:
    answers, labels = scored(5_000)
    plan = evaluation_plan(Budget(0.3, 1e-6), classes=CLASSES, bins=16)
    found = simulated(plan, sums_of(plan, answers, labels), 1)[0]
    assert "auc d" in found.refused
    assert found["accuracy"].high - found["accuracy"].low < 0.1
