"""Quantiles of columns, by the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from tacit.engine import Plan, release, without_noise
from tacit.erm import Objective, Problem, QuantileOnALine
from tacit.erm.exponential_mechanism import ranks_moved
from tacit.erm.inference import check_share
from tacit.erm.laws import Errors
from tacit.erm.losses import QuantileLoss
from tacit.erm.receipts import receipt
from tacit.erm.standard_errors import WITHIN
from tacit.linear_model._inference import WithSummary, publish_errors
from tacit.linear_model._tables import note_columns
from tacit.location._intervals import FINEST, lower_level
from tacit.location._points import Array, dense_rows
from tacit.noise import Bounded, Norm, Release, Source, laplace
from tacit.privacy import (
    AnyAccountant,
    Budget,
    Composed,
    Event,
    ExponentialMechanism,
    PureEpsilon,
    Relation,
    Repeated,
    calibrate,
)
from tacit.public_facts import (
    assumptions_of,
    budget_of,
    check_shape,
    source_of,
    warn_if_weak,
    with_people,
)
from tacit.records import Bounds, MemoryRecords, UnreadRecords
from tacit.records.unread import has_people

# Of the share for intervals: the number of records, and each of a column's two ends.
_COUNT_PART, _END_PART = 0.2, 0.4


class Median(WithSummary, BaseEstimator):
    """A quantile of every column, by the exponential mechanism sampled exactly.

    Pure: no delta is spent on one column. For several columns the budget is composed over them
    at the tightest route (with delta 0, epsilon is divided).

    Parameters
    ----------
    bounds : (low, high) or sequence of pairs
        A public interval for every column; records are clipped to it.
    quantile : float, default=0.5
        The level, between 0 and 1.
    inference : float, default=0.0
        The share of the budget (of epsilon) kept for intervals, which `summary` shows.
    epsilon, delta, relation, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`; delta is 0 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.location import Median
    >>> ages = np.random.default_rng(0).uniform(20, 60, (5000, 1))
    >>> bool(abs(Median(1.0, bounds=(0, 120)).fit(ages).location_[0] - 40) < 2)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        bounds: tuple[float, float] | Sequence[tuple[float, float]] = (-1.0, 1.0),
        quantile: float = 0.5,
        inference: float = 0.0,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.quantile = quantile
        self.inference = inference
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return what a fit would run and what it would cost, without data."""
        check_shape(n_features, n_records)
        budget = budget_of(self.epsilon, self.delta, self.relation)
        warn_if_weak(budget, n_records)
        return column_plan(budget, n_features, self.inference)

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Release the quantile of every column of ``X``.

        ``unit`` says whose each row is; one row of each person then counts (docs/people.md).
        """
        budget = budget_of(self.epsilon, self.delta, self.relation)
        loss = QuantileLoss(self.quantile)
        table, names = note_columns(self, X, unit=unit, sparse=False)
        budget = with_people(budget, has_people(table))
        if isinstance(table, UnreadRecords):
            table.read()  # refuses, before anything is charged: a quantile sorts single values
        limits = np.broadcast_to(np.asarray(self.bounds, dtype=np.float64), (table.n_columns, 2))
        if not (np.all(np.isfinite(limits)) and np.all(limits[:, 0] < limits[:, 1])):
            raise ValueError(f"bounds must be finite pairs low < high, got {self.bounds!r}.")
        warn_if_weak(budget)
        plan = column_plan(budget, table.n_columns, self.inference)
        source = source_of(self.random_state)

        def work() -> Release[tuple[Array, Array | None]]:
            rows = dense_rows(table)
            if budget.is_infinite:
                clipped, level = np.clip(rows, limits[:, 0], limits[:, 1]), self.quantile
                away = WITHIN * math.sqrt(level * (1 - level) / max(len(rows), 1))
                levels = np.clip([level, level - away, level + away], 0.0, 1.0)
                found = np.quantile(clipped, levels, axis=0)
                return Release((found[0], found[1:] if self.inference else None), plan.event)
            columns = _Columns(rows, limits, budget.relation, source)
            found = columns.quantiles(loss.level, plan.settings["column_epsilon"])
            ends = columns.ends(loss.level, plan) if self.inference else None
            return Release((found, ends), receipt(columns.spent, plan.event))

        released = release(
            plan,
            work,
            accountant=self.accountant,
            source=source,
            assumptions=assumptions_of(names),
        )
        (self.location_, ends), self.privacy_ = released.value, released.privacy
        known = None
        if ends is not None:
            # An interval, as its middle and what is 1.96 times to either side.
            known = Errors(ends.mean(axis=0), np.abs(ends[1] - ends[0]) / 2 / WITHIN)
        publish_errors(self, known, 0.0, None)
        return self


def column_plan(budget: Budget, n_columns: int, share: float = 0.0) -> Plan:
    """Return the plan of an exponential mechanism a column, and of two more for an interval."""
    check_share(share)
    if budget.is_infinite:
        return without_noise(budget)

    def family(noise: float) -> Event:
        each, relation = 1 / noise, budget.relation
        choice = ExponentialMechanism((1 - share) * each, relation)
        chosen = Repeated(choice, n_columns) if n_columns > 1 else choice
        if not share:
            return chosen
        end = ExponentialMechanism(_END_PART * share * each, relation)
        count = PureEpsilon(_COUNT_PART * share * each, relation)
        return Composed((chosen, count, Repeated(end, 2 * n_columns)))

    event = calibrate(family, budget)
    reason = "the exponential mechanism, sampled exactly, once for each column"
    names = ("column_epsilon", "count_epsilon", "end_epsilon")
    paid = [leaf.pure_epsilon() for leaf, _ in event.leaves()]
    if share:
        reason += ", and twice for its interval, with their number"
    return Plan("quantile", event, budget, reason, dict(zip(names, paid, strict=False)))


def column_quantile(
    column: Array, loss: QuantileLoss, low: float, high: float, each: Budget, source: Source | None
) -> Release[Array]:
    """Release one quantile of one column, inside a public interval."""
    bounds = Bounds(row_norm=max(abs(low), abs(high), 1e-300))
    mechanism = QuantileOnALine(float(low), float(high))
    plan = mechanism.plan(Problem(Objective(loss, bounds), 1), each)
    return mechanism.draw(plan, MemoryRecords(column[:, None], None, bounds), source)


@dataclass
class _Columns:
    """Columns within their limits, and what was spent on them."""

    rows: Array
    limits: Array
    relation: Relation
    source: Source | None
    spent: list[Event] = field(default_factory=list)

    def quantiles(self, level: float, epsilon: float) -> Array:
        """Release a quantile of each column."""
        budget, values = Budget(epsilon, 0.0, self.relation), []
        for column, (low, high) in zip(self.rows.T, self.limits, strict=True):
            chosen = column_quantile(column, QuantileLoss(level), low, high, budget, self.source)
            self.spent.append(chosen.event)
            values.append(float(np.ravel(chosen.value)[0]))
        return np.array(values)

    def ends(self, level: float, plan: Plan) -> Array:
        """Release where the intervals of a level's quantiles begin and end."""
        counted = laplace(
            Bounded(float(len(self.rows)), 1.0, Norm.L1, self.relation),
            plan.settings["count_epsilon"],
            self.source,
        )
        self.spent.append(counted.event)
        n, epsilon = max(float(counted.value), 1.0), plan.settings["end_epsilon"]

        def width(at: float) -> float:
            return 2 * ranks_moved(at, self.relation) / epsilon

        # Seen from above, the upper end is a lower one.
        below, above = lower_level(level, n, width), lower_level(1 - level, n, width)
        # What was planned is drawn in any case; where it says nothing, the ends are the limits.
        low = self.quantiles(FINEST if below is None else below, epsilon)
        high = self.quantiles(1 - (FINEST if above is None else above), epsilon)
        return np.array(
            [
                self.limits[:, 0] if below is None else low,
                self.limits[:, 1] if above is None else high,
            ]
        )
