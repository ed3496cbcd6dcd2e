"""Audit the whole path from a file to a model, with one hostile line more.

Files are made from a public schema alone. One of them has an additional line that is as hostile as
possible to any reader. Both are fitted with the same noise, and all releases must be as close
together as their declared sensitivity says.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import clone

from tacit.noise import ReplayMismatch
from tacit.schema import ClassTarget, NumberTarget, Schema
from tacit.testing import replay

_RECORDS = 24
_MARK = b"\xef\xbb\xbf"
# Field contents that are no ordinary values.
_FIELDS: Mapping[str, bytes] = {
    "nothing": b"",
    "not a number": b"nan",
    "infinity": b"-inf",
    "a huge number": b"4e307",
    "a number beyond floats": b"9" * 400,
    "a tiny number": b"5e-324",
    "a word": b"\xc3\xa5",
    "no UTF-8": b"\xff\xfe",
    "NUL": b"\x00",
    "an open quote": b'"',
    "a line break in quotes": b'"1\n2"',
    "a long text": b"x" * 100_000,
}


@dataclass(frozen=True)
class FileAudit:
    """Number of compared pairs of files, and contradictions of the declared sensitivity.

    Examples
    --------
    >>> from tacit.audit.files import FileAudit
    >>> print(FileAudit(80, 80).conclusion.split(":")[0])
    80 pairs of files that differ in one line were fitted with the same noise
    """

    pairs: int
    releases: int
    contradictions: tuple[str, ...] = ()

    @property
    def conclusion(self) -> str:
        """The result in a sentence; it never says that every file is safe."""
        said = (
            f"{self.pairs} pairs of files that differ in one line were fitted with the same noise"
        )
        if self.contradictions:
            return f"CONTRADICTED {len(self.contradictions)} times: {said}."
        return (
            f"{said}: {self.releases} releases were no further apart than declared. Other lines "
            "may do what these did not."
        )


def audit_files(model: Any) -> FileAudit:
    """Fit files made from a schema, with and without one hostile line, and compare the releases.

    Parameters
    ----------
    model
        A `TableModel` with the schema to test; it is not fitted, and no real records are read.

    Examples
    --------
    >>> from tacit.audit import audit_files
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.schema import ClassTarget, Number, Schema
    >>> from tacit.table_model import TableModel
    >>> schema = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
    >>> audit_files(TableModel(schema, LogisticRegression(1.0, 1e-6))).contradictions
    ()
    """
    names, lines = _ordinary(model.schema)
    pairs = releases = 0
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder, "without.csv"), Path(folder, "with.csv")
        for kind, hostile in _hostile(names, lines[0]):
            for place in (0, len(lines)):
                _write(one, names, lines)
                _write(other, names, [*lines[:place], hostile, *lines[place:]])
                pairs += 1
                try:
                    releases += replay(lambda path: clone(model).fit_file(path), one, other)
                except (ReplayMismatch, ValueError, RuntimeError) as why:
                    where = "first" if place == 0 else "last"
                    wrong.append(f"{kind}, {where}: {type(why).__name__}: {why}"[:400])
    return FileAudit(pairs, releases, tuple(wrong))


def _write(path: Path, names: bytes, lines: list[bytes]) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(b"\n".join([names, *lines, b""]))


def _ordinary(schema: Schema) -> tuple[bytes, list[bytes]]:
    """Return a header, and lines of values that the schema declares."""
    target = schema.target
    if not isinstance(target, ClassTarget | NumberTarget):
        raise ValueError(
            "the schema declares no target, so that there is no model to fit; add one."
        )
    names = [column.name for column in schema.columns] + [target.name]
    values = [_values(column) for column in schema.columns]
    if isinstance(target, NumberTarget):
        values.append((str(target.lower), str(target.upper)))
    else:
        words = target.words or tuple((str(name),) for name in target.classes)
        values.append(tuple(word for group in words for word in group))
    lines = [
        b",".join(_quoted(of[(place * step) % len(of)]) for step, of in enumerate(values, start=1))
        for place in range(_RECORDS)
    ]
    return b",".join(map(_quoted, names)), lines


def _values(column: object) -> tuple[str, ...]:
    """Return declared values of a column; numbers of people for a unit column."""
    for name in ("values", "cuts", "true"):
        if declared := getattr(column, name, ()):
            more = getattr(column, "false", ()) if name == "true" else ()
            return tuple(map(str, (*declared, *more)))
    if hasattr(column, "lower"):
        low, high = float(column.lower), float(column.upper)  # type: ignore[attr-defined]
        return str(low), str((low + high) / 2), str(high)
    return tuple(map(str, range(_RECORDS)))


def _quoted(text: str) -> bytes:
    return b'"' + text.replace('"', '""').encode("utf-8") + b'"'


def _hostile(names: bytes, line: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield lines that are hostile by their bytes, or by the value of one field."""
    n = names.count(b",") + 1
    yield "the same line again", line
    yield "the header again", names
    yield "a byte-order mark", _MARK + line
    yield "an empty line", b""
    yield "blanks", b" \t "
    yield "NULs", b"\x00" * 9
    yield "an open quote", b'"' + line
    yield "a carriage return", line + b"\r"
    yield "too few fields", b"1"
    yield "too many fields", b"," * (3 * n)
    yield "no UTF-8", b"\xff" + line
    yield "a line of megabytes", b"x" * 3_000_000
    fields = [b"1"] * n
    for place in range(min(n, 3)):
        at = place if place < 2 else n - 1
        for kind, value in _FIELDS.items():
            yield f"field {at}: {kind}", b",".join([*fields[:at], value, *fields[at + 1 :]])
