r"""Import exports of other programs: well-defined records in one Parquet file.

Importing is a step of the curator, before anything is private. It reads what the private readers
cannot read one record at a time: an unclosed quotation mark in a CSV joins a record with all that
follow. Values of text, worksheets and statistical packages become text, each on its own; columns of
a query keep the types that the database declares.
"""

from __future__ import annotations

import contextlib
import datetime
import gzip
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from tacit.io.arrow import is_number_type, is_text_type
from tacit.io.csv_file import CsvFile, likely_delimiter
from tacit.io.errors import TableError, check_path, shown_path
from tacit.io.file_formats import PACKED, UTF16, format_of
from tacit.io.values import text_of

EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
STATISTICS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
    ".dta": "read_dta",
}
TEXT = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}
# Records per batch of the written file.
_BATCH = 16_384
# A quoted value may span as many lines and characters; beyond, its quotation mark is a stray one.
_MOST_LINES, _MOST_CHARACTERS = 1_000, 2**20
# As many lines are named in the report.
_MOST_NAMED = 5
_NOT_IN_ENCODING = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Imported:
    """The result of an import: what was read, and what could not be read.

    **The counts are not private**: they are exact, for the holder of the table.

    Parameters
    ----------
    records
        The number of records in the written file.
    columns
        The names of its columns.
    unread
        The number of lines that are no records and were left out.
    notes
        Sentences on what was read otherwise than it stands in the source.

    Examples
    --------
    >>> from tacit.io import Imported
    >>> Imported(6001, ("age", "sex")).unread
    0
    """

    records: int
    columns: tuple[str, ...]
    unread: int = 0
    notes: tuple[str, ...] = ()


@dataclass
class _Report:
    """What an import notes while it reads."""

    unread: int = 0
    lines: dict[str, list[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unnamed: set[str] = field(default_factory=set)  # columns to which the header gives no name

    def leave_out(self, line: int, why: str) -> None:
        self.unread += 1
        self.lines.setdefault(why, []).append(line)

    def sentences(self) -> tuple[str, ...]:
        found = list(self.notes)
        for why, lines in self.lines.items():
            named = ", ".join(map(str, lines[:_MOST_NAMED]))
            more = " and others" if len(lines) > _MOST_NAMED else ""
            found.append(f"{len(lines):,} lines were left out: {why} (line {named}{more}).")
        return tuple(found)


Record = Sequence[str | None]


def import_table(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    sheet: str | None = None,
    header_row: int = 1,
    units_row: bool = False,
    labels: bool = False,
) -> Imported:
    r"""Write the records of an export to a Parquet file.

    Parameters
    ----------
    source
        A CSV (``.csv``, ``.txt``, ``.tsv``, also with ``.gz``), a workbook (``.xlsx``, ``.xls``,
        ``.xlsb``, ``.ods``), or a file of SPSS, SAS or Stata.
    out
        The Parquet file to write; it is replaced if it exists.
    encoding
        The encoding of a CSV, such as ``"latin-1"`` or ``"cp1252"``.
    delimiter
        The separator of the fields of a CSV; by default a comma, and a tab in ``.tsv``.
    decimal, thousands
        The marks in numbers that are text: with ``decimal=","``, 1,5 becomes 1.5.
    sheet
        The name of a worksheet; by default the first.
    header_row
        The row with the names of the columns, counted from 1; rows before it are not read.
    units_row
        Whether the row after the header has units; they become part of the names.
    labels
        Whether to write the labels of values of SPSS, SAS and Stata instead of their codes.

    Returns
    -------
    Imported
        Exact counts, for the holder of the table.

    Raises
    ------
    TableError
        If the file cannot be read, is not in the encoding, or needs a package that is not
        installed. Messages do not quote records.

    Notes
    -----
    **Guarantee**. A field becomes the same text whatever other records hold, unless quotation
    marks are unbalanced. An unnamed column without a value is left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.io import import_table, read_table
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> text = 'age;weight;note\n39;61,5;"two\nlines"\n41;80;\n'
    >>> _ = (folder / "export.csv").write_text(text)
    >>> import_table(folder / "export.csv", folder / "out.parquet", delimiter=";", decimal=",")
    Imported(records=2, columns=('age', 'weight', 'note'), unread=0, notes=())
    >>> read_table(folder / "out.parquet").column("weight").to_pylist()
    ['61.5', '80']
    """
    shown = shown_path(source)
    check_path(source, shown)
    _check_out(out)
    _check_marks(decimal, thousands)
    if not isinstance(header_row, int) or header_row < 1:
        raise TableError(f"header_row must be a whole number from 1, got {header_row!r}.")
    report = _Report()
    names: list[str]
    records: Iterable[Record]
    suffix = _suffix_of(Path(source), shown, encoding)
    if suffix in STATISTICS:
        names, records = _of_statistics(Path(source), suffix, shown, encoding, labels, report)
    else:
        if suffix in EXCEL:
            rows = _rows_of_workbook(Path(source), shown, sheet, report)
        else:
            rows = _CsvRows(Path(source), shown, suffix, encoding, delimiter, report)
        names, records = _named(rows, shown, header_row, units_row, report)
    read, found = _numbers_as_text(decimal, thousands), _Ambiguous(names, decimal, thousands)
    texts = ([_value(text, read) for text in found.seen(record)] for record in records)
    n_records, selected = _write_text(Path(out), names, texts, report)
    report.notes += found.sentences()
    return Imported(n_records, tuple(selected), report.unread, report.sentences())


def _check_out(out: str | os.PathLike[str]) -> None:
    _need("pyarrow", "pyarrow", "cli")
    if Path(out).suffix.lower() not in (".parquet", ".pq"):
        raise TableError(
            f"{shown_path(out)}: an import writes a Parquet file; name it with .parquet at the end."
        )


def _check_marks(decimal: str, thousands: str | None) -> None:
    if decimal not in (".", ","):
        raise TableError(f"decimal must be '.' or ',', got {decimal!r}.")
    if thousands is not None and (len(thousands) != 1 or thousands.isalnum()):
        raise TableError(
            f"thousands must be one character that is no letter or digit, got {thousands!r}; pass "
            "'.' or \"'\", or leave it out."
        )
    if thousands == decimal:
        raise TableError(f"decimal and thousands are both {decimal!r}; they must differ.")


def _need(module: str, package: str, extra: str = "import") -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise TableError(
            f"this needs {package}, which is not installed; pip install {package} (it belongs to "
            f"the extra {extra})."
        ) from None


def _suffix_of(path: Path, shown: str, encoding: str) -> str:
    """Return the ending by which a file is read; its content decides where it has a mark."""
    is_what = format_of(path) or ""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = (suffixes[:-1] if suffixes[-1:] == [".gz"] else suffixes)[-1:] or [""]
    known = suffix[0] in (*EXCEL, *STATISTICS)
    if "Excel" in is_what and not known:
        return ".xls" if "old" in is_what else ".xlsx"
    stated = next((end for end in STATISTICS if f"({end})" in is_what), None)
    if stated is not None and not known:
        return stated
    if known:
        return suffix[0]
    if suffix[0] in TEXT:
        packed = is_what == PACKED and suffixes[-1:] != [".gz"]
        if packed or "Parquet" in is_what or "Arrow" in is_what:
            raise TableError(f"{shown} is {is_what}, whatever its name says; rename it.")
        if is_what == UTF16 and encoding.lower().replace("_", "-") in _UTF8:
            raise TableError(f"{shown} is {is_what}; pass --encoding utf-16.")
        return suffix[0]
    raise TableError(
        f"{shown}: the file name has no known ending; exports are imported from "
        f"{', '.join((*TEXT, *EXCEL, *STATISTICS))}, and from databases by a query."
    )


# ---- text --------------------------------------------------------------------------------------


class _CsvRows:
    """The rows of a CSV with their line numbers; a quoted value may span lines.

    A line with an unclosed quotation mark, or text after a closing one, is no row: it is noted, and
    the next line is read as if it were absent. So is a row of several lines, or any row after the
    header, of another number of fields.
    """

    def __init__(
        self,
        path: Path,
        shown: str,
        suffix: str,
        encoding: str,
        delimiter: str | None,
        report: _Report,
    ) -> None:
        self._path, self._shown, self._encoding, self._report = path, shown, encoding, report
        try:
            "".encode(encoding)
        except LookupError:
            raise TableError(
                f"encoding {encoding!r} is not known; pass utf-8, latin-1, cp1252 or utf-16."
            ) from None
        self._assumed = delimiter is None
        self._delimiter = TEXT[suffix] if delimiter is None else delimiter
        CsvFile(path, shown, self._delimiter, False)  # checks the delimiter
        self.n_fields: int | None = None  # of the header, once it is known
        self.n_optional = 0  # fields at the end that have no name, and may be absent

    def _open(self) -> IO[bytes]:
        if self._path.suffix.lower() == ".gz":
            return cast(IO[bytes], gzip.open(self._path, "rb"))
        return self._path.open("rb")

    def _lines(self) -> Iterator[tuple[int, str]]:
        encoding = "utf-8-sig" if self._encoding.lower().replace("_", "-") in _UTF8 else None
        with self._open() as file, _readable_text(self._shown, self._encoding):
            # Bytes that are not in the encoding become surrogates, so that their line is known.
            text = io.TextIOWrapper(
                cast(Any, file),
                encoding=encoding or self._encoding,
                errors="surrogateescape",
                newline="\n",
            )
            for number, line in enumerate(text, start=1):
                if not line.isascii() and _NOT_IN_ENCODING.search(line):
                    raise TableError(
                        f"{self._shown}: line {number} is not text in {self._encoding}; pass the "
                        "encoding in which the table was saved, such as --encoding cp1252 for an "
                        "export of Windows, or latin-1."
                    )
                yield number, line.removesuffix("\n").removesuffix("\r")

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        lines = _PushedBack(self._lines())
        for number, line in lines:
            if not line.strip():
                continue
            used: list[tuple[int, str]] = []
            if '"' not in line:
                fields, why = line.split(self._delimiter), ""
            else:
                fields, used, why = self._quoted(line, lines)
            if not why and self.n_fields is not None:
                why = self._wrong_number(fields)
            if why:
                lines.push_back(used)
                self._report.leave_out(number, why)
            else:
                yield number, fields

    def _wrong_number(self, fields: list[str]) -> str:
        """Cut or fill fields at the end of a row; return a reason if their number is wrong."""
        assert self.n_fields is not None
        while len(fields) > self.n_fields and not fields[-1]:
            fields.pop()
        if self.n_fields - self.n_optional <= len(fields) < self.n_fields:
            fields += [""] * (self.n_fields - len(fields))
        if len(fields) == self.n_fields:
            return ""
        return f"they have more or fewer fields than the {self.n_fields} of the header"

    def _quoted(
        self, line: str, lines: _PushedBack
    ) -> tuple[list[str], list[tuple[int, str]], str]:
        """Split a line with quotation marks; return its fields, further lines used, and a reason.

        A field that begins with a quotation mark ends with one; two of them in it mean one.
        """
        fields: list[str] = []
        used: list[tuple[int, str]] = []
        start, mark = 0, self._delimiter
        while True:
            if line[start : start + 1] != '"':
                end = line.find(mark, start)
                fields.append(line[start:] if end < 0 else line[start:end])
            else:
                end, value = start + 1, ""
                while True:
                    close = line.find('"', end)
                    if close < 0:
                        more = next(lines, None)
                        if more is not None:
                            used.append(more)
                            line += "\n" + more[1]
                        if more is None or len(used) > _MOST_LINES or len(line) > _MOST_CHARACTERS:
                            return [], used, "a quotation mark is not closed"
                    elif line[close + 1 : close + 2] == '"':
                        value, end = value + line[end : close + 1], close + 2
                    else:
                        value += line[end:close]
                        break
                fields.append(value)
                end = close + 1
                while line[end : end + 1] in (" ", "\t") and line[end] != mark:
                    end += 1
                if end < len(line) and line[end] != mark:
                    return [], used, "text follows a closing quotation mark"
                end = end if end < len(line) else -1
            if end < 0:
                return fields, used, ""
            start = end + 1

    def refuse_other_delimiter(self, names: Sequence[str]) -> None:
        """Refuse a header of one name if another delimiter, which nobody declared, splits it."""
        if self._assumed and len(names) == 1:
            likely = likely_delimiter(names[0])
            if likely is not None and likely != self._delimiter:
                raise TableError(
                    f"{self._shown}: the header is one name if split at {self._delimiter!r}, and "
                    f"several if split at {likely!r}; pass the delimiter {likely!r}."
                )


_UTF8 = ("utf-8", "utf8", "utf-8-sig")


@contextlib.contextmanager
def _readable_text(shown: str, encoding: str) -> Iterator[None]:
    try:
        yield
    except UnicodeError:
        raise TableError(
            f"{shown} is not text in {encoding}; pass the encoding in which it was saved."
        ) from None
    except (OSError, EOFError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{shown} cannot be read to its end; write it again.") from None


class _PushedBack:
    """An iterator of lines to which lines can be given back."""

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines = lines
        self._again: list[tuple[int, str]] = []

    def __iter__(self) -> _PushedBack:
        return self

    def __next__(self) -> tuple[int, str]:
        return self._again.pop() if self._again else next(self._lines)

    def push_back(self, lines: Sequence[tuple[int, str]]) -> None:
        self._again.extend(reversed(lines))


# ---- worksheets --------------------------------------------------------------------------------


def _rows_of_workbook(
    path: Path, shown: str, sheet: str | None, report: _Report
) -> Iterable[tuple[int, list[str]]]:
    calamine = _need("python_calamine", "python-calamine")
    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
        names = list(book.sheet_names)
    except calamine.PasswordError:
        raise TableError(f"{shown} has a password; save it without one.") from None
    except Exception:
        raise TableError(
            f"{shown} cannot be read as a workbook: it is damaged or of another format."
        ) from None
    if sheet is not None and sheet not in names:
        raise TableError(
            f"{shown} has no worksheet {sheet!r}; choose from {', '.join(map(repr, names))}."
        )
    if not names:
        raise TableError(f"{shown} has no worksheet.")
    if sheet is None and len(names) > 1:
        report.notes.append(f"the first of {len(names)} worksheets was read, {names[0]!r}.")
    try:
        cells = book.get_sheet_by_name(names[0] if sheet is None else sheet)
        rows = cells.to_python(skip_empty_area=False)
    except Exception:
        raise TableError(f"{shown}: the worksheet cannot be read; write it again.") from None
    return ((number, [_of_cell(cell) for cell in row]) for number, row in enumerate(rows, start=1))


def _of_cell(value: Any) -> str:
    """Return the text of a cell: dates as in ISO 8601, whole numbers without a decimal point."""
    if isinstance(value, datetime.datetime):
        whole = value.time() == datetime.time()
        return value.date().isoformat() if whole else value.isoformat(" ", "seconds")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return str(value)
    text = text_of(value)
    return "" if text is None else text


# ---- statistical packages ----------------------------------------------------------------------


def _of_statistics(
    path: Path, suffix: str, shown: str, encoding: str, labels: bool, report: _Report
) -> tuple[list[str], Iterator[Record]]:
    package = _need("pyreadstat", "pyreadstat")
    read = getattr(package, STATISTICS[suffix])
    options: dict[str, Any] = {"output_format": "dict"}
    if encoding.lower() not in _UTF8:
        options["encoding"] = encoding
    try:
        _, facts = read(str(path), metadataonly=True, **options)
    except Exception:
        raise TableError(
            f"{shown} cannot be read as a file of a statistical package: it is damaged, truncated "
            "or of another format; export it again."
        ) from None
    names = list(facts.column_names)
    if facts.variable_value_labels and not labels:
        listed = ", ".join(map(repr, list(facts.variable_value_labels)[:_MOST_NAMED]))
        report.notes.append(f"codes were written and not their labels ({listed}); see --labels.")

    def records() -> Iterator[Record]:
        try:
            columns, _ = read(str(path), **options)
        except Exception:
            raise TableError(f"{shown} cannot be read to its end; export it again.") from None
        meanings = facts.variable_value_labels if labels else {}
        known = [meanings.get(name, {}) for name in names]
        for record in zip(*(columns[name] for name in names), strict=True):
            pairs = zip(known, record, strict=True)
            yield [_of_cell(meaning.get(value, value)) for meaning, value in pairs]

    return names, records()


# ---- databases ---------------------------------------------------------------------------------


def import_query(sql: str, database: str, out: str | os.PathLike[str]) -> Imported:
    """Write the records of a query to a Parquet file; the query runs once.

    Parameters
    ----------
    sql
        A query that returns records.
    database
        ``duckdb://path/of/file.duckdb``, or ``postgresql://user@host/name``.
    out
        The Parquet file to write; it is replaced if it exists.

    Raises
    ------
    TableError
        If the database cannot be reached, or refuses the query. Messages repeat neither the
        address, which may contain a password, nor a record.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.io import import_query
    >>> out = pathlib.Path(tempfile.mkdtemp(), "out.parquet")
    >>> import_query("select 39 as age, 'm' as sex", "duckdb://", out)
    Imported(records=1, columns=('age', 'sex'), unread=0, notes=())
    """
    _check_out(out)
    scheme, found, place = database.partition("://")
    if not found or scheme not in ("duckdb", "postgresql", "postgres"):
        raise TableError(
            "--database must begin with duckdb:// or postgresql://; the address is not repeated, "
            "since it may contain a password."
        )
    ask = _ask_duckdb if scheme == "duckdb" else _ask_postgres
    with ask(place if scheme == "duckdb" else database, sql) as reader:
        schema = reader.schema
        names = list(schema.names)
        if not names or len(set(names)) < len(names):
            raise TableError("the query returns two columns of one name; name each by AS.")
        for column in schema:
            _refuse_type(column.name, column.type)
        with _new_parquet(Path(out), schema) as write:
            n_records = 0
            for batch in reader:
                write(batch)
                n_records += batch.num_rows
    return Imported(n_records, tuple(names))


def _refuse_type(name: str, kind: Any) -> None:
    import pyarrow as pa

    plain = is_text_type(kind) or is_number_type(kind) or pa.types.is_null(kind)
    if not plain and not pa.types.is_date(kind) and not pa.types.is_timestamp(kind):
        raise TableError(
            f"the query returns the column {name!r} of type {kind}, which is neither a number, "
            f"text nor a date; cast it in the query, such as CAST({name} AS VARCHAR) AS {name}."
        )


@contextlib.contextmanager
def _ask_duckdb(place: str, sql: str) -> Iterator[Any]:
    duckdb = _need("duckdb", "duckdb")
    if place and place != ":memory:":
        check_path(place, shown_path(place))
    try:
        connection = duckdb.connect(place or ":memory:", read_only=place not in ("", ":memory:"))
    except duckdb.Error:
        raise TableError(
            f"{shown_path(place)} cannot be opened as a DuckDB database; check the path, and that "
            "no other program writes to it."
        ) from None
    try:
        # Errors of the query's text say what is wrong in it; others may repeat a value.
        tells = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
        with _answers("DuckDB", tells):
            relation = connection.sql(sql)
        if relation is None:
            raise TableError("--sql returns no records; write a query that begins with SELECT.")
        with _answers("DuckDB", tells):
            yield relation.to_arrow_reader(_BATCH)
    finally:
        connection.close()


@contextlib.contextmanager
def _ask_postgres(address: str, sql: str) -> Iterator[Any]:
    dbapi = _need("adbc_driver_postgresql.dbapi", "adbc-driver-postgresql")
    try:
        connection = dbapi.connect(address)
    except Exception as error:
        raise TableError(
            f"the database cannot be reached ({type(error).__name__}); check the address, which is "
            "not repeated here."
        ) from None
    with connection, connection.cursor() as cursor, _answers("PostgreSQL", ()):
        cursor.execute(sql)
        yield cursor.fetch_record_batch()


@contextlib.contextmanager
def _answers(which: str, tells: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        yield
    except TableError:
        raise
    except OSError:  # of the written file
        raise
    except Exception as error:
        said = f": {str(error).splitlines()[0]}" if isinstance(error, tells) else ""
        raise TableError(
            f"{which} refuses the query ({type(error).__name__}){said}; check --sql in the "
            "database's own program."
        ) from None


# ---- records to Parquet ------------------------------------------------------------------------


def _named(
    rows: Any, shown: str, header_row: int, units_row: bool, report: _Report
) -> tuple[list[str], Iterator[Record]]:
    """Return the names in the header and the records after it, all of one length."""
    found = iter(rows)
    header: list[str] = []
    for _ in range(header_row):
        _, header = next(found, (0, []))
    header = [name.strip() for name in header]
    if not any(header):
        raise TableError(f"{shown} has no header in row {header_row}; see --header-row.")
    if isinstance(rows, _CsvRows):
        rows.refuse_other_delimiter(header)
    while len(header) > 1 and not header[-1] and not isinstance(rows, _CsvRows):
        header.pop()  # a worksheet may be wider than its table
    if units_row:
        _, units = next(found, (0, []))
        pairs = zip(header, [*units, *[""] * len(header)], strict=False)
        header = [f"{name} [{unit.strip()}]" if unit.strip() else name for name, unit in pairs]
    names = _distinct(header, report)
    if isinstance(rows, _CsvRows):
        rows.n_fields = len(header)
        rows.n_optional = len(header) - 1 - max(i for i, name in enumerate(header) if name)

    def records() -> Iterator[Record]:
        n, empty = len(names), 0
        for number, row in found:
            if not any(row):
                empty += 1
            elif any(row[n:]):
                report.leave_out(number, "they have values outside of the columns of the header")
            else:
                yield [*row[:n], *[""] * (n - len(row))]
        if empty:
            report.notes.append(f"{empty:,} empty rows were left out.")

    return names, records()


def _distinct(header: Sequence[str], report: _Report) -> list[str]:
    """Return names, each once: unnamed columns are numbered, and repeated names too."""
    names: list[str] = []
    for place, name in enumerate(header, start=1):
        known = name or f"column {place}"
        number = 2
        while known in names or (known != name and known in header):
            known = f"{name or f'column {place}'} ({number})"
            number += 1
        if name and known != name:
            report.notes.append(f"column {place} is named as another one; it is called {known!r}.")
        if not name:
            report.unnamed.add(known)
        names.append(known)
    return names


def _value(text: str | None, read: Callable[[str], str]) -> str | None:
    """Return the text of a value without outer blanks; None for an empty one."""
    stripped = (text or "").strip()
    return read(stripped) if stripped else None


def _numbers_as_text(decimal: str, thousands: str | None) -> Callable[[str], str]:
    """Return a function that writes a number with a decimal point; other text is unchanged."""
    if decimal == "." and thousands is None:
        return lambda text: text
    # 1.234,5 is a number in any case: a point cannot be a decimal mark beside a comma.
    other = thousands or ("." if decimal == "," else ",")
    grouped = rf"[0-9]{{1,3}}(?:{re.escape(other)}[0-9]{{3}})+"
    fraction = rf"{re.escape(decimal)}[0-9]+"
    whole = grouped if thousands is not None else rf"{grouped}(?={re.escape(decimal)})"
    number = re.compile(
        rf"[+-]?(?:{whole}|[0-9]+|(?={re.escape(decimal)}))(?:{fraction})?(?:[eE][+-]?[0-9]+)?"
    )

    def read(text: str) -> str:
        if number.fullmatch(text) is None:
            return text
        return text.replace(other, "").replace(decimal, ".")

    return read


class _Ambiguous:
    """Count texts such as 1.234 where the decimal mark is a comma and grouping is not declared."""

    def __init__(self, names: Sequence[str], decimal: str, thousands: str | None) -> None:
        self._names = names
        self._counts = [0] * len(names)
        mark = "." if decimal == "," and thousands is None else None
        self._pattern = None if mark is None else re.compile(r" *[+-]?[0-9]{1,3}(?:\.[0-9]{3})+ *")

    def seen(self, record: Record) -> Record:
        if self._pattern is not None:
            for place, text in enumerate(record):
                if text and "." in text and self._pattern.fullmatch(text):
                    self._counts[place] += 1
        return record

    def sentences(self) -> list[str]:
        found = [(n, name) for n, name in zip(self._counts, self._names, strict=True) if n]
        return [
            f"column {name!r}: {n:,} values have a point as in 1.234 and were left as they are; "
            "pass --thousands . if it groups digits."
            for n, name in found
        ]


def _write_text(
    out: Path, names: Sequence[str], records: Iterator[Record], report: _Report
) -> tuple[int, list[str]]:
    """Write records as columns of text; return their number and the names of written columns."""
    import pyarrow as pa

    with tempfile.TemporaryFile(dir=out.parent) as spool:
        # Which columns have values is known at the end, so the first pass goes to a spool.
        schema = pa.schema([(name, pa.string()) for name in names])
        n_records, filled = 0, [0] * len(names)
        with pa.ipc.new_stream(spool, schema) as stream:
            for batch in _batches(records):
                columns = list(zip(*batch, strict=True))
                for place, column in enumerate(columns):
                    filled[place] += sum(value is not None for value in column)
                arrays = [pa.array(column, pa.string()) for column in columns]
                stream.write_batch(pa.record_batch(arrays, schema=schema))
                n_records += len(batch)
        selected = [
            name for place, name in enumerate(names) if filled[place] or name not in report.unnamed
        ]
        for place, name in enumerate(names):
            if not filled[place]:
                what = "was left out" if name not in selected else "is kept"
                report.notes.append(f"column {name!r} has no values; it {what}.")
        spool.seek(0)
        with _new_parquet(out, pa.schema([(name, pa.string()) for name in selected])) as write:
            for batch in pa.ipc.open_stream(spool):
                write(batch.select(selected))
    return n_records, selected


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    for record in records:
        batch.append(record)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


@contextlib.contextmanager
def _new_parquet(out: Path, schema: Any) -> Iterator[Callable[[Any], None]]:
    """Write a Parquet file beside its place, and put it there once it is whole."""
    from pyarrow import parquet

    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with parquet.ParquetWriter(part, schema) as writer:
            yield writer.write_batch
        os.replace(part, out)
    finally:
        part.unlink(missing_ok=True)
