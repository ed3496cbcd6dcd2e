"""Tables as scikit-learn checks them: arrays, sparse arrays, frames and Arrow tables of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from tacit.records import Bounds, MemoryRecords

FLOATS = [np.float64, np.float32]


def labelled_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, npt.NDArray[Any]]:
    """Return rows and class labels, checked, and set what is public of them."""
    rows, labels = validate_data(estimator, X, y, accept_sparse="csr", dtype=FLOATS)
    labels = np.asarray(labels)
    if labels.dtype.kind not in "biuUS":  # which are classes, whatever they are
        check_classification_targets(labels)
    return rows, labels


def numbered_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, npt.NDArray[np.float64]]:
    """Return rows and numeric labels, checked, and set what is public of them."""
    rows, labels = validate_data(estimator, X, y, accept_sparse="csr", dtype=FLOATS, y_numeric=True)
    return rows, np.asarray(labels, dtype=np.float64)


def unlabelled_rows(estimator: Any, X: Any) -> Any:
    """Return rows, checked, and set what is public of them."""
    return validate_data(estimator, X, dtype=FLOATS)


def clipped_scores(estimator: Any, X: Any, coef: Any) -> npt.NDArray[np.float64]:
    """Return <coef, x> for rows scaled to the norm the model was fitted on.

    A model that only ever saw rows of norm at most ``row_norm`` is asked about such rows: a longer
    one is scaled down as it would have been in the fit, so that its intercept keeps its weight.
    """
    rows = validate_data(estimator, X, accept_sparse="csr", dtype=FLOATS, reset=False)
    factors = MemoryRecords(rows, None, Bounds(row_norm=estimator.row_norm_)).clip_factors()
    scores = np.asarray(rows @ coef, dtype=np.float64)
    return scores * (factors if scores.ndim == 1 else factors[:, None])
