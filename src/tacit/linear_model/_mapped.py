"""A linear estimator of rows that a public map makes: fitted, and asked, in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from tacit.linear_model._tables import rows_to_ask_about
from tacit.records import MappedRows, RecordSource, RowMap

_RELEASED = ("coef_", "intercept_", "classes_")


def refuse_sources(model: Any, X: Any, maps: str) -> None:
    """Refuse a record source: features are made of single rows."""
    if isinstance(X, RecordSource):
        raise TypeError(
            f"{type(model).__name__} makes features of single rows, and a record source gives "
            "sums over blocks of them; pass the rows, or make a source of the features that "
            f"{maps} makes of each block, for a linear estimator."
        )


def publish_fit(model: Any, linear: Any) -> None:
    """Set what the fit of a linear estimator released on the model that it is part of."""
    model.privacy_, model.plan_ = linear.privacy_, linear.plan_
    _hand_over(linear, model)


def ask_linear(
    model: Any, linear: Any, function: RowMap, row_norm: float, method: str, X: Any
) -> npt.NDArray[Any]:
    """Return what the linear estimator says of the features of rows, some at a time."""
    check_is_fitted(model)
    rows = rows_to_ask_about(model, X)
    linear.n_features_in_, linear.row_norm_ = function.n_columns, row_norm
    _hand_over(model, linear)
    blocks = MappedRows(rows, function).blocks()
    return np.concatenate([getattr(linear, method)(block.made()) for block in blocks])


def _hand_over(giver: Any, taker: Any) -> None:
    """Give one estimator what another one's fit released."""
    for name in _RELEASED:
        if hasattr(giver, name):
            setattr(taker, name, getattr(giver, name))
