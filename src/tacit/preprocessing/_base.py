"""Share code of private steps: chosen columns, parsed numbers, planning and release.

Parsing never raises an error about one value, because that would reveal one record.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.engine import Plan, release_answers
from tacit.estimators.parameters import (
    Assumed,
    assumptions_of,
    budget_of,
    check_shape,
    source_of,
    warn_if_weak,
    with_people,
    with_table_facts,
)
from tacit.estimators.tables import note_columns
from tacit.io.memory_tables import values_of
from tacit.privacy import AnyAccountant, Budget, Guarantee, Relation
from tacit.queries import Facts, Session
from tacit.records import Bounds, MemoryRecords
from tacit.records.lazy_table import (
    TableInMemory,
    UnreadRecords,
    UnreadTable,
    has_people,
    read_people,
)
from tacit.records.rows_and_labels import plain_array, refuse_types, shape_of
from tacit.table_facts import EncodedTable, TableFacts

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Ranges = Sequence[tuple[float, float]]
Columns = Sequence[str | int] | None
BoundsOfColumns = (
    tuple[float, float] | Sequence[tuple[float, float]] | Mapping[str | int, Any] | None
)


def places_of(columns: Any, names: Sequence[str]) -> Places:
    """Return the positions of the chosen columns: by name, by number from 0, or None for all.

    Examples
    --------
    >>> from tacit.preprocessing._base import places_of
    >>> places_of(["b"], ("a", "b")), places_of(None, ("a", "b"))
    (array([1]), array([0, 1]))
    """
    if columns is None:
        return np.arange(len(names))
    if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray):
        raise TypeError(f"columns must be a list of names or positions, got {columns!r}.")
    places = [_place_of(column, names) for column in columns]
    if not places or len(set(places)) < len(places):
        raise ValueError(f"columns must name at least one, and each once, got {columns!r}.")
    return np.array(places, dtype=np.int64)


def _place_of(column: Any, names: Sequence[str]) -> int:
    if isinstance(column, str):
        if list(names).count(column) == 1:
            return list(names).index(column)
        raise ValueError(
            f"the table has no column {column!r}, or several; check its spelling, "
            "or pass a table with named columns."
        )
    if isinstance(column, Integral) and not isinstance(column, bool):
        if 0 <= int(column) < len(names):
            return int(column)
        raise ValueError(f"there is no column {column}; they are counted from 0.")
    raise TypeError(f"a column is a name or a whole number, got {column!r}.")


def n_chosen(columns: Any, n_features: int) -> int:
    """Return the number of chosen columns."""
    return n_features if columns is None else len(columns)


_NO_BOUNDS = (
    "bounds of {what} are not declared, and the least and greatest value would reveal records; "
    "pass bounds=(low, high), a pair for each column or a dictionary of pairs, known without the "
    "data, or use a step before that knows the range of its columns, such as a SchemaEncoder."
)


def bounds_of(declared: Any, ranges: Ranges | None, names: Sequence[str], places: Places) -> Array:
    """Return the public interval of each chosen column: as declared, or from the table's facts.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing._base import bounds_of
    >>> bounds_of({"b": (0, 9)}, None, ("a", "b"), np.array([1]))
    array([[0., 9.]])
    """
    if isinstance(declared, Mapping):
        known = {_place_of(column, names): pair for column, pair in declared.items()}
        pairs: Any = [known.get(place) or _from(ranges, place, names) for place in places.tolist()]
    elif declared is None:
        pairs = [_from(ranges, place, names) for place in places.tolist()]
    else:
        pairs = declared
    try:
        limits = np.array(np.broadcast_to(np.asarray(pairs, np.float64), (len(places), 2)))
    except (ValueError, TypeError):
        limits = np.full((1, 2), np.nan)
    with np.errstate(over="ignore"):
        width = limits[:, 1] - limits[:, 0]
    if not (np.all(np.isfinite(limits)) and np.all(width > 0.0) and np.all(np.isfinite(width))):
        raise ValueError(f"bounds must be finite pairs low < high, one a column, got {declared!r}.")
    return limits


def _from(ranges: Ranges | None, place: int, names: Sequence[str]) -> tuple[float, float]:
    if ranges is None:
        raise ValueError(_NO_BOUNDS.format(what=f"column {names[place]!r}"))
    return ranges[place]


def largest(ranges: Ranges) -> float:
    """Return the largest norm of a row within the ranges."""
    return math.hypot(*(max(abs(low), abs(high)) for low, high in ranges))


def others(facts: TableFacts, places: Places) -> Places:
    """Return the positions of the columns that were not chosen."""
    return np.setdiff1d(np.arange(len(facts.names)), places)


def norm_of(facts: TableFacts, places: Places) -> float:
    """Bound the norm of some of a row's numbers; infinite if unknown."""
    norm = facts.row_norm
    if facts.ranges is not None:
        norm = min(norm, largest([facts.ranges[place] for place in places.tolist()]))
    return norm if len(places) else 0.0


def ranges_with(
    facts: TableFacts, places: Places, chosen: Ranges
) -> list[tuple[float, float]] | None:
    """Return all ranges with those of the chosen columns replaced; None if unknown."""
    if facts.ranges is None and len(others(facts, places)):
        return None
    ranges = list(facts.ranges or [(0.0, 0.0)] * len(facts.names))
    for place, pair in zip(places.tolist(), chosen, strict=True):
        ranges[place] = pair
    return ranges


def facts_with(
    facts: TableFacts | None,
    names: Sequence[str],
    row_norm: float,
    ranges: Ranges | None,
) -> TableFacts:
    """Return facts with other columns; labels and records are unchanged.

    Raises
    ------
    ValueError
        If no bound on the norm of a row is known.
    """
    if not math.isfinite(row_norm):
        raise ValueError(
            "the row norm after this step is unknown, because the columns that it "
            "leaves unchanged have no bound. Choose all columns, or pass facts of its input."
        )
    table_facts = TableFacts(tuple(names), row_norm) if facts is None else facts
    return replace(
        table_facts,
        names=tuple(names),
        row_norm=row_norm,
        ranges=None if ranges is None else tuple((float(low), float(high)) for low, high in ranges),
    )


T = TypeVar("T")


@dataclass(frozen=True)
class Job(Generic[T]):
    """A planned release: its plan, its queries and the attributes to set."""

    plan: Plan
    work: Callable[[Session], T]
    keep: Callable[[T], None]
    facts: tuple[Assumed, ...] = ()
    n_records: int | None = None  # if public


def facts_of_rows(n_features: int, budget: Budget) -> Facts:
    """Return the public facts of rows before a fit; each query clips the rows it reads."""
    return Facts(Bounds(), n_features, budget.relation)


class PrivateStep(TransformerMixin, BaseEstimator):
    """A transformer that learns from numbers under a budget; its output facts are public.

    Contract: `facts_out` and `plan` are functions of parameters and facts. A fit sets only the
    attributes in ``_released``. A value that is not a number is missing.
    """

    # Attributes that a fit sets besides ``privacy_``; the last is for named columns.
    _released: ClassVar[tuple[str, ...]] = ()

    epsilon: float | None
    delta: float
    relation: Relation | str
    accountant: AnyAccountant | None
    random_state: int | None
    privacy_: Guarantee

    def __sklearn_tags__(self) -> Any:
        """Declare that values may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Plan a fit and its cost, without data."""
        check_shape(n_features, n_records)
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        warn_if_weak(budget, n_records)
        return self._plan(budget, n_features)

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Learn from the rows of ``X``, which are read after the plan is charged.

        ``unit`` identifies the person of each row; one row per person then counts (docs/people.md).
        """
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        resolved = with_table_facts(self, X)
        table, names = note(self, X, unit)
        budget = with_people(budget, has_people(table))
        job: Job[Any] = self._job(resolved, budget, self._known(X), table)
        warn_if_weak(budget, job.n_records)
        source = source_of(self.random_state)
        bounds = Bounds() if job.plan.facts is None else job.plan.facts.bounds
        released = release_answers(
            job.plan,
            lambda: MemoryRecords(self._filled(read_rows(table)), None, bounds),
            job.work,
            accountant=self.accountant,
            source=source,
            assumptions=assumptions_of(names, *job.facts),
        )
        job.keep(released.value)
        self.privacy_ = released.privacy
        return self

    @abstractmethod
    def _plan(self, budget: Budget, n_features: int) -> Plan:
        """Return the plan of a fit with this many columns."""

    @abstractmethod
    def _job(
        self, resolved: Self, budget: Budget, known: TableFacts, table: UnreadTable
    ) -> Job[Any]:
        """Return the release of a fit; ``resolved`` has its parameters from the facts."""

    def _filled(self, rows: Array) -> Array:
        """Return the rows to query; NaN marks missing values."""
        return rows

    def _known(self, resolved: Any) -> TableFacts:
        """Return the public facts of a table, or the names alone of the fitted one."""
        facts = resolved.facts if isinstance(resolved, EncodedTable) else resolved
        if isinstance(facts, TableFacts):
            return facts
        if resolved is None:
            check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{place}" for place in range(self.n_features_in_)]
        return TableFacts(tuple(names), math.inf)


class OnOneScale(OneToOneFeatureMixin, PrivateStep):
    """A step that maps the chosen columns to [-1/2, 1/2], whatever it learns."""

    columns: Columns

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the public facts of the output rows.

        row norm = sqrt(k / 4 + (norm of the others)^2)
        """
        known = self._known(facts)
        places = places_of(self.columns, known.names)
        ranges = ranges_with(known, places, [(-0.5, 0.5)] * len(places))
        norm = math.hypot(math.sqrt(len(places)) / 2, norm_of(known, others(known, places)))
        return facts_with(known, known.names, norm, ranges)


def numbers_of(X: Any) -> Array:
    """Return a copy of a table as numbers, NaN for other values.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing._base import numbers_of
    >>> numbers_of(np.array([[1.0, np.inf], [3.0, 4.0]]))
    array([[ 1., nan],
           [ 3.,  4.]])
    """
    library = type(X).__module__.partition(".")[0]
    if library == "pandas":
        columns = [X.iloc[:, place] for place in range(X.shape[1])]
    elif library == "polars":
        columns = X.get_columns()
    elif library == "pyarrow":
        columns = list(X.columns)
    else:
        columns = list(_refuse_complex(plain_array(X)).T)
    rows = np.empty((shape_of(X)[0], len(columns)))
    for place, column in enumerate(columns):
        rows[:, place] = values_of(str(place), column).numbers()
    return rows


def _refuse_complex(X: Any) -> Any:
    if getattr(getattr(X, "dtype", None), "kind", None) == "c":
        raise ValueError("Complex data not supported: X holds complex numbers; pass real ones.")
    return X


class TableWithGaps(TableInMemory):
    """A table in memory; missing values are read as NaN."""

    def read(self) -> tuple[Array, None]:
        """Return the rows."""
        return numbers_of(self._rows), None


def note(step: Any, X: Any, unit: Any) -> tuple[UnreadTable, Assumed]:
    """Return an unread table and the assumptions about its columns."""
    table, names = note_columns(step, _refuse_complex(X), unit=unit, sparse=False)
    if isinstance(table, UnreadRecords):
        table.read()  # raises before anything is charged
    return (TableWithGaps(X, None, unit) if isinstance(table, TableInMemory) else table), names


def read_rows(table: UnreadTable) -> Array:
    """Read a table; one record per person if it has a unit."""
    rows, _ = table.read()
    if has_people(table):
        rows = rows[read_people(table).one_each()]
    numbers = np.array(rows, dtype=np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def rows_to_transform(step: Any, X: Any) -> Array:
    """Return rows with the fitted columns; errors quote no value."""
    if hasattr(X, "tocsr"):
        raise TypeError(
            "Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert "
            "to a dense numpy array."
        )
    shape_of(X)
    refuse_types(X)
    validate_data(step, X, reset=False, skip_check_array=True)
    return numbers_of(X)
