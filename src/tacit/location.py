"""Where the middle of the records is: mean, quantiles, geometric median."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from tacit.engine import Plan, release, without_noise
from tacit.erm import (
    L2Ball,
    Mechanism,
    Objective,
    Problem,
    QuantileOnALine,
    choose_plan,
    minimize_unread,
)
from tacit.erm import Plan as ErmPlan
from tacit.erm.losses import DistanceLoss, QuantileLoss
from tacit.erm.plan import receipt
from tacit.erm.point_sum import point_sum
from tacit.linear_model._linear_model import when_paid_for
from tacit.linear_model._tables import note_columns
from tacit.noise import Bounded, Norm, Release, Source, bounded_sum, gaussian, sphere
from tacit.privacy import (
    AnyAccountant,
    Budget,
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    PureEpsilon,
    Relation,
    Repeated,
    calibrate,
)
from tacit.public_facts import assumptions_of, budget_of, n_records_of, source_of
from tacit.records import (
    Bounds,
    MemoryRecords,
    RecordSource,
    UnreadRecords,
    UnreadTable,
    open_records,
)

Array = npt.NDArray[np.float64]


def _centre(declared: Any, table: UnreadTable) -> Array:
    if declared is None:
        return np.zeros(table.n_columns)
    centre = np.broadcast_to(np.asarray(declared, dtype=np.float64), (table.n_columns,))
    if not np.all(np.isfinite(centre)):
        raise ValueError(f"center must be finite, got {declared!r}; pass a public guess.")
    if isinstance(table, UnreadRecords) and centre.any():
        raise ValueError(
            "a record source clips its rows around 0, wherever center is; subtract center from "
            "the rows in the source, and pass None for it."
        )
    return centre


class Mean(BaseEstimator):
    """The mean of records clipped to a ball around a public centre.

    The sum of (x - center), each clipped to norm ``row_norm``, is released with noise, together
    with the number of records unless that is public. Pure budgets get sphere noise.

    Parameters
    ----------
    epsilon, delta, relation, n_records, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`.
    row_norm : float, default=1.0
        Records farther than this from ``center`` are moved onto the ball.
    center : array or None
        A public guess; 0 by default.

    Attributes
    ----------
    location_ : array
        The released mean.
    privacy_ : Guarantee
        What it promises.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.location import Mean
    >>> X = np.random.default_rng(0).normal(3.0, 1.0, (10_000, 2))
    >>> Mean(1.0, 1e-6, row_norm=6.0, center=2.0).fit(X).location_.round(0)
    array([3., 3.])
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        relation: Relation | str = "add_remove",
        row_norm: float = 1.0,
        center: Any = None,
        n_records: int | str | None = None,
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.row_norm = row_norm
        self.center = center
        self.n_records = n_records
        self.accountant = accountant
        self.random_state = random_state

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return what a fit would run and what it would cost, without data."""
        budget = budget_of(self.epsilon, self.delta, self.relation)
        public = n_records_of(self.n_records, n_records, budget.relation)
        return _sum_plan(budget, counts=public.value is None)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Release the mean of the rows of ``X``, or of a `RecordSource` of the same bounds."""
        budget = budget_of(self.epsilon, self.delta, self.relation)
        bounds = Bounds(row_norm=self.row_norm)
        table, names = note_columns(self, X, sparse=False)
        n_records = n_records_of(self.n_records, table.n_rows, budget.relation)
        centre = _centre(self.center, table)
        plan = _sum_plan(budget, counts=n_records.value is None)
        source = source_of(self.random_state)
        records = None
        if isinstance(table, UnreadRecords):
            whole = replace(bounds, n_records=n_records.value)
            records = open_records(table.records, None, whole)  # reads nothing

        def work() -> Release[Array]:
            if records is not None:
                return _mean_of(records, plan, n_records.value, source)
            away = _dense(table) - centre
            if budget.is_infinite:
                sizes = np.linalg.norm(away, axis=1)
                scale = np.minimum(1.0, bounds.row_norm / np.maximum(sizes, 1e-300))
                return Release((away * scale[:, None]).mean(axis=0), plan.event)
            total = bounded_sum(away, bounds.row_norm, Norm.L2, budget.relation)
            return _noisy_mean(total, n_records.value, len(away), plan.event, source)

        released = release(
            plan,
            work,
            accountant=self.accountant,
            source=source,
            assumptions=assumptions_of(n_records, names),
        )
        self.location_ = centre + released.value
        self.privacy_ = released.privacy
        return self


def _dense(table: UnreadTable) -> Array:
    rows, _ = table.read()
    return np.asarray(rows, dtype=np.float64)


def _mean_of(
    records: RecordSource, plan: Plan, n_records: int | None, source: Source | None
) -> Release[Array]:
    """Return the mean of records of which only sums can be had."""
    if plan.budget.is_infinite:
        (summed,) = records.sum(lambda block: (block.points().sum(axis=0),))
        return Release(summed / max(records.count(), 1), plan.event)
    total = point_sum(records, plan.budget.relation)
    return _noisy_mean(total, n_records, records.count(), plan.event, source)


# The count's part of the budget: a tenth of the mu, or a tenth of the epsilon.
_COUNT_SHARE = 0.1


def _sum_plan(budget: Budget, counts: bool) -> Plan:
    """Return the plan of a noisy sum, together with a noisy count if ``counts``."""
    if budget.is_infinite:
        return without_noise(budget)
    what = "the sum of clipped records" + (", and their number, each" if counts else ",")
    if budget.is_pure:
        share = _COUNT_SHARE * budget.epsilon
        parts = [PureEpsilon(budget.epsilon - share if counts else budget.epsilon, budget.relation)]
        if counts:
            parts.insert(0, PureEpsilon(share, budget.relation))
        settings = {"epsilon": parts[-1].epsilon}
        return Plan("noisy_sum", _together(parts), budget, f"{what} with sphere noise", settings)
    whole = calibrate(lambda z: Gaussian(z, budget.relation), budget)
    assert isinstance(whole, Gaussian)  # the budget is finite
    z = whole.noise_multiplier
    settings = {"noise_multiplier": z}
    noisy: list[Event] = [whole]
    if counts:
        # mu_count^2 + mu_sum^2 = mu^2
        rest = z / math.sqrt(1 - _COUNT_SHARE**2)
        noisy = [Gaussian(z / _COUNT_SHARE, budget.relation), Gaussian(rest, budget.relation)]
        settings = {"noise_multiplier": rest, "count_noise_multiplier": z / _COUNT_SHARE}
    return Plan("noisy_sum", _together(noisy), budget, f"{what} with Gaussian noise", settings)


def _together(events: Sequence[Event]) -> Event:
    return Composed(tuple(events)) if len(events) > 1 else events[0]


def _noisy_mean(
    total: Bounded, n_records: int | None, n_rows: int, event: Event, source: Source | None
) -> Release[Array]:
    """Release the count, unless public, and the sum; return their quotient."""
    count = float(n_records or 1)
    parts = event.events if isinstance(event, Composed) else (event,)
    spent: list[Event] = []
    if len(parts) == 2:
        one = Bounded(float(n_rows), 1.0, Norm.L2, total.relation)
        counted = _noisy(one, parts[0], source)
        spent.append(counted.event)
        count = max(float(counted.value), 1.0)
    noisy = _noisy(total, parts[-1], source)
    return Release(np.asarray(noisy.value) / count, receipt([*spent, noisy.event], event))


def _noisy(bounded: Bounded, event: Event, source: Source | None) -> Release[Any]:
    if isinstance(event, Gaussian):
        return gaussian(bounded, event.noise_multiplier, source)
    return sphere(bounded, event.pure_epsilon(), source)


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
        return _column_plan(budget_of(self.epsilon, self.delta, self.relation), n_features)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Release the quantile of every column of ``X``."""
        budget = budget_of(self.epsilon, self.delta, self.relation)
        loss = QuantileLoss(self.quantile)
        table, names = note_columns(self, X, sparse=False)
        if isinstance(table, UnreadRecords):
            table.read()  # refuses, before anything is charged: a quantile sorts single values
        limits = np.broadcast_to(np.asarray(self.bounds, dtype=np.float64), (table.n_columns, 2))
        if not (np.all(np.isfinite(limits)) and np.all(limits[:, 0] < limits[:, 1])):
            raise ValueError(f"bounds must be finite pairs low < high, got {self.bounds!r}.")
        plan = _column_plan(budget, table.n_columns)
        source = source_of(self.random_state)

        def work() -> Release[Array]:
            rows = _dense(table)
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


class GeometricMedian(BaseEstimator):
    """The point with the least total distance to the records, robust in any dimension.

    Records are clipped to a ball around a public centre; noisy gradient descent on the sum of
    distances, within that ball.

    Parameters
    ----------
    row_norm : float, default=1.0
        Records farther than this from ``center`` are moved onto the ball.
    center : array or None
        A public guess; 0 by default.
    epsilon, delta, relation, n_records, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.location import GeometricMedian
    >>> X = np.random.default_rng(0).normal([1.0, -1.0], 0.5, (10_000, 2))
    >>> GeometricMedian(1.0, 1e-6, row_norm=4.0).fit(X).location_.round(0)
    array([ 1., -1.])
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        relation: Relation | str = "add_remove",
        row_norm: float = 1.0,
        center: Any = None,
        n_records: int | str | None = None,
        mechanism: str | Mechanism = "noisy_gradient",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.row_norm = row_norm
        self.center = center
        self.n_records = n_records
        self.mechanism = mechanism
        self.accountant = accountant
        self.random_state = random_state

    def _objective(self, n_records: int | None) -> Objective:
        bounds = Bounds(row_norm=self.row_norm, n_records=n_records)
        return Objective(DistanceLoss(), bounds, 0.0, L2Ball(self.row_norm))

    def plan(self, n_features: int, n_records: int | None = None) -> ErmPlan | Plan:
        """Return what a fit would run, what it would cost and what to expect, without data."""
        budget = budget_of(self.epsilon, self.delta, self.relation)
        if budget.is_infinite:
            return without_noise(budget)
        public = n_records_of(self.n_records, n_records, budget.relation)
        problem = Problem(self._objective(public.value), n_features, n_records)
        return choose_plan(problem, budget, self.mechanism)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Release the geometric median of the rows of ``X``, or of a `RecordSource`."""
        budget = budget_of(self.epsilon, self.delta, self.relation)
        self._objective(None)  # refuse before the table is looked at
        table, names = note_columns(self, X, sparse=False)
        n_records = n_records_of(self.n_records, table.n_rows, budget.relation)
        centre = _centre(self.center, table)
        objective = self._objective(n_records.value)

        def moved(rows: Any, _: Any) -> tuple[Array, None]:
            return np.asarray(rows, dtype=np.float64) - centre, None

        result = minimize_unread(
            when_paid_for(table, moved, objective.bounds),
            Problem(objective, table.n_columns),
            budget,
            self.mechanism,
            accountant=self.accountant,
            source=source_of(self.random_state),
            assumptions=assumptions_of(n_records, names),
        )
        self.location_ = centre + result.weights
        self.privacy_ = result.privacy
        self.plan_ = result.plan
        return self
