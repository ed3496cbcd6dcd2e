"""Fit an estimator to raw tables through a public schema, and predict for raw tables."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit.engine import check_accountant
from tacit.erm import Plan
from tacit.estimators.parameters import with_table_facts
from tacit.io.reading import Paths
from tacit.linear_model import Summary
from tacit.privacy import Guarantee
from tacit.privacy.budget import WeakPromiseWarning
from tacit.records import Bounds, RecordSource
from tacit.schema import ClassTarget, NumberTarget, Schema, SchemaEncoder, SchemaError
from tacit.schema.encoding import check_schema
from tacit.table_facts import EncodedTable


def _has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(self.estimator, method)


class TableModel(BaseEstimator):
    """A model of a raw table: the public schema encodes it, and the estimator learns from it.

    The schema overrides the estimator's ``row_norm``, ``classes`` or ``label_range``, and
    ``n_records``. If the schema has a column of kind ``unit``, a person with all their records is
    protected.

    Parameters
    ----------
    schema : Schema
        The public schema of the table, with a target.
    estimator : estimator
        A classifier for a target with classes, a regressor for one with a range; left unchanged.
    dtype : data type, default=numpy.float64
        The type of the encoded features; float32 halves the memory.
    allow_unconfirmed : bool, default=False
        Whether to fit although the schema has lines that were guessed from the data and not
        confirmed. The guarantee then says so.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    privacy_ : Guarantee
        The guarantee of the fit.
    plan_ : Plan or None
        The plan that was run.
    classes_ : array
        The classes, for a classifier.

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
        """Return the plan of a fit, with its cost and predicted risk, without data."""
        self.schema.refuse_open()
        plan: Plan = self._resolved_estimator().plan(len(self.schema.feature_names), n_records)
        return plan

    def __sklearn_tags__(self) -> Any:
        """Declare the estimator's type, classifier or regressor, and any table as input."""
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        return tags

    def fit(self, table: Any, y: Any = None, unit: Any = None) -> Self:
        """Fit to a frame, an Arrow table or a dictionary of columns.

        Parameters
        ----------
        table
            The columns that the schema declares.
        y
            The target, one value per record, if it is not a column of the table.
        unit
            The person of each record, one identifier per record, if the schema has no unit column.
        """
        self._check_before_reading(of_people=unit is not None)
        return self._fitted(self._encoder().unread(table, y, unit))

    def fit_file(
        self,
        path: Paths,
        *,
        delimiter: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Fit to one or several files, in blocks of records; arguments as in `encode_file`."""
        self._check_before_reading()
        encoder = self._encoder()
        if self.schema.has_indicators_alone and hasattr(self.estimator, "plan"):
            # Sums over blocks are in double precision and equal to the bit; int8 needs an eighth of
            # the memory.
            encoder.dtype = np.int8
        return self._fitted(encoder.unread_file(path, delimiter=delimiter, progress=progress))

    def fit_records(self, make: Callable[[Bounds], RecordSource]) -> Self:
        """Fit to records that are available as sums only: on a cluster, or in files.

        Parameters
        ----------
        make
            A function of the bounds of the fit; it returns records of the schema's features, such
            as `tacit.records.files.ParquetRecords` or `tacit.cluster.DaskRecords`.
        """
        check_schema(self.schema)
        if self.schema.unconfirmed:
            raise SchemaError(
                "the schema has unconfirmed lines, and a record source does not "
                "carry them into the guarantee; confirm them first."
            )
        self._check_before_reading()
        resolved = self._resolved_estimator()
        if math.isinf(resolved.epsilon):
            raise ValueError(
                "epsilon is infinite, and records elsewhere are for private fits; use fit_file."
            )
        bounds = resolved.plan(len(self.schema.feature_names)).problem.objective.bounds
        self.estimator_ = resolved.fit(make(bounds), None)
        return self

    def _encoder(self) -> SchemaEncoder:
        allowed = self.allow_unconfirmed
        return SchemaEncoder(self.schema, self.dtype, allow_unconfirmed=allowed)

    def _resolved_estimator(self, *, of_people: bool = False) -> Any:
        """Return the estimator with the parameters that a fit will use."""
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
        self.schema.check_references(self.estimator)
        facts = self.schema.facts
        return with_table_facts(
            self.estimator, replace(facts, of_people=facts.of_people or of_people)
        )

    def _check_before_reading(self, *, of_people: bool = False) -> None:
        """Refuse an invalid or unaffordable fit before the table is opened."""
        check_schema(self.schema)
        self.schema.refuse_open()
        facts, estimator = (
            self._encoder().facts_out(),
            self._resolved_estimator(of_people=of_people),
        )
        if hasattr(estimator, "plan") and not math.isinf(estimator.epsilon):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", WeakPromiseWarning)  # the fit warns itself
                plan = estimator.plan(len(facts.names))
            accountant = getattr(estimator, "accountant", None)
            if accountant is not None:
                check_accountant(accountant)
                accountant.check(plan.event, plan.budget.delta)

    def _fitted(self, table: EncodedTable) -> Self:
        self.estimator_ = clone(self.estimator).fit(table, None)
        return self

    @property
    def privacy_(self) -> Guarantee:
        """The guarantee of the fit."""
        check_is_fitted(self)
        promise: Guarantee = self.estimator_.privacy_
        return promise

    @property
    def plan_(self) -> Plan | None:
        """The plan that was run; None without noise."""
        check_is_fitted(self)
        plan: Plan | None = getattr(self.estimator_, "plan_", None)
        return plan

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, for a classifier."""
        check_is_fitted(self)
        classes: npt.NDArray[Any] = self.estimator_.classes_
        return classes

    @available_if(_has("summary"))  # type: ignore[untyped-decorator]
    def summary(self) -> Summary:
        """Return coefficients with standard errors, named by the encoded features.

        Effects are told in the unit that the schema declares by ``per``, else per whole range.
        """
        check_is_fitted(self)
        found: Summary = self.estimator_.summary()
        named = found.named(self.schema.feature_names, self.schema.references)
        return named.in_units(self.schema.effect_units)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the encoded features, one per coefficient."""
        return self._encoder().get_feature_names_out()

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

    def encoded(self, X: Any, y: Any = None, unit: Any = None) -> tuple[EncodedTable, Any]:
        """Return the encoded table, not read yet, and the fitted estimator.

        Parameters as in `fit`; `tacit.metrics.evaluate` uses it.
        """
        check_is_fitted(self)
        return self._encoder().unread(X, y, unit), self.estimator_

    def score(self, table: Any, y: Any = None) -> float:
        """Return the estimator's score on the records that have a target; the score is not private.

        It is the estimator's own ``score``: accuracy for classes, R2 or similar for numbers.
        Parameters as in `fit`.
        """
        check_is_fitted(self)
        rows, labels = self._encoder().unread(table, y, with_people=False).read()
        score: float = self.estimator_.score(rows, labels)
        return score

    def _ask(self, method: str, table: Any) -> npt.NDArray[Any]:
        check_is_fitted(self)
        rows = self._encoder().transform(table)
        answer: npt.NDArray[Any] = getattr(self.estimator_, method)(rows)
        return answer
