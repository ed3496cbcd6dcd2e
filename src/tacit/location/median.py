"""Release quantiles of columns, with intervals, by the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr
from sklearn.base import BaseEstimator

from tacit.engine import Plan, release_answers, without_noise
from tacit.erm.inference.estimator_law import Errors
from tacit.erm.inference.plan import check_share
from tacit.erm.inference.standard_errors import WITHIN
from tacit.erm.losses import QuantileLoss
from tacit.estimators.parameters import (
    assumptions_of,
    budget_of,
    check_shape,
    source_of,
    warn_if_weak,
    with_people,
)
from tacit.estimators.summary import WithSummary, publish_errors
from tacit.estimators.tables import note_columns
from tacit.location.mean import Array, dense_rows
from tacit.noise import Norm
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.privacy.accounting.calibration import least_noise
from tacit.queries import (
    Count,
    Exactly,
    Facts,
    LaplaceNoise,
    NoisySum,
    Quantile,
    Selection,
    Session,
    Slot,
    composed,
    selection_event,
)
from tacit.records import Bounds, MemoryRecords, UnreadRecords
from tacit.records.lazy_table import has_people

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
    >>> from tacit.location.median import normal_laplace_tail
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
    inference : float, default=0.0
        The share of the budget (of epsilon) for intervals, which `summary` shows.
    epsilon, delta, relation, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`; delta is 0 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.location.median import Median
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
        warn_if_weak(budget)
        plan = column_plan(budget, table.n_columns, self.inference)
        source = source_of(self.random_state)

        released = release_answers(
            plan,
            lambda: MemoryRecords(dense_rows(table), None, Bounds()),
            lambda session: _quantiles_and_ends(session, plan, level, limits, self.inference),
            accountant=self.accountant,
            source=source,
            assumptions=assumptions_of(names),
        )
        (self.location_, ends), self.privacy_ = released.value, released.privacy
        known = None
        if ends is not None:
            # Store the interval as its middle and its half-width over 1.96.
            known = Errors(ends.mean(axis=0), np.abs(ends[1] - ends[0]) / 2 / WITHIN)
        publish_errors(self, known, 0.0, None)
        return self


def _quantiles_and_ends(
    session: Session, plan: Plan, level: float, limits: Array, inference: float
) -> tuple[Array, Array | None]:
    """Ask for a quantile of each column and, if requested, for the ends of its interval."""
    if plan.budget.is_infinite:
        exact = session.without_noise(lambda records: _exact_quantiles(records, level, limits))
        return exact[0], exact[1:] if inference else None
    epsilon = {name: plan.settings[_EPSILONS[name]] for name in plan.paid}

    def quantiles(at: float, slot: str) -> Array:
        quantiles = [Quantile(at, low, high, j) for j, (low, high) in enumerate(limits.tolist())]
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


def _exact_quantiles(records: MemoryRecords, level: float, limits: Array) -> Array:
    """Return the quantiles of columns without noise, and the two ends of their intervals."""
    clipped = np.clip(records.rows, limits[:, 0], limits[:, 1])
    away = WITHIN * math.sqrt(level * (1 - level) / max(len(clipped), 1))
    levels = np.clip([level, level - away, level + away], 0.0, 1.0)
    return np.asarray(np.quantile(clipped, levels, axis=0))


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
