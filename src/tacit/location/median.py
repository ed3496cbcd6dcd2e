"""Quantiles of columns, by the exponential mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from tacit.engine import Plan, release, without_noise
from tacit.erm import Objective, Problem, QuantileOnALine
from tacit.erm.losses import QuantileLoss
from tacit.erm.plan import receipt
from tacit.linear_model._tables import note_columns
from tacit.location._points import Array, dense_rows
from tacit.noise import Release, Source
from tacit.privacy import (
    AnyAccountant,
    Budget,
    Event,
    ExponentialMechanism,
    Relation,
    Repeated,
    calibrate,
)
from tacit.public_facts import assumptions_of, budget_of, source_of, warn_if_weak, with_people
from tacit.records import Bounds, MemoryRecords, UnreadRecords
from tacit.records.unread import has_people


class Median(BaseEstimator):
    """A quantile of every column, by the exponential mechanism sampled exactly.

    Pure: no delta is spent on one column. For several columns the budget is composed over them
    at the tightest route (with delta 0, epsilon is divided).

    Parameters
    ----------
    bounds : (low, high) or sequence of pairs
        A public interval for every column; records are clipped to it.
    quantile : float, default=0.5
        The level, between 0 and 1.
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
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.quantile = quantile
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return what a fit would run and what it would cost, without data."""
        budget = budget_of(self.epsilon, self.delta, self.relation)
        warn_if_weak(budget, n_records)
        return _column_plan(budget, n_features)

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
        plan = _column_plan(budget, table.n_columns)
        source = source_of(self.random_state)

        def work() -> Release[Array]:
            rows = dense_rows(table)
            if budget.is_infinite:
                clipped = np.clip(rows, limits[:, 0], limits[:, 1])
                return Release(np.quantile(clipped, self.quantile, axis=0), plan.event)
            each = Budget(plan.settings["column_epsilon"], 0.0, budget.relation)
            releases = [
                _column_quantile(column, loss, low, high, each, source)
                for column, (low, high) in zip(rows.T, limits, strict=True)
            ]
            values = np.array([float(np.ravel(r.value)[0]) for r in releases])
            return Release(values, receipt([r.event for r in releases], plan.event))

        released = release(
            plan,
            work,
            accountant=self.accountant,
            source=source,
            assumptions=assumptions_of(names),
        )
        self.location_ = released.value
        self.privacy_ = released.privacy
        return self


def _column_plan(budget: Budget, n_columns: int) -> Plan:
    """Return the plan of one exponential mechanism for each column."""
    if budget.is_infinite:
        return without_noise(budget)

    def family(noise: float) -> Event:
        choice = ExponentialMechanism(1 / noise, budget.relation)
        return Repeated(choice, n_columns) if n_columns > 1 else choice

    event = calibrate(family, budget)
    leaf, _ = next(iter(event.leaves()))
    reason = "the exponential mechanism, sampled exactly, once for each column"
    return Plan("quantile", event, budget, reason, {"column_epsilon": leaf.pure_epsilon()})


def _column_quantile(
    column: Array, loss: QuantileLoss, low: float, high: float, each: Budget, source: Source | None
) -> Release[Array]:
    bounds = Bounds(row_norm=max(abs(low), abs(high), 1e-300))
    mechanism = QuantileOnALine(float(low), float(high))
    plan = mechanism.plan(Problem(Objective(loss, bounds), 1), each)
    return mechanism.solve(plan, MemoryRecords(column[:, None], None, bounds), source)
