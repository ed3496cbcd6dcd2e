"""Several steps as one model, each of which tells the next what is public of its rows."""

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

    The row norm, the classes or the range of the labels, and what the guarantee must say of them,
    go from step to step, so that the estimator need not be told again. Everything else is
    scikit-learn's: parameters such as ``model__epsilon``, named steps, predictions.

    Of ``steps``, pairs of a name and a step, a `SchemaEncoder` is the first and an estimator of
    tacit the last. A transformer between them has ``facts_out``, which says what is public of its
    rows; one without is refused, since it may learn from the records without privacy. ``memory``
    and ``verbose`` are as in scikit-learn; nothing is cached.

    Attributes
    ----------
    privacy_ : Guarantee
        What the fit promises.
    plan_ : Plan or None
        What was run and why.

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
        """Return what a fit would run, what it would cost and what to expect, without data."""
        facts = self.facts()
        self.steps[0][1].schema.check_references(self.steps[-1][1])
        plan: Plan = with_table_facts(self.steps[-1][1], facts).plan(len(facts.names), n_records)
        return plan

    def facts(self) -> TableFacts:
        """Return what is public of the rows that the last step meets."""
        encoder, *rest = self._before_estimator()
        facts: TableFacts = encoder.facts_out()
        for step in rest:
            facts = facts.through(step)
        return facts

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Fit the estimator to a table, which is read when the plan has been charged.

        Parameters
        ----------
        X
            The columns that the schema declares.
        y
            The target, one value a record, if it is not a column of the table.
        unit
            Whose each record is, one identifier a record, if no column of the schema says so.
        """
        encoder, *rest = self._before_estimator()
        encoder.schema.check_references(self.steps[-1][1])
        facts = encoder.fit().facts_out()
        for step in rest:
            if isinstance(step, FeatureMap):
                step.fit(facts)  # of which the rows of a prediction will know nothing
            facts = facts.through(step)
        self.steps[-1][1].fit(self._unread(X, y, unit), None)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the estimator's score on the records that have a target; it is not private."""
        check_is_fitted(self)
        rows, labels = self._unread(X, y, with_people=False).read()
        score: float = self.steps[-1][1].score(rows, labels)
        return score

    def encoded(self, X: Any, y: Any = None, unit: Any = None) -> tuple[EncodedTable, Any]:
        """Return a table as the last step meets it, not read yet, and that step.

        Parameters as in `fit`; `tacit.metrics.evaluate` asks for it.
        """
        check_is_fitted(self)
        return self._unread(X, y, unit), self.steps[-1][1]

    @property
    def privacy_(self) -> Guarantee:
        """What the fit promises."""
        promise: Guarantee = self.steps[-1][1].privacy_
        return promise

    @property
    def plan_(self) -> Plan | None:
        """What was run and why; None without noise."""
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
        """Return the steps before the estimator, the first for the labels that it needs."""
        encoder, *rest = public_steps(self)
        return [labels_as_needed(encoder, self.steps[-1][1]), *rest]


def labels_as_needed(encoder: SchemaEncoder, estimator: Any) -> SchemaEncoder:
    """Return an encoder without a target where the estimator, a location, learns from none."""
    if hasattr(estimator, "predict") or encoder.schema.target is None:
        return encoder
    return _with_schema(encoder, replace(encoder.schema, target=None))


def with_words(encoder: SchemaEncoder, learned: Mapping[str, Sequence[str]]) -> SchemaEncoder:
    """Return an encoder that knows the words of its open categories."""
    return _with_schema(encoder, encoder.schema.with_words(learned))


def _with_schema(encoder: SchemaEncoder, schema: Schema) -> SchemaEncoder:
    return SchemaEncoder(schema, encoder.dtype, allow_unconfirmed=encoder.allow_unconfirmed)


def public_steps(model: Any) -> list[Any]:
    """Return the steps of a Pipeline before the last, all of which must go by public facts."""
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
            "a Pipeline begins with a SchemaEncoder, which says what is public of its tables; put "
            "one before the estimator, or use the estimator alone."
        )
    steps[0][1].schema.refuse_open()
    return [step for _, step in steps]
