from __future__ import annotations

import re

import numpy as np

from tacit.metrics import Evaluation
from tacit.metrics.evaluation import ConfusionMatrix, Curve, Estimate
from tacit.privacy import Gaussian, Guarantee, NonPrivate
from tacit.report.sections.accuracy import evaluation_section, metric_name
from tacit.report.write import render_evaluation

PROMISE = Guarantee(Gaussian(4.2), 1e-6)
HALF = Estimate(0.5, 0.25, 0.75)


def evaluation(**more: object) -> Evaluation:
    return Evaluation(PROMISE, {"accuracy": Estimate(0.81, 0.8, 0.82)}, HALF, 1.0, **more)


def test_metrics_and_what_is_refused() -> None:
    text = evaluation_section(evaluation(refused={"auc": "About 90 would do."}))
    assert "0.8 to 0.82" in text
    assert "AUC: About 90 would do." in text
    assert "Confusion" not in text
    assert "<svg" not in text


def test_a_matrix_names_its_classes_and_no_name_is_markup() -> None:
    cell = Estimate(10.0, 8.4, 11.6)
    matrix = ConfusionMatrix(("<b>", "yes"), ((cell, cell), (cell, cell)))
    text = evaluation_section(evaluation(confusion=matrix))
    assert text.count("10 (8 to 12)") == 4
    assert "<b>" not in text
    assert "predicted &lt;b&gt;" in text


def test_curves_are_drawn_with_bars_as_long_as_their_intervals() -> None:
    x = np.array([0.0, 0.5, 1.0])
    limit = np.array([0.0, 0.1, 0.0])
    curve = Curve("ROC", "false", "true", x, x, x - limit, x + limit)
    text = evaluation_section(evaluation(draw=lambda: {"roc": curve, "none": empty()}))
    assert text.count("<svg") == 2  # wide and narrow, of the one that has points
    assert text.count('class="bar"') == 2
    assert len(re.findall(r'data-y="0\.5"', text)) == 2


def empty() -> Curve:
    nothing = np.zeros(0)
    return Curve("Calibration", "x", "y", nothing, nothing, nothing, nothing)


def test_names() -> None:
    assert metric_name("auc") == "AUC"
    assert metric_name("auc very ill") == "AUC of very ill"
    assert metric_name("accuracy") == "accuracy"


def test_a_page_is_headed_by_its_guarantee_or_says_that_there_is_none() -> None:
    page = render_evaluation("Income", evaluation(), made_on="2025-01-02")
    assert page.index("differentially private") < page.index("Private evaluation")
    assert "a private evaluation, 2025-01-02" in page
    void = Evaluation(Guarantee(NonPrivate("no noise")), {}, HALF, 0.0)
    assert "<title>NO GUARANTEE: Income" in render_evaluation("Income", void)
