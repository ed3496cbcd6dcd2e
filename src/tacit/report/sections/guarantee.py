"""Report the guarantee, in words and numbers, and the plan that was run."""

from __future__ import annotations

import math

from tacit.privacy import Guarantee, Relation
from tacit.privacy.guarantee import Curve
from tacit.report.charts import LineChart, Series, drawn, linear_axis, log_axis
from tacit.report.facts import PlannedMechanism, ReportFacts
from tacit.report.markup import Heading, Markup, Row, figures, join, section, table, tag
from tacit.report.wording import capital, mechanism_title, probability, rounded_up, short

_DECIMALS = 4
_WHETHER = {
    Relation.ADD_REMOVE: "whether a given record was in the data",
    Relation.REPLACE: "which of two records was in the data",
    Relation.ADD_REMOVE_PERSON: "whether a given person was in the data",
}


def guarantee_section(facts: ReportFacts) -> Markup:
    """Return the section; it begins with an alarm if the guarantee is void."""
    promise = facts.privacy
    if promise.voided_by:
        alarm = tag(
            "div",
            tag("h3", "There is no privacy guarantee"),
            tag("p", tag("strong", promise.statement())),
            tag("p", "Nothing on this page is protected. Treat the page like the data."),
            class_="alarm loud",
        )
        return section("guarantee", "Privacy guarantee", alarm, first=True)
    return section(
        "guarantee",
        "Privacy guarantee" if facts.accuracy is None else "Privacy guarantee of the model",
        tag("p", promise.statement(), class_="statement"),
        _figures(promise),
        tag("h3", "Epsilon for every delta"),
        tag(
            "p",
            "A guarantee is a curve: each probability of failure, delta, has its own epsilon. "
            "All of its points hold at once.",
        ),
        *_curve(promise),
        _not_said(promise.relation),
        first=True,
    )


def _at(promise: Guarantee) -> tuple[float, float]:
    """Return the delta and epsilon that the statement quotes."""
    delta = promise.target_delta
    if delta is None:
        delta = 0.0 if math.isfinite(promise.epsilon(0.0)) else 1e-6
    return delta, promise.epsilon(delta)


def _figures(promise: Guarantee) -> Markup:
    delta, epsilon = _at(promise)
    # Of two equally likely neighbours, a guess is right with probability (1 + TV) / 2, and
    # delta at epsilon 0 bounds the total variation.
    guess = rounded_up(50.0 * (1.0 + promise.delta(0.0)), 1)
    whether = _WHETHER[promise.relation]
    numbers = (
        (rounded_up(epsilon, _DECIMALS), "epsilon: smaller is more private"),
        (probability(delta), "delta: the probability with which the guarantee may fail"),
        (
            f"{guess}\N{NO-BREAK SPACE}%",
            f"how often a guess of {whether} is right at most; a coin gets 50\N{NO-BREAK SPACE}%",
        ),
    )
    return figures(numbers)


def _curve(promise: Guarantee) -> list[Markup]:
    curve = promise.curve()
    points = tuple(
        (float(d), float(e))
        for d, e in zip(curve.delta, curve.epsilon, strict=True)
        if math.isfinite(e)
    )
    if not points:
        return [tag("p", "No finite epsilon is proved at any delta up to 0.01.")]
    return [_picture(promise, points), _numbers(curve)]


def _picture(promise: Guarantee, points: tuple[tuple[float, float], ...]) -> Markup:
    delta, epsilon = _at(promise)
    x = log_axis("delta, the probability of failure", points[0][0], points[-1][0], every=2)
    y = linear_axis("epsilon", 0.0, max(e for _, e in points))
    inside = x.low <= delta <= x.high and y.low <= epsilon <= y.high
    name = f"epsilon {rounded_up(epsilon, 3)}"
    chart = LineChart(
        x=x,
        y=y,
        series=(Series("epsilon", points),),
        alternative=(
            f"Line chart of epsilon against delta: from {rounded_up(points[0][1], 2)} at delta "
            f"{probability(points[0][0])} to {rounded_up(points[-1][1], 2)} at delta "
            f"{probability(points[-1][0])}. The numbers are in the table below."
        ),
        marked=(delta, epsilon) if inside else None,
        marked_name=name if inside else "",
    )
    caption = "Epsilon (vertical axis) by delta (logarithmic scale). Lower is more private." + (
        f" The ring marks the planned delta, {probability(delta)}." if inside else ""
    )
    return tag("figure", drawn(chart), tag("figcaption", caption))


def _numbers(curve: Curve) -> Markup:
    rows = [
        Row((probability(float(d)), rounded_up(float(e), _DECIMALS), _factor(float(e))))
        for d, e in zip(curve.delta, curve.epsilon, strict=True)
    ]
    headings = (Heading("Delta"), Heading("Epsilon", number=True), Heading("Factor", number=True))
    caption = "Points of the curve, rounded up. The factor bounds the change of any probability."
    return table(caption, headings, rows)


def _factor(epsilon: float) -> str:
    return rounded_up(math.exp(epsilon), 3) if epsilon < 16.0 else "over 8 million"


def _not_said(relation: Relation) -> Markup:
    whose = (
        "It protects each person's contribution to the result: all records with their identifier."
        if relation.by_person
        else "It protects each record's contribution to the result."
    )
    several = "" if relation.by_person else " A person with several records is protected less."
    return join(
        tag("h3", "Limits of the guarantee"),
        tag(
            "p",
            f"{whose} It does not hide what the result reveals about the population: "
            "a model can be private and still predict facts about a person who was "
            "never in the data. It does not cover other releases from the same records; their "
            f"costs add up.{several}",
        ),
    )


def plan_section(facts: ReportFacts) -> Markup | None:
    """Return the section, or None for a release without a plan."""
    if not facts.mechanisms:
        return None
    if len(facts.mechanisms) == 1 and facts.mechanisms[0].excess_risk is None:
        run = facts.mechanisms[0]
        said = tag("p", f"{mechanism_title(run.name)}. {run.noise}")
        return section("plan", "Mechanism", said, _settings((run,)))
    risks = [row.excess_risk for row in facts.mechanisms if row.excess_risk is not None]
    best = min(risks, default=0.0)
    headings = (
        Heading("Mechanism"),
        Heading("Predicted cost", number=True),
        Heading("Relative to the least", number=True),
        Heading("Noise"),
    )
    rows = [_row(row, best) for row in facts.mechanisms]
    caption = (
        "Predicted cost is the expected rise of the average loss per record caused by noise and "
        "regularisation; four predictions in five are within a factor of three. Accuracy and "
        "other scores may change differently. " + facts.about_mechanisms
    )
    return section(
        "plan",
        "Mechanism and alternatives",
        tag("p", _lead(facts.mechanisms)),
        table(caption, headings, rows, stacked=True),
        _settings(facts.mechanisms),
    )


def _lead(mechanisms: tuple[PlannedMechanism, ...]) -> str:
    chosen = next((row for row in mechanisms if row.chosen), None)
    where = "Several mechanisms can give the same guarantee. "
    if chosen is None:
        return where + "These plans use public facts alone."
    return (
        f"{where}{mechanism_title(chosen.name)} was run. All plans below use public facts alone "
        "and spend the same budget; they differ in their predicted loss of accuracy."
    )


def _row(row: PlannedMechanism, best: float) -> Row:
    name = join(mechanism_title(row.name))
    if row.chosen:
        name = join(name, " ", tag("span", "was run", class_="badge"))
    if row.excess_risk is None:
        return Row((name, "\N{EN DASH}", "does not apply", row.noise))
    times = f"{short(row.excess_risk / best, 3)}\N{NO-BREAK SPACE}times" if best > 0 else ""
    times = "the least" if row.excess_risk == best else times
    kind = "chosen" if row.chosen else None
    return Row((name, short(row.excess_risk, 3), times, row.noise), kind)


def _settings(mechanisms: tuple[PlannedMechanism, ...]) -> Markup | None:
    chosen = next((row for row in mechanisms if row.chosen and row.settings), None)
    if chosen is None:
        return None
    rows = [Row((_plain(name), short(value, 6))) for name, value in chosen.settings]
    headings = (Heading("Setting"), Heading("Value", number=True))
    return table("Settings of the mechanism, fixed before a record was read.", headings, rows)


# Settings whose names do not explain themselves.
_SETTINGS = {
    "row_scale": "Scale of feature rows relative to the intercept",
    "slope_ridge": "Further ridge on all weights but the intercept",
}


def _plain(name: str) -> str:
    if name in _SETTINGS:
        return _SETTINGS[name]
    words = name.replace("_std", " standard deviation").replace("n_", "number of ", 1)
    words = words.replace("_", " ")
    return capital(words)
