"""Columns less their mean, in standard deviations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from tacit import checks
from tacit.engine import Plan, without_noise
from tacit.noise import Norm, Release, Source, bounded_sum, gaussian, sphere
from tacit.preprocessing.private._columns import (
    Known,
    bounds_of,
    n_chosen,
    on_one_scale,
    places_of,
)
from tacit.preprocessing.private._numbers import rows_to_transform
from tacit.preprocessing.private._step import Job, PrivateStep
from tacit.preprocessing.private.quantile_bounds import Bounds, Columns
from tacit.privacy import AnyAccountant, Budget, Event, Gaussian, PureEpsilon, Relation
from tacit.privacy.calibration import gaussian_multiplier
from tacit.public_facts import n_records_of
from tacit.records import UnreadTable
from tacit.records.unread import shown_rows
from tacit.table_facts import TableFacts

Array = npt.NDArray[np.float64]
# A value u and its square, as 2 u^2 - 5/4: the weight, the shift, and the length of both together.
_WEIGHT = 2.0
_SHIFT = 1.25
_LENGTH = 1.25
# In units of half a range; no column is taken to be narrower.
_LEAST_VARIANCE = 2.0**-40


class PrivateStandardScaler(OneToOneFeatureMixin, PrivateStep):
    """Subtracts a column's mean, divides by its standard deviation, clips, and maps to [-1/2, 1/2].

    Means and mean squares of all columns, and the number of records where that is private, are one
    release with Gaussian noise. In units u from -1 to 1 of its public bounds, a value and
    2 u^2 - 5/4 are together no longer than 5/4, so that squares cost a quarter more. The noise
    grows with the width of the bounds: where they are generous, `PrivateQuantileBounds` learns
    more. A pure budget gets noise of random length and direction (`tacit.noise.sphere`).

    Parameters
    ----------
    epsilon, delta, relation, n_records, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`.
    columns : list of names or places, or None
        Which columns; by default all. Others pass as they are.
    bounds : (low, high), a pair for each column, a dictionary of pairs, or None
        Public bounds to which values are clipped; None takes those that come with the table.
    clip : float, default=3.0
        How many standard deviations count. Fewer than 3 in 1,000 records are farther in a normal
        column, and noise in what follows is proportional to it.

    Attributes
    ----------
    mean_, scale_ : array
        Of each chosen column, released.
    columns_ : array
        Where the chosen columns stand.
    privacy_ : Guarantee
        What it promises.

    Notes
    -----
    **Guarantee**

    1. Chosen columns lie in [-1/2, 1/2], whatever was learned; 2 ``clip`` deviations are 1.
    2. A missing value counts as the middle of its bounds in the fit, and becomes 0.
    3. A variance below the standard deviation of its noise counts as that.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing.private import PrivateStandardScaler
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
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        columns: Columns = None,
        bounds: Bounds = None,
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

    def _plan(self, budget: Budget, n_features: int, n_records: int | None) -> Plan:
        checks.positive("clip", self.clip, remedy="pass how many standard deviations count.")
        if budget.is_infinite:
            return without_noise(budget)
        n_columns = n_chosen(self.columns, n_features)
        what = f"means and mean squares of {n_columns} columns"
        if budget.is_pure:
            event: Event = PureEpsilon(budget.epsilon, budget.relation)
            settings, noise = {"epsilon": budget.epsilon}, "sphere"
        else:
            z = gaussian_multiplier(budget)
            event, settings, noise = (
                Gaussian(z, budget.relation),
                {"noise_multiplier": z},
                "Gaussian",
            )
        reason = f"{what} in one release with {noise} noise"
        return Plan("standard_scaler", event, budget, reason, settings)

    def _job(self, told: Self, budget: Budget, known: Known, table: UnreadTable) -> Job[Moments]:
        places = places_of(self.columns, known.names)
        limits = bounds_of(self.bounds, known.ranges, known.names, places)
        n_records = n_records_of(told.n_records, shown_rows(table), budget.relation)
        plan = self._plan(budget, table.n_columns, None)
        middle, half = limits.mean(axis=1), (limits[:, 1] - limits[:, 0]) / 2

        def work(rows: Array, source: Source | None) -> Release[Moments]:
            # clipped first: a division that overflows would warn of one record
            inside = np.clip(rows[:, places], limits[:, 0], limits[:, 1])
            units = np.clip((inside - middle) / half, -1.0, 1.0)
            return moments(np.nan_to_num(units), n_records.value, plan, source)

        def keep(found: Moments) -> None:
            self.mean_ = middle + half * found.mean
            self.scale_ = half * np.sqrt(found.variance)
            self.columns_ = places

        return Job(plan, work, keep, (n_records,), n_records.value)

    def transform(self, X: Any) -> Array:
        """Return the rows, their chosen columns scaled, clipped and mapped to [-1/2, 1/2]."""
        check_is_fitted(self)
        rows = rows_to_transform(self, X)
        with np.errstate(over="ignore"):  # which would warn of one record
            deviations = (rows[:, self.columns_] - self.mean_) / self.scale_ / (2 * self.clip)
        rows[:, self.columns_] = np.nan_to_num(np.clip(deviations, -0.5, 0.5))
        return rows

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return what is public of the rows it gives."""
        known = self._known(facts)
        return on_one_scale(facts, known, places_of(self.columns, known.names))


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of every column."""

    mean: Array
    variance: Array


def moments(
    units: Array, n_records: int | None, plan: Plan, source: Source | None
) -> Release[Moments]:
    """Release mean and variance of columns of numbers from -1 to 1.

        |(u, 2 u^2 - 5/4)|^2 = 25/16 - 4 u^2 (1 - u^2) <= 25/16
                                              (docs/proofs/preprocessing.md, section 3)

    so that k columns have rows no longer than (5/4) sqrt(k), and with a constant c for the number
    of records, where that is private, than sqrt(25 k / 16 + c^2).
    """
    n, k = units.shape
    if plan.budget.is_infinite:
        spread = units.var(axis=0)
        return Release(Moments(units.mean(axis=0), np.where(spread > 0, spread, 1.0)), plan.event)
    constant = count_constant(k) if n_records is None else 0.0
    columns = [units, _WEIGHT * units**2 - _SHIFT]
    if n_records is None:
        columns.append(np.full((n, 1), constant))
    reach = math.hypot(_LENGTH * math.sqrt(k), constant)
    total = bounded_sum(np.hstack(columns), reach, Norm.L2, plan.budget.relation)
    if isinstance(plan.event, Gaussian):
        z = plan.event.noise_multiplier
        release, std = gaussian(total, z, source), z * total.sensitivity
    else:
        epsilon = plan.event.pure_epsilon()
        release = sphere(total, epsilon, source)
        # E |noise|^2 = d (d + 1) (sensitivity / epsilon)^2
        std = math.sqrt(total.n_coordinates + 1) * total.sensitivity / epsilon
    noisy = np.asarray(release.value)
    count = float(n_records) if n_records is not None else max(noisy[-1] / constant, 1.0)
    return Release(_moments_of(noisy[:k], noisy[k : 2 * k], count, constant, std), release.event)


def count_constant(n_columns: int) -> float:
    """Return the constant that counts records, with which variances have the least noise.

        sd of a variance = s sqrt(1 / 4 + (5/8)^2 / c^2) / n,   s = z sqrt(25 k / 16 + c^2)

    is least, (5/8) (sqrt(k) + 1) z / n, at c = (5/4) k^(1/4).
    """
    return _LENGTH * math.sqrt(math.sqrt(n_columns))


def _moments_of(sums: Array, squares: Array, count: float, constant: float, std: float) -> Moments:
    """Return mean and variance of noisy sums, no variance below the deviation of its noise."""
    mean = np.clip(sums / count, -1.0, 1.0)
    square = (squares / count + _SHIFT) / _WEIGHT
    # the noise of the squares, and of the number of records times the 5/8 that it divides
    per_record = math.hypot(1.0, _SHIFT / constant if constant else 0.0) / _WEIGHT
    floor = min(max(per_record * std / count, _LEAST_VARIANCE), 1.0)
    return Moments(mean, np.clip(square - mean**2, floor, 1.0))
