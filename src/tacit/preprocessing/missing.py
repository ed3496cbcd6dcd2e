"""Fill missing values with a private median, and mark them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from tacit.engine import Plan
from tacit.location.median import column_plan
from tacit.preprocessing._base import (
    Job,
    Known,
    PrivateStep,
    bounds_of,
    facts_of_rows,
    facts_with,
    largest,
    n_chosen,
    places_of,
    rows_to_transform,
)
from tacit.preprocessing.quantile_bounds import (
    Bounds,
    Columns,
    on_grids,
    present_quantiles,
)
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.queries import Session
from tacit.records import UnreadTable
from tacit.table_facts import TableFacts

Array = npt.NDArray[np.float64]


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
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        columns: Columns = None,
        bounds: Bounds = None,
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

    def _plan(self, budget: Budget, n_features: int, n_records: int | None) -> Plan:
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

    def _job(self, resolved: Self, budget: Budget, known: Known, table: UnreadTable) -> Job[Array]:
        places = places_of(self.columns, known.names)
        limits = on_grids(bounds_of(self.bounds, known.ranges, known.names, places))
        plan = self._plan(budget, table.n_columns, None)

        def work(session: Session) -> Array:
            return present_quantiles(session, plan, places, limits, (0.5,))

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
        norm = math.hypot(known.norm_of(known.others(places)), own)
        ranges = known.with_ranges(places, limits)
        if ranges is not None:
            ranges += [(0.0, 1.0)] * len(places)
        names = [*known.names, *(f"{known.names[place]} is missing" for place in places.tolist())]
        return facts_with(facts, names, norm, ranges)

    def _limits(self, known: Known, places: npt.NDArray[np.int64]) -> Array:
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
