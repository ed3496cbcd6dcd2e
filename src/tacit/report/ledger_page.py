"""A ledger as one page: what is left, what it would buy, and the history of what was charged."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence

from tacit import __version__
from tacit.ledger import Ledger, Standing, standing
from tacit.ledger.entry import Content
from tacit.ledger.parts import WHOLE
from tacit.ledger.standing import Account, history, share_spent
from tacit.report.axes import linear_axis
from tacit.report.html_table import Heading, Row, table
from tacit.report.line_chart import Level, LineChart, Series, drawn
from tacit.report.markup import Markup, join, named, tag
from tacit.report.numbers import probability, rounded_down, rounded_up, short
from tacit.report.page import page, section
from tacit.saving.files import write_whole

# What a person looks through; the rest is in the export.
_MOST_SHOWN = 200
_MOST_POINTS = 120
_CHARGED = {"created": "made", "analyst": "share", "partition": "part", "charge": ""}

Point = tuple[float, float]


def write_ledger(path: str | os.PathLike[str], ledger: Ledger) -> None:
    """Write a ledger's page: one HTML file that needs nothing else.

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
    write_whole(path, render_ledger(ledger).encode("utf-8"))


def render_ledger(ledger: Ledger) -> str:
    """Return a ledger's page as HTML."""
    now = standing(ledger)
    recent: deque[Content] = deque(maxlen=_MOST_SHOWN)
    points: list[Point] = []
    step = max(now.head.entry // _MOST_POINTS, 1)
    first: Content = {}
    for content, state in history(ledger.export()):
        first = first or content
        number = content["number"]
        if number % step == 0 or number == now.head.entry:
            points.append((float(number), 100 * share_spent(state, ledger.terms)))
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
        _picture(points),
        _entries(recent, now),
    )
    footer = tag(
        "p",
        f"Written by tacit {__version__} from the ledger alone: no record was read. It is one "
        "file, needs no network and holds no script.",
    )
    return page(f"{title} \N{EN DASH} privacy ledger", header, main, footer)


def _left(now: Standing) -> Markup:
    budget, share = now.terms.budget, min(now.share, 1.0)
    percent = f"{rounded_up(100 * share, 1)}\N{NO-BREAK SPACE}%"
    meter = tag(
        "div",
        tag("span", style=f"width: {100 * share:.2f}%"),
        class_="meter",
        role="img",
        aria_label=f"{percent} of the budget is spent",
    )
    figures = (
        (rounded_up(now.spent), f"epsilon spent, of {short(budget.epsilon)}"),
        (rounded_down(now.left), "epsilon of the largest release that would still be accepted"),
        (probability(budget.delta), "delta: the probability with which the promise may fail"),
    )
    return section(
        "left",
        "What is left",
        tag(
            "p",
            f"Whatever was released under this ledger is, taken together, differentially private "
            f"with epsilon = {rounded_up(now.spent)} and delta = {budget.delta:g}, with respect to "
            f"{budget.relation.sentence}. It accepts no release that would bring epsilon above "
            f"{budget.epsilon:g}.",
            class_="statement",
        ),
        meter,
        tag("p", f"{percent} of the budget is spent, by {type(now.terms.rule).__name__}."),
        tag(
            "dl",
            *(tag("div", tag("dt", what), tag("dd", number)) for number, what in figures),
            class_="figures",
        ),
        table(
            "What would still be accepted, on all records: so many releases of an epsilon each",
            [Heading("epsilon of each"), Heading("how many", number=True)],
            [Row((short(epsilon), f"{n:,}")) for epsilon, n in now.buys],
        ),
        first=True,
    )


def _accounts(now: Standing) -> Markup | None:
    tables = [
        _account_table("Shares of analysts", "analyst", now.analysts),
        _account_table("Parts of the data, disjoint from one another", "part", now.partitions),
    ]
    if not (now.analysts or now.partitions):
        return None
    return section("accounts", "Whose it is", *(t for t in tables if t is not None))


def _account_table(caption: str, kind: str, accounts: Sequence[Account]) -> Markup | None:
    if not accounts:
        return None
    capped = ["at most"] * any(account.cap is not None for account in accounts)
    numbers = [Heading(name, number=True) for name in (*capped, "spent", "left")]
    rows = [
        Row(
            (
                named(account.name),
                *([] if account.cap is None else [short(account.cap)]),
                rounded_up(account.spent),
                rounded_down(account.left),
            )
        )
        for account in accounts
    ]
    return table(caption, [Heading(kind), *numbers], rows, stacked=True)


def _picture(points: Sequence[Point]) -> Markup | None:
    if len(points) < 2:
        return None
    last = points[-1]
    chart = LineChart(
        x=linear_axis("entry", 0.0, last[0]),
        y=linear_axis("per cent of the budget", 0.0, 100.0),
        series=(Series("spent", tuple(points)),),
        levels=(Level("the budget", 100.0),),
        alternative=(
            "Line chart of what was spent, in per cent of the budget, after each entry: it ends "
            f"at {last[1]:.1f} after entry {last[0]:.0f}. The entries are in the table below."
        ),
    )
    caption = "What the most exposed records had spent after each entry, in per cent of the budget."
    figure = tag("figure", drawn(chart), tag("figcaption", caption))
    return section("course", "How it was spent", figure)


def _entries(entries: Sequence[Content], now: Standing) -> Markup:
    more = now.head.entry + 1 - len(entries)
    said = f"The last {len(entries)} entries; {more:,} before them" if more else "All entries"
    return section(
        "entries",
        "What was charged",
        tag(
            "p",
            "The head of the ledger: entry ",
            f"{now.head.entry}, ",
            tag("code", now.head.head),
            ". A ledger that ends earlier, or has another entry there, is not this one any more.",
        ),
        table(
            f"{said}, the newest first. Cost is in per cent of the budget.",
            [
                Heading("entry"),
                Heading("when", word=True),
                Heading("who"),
                Heading("what"),
                Heading("cost", number=True),
            ],
            [_row(content) for content in reversed(entries)],
            stacked=True,
        ),
    )


def _row(content: Content) -> Row:
    cost = "" if "cost" not in content else short(100 * max(content["cost"]) / WHOLE, 3)
    who, analyst = content["who"], content.get("analyst")
    whom = _remark(f"for {analyst}") if analyst and analyst != who else None
    return Row(
        (
            str(content["number"]),
            content["when"][:10],
            join(named(who), whom) or None,
            _what(content),
            cost,
        )
    )


def _what(content: Content) -> Markup:
    if content["kind"] != "charge":
        said = f"{_CHARGED[content['kind']]} {content.get('name', '')}".strip()
        if content["kind"] == "analyst":
            said += f": epsilon {content['epsilon']:g} at most"
        return named(said)
    kind = str(content["event"]["kind"]).replace("_", " ")
    if content["partition"] is not None:
        kind += f", on {content['partition']}"
    first, *rest = filter(None, (content["label"], content["purpose"], kind))
    return join(named(first), *map(_remark, rest))


def _remark(text: str) -> Markup:
    return tag("span", named(text), class_="remark")


def _instant(when: str) -> str:
    """Return an instant as a person writes it: what the ledger notes is ISO 8601, in UTC."""
    return when.replace("T", " ").replace("+00:00", " UTC")
