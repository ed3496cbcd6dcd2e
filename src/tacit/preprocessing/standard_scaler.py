"""Standardise columns with private means and standard deviations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from tacit import checks
from tacit.engine import Plan, without_noise
from tacit.estimators.parameters import n_records_of
from tacit.preprocessing._base import (
    BoundsOfColumns,
    Columns,
    Job,
    OnOneScale,
    bounds_of,
    facts_of_rows,
    n_chosen,
    places_of,
    rows_to_transform,
)
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import GaussianNoise, Noise, NoisySum, Session, Slot, SphereNoise
from tacit.queries.moments import SHIFT, WEIGHT, ColumnMoments
from tacit.records.lazy_table import UnreadTable, shown_rows
from tacit.table_facts import TableFacts

Array = npt.NDArray[np.float64]
# Least variance, in squared units of half a range; avoids division by zero.
_LEAST_VARIANCE = 2.0**-40


class PrivateStandardScaler(OnOneScale):
    """Subtract a column's mean, divide by its standard deviation, clip and map to [-1/2, 1/2].

    Means and mean squares of all columns, and the number of records if it is private, are one
    release with Gaussian noise. In units u from -1 to 1 of its public bounds, the pair of u and
    2 u^2 - 5/4 has a norm of at most 5/4, so that squares cost a quarter more. The noise
    grows with the width of the bounds: for wide bounds, use `PrivateQuantileBounds`.
    A pure budget gets noise of random length and direction (`tacit.noise.sphere`).

    Parameters
    ----------
    epsilon, delta, relation, n_records, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`.
    columns : list of names or places, or None
        The columns to scale; by default all. Others are unchanged.
    bounds : (low, high), a pair for each column, a dictionary of pairs, or None
        Public bounds to which values are clipped; None takes those of the table's facts.
    clip : float, default=3.0
        The number of standard deviations at which values are clipped. In a normal column fewer than
        3 in 1,000 records exceed 3. The noise of later steps is proportional to it.

    Attributes
    ----------
    mean_, scale_ : array
        Released for each chosen column.
    columns_ : array
        The positions of the chosen columns.
    privacy_ : Guarantee
        The guarantee of the fit.

    Notes
    -----
    **Guarantee**

    1. Chosen columns lie in [-1/2, 1/2], whatever was learned; 2 ``clip`` deviations are 1.
    2. A missing value counts as the middle of its bounds in the fit, and becomes 0.
    3. A variance below the standard deviation of its noise is replaced by that deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import PrivateStandardScaler
    >>> X = np.random.default_rng(0).normal(50, 10, (20_000, 2))
    >>> step = PrivateStandardScaler(1.0, 1e-6, bounds=(0, 100)).fit(X)
    >>> step.mean_.round(), step.scale_.round()
    (array([50., 50.]), array([10., 10.]))
    """

    _released: ClassVar[tuple[str, ...]] = (
        "mean_",
        "scale_",
        "columns_",
        "n_features_in_",
        "feature_names_in_",
    )

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        columns: Columns = None,
        bounds: BoundsOfColumns = None,
        clip: float = 3.0,
        n_records: int | str | None = None,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.bounds = bounds
        self.clip = clip
        self.n_records = n_records
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def _plan(self, budget: Budget, n_features: int) -> Plan:
        checks.positive("clip", self.clip, remedy="pass how many standard deviations count.")
        facts = facts_of_rows(n_features, budget)
        if budget.is_infinite:
            return replace(without_noise(budget), facts=facts)
        if budget.is_pure:
            noise: Noise = SphereNoise(budget.epsilon)
            kind, settings = "sphere", {"epsilon": budget.epsilon}
        else:
            z = gaussian_multiplier(budget)
            noise, kind, settings = GaussianNoise(z), "Gaussian", {"noise_multiplier": z}
        n_columns, event = n_chosen(self.columns, n_features), noise.event(facts)
        reason = f"means and mean squares of {n_columns} columns in one release with {kind} noise"
        paid = {"moments": Slot(event)}
        return Plan("standard_scaler", event, budget, reason, settings, facts=facts, paid=paid)

    def _job(
        self, resolved: Self, budget: Budget, known: TableFacts, table: UnreadTable
    ) -> Job[Moments]:
        places = places_of(self.columns, known.names)
        limits = bounds_of(self.bounds, known.ranges, known.names, places)
        n_records = n_records_of(resolved.n_records, shown_rows(table), budget.relation)
        plan = self._plan(budget, table.n_columns)
        middle, half = limits.mean(axis=1), (limits[:, 1] - limits[:, 0]) / 2
        pairs = tuple((low, high) for low, high in limits.tolist())
        statistic = ColumnMoments(tuple(places.tolist()), pairs, counts=n_records.value is None)

        def keep(found: Moments) -> None:
            self.mean_ = middle + half * found.mean
            self.scale_ = half * np.sqrt(found.variance)
            self.columns_ = places

        def work(session: Session) -> Moments:
            return moments(session, statistic, plan, n_records.value)

        return Job(plan, work, keep, (n_records,), n_records.value)

    def transform(self, X: Any) -> Array:
        """Return the rows with the chosen columns scaled, clipped and mapped to [-1/2, 1/2]."""
        check_is_fitted(self)
        rows = rows_to_transform(self, X)
        with np.errstate(over="ignore"):  # a warning would reveal one record
            deviations = (rows[:, self.columns_] - self.mean_) / self.scale_ / (2 * self.clip)
        rows[:, self.columns_] = np.nan_to_num(np.clip(deviations, -0.5, 0.5))
        return rows


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of every column."""

    mean: Array
    variance: Array


def moments(
    session: Session, statistic: ColumnMoments, plan: Plan, n_records: int | None
) -> Moments:
    """Ask for mean and variance of columns, in units from -1 to 1 of their bounds."""
    if plan.budget.is_infinite:
        units = session.without_noise(statistic.units)
        spread = units.var(axis=0)
        return Moments(units.mean(axis=0), np.where(spread > 0, spread, 1.0))
    k, constant = len(statistic.columns), statistic.count_constant
    sensitivity = statistic.sensitivity(session.facts).value
    if plan.budget.is_pure:
        pure = SphereNoise(plan.settings["epsilon"])
        noisy = np.asarray(session.ask(NoisySum(statistic, pure), "moments"))
        # E |noise|^2 = d (d + 1) (sensitivity / epsilon)^2
        std = math.sqrt(noisy.size + 1) * sensitivity / pure.epsilon
    else:
        normal = GaussianNoise(plan.settings["noise_multiplier"])
        noisy = np.asarray(session.ask(NoisySum(statistic, normal), "moments"))
        std = normal.std(sensitivity)
    count = float(n_records) if n_records is not None else max(noisy[-1] / constant, 1.0)
    mean = np.clip(noisy[:k] / count, -1.0, 1.0)
    square = (noisy[k : 2 * k] / count + SHIFT) / WEIGHT
    # The noise of the squares, and of the number of records times the 5/8 by which it is divided.
    per_record = math.hypot(1.0, SHIFT / constant if constant else 0.0) / WEIGHT
    # A variance is at least the standard deviation of its noise.
    floor = min(max(per_record * std / count, _LEAST_VARIANCE), 1.0)
    return Moments(mean, np.clip(square - mean**2, floor, 1.0))
