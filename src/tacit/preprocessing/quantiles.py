"""Learn private quantiles of columns: to clip and scale them, or to fill missing values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from tacit.engine import Plan
from tacit.location.estimators import column_plan
from tacit.noise import Grid
from tacit.preprocessing._base import (
    BoundsOfColumns,
    Columns,
    Job,
    OnOneScale,
    Places,
    PrivateStep,
    bounds_of,
    facts_of_rows,
    facts_with,
    largest,
    n_chosen,
    norm_of,
    others,
    places_of,
    ranges_with,
    rows_to_transform,
)
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.queries import Quantile, Selection, Session
from tacit.queries.selection import GRID_POINTS
from tacit.records.lazy_table import UnreadTable
from tacit.table_facts import TableFacts

Array = npt.NDArray[np.float64]


class PrivateQuantileBounds(OnOneScale):
    """Clip columns to the interval between two private quantiles, and map them to [-1/2, 1/2].

    The exponential mechanism, sampled exactly, chooses both quantiles inside public outer
    bounds. The bounds may be wide: the error is in ranks, and grows only with the logarithm of
    their width. Each choice is pure; with a delta, all choices are composed at the tightest route.

    Parameters
    ----------
    epsilon, delta, relation, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`; delta is 0 by default.
    columns : list of names or places, or None
        The columns to scale; by default all. Others are unchanged.
    quantiles : (low, high), default=(0.01, 0.99)
        The levels of the quantiles.
    bounds : (low, high), a pair for each column, a dictionary of pairs, or None
        The public outer bounds; None takes those of the table's facts.

    Attributes
    ----------
    low_, high_ : array
        The interval of each chosen column, released.
    columns_ : array
        The positions of the chosen columns.
    privacy_ : Guarantee
        The guarantee of the fit.

    Notes
    -----
    **Guarantee**

    1. Released intervals lie inside the outer bounds and are not empty: quantiles out of order
       are exchanged, and equal ones moved apart by one of the 2^20 steps of the outer bounds.
    2. Chosen columns lie in [-1/2, 1/2], whatever was learned: the row norm is known in advance.
    3. The fit ignores missing values; they become 0, the middle.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import PrivateQuantileBounds
    >>> income = np.random.default_rng(0).lognormal(10, 1, (20_000, 1))
    >>> step = PrivateQuantileBounds(1.0, bounds=(0, 1e7)).fit(income)
    >>> bool(1e3 < step.low_[0] < 5e3), bool(1e5 < step.high_[0] < 1e6)
    (True, True)
    >>> bool(abs(step.transform(income)).max() <= 0.5)
    True
    """

    _released: ClassVar[tuple[str, ...]] = (
        "low_",
        "high_",
        "columns_",
        "n_features_in_",
        "feature_names_in_",
    )

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        columns: Columns = None,
        quantiles: tuple[float, float] = (0.01, 0.99),
        bounds: BoundsOfColumns = None,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.quantiles = quantiles
        self.bounds = bounds
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def _plan(self, budget: Budget, n_features: int) -> Plan:
        n_columns = n_chosen(self.columns, n_features)
        facts = facts_of_rows(n_features, budget)
        plan = replace(column_plan(budget, 2 * n_columns), facts=facts)
        if budget.is_infinite:
            return plan
        low, high = _levels(self.quantiles)
        return replace(
            plan,
            name="quantile_bounds",
            reason="two quantiles a column by the exponential mechanism, inside public bounds",
            notes=(f"the {low:g} and {high:g} quantiles of {n_columns} columns",),
        )

    def _job(
        self, resolved: Self, budget: Budget, known: TableFacts, table: UnreadTable
    ) -> Job[Array]:
        places = places_of(self.columns, known.names)
        limits = on_grids(bounds_of(self.bounds, known.ranges, known.names, places))
        levels = _levels(self.quantiles)
        plan = self._plan(budget, table.n_columns)

        def keep(found: Array) -> None:
            # (k, 2): widened by a public rule, so that no interval is empty
            self.low_, self.high_ = _separated(np.sort(found, axis=1), limits).T.copy()
            self.columns_ = places

        return Job(
            plan, lambda session: present_quantiles(session, plan, places, limits, levels), keep
        )

    def transform(self, X: Any) -> Array:
        """Return the rows with the chosen columns clipped and mapped to [-1/2, 1/2]."""
        check_is_fitted(self)
        rows = rows_to_transform(self, X)
        chosen = np.clip(rows[:, self.columns_], self.low_, self.high_)
        scaled = np.clip((chosen - self.low_) / (self.high_ - self.low_) - 0.5, -0.5, 0.5)
        rows[:, self.columns_] = np.where(np.isnan(scaled), 0.0, scaled)
        return rows


def present_quantiles(
    session: Session, plan: Plan, places: Places, limits: Array, levels: Sequence[float]
) -> Array:
    """Ask for quantiles of the present values, (columns, levels), inside public limits."""
    columns = list(zip(places.tolist(), limits, strict=True))
    if plan.budget.is_infinite:
        return session.without_noise(
            lambda records: np.array([_exact(records.rows[:, j], at, levels) for j, at in columns])
        )
    epsilon, values = plan.settings["column_epsilon"], []
    for place, (low, high) in columns:
        for level in levels:
            quantile = Quantile(level, float(low), float(high), place, counts_missing=False)
            values.append(session.ask(Selection(quantile, epsilon), "quantiles"))
    found = np.array(values).reshape(len(columns), -1)
    return np.asarray(np.clip(found, limits[:, :1], limits[:, 1:]))


def _exact(column: Array, pair: Array, levels: Sequence[float]) -> Array:
    """Return quantiles of a column without noise; the middle if no value is present."""
    present = column[~np.isnan(column)]
    present = present if present.size else pair.mean(keepdims=True)
    return np.asarray(np.quantile(np.clip(present, *pair), levels))


def on_grids(limits: Array) -> Array:
    """Return intervals wide enough for a grid of doubles; refuse others before a charge."""
    for low, high in limits.tolist():
        Grid(low, high, GRID_POINTS)
    return limits


def _levels(quantiles: Any) -> tuple[float, float]:
    try:
        low, high = (float(level) for level in quantiles)
    except (TypeError, ValueError):
        low = high = 0.0
    if not 0.0 < low < high < 1.0:
        raise ValueError(
            f"quantiles must be two levels in order, between 0 and 1, got {quantiles!r}; (0.01, "
            "0.99) clips one record in fifty."
        )
    return low, high


def _separated(found: Array, limits: Array) -> Array:
    """Widen empty intervals by one step of their outer bounds."""
    step = (limits[:, 1] - limits[:, 0]) / GRID_POINTS
    middle = np.clip(found.mean(axis=1), limits[:, 0] + step / 2, limits[:, 1] - step / 2)
    wider = np.stack([middle - step / 2, middle + step / 2], axis=1)
    separated = np.where((found[:, 1] - found[:, 0] < step)[:, None], wider, found)
    # If the outer bounds are so far from 0 that rounding loses a step, use the outer bounds.
    return np.where((separated[:, 0] < separated[:, 1])[:, None], separated, limits)


class PrivateMissing(PrivateStep):
    """Fill missing values with the median of the present ones, and mark them in a new column.

    The exponential mechanism, sampled exactly, chooses the median of a column's present values
    inside public bounds. Each choice is pure; with a delta, all columns are composed at the
    tightest route. Use it as the first step: other steps replace a missing value by the middle.

    Parameters
    ----------
    epsilon, delta, relation, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`; delta is 0 by default.
    columns : list of names or places, or None
        The columns to fill; by default all. Others are unchanged.
    bounds : (low, high), a pair for each column, a dictionary of pairs, or None
        Public bounds to which values are clipped; None takes those of the table's facts.

    Attributes
    ----------
    fill_ : array
        The median of each chosen column, released.
    bounds_ : array of shape (n_columns, 2)
        The public bounds of each.
    columns_ : array
        The positions of the chosen columns.
    privacy_ : Guarantee
        The guarantee of the fit.

    Notes
    -----
    **Guarantee**

    1. Which values are missing is as private as the values: a median is of the present values,
       and their number is not released.
    2. An output row is the row, filled and clipped, and for each chosen column a number that is 1
       if the value was missing: its norm is bounded in advance.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import PrivateMissing
    >>> ages = np.random.default_rng(0).uniform(20, 60, (5000, 1))
    >>> ages[::3] = np.nan
    >>> step = PrivateMissing(1.0, bounds=(0, 120)).fit(ages)
    >>> bool(abs(step.fill_[0] - 40) < 3)
    True
    >>> step.transform([[30.0]])
    array([[30.,  0.]])
    """

    _released: ClassVar[tuple[str, ...]] = (
        "fill_",
        "bounds_",
        "columns_",
        "n_features_in_",
        "feature_names_in_",
    )

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        columns: Columns = None,
        bounds: BoundsOfColumns = None,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.bounds = bounds
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def _plan(self, budget: Budget, n_features: int) -> Plan:
        n_columns = n_chosen(self.columns, n_features)
        facts = facts_of_rows(n_features, budget)
        plan = replace(column_plan(budget, n_columns), facts=facts)
        if budget.is_infinite:
            return plan
        return replace(
            plan,
            name="missing",
            reason=f"the median of what is there in {n_columns} columns, by the exponential "
            "mechanism, inside public bounds",
        )

    def _job(
        self, resolved: Self, budget: Budget, known: TableFacts, table: UnreadTable
    ) -> Job[Array]:
        places = places_of(self.columns, known.names)
        limits = on_grids(bounds_of(self.bounds, known.ranges, known.names, places))
        plan = self._plan(budget, table.n_columns)

        def keep(found: Array) -> None:
            self.fill_, self.bounds_, self.columns_ = found[:, 0].copy(), limits, places

        return Job(
            plan, lambda session: present_quantiles(session, plan, places, limits, (0.5,)), keep
        )

    def transform(self, X: Any) -> Array:
        """Return the filled rows, followed by the marks of missing values."""
        check_is_fitted(self)
        rows = rows_to_transform(self, X)
        chosen = rows[:, self.columns_]
        missing = np.isnan(chosen)
        inside = np.clip(chosen, self.bounds_[:, 0], self.bounds_[:, 1])
        rows[:, self.columns_] = np.where(missing, self.fill_, inside)
        return np.hstack([rows, missing.astype(np.float64)])

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the public facts of the output rows.

        A value and its mark have a norm of at most sqrt(m^2 + 1), with m the larger absolute bound
        of the column. With the row norm of the input, the output norm is at most the lesser of

            sqrt(sum of m^2 over all columns + k),   sqrt(row_norm^2 + sum of m^2 over k + k)
        """
        known = self._known(facts)
        places = places_of(self.columns, known.names)
        limits = [(low, high) for low, high in self._limits(known, places).tolist()]
        own = math.hypot(largest(limits), math.sqrt(len(places)))
        norm = math.hypot(norm_of(known, others(known, places)), own)
        ranges = ranges_with(known, places, limits)
        if ranges is not None:
            ranges += [(0.0, 1.0)] * len(places)
        names = [*known.names, *(f"{known.names[place]} is missing" for place in places.tolist())]
        return facts_with(known, names, norm, ranges)

    def _limits(self, known: TableFacts, places: Places) -> Array:
        if self.bounds is None and known.ranges is None and hasattr(self, "bounds_"):
            return self.bounds_
        return bounds_of(self.bounds, known.ranges, known.names, places)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the columns, followed by those of the marks."""
        check_is_fitted(self)
        known = self._known(None)
        names = list(known.names if input_features is None else input_features)
        marks = [f"{names[place]} is missing" for place in self.columns_.tolist()]
        return np.array([*names, *marks], dtype=object)
