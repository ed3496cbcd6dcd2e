"""HTML tables with a caption, whose headers say whether they head a row or a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.report.markup import Child, Markup, named, tag


@dataclass(frozen=True)
class Heading:
    """The head of a column of text, of numbers, of single words or of pictures.

    A head that is a ``name`` from elsewhere may be broken anywhere.
    """

    text: str
    number: bool = False
    picture: bool = False
    word: bool = False
    name: bool = False


@dataclass(frozen=True)
class Row:
    """The cells of a row, the first of which names it; ``kind`` is a class of the style sheet."""

    cells: tuple[Child, ...]
    kind: str | None = None


def table(
    caption: Child,
    headings: Sequence[Heading],
    rows: Sequence[Row],
    *,
    stacked: bool = False,
    forest: bool = False,
) -> Markup:
    """Return a table; on a phone a stacked one becomes blocks, a forest puts pictures below.

    Examples
    --------
    >>> from tacit.report.html_table import Heading, Row, table
    >>> table("Ages", [Heading("name"), Heading("age", number=True)], [Row(("Ann", "39"))])[:40]
    '<div class="table"><table><caption>Ages<'
    """

    # To a screen reader, blocks are no table any more; roles say that they are one.
    def role(name: str) -> str | None:
        return name if stacked or forest else None

    head = tag(
        "tr",
        *(
            tag("th", _head(h), scope="col", class_=_kind(h), role=role("columnheader"))
            for h in headings
        ),
        role=role("row"),
    )
    body = [
        tag(
            "tr",
            tag("th", row.cells[0], scope="row", role=role("rowheader")),
            *(
                tag(
                    "td",
                    cell,
                    class_=_kind(heading),
                    data_name=heading.text if stacked and cell else None,
                    role=role("cell"),
                )
                for cell, heading in zip(row.cells[1:], headings[1:], strict=True)
            ),
            class_=row.kind,
            role=role("row"),
        )
        for row in rows
    ]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", head, role=role("rowgroup")),
            tag("tbody", *body, role=role("rowgroup")),
            class_="stack" if stacked else "forest" if forest else None,
            role=role("table"),
        ),
        class_="table",
    )


def _head(heading: Heading) -> Child:
    return named(heading.text) if heading.name else heading.text


def _kind(heading: Heading) -> str | None:
    kinds = ("picture", heading.picture), ("number", heading.number), ("word", heading.word)
    return next((kind for kind, applies in kinds if applies), None)
