"""How well a model does on records that are not shown: numbers, pictures and their intervals."""

from __future__ import annotations

from tacit.metrics import ConfusionMatrix, Curve, Estimate, Evaluation
from tacit.report.axes import linear_axis
from tacit.report.html_table import Heading, Row, table
from tacit.report.line_chart import Level, LineChart, Series, drawn
from tacit.report.markup import Markup, named, tag
from tacit.report.numbers import short
from tacit.report.page import section

_NAMES = {
    "auc": "AUC",
    "brier": "Brier score",
    "log_loss": "log loss",
    "calibration_bias": "calibration bias",
    "mse": "mean squared error",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "r2": "R2",
}
_INTERVALS = (
    "An interval holds, in 95 % of evaluations, the value that the same records would have given "
    "without noise. It does not say how other records would do."
)


def evaluation_section(evaluation: Evaluation) -> Markup:
    """Return the section: a table of metrics, the confusion matrix, a picture of each curve."""
    refused = [tag("li", f"{metric_name(name)}: {why}") for name, why in evaluation.refused.items()]
    return section(
        "evaluation",
        "How well the model does",
        _metrics(evaluation),
        tag("ul", *refused, class_="alarm") if refused else None,
        None if evaluation.confusion is None else _confusion(evaluation.confusion),
        *(_picture(curve) for curve in evaluation.curves.values()),
    )


def metric_name(name: str) -> str:
    """Return a metric's name as it is written; that of one class keeps the class."""
    first, space, of = name.partition(" ")
    return f"{_NAMES.get(first, first)}{' of ' if space else ''}{of}"


def _metrics(evaluation: Evaluation) -> Markup:
    found = {**evaluation.metrics, "records": evaluation.n_records}
    rows = [
        Row((metric_name(name), short(estimate.value), _interval(estimate)))
        for name, estimate in found.items()
    ]
    headings = (Heading("Metric"), Heading("Value", number=True), Heading("Interval", number=True))
    return table(_INTERVALS, headings, rows)


def _interval(estimate: Estimate) -> str:
    return f"{short(estimate.low)} to {short(estimate.high)}"


def _confusion(matrix: ConfusionMatrix) -> Markup:
    rows = [
        Row((named(str(label)), *(_count(cell) for cell in row)))
        for label, row in zip(matrix.classes, matrix.cells, strict=True)
    ]
    headings = [
        Heading("Records of"),
        *(Heading(f"taken for {label}", number=True, name=True) for label in matrix.classes),
    ]
    return table("Confusion matrix, each count with its interval.", headings, rows, stacked=True)


def _count(cell: Estimate) -> str:
    return f"{short(round(cell.value))} ({short(round(cell.low))} to {short(round(cell.high))})"


def _picture(curve: Curve) -> Markup | None:
    if not len(curve.x):
        return None
    points = tuple(zip(curve.x.tolist(), curve.y.tolist(), strict=True))
    spread = tuple(((curve.high - curve.low) / 2).tolist())
    chart = LineChart(
        x=linear_axis(curve.x_name, 0.0, 1.0),
        y=linear_axis(curve.y_name, 0.0, 1.0),
        series=(Series(curve.name, points, spread),),
        alternative=(
            f"Line chart of {curve.y_name} against {curve.x_name}, from {short(points[0][1])} at "
            f"{short(points[0][0])} to {short(points[-1][1])} at {short(points[-1][0])}."
        ),
        levels=(Level("one half", 0.5),),
    )
    caption = f"{curve.name}. Bars are as long as the interval of the noise."
    return tag("figure", drawn(chart), tag("figcaption", caption))
