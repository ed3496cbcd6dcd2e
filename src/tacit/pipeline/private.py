"""One pipeline of public steps, private steps and an estimator, with one guarantee."""

from __future__ import annotations

import copy
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import methodcaller
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import pipeline as sklearn_pipeline
from sklearn.base import clone
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit.engine import check_accountant, release_answers
from tacit.estimators.parameters import (
    NobodyCountedWarning,
    UndeclaredWarning,
    budget_of,
    positive_class,
    postponed,
    source_of,
    warn,
    warn_if_weak,
    with_people,
    with_table_facts,
)
from tacit.estimators.summary import Summary
from tacit.io.reading import Paths
from tacit.metrics import TooFewRecords
from tacit.metrics.evaluate import check_order, evaluation_of
from tacit.metrics.evaluation import Evaluation, NoEvaluationWarning
from tacit.metrics.predictions import AnswersOf
from tacit.pipeline.inputs import (
    Encoded,
    FittedColumns,
    Raw,
    Through,
    check_target,
    facts_of_arrays,
    labels_as_needed,
    raw_file,
    raw_numbers,
    raw_table,
    rows_for_prediction,
    table_read_later,
    weights_for_estimator,
    with_words,
)
from tacit.pipeline.planning import (
    HELD_OUT,
    PipelinePlan,
    Planner,
    all_steps,
    check_budgets,
    with_budget,
    without_weights,
)
from tacit.pipeline.steps import check_steps, prepared, spends
from tacit.preprocessing import PrivateVocabulary
from tacit.privacy import AnyAccountant, Budget, Guarantee, Relation
from tacit.privacy.budget import WeakPromiseWarning
from tacit.queries import Session
from tacit.queries.session import Split
from tacit.records import Bounds, RecordSource
from tacit.schema import Schema, SchemaEncoder, SchemaError
from tacit.schema.encoding import check_schema
from tacit.table_facts import EncodedTable, TableFacts

# The fitted steps and the names of the columns that each takes, and the noisy evaluation counts.
Learned = tuple[dict[str, Any], dict[str, tuple[str, ...]], npt.NDArray[np.float64] | None]


def _last_has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(self.steps[-1][1], method)


class PrivatePipeline(sklearn_pipeline.Pipeline):
    """scikit-learn's Pipeline for records that must not leak: one budget, one guarantee.

    Steps are public (a `SchemaEncoder`, feature maps, transformers of scikit-learn that learn
    nothing), private (learned from a share of the budget), and, last, an estimator of tacit. All
    are planned from public facts and charged before the table is read. Each step passes the public
    facts of its rows to the next: row norm, classes or label range, and what they assume. Steps of
    scikit-learn that would learn without privacy are refused.

    Parameters
    ----------
    steps : list of (name, step)
        Transformers and, last, an estimator of tacit. A `SchemaEncoder` first takes raw tables;
        without one, arrays and frames of numbers are taken. Steps are left unchanged. Their
        ``delta``, ``relation`` and ``random_state`` do not count, and an ``epsilon`` or an
        ``accountant`` of their own is refused, unless ``epsilon`` is None.
    epsilon : float or None, default=1.0
        The budget of all steps together. None: the estimator is the only step that learns from
        records, and has its own budget, accountant and random state.
    delta, relation, accountant, random_state
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
        The fitted steps by their names; ``pipeline[-1]``, ``pipeline["name"]`` and ``named_steps``
        return them too. A slice is a pipeline of fitted steps without a guarantee of its own.
    estimator_ : estimator
        The fitted estimator, the last step.
    encoder_ : SchemaEncoder or None
        The fitted encoder, the first step.
    privacy_ : Guarantee
        The guarantee of all steps together.
    plan_ : PipelinePlan, Plan or None
        The plan of the fit, the estimator's if ``epsilon`` is None; None without noise, or if the
        pipeline was loaded from a file that has none.
    evaluation_ : Evaluation or None
        The evaluation on the held-out records; None if there were none, or too few.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

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
    >>> model[-1].coef_.shape, model[:-1].get_feature_names_out().tolist()
    ((1, 2), ['age', 'age^2'])
    """

    # Weights are the estimator's: it asks for them, `set_fit_request(sample_weight=True)`.
    __metadata_request__fit = {"sample_weight": UNUSED}  # noqa: RUF012

    memory = None  # scikit-learn's attribute; nothing is cached
    transform_input = None

    def __init__(
        self,
        steps: list[tuple[str, Any]],
        epsilon: float | None = 1.0,
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

    @classmethod
    def of_fitted(cls, steps: list[tuple[str, Any]]) -> PrivatePipeline:
        """Return a fitted pipeline of an estimator that had its own budget.

        Parameters
        ----------
        steps
            Fitted steps, of which only the last has learned from records.
        """
        model = cls([(name, clone(step)) for name, step in steps], epsilon=None)
        encoder, last = model._encoder(), steps[-1][1]
        names = {} if encoder is None else model._names_met(encoder.facts_out())
        model._publish(dict(steps), names, last.privacy_, getattr(last, "plan_", None))
        return model

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the steps are fitted."""
        return hasattr(self, "steps_")

    # The steps, as scikit-learn has them.

    def __getitem__(self, ind: Any) -> Any:
        """Return a step, the fitted one after a fit, or a pipeline of some steps."""
        if not isinstance(ind, slice):
            name = ind if isinstance(ind, str) else self.steps[ind][0]
            return self.named_steps[name]
        if ind.step not in (1, None):
            raise ValueError("a slice of a pipeline has steps of 1; leave the third number out.")
        own = {
            name: value for name, value in self.get_params(deep=False).items() if name != "steps"
        }
        part = type(self)(self.steps[ind], **own)
        if hasattr(self, "steps_") and part.steps:
            self._hand_over(part)
        return part

    def _hand_over(self, part: PrivatePipeline) -> None:
        """Give a slice its fitted steps. It has no guarantee: others learned from the records."""
        given = [name for name, _ in self.steps]
        start = given.index(part.steps[0][0])
        # A step that learned open bounds follows the encoder, and belongs to it.
        fitted = list(self.steps_)
        stop = [*given, None][start + len(part.steps)]
        first, end = fitted.index(given[start]), len(fitted) if stop is None else fitted.index(stop)
        part.steps_ = {name: self.steps_[name] for name in fitted[first:end]}
        part._names = {name: self._names[name] for name in fitted[first:] if name in self._names}
        if not first and hasattr(self, "_columns"):
            part._columns = self._columns

    @property
    def named_steps(self) -> Bunch:
        """The steps by name, the fitted ones after a fit."""
        return Bunch(**{**dict(self.steps), **getattr(self, "steps_", {})})

    @property
    def estimator_(self) -> Any:
        """The fitted estimator."""
        check_is_fitted(self)
        return self.steps_[self.steps[-1][0]]

    @property
    def encoder_(self) -> SchemaEncoder | None:
        """The fitted encoder, if any."""
        check_is_fitted(self)
        first = next(iter(self.steps_.values()))
        return first if isinstance(first, SchemaEncoder) else None

    @property
    def schema(self) -> Schema | None:
        """The public schema of the raw tables, if any; with learned words after a fit."""
        first = self[0]
        return first.schema if isinstance(first, SchemaEncoder) else None

    def released_estimator(self) -> Any:
        """Return the fitted estimator, to be saved or reported for the whole pipeline.

        Its parameters are the public facts of its rows, and its guarantee is that of all steps.
        """
        estimator, encoder = copy.copy(self.estimator_), self.encoder_
        if encoder is not None:
            facts = labels_as_needed(encoder, estimator).facts_out()
            estimator = with_table_facts(estimator, self.facts_for_estimator(facts))
        elif hasattr(estimator, "row_norm_"):
            estimator.row_norm = estimator.row_norm_
        estimator.privacy_ = self.privacy_
        return estimator

    # What a fit released.

    def __getattr__(self, name: str) -> Any:
        """Explain what is missing: before a fit, and of some steps of a fitted pipeline."""
        if name.endswith("_") and name[0] != "_" and name != "steps_":
            check_is_fitted(self)
        if name in ("privacy_", "plan_", "evaluation_"):
            raise AttributeError(
                f"some steps of a fitted pipeline have no {name} of their own, since the others "
                f"learned from the same records; see {name} of the whole pipeline."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _publish(
        self,
        fitted: dict[str, Any],
        names: Mapping[str, tuple[str, ...]],
        privacy: Guarantee,
        plan: Any,
        evaluation: Evaluation | None = None,
    ) -> None:
        """Set the fitted steps, the names of the columns that each takes, and what was released."""
        self.steps_ = fitted
        self._names = {name: names[name] for name in fitted if name in names}
        self.privacy_, self.plan_, self.evaluation_ = privacy, plan, evaluation

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, of a classifier."""
        classes: npt.NDArray[Any] = self.estimator_.classes_
        return classes

    @property
    def declared_classes_(self) -> npt.NDArray[Any]:
        """The classes in their declared order, if it is not that of ``classes_``."""
        classes: npt.NDArray[Any] = self.estimator_.declared_classes_
        return classes

    @property
    def n_features_in_(self) -> int:
        """The number of columns of the table."""
        return int(self._of_columns("n_features_in_"))

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """The names of the columns of the table, if they have names."""
        names: npt.NDArray[Any] = self._of_columns("feature_names_in_")
        return names

    def _of_columns(self, name: str) -> Any:
        check_is_fitted(self)
        return getattr(getattr(self, "_columns", next(iter(self.steps_.values()))), name)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the estimator's features, one per coefficient.

        Of a slice without the estimator: the names of the columns that it makes.
        """
        encoder = self._encoder()
        if encoder is None or hasattr(self, "steps_"):
            return np.array(self._names_out(), dtype=object)
        return np.array(self.facts_for_estimator(encoder.facts_out()).names, dtype=object)

    def _names_out(self) -> tuple[str, ...]:
        check_is_fitted(self)
        # What a slice makes, the next step of the whole pipeline takes.
        after = [name for name in self._names if name not in self.steps_]
        return self._names_of(next(iter(after), self.steps[-1][0]))

    @property
    def feature_names_met(self) -> tuple[str, ...]:
        """The names of the estimator's features."""
        check_is_fitted(self)
        return self._names_of(self.steps[-1][0])

    def _names_of(self, step: str) -> tuple[str, ...]:
        if step not in self._names:
            raise AttributeError("the file of this pipeline names the estimator's features alone.")
        return self._names[step]

    @available_if(_last_has("summary"))  # type: ignore[untyped-decorator]
    def summary(self) -> Summary:
        """Return coefficients with standard errors, named by the estimator's features.

        Effects are told in the unit that the schema declares by ``per``, else per whole range.
        """
        found: Summary = self.estimator_.summary()
        if self.encoder_ is None:
            return found.named(self.feature_names_met, None)
        schema = self.encoder_.schema
        named = found.named(self.feature_names_met, schema.references)
        # A step after the encoder may change the scale, so that its units no longer hold.
        is_next = len(self.steps) == 2 and self.feature_names_met == schema.feature_names
        return named.in_units(schema.effect_units) if is_next else named

    # Planning.

    def plan(self, n_features: int | None = None, n_records: int | None = None) -> Any:
        """Plan a fit, its cost and its expected risk, without data.

        Parameters
        ----------
        n_features
            The number of columns of the table; not needed with a `SchemaEncoder`.
        n_records
            The number of rows, if known; it changes only the predicted risk.
        """
        return self.plan_of(self.facts_to_learn_from(n_features, n_records), n_records)

    def plan_of(
        self, facts: TableFacts, n_records: int | None = None, *, weighted: bool = True
    ) -> Any:
        """Plan a fit to encoded rows with these public facts: of all steps, or of the estimator.

        ``weighted`` says whether records have weights, for an estimator with a ``max_weight``.
        """
        check_budgets(self)
        if self.epsilon is None:
            estimator, met = self._estimator_for(facts)
            estimator = estimator if weighted else without_weights(estimator)
            return estimator.plan(len(met.names), n_records)
        budget = with_people(self._budget(), facts.of_people)
        return self._planner(weighted=weighted).planned(facts, budget, n_records)

    def facts_to_learn_from(
        self, n_features: int | None = None, n_records: int | None = None
    ) -> TableFacts:
        """Return the public facts of the encoded rows of a future table, for `plan`."""
        encoder = self._encoder()
        if encoder is None:
            if n_features is None:
                raise ValueError(
                    "n_features is needed without a SchemaEncoder; pass n_features=..."
                )
            relation = self._budget().relation
            return facts_of_arrays(self.steps[-1][1], n_features, relation, n_records)
        facts = encoder.facts_out()
        if n_features not in (None, len(facts.names)):
            raise ValueError(
                f"n_features is {n_features!r}, and the schema has {len(facts.names)} features; "
                "leave it out, and pass the number of records as n_records=..."
            )
        return facts

    def _estimator_for(self, facts: TableFacts) -> tuple[Any, TableFacts]:
        """Return the estimator with its own budget and the facts of its rows, and these facts."""
        estimator, met = self.steps[-1][1], self.facts_for_estimator(facts)
        first = self.steps[0][1]
        if isinstance(first, SchemaEncoder):
            first.schema.check_references(estimator)
        return with_table_facts(estimator, met), met

    def facts_for_estimator(self, facts: TableFacts) -> TableFacts:
        """Return the public facts of the estimator's rows, from those of the encoded rows."""
        return self._planner().facts_met(facts)[self.steps[-1][0]]

    def _names_met(self, facts: TableFacts) -> dict[str, tuple[str, ...]]:
        return {name: met.names for name, met in self._planner().facts_met(facts).items()}

    def _planner(self, *, weighted: bool = True) -> Planner:
        """Return the planner of this pipeline."""
        encodes = isinstance(self.steps[0][1], SchemaEncoder)
        return Planner(self.steps, encodes, self.shares, self.evaluate, weighted)

    def _budget(self) -> Budget:
        holder = self.budget_holder
        own = {
            "accountant": None,
            "relation": "add_remove",
            "delta": 0.0,
            **holder.get_params(False),
        }
        return budget_of(own["epsilon"], own["delta"], own["relation"], own["accountant"])

    @property
    def budget_holder(self) -> Any:
        """The object with the budget: the pipeline, or its estimator if ``epsilon`` is None."""
        return self.steps[-1][1] if self.epsilon is None else self

    def _encoder(self) -> SchemaEncoder | None:
        """Return the encoder, if any, with the labels that the estimator needs."""
        check_steps(self)
        first, last = self.steps[0][1], self.steps[-1][1]
        if not isinstance(first, SchemaEncoder):
            return None
        check_schema(first.schema)
        check_target(first.schema, last)
        return labels_as_needed(first, last)

    # Searching: a search encodes the table once, and fits the rest of the pipeline to parts of it.

    def beginning_with(self, name: str, encoder: SchemaEncoder) -> PrivatePipeline:
        """Return the pipeline with an encoder before its steps, unfitted."""
        whole: PrivatePipeline = clone(self).set_params(steps=[(name, encoder), *self.steps])
        return whole

    def rows_to_learn_from(self, X: Any, y: Any = None) -> EncodedTable:
        """Return the encoded rows of a table, to be read after the charge."""
        encoder = self._encoder()
        if encoder is None:
            return table_read_later(self, X, y, None)
        if encoder.schema.open_words:
            raise TypeError(
                "a search splits encoded records, but the words of the schema's open "
                "categories are learned only in a fit; declare them, or search without the column."
            )
        return encoder.unread(X, y)

    def to_fit(self, facts: TableFacts) -> tuple[Any, TableFacts, dict[str, Any]]:
        """Return what is fitted to encoded rows, the facts of its rows, and the steps before it.

        It is the estimator, after public steps, if it has the budget; else all steps but the
        encoder.
        """
        steps = [(name, s) for name, s in all_steps(self.steps) if not isinstance(s, SchemaEncoder)]
        if self.epsilon is not None:
            return clone(self).set_params(steps=steps), facts, {}
        before: dict[str, Any] = {}
        estimator, _ = self._estimator_for(facts)
        for name, step in steps[:-1]:
            before[name] = prepared(name, step, facts)
            facts = facts.through(before[name])
        return estimator, facts, before

    def assemble(self, fitted: Any, before: Mapping[str, Any], facts: TableFacts) -> Self:
        """Take what `to_fit` returned, now fitted, and be a fitted pipeline; ``facts`` as there."""
        encoder = {n: clone(s).fit() for n, s in self.steps[:1] if isinstance(s, SchemaEncoder)}
        if isinstance(fitted, PrivatePipeline):
            steps, names = fitted.steps_, fitted._names
            released = fitted.privacy_, fitted.plan_, fitted.evaluation_
        else:
            last = self.steps[-1][0]
            steps, names = {**before, last: fitted}, {last: facts.names}
            released = fitted.privacy_, getattr(fitted, "plan_", None), None
        self._publish({**encoder, **steps}, names, *released)
        return self

    @property
    def row_model(self) -> PrivatePipeline:
        """The fitted pipeline without its encoder; it predicts for encoded rows."""
        if self.encoder_ is None:
            return self
        rest: PrivatePipeline = self[1:]
        rest.steps_ = dict(list(self.steps_.items())[1:])
        return rest

    # Fitting.

    def fit(
        self, X: Any, y: Any = None, unit: Any = None, sample_weight: Any = None, **params: Any
    ) -> Self:
        """Fit all steps to a table, which is read after the plan is charged.

        Parameters
        ----------
        X
            The columns that the schema declares; without a `SchemaEncoder`, numbers.
        y
            The target, one value per record, if it is not a column of the table.
        unit
            The unit of each record, one identifier per record, if the schema declares none.
        sample_weight
            The weight of each record, for the estimator; declare its ``max_weight``. With
            scikit-learn's metadata routing the estimator must ask for it:
            ``set_fit_request(sample_weight=True)``.
        **params
            ``<name of the estimator>__sample_weight`` does the same, as in scikit-learn.
        """
        encoder = self._encoder()
        weights = weights_for_estimator(self, sample_weight, params)
        if encoder is not None:
            return self._fitted(raw_table(encoder, X, y, unit, weights))
        noted = FittedColumns()
        self._fitted(raw_numbers(table_read_later(self, X, y, unit, noted, weights)))
        self._columns = noted
        return self

    def fit_file(
        self,
        path: Paths,
        *,
        delimiter: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Fit to one or several files, read in batches; arguments are as in `encode_file`."""
        encoder = self._encoder()
        if encoder is None:
            raise TypeError("a file is read by a schema; put a SchemaEncoder first.")
        last = self.steps[-1][1]
        if not hasattr(last, "predict"):
            raise TypeError(
                f"a file is read for a classifier or a regressor, and {type(last).__name__} is "
                "none; read the table into memory, and call fit."
            )
        if self._sums_suffice() and encoder.schema.has_indicators_alone:
            # Sums over blocks are in double precision and equal to the bit; int8 needs an eighth of
            # the memory.
            allowed = encoder.allow_unconfirmed
            encoder = SchemaEncoder(encoder.schema, np.int8, allow_unconfirmed=allowed)
        return self._fitted(raw_file(encoder, path, delimiter, progress))

    def _sums_suffice(self) -> bool:
        """Return whether the estimator alone learns, from sums over encoded rows."""
        return self.epsilon is None and len(self.steps) == 2 and hasattr(self.steps[-1][1], "plan")

    def fit_records(self, make: Callable[[Bounds], RecordSource]) -> Self:
        """Fit to records that are available as sums only: on a cluster, or in files.

        Parameters
        ----------
        make
            A function of the bounds of the fit; it returns records of the schema's features, such
            as `tacit.records.files.ParquetRecords` or `tacit.cluster.DaskRecords`.
        """
        encoder = self._encoder()
        if encoder is None or not self._sums_suffice():
            raise TypeError(
                "records elsewhere are given as sums over encoded rows, which a SchemaEncoder and "
                "an estimator with its own budget take: TableModel(schema, estimator)."
            )
        if encoder.schema.unconfirmed:
            raise SchemaError(
                "the schema has unconfirmed lines, and a record source does not "
                "carry them into the guarantee; confirm them first."
            )
        check_budgets(self)
        facts = encoder.facts_out()
        estimator, _ = self._check_affordable(facts)
        if math.isinf(self._budget().epsilon):
            raise ValueError(
                "epsilon is infinite, and records elsewhere are for private fits; use fit_file."
            )
        bounds = estimator.plan(len(facts.names)).problem.objective.bounds
        fitted = estimator.fit(make(bounds), None)
        (first, _), (last, _) = self.steps
        steps = {first: encoder.fit(), last: fitted}
        self._publish(steps, self._names_met(facts), fitted.privacy_, fitted.plan_)
        return self

    def _fitted(self, raw: Raw) -> Self:
        check_budgets(self)
        if self.epsilon is None:
            self._fit_estimator(raw)
        else:
            self._fit_steps(raw)
        if self.verbose:
            sys.stderr.write(f"{self.plan_}\n{self.privacy_.statement()}\n")
        return self

    def _fit_estimator(self, raw: Raw) -> None:
        """Fit the estimator with its own budget to what the public steps make of the table."""
        self._check_affordable(raw.facts)
        table, fitted = raw.encoded(None), {}
        names = self._names_met(raw.facts)
        for name, step in self.steps[:-1]:
            if isinstance(step, SchemaEncoder):
                fitted[name] = clone(step).fit()
            else:
                fitted[name] = prepared(name, step, table.facts)
                table = table.through(fitted[name])
        last, estimator = self.steps[-1]
        fitted[last] = ready = clone(estimator).fit(table, None)
        self._publish(fitted, names, ready.privacy_, getattr(ready, "plan_", None))

    def _check_affordable(self, facts: TableFacts) -> tuple[Any, TableFacts]:
        """Refuse an invalid or unaffordable fit of the estimator before the table is opened."""
        estimator, met = self._estimator_for(facts)
        if hasattr(estimator, "plan") and not math.isinf(self._budget().epsilon):
            with warnings.catch_warnings():
                for category in (WeakPromiseWarning, UndeclaredWarning):  # the fit warns itself
                    warnings.simplefilter("ignore", category)
                plan = estimator.plan(len(met.names))
            accountant = getattr(estimator, "accountant", None)
            if accountant is not None:
                check_accountant(accountant)
                accountant.check(plan.event, plan.budget.delta)
        return estimator, met

    def get_metadata_routing(self) -> Any:
        """Return who takes ``unit`` (the pipeline) and ``sample_weight`` (the estimator)."""
        return super().get_metadata_routing().add_self_request(self)

    def _fit_steps(self, raw: Raw) -> None:
        """Fit all steps from their shares of the pipeline's budget."""
        table = raw.encoded(None)  # not read here
        facts = table.facts
        budget = with_people(self._budget(), facts.of_people)
        if self.evaluate and budget.relation is Relation.REPLACE:
            table.refuse_positions()
        warn_if_weak(budget, facts.n_records)
        weighted = table.weigh is not None
        plan: PipelinePlan = self.plan_of(facts, weighted=weighted)
        self._planner(weighted=weighted).rehearse(plan, facts)
        with postponed(NobodyCountedWarning) as nobody:
            released = release_answers(
                plan,
                lambda: raw,
                lambda session: self._learned(session, plan, raw),
                accountant=self.accountant,
                source=source_of(self.random_state),
            )
        fitted, names, sums = released.value
        privacy = replace(released.privacy, assumptions=_said(fitted.values()))
        _mark_as_steps(fitted.values())
        self._publish(fitted, names, privacy, plan)
        late: list[tuple[str, type[Warning]]] = [(said, NobodyCountedWarning) for said in nobody]
        if plan.evaluation is not None and sums is not None:
            positive = positive_class(fitted[self.steps[-1][0]])
            try:
                self.evaluation_ = evaluation_of(plan.evaluation, sums, privacy, positive)
            except TooFewRecords as why:
                said = (
                    f"the evaluation has no result: {why} A larger share held out has more records"
                )
                said = f"{said} (evaluate, or tacit fit --evaluate)."
                late.append((said, NoEvaluationWarning))
        # All is published by now: a warning may be an error, and the fit is paid for.
        for said, category in late:
            warn(said, category)

    def _learned(self, session: Session, plan: PipelinePlan, raw: Raw) -> Learned:
        """Fit each step to the output of the steps before it, and count on the held-out records.

        Only the public facts of ``raw`` are used here.
        """
        seeds = None if self.random_state is None else check_random_state(self.random_state)
        steps, encoder = all_steps(self.steps), self._encoder()
        fitted: dict[str, Any] = {}
        names: dict[str, tuple[str, ...]] = {}
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
                ready = prepared(name, step, facts)
            fitted[name], names[name] = ready, facts.names
            if name != steps[-1][0] and not isinstance(step, SchemaEncoder):
                facts = facts.through(ready)
                parts = parts[0].on(Through(ready, facts)), *parts[1:]
        if plan.evaluation is None:
            return fitted, names, None
        *before, estimator = fitted.values()
        check_order(plan.evaluation, estimator)
        through = tuple(step for step in before if not isinstance(step, SchemaEncoder))
        sums = plan.evaluation.sums(parts[1].on(AnswersOf(estimator, through)))
        for part in parts:
            part.close()
        return fitted, names, sums

    def _encoded(
        self, session: Session, plan: PipelinePlan, raw: Raw, encoder: SchemaEncoder | None
    ) -> tuple[tuple[Session, ...], TableFacts]:
        """Return sessions of the training rows and, if any, of the held-out rows."""
        rows, facts = session.on(Encoded(encoder)), raw.encoded(encoder).facts
        if plan.parts is None:
            return (rows,), facts
        shares = 1.0 - self.evaluate, self.evaluate
        return rows.on(Split(shares)).parts(HELD_OUT, plan.parts), facts.of_part(shares[0])

    # Predicting.

    @available_if(_last_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the predicted class or number of every record."""
        return self._ask("predict", X)

    @available_if(_last_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> npt.NDArray[Any]:
        """Return the score of every record."""
        return self._ask("decision_function", X)

    @available_if(_last_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """Return the probability of every class for every record."""
        return self._ask("predict_proba", X)

    @available_if(_last_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> npt.NDArray[Any]:
        """Return the logarithms of `predict_proba`."""
        return self._ask("predict_log_proba", X)

    @available_if(_last_has("transform"))  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Return the rows that the steps make; for a slice, or a last step that transforms."""
        return self._ask("transform", X)

    @available_if(_last_has("transform"))  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> npt.NDArray[Any]:
        """Fit, and return the rows that the steps make; they are not private."""
        rows: npt.NDArray[Any] = self.fit(X, y, **params).transform(X)
        return rows

    @available_if(_last_has("predict"))  # type: ignore[untyped-decorator]
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> npt.NDArray[Any]:
        """Fit, and return the predictions; they are not private."""
        answer: npt.NDArray[Any] = self.fit(X, y, **params).predict(X)
        return answer

    def _ask(self, method: str, X: Any) -> npt.NDArray[Any]:
        check_is_fitted(self)
        *before, last = self.steps_.values()
        rows, first = X, next(iter(self.steps_.values()))
        if not isinstance(first, SchemaEncoder):
            rows = rows_for_prediction(getattr(self, "_columns", None), first, X)
        for step in before:
            rows = step.transform(rows)
            rows = rows.to_numpy() if hasattr(rows, "to_numpy") else rows  # from set_output
        answer: npt.NDArray[Any] = getattr(last, method)(rows)
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
            table = table_read_later(self, X, y, unit)
        for step in steps:
            table = table.through(step)
        return table


def _said(steps: Iterable[Any]) -> tuple[str, ...]:
    """Return the assumptions that the guarantee must repeat from the steps."""
    promises = [step.privacy_ for step in steps if hasattr(step, "privacy_")]
    return tuple(dict.fromkeys(said for promise in promises for said in promise.assumptions))


_ONE_STEP = (
    "This is a step of a pipeline, which learned from rows that other steps had learned from too; "
    "what it released costs more than this: see the guarantee of the pipeline."
)


def _mark_as_steps(steps: Iterable[Any]) -> None:
    """Let the guarantee of each step say that it is one of several, if it is."""
    learned = [step for step in steps if hasattr(step, "privacy_")]
    for step in learned if len(learned) > 1 else ():
        step.privacy_ = replace(step.privacy_, notes=(*step.privacy_.notes, _ONE_STEP))


def as_pipeline(model: Any) -> Any:
    """Return scikit-learn's own Pipeline of fitted public steps and an estimator as a private one.

    Any other model is returned as it is.

    Raises
    ------
    TypeError
        If it does not begin with a `SchemaEncoder`, if a step may have learned from records
        without privacy, or if there is no guarantee, or one that is silent about lines of the
        schema that were guessed.
    """
    if not isinstance(model, sklearn_pipeline.Pipeline) or isinstance(model, PrivatePipeline):
        return model
    for name, step in model.steps[:-1]:
        prepared(name, step, None)
    if not isinstance(model.steps[0][1], SchemaEncoder):
        raise TypeError(
            "a Pipeline of scikit-learn's begins with a SchemaEncoder, which declares the public "
            "facts of its tables; fit a tacit.PrivatePipeline, or take the estimator alone."
        )
    check_is_fitted(model)
    if not hasattr(model.steps[-1][1], "privacy_"):
        raise TypeError(f"the last step, {type(model.steps[-1][1]).__name__}, has no guarantee.")
    for name, step in model.steps[:-1]:
        if spends(step):
            raise TypeError(
                f"step {name!r} ({type(step).__name__}) learned from the records under a budget of "
                "its own, and scikit-learn's Pipeline has no guarantee of both; fit a "
                "tacit.PrivatePipeline, which has one budget for all steps."
            )
    made = PrivatePipeline.of_fitted(model.steps)
    encoder = made.encoder_
    assert encoder is not None  # it was checked above
    assumed = made.facts_for_estimator(encoder.facts_out()).assumptions
    if not set(assumed) <= set(made.privacy_.assumptions):
        raise TypeError(
            "the guarantee does not list the lines of the schema that were guessed from the data, "
            "or what a user vouches for: scikit-learn's Pipeline drops that list; fit a "
            "tacit.PrivatePipeline."
        )
    return made


def feature_names_of(model: Any) -> tuple[str, ...] | None:
    """Return the names of the features of a fitted model's estimator, if they have names."""
    names = getattr(model, "feature_names_met", None)
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def summary_of(model: Any) -> Summary | None:
    """Return a fitted model's coefficients with standard errors, if the fit released them."""
    released = hasattr(getattr(model, "estimator_", model), "standard_errors_")
    return model.summary() if released else None
