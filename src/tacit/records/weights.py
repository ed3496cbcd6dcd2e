"""Convert weights of records to numbers; anything else counts as 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.odd_values import alone
from tacit.records.rows_and_labels import refuse_masked


def as_weights(weights: Any, n_rows: int) -> npt.NDArray[np.float64]:
    """Return one weight per record, as numbers; a weight that is no number counts as 0.

    Each weight is read independently of the others. `tacit.records.block` clips them.

    Raises
    ------
    ValueError, TypeError
        If there are more or fewer weights than records, or they are text by their type. Messages
        never repeat a value.

    Examples
    --------
    >>> from tacit.records import as_weights
    >>> as_weights([1, None, "3", 2.5], 4)
    array([1. , 0. , 0. , 2.5])
    """
    check_one_weight_each(weights, n_rows)
    if not hasattr(weights, "__array__"):
        return _numbers(weights)
    numbers = np.asarray(weights)
    if numbers.dtype.kind == "O":
        return _numbers(numbers.tolist())
    if numbers.dtype.kind not in "biuf":
        raise ValueError("sample_weight holds something else than numbers; pass numbers.")
    with np.errstate(over="ignore"):  # a warning would depend on a single record
        return numbers.astype(np.float64)


def check_one_weight_each(weights: Any, n_rows: int | None) -> None:
    """Raise unless there is one weight per record, by shape alone: no value is read.

    Examples
    --------
    >>> from tacit.records.weights import check_one_weight_each
    >>> check_one_weight_each([0.5, 1.0], 2)
    """
    refuse_masked(weights, "sample_weight")
    shape: tuple[int, ...] | None = getattr(weights, "shape", None)
    if shape is None:
        if hasattr(weights, "__array__"):
            shape = np.asarray(weights).shape  # the only way to learn the shape
        else:
            listed = hasattr(weights, "__len__") and not isinstance(weights, Mapping | Set)
            shape = (len(weights),) if listed else ()
    if tuple(shape) != (n_rows,):
        raise ValueError(
            "sample_weight has no or several dimensions, or another length than X; pass one weight "
            "for each record."
        )


def _numbers(values: Iterable[Any]) -> npt.NDArray[np.float64]:
    # 0 also for an integer too large for a float
    return np.array([alone(_number, value, 0.0) for value in values], dtype=np.float64)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, Real | Decimal) else 0.0
