"""Tables of numbers as rows: arrays, sparse arrays, pandas and polars frames, Arrow tables.

None of the frame libraries is imported: a table is known by the module its type comes from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_NUMBERS = "biufc"  # NumPy's kinds; complex numbers are refused with scikit-learn's words


def as_rows(X: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Return a table's rows, ready for `MemoryRecords`, and the names of its columns.

    Parameters
    ----------
    X
        A two-dimensional array or list of numbers, a SciPy sparse array, a pandas or polars frame
        or a pyarrow Table of numbers.

    Returns
    -------
    rows
        A float64 or float32 array, or a CSR array of such.
    names
        The names of the columns if they are strings, else None.

    Raises
    ------
    ValueError, TypeError
        If a value is missing or not finite, a column holds something else than numbers, there are
        no rows or no columns, or the table is not two-dimensional. Messages name the column and
        never repeat a value.

    Notes
    -----
    **Guarantee**. Every value is finite, and float64 and float32 arrays and CSR arrays are
    returned as they are, not copied; all other numbers, bool included, become float64.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.tables import as_rows
    >>> rows, names = as_rows(np.array([[1, 2], [3, 4]]))
    >>> rows.dtype, names
    (dtype('float64'), None)
    """
    library = type(X).__module__.partition(".")[0]
    if library == "pandas":
        X, names = _from_pandas(X)
    elif library == "polars":
        X, names = _from_polars(X)
    elif library == "pyarrow":
        X, names = _from_arrow(X)
    else:
        names = None
    return _checked(X, names), names


def _from_pandas(frame: Any) -> tuple[Any, tuple[str, ...] | None]:
    if frame.ndim != 2:
        raise ValueError(_NOT_A_TABLE.format(n=frame.ndim, shape=frame.shape, what="X.to_frame()"))
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if getattr(dtype, "kind", "O") not in _NUMBERS:
            raise _not_numbers(name, dtype)
    if not len(frame.columns):
        return np.empty((len(frame), 0)), None
    return frame, _names(list(frame.columns))


def _from_polars(frame: Any) -> tuple[Any, tuple[str, ...]]:
    if not hasattr(frame, "to_numpy"):
        raise TypeError(
            f"X is a polars {type(frame).__name__}, which has no rows yet; pass X.collect()."
        )
    if len(frame.shape) != 2:
        raise ValueError(_NOT_A_TABLE.format(n=1, shape=frame.shape, what="X.to_frame()"))
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if not (dtype.is_numeric() or str(dtype) == "Boolean"):
            raise _not_numbers(name, dtype)
    return frame.to_numpy(), tuple(frame.columns)


def _from_arrow(table: Any) -> tuple[Any, tuple[str, ...]]:
    if not hasattr(table, "column_names"):
        raise ValueError(_NOT_A_TABLE.format(n=1, shape=(len(table),), what="pyarrow.table(...)"))
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if str(field.type) not in _ARROW_NUMBERS:
            raise _not_numbers(field.name, field.type)
        columns.append(np.asarray(column))
    names = tuple(table.column_names)
    if not columns:
        return np.empty((table.num_rows, 0)), names
    return np.column_stack(columns), names


_ARROW_NUMBERS = frozenset(
    ["bool", "halffloat", "float", "double"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
_NOT_A_TABLE = (
    "Expected 2D array, got {n}D array instead (shape={shape}). Reshape your data: one row a "
    "record and one column a feature, such as {what}."
)


def _names(columns: list[Any]) -> tuple[str, ...] | None:
    """Return the names as scikit-learn would keep them: all strings, or none at all."""
    return tuple(columns) if all(isinstance(name, str) for name in columns) else None


def _not_numbers(name: Any, dtype: Any) -> ValueError:
    return ValueError(
        f"column {name!r} of X holds {dtype}, not numbers: could not convert string to float or "
        "the like. Drop the column, or encode it by categories that are public before passing X."
    )


def _checked(X: Any, names: tuple[str, ...] | None) -> Any:
    """Return what scikit-learn makes of X: two-dimensional, float, finite, not empty."""
    from sklearn.utils import check_array

    if not hasattr(X, "tocsr") and not hasattr(X, "dtypes"):
        X = _plain_array(X)
    try:
        return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
    except ValueError as error:
        message = str(error)
        if "contains NaN" in message or "contains infinity" in message:
            raise ValueError(
                f"{message.splitlines()[0]} It is in column {_bad_column(X, names)!r}; fill in or "
                "drop such values, by a rule that does not look at other records."
            ) from None
        if "could not convert" in message:  # the rest of the message would repeat the value
            raise ValueError(
                "X holds text: could not convert string to float. Drop or encode such columns, "
                "by categories that are public."
            ) from None
        raise


def _plain_array(X: Any) -> npt.NDArray[Any]:
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            "X is a masked array, and masks would be ignored; pass X.filled(value) for a value "
            "that is public."
        )
    array: npt.NDArray[Any] = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            _NOT_A_TABLE.format(
                n=array.ndim,
                shape=array.shape,
                what="X.reshape(-1, 1) for a single feature or X.reshape(1, -1) for one record",
            )
        )
    if array.dtype.kind not in _NUMBERS + "O":
        raise _not_numbers(0, array.dtype)
    return array


def _bad_column(X: Any, names: tuple[str, ...] | None) -> str | int:
    if hasattr(X, "tocsr"):
        entries = X.tocoo()
        return int(np.min(entries.col[~np.isfinite(entries.data)]))
    values = np.asarray(X.to_numpy(dtype=float, na_value=np.nan) if hasattr(X, "dtypes") else X)
    bad = int(np.flatnonzero(~np.isfinite(values.astype(float)).all(axis=0))[0])
    return bad if names is None else names[bad]
