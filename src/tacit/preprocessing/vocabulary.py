"""Learn the frequent words of a column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit import checks
from tacit.column_values import alone
from tacit.engine import Plan, release_answers, without_noise
from tacit.estimators.parameters import (
    Assumed,
    assumptions_of,
    budget_of,
    column_names,
    source_of,
    warn_if_weak,
    with_people,
    with_table_facts,
)
from tacit.io.errors import TableError
from tacit.io.memory_tables import (
    chunks,
    n_rows_of,
    names_of,
    refuse_absent,
)
from tacit.io.values import Values, word_of
from tacit.preprocessing._base import facts_of_rows, facts_with
from tacit.privacy import AnyAccountant, Budget, Guarantee, Relation
from tacit.privacy.accounting.calibration import least_noise
from tacit.queries import Session, Slot
from tacit.queries.count import FrequentValues, value_counts
from tacit.records.privacy_unit import n_identifiers, people_of
from tacit.table_facts import EncodedTable, TableFacts

Name = str | int
Words = tuple[str, ...]
# Share of delta for words of a single record; the rest is for the noise on counts. Half is
# within a percent of the least threshold over a wide range of budgets.
_LEAK_SHARE = 0.5

_WHY = "which is to be counted; check the name, in the table's header too"


class PrivateVocabulary(TransformerMixin, BaseEstimator):
    """Learn the frequent words of columns, and make an indicator column of each.

    A word is kept if its count, with Gaussian noise, exceeds a threshold that a word of a single
    record almost never exceeds. At most ``max_values`` words are kept, the most frequent ones.
    Words are read as a schema's `Category` reads them, so that ``values_`` can complete one.

    Parameters
    ----------
    columns : dictionary of names and numbers
        The largest number of words to keep, by column; positions instead of names for an array.
    epsilon, delta, relation, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`; delta must be above 0.

    Attributes
    ----------
    values_ : dictionary of names and tuples of words
        The released words, sorted.
    privacy_ : Guarantee
        The guarantee of the fit.

    Notes
    -----
    **Guarantee**

    1. A word that only one record (one person) has appears with a probability below delta / 2.
    2. Rows have ``max_values`` numbers per column, 0 for those without a word, and a
       record is 1 in at most one of them: the row norm is known in advance.
    3. Any cell is a word or missing, and never an error; a missing value, or a word that is not
       kept, is a row of zeros.

    Examples
    --------
    >>> from tacit.preprocessing import PrivateVocabulary
    >>> table = {"town": ["Oslo"] * 500 + ["Bergen"] * 300 + ["Utsira"]}
    >>> step = PrivateVocabulary({"town": 3}, epsilon=1.0, delta=1e-6).fit(table)
    >>> step.values_
    {'town': ('Bergen', 'Oslo')}
    >>> step.transform({"town": ["Oslo", "Utsira"]})
    array([[0., 1., 0.],
           [0., 0., 0.]])
    """

    _released: ClassVar[tuple[str, ...]] = ("values_",)

    values_: dict[Name, Words]
    privacy_: Guarantee

    def __init__(
        self,
        columns: Mapping[Name, int],
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.columns = columns
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Declare that the step reads words."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def plan(self, n_features: int | None = None, n_records: int | None = None) -> Plan:
        """Plan a fit and its cost, without data."""
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        warn_if_weak(budget, n_records)
        return _vocabulary_plan(budget, len(_checked(self.columns)))

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Learn the words of a table, which is read after the plan is charged.

        Parameters
        ----------
        X
            A pandas or polars frame, a pyarrow Table, a dictionary of columns, a NumPy array with
            named fields, or one of objects with two dimensions.
        unit
            The person of each record; one record per person then counts (docs/people.md).
        """
        wanted = list(_checked(self.columns))
        with_table_facts(self, X)  # refuses a unit under REPLACE
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        table, names = _noted(X, wanted, unit)
        of_people = unit is not None or (isinstance(X, EncodedTable) and X.has_people)
        budget = with_people(budget, of_people)
        warn_if_weak(budget)
        plan = _vocabulary_plan(budget, len(wanted))
        source = source_of(self.random_state)

        released = release_answers(
            plan,
            lambda: table.words(unit, of_people),
            lambda session: self._words(session, plan),
            accountant=self.accountant,
            source=source,
            assumptions=assumptions_of(names),
        )
        self.values_, self.privacy_ = released.value, released.privacy
        return self

    def _words(self, session: Session, plan: Plan) -> dict[Name, Words]:
        """Ask for frequent words; return those with the largest counts, sorted."""
        counts: Mapping[tuple[int, str], float]
        if plan.budget.is_infinite:
            counts = session.without_noise(value_counts)
        else:
            z, leak = plan.settings["noise_multiplier"], plan.settings["leak"]
            noisy = session.ask(FrequentValues(len(self.columns), z, leak), "words")
            counts = noisy
        retained: dict[Name, Words] = {}
        for place, (name, most) in enumerate(self.columns.items()):
            each = {word: n for (column, word), n in counts.items() if column == place}
            retained[name] = tuple(sorted(sorted(each, key=lambda w: (-each[w], w))[:most]))
        return retained

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Return a row of indicators for each record."""
        check_is_fitted(self)
        table, _ = _noted(X, list(self.values_), None)
        parts = [np.zeros((0, sum(self.columns.values())))]
        for n, chunk in table.chunks():
            rows, start = np.zeros((n, parts[0].shape[1])), 0
            for name, words in self.values_.items():
                codes = chunk[str(name)].codes({word: place for place, word in enumerate(words)})
                (found,) = np.nonzero(codes >= 0)
                rows[found, start + codes[found]] = 1.0
                start += self.columns[name]
            parts.append(rows)
        return np.concatenate(parts)

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the public facts of the output rows; after a fit, with the words as names."""
        names = self.get_feature_names_out().tolist()
        norm = math.sqrt(len(_checked(self.columns)))
        return facts_with(facts, names, norm, [(0.0, 1.0)] * len(names))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the indicators, numbered if they have no word."""
        learned = getattr(self, "values_", {})
        names = []
        for name, most in _checked(self.columns).items():
            words = learned.get(name, ())
            names += [f"{name}={word}" for word in words]
            names += [f"{name}#{place}" for place in range(len(words) + 1, most + 1)]
        return np.array(names, dtype=object)


def _checked(columns: Any) -> Mapping[Name, int]:
    if not isinstance(columns, Mapping) or not columns:
        raise ValueError(
            f"columns must map each column to its largest number of words, got {columns!r}; "
            "pass a dictionary such as {'town': 20}."
        )
    for name, most in columns.items():
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise TypeError(f"a column is a name or a whole number, got {name!r}.")
        checks.count(f"columns[{name!r}]", most, most=10**6, remedy="pass how many words to keep.")
    return columns


def _vocabulary_plan(budget: Budget, n_columns: int) -> Plan:
    facts = facts_of_rows(n_columns, budget)
    if budget.is_infinite:
        return replace(without_noise(budget), facts=facts)
    if budget.is_pure:
        raise ValueError(
            "a vocabulary needs delta > 0: a word of a single record may appear with a small "
            "probability, which no pure guarantee allows. Pass delta, or declare the words "
            "in a schema."
        )
    leak = _LEAK_SHARE * budget.delta
    z = least_noise(lambda z: FrequentValues(n_columns, z, leak).event(facts), budget)
    statistic = FrequentValues(n_columns, z, leak)
    least = statistic.threshold(facts)
    return Plan(
        "vocabulary",
        statistic.event(facts),
        budget,
        "words whose noisy count exceeds a threshold, and no others",
        {
            "noise_multiplier": z,
            "leak": leak,
            "count_std": statistic.count_std(facts),
            "threshold": least,
        },
        notes=(f"a word must be that of some {math.ceil(least):,} records",),
        facts=facts,
        paid={"words": Slot(statistic.event(facts))},
    )


class _Words:
    """The word columns of an unread table, by the text of their names."""

    def __init__(self, table: Any, names: list[Name]) -> None:
        self._table, self._names = table, names

    def chunks(self) -> Iterator[tuple[int, Mapping[str, Values]]]:
        """Yield the columns in chunks, each with its number of records."""
        table = self._table
        if isinstance(table, EncodedTable):
            places, rows = _places(table, self._names), np.asarray(table.read()[0])
            table = {str(name): rows[:, place] for name, place in places.items()}
        yield from chunks(table, list(map(str, self._names)))

    def words(self, unit: Any, of_people: bool) -> list[list[str | None]]:
        """Return the words of each column, one per record or per person."""
        raw: dict[Name, list[Any]] = {name: [] for name in self._names}
        for _, chunk in self.chunks():
            for name in self._names:
                raw[name].extend(chunk[str(name)].raw())
        if of_people:
            owners = unit if unit is not None else self._table.identifiers()
            chosen = people_of(owners).one_each().tolist()
            raw = {name: [values[i] for i in chosen] for name, values in raw.items()}
        return [_read(values) for values in raw.values()]


def _read(values: Iterable[Any]) -> list[str | None]:
    """Return the word of each value; each distinct text is parsed once."""
    texts: dict[str | bytes, str | None] = {}
    words: list[str | None] = []
    for value in values:
        if type(value) not in (str, bytes):
            words.append(alone(word_of, value, None))
            continue
        if value not in texts:
            texts[value] = word_of(value)
        words.append(texts[value])
    return words


def _places(table: EncodedTable, names: list[Name]) -> dict[Name, int]:
    known = table.facts.names
    refuse_absent(known, [name for name in names if isinstance(name, str)], _WHY)
    return {name: known.index(name) if isinstance(name, str) else name for name in names}


def _noted(X: Any, names: list[Name], unit: Any) -> tuple[_Words, Assumed]:
    """Return the columns of a table, checked without reading a value."""
    if isinstance(X, EncodedTable):
        if unit is not None:
            raise ValueError("this table already has a unit column, or none; pass no unit=.")
        _places(X, names)
        return _Words(X, names), X.facts
    table, texts = _with_names(X, names), list(map(str, names))
    refuse_absent(names_of(table), texts, _WHY)
    for _, chunk in chunks(_without_records(table, texts), texts):
        for text in texts:
            chunk[text].raw()  # without records; refuses columns of unreadable types
    if unit is not None and n_identifiers(unit) != n_rows_of(table):
        raise TableError("the table and unit are of different lengths; pass one identifier a row.")
    return _Words(table, names), column_names(None)  # all columns read are declared


def _with_names(table: Any, names: list[Name]) -> Any:
    """Return a table with named columns; the columns of an array are named by their positions."""
    array = np.asarray(table, dtype=object) if isinstance(table, list) else table
    if not isinstance(array, np.ndarray) or array.dtype.names is not None:
        return table
    if array.ndim != 2 or not all(isinstance(n, int) and 0 <= n < array.shape[1] for n in names):
        raise TableError(
            "an array of words has two dimensions, and its columns are chosen by whole numbers "
            f"from 0 on, got {names}; or pass a table with named columns."
        )
    return {str(name): array[:, name] for name in names}  # type: ignore[index]


def _without_records(table: Any, names: list[str]) -> Any:
    """Return a table with the same columns and no records."""
    if hasattr(table, "num_rows"):  # a pyarrow table without records has no batch to read
        return {name: table.column(name)[:0] for name in names}
    if not isinstance(table, Mapping):
        return table[:0]
    if len({len(table[name]) for name in names}) > 1:
        raise TableError("the columns of the table have different lengths; make them the same.")
    return {name: table[name][:0] for name in names}
