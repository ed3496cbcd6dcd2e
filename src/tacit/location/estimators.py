"""Release a mean, quantiles or a geometric median of records in a ball."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr
from sklearn.base import BaseEstimator

from tacit.engine import Plan, norm_in_words, release_answers, without_noise
from tacit.erm import L2Ball, Mechanism, Objective, Problem, choose_plan
from tacit.erm import Plan as ErmPlan
from tacit.erm.inference import WITHIN, check_gaussian_share, check_share
from tacit.erm.losses import DistanceLoss, QuantileLoss
from tacit.erm.minimization import MechanismName, minimize_unread
from tacit.erm.plan import Errors
from tacit.estimators.linear import gives_one_each, when_paid_for
from tacit.estimators.parameters import (
    Fact,
    Provenance,
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
from tacit.noise import Norm
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.privacy.accounting.calibration import least_noise
from tacit.queries import (
    Count,
    Exactly,
    Facts,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    NoisySum,
    PointSum,
    Quantile,
    Selection,
    Session,
    Slot,
    SphereNoise,
    Statistic,
    composed,
    split_budget,
)
from tacit.queries.selection import selection_event
from tacit.records import Bounds, MemoryRecords, RecordSource
from tacit.records.grouped import PeopleInSource
from tacit.records.lazy_table import UnreadRecords, UnreadTable, has_people, read_people, shown_rows
from tacit.records.memory import open_records

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
    >>> from tacit.location.estimators import Mean
    >>> X = np.random.default_rng(0).normal(3.0, 1.0, (10_000, 2))
    >>> Mean(1.0, 1e-6, row_norm=6.0, center=2.0).fit(X).location_.round(0)
    array([3., 3.])
    """

    def __init__(
        self,
        epsilon: float | None = None,
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
    >>> from tacit.location.estimators import count_share
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


_TAIL = 0.025  # on each side of a 95 % interval
# The grid has fewer than 2^21 + 2 points, one of which is best. A point whose rank error is so many
# noise scales above the best is drawn with probability at most 1/100.
_FAR = math.log(100.0 * 2**21)
_ROUNDS = 10
FINEST = 2.0**-20  # levels are fractions with a denominator of at most its inverse


def normal_laplace_tail(x: float, normal: float, laplace: float) -> float:
    """Return P(normal Z + laplace L > x), Z normal and L Laplace of mean size 1.

    Examples
    --------
    >>> from tacit.location.estimators import normal_laplace_tail
    >>> round(normal_laplace_tail(1.959964, 1.0, 1e-9), 6)
    0.025
    """
    z, ratio = x / normal, normal / laplace
    sides = _shifted(z, ratio) - _shifted(-z, ratio)
    return float(ndtr(-z)) + sides / 2


def _shifted(z: float, ratio: float) -> float:
    """Return exp(ratio^2 / 2 - ratio z) Phi(z - ratio), without overflow for any ratio.

    With u = (ratio - z) / sqrt(2) it is exp(-z^2 / 2) erfcx(u) / 2, if u is not negative.
    """
    if z > ratio:
        return math.exp(ratio * (ratio / 2 - z)) * float(ndtr(z - ratio))
    return math.exp(-(z**2) / 2) * float(erfcx((ratio - z) / math.sqrt(2))) / 2


def lower_level(level: float, n: float, width: Callable[[float], float]) -> float | None:
    """Return the level whose draw is below the quantile with probability 39/40; None if none is.

    Let m be the true quantile of level q. The number of records below m is normal around q n with
    variance S^2 = n q (1 - q). A draw of the exponential mechanism at level q - a / n has Laplace
    noise in its rank, of scale b = 2 Delta / epsilon. It is below m with probability 39/40 if

        P(S Z + b L > a) = 1/40        Z normal, L Laplace

    (docs/proofs/inference.md, section 4).

    Parameters
    ----------
    level
        The level of the quantile.
    n
        The number of records, as far as known.
    width
        The noise scale in ranks, as a function of the level.
    """
    spread, low = math.sqrt(n * level * (1 - level)), level
    for _ in range(_ROUNDS):  # fixed point: the noise depends weakly on the level
        b = width(low)
        low = level - _away(spread, b) / n
        # A draw above all records costs n (1 - low) ranks.
        if low < FINEST or n * (1 - low) < _FAR * b:
            return None
    return low


def _away(normal: float, laplace: float) -> float:
    """Return the value that normal Z + laplace L exceeds with probability 1/40."""
    most = 9 * (normal + laplace)
    return float(brentq(lambda x: normal_laplace_tail(x, normal, laplace) - _TAIL, 0.0, most))


# Parts of the interval share: the number of records, and each of a column's two ends.
_COUNT_PART, _END_PART = 0.2, 0.4
# The setting that shows the epsilon of each query in a plan.
_EPSILONS = {"quantiles": "column_epsilon", "count": "count_epsilon", "ends": "end_epsilon"}


class Median(WithSummary, BaseEstimator):
    """A quantile of every column, by the exponential mechanism sampled exactly.

    The release is pure: one column spends no delta. Several columns are composed by the tightest
    accounting; with delta 0, epsilon is divided.

    Parameters
    ----------
    bounds : (low, high) or sequence of pairs
        A public interval for every column; records are clipped to it.
    quantile : float, default=0.5
        The level, between 0 and 1.
    whole : bool, sequence of bool or None, default=None
        Whether columns hold whole numbers, so that their quantiles are whole numbers. With None the
        type of the columns decides: integers are whole.
    inference : float, default=0.0
        The share of the budget (of epsilon) for intervals, which `summary` shows.
    epsilon, delta, relation, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`; delta is 0 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.location.estimators import Median
    >>> ages = np.random.default_rng(0).uniform(20, 60, (5000, 1))
    >>> bool(abs(Median(1.0, bounds=(0, 120)).fit(ages).location_[0] - 40) < 2)
    True
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        bounds: tuple[float, float] | Sequence[tuple[float, float]] = (-1.0, 1.0),
        quantile: float = 0.5,
        whole: bool | Sequence[bool] | None = None,
        inference: float = 0.0,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.quantile = quantile
        self.whole = whole
        self.inference = inference
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return the plan of a fit and its cost, without data."""
        check_shape(n_features, n_records)
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        warn_if_weak(budget, n_records)
        return column_plan(budget, n_features, self.inference)

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Release the quantile of every column of ``X``.

        ``unit`` names the person of each row; one row per person then counts (docs/people.md).
        """
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        level = QuantileLoss(self.quantile).level  # checked
        table, names = note_columns(self, X, unit=unit, sparse=False)
        budget = with_people(budget, has_people(table))
        if isinstance(table, UnreadRecords):
            table.read()  # refuses a source before the charge: a quantile sorts single values
        limits = np.broadcast_to(np.asarray(self.bounds, dtype=np.float64), (table.n_columns, 2))
        if not (np.all(np.isfinite(limits)) and np.all(limits[:, 0] < limits[:, 1])):
            raise ValueError(f"bounds must be finite pairs low < high, got {self.bounds!r}.")
        whole = _whole_columns(self.whole, X, table.n_columns)
        for (low, high), is_whole in zip(limits.tolist(), whole.value, strict=True):
            Quantile(level, low, high, whole=is_whole)  # refuses bounds without whole numbers
        warn_if_weak(budget)
        plan = column_plan(budget, table.n_columns, self.inference)
        source = source_of(self.random_state)

        released = release_answers(
            plan,
            lambda: MemoryRecords(dense_rows(table), None, Bounds()),
            lambda session: _quantiles_and_ends(
                session, plan, level, limits, whole.value, self.inference
            ),
            accountant=self.accountant,
            source=source,
            assumptions=assumptions_of(names, whole),
        )
        (self.location_, ends), self.privacy_ = released.value, released.privacy
        known = None
        if ends is not None:
            # Store the interval as its middle and its half-width over 1.96.
            known = Errors(ends.mean(axis=0), np.abs(ends[1] - ends[0]) / 2 / WITHIN)
        publish_errors(self, known, 0.0, None)
        return self


def _whole_columns(declared: Any, X: Any, n_columns: int) -> Fact[tuple[bool, ...]]:
    """Return which columns hold whole numbers: as declared, or by their type."""
    what = "the types of the columns, integer or not"
    if declared is not None:
        named = tuple(map(bool, np.broadcast_to(declared, n_columns)))
        return Fact(named, what)
    types = getattr(X, "dtypes", None)  # of a frame
    types = [getattr(X, "dtype", None)] * n_columns if types is None else list(types)
    found = tuple(str(each).lower().startswith(("int", "uint")) for each in types)
    # One record makes a column of floats of one of integers, so that a table of floats says as much
    # about its records as one of integers.
    typed = any(each is not None for each in types)
    return Fact(found, what, Provenance.CAME_WITH_DATA if typed else Provenance.DECLARED)


def _quantiles_and_ends(
    session: Session,
    plan: Plan,
    level: float,
    limits: Array,
    whole: Sequence[bool],
    inference: float,
) -> tuple[Array, Array | None]:
    """Ask for a quantile of each column and, if requested, for the ends of its interval."""
    if plan.budget.is_infinite:
        exact = session.without_noise(
            lambda records: _exact_quantiles(records, level, limits, whole)
        )
        return exact[0], exact[1:] if inference else None
    epsilon = {name: plan.settings[_EPSILONS[name]] for name in plan.paid}

    def quantiles(at: float, slot: str) -> Array:
        quantiles = [
            Quantile(at, low, high, j, whole=whole[j])
            for j, (low, high) in enumerate(limits.tolist())
        ]
        return np.array([session.ask(Selection(one, epsilon[slot]), slot) for one in quantiles])

    found = quantiles(level, "quantiles")
    if not inference:
        return found, None
    count = NoisySum(Count(Norm.L1), LaplaceNoise(epsilon["count"]))
    n = max(float(session.ask(count, "count")), 1.0)

    def width(at: float) -> float:
        return 2 * Quantile(at, 0.0, 1.0).rank_sensitivity(session.facts) / epsilon["ends"]

    # Mirrored, the upper end is a lower one.
    below, above = lower_level(level, n, width), lower_level(1 - level, n, width)
    # Planned draws are made in any case; an uninformative end is replaced by the column's limit.
    low = quantiles(FINEST if below is None else below, "ends")
    high = quantiles(1 - (FINEST if above is None else above), "ends")
    low = limits[:, 0] if below is None else low
    high = limits[:, 1] if above is None else high
    return found, np.array([low, high])


def _exact_quantiles(
    records: MemoryRecords, level: float, limits: Array, whole: Sequence[bool]
) -> Array:
    """Return the quantiles of columns without noise, and the two ends of their intervals."""
    clipped = np.clip(records.rows, limits[:, 0], limits[:, 1])
    away = WITHIN * math.sqrt(level * (1 - level) / max(len(clipped), 1))
    levels = np.clip([level, level - away, level + away], 0.0, 1.0)
    between = np.asarray(np.quantile(clipped, levels, axis=0))
    # The whole number of that rank, not one between two neighbours.
    ranked = np.asarray(np.quantile(np.rint(clipped), levels, axis=0, method="inverted_cdf"))
    return np.where(whole, ranked, between)


def column_plan(budget: Budget, n_columns: int, share: float = 0.0) -> Plan:
    """Return the plan of one exponential mechanism per column, and of two more per interval."""
    check_share(share)
    facts = Facts(Bounds(), n_columns, budget.relation)
    if budget.is_infinite:
        return replace(without_noise(budget), facts=facts)

    def slots(noise: float) -> dict[str, Slot]:
        each = 1 / noise
        paid = {"quantiles": Slot(selection_event((1 - share) * each, facts), Exactly(n_columns))}
        if share:
            end = selection_event(_END_PART * share * each, facts)
            count = LaplaceNoise(_COUNT_PART * share * each).event(facts)
            paid |= {"count": Slot(count), "ends": Slot(end, Exactly(2 * n_columns))}
        return paid

    paid = slots(least_noise(lambda noise: composed(slots(noise)), budget))
    reason = "the exponential mechanism, sampled exactly, once for each column"
    if share:
        reason += ", and twice for its interval, with their number"
    settings = {_EPSILONS[name]: slot.event.pure_epsilon() for name, slot in paid.items()}
    return Plan("quantile", composed(paid), budget, reason, settings, facts=facts, paid=paid)


class GeometricMedian(BaseEstimator):
    """The point with the least total distance to the records, robust in any dimension.

    Records are clipped to a ball around a public centre. Noisy gradient descent minimises the sum
    of distances within that ball.

    Parameters
    ----------
    row_norm : float or None
        Records farther than this from ``center`` are moved onto the ball. None is 1.0, with an
        `UndeclaredWarning`.
    center : array or None
        A public guess; 0 by default.
    epsilon, delta, relation, n_records, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.location.estimators import GeometricMedian
    >>> X = np.random.default_rng(0).normal([1.0, -1.0], 0.5, (10_000, 2))
    >>> GeometricMedian(1.0, 1e-6, row_norm=4.0).fit(X).location_.round(0)
    array([ 1., -1.])
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        center: Any = None,
        n_records: int | str | None = None,
        mechanism: MechanismName | Mechanism = "noisy_gradient",
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

    def plan(self, n_features: int, n_records: int | None = None) -> ErmPlan | Plan:
        """Return the plan of a fit, with its cost and predicted risk, without data."""
        check_shape(n_features, n_records)
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        if budget.is_infinite:
            return without_noise(budget)
        public = n_records_of(self.n_records, n_records, budget.relation)
        warn_if_weak(budget, public.value or n_records)
        objective = _within(ball_of(self.row_norm), public.value)
        problem = Problem(objective, n_features, n_records)
        return choose_plan(problem, budget, self.mechanism)

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Release the geometric median of the rows of ``X``, or of a `RecordSource`.

        ``unit`` names the person of each row, as in `tacit.linear_model.LogisticRegression`.
        """
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        resolved = with_table_facts(self, X)
        radius = ball_of(resolved.row_norm)
        table, names = note_columns(self, X, unit=unit, sparse=False)
        budget = with_people(budget, has_people(table))
        n_records = n_records_of(resolved.n_records, shown_rows(table), budget.relation)
        centre = centre_of(self.center, table)
        objective = _within(radius, n_records.value)
        warn_if_weak(budget, n_records.value)

        def centred(rows: Any, *_: Any) -> tuple[Array, None, None]:
            return np.asarray(rows, dtype=np.float64) - centre, None, None

        result = minimize_unread(
            when_paid_for(table, centred, objective.bounds),
            Problem(objective, table.n_columns, one_each=gives_one_each(table)),
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


def _within(radius: float, n_records: int | None) -> Objective:
    """Return the objective: the sum of distances, within a ball."""
    bounds = Bounds(row_norm=radius, n_records=n_records)
    return Objective(DistanceLoss(), bounds, 0.0, L2Ball(radius))
