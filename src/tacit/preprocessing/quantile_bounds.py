"""Clip columns to an interval between two private quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from tacit.engine import Plan
from tacit.location.median import column_plan
from tacit.noise import Grid
from tacit.preprocessing._base import (
    Job,
    Known,
    Places,
    PrivateStep,
    bounds_of,
    facts_of_rows,
    n_chosen,
    on_one_scale,
    places_of,
    rows_to_transform,
)
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.queries import Quantile, Selection, Session
from tacit.queries.quantile import GRID_POINTS
from tacit.records import UnreadTable
from tacit.table_facts import TableFacts

Array = npt.NDArray[np.float64]
Columns = Sequence[str | int] | None
Bounds = tuple[float, float] | Sequence[tuple[float, float]] | Mapping[str | int, Any] | None


class PrivateQuantileBounds(OneToOneFeatureMixin, PrivateStep):
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
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        columns: Columns = None,
        quantiles: tuple[float, float] = (0.01, 0.99),
        bounds: Bounds = None,
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

    def _plan(self, budget: Budget, n_features: int, n_records: int | None) -> Plan:
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

    def _job(self, resolved: Self, budget: Budget, known: Known, table: UnreadTable) -> Job[Array]:
        places = places_of(self.columns, known.names)
        limits = on_grids(bounds_of(self.bounds, known.ranges, known.names, places))
        levels = _levels(self.quantiles)
        plan = self._plan(budget, table.n_columns, None)

        def work(session: Session) -> Array:
            return present_quantiles(session, plan, places, limits, levels)

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

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the public facts of the output rows."""
        known = self._known(facts)
        return on_one_scale(facts, known, places_of(self.columns, known.names))


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
