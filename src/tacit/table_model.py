"""Fit an estimator to raw tables through a public schema, and predict for raw tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.pipeline import PrivatePipeline
from tacit.schema import Schema, SchemaEncoder


def TableModel(  # noqa: N802 - it makes a model, as a class would
    schema: Schema,
    estimator: Any,
    *,
    dtype: npt.DTypeLike = np.float64,
    allow_unconfirmed: bool = False,
) -> PrivatePipeline:
    """Return the pipeline of a `SchemaEncoder`, "schema", and an estimator, "estimator".

    The estimator has its own budget. The schema overrides its ``row_norm``, ``classes`` or
    ``label_range``, and ``n_records``. If the schema has a column of kind ``unit``, a person with
    all their records is protected.

    Parameters
    ----------
    schema : Schema
        The public schema of the table, with a target.
    estimator : estimator
        A classifier for a target with classes, a regressor for one with a range; or a
        `PrivatePipeline` of rows, which then begins with the schema and keeps its budget.
    dtype : data type, default=numpy.float64
        The type of the encoded features; float32 halves the memory.
    allow_unconfirmed : bool, default=False
        Whether to fit although the schema has lines that were guessed from the data and not
        confirmed. The guarantee then says so.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.schema import ClassTarget, Number, Schema
    >>> from tacit.table_model import TableModel
    >>> age = np.random.default_rng(0).uniform(0, 100, 20_000)
    >>> table = pd.DataFrame({"age": age, "ill": np.where(age > 50, "yes", "no")})
    >>> schema = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
    >>> model = TableModel(schema, LogisticRegression(epsilon=1.0, delta=1e-6)).fit(table)
    >>> model.predict(pd.DataFrame({"age": [10, 90]}))
    array(['no', 'yes'], dtype='<U3')
    >>> bool(model.privacy_.epsilon(1e-6) <= 1.0)
    True
    """
    encoder = SchemaEncoder(schema, dtype, allow_unconfirmed=allow_unconfirmed)
    if isinstance(estimator, PrivatePipeline):
        return estimator.beginning_with("schema", encoder)
    return PrivatePipeline([("schema", encoder), ("estimator", estimator)], epsilon=None)
