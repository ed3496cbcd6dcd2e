"""What every loader returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and labels to train on and to test on.

    Parameters
    ----------
    train_rows, test_rows
        Arrays of shape (n, n_features), encoded by a public schema. No intercept column, and no
        row is scaled: an estimator clips rows to its own ``row_norm``.
    train_labels, test_labels
        One label per row.
    feature_names
        One name per column.
    description
        What is predicted from what, the split, and where the data come from.
    train_unit, test_unit
        Whose record each row is, where a person can have several; no feature depends on it.

    Notes
    -----
    **Guarantee**

    1. A row depends on its own record and on literals of the schema, on nothing else: encoding
       some of the records gives those rows of the encoding of all. `load_uci_regression` alone
       does not promise this, and says so.
    2. A person with several records is on one side of the split.

    Examples
    --------
    >>> from tacit.datasets import make_linear_regression
    >>> data = make_linear_regression(n_records=100, n_features=3)
    >>> data.train_rows.shape, data.feature_names
    ((100, 3), ('x0', 'x1', 'x2'))
    """

    train_rows: npt.NDArray[Any]
    train_labels: npt.NDArray[Any]
    test_rows: npt.NDArray[Any]
    test_labels: npt.NDArray[Any]
    feature_names: tuple[str, ...]
    description: str
    train_unit: npt.NDArray[Any] | None = None
    test_unit: npt.NDArray[Any] | None = None
