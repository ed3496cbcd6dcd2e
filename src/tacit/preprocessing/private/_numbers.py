"""Tables of numbers with gaps in them: what is no finite number is missing, and never an error.

An error about one value would tell of one record.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from tacit.linear_model._tables import note_columns
from tacit.preprocessing.files.memory_tables import values_of
from tacit.public_facts import Assumed
from tacit.records import TableInMemory, UnreadRecords, UnreadTable
from tacit.records.rows_and_labels import plain_array, refuse_types, shape_of
from tacit.records.unread import has_people, read_people

Array = npt.NDArray[np.float64]


def numbers_of(X: Any) -> Array:
    """Return the numbers of a table, NaN where there is none; a copy.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing.private._numbers import numbers_of
    >>> numbers_of(np.array([[1.0, np.inf], [3.0, 4.0]]))
    array([[ 1., nan],
           [ 3.,  4.]])
    """
    library = type(X).__module__.partition(".")[0]
    if library == "pandas":
        columns = [X.iloc[:, place] for place in range(X.shape[1])]
    elif library == "polars":
        columns = X.get_columns()
    elif library == "pyarrow":
        columns = list(X.columns)
    else:
        columns = list(_refuse_complex(plain_array(X)).T)
    rows = np.empty((shape_of(X)[0], len(columns)))
    for place, column in enumerate(columns):
        rows[:, place] = values_of(str(place), column).numbers()
    return rows


def _refuse_complex(X: Any) -> Any:
    if getattr(getattr(X, "dtype", None), "kind", None) == "c":
        raise ValueError("Complex data not supported: X holds complex numbers; pass real ones.")
    return X


class TableWithGaps(TableInMemory):
    """A table in memory whose missing values are read as NaN."""

    def read(self) -> tuple[Array, None]:
        """Return the rows."""
        return numbers_of(self._rows), None


def note(step: Any, X: Any, unit: Any) -> tuple[UnreadTable, Assumed]:
    """Return a table that is not read yet, and what its guarantee must say of its columns."""
    table, names = note_columns(step, _refuse_complex(X), unit=unit, sparse=False)
    if isinstance(table, UnreadRecords):
        table.read()  # refuses, before anything is charged
    return (TableWithGaps(X, None, unit) if isinstance(table, TableInMemory) else table), names


def read_rows(table: UnreadTable) -> Array:
    """Read a table; of each person one record, where it is known whose they are."""
    rows, _ = table.read()
    if has_people(table):
        rows = rows[read_people(table).one_each()]
    numbers = np.array(rows, dtype=np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def rows_to_transform(step: Any, X: Any) -> Array:
    """Return rows of the columns that a step was fitted on; errors repeat no value."""
    if hasattr(X, "tocsr"):
        raise TypeError(
            "Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert "
            "to a dense numpy array."
        )
    shape_of(X)
    refuse_types(X)
    validate_data(step, X, reset=False, skip_check_array=True)
    return numbers_of(X)
