"""Open any kind of records as a record source."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.records.bounds import Bounds
from tacit.records.memory import MemoryRecords
from tacit.records.rows_and_labels import as_codes, as_numbers
from tacit.records.source import RecordSource
from tacit.records.unread import TableInMemory


def open_records(X: Any, y: Any, bounds: Bounds) -> RecordSource:
    """Return a record source: a source as it is, anything else read into memory.

    Parameters
    ----------
    X
        A record source, which is not read; or an array, a SciPy sparse array, a frame or an
        Arrow table of numbers.
    y
        One number per row, or None. It must be None for a record source, which has its own labels.
        If ``bounds`` declare classes, records of other classes do not count.
    bounds
        Public bounds on every record.

    Raises
    ------
    ValueError, TypeError
        If a source was made with other bounds, or if `as_rows` or `as_numbers` refuse the table.
        Messages never repeat a value.

    Examples
    --------
    >>> from tacit.records import Bounds, open_records
    >>> records = open_records([[3, 4], [0, 1]], [0.0, 9.0], Bounds(label_range=(0.0, 1.0)))
    >>> open_records(records, None, records.bounds) is records
    True
    """
    if not isinstance(X, RecordSource):
        rows, labels = TableInMemory(X, y).read()
        numbers = None if labels is None else labels_as_numbers(labels, bounds)
        return MemoryRecords(rows, numbers, bounds)
    if y is not None:
        raise ValueError("a record source brings its own labels; pass None for y.")
    if X.bounds != bounds:
        raise ValueError(
            f"the records are clipped to {X.bounds} but the objective's sensitivities are derived "
            f"from {bounds}; give both the same Bounds."
        )
    return X


def labels_as_numbers(labels: Any, bounds: Bounds) -> npt.NDArray[np.float64]:
    """Return labels as numbers; a label that is no class is NaN, other labels must be finite."""
    return as_numbers(labels) if bounds.n_classes is None else as_codes(labels)
