"""Evaluate a fitted model on private records: all metrics, or one score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

from tacit.checks import names_of_today
from tacit.engine import release_answers
from tacit.estimators.parameters import (
    budget_of,
    positive_class,
    refuse_no_numbers,
    refuse_other_kinds,
    source_of,
    warn_if_weak,
    with_people,
)
from tacit.metrics.evaluation import Evaluation, TooFewRecords
from tacit.metrics.metrics import number_evaluation, several_class_evaluation, two_class_evaluation
from tacit.metrics.planning import EvaluationPlan, evaluation_plan
from tacit.metrics.predictions import answered
from tacit.noise import Release, Source
from tacit.privacy import AnyAccountant, Budget, Guarantee, Relation
from tacit.queries import GaussianNoise, NoisySum, Session, Slot, Statistic
from tacit.queries.base import plain_facts
from tacit.queries.evaluation import (
    NumberSums,
    SeveralClassCells,
    SquaredResiduals,
    TwoClassCells,
    WrongAnswers,
)
from tacit.records.lazy_table import has_people, known_length, read_people
from tacit.records.privacy_unit import People, n_identifiers, people_of
from tacit.records.rows_and_labels import refuse_label_types
from tacit.table_facts import EncodedTable


@names_of_today
def private_score(
    model: Any,
    X: Any,
    y: Any,
    noise_multiplier: float,
    *,
    relation: Relation = Relation.ADD_REMOVE,
    label_range: tuple[float, float] | None = None,
    unit: Any = None,
    source: Source | None = None,
) -> Release[float]:
    """Return a noisy score of a model on records; higher is better.

    Parameters
    ----------
    model
        A fitted classifier or regressor.
    X, y
        The records. One that the model fails on, or with an invalid label, adds nothing.
    noise_multiplier
        Standard deviation of the noise over the sensitivity.
    relation
        Which data sets are neighbours.
    label_range
        The least and greatest label, for a regressor.
    unit
        The person of each record, under ADD_REMOVE_PERSON: one record per person counts.
    source
        The randomness; a secure one by default.

    Returns
    -------
    Release
        Minus the number of mistakes; for a regressor, minus the sum of squared residuals in units
        of the width of ``label_range``. One record moves it by at most 1, under any relation. The
        event is ``Gaussian(noise_multiplier, relation)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from tacit.metrics import private_score
    >>> X, y = np.array([[0.0], [1.0]] * 50), np.array([0, 1] * 50)
    >>> model = LogisticRegression().fit(X, y)
    >>> bool(-50 < private_score(model, X, y, 4.0).value < 50)
    True
    """
    statistic: Statistic
    if is_classifier(model):
        statistic = WrongAnswers(np.asarray(model.classes_))
    elif label_range is None:
        raise ValueError("label_range is not declared; pass label_range=(low, high).")
    else:
        low, high = label_range
        statistic = SquaredResiduals(float(low), float(high))
    query, facts = NoisySum(statistic, GaussianNoise(noise_multiplier)), plain_facts(relation)
    event = query.event(facts)
    people = None if unit is None else people_of(unit)
    held = answered(model, X, y, people, relation=relation)
    session = Session(held, facts, event, {"score": Slot(event)}, source)
    return session.release(float(np.asarray(session.ask(query, "score"))))


Array = npt.NDArray[np.float64]

MODEL_IS_PUBLIC = (
    "the model that was evaluated is public, or protected by a guarantee of its own: this one is "
    "about the records it was evaluated on"
)
_PAID = "The budget is spent all the same, since only the noisy counts can tell."
_KNOW_HOW_MANY = (
    " If the number of records is public, pass it (n_records, or tacit evaluate --rows): too few "
    "are then refused before anything is spent."
)


@runtime_checkable
class AsksEncoded(Protocol):
    """A model of raw tables that returns the input of its estimator."""

    def encoded(self, X: Any, y: Any = None, unit: Any = None) -> tuple[EncodedTable, Any]:
        """Return the unread table of the estimator's input, and the estimator."""


def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    epsilon: float,
    delta: float = 1e-6,
    relation: Relation | str = "add_remove",
    unit: Any = None,
    classes: Any = None,
    label_range: tuple[float, float] | None = None,
    bins: Any = None,
    n_records: int | None = None,
    accountant: AnyAccountant | None = None,
    random_state: int | None = None,
) -> Evaluation:
    """Evaluate a model on records, within a budget.

    Releases one noisy histogram of scores by class, or five noisy sums for numbers; all metrics are
    computed from it without further cost.

    Parameters
    ----------
    model
        A fitted classifier or regressor: of tacit, a `PrivatePipeline`, or any of
        scikit-learn's. Its answer to a record must not depend on other records. The evaluation does
        not protect the model.
    X, y
        The records, as the model takes them, and their labels. A `TableModel` finds its target in
        the table.
    epsilon, delta, relation, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`. An epsilon of infinity adds no noise.
    unit
        The person of each record; one record per person then counts.
    classes
        The classes, by default the model's; no others are possible. Curves of two classes are told
        for the last one.
    label_range
        The least and greatest label of a regressor, by default the model's.
    bins
        The number of bins of scores, or their edges from 0 to 1 including 0.5; by default as many
        as the noise allows.
    n_records
        The approximate number of records, if public: it determines the bins, and an evaluation
        that would be mostly noise is refused before budget is spent.

    Raises
    ------
    TooFewRecords
        If the result would be mostly noise; the message says how many records would be enough. The
        budget is spent all the same, unless ``n_records`` was given.

    Notes
    -----
    **Guarantee**. A record that the model fails on, without a label, or with an undeclared
    class is ignored: no record raises an error, or changes how another one counts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from tacit.metrics import evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (30_000, 2))
    >>> y = X[:, 0] + rng.normal(0, 0.5, 30_000) > 0
    >>> model = LogisticRegression().fit(X[:100], y[:100])  # records that are published
    >>> found = evaluate(model, X, y, epsilon=1.0, delta=1e-6)
    >>> found["auc"].low <= found["auc"].value <= found["auc"].high
    True
    >>> found.privacy_.within(1.0, 1e-6)
    True
    """
    table, estimator = _opened(model, X, y, unit)
    _refuse_unfitted(estimator)
    budget = with_people(budget_of(epsilon, delta, relation, accountant), table.has_people)
    warn_if_weak(budget, n_records)
    plan = plan_for(
        estimator,
        budget,
        classes=classes,
        label_range=label_range or table.label_range,
        bins=bins,
        n_records=n_records,
    )
    if isinstance(plan.cells, NumberSums):
        refuse_no_numbers(table.labels)
    else:
        refuse_other_kinds(table.labels, np.asarray(plan.cells.classes))
    released = release_answers(
        plan,
        lambda: answered(estimator, *table.read(), relation=budget.relation),
        plan.sums,
        accountant=accountant,
        source=source_of(random_state),
        assumptions=(*table.assumptions, MODEL_IS_PUBLIC),
    )
    try:
        positive = positive_class(estimator) if classes is None else list(classes)[-1]
        return evaluation_of(plan, released.value, released.privacy, positive)
    except TooFewRecords as why:
        remedy = _KNOW_HOW_MANY if n_records is None else ""
        if not isinstance(plan.cells, NumberSums):
            remedy = f" Only records with a class of the model count.{remedy}"
        raise TooFewRecords(f"{why} {_PAID}{remedy}") from None


def _refuse_unfitted(estimator: Any) -> None:
    """Refuse an unfitted model, which would fail on every record after the charge."""
    if hasattr(estimator, "n_features_in_") or not hasattr(estimator, "predict"):
        return
    try:
        estimator.predict(np.zeros((1, 1)))  # a made-up row; other errors are ignored
    except NotFittedError:
        raise NotFittedError(
            f"the {type(estimator).__name__} is not fitted yet, and would fail on every record; "
            "evaluate what fit returned. Nothing was charged."
        ) from None
    except Exception:
        return


def plan_for(
    estimator: Any,
    budget: Budget,
    *,
    classes: Any = None,
    label_range: tuple[float, float] | None = None,
    bins: Any = None,
    n_records: int | None = None,
) -> EvaluationPlan:
    """Return the public plan of an evaluation of a fitted estimator.

    `tacit.metrics.evaluation_plan` plans without an estimator.
    """
    if not hasattr(estimator, "__sklearn_tags__"):
        raise TypeError(
            f"model must be a classifier or a regressor, got {type(estimator).__name__}; pass what "
            "fit returned, or tacit.load(path)."
        )
    if is_classifier(estimator):
        plan = evaluation_plan(
            budget,
            classes=estimator.classes_ if classes is None else classes,
            bins=bins,
            n_records=n_records,
            probabilities=hasattr(estimator, "predict_proba"),
        )
        check_order(plan, estimator)
        return plan
    if not is_regressor(estimator):
        raise TypeError(
            f"model must be a classifier or a regressor, got {type(estimator).__name__}; other "
            "models make no predictions to compare with labels."
        )
    known = getattr(estimator, "label_range", None)
    found = label_range or (None if isinstance(known, str) else known)
    return evaluation_plan(budget, label_range=found, n_records=n_records)


def check_order(plan: EvaluationPlan, estimator: Any) -> None:
    """Refuse a model whose classes are not in the order of the counts."""
    if not isinstance(plan.cells, TwoClassCells | SeveralClassCells):
        return
    ours, theirs = list(plan.cells.classes), list(estimator.classes_)
    if ours != theirs:
        raise ValueError(
            f"classes must be those of the model, {theirs!r}, sorted, and not {ours!r}; pass "
            "neither more nor fewer, and a model whose classes_ are sorted."
        )


def evaluation_of(
    plan: EvaluationPlan, sums: Array, privacy: Guarantee, positive: Any = None
) -> Evaluation:
    """Compute all metrics from the noisy sums of a plan.

    ``positive`` is the class that curves of two classes are told for, by default the second.
    """
    cells = plan.cells
    if isinstance(cells, TwoClassCells):
        found = two_class_evaluation(plan, cells, sums, privacy, positive)
    elif isinstance(cells, SeveralClassCells):
        found = several_class_evaluation(plan, cells, sums, privacy)
    else:
        assert isinstance(cells, NumberSums)
        found = number_evaluation(plan, cells, sums, privacy)
    return replace(found, sums=sums)


class _Raw:
    """Records for a model that takes them unchanged."""

    assumptions: tuple[str, ...] = ()
    label_range: tuple[float, float] | None = None

    def __init__(self, X: Any, y: Any, unit: Any) -> None:
        if y is None:
            raise ValueError("an evaluation needs the labels of the records; pass y.")
        # As objects: one word among numbers would convert all of them to words.
        self._rows = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
        self.labels, self._unit = y, unit
        refuse_label_types(y)
        if known_length(y) not in (None, self._rows.shape[0] if self._rows.shape else None):
            raise ValueError("X and y are of different lengths; pass one label for each row.")
        if unit is not None and n_identifiers(unit) != self._rows.shape[0]:
            raise ValueError("X and unit are of different lengths; pass one identifier a row.")

    @property
    def n_columns(self) -> int | None:
        shape = self._rows.shape
        return int(shape[1]) if len(shape) == 2 else None

    @property
    def has_people(self) -> bool:
        return self._unit is not None

    def read(self) -> tuple[Any, Any, People | None]:
        people = None if self._unit is None else people_of(self._unit)
        return self._rows, self.labels, people


class _Encoded:
    """Records encoded for an estimator of tacit."""

    labels = None  # they have the schema's own type once they are read

    def __init__(self, table: EncodedTable) -> None:
        self._table = table
        self.has_people, self.assumptions = has_people(table), table.facts.assumptions
        self.label_range = table.facts.label_range

    def read(self) -> tuple[Any, Any, People | None]:
        rows, labels = self._table.read()
        people = read_people(self._table) if has_people(self._table) else None
        return rows, labels, people


def _opened(model: Any, X: Any, y: Any, unit: Any) -> tuple[_Raw | _Encoded, Any]:
    """Return the unread records, and the model to evaluate."""
    if isinstance(X, EncodedTable):
        if y is not None or unit is not None:
            raise ValueError("an encoded table brings its labels and people; pass neither.")
        return _Encoded(X), model
    if isinstance(model, AsksEncoded):
        table, estimator = model.encoded(X, y, unit)
        return _Encoded(table), estimator
    raw = _Raw(X, y, unit)
    wanted = getattr(model, "n_features_in_", raw.n_columns)
    if raw.n_columns != wanted:  # the model would fail on every record after the charge
        raise ValueError(f"X has {raw.n_columns} columns, and the model was fitted to {wanted}.")
    return raw, model
