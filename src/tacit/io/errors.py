"""Define errors of schemas, tables and files; messages never quote a record."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class SchemaError(ValueError):
    """A schema is invalid; the message names the file, the column, the key and the remedy.

    Examples
    --------
    >>> from tacit.schema import Number
    >>> Number("age", lower=90, upper=17)
    Traceback (most recent call last):
    tacit.io.errors.SchemaError: column 'age': ...
    """


class TableError(ValueError):
    """A table cannot be read by its schema; the message never quotes a record's value.

    Examples
    --------
    >>> from tacit.io import read_table
    >>> read_table("no-such-file.csv")
    Traceback (most recent call last):
    tacit.io.errors.TableError: 'no-such-file.csv': there is no such file; ...
    """


def wrong_type(name: str, kind: object) -> TableError:
    """Return the error for a column whose stored type cannot be read."""
    return TableError(
        f"column {name!r} is of type {kind}, which is neither a number nor text; "
        "write it as a number or as text, or declare it ignored; a date without a time zone can be "
        'declared as kind = "age", "year" or "weekday".'
    )


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return a path as quoted in errors, shortened if long."""
    text = repr(os.fspath(path))
    return text if len(text) <= 200 else text[:100] + "..." + text[-90:]


def check_path(path: str | os.PathLike[str], shown: str) -> None:
    """Refuse a path that is not a readable, non-empty file."""
    try:
        if not Path(path).exists():
            raise TableError(f"{shown}: there is no such file; check the path.")
        if not Path(path).is_file():
            raise TableError(f"{shown} is not a file; pass the path of one table.")
        with Path(path).open("rb") as file:
            empty = not file.read(1)
    except (OSError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        why = getattr(error, "strerror", None) or "the path is not valid"
        raise TableError(f"{shown} cannot be read ({why}).") from None
    if empty:
        raise TableError(f"{shown} is empty; a table has a header and records.")


@contextlib.contextmanager
def readable(shown: str, what: str) -> Iterator[None]:
    """Replace every parser error by one that does not quote the file."""
    try:
        yield
    except TableError:
        raise
    except Exception:
        raise TableError(
            f"{shown} cannot be read as {what}: it is damaged, truncated or of another format; "
            "write it again."
        ) from None


def guarded(batches: Iterator[Any], shown: str, what: str) -> Iterator[Any]:
    """Yield non-empty batches, with parser errors replaced by `readable`."""
    while True:
        with readable(shown, what):
            batch = next(batches, None)
        if batch is None:
            return
        if batch.num_rows:
            yield batch
