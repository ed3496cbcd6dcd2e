"""The mean of records in a ball, from a noisy sum and a noisy count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from tacit.engine import Plan, norm_in_words, release, without_noise
from tacit.erm.inference import check_gaussian_share
from tacit.erm.laws import Errors
from tacit.erm.plan import receipt
from tacit.erm.point_sum import point_sum
from tacit.linear_model._inference import WithSummary, publish_errors
from tacit.linear_model._tables import note_columns
from tacit.location._points import Array, ball_of, centre_of, dense_rows, one_of_each
from tacit.noise import Bounded, Norm, Release, Source, bounded_sum, gaussian, sphere
from tacit.privacy import AnyAccountant, Budget, Composed, Event, Gaussian, PureEpsilon, Relation
from tacit.privacy.calibration import gaussian_multiplier
from tacit.public_facts import (
    assumptions_of,
    budget_of,
    check_shape,
    informed,
    n_records_of,
    source_of,
    warn_if_weak,
    with_people,
)
from tacit.records import Bounds, MemoryRecords, RecordSource, UnreadRecords, open_records
from tacit.records.unread import has_people, shown_rows


class Mean(WithSummary, BaseEstimator):
    """The mean of records clipped to a ball around a public centre.

    The sum of (x - center), each clipped to norm ``row_norm``, is released with noise, together
    with the number of records unless that is public. Pure budgets get sphere noise.

    Parameters
    ----------
    epsilon, delta, relation, n_records, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`.
    row_norm : float or None
        Records farther than this from ``center`` are moved onto the ball. None is 1.0, with an
        `UndeclaredWarning`.
    center : array or None
        A public guess; 0 by default.
    inference : float, default=0.0
        The share of the budget (of mu^2) kept for standard errors, which `summary` shows; it needs
        a delta.

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
        row_norm: float | None = None,
        center: Any = None,
        n_records: int | str | None = None,
        inference: float = 0.0,
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.row_norm = row_norm
        self.center = center
        self.n_records = n_records
        self.inference = inference
        self.accountant = accountant
        self.random_state = random_state

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return what a fit would run and what it would cost, without data."""
        check_shape(n_features, n_records)
        budget = budget_of(self.epsilon, self.delta, self.relation)
        public = n_records_of(self.n_records, n_records, budget.relation)
        warn_if_weak(budget, public.value or n_records)
        counts = public.value is None
        return _sum_plan(budget, ball_of(self.row_norm), n_features, counts, self.inference)

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Release the mean of the rows of ``X``, or of a `RecordSource` of the same bounds.

        ``unit`` says whose each row is; one row of each person then counts (docs/people.md).
        """
        budget = budget_of(self.epsilon, self.delta, self.relation)
        told = informed(self, X)
        bounds = Bounds(row_norm=ball_of(told.row_norm))
        table, names = note_columns(self, X, unit=unit, sparse=False)
        budget = with_people(budget, has_people(table))
        n_records = n_records_of(told.n_records, shown_rows(table), budget.relation)
        centre = centre_of(self.center, table)
        warn_if_weak(budget, n_records.value)
        counts = n_records.value is None
        plan = _sum_plan(budget, bounds.row_norm, table.n_columns, counts, self.inference)
        source = source_of(self.random_state)
        records = None
        if isinstance(table, UnreadRecords):
            whole = replace(bounds, n_records=n_records.value)
            records = open_records(table.records, None, whole)  # reads nothing

        def work() -> Release[tuple[Array, Array | None]]:
            if records is not None:
                used = one_of_each(records, table)
                return _mean_of(used, plan, n_records.value, bool(self.inference), source)
            away = dense_rows(table) - centre
            if budget.is_infinite:
                sizes = np.linalg.norm(away, axis=1)
                scale = np.minimum(1.0, bounds.row_norm / np.maximum(sizes, 1e-300))
                clipped = away * scale[:, None]
                errors = clipped.std(axis=0) / math.sqrt(len(away)) if self.inference else None
                return Release((clipped.mean(axis=0), errors), plan.event)
            total, squares = bounded_sum(away, bounds.row_norm, Norm.L2, budget.relation), None
            if self.inference:
                squares = point_sum(MemoryRecords(away, None, bounds), budget.relation, True)
            return _noisy_mean(total, squares, n_records.value, len(away), plan.event, source)

        released = release(
            plan,
            work,
            accountant=self.accountant,
            source=source,
            assumptions=assumptions_of(n_records, names),
        )
        mean, errors = released.value
        self.location_, self.privacy_ = centre + mean, released.privacy
        known = None if errors is None else Errors(self.location_, errors)
        publish_errors(self, known, 0.0, None)
        return self


def _mean_of(
    records: RecordSource,
    plan: Plan,
    n_records: int | None,
    inference: bool,
    source: Source | None,
) -> Release[tuple[Array, Array | None]]:
    """Return the mean of records of which only sums can be had."""
    if plan.budget.is_infinite:
        (summed, squared) = records.sum(
            lambda block: (block.points().sum(axis=0), (block.points() ** 2).sum(axis=0))
        )
        n = max(records.count(), 1)
        variance = np.maximum(squared / n - (summed / n) ** 2, 0.0)
        return Release((summed / n, np.sqrt(variance / n) if inference else None), plan.event)
    relation = plan.budget.relation
    squares = point_sum(records, relation, squared=True) if inference else None
    total = point_sum(records, relation)
    return _noisy_mean(total, squares, n_records, records.count(), plan.event, source)


# How far from the centre the mean is taken to be, in units of the ball's radius.
_FROM_CENTRE = 0.5


def count_share(budget: Budget, n_columns: int) -> float:
    """Return the count's part of the budget, of mu^2 or of epsilon, with which a mean errs least.

    The error of a sum of d coordinates within R, and of the count times the mean's distance a R:

        Gaussian:  R^2 z^2 (d / (1 - t) + a^2 / t),                  least at t = a / (a + sqrt(d))
        sphere:    R^2 / epsilon^2 (d (d + 1) / (1 - t)^2 + 2 a^2 / t^2),
                                         least at t / (1 - t) = (2 a^2 / (d (d + 1)))^(1/3)

    Examples
    --------
    >>> from tacit.location.mean import count_share
    >>> from tacit.privacy import Budget
    >>> round(count_share(Budget(1.0, 1e-6), 1), 3), round(count_share(Budget(1.0, 1e-6), 100), 3)
    (0.333, 0.048)
    """
    if budget.is_pure:
        odds = math.cbrt(2 * _FROM_CENTRE**2 / (n_columns * (n_columns + 1)))
        return odds / (1 + odds)
    return _FROM_CENTRE / (_FROM_CENTRE + math.sqrt(n_columns))


def _sum_plan(budget: Budget, row_norm: float, n_columns: int, counts: bool, share: float) -> Plan:
    """Return the plan of a noisy sum, with a noisy count if ``counts``, and a share for errors."""
    of_count = count_share(budget, n_columns) if counts else 0.0
    check_gaussian_share(budget, share, most=1 - of_count)
    if budget.is_infinite:
        return without_noise(budget)
    what = "the sum of clipped records" + (", and their number, each" if counts else ",")
    notes = (norm_in_words(row_norm),)
    if budget.is_pure:
        share = of_count * budget.epsilon
        parts = [PureEpsilon(budget.epsilon - share if counts else budget.epsilon, budget.relation)]
        if counts:
            parts.insert(0, PureEpsilon(share, budget.relation))
        settings = {"epsilon": parts[-1].epsilon}
        reason = f"{what} with sphere noise"
        return Plan("noisy_sum", _together(parts), budget, reason, settings, notes=notes)
    z = gaussian_multiplier(budget)
    settings = {"noise_multiplier": z}
    # mu_count^2 + mu_squares^2 + mu_sum^2 = mu^2
    rest = z / math.sqrt(1 - of_count - share)
    noisy: list[Event] = [Gaussian(rest, budget.relation)]
    settings = {"noise_multiplier": rest}
    if share:
        settings["inference_noise_multiplier"] = z / math.sqrt(share)
        noisy.insert(0, Gaussian(z / math.sqrt(share), budget.relation))
    if counts:
        settings["count_noise_multiplier"] = z / math.sqrt(of_count)
        noisy.insert(0, Gaussian(settings["count_noise_multiplier"], budget.relation))
    reason = f"{what} with Gaussian noise"
    return Plan("noisy_sum", _together(noisy), budget, reason, settings, notes=notes)


def _together(events: Sequence[Event]) -> Event:
    return Composed(tuple(events)) if len(events) > 1 else events[0]


def _noisy_mean(
    total: Bounded,
    squares: Bounded | None,
    n_records: int | None,
    n_rows: int,
    event: Event,
    source: Source | None,
) -> Release[tuple[Array, Array | None]]:
    """Release the count, unless public, the squares, if asked for, and the sum; divide.

    The variance of the mean is that of a record over n, of the noise on the sum over n^2, and of
    that on the count, which moves the mean in proportion to itself.
    """
    count, count_std, squared = float(n_records or 1), 0.0, None
    parts = list(event.events) if isinstance(event, Composed) else [event]
    spent: list[Event] = []
    if n_records is None:
        one = Bounded(float(n_rows), 1.0, Norm.L2, total.relation)
        counted, count_std = _noisy(one, parts.pop(0), source)
        spent.append(counted.event)
        count = max(float(counted.value), 1.0)
    if squares is not None:
        added, std = _noisy(squares, parts.pop(0), source)
        spent.append(added.event)
        squared = np.maximum(np.asarray(added.value), std)  # below its noise it says nothing
    noisy, std = _noisy(total, parts.pop(0), source)
    mean, errors = np.asarray(noisy.value) / count, None
    if squared is not None:
        variance = np.maximum(squared - count * mean**2, 0.0)
        errors = np.sqrt(variance + std**2 + (count_std * mean) ** 2) / count
    return Release((mean, errors), receipt([*spent, noisy.event], event))


def _noisy(bounded: Bounded, event: Event, source: Source | None) -> tuple[Release[Any], float]:
    """Return a release, and the standard deviation of its noise if that is Gaussian."""
    if isinstance(event, Gaussian):
        z = event.noise_multiplier
        return gaussian(bounded, z, source), z * bounded.sensitivity
    return sphere(bounded, event.pure_epsilon(), source), math.nan
