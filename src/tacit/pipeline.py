"""Several steps as one model, each of which tells the next what is public of its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from sklearn import pipeline as sklearn_pipeline
from sklearn.utils.validation import check_is_fitted

from tacit.erm import Plan
from tacit.preprocessing import SchemaEncoder
from tacit.privacy import Guarantee
from tacit.public_facts import informed
from tacit.table_facts import EncodedTable, HandsOn, TableFacts
from tacit.table_model import TableModel


class Pipeline(sklearn_pipeline.Pipeline):  # type: ignore[misc]
    """scikit-learn's Pipeline of a `SchemaEncoder`, other public transformers, and an estimator.

    The row norm, the classes or the range of the labels, and what the guarantee must say of them,
    go from step to step, so that the estimator need not be told again. Everything else is
    scikit-learn's: parameters such as ``model__epsilon``, named steps, predictions.

    Parameters
    ----------
    steps : list of (name, step)
        A `SchemaEncoder` first, an estimator of tacit last. A transformer between them has
        ``facts_out``, which says what is public of its rows; one without is refused, since it may
        learn from the records without privacy.
    memory, verbose
        As in scikit-learn; nothing is cached.

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
    >>> from tacit.preprocessing import ClassTarget, Number, Schema, SchemaEncoder
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
        plan: Plan = informed(self.steps[-1][1], facts).plan(len(facts.names), n_records)
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
        self._before_estimator()[0].fit()
        self.steps[-1][1].fit(self._unread(X, y, unit), None)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the estimator's score on the records that have a target; it is not private."""
        check_is_fitted(self)
        rows, labels = self._unread(X, y, with_people=False).read()
        score: float = self.steps[-1][1].score(rows, labels)
        return score

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
        encoder, *rest = _public_steps(self)
        if not hasattr(self.steps[-1][1], "predict") and encoder.schema.target is not None:
            encoder = SchemaEncoder(
                replace(encoder.schema, target=None),
                encoder.dtype,
                allow_unconfirmed=encoder.allow_unconfirmed,
            )
        return [encoder, *rest]


def _public_steps(model: Any) -> list[Any]:
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
    return [step for _, step in steps]


def taken_apart(model: Any) -> tuple[SchemaEncoder | None, Any]:
    """Return what encodes a fitted model's tables, if anything, and its estimator.

    The estimator has the parameters that its fit went by, whoever declared them.

    Parameters
    ----------
    model
        A fitted `TableModel`, Pipeline or estimator.

    Raises
    ------
    TypeError
        If a Pipeline has a step besides a `SchemaEncoder` and an estimator, or a schema with
        guessed lines of which its guarantee does not speak.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.location import Mean
    >>> from tacit.pipeline import taken_apart
    >>> taken_apart(Mean().fit(np.ones((9, 2))))
    (None, Mean())
    """
    if isinstance(model, TableModel):
        check_is_fitted(model)
        encoder = SchemaEncoder(
            model.schema, model.dtype, allow_unconfirmed=model.allow_unconfirmed
        )
        return encoder, informed(model.estimator_, model.schema.facts)
    if not isinstance(model, sklearn_pipeline.Pipeline):
        return None, model
    encoder, *rest = _public_steps(model)
    if rest:
        raise TypeError(
            f"only a SchemaEncoder and an estimator are saved and reported, and there is a step "
            f"{model.steps[1][0]!r} between them; save or report the estimator alone."
        )
    check_is_fitted(model)
    estimator = model.steps[-1][1]
    said = getattr(getattr(estimator, "privacy_", None), "assumptions", ())
    if not set(encoder.schema.assumptions) <= set(said):
        raise TypeError(
            "the guarantee does not say which lines of the schema were guessed from the data: "
            "scikit-learn's Pipeline does not hand that on; fit a tacit.Pipeline."
        )
    if isinstance(model, Pipeline):
        estimator = informed(estimator, model.facts())
    return encoder, estimator
