"""Report the facts assumed public: assumptions of the guarantee, schema and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.report.facts import PublicFact, ReportFacts
from tacit.report.markup import Child, Heading, Markup, Row, join, named, section, table, tag
from tacit.report.wording import capital, short
from tacit.schema import (
    Age,
    Boolean,
    Category,
    ClassTarget,
    Fill,
    Indicator,
    Intervals,
    Number,
    NumberTarget,
    OpenCategory,
    OpenNumber,
    Schema,
    Unit,
    Weekday,
    Year,
)

_MOST_WORDS = 60
_NEUTRAL = {
    "open_number": "become the middle of the learned range",
    "open_category": "become zeros",
    "number": "become the middle of the scale",
    "intervals": "are in no interval",
    "category": "are none of the values",
    "boolean": "lie between yes and no",
    "age": "become the middle of the scale",
    "year": "become the middle of the scale",
    "weekday": "are no day",
    "ignored": "",
}


def public_section(facts: ReportFacts) -> Markup:
    """Return the section."""
    return section(
        "public",
        "Facts assumed public",
        tag(
            "p",
            "These facts were assumed to be known before a record was read. The guarantee does not "
            "protect them. Records that disagree are changed to fit (a number outside its range is "
            "clipped): a wrong fact costs accuracy, not privacy.",
        ),
        _vouched(facts),
        _notes(facts),
        _schema(facts.schema) if facts.schema is not None else None,
        _parameters(facts.public) if facts.public else None,
    )


def _vouched(facts: ReportFacts) -> Markup | None:
    if not facts.privacy.assumptions:
        return None
    return tag(
        "div",
        tag(
            "h3",
            "It was assumed that" if facts.privacy.voided_by else "The guarantee holds only if",
        ),
        tag("ul", *(tag("li", _sentence(line)) for line in facts.privacy.assumptions)),
        class_="alarm",
    )


def _notes(facts: ReportFacts) -> Markup | None:
    if not facts.privacy.notes:
        return None
    return join(
        tag("h3", "Notes on the guarantee"),
        tag("ul", *(tag("li", line) for line in facts.privacy.notes)),
    )


def _sentence(line: str) -> str:
    return capital(line) + ("" if line.endswith(".") else ".")


def _schema(schema: Schema) -> Markup:
    lines: list[Any] = [*schema.columns, *([] if schema.target is None else [schema.target])]
    rows = [_line(line, line.name in schema.unconfirmed) for line in lines]
    count = "private" if schema.n_records is None else f"{schema.n_records:,}"
    caption = join(
        f"The schema of the table. Number of records: {count}. SHA-256 ",
        tag("code", schema.digest()),
    )
    headings = (
        Heading("Column"),
        Heading("Kind", word=True),
        Heading("Declared"),
        Heading("Missing values"),
    )
    return join(tag("h3", "Columns"), table(caption, headings, rows, stacked=True))


def _line(line: Any, unconfirmed: bool) -> Row:
    name = named(line.name)
    if unconfirmed:
        name = join(name, " ", tag("span", "guessed, not confirmed", class_="badge"))
    kind = "flagged" if unconfirmed else None
    return Row((name, line.kind, _declared(line), _missing(line)), kind)


def _declared(line: Any) -> Child:
    if isinstance(line, Number):
        log = ", logarithmic" if line.log else ""
        log += "; narrower bounds are learned" if isinstance(line, OpenNumber) else ""
        return f"{short(line.lower, 8)} to {short(line.upper, 8)}{log}"
    if isinstance(line, Age):
        years = f"{short(line.lower, 8)} to {short(line.upper, 8)} years"
        return join(f"{years} at {line.origin}; dates as ", named(line.format))
    if isinstance(line, Year):
        years = f"{short(line.lower, 8)} to {short(line.upper, 8)}"
        return join(f"the year, {years}; dates as ", named(line.format))
    if isinstance(line, Weekday):
        return join("the day of the week; dates as ", named(line.format), _compared(line.reference))
    if isinstance(line, NumberTarget):
        return f"{short(line.lower, 8)} to {short(line.upper, 8)}"
    if isinstance(line, Intervals):
        cuts = "cut at " + ", ".join(short(cut, 8) for cut in line.cuts)
        return join(cuts, _compared(line.reference))
    if isinstance(line, OpenCategory):
        return join(f"at most {line.max_values} words, learned: ", _words(line.learned or ()))
    if isinstance(line, Category):
        words = _words(line.values) if line.words is None else _meanings(line.values, line.words)
        return join(words, _case(line), _compared(line.reference))
    if isinstance(line, ClassTarget):
        names = [str(word) for word in line.classes]
        words = _words(names) if line.words is None else _meanings(names, line.words)
        return join(words, _case(line))
    if isinstance(line, Boolean):
        return join(_meanings(("yes", "no"), (line.true, line.false)), _case(line))
    return "privacy unit; not a feature" if isinstance(line, Unit) else "not read"


def _case(line: Any) -> str | None:
    return "; capitals and small letters are the same" if line.fold_case else None


def _compared(reference: str | None) -> Markup | None:
    return None if reference is None else join("; compared with ", named(reference))


def _meanings(names: Sequence[str], words: Sequence[Sequence[str]]) -> Markup:
    """Return the words of the table that each name stands for."""
    return _listed(
        [join(named(n), ": ", _words(w)) for n, w in zip(names, words, strict=True)], "; "
    )


def _words(words: Sequence[str]) -> Markup:
    return _listed([named(word) for word in words], ", ")


def _listed(items: Sequence[Markup], between: str) -> Markup:
    more = len(items) - _MOST_WORDS
    shown: list[Child] = [*items[:_MOST_WORDS], *([f"and {more:,} more"] if more > 0 else [])]
    return join(*[piece for item in shown for piece in (between, item)][1:])


def _missing(line: Any) -> Child:
    codes = getattr(line, "missing_codes", ())
    treated = _treated(line)
    return join(treated, "; also ", _words(codes)) if codes else treated


def _treated(line: Any) -> Child:
    if not hasattr(line, "missing"):
        return "the record is left out" if isinstance(line, ClassTarget | NumberTarget) else ""
    if isinstance(line.missing, Indicator):
        return "have a feature of their own"
    if isinstance(line.missing, Fill):
        return join("become ", named(str(line.missing.value)))
    if getattr(line, "reference", None) is not None:
        return "count as the average of the levels"
    return _NEUTRAL[line.kind]


def _parameters(facts: tuple[PublicFact, ...]) -> Markup:
    rows = []
    for fact in facts:
        remark = tag("span", fact.remark, class_="remark") if fact.remark else None
        rows.append(Row((fact.name, join(tag("bdi", fact.value), remark))))
    headings = (Heading("Setting"), Heading("Value"))
    return join(tag("h3", "Settings"), table("Parameters of the model.", headings, rows))
