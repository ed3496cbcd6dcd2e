"""Check that a reader reads each record independently of the others."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tacit.arrays import Array

# Digits in hostile records: a message that repeats a record contains them.
MARK = "471147"
_MARKS = (MARK, "4.71147")
# Exceeds the float error of a sum of a few hundred records of size one by far.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Encoded:
    """The result of reading some records: the bytes of each, in order, and sums over all.

    One record may change each sum by at most 1 in L2 norm.

    Examples
    --------
    >>> from tacit.testing import Encoded
    >>> len(Encoded([b"row of the first", b"row of the second"]).rows)
    2
    """

    rows: Sequence[bytes]
    sums: Sequence[Array] = ()


@dataclass(frozen=True, eq=False)
class Reader:
    """A function from records to their encodings, and records to test it with.

    Parameters
    ----------
    name
        Name in error messages.
    records
        Ordinary records, in the reader's own terms; each gives one row.
    hostile
        Records that represent mistakes and attacks, by kind. Put the digits 471147 into them: they
        identify a message that repeats a record.
    encode
        Writes records where the reader finds them, reads and encodes them.
    most_rows
        Number of rows that a hostile record may give; several for a text of several lines.
    may_refuse
        Kinds that may be refused according to docs/known_limits.md.

    Examples
    --------
    >>> from tacit.testing import Encoded, Reader
    >>> def encode(records):
    ...     return Encoded([str(record).encode() for record in records])
    >>> Reader("text", [1, 2], {"huge": 471147e300}, encode).plain.rows
    [b'1', b'2']
    """

    name: str
    records: Sequence[Any]
    hostile: Mapping[str, Any]
    encode: Callable[[Sequence[Any]], Encoded]
    most_rows: Callable[[Any], int] = field(default=lambda record: 1)
    may_refuse: frozenset[str] = frozenset()

    @cached_property
    def plain(self) -> Encoded | str:
        """The encoding of the ordinary records, or the reason for which their table is refused."""
        return self.attempt(self.records)

    def attempt(self, records: Sequence[Any]) -> Encoded | str:
        """Return the encoding of records, or the whole text of the error."""
        try:
            return self.encode(records)
        except Exception as error:
            return "\n".join(map(str, shown_errors(error)))


def check_reader(reader: Reader, kind: str, positions: Sequence[int] | None = None) -> int:
    """Insert a hostile record, and put it in the place of another, at some positions.

    A table that is refused without it, for its type, must be refused with it in the same words.

    1. The encoding of every other record is unchanged bit for bit, and sums move by at most what
    one record may move them. 2. The hostile record gives at most its own rows, the same at any
    position. 3. Nothing warns of it, no error or log line repeats it, and only known kinds are
    refused. Removal of a record is insertion with the tables exchanged.

    Parameters
    ----------
    reader
        The reader and its records.
    kind
        The hostile record to use.
    positions
        Positions from 0 to the number of records; by default first, in the middle and last.

    Returns
    -------
    int
        Number of tables that were read.

    Raises
    ------
    AssertionError
        If one of these conditions fails; the message names the reader, the kind and the position.

    Examples
    --------
    >>> import pandas as pd
    >>> from tacit.schema import Number
    >>> from tacit.schema.encoding import encode_rows
    >>> from tacit.testing import Encoded, Reader, check_reader
    >>> def encode(values):
    ...     rows = encode_rows(pd.DataFrame({"age": values}), [Number("age", 0, 100)])
    ...     return Encoded([row.tobytes() for row in rows])
    >>> check_reader(Reader("pandas", [30, 41, 52], {"null": None}, encode), "null")
    5
    >>> def centred(values):
    ...     ages = pd.Series(values, dtype=float)
    ...     return Encoded([row.tobytes() for row in (ages - ages.mean()).to_numpy()])
    >>> check_reader(Reader("centred", [30, 41, 52], {"old": 471147}, centred), "old")
    Traceback (most recent call last):
    AssertionError: centred, 'old' inserted at 0: the record at 0 is read differently
    """
    n, hostile, plain = len(reader.records), reader.hostile[kind], reader.plain
    assert isinstance(plain, str) or len(plain.rows) == n, f"{reader.name}: not one row a record"
    own: Sequence[bytes] | None = None
    tables = 0
    for position in (0, n // 2, n) if positions is None else positions:
        for after in range(position, min(position + 2, n + 1)):
            act = "inserted" if after == position else "put in for a record"
            where = f"{reader.name}, {kind!r} {act} at {position}"
            records = [*reader.records[:position], hostile, *reader.records[after:]]
            with _listening() as lines:
                encoded = reader.attempt(records)
            tables += 1
            _check_unsaid(where, *lines)
            if isinstance(encoded, str) or isinstance(plain, str):
                _check_refusal(plain, encoded, kind in reader.may_refuse, where)
                continue
            assert not lines, f"{where}: a warning or a line of a log tells of it"
            found = _rest(plain.rows, encoded.rows, position, after, where)
            _check_sums(plain.sums, encoded.sums, 1 + after - position, where)
            most = reader.most_rows(hostile)
            assert len(found) <= most, f"{where}: it gives {len(found)} rows, more than its own"
            own = found if own is None else own
            assert found == own, f"{where}: it is read by where it stands"
    return tables


def _check_refusal(
    plain: Encoded | str, encoded: Encoded | str, is_known: bool, where: str
) -> None:
    """Check that a refusal is by type, and so the same without the record, or a known one."""
    assert isinstance(encoded, str), f"{where}: the table is no longer refused"
    _check_unsaid(where, encoded)
    assert is_known or encoded == plain, f"{where}: the table is refused: {encoded}"


def _rest(
    plain: Sequence[bytes], rows: Sequence[bytes], position: int, after: int, where: str
) -> Sequence[bytes]:
    """Return the hostile record's rows; check that the other records' rows did not change."""
    n_after = len(plain) - after
    assert len(rows) >= position + n_after, f"{where}: another record is lost"
    end = len(rows) - n_after
    others = [*enumerate(rows[:position]), *enumerate(rows[end:], start=after)]
    for number, row in others:
        assert row == plain[number], f"{where}: the record at {number} is read differently"
    return rows[position:end]


def _check_sums(
    plain: Sequence[Array],
    sums: Sequence[Array],
    n_changes: int,
    where: str,
) -> None:
    for number, (before, after) in enumerate(zip(plain, sums, strict=True)):
        distance = float(np.linalg.norm(after - before))
        assert distance <= n_changes + _ROUNDING, f"{where}: sum {number} moves by {distance:.3g}"


@contextlib.contextmanager
def _listening() -> Iterator[list[str]]:
    """Collect warnings and log lines."""
    reader_lines = _Lines()
    root = logging.getLogger()
    level = root.level
    root.addHandler(reader_lines)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield reader_lines.lines
        reader_lines.lines.extend(str(warning.message) for warning in warned)
    finally:
        root.removeHandler(reader_lines)
        root.setLevel(level)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Store the line."""
        self.lines.append(record.getMessage())


def shown_errors(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the errors of a traceback: the error, and the errors that caused it."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _check_unsaid(where: str, *lines: str) -> None:
    for line in lines:
        assert not any(mark in line for mark in _MARKS), f"{where}: the record is repeated"
