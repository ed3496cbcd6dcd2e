"""A first schema, guessed from the data, for a person to correct and confirm."""

from __future__ import annotations

import os

from tacit.preprocessing.draft.guess import Guess
from tacit.preprocessing.errors import SchemaError, TableError, shown_path
from tacit.preprocessing.files.arrow_values import ArrowValues
from tacit.preprocessing.files.reading import open_table
from tacit.preprocessing.schema.schema import Schema
from tacit.preprocessing.schema.schema_file import schema_to_toml

HEADER = """\
# DRAFT, WRITTEN BY LOOKING AT THE DATA.
# Each range and list of values below was guessed from the records, so it may tell about single
# people (the oldest, the one in a rare category), and this file is as secret as they are.
# For each line: write what you know without the data, such as a code book or common sense;
# then delete "confirmed = false". Lines that keep it are refused by a fit unless it is told
# otherwise, and then the guarantee says that they are not protected.
#   numbers: lower and upper are clipped to; add log = true for sizes and counts
#   missing values: add missing = "indicator" or missing = { value = ... }; else the middle
#   what is predicted: kind = "target" with classes = [...] or lower and upper
#   n_records = ... on a line above, if the number of records is public
"""


def draft_schema(
    path: str | os.PathLike[str], target: str | None = None, *, delimiter: str | None = None
) -> str:
    r"""Return the text of a ``schema.toml`` guessed from a file, each guess to be confirmed.

    Parameters
    ----------
    path
        A file that `read_table` reads. **It is read without any privacy.**
    target
        The column that is predicted.
    delimiter
        What separates the fields of a CSV.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.preprocessing import draft_schema
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("age,town,ill\n39,Rome,yes\n52,Oslo,no\n")
    >>> text = draft_schema(path, target="ill")
    >>> print(text[text.index("[columns]"):])
    [columns]
    age = { kind = "number", lower = 30, upper = 60, confirmed = false }  # guessed
    town = { kind = "category", values = ["Oslo", "Rome"], confirmed = false }  # guessed
    ill = { kind = "target", classes = ["no", "yes"], confirmed = false }  # guessed
    <BLANKLINE>
    """
    file = open_table(path, delimiter=delimiter)
    names = file.names()
    if not names or not all(names) or len(set(names)) < len(names):
        raise TableError(
            f"{shown_path(path)}: columns must have names that differ; mend the header line."
        )
    if target is not None and target not in names:
        raise TableError(
            f"{shown_path(path)}: there is no column {target!r} to be the target; check the name "
            "in the table's header, letter by letter."
        )
    guesses = {name: Guess(name) for name in names}
    for batch in file.batches(names):
        for name in names:
            _look(guesses[name], batch.num_rows, ArrowValues(batch.column(name), name))
    guessed = {name: guesses[name].column() for name in names if name != target}
    columns = tuple(column for column, _ in guessed.values())
    comments = {name: comment for name, (_, comment) in guessed.items()}
    predicted = None
    if target is not None:
        predicted, comments[target] = guesses[target].target(shown_path(path))
    try:
        schema = Schema(columns, predicted, unconfirmed=tuple(names))
    except SchemaError as error:
        raise TableError(f"{shown_path(path)}: no schema can be drafted: {error}") from None
    return HEADER + "\n" + schema_to_toml(schema, comments)


def _look(guess: Guess, n_records: int, values: ArrowValues) -> None:
    try:
        different = values.different()
    except TableError:
        guess.cannot_look()
    else:
        guess.look(n_records, different)
