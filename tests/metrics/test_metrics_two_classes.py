"""Two classes: scikit-learn's numbers without noise, intervals that hold them with it, pins."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from tacit.metrics import evaluation_plan
from tacit.metrics.evaluate import evaluation_of
from tacit.metrics.metrics import beats_in
from tacit.metrics.planning import accuracy_std, bin_edges
from tacit.privacy import Budget, Guarantee, Relation
from tests.metrics.helpers import INFINITE, coverage, exact, scored, simulated, sums_of

CLASSES = (0, 1)


@pytest.mark.parametrize("n_ones", [12_000, 4_000, 1_200])
def test_without_noise_it_says_what_scikit_learn_says(n_ones: int) -> None:
    answers, labels = scored(24_000, n_ones)
    plan = evaluation_plan(INFINITE, classes=CLASSES, bins=64)
    found = evaluation_of(plan, sums_of(plan, answers, labels), Guarantee(plan.event))
    said = (answers > 0.5).astype(int)
    assert found["accuracy"].value == metrics.accuracy_score(labels, said)
    assert np.array_equal(found.confusion.counts, metrics.confusion_matrix(labels, said))
    assert found["auc"].value == pytest.approx(metrics.roc_auc_score(labels, answers), abs=0.002)
    assert found["brier"].value == pytest.approx(
        metrics.brier_score_loss(labels, answers), abs=0.005
    )
    assert found["log_loss"].value == pytest.approx(metrics.log_loss(labels, answers), abs=0.005)
    assert found["calibration_bias"].value == pytest.approx(np.mean(answers - labels), abs=0.002)
    assert found.n_records.value == 24_000
    for estimate in found.metrics.values():  # no noise, no interval
        assert estimate.low == pytest.approx(estimate.value, abs=1e-12)
        assert estimate.high == pytest.approx(estimate.value, abs=1e-12)


def test_scores_on_an_edge_are_counted_as_scikit_learn_does() -> None:
    edges = bin_edges(64)
    answers, labels = np.tile(edges, 40), np.repeat([0, 1], [65 * 25, 65 * 15])
    plan = evaluation_plan(INFINITE, classes=CLASSES, bins=64)
    found = evaluation_of(plan, sums_of(plan, answers, labels), Guarantee(plan.event))
    # at every edge, not at one half alone
    roc = found.curves["roc"]
    for place, edge in enumerate(edges[::-1]):
        above = answers > edge if 0 < edge < 1 else np.full(len(answers), edge == 0)
        assert roc.x[place] == pytest.approx(np.mean(above[labels == 0]), abs=1e-12)
        assert roc.y[place] == pytest.approx(np.mean(above[labels == 1]), abs=1e-12)


def test_curves_are_scikit_learns_at_the_edges() -> None:
    answers, labels = scored(20_000, 5_000)
    plan = evaluation_plan(INFINITE, classes=CLASSES, bins=32)
    found = evaluation_of(plan, sums_of(plan, answers, labels), Guarantee(plan.event))
    pr = found.curves["precision_recall"]
    edges = bin_edges(32)
    for edge, recall, precision in zip(edges[-2::-1], pr.x, pr.y, strict=True):
        said = answers > edge
        if said.any():
            assert recall == pytest.approx(metrics.recall_score(labels, said))
            assert precision == pytest.approx(metrics.precision_score(labels, said))
    calibration = found.curves["calibration"]
    for middle, share in zip(calibration.x, calibration.y, strict=True):
        place = np.searchsorted(edges, middle)
        inside = (answers > edges[place - 1]) & (answers <= edges[place])
        assert share == pytest.approx(labels[inside].mean())


@pytest.mark.parametrize(
    ("epsilon", "bins"),
    [(0.1, 16), *(pytest.param(1.0, bins, marks=pytest.mark.slow) for bins in (16, 64))],
)
def test_intervals_cover_what_the_same_records_say_without_noise(epsilon: float, bins: int) -> None:
    answers, labels = scored(16_000, 4_000)
    plan = evaluation_plan(Budget(epsilon, 1e-6), classes=CLASSES, bins=bins)
    sums = sums_of(plan, answers, labels)
    shares = coverage(simulated(plan, sums, 1_000), exact(plan, sums))
    assert set(shares) == {"accuracy", "auc", "brier", "log_loss", "calibration_bias"}
    for name, share in shares.items():
        assert 0.93 <= share <= 0.97, (name, share)


def test_too_narrow_an_interval_would_be_noticed() -> None:
    answers, labels = scored(16_000, 4_000)
    plan = evaluation_plan(Budget(0.1, 1e-6), classes=CLASSES, bins=16)
    sums = sums_of(plan, answers, labels)
    rng = np.random.default_rng(1)
    louder = [
        evaluation_of(
            plan, sums + rng.normal(0, 1.3 * plan.noise_std, sums.shape), Guarantee(plan.event)
        )
        for _ in range(400)
    ]
    assert max(coverage(louder, exact(plan, sums)).values()) < 0.93


@pytest.mark.parametrize(
    ("epsilon", "noise", "accuracy", "auc"),
    [(0.1, 36.3, 0.0076, 0.0144), (1.0, 4.22, 0.0009, 0.0024)],
)
def test_pins(epsilon: float, noise: float, accuracy: float, auc: float) -> None:
    # The design's: n = 16,000, of which 4,000 are ones, 16 bins. Its AUC at epsilon 1 holds what
    # half-counted ties cost, and its accuracies are given in one digit or two.
    answers, labels = scored(16_000, 4_000)
    plan = evaluation_plan(Budget(epsilon, 1e-6), classes=CLASSES, bins=16)
    assert plan.noise_std == pytest.approx(noise, rel=0.002)
    sums = sums_of(plan, answers, labels)
    truth, runs = exact(plan, sums), simulated(plan, sums, 800)
    spread = {
        name: float(np.std([run[name].value for run in runs])) for name in ("accuracy", "auc")
    }
    expected = accuracy_std(plan.noise_std, 16, 16_000, truth["accuracy"].value)
    assert spread["accuracy"] == pytest.approx(expected, rel=0.09)
    assert spread["accuracy"] == pytest.approx(accuracy, rel=0.1)
    assert spread["auc"] <= auc * 1.09
    assert 0.6 * plan.noise_std * 4 / 4_000 > spread["auc"] > 0.25 * plan.noise_std * 4 / 4_000
    assert np.mean([run["auc"].value for run in runs]) == pytest.approx(
        truth["auc"].value, abs=4 * spread["auc"] / np.sqrt(800)
    )


def test_an_area_that_would_be_noise_is_refused_and_says_how_many_would_do() -> None:
    answers, labels = scored(16_000, 300)
    plan = evaluation_plan(Budget(0.1, 1e-6), classes=CLASSES, bins=16)
    found = simulated(plan, sums_of(plan, answers, labels), 1)[0]
    assert "about 1500 records" in found.refused["auc"]
    assert "roc" not in found.curves
    with pytest.raises(ValueError, match="rarer class"):
        found["auc"]
    assert found["accuracy"].high - found["accuracy"].low < 0.1
    with pytest.raises(KeyError, match="there are accuracy"):
        found["r2"]


def test_all_is_refused_where_all_would_be_noise() -> None:
    answers, labels = scored(600, 300)
    plan = evaluation_plan(Budget(0.1, 1e-6), classes=CLASSES, bins=16)
    with pytest.raises(ValueError, match="too few at this budget"):
        simulated(plan, sums_of(plan, answers, labels), 1)


def test_noisy_roc_curves_rise() -> None:
    answers, labels = scored(16_000, 4_000)
    plan = evaluation_plan(Budget(0.1, 1e-6), classes=CLASSES, bins=32)
    for run in simulated(plan, sums_of(plan, answers, labels), 20):
        roc = run.curves["roc"]
        assert np.all(np.diff(roc.x) >= 0)
        assert np.all(np.diff(roc.y) >= 0)
        assert (roc.x.min(), roc.x.max()) == (0.0, 1.0)
        assert min(min(cell.value for cell in row) for row in run.confusion.cells) >= 0.0


def test_even_bins_have_the_second_order_kernel() -> None:
    kernel = beats_in(bin_edges(8))
    assert np.allclose(np.diag(kernel), 0.5)
    assert np.allclose(np.diag(kernel, -1)[1:-1], 1 + 1 / 12)
    assert np.allclose(np.diag(kernel, 1)[1:-1], -1 / 12)
    assert np.allclose(kernel + kernel.T, 1.0)


def test_under_replace_noise_is_larger_by_the_square_root_of_two() -> None:
    one = evaluation_plan(Budget(1.0, 1e-6), classes=CLASSES, bins=8)
    other = evaluation_plan(Budget(1.0, 1e-6, Relation.REPLACE), classes=CLASSES, bins=8)
    assert other.noise_std == pytest.approx(one.noise_std * np.sqrt(2))
