"""Fit steps that learn from records under one budget, with one charge."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import methodcaller
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import pipeline as sklearn_pipeline
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit.engine import release_answers
from tacit.estimators.parameters import budget_of, source_of, warn, warn_if_weak, with_people
from tacit.features import FeatureMap
from tacit.metrics import TooFewRecords
from tacit.metrics.evaluate import check_order, evaluation_of
from tacit.metrics.evaluation import NoEvaluationWarning
from tacit.metrics.predictions import AnswersOf
from tacit.pipeline.inputs import (
    Encoded,
    PipelineOfArrays,
    Raw,
    RawFile,
    RawNumbers,
    RawTable,
    Through,
    facts_of_arrays,
    rows_to_ask_about,
    unread_arrays,
)
from tacit.pipeline.planning import HELD_OUT, PipelinePlan, Planner, all_steps, with_budget
from tacit.pipeline.public import labels_as_needed, with_words
from tacit.pipeline.steps import admitted, check_steps
from tacit.preprocessing import PrivateVocabulary
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.queries import Session
from tacit.queries.session import Split
from tacit.schema import SchemaEncoder
from tacit.table_facts import EncodedTable, TableFacts

# The fitted steps by name, the feature names of the estimator, and the noisy evaluation counts.
Learned = tuple[dict[str, Any], tuple[str, ...], npt.NDArray[np.float64] | None]


def _last_has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(self.steps[-1][1], method)


class PrivatePipeline(sklearn_pipeline.Pipeline):
    """Combine private preprocessing, public feature maps and an estimator under one budget.

    All steps are planned from public facts and charged once before the table is read. Each
    step learns from its share of the budget, and passes the public facts of its rows to the next.
    Steps of scikit-learn that would learn without privacy are refused.

    Parameters
    ----------
    steps : list of (name, step)
        Transformers and, last, an estimator of tacit. A `SchemaEncoder` first takes raw tables;
        without one, arrays and frames of numbers are taken. A step's own ``epsilon``,
        ``delta``, ``relation``, ``accountant`` and ``random_state`` are ignored.
    epsilon, delta, relation, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`; for all steps together.
    shares : mapping or None
        The share of the budget (of mu^2; of epsilon if delta is 0) of each step, by its name.
        By default a tenth for each step before the estimator, at most three tenths for all of
        them, and the rest for the estimator.
    evaluate : float, default=0.0
        The share of the records, or of the people, to hold out. The evaluation on them is
        released in ``evaluation_``. The parts are disjoint, so this costs no further budget.

    Attributes
    ----------
    steps_ : dict
        The fitted steps by their names.
    estimator_ : estimator
        The fitted estimator, the last step.
    privacy_ : Guarantee
        The guarantee of all steps together.
    plan_ : PipelinePlan or None
        The plan of the fit; None if the pipeline was loaded from a file.
    evaluation_ : Evaluation or None
        The evaluation on the held-out records; None if there were none, or too few.
    feature_names_met : tuple
        The names of the estimator's features.

    Notes
    -----
    **Guarantee**. All outputs are functions of the steps' releases. Their composed events
    were charged before the table was read, and each step may spend only its planned event.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.pipeline import PrivatePipeline
    >>> from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder
    >>> age = np.random.default_rng(0).uniform(0, 100, 20_000)
    >>> schema = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
    >>> model = PrivatePipeline(
    ...     [
    ...         ("encode", SchemaEncoder(schema)),
    ...         ("curve", PolynomialFeatures(2, include_bias=False)),
    ...         ("model", LogisticRegression()),
    ...     ],
    ...     epsilon=1.0,
    ... )
    >>> model = model.fit({"age": age}, np.where(abs(age - 50) < 30, "yes", "no"))
    >>> model.predict({"age": [5, 50]})
    array(['no', 'yes'], dtype='<U3')
    >>> bool(model.privacy_.epsilon(1e-6) <= 1.0)
    True
    """

    def __init__(
        self,
        steps: list[tuple[str, Any]],
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        relation: Relation | str = "add_remove",
        shares: Mapping[str, float] | None = None,
        evaluate: float = 0.0,
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.steps = steps
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.shares = shares
        self.evaluate = evaluate
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    memory = None  # scikit-learn's attribute; nothing is cached
    transform_input = None

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the steps are fitted."""
        return hasattr(self, "steps_")

    def plan(self, n_features: int | None = None, n_records: int | None = None) -> PipelinePlan:
        """Plan a fit, its cost and its expected risk, without data.

        Parameters
        ----------
        n_features
            The number of columns of the table; not needed with a `SchemaEncoder`.
        n_records
            The number of rows, if known; it changes only the predicted risk.
        """
        return self._planned(self.facts_to_learn_from(n_features), n_records)

    def facts_to_learn_from(self, n_features: int | None = None) -> TableFacts:
        """Return the public facts of the encoded rows of a future table."""
        encoder, table_facts = self._encoder(), getattr(self, "_table_facts", None)
        if table_facts is not None:
            facts: TableFacts = table_facts
            return facts
        if encoder is not None:
            return encoder.facts_out()
        if n_features is None:
            raise ValueError("n_features is needed without a SchemaEncoder; pass n_features=...")
        return facts_of_arrays(self.steps[-1][1], n_features, self._budget().relation)

    def rows_to_learn_from(self, X: Any, y: Any = None) -> EncodedTable:
        """Return the encoded rows of a table, to be read after the charge.

        A search splits these rows, and fits the pipeline of `after_encoder` to the parts.
        """
        encoder = self._encoder()
        if encoder is None:
            return unread_arrays(self, X, y, None)
        if encoder.schema.open_words:
            raise TypeError(
                "a search splits encoded records, but the words of the schema's open "
                "categories are learned only in a fit; declare them, or search without the column."
            )
        return encoder.unread(X, y)

    def after_encoder(self) -> PrivatePipeline:
        """Return the pipeline of all steps but the encoder, unfitted."""
        steps = [(name, s) for name, s in all_steps(self.steps) if not isinstance(s, SchemaEncoder)]
        rest: PrivatePipeline = clone(self).set_params(steps=steps)
        return rest

    def with_encoder_of(self, whole: PrivatePipeline) -> PrivatePipeline:
        """Return a fitted pipeline with the encoder of another, if any, as its first step."""
        if whole._encoder() is None:
            return self
        (name, encoder), made = whole.steps[0], copy.copy(self)
        made.steps = whole.steps
        made.steps_ = {name: clone(encoder).fit(), **self.steps_}
        return made

    def tell(self, facts: TableFacts) -> None:
        """Set the public facts of a future table, as `with_table_facts` does for estimators."""
        self._table_facts = facts

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Fit all steps to a table, which is read after the plan is charged.

        Parameters
        ----------
        X
            The columns that the schema declares; without a `SchemaEncoder`, numbers.
        y
            The target, one value per record, if it is not a column of the table.
        unit
            The unit of each record, one identifier per record, if the schema declares none.
        """
        encoder = self._encoder()
        if encoder is not None:
            return self._fitted(RawTable(encoder, X, y, unit))
        noted = PipelineOfArrays()
        self._fitted(RawNumbers(unread_arrays(self, X, y, unit, noted)))
        self._columns = noted
        return self

    def fit_file(
        self,
        path: str | os.PathLike[str],
        *,
        delimiter: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Fit to a file, read in batches; arguments are as in `encode_file`."""
        encoder = self._encoder()
        if encoder is None:
            raise TypeError("a file is read by a schema; put a SchemaEncoder first.")
        return self._fitted(RawFile(encoder, path, delimiter, progress))

    def _fitted(self, raw: Raw) -> Self:
        table = raw.encoded(None)  # not read here
        facts = table.facts
        budget = with_people(self._budget(), facts.of_people)
        if self.evaluate and budget.relation is Relation.REPLACE:
            table.refuse_positions()
        warn_if_weak(budget, facts.n_records)
        plan = self._planned(facts)
        released = release_answers(
            plan,
            lambda: raw,
            lambda session: self._learned(session, plan, raw),
            accountant=self.accountant,
            source=source_of(self.random_state),
        )
        fitted, self.feature_names_met, sums = released.value
        self.steps_, self.estimator_ = fitted, fitted[self.steps[-1][0]]
        self.plan_: PipelinePlan | None = plan
        self.privacy_ = replace(released.privacy, assumptions=_said(fitted.values()))
        self.evaluation_ = None
        if plan.evaluation is not None and sums is not None:
            try:
                self.evaluation_ = evaluation_of(plan.evaluation, sums, self.privacy_)
            except TooFewRecords as why:
                said = (
                    f"the evaluation has no result: {why} A larger share held out has more records"
                )
                warn(f"{said} (evaluate, or tacit fit --evaluate).", NoEvaluationWarning)
        if self.verbose:
            sys.stderr.write(f"{plan}\n{self.privacy_.statement()}\n")
        return self

    def _learned(self, session: Session, plan: PipelinePlan, raw: Raw) -> Learned:
        """Fit each step to the output of the steps before it, and count on the held-out records.

        Only the public facts of ``raw`` are used here.
        """
        seeds = None if self.random_state is None else check_random_state(self.random_state)
        steps, encoder = all_steps(self.steps), self._encoder()
        fitted: dict[str, Any] = {}
        # A session of the encoded training records, and one of the held-out records.
        parts: tuple[Session, ...] = ()
        if encoder is None:
            parts, facts = self._encoded(session, plan, raw, None)
        for name, step in steps:
            seed = None if seeds is None else int(seeds.randint(2**31))
            if name in plan.steps:
                who, budget = f"step {name!r}", plan.steps[name].budget
                step = with_budget(step, budget).set_params(random_state=seed)
            if isinstance(step, PrivateVocabulary) and not parts:
                read = methodcaller("columns", [str(column) for column in step.columns])
                unit = methodcaller("unit")
                ready = session.fit(name, step, budget, who, table=read, unit=unit)
                assert encoder is not None
                # The learned words and their cost belong to the encoder's schema.
                encoder = with_words(encoder, ready.values_)
                encoder.privacy_ = ready.privacy_
                continue
            if isinstance(step, SchemaEncoder):
                assert encoder is not None
                ready = encoder.fit()
                parts, facts = self._encoded(session, plan, raw, encoder)
            elif name in plan.steps:
                ready = parts[0].fit(name, step, budget, who)
            else:
                ready = admitted(name, step)
            if isinstance(ready, FeatureMap):
                ready = clone(ready).fit(facts)  # predictions will not bring these facts
            fitted[name] = ready
            if name != steps[-1][0] and not isinstance(step, SchemaEncoder):
                facts = facts.through(ready)
                parts = parts[0].on(Through(ready, facts)), *parts[1:]
        if plan.evaluation is None:
            return fitted, facts.names, None
        *before, estimator = fitted.values()
        check_order(plan.evaluation, estimator)
        through = tuple(step for step in before if not isinstance(step, SchemaEncoder))
        sums = plan.evaluation.sums(parts[1].on(AnswersOf(estimator, through)))
        for part in parts:
            part.close()
        return fitted, facts.names, sums

    def _encoded(
        self, session: Session, plan: PipelinePlan, raw: Raw, encoder: SchemaEncoder | None
    ) -> tuple[tuple[Session, ...], TableFacts]:
        """Return sessions of the training rows and, if any, of the held-out rows."""
        rows, facts = session.on(Encoded(encoder)), raw.encoded(encoder).facts
        if plan.parts is None:
            return (rows,), facts
        shares = 1.0 - self.evaluate, self.evaluate
        return rows.on(Split(shares)).parts(HELD_OUT, plan.parts), facts.of_part(shares[0])

    def _planned(self, facts: TableFacts, n_records: int | None = None) -> PipelinePlan:
        """Plan a fit to a table with these public facts."""
        budget = with_people(self._budget(), facts.of_people)
        return self._planner().planned(facts, budget, n_records)

    def _planner(self) -> Planner:
        """Return the planner of this pipeline."""
        return Planner(self.steps, self._encoder() is not None, self.shares, self.evaluate)

    def _budget(self) -> Budget:
        return budget_of(self.epsilon, self.delta, self.relation, self.accountant)

    def _encoder(self) -> SchemaEncoder | None:
        """Return the encoder, if any, with the labels that the estimator needs."""
        check_steps(self)
        first = self.steps[0][1]
        return (
            labels_as_needed(first, self.steps[-1][1]) if isinstance(first, SchemaEncoder) else None
        )

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        *before, _ = self.steps_.values()
        first = before[0] if before else None
        rows = X
        if not isinstance(first, SchemaEncoder):
            rows = rows_to_ask_about(getattr(self, "_columns", None), first, X)
        for step in before:
            rows = step.transform(rows)
            rows = rows.to_numpy() if hasattr(rows, "to_numpy") else rows  # from set_output
        return rows

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the predicted class or number of every record."""
        answer: npt.NDArray[Any] = self.estimator_.predict(self._rows(X))
        return answer

    @available_if(_last_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> npt.NDArray[Any]:
        """Return the score of every record."""
        answer: npt.NDArray[Any] = self.estimator_.decision_function(self._rows(X))
        return answer

    @available_if(_last_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """Return the probability of every class for every record."""
        answer: npt.NDArray[Any] = self.estimator_.predict_proba(self._rows(X))
        return answer

    def encoded(self, X: Any, y: Any = None, unit: Any = None) -> tuple[EncodedTable, Any]:
        """Return an unread table of the fitted estimator's input rows, and the estimator.

        Parameters are as in `fit`; `tacit.metrics.evaluate` calls this.
        """
        return self._unread(X, y, unit), self.estimator_

    def score(self, X: Any, y: Any = None) -> float:
        """Return the estimator's score on the records with a target; it is not private."""
        rows, labels = self._unread(X, y, with_people=False).read()
        score: float = self.estimator_.score(rows, labels)
        return score

    def _unread(
        self, X: Any, y: Any, unit: Any = None, *, with_people: bool = True
    ) -> EncodedTable:
        check_is_fitted(self)
        *steps, last = self.steps_.values()
        if steps and isinstance(steps[0], SchemaEncoder):
            encoder = labels_as_needed(steps.pop(0), last)
            table = encoder.unread(X, y, unit, with_people=with_people)
        else:
            table = unread_arrays(self, X, y, unit)
        for step in steps:
            table = table.through(step)
        return table

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, of a classifier."""
        check_is_fitted(self)
        classes: npt.NDArray[Any] = self.estimator_.classes_
        return classes


def _said(steps: Iterable[Any]) -> tuple[str, ...]:
    """Return the assumptions that the guarantee must repeat from the steps."""
    promises = [step.privacy_ for step in steps if hasattr(step, "privacy_")]
    return tuple(dict.fromkeys(said for promise in promises for said in promise.assumptions))
