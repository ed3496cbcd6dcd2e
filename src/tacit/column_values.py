"""Read a column's values one record at a time, and say what its type alone makes public."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


def alone(read: Callable[[Any], T], value: Any, otherwise: T) -> T:
    """Return ``read`` of one record's value, or ``otherwise`` if that fails.

    A value may be an object whose methods raise anything, with a message that contains its
    content. Such an error would reveal that record, and stop the others.

    Raises
    ------
    KeyboardInterrupt, SystemExit, MemoryError
        They are no value's fault; MemoryError is raised without its original message.

    Examples
    --------
    >>> from tacit.column_values import alone
    >>> alone(float, "2.5", 0.0), alone(float, "HIV positive", 0.0)
    (2.5, 0.0)
    """
    try:
        return read(value)
    except (KeyboardInterrupt, SystemExit):
        raise
    except MemoryError:
        pass  # raised again below, outside this handler, so that the original is not chained
    except BaseException:
        return otherwise
    raise MemoryError("there is not enough memory to read the records; pass fewer at a time.")


def as_objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return values as an array of objects, without calling any of their methods.

    Examples
    --------
    >>> from tacit.column_values import as_objects
    >>> as_objects([1, "a"])
    array([1, 'a'], dtype=object)
    """
    return np.fromiter(values, dtype=object, count=len(values))


_OF_NUMPY = {
    **dict.fromkeys("iuf", "numbers"),
    "b": "booleans",
    "U": "text",
    "T": "text",
    "S": "bytes",
    "M": "dates",
    "m": "spans of time",
}


def kind_of(column: Any) -> str | None:
    """Return the kind of a column's values by its type; None if the type leaves it open.

    A list, or an array of objects, may hold anything.

    Parameters
    ----------
    column
        An array, a column of pandas, polars or pyarrow, or anything else.

    Returns
    -------
    str or None
        "numbers", "booleans", "text", "bytes", "dates" or "spans of time".

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.column_values import kind_of
    >>> kind_of(np.array(["a"])), kind_of(np.array([1.5])), kind_of([1, "a"])
    ('text', 'numbers', None)
    """
    dtype = type_of(column)
    return None if dtype is None else kind_of_type(dtype)


def type_of(column: Any) -> Any:
    """Return the type of a column's values in its library's terms; None without one."""
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return getattr(column, "type", None)
    return getattr(column, "dtype", None)


def kind_of_type(dtype: Any) -> str | None:
    """Return the kind of a type of NumPy, pandas, polars or pyarrow."""
    if isinstance(dtype, np.dtype):
        return _OF_NUMPY.get(dtype.kind)
    library = type(dtype).__module__.partition(".")[0]
    if library == "pandas":
        return _of_pandas(dtype)
    if library == "pyarrow":
        return _of_arrow(dtype)
    return _of_polars(dtype) if library == "polars" or hasattr(dtype, "is_temporal") else None


def holds_days(dtype: Any) -> bool:
    """Return whether values of a type are days, or times of day without a time zone.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.column_values import holds_days
    >>> holds_days(np.dtype("datetime64[s]")), holds_days(np.dtype("timedelta64[s]"))
    (True, False)
    """
    if isinstance(dtype, np.dtype):
        return dtype.kind == "M"
    dtype = getattr(dtype, "pyarrow_dtype", dtype)
    if type(dtype).__module__.partition(".")[0] == "pyarrow":
        word = str(dtype).partition("[")[0]
        return word in ("date32", "date64") or (word == "timestamp" and dtype.tz is None)
    word = str(dtype).partition("(")[0]
    return word == "Date" or (word == "Datetime" and getattr(dtype, "time_zone", "") is None)


def _of_pandas(dtype: Any) -> str | None:
    if hasattr(dtype, "categories"):
        categories = dtype.categories
        return None if categories is None else kind_of(categories)
    if hasattr(dtype, "pyarrow_dtype"):
        return _of_arrow(dtype.pyarrow_dtype)
    if type(dtype).__name__ == "StringDtype":
        return "text"
    return _OF_NUMPY.get(getattr(dtype, "kind", "O"))


def _of_arrow(dtype: Any) -> str | None:
    if hasattr(dtype, "value_type") and str(dtype).startswith("dictionary"):
        return _of_arrow(dtype.value_type)
    word = str(dtype).partition("[")[0].partition("(")[0]
    for kind, words in _ARROW.items():
        if word in words:
            return kind
    return None


_ARROW = {
    "booleans": ("bool",),
    "numbers": (
        *("halffloat", "float", "double", "decimal32", "decimal64", "decimal128", "decimal256"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    ),
    "text": ("string", "large_string", "string_view"),
    "bytes": ("binary", "large_binary", "binary_view", "fixed_size_binary"),
    "dates": ("date32", "date64", "timestamp", "time32", "time64"),
    "spans of time": ("duration",),
}


def _of_polars(dtype: Any) -> str | None:
    word = str(dtype).partition("(")[0]
    known = {"Boolean": "booleans", "Binary": "bytes", "Duration": "spans of time"}
    if word in known:
        return known[word]
    if word in ("String", "Utf8", "Categorical", "Enum"):
        return "text"
    if dtype.is_numeric():
        return "numbers"
    return "dates" if dtype.is_temporal() else None
