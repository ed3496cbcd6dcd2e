"""Report accuracy: scores on public data by epsilon, and a private evaluation."""

from __future__ import annotations

from itertools import pairwise

from tacit.metrics import Evaluation
from tacit.metrics.evaluation import ConfusionMatrix, Curve, Estimate
from tacit.report.charts import (
    Level,
    LineChart,
    Series,
    drawn,
    linear_axis,
    log_axis,
    log_axis_at,
    marker,
)
from tacit.report.facts import AccuracyPicture, ReportFacts
from tacit.report.markup import Heading, Markup, Row, named, section, table, tag
from tacit.report.wording import capital, mechanism_title, short

_MOST_TICKS = 7
_NEAREST = 1.25  # ratio of neighbouring ticks below which labels would overlap


def accuracy_section(facts: ReportFacts) -> Markup | None:
    """Return the section, or None without scores on public data."""
    return None if facts.accuracy is None else scores_section(facts.accuracy)


def scores_section(picture: AccuracyPicture, remark: str = "", first: bool = False) -> Markup:
    """Return the scores under a notice that they are not private."""
    return section(
        "accuracy",
        "Effect of privacy on " + picture.score,
        tag(
            "div",
            tag("h3", "These scores are not private"),
            tag(
                "p",
                "They were computed from records without protection and spend no budget. They "
                "may be shown only because their data are public: ",
                tag("strong", picture.why_public),
            ),
            class_="alarm",
        ),
        tag("p", remark) if remark else None,
        _figure(picture),
        _numbers(picture),
        first=first,
    )


def _series(picture: AccuracyPicture) -> tuple[Series, ...]:
    names = list(dict.fromkeys(point.mechanism for point in picture.points))
    lines = []
    for name in names:
        own = sorted((p for p in picture.points if p.mechanism == name), key=lambda p: p.epsilon)
        points = tuple((p.epsilon, p.mean) for p in own)
        lines.append(Series(mechanism_title(name), points, tuple(p.sd for p in own)))
    return tuple(lines)


def _figure(picture: AccuracyPicture) -> Markup:
    series = _series(picture)
    ends = [p.mean + s * p.sd for p in picture.points for s in (-1, 1)]
    levels = _levels(picture)
    ends += [level.value for level in levels]
    epsilons = tuple(sorted({p.epsilon for p in picture.points}))
    x = log_axis_at("epsilon, on a logarithmic scale", epsilons)
    close = any(b / a < _NEAREST for a, b in pairwise(epsilons))
    if len(epsilons) > _MOST_TICKS or close:
        x = log_axis(x.title, x.low, x.high)
    room = 0.04 * (max(ends) - min(ends))
    y = linear_axis(picture.score, min(ends) - room, max(ends) + room)
    chart = LineChart(x, y, series, _alternative(picture, series), levels)
    bars = any(point.sd > 0 for point in picture.points)
    caption = f"{capital(picture.score)} (vertical axis) at each epsilon." + (
        " Bars show one standard deviation over repeated fits." if bars else ""
    )
    return tag("figure", drawn(chart), _legend(series), tag("figcaption", caption))


def _levels(picture: AccuracyPicture) -> tuple[Level, ...]:
    found = ((picture.floor_name, picture.floor), (picture.ceiling_name, picture.ceiling))
    return tuple(Level(name, value) for name, value in found if value is not None)


def _legend(series: tuple[Series, ...]) -> Markup:
    items = [
        tag(
            "li",
            tag(
                "svg",
                tag(
                    "g",
                    tag("polyline", points="0,6 34,6"),
                    marker(place, 17.0, 6.0),
                    class_=f"series s{place}",
                ),
                viewbox="0 0 34 12",
                aria_hidden="true",
            ),
            line.name,
        )
        for place, line in enumerate(series)
    ]
    return tag("ul", *items, class_="legend")


def _alternative(picture: AccuracyPicture, series: tuple[Series, ...]) -> str:
    lines = "; ".join(
        f"{line.name} from {short(line.points[0][1])} at epsilon {short(line.points[0][0])} to "
        f"{short(line.points[-1][1])} at epsilon {short(line.points[-1][0])}"
        for line in series
    )
    return f"Line chart of {picture.score} against epsilon: {lines}. The numbers are in the table."


def _numbers(picture: AccuracyPicture) -> Markup:
    series = _series(picture)
    cells = {
        (line.name, epsilon): (mean, sd)
        for line in series
        for (epsilon, mean), sd in zip(line.points, line.spread, strict=True)
    }
    rows = [
        Row(
            (
                tag("span", f"epsilon {short(epsilon)}", class_="word"),
                *(_cell(cells.get((line.name, epsilon))) for line in series),
            )
        )
        for epsilon in sorted({point.epsilon for point in picture.points})
    ]
    headings = [Heading("Budget"), *(Heading(line.name, number=True, name=True) for line in series)]
    beside = "".join(f" {capital(level.name)}: {level.value:.4f}." for level in _levels(picture))
    caption = f"Table of {picture.score}: mean \N{PLUS-MINUS SIGN} standard deviation."
    return table(caption + beside, headings, rows, stacked=True)


def _cell(found: tuple[float, float] | None) -> str:
    if found is None:
        return ""
    mean, sd = found
    return f"{mean:.4f} \N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}{sd:.4f}" if sd > 0 else f"{mean:.4f}"


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
    "An interval covers, in 95 % of evaluations, the value without noise on the same records. It "
    "does not cover the error of sampling other records."
)


def evaluation_section(evaluation: Evaluation) -> Markup:
    """Return the section: metrics, the confusion matrix and a picture of each curve."""
    refused = [tag("li", f"{metric_name(name)}: {why}") for name, why in evaluation.refused.items()]
    return section(
        "evaluation",
        "Private evaluation",
        _metrics(evaluation),
        tag("p", evaluation.about_positive) if evaluation.about_positive else None,
        tag("ul", *refused, class_="alarm") if refused else None,
        None if evaluation.confusion is None else _confusion(evaluation.confusion),
        *(_picture(curve) for curve in evaluation.curves.values()),
    )


def metric_name(name: str) -> str:
    """Return the display name of a metric; metrics of one class keep the class."""
    first, space, of = name.partition(" ")
    return f"{_NAMES.get(first, first)}{' of ' if space else ''}{of}"


def _metrics(evaluation: Evaluation) -> Markup:
    found = {**evaluation.metrics, "records": evaluation.n_records}
    rows = [
        Row((metric_name(name), short(e.value), f"{short(e.low)} to {short(e.high)}"))
        for name, e in found.items()
    ]
    headings = (Heading("Metric"), Heading("Value", number=True), Heading("Interval", number=True))
    return table(_INTERVALS, headings, rows)


def _confusion(matrix: ConfusionMatrix) -> Markup:
    rows = [
        Row((named(str(label)), *(_count(cell) for cell in row)))
        for label, row in zip(matrix.classes, matrix.cells, strict=True)
    ]
    headings = [
        Heading("Records of"),
        *(Heading(f"predicted {label}", number=True, name=True) for label in matrix.classes),
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
    caption = f"{curve.name}. Bars show the 95 % interval of the noise."
    return tag("figure", drawn(chart), tag("figcaption", caption))
