"""Readers of exports: what is imported, and then read from the Parquet file."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import openpyxl
import pandas as pd
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

from tacit.io import import_table
from tacit.io.reading import open_table
from tacit.schema import encode_file
from tacit.testing import Encoded, Reader
from tests.testing.readers.columns import COLUMNS, DATE_COLUMNS, anew, encode_batches
from tests.testing.readers.hostile_values import HOSTILE_FLOATS, HOSTILE_TEXTS
from tests.testing.readers.lines import (
    SCHEMA,
    csv_content,
    hostile_lines,
    labelled,
    lines_of,
    ordinary_line,
)


def imported_csv(rng: Random, folder: Path) -> Reader:
    """Return a reader of lines; in latin-1, since a line of another encoding is refused."""
    path, out, content = folder / "export.csv", folder / "export.parquet", csv_content(rng, ",")

    def encode(lines: Any) -> Encoded:
        anew(path).write_bytes(content(lines))
        import_table(path, anew(out), encoding="latin-1")
        return labelled(*encode_file(out, SCHEMA))

    records = [ordinary_line(rng, ",") for _ in range(rng.randrange(2, 12))]
    return Reader("imported CSV", records, hostile_lines(rng, ",", 300), encode, lines_of)


def _of_column(
    name: str, write: Callable[[list[Any], Path], None]
) -> Callable[[list[Any], Path], Encoded]:
    def encode(values: list[Any], folder: Path) -> Encoded:
        path, out = folder / name, folder / "export.parquet"
        write(values, anew(path))
        import_table(path, anew(out))
        return encode_batches(open_table(out).batches(["x"]), (*COLUMNS, *DATE_COLUMNS))

    return encode


def _write_workbook(values: list[Any], path: Path) -> None:
    book = openpyxl.Workbook()
    for value in ["x", *values]:
        book.active.append([value])
    book.save(path)


CELLS = ["Oslo", 1, 7.5, "2", True, "NA", datetime.datetime(2020, 1, 1), "1900-01-01"]
# A cell holds 32,767 characters, and neither NUL nor other control characters.
HOSTILE_CELLS: dict[str, Any] = {
    kind: text
    for kind, text in HOSTILE_TEXTS.items()
    if text is None or (len(text) < 32_767 and not ILLEGAL_CHARACTERS_RE.search(text))
} | {"date": datetime.datetime(4711, 4, 7), "number": 471147e200, "false": False}


def imported_workbook(rng: Random, folder: Path) -> Reader:
    """Return a reader of cells of any type."""
    encode = _of_column("export.xlsx", _write_workbook)
    records = [rng.choice(CELLS) for _ in range(rng.randrange(2, 12))]
    return Reader("imported workbook", records, HOSTILE_CELLS, lambda v: encode(v, folder))


def _write_sav(values: list[Any], path: Path) -> None:
    import pyreadstat

    pyreadstat.write_sav(pd.DataFrame({"x": pd.Series(values, dtype="float64")}), path)


def imported_sav(rng: Random, folder: Path) -> Reader:
    """Return a reader of numbers as SPSS stores them."""
    encode = _of_column("export.sav", _write_sav)
    records = [rng.choice([0.0, 1.0, 7.5, -3.25, 20200101.0]) for _ in range(rng.randrange(2, 12))]
    return Reader("imported SPSS file", records, HOSTILE_FLOATS, lambda v: encode(v, folder))
