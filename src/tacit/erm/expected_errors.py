"""Predict standard errors from public facts, and choose the share of a budget for them.

The law of a mechanism says how much noise its weights have, given the Hessian. A typical table
gives a typical Hessian, and the errors follow from it as they will from the released one
(docs/proofs/inference.md, section 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np

from tacit.arrays import Array
from tacit.erm.inference import (
    TINY,
    Middle,
    Noisy,
    PlanWithErrors,
    Total,
    clipping_norm,
    errors_of,
    hessian_statistic,
    plan_with_errors,
    squares_statistic,
)
from tacit.erm.plan import Law, Mechanism, MomentLaw, Plan, Problem
from tacit.privacy import Budget
from tacit.queries import GaussianNoise, NoisySum
from tacit.queries.hessian import ClippedNorms
from tacit.records import Bounds

if TYPE_CHECKING:
    from tacit.erm.losses import Loss

# Standard deviations of numbers as shares of their declared ranges lie evenly, on a logarithmic
# scale, between these. A uniform number has 0.29; a count with a generous range has 0.02 or less
# (Diabetes-130: eight numbers from 0.012 to 0.28, their geometric mean is 0.09).
_STDS = (0.3, 0.015)
# The share of records that the rarer of two classes is assumed to have.
TYPICAL_RARER = 0.25
# Noisy Hessians over which an expected standard error is a median; one for wide tables.
_REPLICATES, _WIDE = 5, 100
# Verdicts by the ratio of the standard error to the sampling error.
VERDICTS = ((1.25, "good"), (2.0, "fair"), (5.0, "wide"), (math.inf, "useless"))


@dataclass(frozen=True, eq=False)
class TypicalTable:
    """Means and covariances of features that a prediction assumes; no record is looked at.

    Parameters
    ----------
    means
        The mean of each feature, as encoded.
    covariance
        Their covariance matrix.
    rarer
        The share of the rarer of two classes.

    Examples
    --------
    >>> from tacit.erm.expected_errors import TypicalTable
    >>> from tacit.schema import Category, Number, Schema
    >>> schema = Schema((Number("age", 0, 100), Category("ward", ("A", "B"), reference="A")))
    >>> table = TypicalTable.of_columns([column.ranges() for column in schema.columns])
    >>> table.means.round(2), table.stds.round(2)
    (array([-0.37,  0.2 ]), array([0.07, 0.4 ]))
    """

    means: Array
    covariance: Array
    rarer: float = TYPICAL_RARER

    @classmethod
    def of_columns(
        cls, ranges: Sequence[Sequence[tuple[float, float]]], rarer: float = TYPICAL_RARER
    ) -> TypicalTable:
        """Return independent columns, given the range of each feature of each column.

        Features from 0 to 1 of one column are levels. The reference is the most frequent level, and
        the i-th level is i^2 times as rare. Other features are numbers: the first varies most over
        its range, the last least (`_STDS`). A number that varies little is near its lower bound, as
        counts are, and hard to tell from the intercept.
        """
        columns = [np.array(column, dtype=np.float64).reshape(-1, 2) for column in ranges]
        are_levels = [(ends[:, 0] == 0.0) & (ends[:, 1] == 1.0) for ends in columns]
        n_numbers = sum(int((~levels).sum()) for levels in are_levels)
        places = (np.arange(n_numbers) + 0.5) / max(n_numbers, 1)
        shares_of_range = iter(_STDS[0] * (_STDS[1] / _STDS[0]) ** places)
        means: list[float] = []
        blocks = []
        for ends, levels in zip(columns, are_levels, strict=True):
            share = ends.mean(axis=1)
            rarities = 1.0 / np.arange(1, levels.sum() + 2) ** 2
            share[levels] = rarities[1:] / rarities.sum()
            variances = share.copy()
            for place in np.flatnonzero(~levels):
                of_range, width = float(next(shares_of_range)), float(np.ptp(ends[place]))
                variances[place] = (of_range * width) ** 2
                share[place] = ends[place, 0] + min(0.5, 2 * of_range) * width
            block = np.diag(variances) - np.outer(share * levels, share * levels)
            means += share.tolist()
            blocks.append(block)
        covariance = np.zeros((len(means), len(means)))
        start = 0
        for block in blocks:
            end = start + len(block)
            covariance[start:end, start:end] = block
            start = end
        return cls(np.array(means), covariance, rarer)

    @classmethod
    def of_rows(
        cls, row_norm: float, n_features: int, rarer: float = TYPICAL_RARER, spread: float = 1.0
    ) -> TypicalTable:
        """Return centred features whose squares are a third of what the row norm allows.

        Their variances differ by the factor ``spread``.
        """
        variances = spread ** -((np.arange(n_features) + 0.5) / n_features)
        variances *= row_norm**2 / 3 / variances.sum()
        return cls(np.zeros(n_features), np.diag(variances), rarer)

    @property
    def stds(self) -> Array:
        """The standard deviation of each feature."""
        return np.sqrt(np.diagonal(self.covariance))

    def second_moment(self, bounds: Bounds) -> Array:
        """Return E x x', with the intercept's coordinate last and rows as long as is allowed."""
        moment = self.covariance + np.outer(self.means, self.means)
        scale = min(1.0, bounds.row_norm / math.sqrt(float(np.trace(moment))))
        means, moment = scale * self.means, scale**2 * moment
        if not bounds.intercept:
            return moment
        beside = bounds.intercept * means
        corner = np.array([[bounds.intercept**2]])
        return np.block([[moment, beside[:, None]], [beside[None, :], corner]])


@dataclass(frozen=True, eq=False)
class ExpectedErrors:
    """Standard errors that a plan predicts for standardised coefficients, without data.

    A standardised coefficient is the effect of one standard deviation of its feature.

    Parameters
    ----------
    n_records
        The number of records of the prediction.
    sampling
        The standard error of each coefficient without noise.
    total
        The standard error with noise.
    """

    n_records: int
    sampling: Array
    total: Array

    @property
    def sampling_error(self) -> float:
        """The median sampling error."""
        return float(np.median(self.sampling))

    @property
    def standard_error(self) -> float:
        """The median standard error."""
        return float(np.median(self.total))

    @property
    def ratio(self) -> float:
        """The median ratio of a standard error to its sampling error."""
        return float(np.median(self.total / self.sampling))

    @property
    def verdict(self) -> str:
        """One word: good, fair, wide or useless."""
        return next(word for most, word in VERDICTS if self.ratio <= most)


def expected_errors(
    plan: PlanWithErrors, n_records: int, table: TypicalTable | None = None
) -> ExpectedErrors:
    """Predict standard errors from public facts: the plan's noise on a typical Hessian.

    H = n E d2 E x x' and M = n E d1^2 E x x' for a typical table and typical records of the loss.
    Noise of the planned law is drawn on both, and `errors_of` computes the errors as it will for
    the release. Nothing is private, so that the draws are seeded.
    """
    law = plan.weights.mechanism.expected_law(plan.weights, n_records)
    # a loss of one score, as `check_has_errors` requires
    bounds, loss = law.objective.bounds, cast("Loss", law.objective.loss)
    if table is None:
        table = TypicalTable.of_rows(bounds.row_norm, plan.problem.n_features)
    moment = table.second_moment(bounds)
    # d2 and d1^2 of typical records, clipped as the statistics clip them
    scores, labels = loss.typical_records(bounds, table.rarer)
    limit, d1 = law.slope_limit, loss.d1(scores, labels)
    d2 = np.minimum(loss.d2(scores, labels), loss.usual_second_derivative)
    d2 = np.where(np.abs(d1) < limit, d2, 0.0)
    of_d2 = max(float(d2.mean()), TINY)
    of_squares = of_d2 if loss.is_likelihood else float(np.mean(np.clip(d1, -limit, limit) ** 2))
    hessian, middle = n_records * of_d2 * moment, n_records * of_squares * moment
    inverse = np.linalg.pinv(hessian)
    sampling = np.sqrt(np.diagonal(inverse @ middle @ inverse))

    sizes = d2 * float(np.trace(moment))
    remaining, std, total_std = _noise_on_hessian(plan, law, n_records, sizes)
    hessian, totals = remaining * hessian, Total(n_records * of_d2, total_std)
    d = len(moment)
    rng, found = np.random.default_rng(d), []
    truth = np.resize([1.0, -1.0], d) * plan.problem.typical_norm / math.sqrt(d)
    values, axes = np.linalg.eigh(hessian)
    for _ in range(_REPLICATES if d <= _WIDE else 1):
        if isinstance(law, MomentLaw):
            noisy = Noisy(hessian + law.gram_std * _symmetric(rng, d), 0.0)
            law = replace(law, gram=noisy.matrix)
        else:
            noisy = Noisy(hessian + std * _symmetric(rng, d), std)
        around = None
        if plan.squares is not None:
            statistic = squares_statistic(law, truth)
            noise = GaussianNoise(plan.squares.noise_multiplier)
            own = NoisySum(statistic, noise).noise_std(plan.facts)
            squares = Total(n_records * of_squares, own / statistic.total_weight)
            around = Middle(Noisy(middle + own * _symmetric(rng, d), own), squares, totals)
        weights = axes @ (law.share(np.maximum(values, TINY)) * (axes.T @ truth))
        found.append(errors_of(weights, law, noisy, around).standard_errors)
    stds = table.stds
    total = np.maximum(np.median(found, axis=0), sampling)
    return ExpectedErrors(n_records, stds * sampling[: stds.size], stds * total[: stds.size])


def _noise_on_hessian(
    plan: PlanWithErrors, law: Law, n_records: int, sizes: Array
) -> tuple[float, float, float]:
    """Return the share of H that clipping keeps, the noise on H, and on the sum of d2.

    ``sizes`` are the norms of typical records' parts of H, from which the clipping norm follows.
    """
    d, facts = plan.problem.dimension, plan.facts
    products = hessian_statistic(law, np.zeros(d))
    norms = ClippedNorms(
        products.coefficients, products.row_norm, products.has_matrix, products.has_total
    )
    std = NoisySum(norms, GaussianNoise(plan.clipping_norms.noise_multiplier)).noise_std(facts)
    total_std = std / norms.total_weight if norms.total_weight else 0.0
    if plan.hessian is None:
        return 1.0, 0.0, total_std
    noise = GaussianNoise(plan.hessian.noise_multiplier)
    sums = n_records * np.minimum(sizes[:, None], norms.limits).mean(axis=0)
    most = clipping_norm(norms.limits, sums, std, noise.multiplier, d)
    remaining = float(np.minimum(sizes, most).sum() / max(float(sizes.sum()), TINY))
    clipped = replace(products, has_total=False, most=most)
    return remaining, NoisySum(clipped, noise).noise_std(facts), total_std


def _symmetric(rng: np.random.Generator, d: int) -> Array:
    """Return symmetric noise with variance 1 on the diagonal and 1/2 off it."""
    noise = rng.standard_normal((d, d))
    result: Array = (noise + noise.T) / 2
    np.fill_diagonal(result, np.diagonal(noise))
    return result


# The shares that ``inference="auto"`` tries.
_SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
# Variances of features differ as those of numbers in their ranges do.
_SPREAD = (_STDS[0] / _STDS[1]) ** 2


def best_share(
    problem: Problem,
    budget: Budget,
    mechanism: str | Mechanism,
    n_records: int,
    table: TypicalTable | None = None,
) -> float:
    """Return the share of the budget that makes intervals shortest for this many records.

    A larger share leaves more noise on the weights and less on the Hessian. The least mean
    logarithm of the expected standard errors decides; public facts alone are used.

    Raises
    ------
    CannotSolve
        If standard errors are not derived for the problem or the mechanism.
    """
    if table is None:
        try:
            return _remembered(problem, budget, mechanism, n_records)
        except TypeError:  # a mechanism that holds an array is not hashable
            table = _uneven(problem)

    return best_of_shares(
        lambda share: plan_with_errors(problem, budget, mechanism, share), n_records, table
    )


def best_of_shares(
    plan_at: Callable[[float], Plan], n_records: int, table: TypicalTable | None = None
) -> float:
    """Return the share whose plan has the least mean logarithm of expected standard errors."""

    def size(share: float) -> float:
        plan = plan_at(share)
        assert isinstance(plan, PlanWithErrors), "a plan with a share for standard errors"
        return float(np.mean(np.log(expected_errors(plan, n_records, table).total)))

    return min(_SHARES, key=size)


def _uneven(problem: Problem) -> TypicalTable:
    row_norm = problem.objective.bounds.row_norm
    return TypicalTable.of_rows(row_norm, problem.n_features, spread=_SPREAD)


@lru_cache(maxsize=64)
def _remembered(
    problem: Problem, budget: Budget, mechanism: str | Mechanism, n_records: int
) -> float:
    """Return the best share for a typical table; `plan` and `fit` ask for the same."""
    return best_share(problem, budget, mechanism, n_records, _uneven(problem))
