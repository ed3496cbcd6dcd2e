"""Tables as estimators meet them: their columns noted first, their values read later."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from tacit.public_facts import Assumed, column_names
from tacit.records import (
    Block,
    Bounds,
    MappedTable,
    MemoryRecords,
    RecordSource,
    TableInMemory,
    UnreadRecords,
    UnreadTable,
    as_rows,
)
from tacit.records.people_in_source import PeopleInSource
from tacit.table_facts import EncodedTable

_NOT_GIVEN = "no_validation"  # scikit-learn's word for an estimator without labels


def note_columns(
    estimator: Any,
    X: Any,
    y: Any = _NOT_GIVEN,
    *,
    unit: Any = None,
    first: bool = True,
    sparse: bool = True,
) -> tuple[UnreadTable, Assumed]:
    """Return a table that is not read yet, and what it brings that a guarantee must speak of.

    ``unit`` says whose each record is, if anything does; ``sparse`` whether the estimator takes
    sparse arrays. Sets ``n_features_in_`` and ``feature_names_in_``, or compares with them if not
    ``first``.
    """
    if isinstance(X, RecordSource):
        if not (y is None or isinstance(y, str)):
            raise ValueError("a record source brings its own labels; pass None for y.")
        if unit is not None:
            PeopleInSource(X, unit)  # refuses what cannot be, and reads nothing
        X, unit = UnreadRecords(X, unit=unit), None
    if isinstance(X, UnreadTable):
        if unit is not None:
            raise ValueError(
                "the table says itself whose each record is, or not at all; pass no unit with it."
            )
        estimator.n_features_in_ = X.n_columns
        if isinstance(X, UnreadRecords):
            return X, X
        return X, X.facts if isinstance(X, EncodedTable | MappedTable) else column_names(None)
    labelled = not (isinstance(y, str) and y == _NOT_GIVEN)
    if labelled and y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    if hasattr(X, "tocsr") and not sparse:
        raise TypeError(
            "Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert "
            "to a dense numpy array."
        )
    table = TableInMemory(X, y if labelled else None, unit)
    _check_columns(estimator, X, reset=first)
    return table, column_names(getattr(estimator, "feature_names_in_", None))


def rows_to_ask_about(estimator: Any, X: Any) -> Any:
    """Return rows of the columns that the estimator was fitted on; errors repeat no value."""
    rows, _ = as_rows(X)
    _check_columns(estimator, X, reset=False)
    return rows


def _check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    # Names and numbers of columns alone; scikit-learn's look at the values would quote them.
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def clipped_scores(estimator: Any, X: Any, coef: Any) -> npt.NDArray[np.float64]:
    """Return <coef, x> for rows scaled to the norm the model was fitted on.

    A model that only ever saw rows of norm at most ``row_norm`` is asked about such rows: a longer
    one is scaled down as it would have been in the fit, so that its intercept keeps its weight.
    A score is a function of its row, to the last bit: an evaluation counts records by theirs.
    """
    rows = rows_to_ask_about(estimator, X)
    records = MemoryRecords(rows, None, Bounds(row_norm=estimator.row_norm_))
    factors = records.clip_factors()
    with np.errstate(over="ignore", invalid="ignore"):
        scores = Block(records.rows, factors, None, 0.0).steady_scores(coef)
    scores[factors == 0.0] = 0.0  # as in the fit, where such a row counts as zeros
    return scores
