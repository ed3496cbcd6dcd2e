"""Tables as scikit-learn checks them, from arrays, sparse arrays and frames of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from tacit.records import Bounds, MemoryRecords

FLOATS = [np.float64, np.float32]


def plain_rows(X: Any) -> Any:
    """Return Arrow tables as arrays; leave what scikit-learn reads itself."""
    if type(X).__module__.partition(".")[0] == "pyarrow":
        return np.column_stack([column.to_numpy() for column in X.columns])
    return X


def _keep_names(estimator: Any, X: Any) -> None:
    if type(X).__module__.partition(".")[0] == "pyarrow":
        estimator.feature_names_in_ = np.asarray(X.column_names, dtype=object)


def labelled_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, npt.NDArray[Any]]:
    """Return rows and class labels, checked, and set what is public of them."""
    rows, labels = validate_data(estimator, plain_rows(X), y, accept_sparse="csr", dtype=FLOATS)
    _keep_names(estimator, X)
    check_classification_targets(labels)
    return rows, np.asarray(labels)


def numbered_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, npt.NDArray[np.float64]]:
    """Return rows and numeric labels, checked, and set what is public of them."""
    rows, labels = validate_data(
        estimator, plain_rows(X), y, accept_sparse="csr", dtype=FLOATS, y_numeric=True
    )
    _keep_names(estimator, X)
    return rows, np.asarray(labels, dtype=np.float64)


def clipped_scores(estimator: Any, X: Any, coef: Any) -> npt.NDArray[np.float64]:
    """Return <coef, x> for rows scaled to the norm the model was fitted on.

    A model that only ever saw rows of norm at most ``row_norm`` is asked about such rows: a longer
    one is scaled down as it would have been in the fit, so that its intercept keeps its weight.
    """
    rows = validate_data(estimator, plain_rows(X), accept_sparse="csr", dtype=FLOATS, reset=False)
    factors = MemoryRecords(rows, None, Bounds(row_norm=estimator.row_norm)).clip_factors()
    scores = np.asarray(rows @ coef, dtype=np.float64)
    return scores * (factors if scores.ndim == 1 else factors[:, None])


def unlabelled_rows(estimator: Any, X: Any) -> Any:
    """Return rows, checked, and set what is public of them."""
    rows = validate_data(estimator, plain_rows(X), dtype=FLOATS)
    _keep_names(estimator, X)
    return rows
