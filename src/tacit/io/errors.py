"""What can be wrong with schemas, tables and files, told without repeating what stands in them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class SchemaError(ValueError):
    """A schema says something impossible; names the file, the column, the key and the remedy.

    Examples
    --------
    >>> from tacit.schema import Number
    >>> Number("age", lower=90, upper=17)
    Traceback (most recent call last):
    tacit.io.errors.SchemaError: column 'age': ...
    """


class TableError(ValueError):
    """A table cannot be read as its schema says; never repeats a value of a record.

    Examples
    --------
    >>> from tacit.io import read_table
    >>> read_table("no-such-file.csv")
    Traceback (most recent call last):
    tacit.io.errors.TableError: 'no-such-file.csv': there is no such file; ...
    """


def wrong_type(name: str, kind: object) -> TableError:
    """Return the refusal of a column for the type it is stored in, whatever its records say."""
    return TableError(
        f"column {name!r} is of type {kind}, of which a schema can make neither numbers nor words; "
        "write it as a number or as text, or declare it ignored."
    )


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return a path as it is quoted in errors, cut if it is long."""
    text = repr(os.fspath(path))
    return text if len(text) <= 200 else text[:100] + "..." + text[-90:]


def check_path(path: str | os.PathLike[str], shown: str) -> None:
    """Refuse what is not a readable file with something in it."""
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
    """Turn every error of a parser into one that does not repeat what stands in the file."""
    try:
        yield
    except TableError:
        raise
    except Exception:
        raise TableError(
            f"{shown} cannot be read as {what}: it is damaged, cut off or of another format; "
            "write it again."
        ) from None


def guarded(batches: Iterator[Any], shown: str, what: str) -> Iterator[Any]:
    """Yield batches that have records, with `readable` around each."""
    while True:
        with readable(shown, what):
            batch = next(batches, None)
        if batch is None:
            return
        if batch.num_rows:
            yield batch
