"""The plan that was run, beside what the other mechanisms would have cost."""

from __future__ import annotations

from tacit.report.facts import PlannedMechanism, ReportFacts
from tacit.report.html_table import Heading, Row, table
from tacit.report.markup import Markup, join, tag
from tacit.report.mechanisms import mechanism_title
from tacit.report.numbers import short
from tacit.report.page import section


def plan_section(facts: ReportFacts) -> Markup | None:
    """Return the section, or nothing for a release without a plan."""
    if not facts.mechanisms:
        return None
    if len(facts.mechanisms) == 1 and facts.mechanisms[0].excess_risk is None:
        return _alone(facts.mechanisms[0])
    risks = [row.excess_risk for row in facts.mechanisms if row.excess_risk is not None]
    best = min(risks, default=0.0)
    headings = (
        Heading("Mechanism"),
        Heading("Predicted cost", number=True),
        Heading("Compared with the least", number=True),
        Heading("Noise"),
    )
    rows = [_row(row, best) for row in facts.mechanisms]
    caption = (
        "Predicted cost is the rise of the average loss per record that noise and regularisation "
        "are expected to cause, four times in five within a factor of three; accuracy and other "
        "scores need not change alike. " + facts.about_mechanisms
    )
    return section(
        "plan",
        "What was run, and what else could have been",
        tag("p", _lead(facts.mechanisms)),
        table(caption, headings, rows, stacked=True),
        _settings(facts.mechanisms),
    )


def _alone(run: PlannedMechanism) -> Markup:
    """Return the section of what nothing else could have been run for."""
    said = tag("p", f"{mechanism_title(run.name)}. {run.noise}")
    return section("plan", "What was run", said, _settings((run,)))


def _lead(mechanisms: tuple[PlannedMechanism, ...]) -> str:
    chosen = next((row for row in mechanisms if row.chosen), None)
    where = "Noise can be placed in several ways for the same promise. "
    if chosen is None:
        return where + "These plans use public facts alone."
    return (
        f"{where}{mechanism_title(chosen.name)} was run. All plans below use public facts alone "
        "and spend the same budget; they differ in how much accuracy they are expected to cost."
    )


def _row(row: PlannedMechanism, best: float) -> Row:
    name = join(mechanism_title(row.name))
    if row.chosen:
        name = join(name, " ", tag("span", "was run", class_="badge"))
    if row.excess_risk is None:
        return Row((name, "\N{EN DASH}", "does not apply", row.noise))
    times = _beside(row.excess_risk, best)
    kind = "chosen" if row.chosen else None
    return Row((name, short(row.excess_risk, 3), times, row.noise), kind)


def _beside(risk: float, best: float) -> str:
    if risk == best:
        return "the least"
    return f"{short(risk / best, 3)}\N{NO-BREAK SPACE}times" if best > 0 else ""


def _settings(mechanisms: tuple[PlannedMechanism, ...]) -> Markup | None:
    chosen = next((row for row in mechanisms if row.chosen and row.settings), None)
    if chosen is None:
        return None
    rows = [Row((_plain(name), short(value, 6))) for name, value in chosen.settings]
    headings = (Heading("Setting"), Heading("Value", number=True))
    return table("Settings of what was run, fixed before a record was read.", headings, rows)


def _plain(name: str) -> str:
    words = name.replace("_std", " standard deviation").replace("n_", "number of ", 1)
    words = words.replace("_", " ")
    return words[:1].upper() + words[1:]
