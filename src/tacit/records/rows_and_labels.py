"""Read rows, labels and weights: arrays, frames of pandas and polars, Arrow tables.

No frame library is imported: a table is recognised by the module of its type.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, Integers, Mask
from tacit.column_values import alone, as_objects, kind_of

_FLOATS = [np.float64, np.float32]
_COMPLEX = "Complex data not supported: {name} holds complex numbers; pass real ones."
_NOT_A_COLUMN = (
    "y should be a 1d array, got {n} dimensions instead; pass one label for each record."
)
_NUMBERS = "biufc"  # NumPy's kinds; complex numbers are refused in scikit-learn's words


def shape_of(X: Any) -> tuple[int, int]:
    """Return the numbers of rows and columns of a table without reading a value.

    Raises
    ------
    ValueError, TypeError
        If the table is not two-dimensional, or has no rows or no columns.

    Examples
    --------
    >>> from tacit.records.rows_and_labels import shape_of
    >>> shape_of([[1, 2, 3], [4, 5, 6]])
    (2, 3)
    """
    if hasattr(X, "collect"):
        raise TypeError(_LAZY.format(kind=type(X).__name__))
    shape = getattr(X, "shape", None)
    if shape is None:
        shape = _shape_of_lists(X)
    if len(shape) != 2:
        raise ValueError(_NOT_A_TABLE.format(n=len(shape), what=_as_table_of(X)))
    n_rows, n_columns = (int(n) for n in shape)
    if not n_columns:
        raise ValueError(_NO_COLUMNS)
    if not n_rows:
        raise ValueError(_NO_ROWS)
    return n_rows, n_columns


def refuse_types(X: Any) -> None:
    """Raise if a column's type cannot be numbers; no value is read.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.rows_and_labels import refuse_types
    >>> refuse_types(np.array([["a", "b"]]))
    Traceback (most recent call last):
    ValueError: column 0 of X holds text, not numbers: ...
    """
    for name, dtype in _types_of(X):
        if not _is_number(dtype):
            raise _not_numbers(name, dtype)
        if getattr(dtype, "kind", None) == "c":
            raise ValueError(_COMPLEX.format(name="X"))


def refuse_label_types(y: Any) -> None:
    """Raise if labels have several columns or are complex, by shape and type; no value is read.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.rows_and_labels import refuse_label_types
    >>> refuse_label_types(np.zeros((5, 2)))
    Traceback (most recent call last):
    ValueError: y should be a 1d array, got 2 dimensions instead; pass one label for each record.
    """
    shape = getattr(y, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1 and shape[1:] != (1,):
        raise ValueError(_NOT_A_COLUMN.format(n=len(shape)))
    if getattr(getattr(y, "dtype", None), "kind", None) == "c":
        raise ValueError(_COMPLEX.format(name="y"))


def _types_of(X: Any) -> Iterable[tuple[Any, Any]]:
    """Return name and type of each column; for an array its single type."""
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):  # not a LazyFrame, not a Series
        return zip(X.columns, X.dtypes, strict=True)
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        return ((field.name, field.type) for field in X.schema)
    return ((0, X.dtype),) if isinstance(X, np.ndarray) and X.dtype.kind != "O" else ()


def _is_number(dtype: Any) -> bool:
    if hasattr(dtype, "kind"):  # of NumPy or pandas
        return dtype.kind in _NUMBERS
    if hasattr(dtype, "is_numeric"):  # of polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return str(dtype) in _ARROW_NUMBERS


def _shape_of_lists(X: Any) -> tuple[int, ...]:
    """Return the shape of a list of rows, or of another sequence of sequences."""
    if isinstance(X, str | bytes) or not hasattr(X, "__len__"):
        if hasattr(X, "__array__"):
            return tuple(np.asarray(X).shape)  # the only way to learn the shape
        return ()
    if not len(X):
        return (0, 1)
    first = X[0]
    if hasattr(first, "shape"):
        return (len(X), *first.shape)
    if isinstance(first, str | bytes) or not hasattr(first, "__len__"):
        return (len(X),)
    deeper = len(first) and hasattr(first[0], "__len__") and not isinstance(first[0], str | bytes)
    return (len(X), len(first), len(first[0])) if deeper else (len(X), len(first))


def _as_table_of(X: Any) -> str:
    if hasattr(X, "to_frame"):
        return "X.to_frame()"
    return "X.reshape(-1, 1) for a single feature or X.reshape(1, -1) for one record"


def as_labels(y: Any) -> npt.NDArray[Any]:
    """Return labels as a one-dimensional array, one per record, of their original type.

    A list becomes an array of objects: one label of another type must not convert the others.

    Raises
    ------
    ValueError, TypeError
        If there is more than one label per record. Messages never repeat a value.

    Examples
    --------
    >>> from tacit.records.rows_and_labels import as_labels
    >>> as_labels([1, "a"])
    array([1, 'a'], dtype=object)
    """
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    refuse_masked(y, "y")
    if not hasattr(y, "dtype") and not hasattr(y, "__array__"):
        y = _objects(list(y))
    labels = _one_column(np.asarray(y))
    if labels.dtype.kind == "c":
        raise ValueError(_COMPLEX.format(name="y"))
    return labels


def codes_of(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> tuple[Integers, Mask]:
    """Return each label's position in ``classes`` and whether it is among them at all.

    That is decided by the label alone: whether it is one of the classes.
    """
    if labels.dtype.kind == "O":
        # Compared as they are: converting could truncate a label, or print it in an error.
        place = {value: code for code, value in enumerate(classes.tolist())}
        places = [alone(lambda label: place.get(label, -1), value, -1) for value in labels.tolist()]
        found = np.array(places, dtype=np.int64)
        return np.maximum(found, 0), found >= 0
    theirs, ours = kind_of_array(labels), kind_of_array(classes)
    if theirs != ours:
        raise ValueError(
            f"labels are {theirs} and classes are {ours}: no record would count; declare classes "
            "of the labels' own type."
        )
    codes = np.clip(np.searchsorted(classes, labels), 0, classes.size - 1)
    return codes, np.asarray(classes[codes] == labels)


def kind_of_array(values: npt.NDArray[Any]) -> str:
    """Return of which kind the values of an array are, in a word."""
    # Not the type itself: the width of a text type tells how long the longest label is.
    return {"U": "text", "S": "bytes", "M": "dates", "m": "spans of time"}.get(
        values.dtype.kind, "numbers"
    )


def _one_column(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return one-dimensional labels; messages do not state the number of records."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        message = (
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples, ), for example using ravel()."
        )
        warnings.warn(message, DataConversionWarning, stacklevel=2)
        return np.ravel(labels)
    if labels.ndim != 1:
        raise ValueError(_NOT_A_COLUMN.format(n=labels.ndim))
    return labels


def as_numbers(y: Any) -> Array:
    """Return labels as numbers; errors never repeat a value.

    Examples
    --------
    >>> from tacit.records.rows_and_labels import as_numbers
    >>> as_numbers([1, 2.5])
    array([1. , 2.5])
    """
    from sklearn.utils import assert_all_finite

    labels = as_labels(y)
    if labels.dtype.kind != "O":
        assert_all_finite(labels, input_name="y")
    try:
        if labels.dtype.kind not in _NUMBERS + "O":
            raise ValueError
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's warnings depend on single records
            numbers = np.asarray(labels, dtype=np.float64)
    except Exception:  # an object may raise anything
        raise ValueError(
            "y holds something else than numbers: could not convert it to float. Drop such "
            "records, or use a classifier."
        ) from None
    if not np.all(np.isfinite(numbers)):
        raise ValueError(
            "Input y contains NaN or infinity; fill in or drop such records, by a rule that does "
            "not look at other records."
        )
    return numbers


def as_codes(y: Any) -> Array:
    """Return numbers of classes as floats, NaN for a label that is no number.

    Each label is read independently of the others.

    Examples
    --------
    >>> from tacit.records.rows_and_labels import as_codes
    >>> as_codes([1, "1", None, 0.5])
    array([1. , nan, nan, 0.5])
    """
    labels = as_labels(y)
    if labels.dtype.kind in "biuf":
        return labels.astype(np.float64)
    if labels.dtype.kind != "O":
        raise ValueError(
            "y holds something else than numbers, by its type; a record source takes classes as "
            "numbers: -1 and 1 for two of them, 0, 1, 2, ... for more."
        )
    return np.array([alone(_code, value, np.nan) for value in labels.tolist()], dtype=np.float64)


def _code(value: Any) -> float:
    return float(value) if isinstance(value, Real | np.bool_) else np.nan


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    if values and isinstance(values[0], list | tuple | np.ndarray):
        raise ValueError(
            "y should be a 1d array, got a sequence of sequences instead; pass one label for each "
            "record."
        )
    return as_objects(values)


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
    >>> from tacit.records.rows_and_labels import as_rows
    >>> rows, names = as_rows(np.array([[1, 2], [3, 4]]))
    >>> rows.dtype, names
    (dtype('float64'), None)
    """
    refuse_types(X)
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
        raise ValueError(_NOT_A_TABLE.format(n=frame.ndim, what=_as_table_of(frame)))
    if not len(frame.columns):
        return np.empty((len(frame), 0)), None
    return frame, _names(list(frame.columns))


def _from_polars(frame: Any) -> tuple[Any, tuple[str, ...]]:
    if not hasattr(frame, "to_numpy"):
        raise TypeError(_LAZY.format(kind=type(frame).__name__))
    if len(frame.shape) != 2:
        raise ValueError(_NOT_A_TABLE.format(n=1, what=_as_table_of(frame)))
    return frame.to_numpy(), tuple(frame.columns)


def _from_arrow(table: Any) -> tuple[Any, tuple[str, ...]]:
    if not hasattr(table, "column_names"):
        raise ValueError(_NOT_A_TABLE.format(n=1, what="pyarrow.table(...)"))
    columns = [np.asarray(column) for column in table.columns]
    names = tuple(table.column_names)
    if not columns:
        return np.empty((table.num_rows, 0)), names
    return np.column_stack(columns), names


_LAZY = "X is a {kind}, which has no rows yet; pass X.collect()."
_ARROW_NUMBERS = frozenset(
    ["bool", "halffloat", "float", "double"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
# Do not state the number of rows: the number of records is private.
_NOT_A_TABLE = (
    "Expected 2D array, got {n}D array instead. Reshape your data: one row a record and one column "
    "a feature, such as {what}."
)
_NO_ROWS = "Found array with 0 sample(s), while a minimum of 1 is required."
# scikit-learn's message without the number of rows.
_NO_COLUMNS = "Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required."


def _names(columns: list[Any]) -> tuple[str, ...] | None:
    """Return the names if all are strings, as scikit-learn does, else None."""
    return tuple(columns) if all(isinstance(name, str) for name in columns) else None


def _not_numbers(name: Any, dtype: Any) -> ValueError:
    # An Enum's text would list its categories, and a text type's width reveals the longest text.
    kind = "text" if getattr(dtype, "kind", "") in ("U", "S") else str(dtype).partition("(")[0]
    return ValueError(
        f"column {name!r} of X holds {kind}, not numbers: could not convert string to float or "
        "the like. Drop the column, or encode it by categories that are public, as a TableModel "
        "does by its schema."
    )


def _checked(X: Any, names: tuple[str, ...] | None) -> Any:
    """Return scikit-learn's check_array of X: two-dimensional, float, finite, not empty."""
    from sklearn.utils import check_array

    if not hasattr(X, "tocsr") and not hasattr(X, "dtypes"):
        X = plain_array(X)
    elif hasattr(X, "tocsr") and X.dtype.kind in "biu":
        X = X.astype(np.float64)  # before duplicate entries are added, which could overflow
    try:
        # A signalling NaN is refused like any other, without a warning.
        with np.errstate(invalid="ignore"):
            return check_array(X, accept_sparse="csr", dtype=_FLOATS, input_name="X")
    except OverflowError:
        raise ValueError(
            "X holds a number too large for a float; clip or drop such values."
        ) from None
    except ValueError as error:
        message = str(error)
        if "contains NaN" in message or "contains infinity" in message:
            raise ValueError(
                f"{message.splitlines()[0]} It is in column {_bad_column(X, names)!r}; fill in or "
                "drop such values, by a rule that does not look at other records."
            ) from None
        if "Complex data" in message:  # the rest of the message repeats the table
            raise ValueError(_COMPLEX.format(name="X")) from None
        if "0 sample(s)" in message or "0 feature(s)" in message:
            raise ValueError(_NO_ROWS if "0 sample(s)" in message else _NO_COLUMNS) from None
        if "could not convert" in message:  # the rest of the message repeats the value
            raise ValueError(
                "X holds text: could not convert string to float. Drop or encode such columns, "
                "by categories that are public."
            ) from None
        raise
    except Exception as error:
        if isinstance(error, TypeError) and "argument must be" in str(error):
            raise  # the message names a type only
        # Raised by an object that cannot become a number: its message may contain its value.
        raise ValueError(
            "X holds something else than numbers: could not convert it to float. Drop or encode "
            "such columns, by categories that are public."
        ) from None


def refuse_masked(values: Any, name: str) -> None:
    """Raise for a masked array, whose mask NumPy would ignore."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, and masks would be ignored; pass {name}.filled(value) for "
            "a value that is public."
        )


def plain_array(X: Any) -> npt.NDArray[Any]:
    """Return a table that is no frame as a two-dimensional array; values are not checked."""
    refuse_masked(X, "X")
    array = _array_of(X)
    if array.ndim != 2:
        raise ValueError(_NOT_A_TABLE.format(n=array.ndim, what=_as_table_of(X)))
    refuse_types(array)
    return array


def _array_of(X: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(X)
    except ValueError:  # NumPy's message states the number of rows
        raise ValueError(
            "the rows of X are not all of one length; pass one number for each feature."
        ) from None


def _bad_column(X: Any, names: tuple[str, ...] | None) -> str | int:
    if hasattr(X, "tocsr"):
        entries = X.tocsr(copy=True)
        entries.sum_duplicates()  # the sum of duplicates may be infinite
        bad_places = entries.indices[~np.isfinite(entries.data.astype(np.float64))]
        return int(bad_places.min(initial=X.shape[1] - 1))
    values = np.asarray(X.to_numpy(dtype=float, na_value=np.nan) if hasattr(X, "dtypes") else X)
    bad = int(np.flatnonzero(~np.isfinite(values.astype(float)).all(axis=0))[0])
    return bad if names is None else names[bad]


def as_weights(weights: Any, n_rows: int, name: str = "sample_weight") -> Array:
    """Return one weight per record, as numbers; a weight that is no number counts as 0.

    Each weight is read independently of the others. `tacit.records.block` clips them.

    Raises
    ------
    ValueError, TypeError
        If there are more or fewer weights than records, or they are text by their type. Messages
        never repeat a value.

    Examples
    --------
    >>> from tacit.records.rows_and_labels import as_weights
    >>> as_weights([1, None, "3", 2.5], 4)
    array([1. , 0. , 0. , 2.5])
    """
    check_one_weight_each(weights, n_rows, name)
    if not hasattr(weights, "__array__"):
        return _numbers(weights)
    numbers = np.asarray(weights)
    if numbers.dtype.kind == "O":
        return _numbers(numbers.tolist())
    if numbers.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds something else than numbers; pass numbers.")
    with np.errstate(over="ignore"):  # a warning would depend on a single record
        return numbers.astype(np.float64)


def check_one_weight_each(weights: Any, n_rows: int | None, name: str = "sample_weight") -> None:
    """Raise unless there is one weight per record, by shape alone: no value is read.

    ``name`` is the parameter in messages; offsets are read as weights are.

    Examples
    --------
    >>> from tacit.records.rows_and_labels import check_one_weight_each
    >>> check_one_weight_each([0.5, 1.0], 2)
    """
    refuse_masked(weights, name)
    shape: tuple[int, ...] | None = getattr(weights, "shape", None)
    if shape is None:
        if hasattr(weights, "__array__"):
            shape = np.asarray(weights).shape  # the only way to learn the shape
        else:
            listed = hasattr(weights, "__len__") and not isinstance(weights, Mapping | Set)
            shape = (len(weights),) if listed else ()
    if tuple(shape) != (n_rows,):
        raise ValueError(
            f"{name} has no or several dimensions, or another length than X; pass one "
            f"{'weight' if name == 'sample_weight' else 'number'} for each record."
        )
    if kind_of(weights) not in (None, "numbers", "booleans"):
        raise ValueError(f"{name} holds something else than numbers; pass numbers.")


def _numbers(values: Iterable[Any]) -> Array:
    # 0 also for an integer too large for a float
    return np.array([alone(_number, value, 0.0) for value in values], dtype=np.float64)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, Real | Decimal) else 0.0
