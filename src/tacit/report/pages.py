"""Write HTML pages of an audit, a ledger and a PATE student."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import __version__
from tacit.audit import Audit
from tacit.ledger import Ledger, LedgerStatus, status
from tacit.ledger.entries import File, Line, lines
from tacit.ledger.status import Account, history
from tacit.ledger.store import Content
from tacit.pate import WorstCase
from tacit.pate.aggregators import UNANSWERED
from tacit.pate.plan import CONSENSUS, PATEPlan, make_plan
from tacit.privacy import GaussianSum, Odometer, RenyiSum, SumOfEpsilons, SumOrGaussian
from tacit.privacy.filters import Additive
from tacit.report.charts import Level, LineChart, Series, drawn, linear_axis, whole_axis
from tacit.report.facts import ReportFacts
from tacit.report.markup import (
    Heading,
    Markup,
    Row,
    figures,
    join,
    named,
    page,
    section,
    table,
    tag,
)
from tacit.report.sections.guarantee import guarantee_section
from tacit.report.wording import probability, rounded_down, rounded_up, short
from tacit.saving.container import write_whole

Array = npt.NDArray[np.float64]

_BINS = 40


def write_audit(path: str | os.PathLike[str], audit: Audit) -> None:
    """Write an audit as one self-contained HTML file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.audit import Audit
    >>> from tacit.audit.results import Finding
    >>> from tacit.privacy import Budget
    >>> from tacit.report import write_audit
    >>> found = Audit("a sum", Budget(1.0, 1e-6), 0.05, (Finding("by hand", 0.8, "nothing"),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_audit(pathlib.Path(folder) / "a.html", found)
    ...     (pathlib.Path(folder) / "a.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    write_whole(path, render_audit(audit).encode("utf-8"))


def render_audit(audit: Audit) -> str:
    """Return an audit's page as HTML."""
    header = join(
        tag("p", "Privacy audit", class_="kicker"),
        tag("h1", audit.subject),
        tag("p", f"Claimed: {audit.claim}."),
    )
    main = join(_found(audit), _scores_picture(audit), _notes(audit))
    footer = tag(
        "p",
        f"Written by tacit {__version__}; no personal record was read. The page is one file "
        "without scripts or network requests.",
    )
    return page(f"{audit.subject} \N{EN DASH} privacy audit", header, main, footer)


def _found(audit: Audit) -> Markup:
    numbers = (
        (rounded_down(audit.strongest.epsilon, 3), "best lower bound on epsilon"),
        (short(audit.claim.epsilon), "epsilon claimed"),
        (probability(audit.claim.delta), "delta claimed"),
    )
    rows = [Row((f.method, f.assumes, rounded_down(f.epsilon, 3))) for f in audit.findings]
    sure = f"{100 * (1 - audit.level):g}"
    return section(
        "found",
        "Lower bounds on epsilon",
        tag("p", audit.conclusion, class_="statement"),
        figures(numbers),
        table(
            f"Lower bounds on epsilon at the claimed delta; each holds with confidence {sure} %",
            [Heading("found"), Heading("assuming"), Heading("at least", number=True)],
            rows,
            stacked=True,
        ),
        first=True,
    )


def _scores_picture(audit: Audit) -> Markup | None:
    if not audit.without.size:
        return None
    both = np.concatenate([audit.without, audit.with_it])
    bins = min(_BINS, math.isqrt(both.size))
    edges = np.linspace(float(both.min()), float(both.max()), bins + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    counts = [
        np.asarray(100 * np.histogram(scores, edges)[0] / scores.size)
        for scores in (audit.without, audit.with_it)
    ]
    top = max(float(shares.max()) for shares in counts)
    chart = LineChart(
        x=linear_axis("score", float(edges[0]), float(edges[-1])),
        y=linear_axis("per cent of the fits", 0.0, top),
        series=tuple(
            Series(name, tuple(zip(map(float, centres), map(float, shares), strict=True)))
            for name, shares in zip(("without the record", "with it"), counts, strict=True)
        ),
        alternative=(
            f"Two histograms of scores: without the record their mean is "
            f"{audit.without.mean():.3g}, with it {audit.with_it.mean():.3g}."
        ),
    )
    caption = (
        f"Scores of {audit.without.size:,} fits without one record and {audit.with_it.size:,} with "
        "it (dashed). The less they overlap, the more a release reveals."
    )
    figure = tag("figure", drawn(chart), tag("figcaption", caption))
    return section("scores", "Scores with and without the record", figure)


def _notes(audit: Audit) -> Markup | None:
    if not audit.notes:
        return None
    return section("notes", "Notes", *(tag("p", note) for note in audit.notes))


# Enough for a reader; `tacit ledger export` prints all entries.
_MOST_SHOWN = 200
_MOST_POINTS = 120

Point = tuple[float, float]

# How charges add up, by the rule of a ledger.
_RULES: dict[type[Additive], str] = {
    SumOrGaussian: "It is the lesser of two sums, of epsilons and of noise: many releases cost "
    "less together than their epsilons add up to.",
    SumOfEpsilons: "Epsilons and deltas of all releases add up.",
    GaussianSum: "Squared noise ratios of all releases add up, so that many cost less together "
    "than their epsilons add up to.",
    RenyiSum: "Renyi divergences of all releases add up, so that many cost less together than "
    "their epsilons add up to.",
    Odometer: "Renyi divergences of all releases add up at many orders, so that many cost less "
    "together than their epsilons add up to.",
}


def write_ledger(
    path: str | os.PathLike[str], ledger: Ledger, *, files: Mapping[int, File] | None = None
) -> None:
    """Write a ledger as one self-contained HTML file.

    Parameters
    ----------
    path
        The path to write; the file is written atomically.
    ledger
        The ledger.
    files
        Released files by the entry that paid for them, beside those that the ledger has recorded.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.ledger import Ledger
    >>> from tacit.privacy import Budget
    >>> from tacit.report import write_ledger
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(pathlib.Path(folder) / "a.ledger", Budget(1.0))
    ...     write_ledger(pathlib.Path(folder) / "a.html", ledger)
    ...     (pathlib.Path(folder) / "a.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    write_whole(path, render_ledger(ledger, files=files).encode("utf-8"))


def render_ledger(ledger: Ledger, *, files: Mapping[int, File] | None = None) -> str:
    """Return a ledger's page as HTML."""
    now = status(ledger)
    # A recorded file is an entry of its own, and part of the line of its charge.
    recent: deque[Content] = deque(maxlen=2 * _MOST_SHOWN)
    points: list[Point] = []
    step = max(now.head.entry // _MOST_POINTS, 1)
    first: Content = {}
    for content, state in history(ledger.export()):
        first = first or content
        number = content["number"]
        if number % step == 0 or number == now.head.entry:
            points.append((float(number), state.spent(ledger.terms)))
        recent.append(content)
    title = first.get("label") or f"Ledger {now.head.ledger[:8]}"
    header = join(
        tag("p", f"Privacy ledger, as of {_instant(recent[-1]['when'])}", class_="kicker"),
        tag("h1", title),
        tag("p", first["purpose"]) if first.get("purpose") else None,
    )
    main = join(
        _left(now),
        _accounts(now),
        _picture(points, now.terms.budget.epsilon),
        _entries(lines(recent, ledger.terms, files)[-_MOST_SHOWN:], now),
    )
    footer = tag(
        "p",
        f"Written by tacit {__version__} from the ledger alone: no record was read. The page is "
        "one file without scripts or network requests.",
    )
    return page(f"{title} \N{EN DASH} privacy ledger", header, main, footer)


def _left(now: LedgerStatus) -> Markup:
    budget, share = now.terms.budget, min(now.share, 1.0)
    percent = f"{rounded_up(100 * share, 1)}\N{NO-BREAK SPACE}%"
    meter = tag(
        "div",
        tag("span", style=f"width: {100 * share:.2f}%"),
        class_="meter",
        role="img",
        aria_label=f"{percent} of the budget is spent",
    )
    numbers = (
        (rounded_up(now.spent), f"epsilon spent, of {short(budget.epsilon)}"),
        (rounded_down(now.left), "epsilon left"),
        (probability(budget.delta), "delta: the probability with which the guarantee may fail"),
    )
    return section(
        "left",
        "Remaining budget",
        tag(
            "p",
            f"All releases charged to this ledger, now and later, are together differentially "
            f"private with epsilon = {short(budget.epsilon)} and delta = "
            f"{probability(budget.delta)}, with respect to {budget.relation.sentence}, however "
            f"they were chosen. Of this epsilon, {rounded_up(now.spent)} is spent; the ledger "
            "refuses a release that would exceed it.",
            class_="statement",
        ),
        meter,
        tag("p", f"{percent} of the budget is spent. {_RULES[type(now.terms.rule)]}"),
        figures(numbers),
        tag("p", now.accepts),
        table(
            f"Number of {'pure' if budget.is_pure else 'Gaussian'} releases that would still be "
            "accepted on all records, by their epsilon",
            [Heading("epsilon of each"), Heading("number", number=True)],
            [Row((short(epsilon), f"{n:,}")) for epsilon, n in now.buys],
        ),
        first=True,
    )


_SHARES = (
    "Epsilon of analysts. Left is at most what is left of the budget. A share counts every release "
    "at its full price; the very first of a ledger may cost the ledger less."
)
_PARTITIONS = "Epsilon of disjoint partitions of the data: a record is in one of them at most."


def _accounts(now: LedgerStatus) -> Markup | None:
    tables = [
        _account_table(_SHARES, "analyst", now.analysts),
        _account_table(_PARTITIONS, "partition", now.partitions),
    ]
    if not (now.analysts or now.partitions):
        return None
    return section("accounts", "Analysts and partitions", *(t for t in tables if t is not None))


def _account_table(caption: str, kind: str, accounts: Sequence[Account]) -> Markup | None:
    if not accounts:
        return None
    of_analysts = kind == "analyst"
    capped = ["share"] * of_analysts
    numbers = [Heading(name, number=True) for name in (*capped, "spent", "left", "largest release")]
    rows = [
        Row(
            (
                named(account.name),
                *(["none" if account.cap is None else short(account.cap)] * of_analysts),
                rounded_up(account.spent),
                rounded_down(account.left),
                rounded_down(account.largest),
            )
        )
        for account in accounts
    ]
    return table(caption, [Heading(kind), *numbers], rows, stacked=True)


def _picture(points: Sequence[Point], epsilon: float) -> Markup | None:
    if len(points) < 2:
        return None
    last = points[-1]
    chart = LineChart(
        x=whole_axis("entry", last[0]),
        y=linear_axis("epsilon spent", 0.0, epsilon),
        series=(Series("spent", tuple(points)),),
        levels=(Level("the budget", epsilon),),
        alternative=(
            "Line chart of the epsilon spent after each entry: it ends at "
            f"{rounded_up(last[1])} after entry {last[0]:.0f}, and the budget is {epsilon:g}. The "
            "entries are in the table below."
        ),
    )
    caption = "Epsilon spent by the most exposed records after each entry."
    figure = tag("figure", drawn(chart), tag("figcaption", caption))
    return section("course", "Spending over time", figure)


def _entries(entries: Sequence[Line], now: LedgerStatus) -> Markup:
    more = entries[0].number
    said = f"The last {len(entries)} entries; {more:,} before them" if more else "All entries"
    return section(
        "entries",
        "Entries",
        tag(
            "p",
            "The head of the ledger: entry ",
            f"{now.head.entry}, ",
            tag("code", now.head.head),
            ". A ledger that ends earlier, or has a different entry there, was altered.",
        ),
        table(
            f"{said}, the newest first. Epsilon and delta are those of the entry alone, delta as "
            "the part that it takes of the budget's; together entries cost at most their sum. A "
            "file that was recorded later is on the line of its charge.",
            [
                Heading("entry", word=True),
                Heading("when", word=True),
                Heading("who"),
                Heading("what"),
                Heading("epsilon", number=True),
                Heading("delta", number=True),
            ],
            [_row(line) for line in reversed(entries)],
            stacked=True,
            numbered=True,
        ),
    )


def _row(line: Line) -> Row:
    return Row(
        (
            str(line.number),
            line.day,
            named(line.who),
            _what(line),
            "" if line.epsilon is None else rounded_up(line.epsilon),
            "" if line.delta is None else probability(line.delta),
        )
    )


def _what(line: Line) -> Markup:
    remarks = [
        line.label,
        line.purpose,
        f"from {line.table}" * bool(line.table) + f", on {line.partition}" * bool(line.partition)
        if line.table
        else f"on {line.partition}" * bool(line.partition),
        line.how,
    ]
    file = line.file
    sealed = (
        None
        if file is None
        else tag(
            "span",
            named(file.name or "file"),
            ", SHA-256 ",
            tag("code", file.sha256),
            class_="remark",
        )
    )
    return join(named(line.what), *(_remark(text) for text in remarks if text), sealed)


def _remark(text: str) -> Markup:
    return tag("span", named(text), class_="remark")


def _instant(when: str) -> str:
    """Return an ISO 8601 instant in UTC as readable text."""
    return when.replace("T", " ").replace("+00:00", " UTC")


_OTHER_BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0)
_VOTES = (
    "Votes are private and are not shown. The answers below were released with noise; nobody "
    "learns how many teachers agreed."
)
_IF = (
    "Probability that an answer is the teachers' majority class, by the number that agree "
    "if all others agree on another class. Computed from the plan alone; no record was read."
)
_PUBLIC_LABELS = (
    "Compared with the public labels of the public rows. The student is scored on the rows that "
    "were not queries."
)


@dataclass(frozen=True)
class PublicScores:
    """Accuracy of answers and student against the labels of public rows."""

    answers: float
    student: float
    n_rows: int


def render_student(
    title: str, model: Any, scores: PublicScores | None = None, *, made_on: str = ""
) -> str:
    """Return the page of a fitted `PATEClassifier`: released results and public facts alone.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from tacit.pate import PATEClassifier
    >>> from tacit.report.pages import render_student
    >>> rng = np.random.default_rng(0)
    >>> X, pool = rng.standard_normal((2000, 2)), rng.standard_normal((60, 2))
    >>> model = PATEClassifier(GaussianNB(), 50, GaussianNB(), 20, classes=[False, True])
    >>> text = render_student("Ill", model.fit(X, X[:, 0] > 0, pool))
    >>> "Votes are private" in text
    True
    """
    promise = model.privacy_
    main = join(
        guarantee_section(ReportFacts(title, promise)),
        _queries(model.plan_),
        _answered(model),
        _judged(scores),
        _budgets(model.plan_),
    )
    kind = f"a PATE student{', ' + made_on if made_on else ''}"
    header = join(tag("p", kind, class_="kicker"), tag("h1", title))
    footer = tag("p", f"Written by tacit {__version__}, from released results and public facts.")
    prefix = "NO GUARANTEE: " if promise.voided_by else ""
    return page(f"{prefix}{title}", header, main, footer)


def _queries(plan: PATEPlan) -> Markup:
    rows = [Row((name, f"{value:.6g}")) for name, value in plan.settings.items()]
    headings = (Heading("Setting"), Heading("Value", number=True))
    return section("asked", "Queries", table(plan.reason, headings, rows))


def _answered(model: Any) -> Markup:
    said = model.answers_
    rows = [
        Row((str(label), str(int(np.sum(said == code)))))
        for code, label in enumerate(model.classes_.tolist())
    ]
    unanswered = int(np.sum(said == UNANSWERED))
    if unanswered:
        rows.append(Row(("no answer", str(unanswered))))
    headings = (Heading("Class"), Heading("Answers", number=True))
    private_cost = getattr(model, "sanitised_", None)
    remark = tag("p", f"Data-dependent cost: {private_cost}.") if private_cost is not None else None
    return section("answers", "Answers", table(_VOTES, headings, rows), remark)


def _judged(scores: PublicScores | None) -> Markup | None:
    if scores is None:
        return None
    rows = [
        Row(("accuracy of the answers", f"{scores.answers:.1%}")),
        Row((f"student's accuracy on {scores.n_rows} other public rows", f"{scores.student:.1%}")),
    ]
    headings = (Heading("Accuracy"), Heading("Share", number=True))
    return section("judged", "Accuracy on public rows", table(_PUBLIC_LABELS, headings, rows))


def _budgets(plan: PATEPlan) -> Markup | None:
    if plan.budget.is_infinite or plan.budget.is_pure:
        return None
    budgets = sorted({*_OTHER_BUDGETS, plan.budget.epsilon})
    rows = [_budget_row(plan, epsilon) for epsilon in budgets]
    shares = [Heading(f"{share:.0%} agree", number=True) for share in CONSENSUS]
    headings = (Heading("Epsilon"), *shares)
    return section("budgets", "Effect of other budgets", table(_IF, headings, rows))


def _budget_row(plan: PATEPlan, epsilon: float) -> Row:
    budget = replace(plan.budget, epsilon=epsilon)
    other = make_plan(budget, plan.n_teachers, plan.n_queries, plan.n_classes, None, WorstCase())
    kind = "chosen" if epsilon == plan.budget.epsilon else None
    return Row((f"{epsilon:g}", *(f"{other.right(share):.1%}" for share in CONSENSUS)), kind)
