"""Fit additive models to raw tables by their schema: classes and numbers.

Both estimators read a table's own columns, not encoded features: the bins of a number and the words
of a category are learned under the budget. Only the schema is needed, with bounds as wide as one
likes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tacit import checks
from tacit.additive.fitting import FittedAdditive, fit_additive
from tacit.additive.grid import CellReader, GridColumn, grid_of
from tacit.additive.planning import SHARES, AdditivePlan, Options, plan_additive
from tacit.additive.scored_tables import (
    ScoreClassifier,
    ScoreRegressor,
    probabilities,
    score_chunk,
    scored_table,
)
from tacit.additive.shape_plot import ShapePlot
from tacit.additive.terms import LabelUnits, Term, term_of
from tacit.arrays import Array, Integers
from tacit.engine import check_accountant, release_answers
from tacit.estimators.parameters import budget_of, source_of, warn_if_weak, with_people
from tacit.io.errors import SchemaError
from tacit.io.memory_tables import Chunk, chunks, columns_of_batch
from tacit.io.reading import Paths, open_table
from tacit.privacy import AnyAccountant, Budget, Guarantee, Relation
from tacit.queries.table_cells import CellTable, LabelKind, NumberLabels, SeveralClasses, TwoClasses
from tacit.records.privacy_unit import people_of
from tacit.schema import ClassTarget, NumberTarget, Schema, SchemaEncoder
from tacit.schema.encoding import (
    check_schema,
    refuse_file_without_columns,
    refuse_without_columns,
    unused_name,
    with_column,
)
from tacit.table_facts import EncodedTable


class AdditiveModel(BaseEstimator):
    """What both estimators share: planning, fitting, scores and explanations."""

    schema: Schema
    epsilon: float
    delta: float
    max_bins: int
    passes: int
    shares: Mapping[str, float] | None
    relation: Relation | str
    accountant: AnyAccountant | None
    allow_unconfirmed: bool
    random_state: int | None

    terms_: dict[str, Term]
    privacy_: Guarantee
    plan_: AdditivePlan

    def __sklearn_tags__(self) -> Any:
        """Declare that tables of numbers and words are read, with missing values."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _kind(self) -> LabelKind:
        raise AssertionError("an estimator knows the kind of its labels")

    def _units(self) -> LabelUnits:
        return LabelUnits()

    def _options(self) -> Options:
        shares = SHARES if self.shares is None else self.shares
        return Options(self.max_bins, self.passes, shares).checked()

    def _grid(self) -> tuple[GridColumn, ...]:
        """Return the columns that are read, or refuse a schema that cannot be fitted."""
        check_schema(self.schema)
        # Raises for lines that were guessed from the data and not confirmed.
        SchemaEncoder(self.schema, allow_unconfirmed=self.allow_unconfirmed).facts_out()
        grid = grid_of(self.schema)
        if not grid:
            raise SchemaError("every column of the schema is ignored; declare one that is not.")
        return grid

    def _budget(self, *, of_people: bool) -> Budget:
        if self.accountant is not None:
            check_accountant(self.accountant)
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        return with_people(budget, of_people)

    def plan(self, n_records: int | None = None) -> AdditivePlan:
        """Return the plan of a fit, without data.

        It states shares, the noise in a bin, the smallest bin that can be seen, and the branch.

        Parameters
        ----------
        n_records
            About how many records there are; it changes what is predicted, and nothing else.
        """
        if n_records is not None:
            checks.count("n_records", n_records, remedy="pass about how many rows there are.")
        budget = self._budget(of_people=self._declares_people())
        warn_if_weak(budget, n_records)
        return self._plan(budget, n_records)

    def _declares_people(self) -> bool:
        check_schema(self.schema)
        by_person = Relation(self.relation) is Relation.ADD_REMOVE_PERSON
        return self.schema.unit is not None or by_person

    def _plan(self, budget: Budget, n_records: int | None = None) -> AdditivePlan:
        grid, public = self._grid(), self.schema.n_records
        return plan_additive(grid, self._kind(), budget, self._options(), n_records, public)

    def fit(self, table: Any, y: Any = None, unit: Any = None) -> Self:
        """Fit to a frame, an Arrow table or a dictionary of columns.

        Parameters
        ----------
        table
            The columns that the schema declares. Records without a declared label do not count.
        y
            The target, one value per record, if it is not a column of the table.
        unit
            The person of each record, one identifier per record, if the schema has no unit column.
            One record of each person then counts (docs/people.md).
        """
        self._check(of_people=unit is not None)
        table, schema = self._joined(table, y, unit)
        refuse_without_columns(table, schema)
        return self._fitted(schema, lambda names: (c for _, c in chunks(table, names)))

    def _joined(self, table: Any, y: Any, unit: Any) -> tuple[Any, Schema]:
        """Return the table with a target and identifiers that are given beside it."""
        schema = self.schema
        if y is not None and schema.target is not None:
            table = with_column(schema, table, schema.target.name, y, "target")
        if unit is not None:
            name = unused_name(schema)
            table = with_column(schema, table, name, unit, "identifier")
            schema = schema.with_unit(name)
        return table, schema

    def fit_file(
        self,
        path: Paths,
        *,
        delimiter: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Fit to one or several files, read in batches; arguments as in `encode_file`."""
        self._check()
        refuse_file_without_columns(path, self.schema, delimiter=delimiter)

        return self._fitted(self.schema, _file_chunks(path, delimiter, progress))

    def _check(self, *, of_people: bool = False) -> None:
        """Refuse wrong parameters before the table is looked at."""
        self._kind()
        if self.accountant is not None:
            check_accountant(self.accountant)
        self._plan(self._budget(of_people=of_people or self.schema.unit is not None))

    def _fitted(self, schema: Schema, read: Callable[[list[str]], Iterator[Chunk]]) -> Self:
        """Charge the plan, read the table, and fit."""
        grid, kind, target = self._grid(), self._kind(), schema.target
        assert target is not None
        budget = self._budget(of_people=schema.unit is not None)
        warn_if_weak(budget, schema.n_records)
        plan = self._plan(budget)
        names = [*(column.name for column in grid), target.name]
        names += [] if schema.unit is None else [schema.unit]

        def open_records() -> CellTable:
            reader = CellReader(grid, target, schema.unit)
            for chunk in read(names):
                reader.add(chunk)
            if schema.unit is None:
                return reader.table()
            one_each: Integers = people_of(reader.identifiers).one_each()
            return reader.table(one_each)

        released = release_answers(
            plan,
            open_records,
            lambda session: fit_additive(session, plan, grid, kind),
            accountant=self.accountant,
            source=source_of(self.random_state),
            assumptions=schema.assumptions,
        )
        self.plan_, self.privacy_ = plan, released.privacy
        self._publish(released.value)
        return self

    def _publish(self, fitted: FittedAdditive) -> None:
        """Set the released attributes."""
        units = self._units()
        terms = [term_of(term, units) for term in fitted.terms]
        intercept = units.origin + units.unit * fitted.intercept
        one = intercept if len(intercept) > 1 else float(intercept[0])
        self._set_released(terms, one, fitted.n_records, fitted.is_small)

    def _set_released(
        self, terms: Sequence[Term], intercept_: float | Array, n_records_: float, is_small_: bool
    ) -> None:
        self.terms_ = {term.name: term for term in terms}
        self.intercept_ = intercept_
        self.n_records_ = n_records_
        self.is_small_ = is_small_
        self.n_features_in_ = len(terms)
        self.feature_names_in_ = np.array([term.name for term in terms], dtype=object)

    @property
    def kept_(self) -> tuple[str, ...]:
        """The columns whose label sums showed more than noise, strongest first."""
        check_is_fitted(self, "terms_")
        found = [term for term in self.terms_.values() if term.kept]
        return tuple(term.name for term in sorted(found, key=lambda term: -term.gain))

    def explain(self, table: Any) -> dict[str, Array]:
        """Return one number per column and record; with ``intercept_`` they add up to the score.

        Parameters
        ----------
        table
            A table as in `fit`, without a target.

        Returns
        -------
        dict
            By column an array of shape (n,), or (n, n_classes) for several classes.
        """
        check_is_fitted(self, "terms_")
        parts: dict[str, list[Array]] = {name: [] for name in self.terms_}
        for _, chunk in chunks(table, list(self.terms_)):
            for name, term in self.terms_.items():
                parts[name].append(term.scores(chunk[name]))
        n_outputs = len(np.atleast_1d(self.intercept_))
        joined = {n: np.concatenate([np.empty((0, n_outputs)), *p]) for n, p in parts.items()}
        return {name: v[:, 0] if n_outputs == 1 else v for name, v in joined.items()}

    def plot(self, column: str, label: Any = None) -> ShapePlot:
        """Return the shape plot of a column's term; a notebook shows it.

        Parameters
        ----------
        column
            The name of the column.
        label
            The class, for several classes; leave it out otherwise.

        Returns
        -------
        ShapePlot
            ``to_svg()`` returns it as text. It shows the term, the mean label and the noisy number
            of records in each bin; `tacit.report.write_report` draws all columns.
        """
        check_is_fitted(self, "terms_")
        if column not in self.terms_:
            raise ValueError(
                f"column {column!r} has no term; choose from {', '.join(map(repr, self.terms_))}."
            )
        plots = {str(name): (place, units) for place, (name, *units) in enumerate(self._outputs())}
        if len(plots) > 1 and label is None:
            raise ValueError(
                f"label is not given, and there is a term for each class; pass one of "
                f"{', '.join(map(repr, plots))}."
            )
        if len(plots) > 1 and str(label) not in plots:
            raise ValueError(f"label {label!r} is no class; choose from {', '.join(plots)}.")
        if len(plots) == 1 and label is not None:
            raise ValueError("label is for several classes, and this model has one term a column.")
        place, (score, mean) = plots[str(label)] if len(plots) > 1 else next(iter(plots.values()))
        return ShapePlot(self.terms_[column], place, score, mean)

    def plots(self) -> dict[str, tuple[ShapePlot, ...]]:
        """Return the shape plots of all columns with a curve, strongest first.

        Returns
        -------
        dict
            By column one plot, or one per class for several classes.
        """
        check_is_fitted(self, "terms_")
        units = [(score, mean) for _, score, mean in self._outputs()]
        shown = [term for term in self.terms_.values() if term.kept and not term.is_zero]
        return {
            term.name: tuple(ShapePlot(term, place, *names) for place, names in enumerate(units))
            for term in sorted(shown, key=lambda term: -term.gain)
        }

    def score_names(self) -> tuple[str, ...]:
        """Return the unit of each output of the terms, such as "log-odds of yes"."""
        return tuple(score for _, score, _ in self._outputs())

    def _outputs(self) -> list[tuple[str, str, str]]:
        """Return each output with the unit of its terms and the name of its label means."""
        raise AssertionError("an estimator knows its outputs")

    def encoded(self, X: Any, y: Any = None, unit: Any = None) -> tuple[EncodedTable, Any]:
        """Return the unread scores of a table, and the estimator of them, for an evaluation.

        Parameters
        ----------
        X, y, unit
            As in `fit`. No value is read before the charge.
        """
        check_is_fitted(self, "terms_")
        table, schema = self._joined(X, y, unit)
        refuse_without_columns(table, schema)
        read = lambda names: (c for _, c in chunks(table, names))  # noqa: E731
        return self._scored(schema, read, is_a_file=False)

    def encoded_file(
        self,
        path: Paths,
        *,
        unit: str | None = None,
        delimiter: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> tuple[EncodedTable, Any]:
        """Return the unread scores of a file, and the estimator of them, for an evaluation.

        Parameters
        ----------
        path, delimiter, progress
            As in `fit_file`. Only the header is read before the charge.
        unit
            The column that identifies the person of a record, if the schema names none.
        """
        check_is_fitted(self, "terms_")
        if unit in self.terms_:
            raise SchemaError(
                f"unit {unit!r} is a column that the model predicts from; name the column that "
                "identifies the person of a record."
            )
        schema = self.schema if unit is None else self.schema.with_unit(unit)
        refuse_file_without_columns(path, schema, delimiter=delimiter)
        return self._scored(schema, _file_chunks(path, delimiter, progress), is_a_file=True)

    def _scored(
        self, schema: Schema, read: Callable[[list[str]], Iterator[Chunk]], *, is_a_file: bool
    ) -> tuple[EncodedTable, Any]:
        # Raises for lines that were guessed from the data and not confirmed.
        SchemaEncoder(schema, allow_unconfirmed=self.allow_unconfirmed).facts_out()
        terms, intercept = self.terms_, self.intercept_
        n_outputs = len(np.atleast_1d(intercept))
        table = scored_table(
            schema,
            lambda chunk: score_chunk(terms, intercept, chunk),
            n_outputs,
            read,
            is_a_file=is_a_file,
        )
        return table, self._score_model()

    def _score_model(self) -> Any:
        raise AssertionError("an estimator knows how scores become predictions")

    def _scores(self, table: Any) -> Array:
        explained = self.explain(table)
        total: Array = self.intercept_ + np.sum(list(explained.values()), axis=0)
        return total


def _file_chunks(
    path: Paths, delimiter: str | None, progress: Callable[[float], None] | None
) -> Callable[[list[str]], Iterator[Chunk]]:
    """Return a reader of a file's named columns in batches."""

    def read(names: list[str]) -> Iterator[Chunk]:
        file = open_table(path, delimiter=delimiter)
        capacity, n_read = max(file.count(), 1), 0
        for batch in file.batches(names):
            yield columns_of_batch(batch)
            n_read += batch.num_rows
            if progress is not None:
                progress(min(n_read / capacity, 1.0))

    return read


class AdditiveClassifier(ClassifierMixin, AdditiveModel):
    """An additive model of classes, from a schema alone, with a differential-privacy guarantee.

    The score of a record is an intercept plus one term per column: a curve over bins that are
    learned privately, and for a number a line. A table nobody prepared will do: bounds may be wide,
    and no column is scaled or cut by hand. Everything together is one Gaussian event.

    Parameters
    ----------
    schema : Schema
        The public schema of the table, with a target of classes.
    epsilon, delta : float
        The budget; delta must be above 0.
    max_bins : int, default=32
        About how many bins a number has beside its frequent values.
    passes : int, default=3
        How often each column is corrected at the current model.
    shares : dictionary, default=None
        The share of mu^2 of ``"bins"``, ``"label sums"``, ``"joint fit"``, ``"residual sums"`` and
        ``"calibration"``; by default 0.06, 0.2, 0.3, 0.41 and 0.03.
    relation : Relation or str, default="add_remove"
        Which data sets are neighbours. With a unit a person is protected.
    accountant : Accountant or Ledger, default=None
        A budget shared with other releases.
    allow_unconfirmed : bool, default=False
        Whether to fit although the schema has lines that were guessed from the data.
    random_state : int, default=None
        A seed for tests; the guarantee is then void, and says so.

    Attributes
    ----------
    terms_ : dictionary of names and Terms
        The term of each column: bins, curve, line, noisy counts, label means with intervals.
    intercept_ : float or array
        The intercept, one per class for several classes.
    kept_ : tuple of names
        The columns whose label sums showed more than noise, strongest first.
    classes_ : array
        The classes, sorted.
    n_records_ : float
        The noisy number of records.
    is_small_ : bool
        Whether the table was fitted as a small one, by one linear fit on its bins.
    privacy_ : Guarantee
        The guarantee.
    plan_ : AdditivePlan
        The plan that was run.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.additive import AdditiveClassifier
    >>> from tacit.schema import ClassTarget, Number, Schema
    >>> age = np.random.default_rng(0).uniform(0, 100, 20_000)
    >>> table = {"age": age, "ill": np.where(abs(age - 50) > 30, "yes", "no")}
    >>> schema = Schema((Number("age", -1e7, 1e7),), ClassTarget("ill", ("no", "yes")))
    >>> model = AdditiveClassifier(schema, epsilon=1.0, delta=1e-6).fit(table)
    >>> model.predict({"age": [5.0, 50.0, 95.0]})
    array(['yes', 'no', 'yes'], dtype='<U3')
    >>> model.kept_
    ('age',)
    """

    def __init__(
        self,
        schema: Schema,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        max_bins: int = 32,
        passes: int = 3,
        shares: Mapping[str, float] | None = None,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        allow_unconfirmed: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.max_bins = max_bins
        self.passes = passes
        self.shares = shares
        self.relation = relation
        self.accountant = accountant
        self.allow_unconfirmed = allow_unconfirmed
        self.random_state = random_state

    def _target(self) -> ClassTarget:
        check_schema(self.schema)
        if not isinstance(self.schema.target, ClassTarget):
            raise SchemaError(
                "AdditiveClassifier needs a schema whose target has classes; declare them, or use "
                "AdditiveRegressor for a number."
            )
        return self.schema.target

    def _kind(self) -> LabelKind:
        n_classes = len(self._target().classes)
        return TwoClasses() if n_classes == 2 else SeveralClasses(n_classes)

    def _set_released(self, *released: Any, **named: Any) -> None:
        super()._set_released(*released, **named)
        self.classes_ = np.sort(self._target().labels)

    def _outputs(self) -> list[tuple[str, str, str]]:
        names = [str(label) for label in self.classes_.tolist()]
        if len(names) == 2:
            return [(names[1], f"log-odds of {names[1]}", f"share of {names[1]}")]
        return [(name, f"score of {name}", f"share of {name}") for name in names]

    def _score_model(self) -> ScoreClassifier:
        return ScoreClassifier(self._target().labels)

    def decision_function(self, table: Any) -> Array:
        """Return the score of each record: log-odds, or one score per class for several."""
        return self._scores(table)

    def predict_proba(self, table: Any) -> Array:
        """Return the probability of each class, in the order of ``classes_``."""
        return probabilities(self._scores(table))

    def predict(self, table: Any) -> npt.NDArray[Any]:
        """Return the class of greatest probability."""
        scores = self._scores(table)
        found = np.argmax(scores, axis=1) if scores.ndim == 2 else (scores > 0).astype(np.int64)
        return np.asarray(self.classes_[found])


class AdditiveRegressor(RegressorMixin, AdditiveModel):
    """An additive model of a number, from a schema alone, with a differential-privacy guarantee.

    As `AdditiveClassifier`, for squared residuals. The label's range is that of the schema's
    target; labels and predictions are clipped to it, and noise is proportional to its width.

    Parameters
    ----------
    schema : Schema
        The public schema of the table, with a target that is a number in a range.
    epsilon, delta, max_bins, passes, shares, relation, accountant, allow_unconfirmed, random_state
        As in `AdditiveClassifier`.

    Attributes
    ----------
    terms_, intercept_, kept_, n_records_, is_small_, privacy_, plan_
        As in `AdditiveClassifier`; terms and intercept are in the label's units.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.additive import AdditiveRegressor
    >>> from tacit.schema import Number, NumberTarget, Schema
    >>> age = np.random.default_rng(0).uniform(0, 100, 20_000)
    >>> table = {"age": age, "cost": 10 * abs(age - 50)}
    >>> schema = Schema((Number("age", -1e7, 1e7),), NumberTarget("cost", 0, 1000))
    >>> model = AdditiveRegressor(schema, epsilon=1.0, delta=1e-6).fit(table)
    >>> bool(abs(model.predict({"age": [90.0]})[0] - 400) < 60)
    True
    """

    def __init__(
        self,
        schema: Schema,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        max_bins: int = 32,
        passes: int = 3,
        shares: Mapping[str, float] | None = None,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        allow_unconfirmed: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.max_bins = max_bins
        self.passes = passes
        self.shares = shares
        self.relation = relation
        self.accountant = accountant
        self.allow_unconfirmed = allow_unconfirmed
        self.random_state = random_state

    def _target(self) -> NumberTarget:
        check_schema(self.schema)
        if not isinstance(self.schema.target, NumberTarget):
            raise SchemaError(
                "AdditiveRegressor needs a schema whose target has lower and upper; declare them, "
                "or use AdditiveClassifier for classes."
            )
        return self.schema.target

    def _kind(self) -> LabelKind:
        target = self._target()
        if not math.isfinite(target.upper - target.lower):
            raise SchemaError(f"the range of {target.name!r} is infinite in floats; narrow it.")
        return NumberLabels()

    def _units(self) -> LabelUnits:
        target = self._target()
        width = target.upper - target.lower
        return LabelUnits(target.lower + width / 2, width, target.lower, target.upper)

    def _outputs(self) -> list[tuple[str, str, str]]:
        name = self._target().name
        return [(name, f"added to {name}", f"mean of {name}")]

    def _score_model(self) -> ScoreRegressor:
        target = self._target()
        return ScoreRegressor((target.lower, target.upper))

    def predict(self, table: Any) -> Array:
        """Return the predicted number of each record, within the label's range."""
        target = self._target()
        return np.clip(self._scores(table), target.lower, target.upper)
