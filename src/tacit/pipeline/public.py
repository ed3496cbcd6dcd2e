"""Combine public steps and one estimator; each step passes public facts to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from sklearn import pipeline as sklearn_pipeline
from sklearn.utils.validation import check_is_fitted

from tacit.erm import Plan
from tacit.estimators.parameters import with_table_facts
from tacit.features import FeatureMap
from tacit.privacy import Guarantee
from tacit.schema import Schema, SchemaEncoder
from tacit.table_facts import EncodedTable, HandsOn, TableFacts


class Pipeline(sklearn_pipeline.Pipeline):
    """scikit-learn's Pipeline of a `SchemaEncoder`, other public transformers, and an estimator.

    The row norm, the classes or the label range, and their assumptions pass
    from step to step, so the estimator need not declare them again. Everything else is
    scikit-learn's: parameters such as ``model__epsilon``, named steps, predictions.

    The first of ``steps``, pairs of a name and a step, is a `SchemaEncoder`, and the last an
    estimator of tacit. A transformer between them has ``facts_out``, which returns the public facts
    of its rows; one without is refused, since it may learn from the records without privacy.
    ``memory`` and ``verbose`` are as in scikit-learn; nothing is cached.

    Attributes
    ----------
    privacy_ : Guarantee
        The guarantee of the fit.
    plan_ : Plan or None
        The plan that was run, with its reason.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder
    >>> age = np.random.default_rng(0).uniform(0, 100, 20_000)
    >>> schema = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
    >>> model = tacit.Pipeline(
    ...     [("encode", SchemaEncoder(schema)), ("model", LogisticRegression(epsilon=1.0))]
    ... )
    >>> model = model.fit({"age": age}, np.where(age > 50, "yes", "no"))
    >>> model.predict({"age": [10, 90]})
    array(['no', 'yes'], dtype='<U3')
    >>> model["model"].row_norm_
    0.5
    """

    def plan(self, n_records: int | None = None) -> Plan:
        """Plan a fit, its cost and its expected risk, without data."""
        facts = self.facts()
        self.steps[0][1].schema.check_references(self.steps[-1][1])
        plan: Plan = with_table_facts(self.steps[-1][1], facts).plan(len(facts.names), n_records)
        return plan

    def facts(self) -> TableFacts:
        """Return the public facts of the estimator's input rows."""
        encoder, *rest = self._before_estimator()
        facts: TableFacts = encoder.facts_out()
        for step in rest:
            facts = facts.through(step)
        return facts

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Fit the estimator to a table, which is read after the plan is charged.

        Parameters
        ----------
        X
            The columns that the schema declares.
        y
            The target, one value per record, if it is not a column of the table.
        unit
            The unit of each record, one identifier per record, if the schema declares none.
        """
        encoder, *rest = self._before_estimator()
        encoder.schema.check_references(self.steps[-1][1])
        facts = encoder.fit().facts_out()
        for step in rest:
            if isinstance(step, FeatureMap):
                step.fit(facts)  # predictions will not bring these facts
            facts = facts.through(step)
        self.steps[-1][1].fit(self._unread(X, y, unit), None)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the estimator's score on the records with a target; it is not private."""
        check_is_fitted(self)
        rows, labels = self._unread(X, y, with_people=False).read()
        score: float = self.steps[-1][1].score(rows, labels)
        return score

    def encoded(self, X: Any, y: Any = None, unit: Any = None) -> tuple[EncodedTable, Any]:
        """Return an unread table of the last step's input rows, and that step.

        Parameters are as in `fit`; `tacit.metrics.evaluate` calls this.
        """
        check_is_fitted(self)
        return self._unread(X, y, unit), self.steps[-1][1]

    @property
    def privacy_(self) -> Guarantee:
        """The guarantee of the fit."""
        promise: Guarantee = self.steps[-1][1].privacy_
        return promise

    @property
    def plan_(self) -> Plan | None:
        """The plan that was run, with its reason; None without noise."""
        plan: Plan | None = getattr(self.steps[-1][1], "plan_", None)
        return plan

    def _unread(
        self, X: Any, y: Any, unit: Any = None, *, with_people: bool = True
    ) -> EncodedTable:
        encoder, *rest = self._before_estimator()
        table: EncodedTable = encoder.unread(X, y, unit, with_people=with_people)
        for step in rest:
            table = table.through(step)
        return table

    def _before_estimator(self) -> list[Any]:
        """Return the steps before the estimator; the first encodes the labels it needs."""
        encoder, *rest = public_steps(self)
        return [labels_as_needed(encoder, self.steps[-1][1]), *rest]


def labels_as_needed(encoder: SchemaEncoder, estimator: Any) -> SchemaEncoder:
    """Return the encoder without a target if the estimator, a location, uses none."""
    if hasattr(estimator, "predict") or encoder.schema.target is None:
        return encoder
    return _with_schema(encoder, replace(encoder.schema, target=None))


def with_words(encoder: SchemaEncoder, learned: Mapping[str, Sequence[str]]) -> SchemaEncoder:
    """Return the encoder with the words of its open categories."""
    return _with_schema(encoder, encoder.schema.with_words(learned))


def _with_schema(encoder: SchemaEncoder, schema: Schema) -> SchemaEncoder:
    return SchemaEncoder(schema, encoder.dtype, allow_unconfirmed=encoder.allow_unconfirmed)


def public_steps(model: Any) -> list[Any]:
    """Return the steps of a Pipeline before the last; all must use public facts only."""
    steps = model.steps[:-1]
    for name, step in steps:
        if not isinstance(step, HandsOn):
            raise TypeError(
                f"step {name!r} is of type {type(step).__name__}, which may learn from the records "
                "without privacy, and no guarantee covers that; leave it out, and let a "
                "SchemaEncoder scale by public ranges."
            )
    if not steps or not isinstance(steps[0][1], SchemaEncoder):
        raise TypeError(
            "a Pipeline begins with a SchemaEncoder, which declares the public facts of its "
            "tables; put one before the estimator, or use the estimator alone."
        )
    steps[0][1].schema.refuse_open()
    return [step for _, step in steps]
