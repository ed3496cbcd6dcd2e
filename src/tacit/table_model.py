"""A schema and an estimator together: fitted to raw tables, asked about raw tables."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit.erm import Plan
from tacit.preprocessing import (
    ClassTarget,
    NumberTarget,
    Schema,
    SchemaEncoder,
    SchemaError,
    TableError,
    encode_file,
    encode_table,
)
from tacit.preprocessing.encoding import refuse_file_without_columns, refuse_without_columns
from tacit.preprocessing.files.tables import n_rows_of, names_of, refuse_absent
from tacit.privacy import Guarantee
from tacit.privacy.weakness import WeakPromiseWarning


def _has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(self.estimator, method)


Encoded = tuple[npt.NDArray[Any], npt.NDArray[Any]]


@dataclass(frozen=True)
class _Unread:
    """A raw table that is encoded when its plan has been charged."""

    n_columns: int
    read: Callable[[], Encoded]
    n_rows: int | None = None  # what counts is known when it is encoded


class TableModel(BaseEstimator):
    """A model of a raw table: the public schema encodes it, the estimator learns from that.

    What the estimator must know beforehand (``row_norm``, ``classes`` or ``label_range``, and
    ``n_records``) is taken from the schema, whatever the estimator says of it.

    Parameters
    ----------
    schema : Schema
        What is public about the table, with a target.
    estimator : estimator
        A classifier for a target with classes, a regressor for one with a range; left unchanged.
    dtype : data type, default=numpy.float64
        The type of the encoded features; float32 halves the memory.
    allow_unconfirmed : bool, default=False
        Whether to fit although the schema has lines that were guessed from the data and that
        nobody has confirmed. The guarantee then says so.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    privacy_ : Guarantee
        What the fit promises.
    plan_ : Plan or None
        What was run and why.
    classes_ : array
        The classes, of a classifier.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.preprocessing import ClassTarget, Number, Schema
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

    def __init__(
        self,
        schema: Schema,
        estimator: Any,
        *,
        dtype: npt.DTypeLike = np.float64,
        allow_unconfirmed: bool = False,
    ) -> None:
        self.schema = schema
        self.estimator = estimator
        self.dtype = dtype
        self.allow_unconfirmed = allow_unconfirmed

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a fitted estimator."""
        return hasattr(self, "estimator_")

    def plan(self, n_records: int | None = None) -> Plan:
        """Return what a fit would run, what it would cost and what to expect, without data."""
        plan: Plan = self._informed().plan(len(self.schema.feature_names), n_records)
        return plan

    def __sklearn_tags__(self) -> Any:
        """Be to scikit-learn what the estimator is: a classifier or a regressor, of any table."""
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        return tags

    def fit(self, table: Any, y: Any = None) -> Self:
        """Fit to a frame, an Arrow table or a dictionary of columns.

        Parameters
        ----------
        table
            The columns that the schema declares.
        y
            The target, one value a record, if it is not a column of the table.
        """
        estimator = self._ready()
        table = self._with_target(table, y)
        refuse_without_columns(table, self.schema)
        return self._fitted(estimator, lambda: encode_table(table, self.schema, self.dtype))

    def fit_file(
        self,
        path: str | os.PathLike[str],
        *,
        delimiter: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Fit to a file, read some records at a time; arguments as in `encode_file`."""
        estimator = self._ready()
        refuse_file_without_columns(path, self.schema, delimiter=delimiter)
        return self._fitted(
            estimator,
            lambda: encode_file(
                path, self.schema, self.dtype, delimiter=delimiter, progress=progress
            ),
        )

    def _informed(self) -> Any:
        """Return a new estimator that knows what the schema knows."""
        if not hasattr(self.estimator, "predict"):
            raise TypeError(
                f"estimator must be a classifier or a regressor, got "
                f"{type(self.estimator).__name__}; for a location, encode with SchemaEncoder."
            )
        target = self.schema.target
        wanted = ClassTarget if is_classifier(self.estimator) else NumberTarget
        if not isinstance(target, wanted):
            raise SchemaError(
                f"{type(self.estimator).__name__} needs a schema whose target has "
                f"{'classes' if wanted is ClassTarget else 'lower and upper'}; declare one, or "
                "choose another estimator."
            )
        facts: dict[str, Any] = {"row_norm": self.schema.row_norm}
        facts["n_records"] = self.schema.n_records
        if isinstance(target, ClassTarget):
            facts["classes"] = list(target.classes)
        else:
            facts["label_range"] = (target.lower, target.upper)
        known = self.estimator.get_params(deep=False)
        return clone(self.estimator).set_params(**{k: v for k, v in facts.items() if k in known})

    def _ready(self) -> Any:
        """Return the estimator to fit, or refuse, before the table is opened."""
        if self.schema.unconfirmed and not self.allow_unconfirmed:
            names = ", ".join(map(repr, self.schema.unconfirmed))
            raise SchemaError(
                f"nobody has confirmed what the schema says of {names}: it was guessed from the "
                "data, which would leak. Check each line and remove its `confirmed = false`, or "
                "pass allow_unconfirmed=True, and the guarantee will say so."
            )
        estimator = self._informed()
        if hasattr(estimator, "plan") and not math.isinf(estimator.epsilon):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", WeakPromiseWarning)  # the fit says it
                event = estimator.plan(len(self.schema.feature_names)).event
            accountant = getattr(estimator, "accountant", None)
            if accountant is not None:
                accountant.check(event, estimator.delta)
        return estimator

    def _fitted(self, estimator: Any, read: Callable[[], Encoded]) -> Self:
        estimator.fit(_Unread(len(self.schema.feature_names), read), None)
        promise: Guarantee = estimator.privacy_
        vouched = (*promise.assumptions, *self.schema.assumptions)
        estimator.privacy_ = replace(promise, assumptions=vouched)
        self.estimator_ = estimator
        return self

    @property
    def privacy_(self) -> Guarantee:
        """What the fit promises."""
        check_is_fitted(self)
        promise: Guarantee = self.estimator_.privacy_
        return promise

    @property
    def plan_(self) -> Plan | None:
        """What was run and why; None without noise."""
        check_is_fitted(self)
        plan: Plan | None = getattr(self.estimator_, "plan_", None)
        return plan

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, of a classifier."""
        check_is_fitted(self)
        classes: npt.NDArray[Any] = self.estimator_.classes_
        return classes

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the encoded features, one for each coefficient."""
        return SchemaEncoder(self.schema).get_feature_names_out()

    def predict(self, table: Any) -> npt.NDArray[Any]:
        """Return the predicted class or number of every record; the target is not needed."""
        return self._ask("predict", table)

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, table: Any) -> npt.NDArray[Any]:
        """Return the score of every record."""
        return self._ask("decision_function", table)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, table: Any) -> npt.NDArray[Any]:
        """Return the probability of every class for every record."""
        return self._ask("predict_proba", table)

    def score(self, table: Any, y: Any = None) -> float:
        """Return the estimator's score on the records that have a target; it is not private.

        Accuracy for classes, R2 or the like for numbers, as the estimator's own ``score``;
        parameters as in `fit`.
        """
        check_is_fitted(self)
        rows, labels = encode_table(self._with_target(table, y), self.schema, self.dtype)
        score: float = self.estimator_.score(rows, labels)
        return score

    def _with_target(self, table: Any, y: Any) -> Any:
        """Return a table with the target among its columns."""
        target = self.schema.target
        if y is None or target is None:
            return table
        names = [column.name for column in self.schema.encoded]
        refuse_absent(names_of(table), names)
        if getattr(y, "ndim", 1) != 1 or not hasattr(y, "__len__") or len(y) != n_rows_of(table):
            raise TableError(
                "the table and the target have different lengths, or there is more than one target "
                "a record; pass one value for each record."
            )
        return {**{name: table[name] for name in names}, target.name: y}

    def _ask(self, method: str, table: Any) -> npt.NDArray[Any]:
        check_is_fitted(self)
        rows = SchemaEncoder(self.schema, self.dtype).fit().transform(table)
        answer: npt.NDArray[Any] = getattr(self.estimator_, method)(rows)
        return answer
