"""Release the mean of records in a ball, from a noisy sum and a noisy count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from tacit.engine import Plan, norm_in_words, release_answers, without_noise
from tacit.erm.inference.estimator_law import Errors
from tacit.erm.inference.plan import check_gaussian_share
from tacit.estimators.parameters import (
    assumptions_of,
    budget_of,
    center_of,
    check_shape,
    n_records_of,
    row_norm_of,
    source_of,
    warn_if_weak,
    with_people,
    with_table_facts,
)
from tacit.estimators.summary import WithSummary, publish_errors
from tacit.estimators.tables import note_columns
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.queries import (
    Count,
    Facts,
    GaussianNoise,
    Noise,
    NoisySum,
    PointSum,
    Session,
    Slot,
    SphereNoise,
    Statistic,
    composed,
    split_budget,
)
from tacit.records import (
    Bounds,
    MemoryRecords,
    RecordSource,
    UnreadRecords,
    UnreadTable,
    open_records,
)
from tacit.records.grouped import PeopleInSource
from tacit.records.lazy_table import has_people, read_people, shown_rows

Array = npt.NDArray[np.float64]


def ball_of(declared: Any) -> float:
    """Return the radius of the ball to which rows are clipped."""
    meaning = "records farther from center are moved that near, and noise is proportional to it"
    return row_norm_of(declared, meaning)


def centre_of(declared: Any, table: UnreadTable) -> Array:
    """Return the origin from which a table's rows are measured."""
    centre = center_of(declared, table.n_columns)
    if isinstance(table, UnreadRecords) and centre.any():
        raise ValueError(
            "a record source clips its rows around 0, wherever center is; subtract center from "
            "the rows in the source, and pass None for it."
        )
    return centre


def dense_rows(table: UnreadTable) -> Array:
    """Read a table as float64; one record per person, if it is grouped by person."""
    rows, _ = table.read()
    if has_people(table):
        rows = rows[read_people(table).one_each()]
    return np.asarray(rows, dtype=np.float64)


def one_of_each(records: RecordSource, table: UnreadTable) -> RecordSource:
    """Return a source's records; one per person, if they are grouped by person."""
    if has_people(table):
        return PeopleInSource(records, table.identifiers()).one_each()
    return records


class Mean(WithSummary, BaseEstimator):
    """The mean of records clipped to a ball around a public centre.

    The sum of (x - center), each clipped to norm ``row_norm``, is released with noise. So is the
    number of records, unless it is public. Pure budgets get sphere noise.

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
        The share of the budget (of mu^2) for standard errors, which `summary` shows; it needs a
        delta.

    Attributes
    ----------
    location_ : array
        The released mean.
    privacy_ : Guarantee
        The guarantee of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.location.mean import Mean
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
        """Return the plan of a fit and its cost, without data."""
        check_shape(n_features, n_records)
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        public = n_records_of(self.n_records, n_records, budget.relation)
        warn_if_weak(budget, public.value or n_records)
        facts = Facts(Bounds(row_norm=ball_of(self.row_norm)), n_features, budget.relation)
        return _sum_plan(budget, facts, public.value is None, self.inference)

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Release the mean of the rows of ``X``, or of a `RecordSource` of the same bounds.

        ``unit`` names the person of each row; one row per person then counts (docs/people.md).
        """
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        resolved = with_table_facts(self, X)
        bounds = Bounds(row_norm=ball_of(resolved.row_norm))
        table, names = note_columns(self, X, unit=unit, sparse=False)
        budget = with_people(budget, has_people(table))
        n_records = n_records_of(resolved.n_records, shown_rows(table), budget.relation)
        centre = centre_of(self.center, table)
        warn_if_weak(budget, n_records.value)
        facts = Facts(bounds, table.n_columns, budget.relation)
        plan = _sum_plan(budget, facts, n_records.value is None, self.inference)
        source = source_of(self.random_state)
        # A record source is clipped to its own bounds; they are compared before the charge.
        records = _opened(table, replace(bounds, n_records=n_records.value))

        def opened() -> RecordSource:
            if records is None:
                return MemoryRecords(dense_rows(table) - centre, None, bounds)
            return one_of_each(records, table)

        released = release_answers(
            plan,
            opened,
            lambda session: _mean(session, plan, n_records.value, bool(self.inference)),
            accountant=self.accountant,
            source=source,
            assumptions=assumptions_of(n_records, names),
        )
        mean, errors = released.value
        self.location_, self.privacy_ = centre + mean, released.privacy
        known = None if errors is None else Errors(self.location_, errors)
        publish_errors(self, known, 0.0, None)
        return self


def _opened(table: Any, bounds: Bounds) -> RecordSource | None:
    """Return a record source within bounds, which reads nothing; None for a table in memory."""
    return open_records(table.records, None, bounds) if isinstance(table, UnreadRecords) else None


def _mean(
    session: Session, plan: Plan, n_records: int | None, inference: bool
) -> tuple[Array, Array | None]:
    """Ask for the count unless public, for the squares if errors are requested, and for the sum.

    The variance of the mean has three parts: that of a record over n, that of the noise on the sum
    over n^2, and that of the noise on the count, which scales the mean.
    """
    if plan.budget.is_infinite:
        return session.without_noise(lambda records: _exact_mean(records, inference))
    queries = plan.queries
    count, count_std, squares = float(n_records or 1), 0.0, None
    if "count" in queries:
        count = max(float(np.asarray(session.ask(queries["count"], "count"))), 1.0)
        count_std = queries["count"].noise_std(session.facts)
    if "squares" in queries:
        # a sum of squares below its noise carries no information
        noisy = np.asarray(session.ask(queries["squares"], "squares"))
        squares = np.maximum(noisy, queries["squares"].noise_std(session.facts))
    mean = np.asarray(session.ask(queries["sum"], "sum")) / count
    if squares is None:
        return mean, None
    variance = np.maximum(squares - count * mean**2, 0.0)
    std = queries["sum"].noise_std(session.facts)
    return mean, np.sqrt(variance + std**2 + (count_std * mean) ** 2) / count


def _exact_mean(view: RecordSource, inference: bool) -> tuple[Array, Array | None]:
    """Return the mean without noise, and its standard errors if requested."""
    if isinstance(view, MemoryRecords):
        rows = np.asarray(view.rows)
        sizes = np.linalg.norm(rows, axis=1)
        clipped = rows * np.minimum(1.0, view.bounds.row_norm / np.maximum(sizes, 1e-300))[:, None]
        errors = clipped.std(axis=0) / math.sqrt(len(rows)) if inference else None
        return clipped.mean(axis=0), errors
    (summed, squared) = view.sum(
        lambda block: (block.points().sum(axis=0), (block.points() ** 2).sum(axis=0))
    )
    n = max(view.count(), 1)
    variance = np.maximum(squared / n - (summed / n) ** 2, 0.0)
    return summed / n, np.sqrt(variance / n) if inference else None


# Assumed distance of the mean from the centre, in units of the ball's radius.
_FROM_CENTRE = 0.5


def count_share(budget: Budget, n_columns: int) -> float:
    """Return the count's share of mu^2, or of epsilon, that minimises the error of the mean.

    The error is that of a sum of d coordinates within R, and of the count times the distance a R:

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


def _sum_plan(budget: Budget, facts: Facts, counts: bool, share: float) -> Plan:
    """Return the plan of a noisy sum, of a noisy count if ``counts``, and of standard errors."""
    of_count = count_share(budget, facts.n_features) if counts else 0.0
    check_gaussian_share(budget, share, most=1 - of_count)
    if budget.is_infinite:
        return replace(without_noise(budget), facts=facts)
    noise = split_budget(budget, {"count": of_count, "squares": share, "sum": None})
    statistics: dict[str, Statistic] = {
        "count": Count(),
        "squares": PointSum(squared=True),
        "sum": PointSum(),
    }
    queries = {name: NoisySum(statistics[name], noise[name]) for name in noise}
    what = "the sum of clipped records" + (", and their number, each" if counts else ",")
    kind = "sphere noise" if budget.is_pure else "Gaussian noise"
    return Plan(
        "noisy_sum",
        composed({name: Slot(query.event(facts)) for name, query in queries.items()}),
        budget,
        f"{what} with {kind}",
        _settings(noise),
        notes=(norm_in_words(facts.bounds.row_norm),),
        facts=facts,
        queries=queries,
    )


def _settings(noise: Mapping[str, Noise]) -> dict[str, float]:
    """Return the settings that a plan shows, under their stable names."""
    total = noise["sum"]
    if isinstance(total, SphereNoise):
        return {"epsilon": total.epsilon}
    names = {"sum": "noise", "squares": "inference_noise", "count": "count_noise"}
    known = {name: noise[name] for name in names if name in noise}
    return {
        f"{names[name]}_multiplier": one.multiplier
        for name, one in known.items()
        if isinstance(one, GaussianNoise)
    }
