"""Hold a description: figures with intervals, as text, frame, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import html
import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tacit.descriptive.figures import ALL, Figure
from tacit.descriptive.planning import DescriptionPlan
from tacit.privacy import Guarantee

# Figures of a Table 1, by their names here; histograms are drawn and not listed.
SHOWN = {
    "missing": "missing",
    "mean": "mean",
    "geometric mean": "geometric mean",
    "sd": "standard deviation",
    "geometric sd": "geometric standard deviation",
    "q25": "first quartile",
    "median": "median",
    "q75": "third quartile",
    "share": "",
}
_PERCENT = frozenset({"share", "missing share", "histogram"})


class Line(NamedTuple):
    """A line of the printed table: a column's name or a figure, and a text for each group."""

    label: str
    cells: tuple[str, ...]
    is_column: bool


@dataclass(frozen=True, eq=False)
class Description:
    """A private Table 1.

    Prints as text and, in a notebook, as HTML. All its content was released under ``privacy_``, or
    is computed from the release.

    Parameters
    ----------
    figures
        All figures.
    privacy_
        The guarantee.
    plan_
        The plan of the release.

    Examples
    --------
    >>> import tacit
    >>> from tacit.schema import Category, Schema
    >>> schema = Schema((Category("sex", ("f", "m")),))
    >>> table = {"sex": ["f"] * 600 + ["m"] * 400}
    >>> found = tacit.describe(table, schema, epsilon=1.0, random_state=0)
    >>> found.to_frame().columns.tolist()[:5]
    ['column', 'figure', 'level', 'group', 'value']
    >>> bool(0.5 < found.figure("sex", "share", "f").value < 0.7)
    True
    """

    figures: tuple[Figure, ...]
    privacy_: Guarantee
    plan_: DescriptionPlan

    def __len__(self) -> int:
        return len(self.figures)

    def __iter__(self) -> Iterator[Figure]:
        return iter(self.figures)

    @property
    def groups(self) -> tuple[str, ...]:
        """All records, and the declared levels of the groups."""
        return (ALL, *self.plan_.levels_of_groups)

    @property
    def columns(self) -> tuple[str, ...]:
        """The described columns."""
        return tuple(cells.name for cells in self.plan_.cells)

    def figure(self, column: str, figure: str, level: str = "", group: str = ALL) -> Figure:
        """Return one figure, such as ``figure("age", "mean")``.

        Parameters
        ----------
        column
            The column; "records" for the number of records.
        figure
            "count", "missing", "missing share", "mean", "sd", "q25", "median", "q75", "share" or
            "histogram"; "geometric mean" and "geometric sd" for a logarithmic scale.
        level
            The level of a share, or the bin of a histogram.
        group
            "all", or a level of the groups.
        """
        for found in self.figures:
            if found[:4] == (column, figure, level, group):
                return found
        known = sorted({f.figure for f in self.figures if f.column == column})
        raise KeyError(
            f"there is no {figure!r} of {column!r} with level {level!r} in group {group!r}; the "
            f"column has {', '.join(known) or 'no figures'}, and the groups are "
            f"{', '.join(self.groups)}."
        )

    def of(self, column: str, figure: str, group: str = ALL) -> tuple[Figure, ...]:
        """Return the figures of one kind of a column in a group, such as all its shares."""
        return tuple(
            found
            for found in self.figures
            if found.column == column and found.figure == figure and found.group == group
        )

    def to_frame(self) -> Any:
        """Return all figures as a pandas frame, one a row."""
        import pandas as pd

        return pd.DataFrame(self.figures, columns=list(Figure._fields))

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Return all figures as CSV, or write them to a file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(Figure._fields)
        for figure in self.figures:
            writer.writerow(["" if v is None or _is_nan(v) else v for v in figure])
        return _returned(text.getvalue(), path)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and dictionaries, for JSON."""
        return {
            "statement": self.privacy_.statement(),
            "confidence": self.plan_.confidence,
            "groups": list(self.groups),
            "figures": [figure._asdict() for figure in self.figures],
        }

    def lines(self) -> tuple[Line, ...]:
        """Return the lines of the printed table."""
        groups, by = self.groups, self.plan_.by
        index = {found[:4]: found for found in self.figures}
        found = [
            Line("records", self._cells(index, "records", "count", "", groups), is_column=True)
        ]
        for described in self.plan_.cells:
            column = described.name
            own = [f for f in self.figures if f.column == column and f.group == ALL]
            shown = [f for f in own if f.figure in SHOWN]
            found.append(Line(described.label, ("",) * len(groups), is_column=True))
            of = (ALL,) if column == by else groups
            for figure in shown:
                label = figure.level or SHOWN[figure.figure]
                cells = self._cells(index, column, figure.figure, figure.level, of)
                found.append(Line(label, cells + ("",) * (len(groups) - len(of)), is_column=False))
        return tuple(found)

    def _cells(
        self,
        index: Mapping[tuple[Any, ...], Figure],
        column: str,
        figure: str,
        level: str,
        groups: Sequence[str],
    ) -> tuple[str, ...]:
        return tuple(shown_figure(index[column, figure, level, group]) for group in groups)

    @property
    def note(self) -> str:
        """One paragraph on the intervals."""
        percent = f"{100 * self.plan_.confidence:.4g} %"
        whose = "people" if self.privacy_.relation.by_person else "records"
        one = " One record of each person counts." if whose == "people" else ""
        return (
            f"Each figure has a {percent} interval. It covers noise and sampling for shares, "
            "means, standard deviations and quartiles: it is about the population from which "
            f"{whose} were drawn. For counts it covers noise alone: it is about this table. "
            f"Shares are among values that are not missing. Numbers are clipped to their declared "
            f"range.{one}"
        )

    def __str__(self) -> str:
        header = ["", *(_headed(group, self.plan_.by) for group in self.groups)]
        rows = [
            [("" if line.is_column else "  ") + line.label, *line.cells] for line in self.lines()
        ]
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        text = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in [header, *rows]
        ]
        return "\n".join([*text, "", self.note, self.privacy_.statement()])

    def __repr__(self) -> str:
        return f"Description({len(self.columns)} columns, {len(self.figures)} figures)"

    def to_latex(self, path: str | os.PathLike[str] | None = None) -> str | None:
        r"""Return the table as LaTeX (booktabs), or write it to a file.

        The guarantee and the note on intervals are below the table.
        """
        n = len(self.groups)
        header = " & ".join(["", *(_tex(_headed(group, self.plan_.by)) for group in self.groups)])
        rows = []
        for line in self.lines():
            label = _tex(line.label) if line.is_column else rf"\quad {_tex(line.label)}"
            rows.append(" & ".join([label, *map(_tex, line.cells)]) + r" \\")
        text = "\n".join(
            [
                rf"\begin{{tabular}}{{l{'r' * n}}}",
                r"\toprule",
                header + r" \\",
                r"\midrule",
                *rows,
                r"\bottomrule",
                r"\end{tabular}",
                "",
                rf"\par\footnotesize {_tex(self.note)} {_tex(self.privacy_.statement())}",
                "",
            ]
        )
        return _returned(text, path)

    def _repr_html_(self) -> str:
        """Return the table as HTML, for a notebook; `tacit.report` writes a page."""

        def row(cells: Sequence[str], kind: str) -> str:
            return (
                "<tr>"
                + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells)
                + "</tr>"
            )

        head = row(["", *(_headed(group, self.plan_.by) for group in self.groups)], "th")
        body = []
        for line in self.lines():
            label = html.escape(line.label)
            first = f"<b>{label}</b>" if line.is_column else f"&emsp;{label}"
            cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in line.cells)
            body.append(f'<tr><td style="text-align: left">{first}</td>{cells}</tr>')
        below = f"<p>{html.escape(self.note)}</p><p>{html.escape(self.privacy_.statement())}</p>"
        return f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>{below}"


def _headed(group: str, by: str | None) -> str:
    return group if group == ALL or by is None else f"{by}: {group}"


def shown_figure(found: Figure) -> str:
    """Return a figure and its interval as text, with as many digits as the interval supports.

    Examples
    --------
    >>> from tacit.descriptive.description import shown_figure
    >>> from tacit.descriptive.figures import Figure
    >>> shown_figure(Figure("sex", "share", "f", "all", 0.5123, 0.501, 0.523, "population", 0, 1))
    '51.2 % (50.1 to 52.3)'
    """
    value, low, high = found.value, found.low, found.high
    if math.isnan(value):
        return "too few"
    if found.figure in _PERCENT:
        value, low, high = 100 * value, 100 * low, 100 * high
    if found.figure in ("count", "missing"):
        low, high = math.floor(low + 0.5), math.floor(high + 0.5)
    is_exact = found.about == "table" and low == high
    texts = numbers_shown(value, low, high)
    percent = " %" if found.figure in _PERCENT else ""
    return f"{texts[0]}{percent}" + ("" if is_exact else f" ({texts[1]} to {texts[2]})")


def numbers_shown(value: float, low: float, high: float) -> list[str]:
    """Format a number and its ends: the last digit is about a tenth of the half width."""
    half = (high - low) / 2
    if all(float(number).is_integer() for number in (value, low, high)):
        digits = 0
    elif half > 0 and math.isfinite(half):
        digits = min(max(math.ceil(-math.log10(half)) + 1, 0), 6)
    else:
        digits = 3
    return [
        f"{number:,.{digits}f}" if abs(number) < 1e9 else f"{number:.4g}"
        for number in (value, low, high)
    ]


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


_TEX = {
    "\\": r"\textbackslash{}",
    **{c: rf"\{c}" for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c if c.isprintable() else " ") for c in text)


def _returned(text: str, path: str | os.PathLike[str] | None) -> str | None:
    if path is None:
        return text
    Path(path).write_text(text, encoding="utf-8")
    return None
