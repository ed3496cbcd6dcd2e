"""The two ways in which public facts and tables can be wrong."""

from __future__ import annotations


class SchemaError(ValueError):
    """A schema says something impossible; names the file, the column, the key and the remedy.

    Examples
    --------
    >>> from tacit.preprocessing import Number
    >>> Number("age", lower=90, upper=17)
    Traceback (most recent call last):
    tacit.preprocessing.errors.SchemaError: column 'age': ...
    """


class TableError(ValueError):
    """A table cannot be read as its schema says; never repeats a value of a record.

    Examples
    --------
    >>> from tacit.preprocessing import read_table
    >>> read_table("no-such-file.csv")
    Traceback (most recent call last):
    tacit.preprocessing.errors.TableError: 'no-such-file.csv': there is no such file; ...
    """


def wrong_type(name: str, kind: object) -> TableError:
    """Return the refusal of a column for the type it is stored in, whatever its records say."""
    return TableError(
        f"column {name!r} is of type {kind}, of which a schema can make neither numbers nor words; "
        "write it as a number or as text, or declare it ignored."
    )
