"""Resolve the public facts of an estimator, and their provenance.

A fact is public because somebody declared it, because a type implies it, or because the user passed
``"infer"``. A fact that was not declared adds a sentence to the guarantee.
"""

from __future__ import annotations

import contextlib
import copy
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from numbers import Integral, Real
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets

from tacit import checks
from tacit.column_values import alone, kind_of, type_of
from tacit.noise import Source, seeded_source
from tacit.privacy import Budget, Relation
from tacit.privacy.accountant import planning_budget
from tacit.privacy.budget import WeakPromiseWarning, weakness
from tacit.records.bounds import checked_row_norm
from tacit.records.rows_and_labels import as_labels, as_numbers, kind_of_array
from tacit.records.rows_and_labels import codes_of as codes_of
from tacit.table_facts import EncodedTable, TableFacts

T = TypeVar("T")
INFER = "infer"
UNDECLARED_ROW_NORM = 1.0
UNDECLARED_EPSILON = 1.0


class UndeclaredWarning(UserWarning):
    """A fact that strongly affects accuracy was left at its default."""


class NobodyCountedWarning(UserWarning):
    """The released number of records that counted cannot be told from 0."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside tacit in the call stack."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tacit."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextlib.contextmanager
def postponed(kind: type[Warning]) -> Iterator[list[str]]:
    """Collect the warnings of a kind, to be given after the result is kept.

    A warning may be an error, which would lose what is paid for.

    Examples
    --------
    >>> import warnings
    >>> from tacit.estimators.parameters import NobodyCountedWarning, postponed
    >>> with postponed(NobodyCountedWarning) as said:
    ...     warnings.warn("about 0 of your records", NobodyCountedWarning, stacklevel=1)
    >>> said
    ['about 0 of your records']
    """
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", kind)
        otherwise = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, kind):
                said.append(str(message))
            else:
                otherwise(message, category, *where, **more)

        warnings.showwarning = show
        yield said


def warn_if_weak(budget: Budget, n_records: int | None = None) -> None:
    """Warn, in one sentence, about a budget that protects little."""
    weak = weakness(budget.epsilon, budget.delta, n_records)
    if weak:
        warn(weak, WeakPromiseWarning)


class Provenance(Enum):
    """The provenance of a fact: the sentence that it adds to a guarantee, with ``{what}`` in it."""

    DECLARED = None
    # A type that cannot have been inferred silently from the data: bool, polars Enum.
    TYPED = ""
    CAME_WITH_DATA = "{what}, which came with the data, do not have to be protected"
    INFERRED = "{what} read off the data ('infer') does not have to be protected"


@dataclass(frozen=True)
class Fact(Generic[T]):
    """A public fact, its name in a sentence, and its provenance.

    Examples
    --------
    >>> from tacit.estimators.parameters import Fact, Provenance
    >>> Fact((0, 9), "the range of the labels", Provenance.INFERRED).assumptions
    ("the range of the labels read off the data ('infer') does not have to be protected",)
    """

    value: T
    what: str
    provenance: Provenance = Provenance.DECLARED

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The sentences that a guarantee must repeat, if any."""
        sentence = self.provenance.value
        return (sentence.format(what=self.what),) if sentence else ()


@dataclass(frozen=True)
class ClassesFact(Fact[npt.NDArray[Any]]):
    """The public list of classes: ``value`` is sorted, ``declared`` keeps the declared order.

    The last declared class is the one whose odds are told (`positive_class`).
    """

    declared: npt.NDArray[Any] = field(kw_only=True)


class Assumed(Protocol):
    """One or several facts on which a guarantee may rest."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The sentences that a guarantee must repeat, if any."""


def with_table_facts(estimator: T, table: EncodedTable | TableFacts | Any) -> T:
    """Return an estimator whose parameters are the public facts of a table, if it has any.

    The facts of a table override the estimator's parameters. Without such facts the parameters
    apply, and the estimator itself is returned.

    Examples
    --------
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.estimators.parameters import with_table_facts
    >>> from tacit.table_facts import TableFacts
    >>> model = LogisticRegression(row_norm=9.0)
    >>> with_table_facts(model, TableFacts(("age",), row_norm=0.5)).row_norm, model.row_norm
    (0.5, 9.0)
    """
    facts = table.facts if isinstance(table, EncodedTable) else table
    if not isinstance(facts, TableFacts):
        return estimator
    resolved: Any = copy.copy(estimator)
    if hasattr(resolved, "tell"):
        resolved.tell(facts)
        return resolved  # type: ignore[no-any-return]
    own = resolved.get_params(deep=False)
    if facts.of_people:
        if "relation" not in own:
            raise ValueError(
                f"{type(estimator).__name__} protects one record, but the table has a unit column, "
                "so that a person may have several records; take its unit out of the schema."
            )
        resolved.set_params(relation=_of_people(own["relation"]))
    resolved.set_params(**{name: v for name, v in facts.parameters().items() if name in own})
    return resolved  # type: ignore[no-any-return]


def assumptions_of(*facts: Assumed) -> tuple[str, ...]:
    """Return the sentences that the guarantee of a release relying on ``facts`` must repeat."""
    return tuple(sentence for fact in facts for sentence in fact.assumptions)


def column_names(names: Sequence[str] | None) -> Fact[Sequence[str] | None]:
    """Return the names of a table's columns, which nobody declared."""
    provenance = Provenance.DECLARED if names is None else Provenance.CAME_WITH_DATA
    return Fact(names, "the names of the columns", provenance)


def epsilon_of(declared: float | None) -> float:
    """Return the epsilon of an estimator that is used alone; None is the default.

    In a pipeline None is what it must be: the pipeline has the budget.

    Examples
    --------
    >>> from tacit.estimators.parameters import epsilon_of
    >>> epsilon_of(None), epsilon_of(0.5)
    (1.0, 0.5)
    """
    return UNDECLARED_EPSILON if declared is None else declared


def budget_of(
    epsilon: float | None, delta: float, relation: Relation | str, accountant: object = None
) -> Budget:
    """Return the budget of an estimator's parameters; an accountant may prescribe its own."""
    if isinstance(relation, str):
        try:
            relation = Relation(relation)
        except ValueError:
            raise ValueError(
                "relation must be 'add_remove', 'replace' or 'add_remove_person', got "
                f"{relation!r}."
            ) from None
    return planning_budget(Budget(epsilon_of(epsilon), delta, relation), accountant)


def with_people(budget: Budget, has_people: bool) -> Budget:
    """Return the budget for records that are, or are not, grouped by person.

    Examples
    --------
    >>> from tacit.privacy import Budget
    >>> from tacit.estimators.parameters import with_people
    >>> with_people(Budget(1.0), has_people=True).relation
    <Relation.ADD_REMOVE_PERSON: 'add_remove_person'>
    """
    if has_people == budget.relation.by_person:
        return budget
    if not has_people:
        raise ValueError(
            "relation is 'add_remove_person', but the records have no unit; pass "
            "unit=..., one identifier for each record, or declare a column of kind 'unit'."
        )
    return replace(budget, relation=_of_people(budget.relation))


def _of_people(relation: Relation | str) -> Relation:
    """Return the relation for records that are grouped by person."""
    if relation in (Relation.REPLACE, Relation.REPLACE.value):
        raise ValueError(
            "relation is 'replace', for which the number of records is public, but with unit a "
            "person brings any number of them; leave relation out, or pass 'add_remove_person'."
        )
    return Relation.ADD_REMOVE_PERSON


def source_of(random_state: int | None) -> Source | None:
    """Return a seeded source for tests, or None for a secure one."""
    if random_state is None:
        return None
    if isinstance(random_state, np.random.RandomState):
        return seeded_source(int(random_state.randint(2**31)))
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        raise ValueError(
            f"random_state must be a whole number or None, got {random_state!r}; None draws secure "
            "noise, and a number voids the guarantee."
        )
    return seeded_source(int(random_state))


def classes_of(declared: Any, labels: Any) -> ClassesFact:
    """Return the classes: declared, typed (bool, Enum, pandas Categorical), or inferred.

    Labels of a type that no declared class has are refused; no label is read.
    """
    what = "the list of classes"
    if is_inferred(declared):
        labels = as_labels(labels)
        if labels.dtype.kind != "O":
            assert_all_finite(labels, input_name="y")
        found = _of_one_kind(labels)
        if found is None:
            raise ValueError(
                "labels are of several types, or some are missing; declare classes=[...] of one "
                "type, and records of other labels, missing ones too, do not count."
            )
        check_classification_targets(found)
        return _in_order(np.unique(found), what, Provenance.INFERRED)
    if declared is not None:
        if isinstance(declared, str | bytes) or not hasattr(declared, "__len__"):
            raise TypeError(f"classes must be a list of labels, got {declared!r}; pass [...].")
        named = _of_one_kind(as_labels(declared))
        if named is None or np.unique(named).size != len(declared):
            raise ValueError(f"classes must be distinct labels of one type, got {declared!r}.")
        refuse_other_kinds(labels, named)
        return _in_order(named, what)
    return _typed_classes(labels)


def _in_order(
    declared: npt.NDArray[Any], what: str, provenance: Provenance = Provenance.DECLARED
) -> ClassesFact:
    """Return the fact of classes in their declared order."""
    return ClassesFact(np.unique(declared), what, provenance, declared=declared)


# Set if the classes were declared in another order than the sorted one of ``classes_``.
DECLARED_CLASSES = "declared_classes_"


def publish_classes(model: Any, classes: ClassesFact) -> None:
    """Set ``classes_``, sorted, and the declared order if it is another one."""
    model.classes_ = classes.value
    vars(model).pop(DECLARED_CLASSES, None)  # left from an earlier fit
    if not np.array_equal(classes.declared, classes.value):
        setattr(model, DECLARED_CLASSES, classes.declared)


def positive_class(model: Any) -> Any:
    """Return the class that a fitted classifier's results are told for: the last one declared.

    Odds ratios, shown coefficients and curves are about this class. ``coef_`` and the columns of
    ``predict_proba`` follow scikit-learn: they go by ``classes_``, which is sorted. None without
    classes.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.estimators.parameters import positive_class
    >>> from tacit.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> model = LogisticRegression(1.0, 1e-6, row_norm=2.0, classes=["nein", "ja"])
    >>> model.fit(X, np.where(X[:, 0] > 0, "ja", "nein")).classes_.tolist()
    ['ja', 'nein']
    >>> positive_class(model)
    'ja'
    """
    classes = getattr(model, DECLARED_CLASSES, getattr(model, "classes_", None))
    return None if classes is None else np.asarray(classes).tolist()[-1]


def positive_sign(model: Any) -> float:
    """Return -1 if ``coef_`` speaks against `positive_class`, the first of two classes; else 1."""
    classes: Any = getattr(model, "classes_", ())
    return -1.0 if len(classes) == 2 and positive_class(model) == classes[0] else 1.0


def _of_one_kind(labels: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return labels as numbers, as text or as bytes; None if they have several of these types.

    NumPy would convert all of them to text because of one.
    """
    if labels.dtype.kind != "O":
        return labels
    for kinds in (str, bytes, (bool, np.bool_), (Real, np.bool_)):
        if all(isinstance(value, kinds) for value in labels.tolist()):
            return alone(np.array, labels.tolist(), None)
    return None


def _typed_classes(labels: Any) -> ClassesFact:
    """Return the classes that the type of the labels defines, without reading a label."""
    dtype: Any = getattr(labels, "dtype", None)
    if str(dtype) in ("bool", "boolean", "bool[pyarrow]", "Boolean"):
        return _in_order(np.array([False, True]), "the list of classes", Provenance.TYPED)
    library = type(dtype).__module__.partition(".")[0]
    if library == "pandas" and hasattr(dtype, "categories"):
        # "astype('category')" infers the categories from the labels, and the type does not show it.
        what = "the categories of the labels' type"
        return _in_order(np.asarray(dtype.categories), what, Provenance.CAME_WITH_DATA)
    if library == "polars" and type(dtype).__name__ == "Enum":
        categories = np.asarray(dtype.categories)
        return _in_order(categories, "the categories of the labels", Provenance.TYPED)
    if library == "polars" and str(dtype).startswith("Categorical"):
        raise ValueError(
            "classes is not declared, and the labels are a polars Categorical, whose categories "
            "are a pool of whatever strings this process has met, in other columns too. Pass "
            "classes=[...], or cast the labels to polars Enum([...])."
        )
    raise ValueError(
        "classes is not declared, and reading the list of classes off the data would leak it: a "
        "class that occurs once tells that its record is there. Pass classes=[...], or labels of "
        "type bool or polars Enum, or classes='infer' to accept the leak."
    )


def is_inferred(declared: Any) -> bool:
    """Return whether the user passed ``"infer"``."""
    return isinstance(declared, str) and declared == INFER


def refuse_other_kinds(labels: Any, classes: npt.NDArray[Any]) -> None:
    """Refuse labels whose type excludes all classes; no label is read.

    Labels of an undetermined type, such as a list, are compared one by one when they are read.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.estimators.parameters import refuse_other_kinds
    >>> refuse_other_kinds(np.array([0, 1]), np.array(["no", "yes"]))
    Traceback (most recent call last):
    ValueError: y is of type int64, which is numbers, and classes are text: ...
    """
    theirs, ours = kind_of(labels), kind_of_array(classes)
    kind = "numbers" if theirs == "booleans" else theirs
    if kind in (None, ours):
        return
    # Do not show a text type: its width reveals the length of the longest label.
    shown = type_of(labels) if theirs in ("numbers", "booleans") else kind
    said = f"type {shown}, which is {theirs}" if shown != kind else f"a type of {kind}"
    raise ValueError(
        f"y is of {said}, and classes are {ours}: no record would count; declare classes=[...] of "
        "the labels' own type, or convert y. Nothing was read or charged."
    )


def label_range_of(declared: Any, labels: Any = None) -> Fact[tuple[float, float]]:
    """Return the range to which labels are clipped."""
    what = "the range of the labels"
    if is_inferred(declared):
        numbers = as_numbers(labels)
        low, high = float(np.min(numbers)), float(np.max(numbers))
        if low == high:
            low, high = low - 0.5, high + 0.5
        return Fact((low, high), what, Provenance.INFERRED)
    if declared is None:
        raise ValueError(
            "label_range is not declared, and the least and greatest label are themselves "
            "records. Pass label_range=(low, high), or 'infer' to accept the leak."
        )
    refuse_no_numbers(labels)
    try:
        low, high = (float(end) for end in declared)
    except (TypeError, ValueError):
        raise ValueError(
            f"label_range must be two numbers, got {declared!r}; pass the least and greatest label "
            "that may count, such as (0, 100)."
        ) from None
    return Fact((low, high), what)


def refuse_no_numbers(labels: Any) -> None:
    """Refuse labels whose type excludes numbers; no label is read.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.estimators.parameters import refuse_no_numbers
    >>> refuse_no_numbers(np.array(["no", "yes"]))
    Traceback (most recent call last):
    ValueError: y holds something else than numbers, by its type (text): could not convert ...
    """
    kind = kind_of(labels)
    if kind not in (None, "numbers", "booleans"):
        raise ValueError(
            f"y holds something else than numbers, by its type ({kind}): could not convert it to "
            "float. Pass numbers, or use a classifier. Nothing was read or charged."
        )


def check_shape(n_features: object, n_records: object = None) -> None:
    """Refuse an invalid number of columns, or of expected rows, before planning."""
    checks.count("n_features", n_features, remedy="pass the number of columns.")
    if n_records is not None:
        remedy = "pass about how many rows there are, or leave it out."
        checks.count("n_records", n_records, least=0, remedy=remedy)


def n_records_of(
    declared: int | str | None, n_rows: int | None, relation: Relation
) -> Fact[int | None]:
    """Return the public number of records, or None if it is private."""
    what = "the number of records"
    if isinstance(declared, str):
        if declared != INFER:
            raise ValueError(f"n_records must be a number, None or 'infer', got {declared!r}.")
        if n_rows is None:
            raise ValueError(
                "n_records is 'infer', but the number of records is not known before they "
                "are read; pass the number, n_records=..., to plan or to fit."
            )
        return Fact(n_rows, what, Provenance.INFERRED)
    if declared is not None and not declared >= 1:
        raise ValueError(f"n_records must be at least 1, got {declared!r}.")
    if declared is None and relation is Relation.REPLACE:
        raise ValueError(
            "under REPLACE the number of records is public, but n_records is not declared; pass "
            "n_records=..., or 'infer' to publish the number of rows."
        )
    return Fact(declared, what)


_LONGER = "longer rows are scaled down to it, and noise is proportional to it"


def row_norm_of(declared: Any, meaning: str = _LONGER) -> float:
    """Return the norm to which rows are clipped; warn if it is not declared."""
    if declared is None:
        warn(
            f"row_norm is not declared, so it is {UNDECLARED_ROW_NORM}: {meaning}. Pass "
            "row_norm=..., a size known without looking at the rows; a TableModel takes it from "
            "its schema.",
            UndeclaredWarning,
        )
        return UNDECLARED_ROW_NORM
    if is_inferred(declared):
        raise ValueError(
            "row_norm='infer' is refused: the longest row is itself a record, and the noise would "
            "tell its length. Pass a number, row_norm=..., that is known without looking at rows."
        )
    return checked_row_norm(declared)


def center_of(declared: Any, n_columns: int) -> npt.NDArray[np.float64]:
    """Return the origin from which rows are measured: a public guess, 0 by default."""
    try:
        guess = np.asarray(0.0 if declared is None else declared, dtype=np.float64)
    except (TypeError, ValueError):
        guess = np.array(np.nan)
    if not np.all(np.isfinite(guess)):
        raise ValueError(f"center must be finite, got {declared!r}; pass a public guess.")
    if guess.shape not in ((), (1,), (n_columns,)):
        raise ValueError(
            f"center must be one number, or {n_columns} of them for the columns, got {declared!r}; "
            "pass a public guess."
        )
    return np.broadcast_to(guess, (n_columns,))
