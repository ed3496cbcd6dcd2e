"""Fit an additive model in a session: label sums, a joint fit, residual sums, calibration.

All queries are Gaussian and draw from one slot. The steps are

    bins      counts of a tree (`bins`)
    label     sums of y - rate in every bin; each column's curve by itself, smoothed
    joint     one linear fit on two features per column: the number itself, and its curve
    residual  passes over the columns with a curve: sums of residuals at the current model
    calibrate slope and intercept of the score, for two classes

A small table has bins and one linear fit on all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.additive.bins import Bins, LearnedBins, learn_bins
from tacit.additive.grid import GridColumn
from tacit.additive.planning import (
    CLIP_SHARE,
    SLOT,
    SMALL_TABLE,
    AdditivePlan,
    budget_of_noise,
)
from tacit.additive.smoothing import LEAST_GAIN, prior_correlation, smooth
from tacit.arrays import Array, Integers
from tacit.erm import NoisyGradient, Objective, Problem
from tacit.erm.losses import LogCoshLoss, LogisticLoss, Loss, SoftmaxLoss
from tacit.erm.preconditioning import SecondMoment
from tacit.estimators.predictors import RESIDUAL_SHARE
from tacit.queries import GaussianNoise, NoisySum, Session
from tacit.queries.noise import gaussian_parts, gaussian_rest
from tacit.queries.table_cells import (
    MOST_WEIGHT,
    STEPS,
    WEIGHT_UNIT,
    CellCounts,
    CellFeatures,
    CellModel,
    LabelKind,
    NumberLabels,
    ResidualCells,
    ResidualSums,
    ScoreCells,
    ScoreMoments,
    SeveralClasses,
    steps_of,
)
from tacit.records import Bounds
from tacit.records.bounds import INTERCEPT_SHARE

# The curvature of the residual sums, relative to that of a constant model: probabilities spread.
_SPREAD = 0.8
# The part of the label sums' share for counts of the same bins.
_COUNT_SHARE = 0.05
# An earlier pass of a column counts half as much as the next one.
_MEMORY = 0.5
# The calibration's table: cells of the score, and the limits of the slope.
_SCORE_CELLS = 12
_SLOPES = (0.5, 1.5)
# The prior standard deviation of a number's mean error, in units of half the label's range.
_SHIFT = 0.05
# Scores of a number count up to this many of their standard deviations from the mean.
_SCORE_RANGE = 2.5
# Residuals of a regression are clipped at this quantile; 0.8 to 0.97 make no difference.
_CLIP_QUANTILE = 0.9
# The table of absolute residuals: edges from 0.1 % of the label range to all of it.
_RESIDUAL_EDGES = np.geomspace(1e-3, 1.0, 26)[:-1]
# The least share of a class: a rate that noise makes 0 would be an infinite score.
_LEAST_RATE = 1e-3


@dataclass(frozen=True, eq=False)
class Line:
    """The feature of a number itself: clipped, mapped to [-1/2, 1/2], less a centre."""

    low: float
    high: float
    centre: float

    def of(self, numbers: Array) -> Array:
        """Return the feature; 0 for a missing value."""
        share = (np.clip(numbers, self.low, self.high) - self.low) / (self.high - self.low)
        feature: Array = np.where(np.isnan(share), 0.0, share - 0.5 - self.centre)
        return feature


@dataclass(frozen=True, eq=False)
class FittedTerm:
    """A term of one column: a step function over its bins plus a line.

    ``curve`` has shape (n_bins, n_outputs) and ``slope`` (n_outputs,). ``gain`` is the gain of
    the likelihood in the label sums. ``label_sums`` are sums of y - ``rate``, with noise of std
    ``sum_std``; ``counts`` and ``count_std`` are the counts that were released with them.
    """

    bins: Bins
    curve: Array
    slope: Array
    line: Line | None
    gain: float = 0.0
    selected: bool = False
    label_sums: Array | None = None
    sum_std: float = math.nan
    counts: Array | None = None
    count_std: float = math.nan
    rate: Array | None = None

    def of_cells(self) -> Array:
        """Return the term for every cell, shape (n_cells, n_outputs)."""
        values = self.curve[self.bins.bin_of]
        if self.line is not None and self.slope.any():
            line = np.append(self.line.of(self.bins.column.middles()), 0.0)
            values = values + line[:, None] * self.slope
        return values

    @property
    def is_zero(self) -> bool:
        """Whether the term is 0 everywhere."""
        return not (self.curve.any() or self.slope.any())

    def of_bins(self) -> Array:
        """Return the mean of the term over each bin's cells, shape (n_bins, n_outputs)."""
        if self.line is None or not self.slope.any():
            return self.curve
        line = np.append(self.line.of(self.bins.column.middles()), 0.0)
        sizes = np.maximum(np.bincount(self.bins.bin_of, minlength=self.bins.n_bins), 1)
        mean = np.bincount(self.bins.bin_of, weights=line, minlength=self.bins.n_bins) / sizes
        result: Array = self.curve + mean[:, None] * self.slope
        return result


@dataclass(frozen=True, eq=False)
class FittedAdditive:
    """What a fit releases: the terms, the intercept, and what the noisy count decided."""

    terms: tuple[FittedTerm, ...]
    intercept: Array
    n_records: float
    is_small: bool
    count_std: float


def fit_additive(
    session: Session, plan: AdditivePlan, grid: Sequence[GridColumn], kind: LabelKind
) -> FittedAdditive:
    """Ask all queries of a fit and return the model."""
    learned = learn_bins(session, SLOT, grid, kind, plan.noise["bins"], plan.max_bins)
    start = _Start.of(kind, learned)
    small = learned.n_records * plan.mu / len(grid) < SMALL_TABLE
    session.decide("small table", small)
    if small:
        others = [plan.noise[name] for name in ("bins", "calibration") if name in plan.noise]
        rest = gaussian_rest(plan.noise["everything"], others)
        terms, intercept = _linear_fit_on_bins(session, plan, learned, kind, rest)
    else:
        terms, start = _label_sums(session, plan, learned, kind, start)
        terms, intercept = _joint_fit(session, plan, terms, kind, start)
        terms, intercept = _residual_passes(session, plan, terms, intercept, kind, start)
    terms, intercept = _calibrated(session, plan, terms, intercept, kind, start, small)
    return FittedAdditive(tuple(terms), intercept, learned.n_records, small, learned.count_std)


@dataclass(frozen=True, eq=False)
class _Start:
    """The constant model, and the second derivative and variance of a residual under it.

    For classes both are p (1 - p). For a number the derivative is 1 and the variance that of y.
    """

    intercept: Array
    rate: Array
    curvature: Array
    variance: Array
    n_records: float
    unit: float  # of a curve: log-odds for classes, the deviation of y for a number

    @classmethod
    def of(cls, kind: LabelKind, learned: LearnedBins) -> _Start:
        """Return the constant model by the noisy sums over labels."""
        n, sums = learned.n_records, learned.label_sums
        if isinstance(kind, NumberLabels):
            mean, square = np.clip(sums / 1.75 / n, [-0.5, 0.0], [0.5, 0.25])
            # The variance of y is at least that of one percent of the range.
            variance = max(float(square - mean**2), 1e-4)
            one, rate = np.ones(1), np.array([mean])
            return cls(rate, rate, one, variance * one, n, math.sqrt(variance))
        rates = np.maximum(sums / max(float(np.maximum(sums, 0.0).sum()), 1.0), _LEAST_RATE)
        rates /= rates.sum()
        return cls._of_rates(rates, n)

    @classmethod
    def _of_rates(cls, rates: Array, n: float) -> _Start:
        if len(rates) == 2:
            rate = rates[1:]
            intercept = np.log(rate / (1 - rate))
        else:
            rate = rates
            intercept = np.log(rates)
        curvature = rate * (1 - rate)
        return cls(intercept, rate, curvature, curvature, n, 1.0)

    def corrected(self, kind: LabelKind, difference: Array) -> _Start:
        """Return the constant model with a better rate: label sums measure it again."""
        if isinstance(kind, NumberLabels):
            rate = np.clip(self.rate + difference, -0.5, 0.5)
            return replace(self, rate=rate, intercept=rate)
        rate = np.clip(self.rate + difference, _LEAST_RATE, 1 - _LEAST_RATE)
        rates = np.append(1 - rate, rate) if len(rate) == 1 else rate / rate.sum()
        return self._of_rates(rates, self.n_records)


def _weight(n_bins: int) -> float:
    """Return c_j with c_j^2 = sqrt(K_j), in whole eighths: more bins need less noise each."""
    eighths = round(n_bins**0.25 / WEIGHT_UNIT)
    return float(min(max(eighths, 1) * WEIGHT_UNIT, MOST_WEIGHT))


def _label_sums(
    session: Session, plan: AdditivePlan, learned: LearnedBins, kind: LabelKind, start: _Start
) -> tuple[list[FittedTerm], _Start]:
    """Ask for the sums of y - rate and the counts of every bin; smooth each column by itself.

    The tree's counts decided where bins end, and are biased by that. New counts are not.
    """
    weights = [_weight(bins.n_bins) for bins in learned.bins]
    groups = tuple(
        b.grouping(i, w) for i, (b, w) in enumerate(zip(learned.bins, weights, strict=True))
    )
    constant = CellModel(kind, steps_of(start.intercept), (None,) * len(groups))
    noises = gaussian_parts(plan.noise["label sums"], {"counts": _COUNT_SHARE, "sums": None})
    ends = np.cumsum([group.n_groups for group in groups])[:-1]
    query = NoisySum(ResidualSums(groups, constant), noises["sums"])
    std = query.noise_std(session.facts)
    parts = np.split(np.asarray(session.ask(query, SLOT)), ends)
    query = NoisySum(CellCounts(groups), noises["counts"])
    count_std = query.noise_std(session.facts)
    counts = np.split(np.asarray(session.ask(query, SLOT)), ends)
    rate = _prediction(constant)
    terms, totals, precisions = [], [], []
    for place, (tree, weight) in enumerate(zip(learned.bins, weights, strict=True)):
        sums, noise = parts[place] / weight, std / weight
        bins = tree.recounted(counts[place] / weight, count_std / weight)
        totals.append(sums.sum(axis=0))
        precisions.append(1.0 / (bins.n_bins * noise**2))
        # The rate is noisy, and a common shift looks like a curve: every column is centred.
        shares = bins.counts / bins.counts.sum()
        centred = sums - shares[:, None] * totals[-1]
        curve, gain = _smoothed(bins, centred, noise, start)
        term = FittedTerm(bins, curve, np.zeros(kind.n_outputs), _line(bins))
        terms.append(
            replace(
                term,
                gain=gain,
                selected=gain > LEAST_GAIN,
                label_sums=sums,
                sum_std=noise,
                counts=counts[place] / weight,
                count_std=count_std / weight,
                rate=rate,
            )
        )
    # Each column's total measures n (true rate - rate): their mean corrects the rate for nothing.
    found = np.average(totals, axis=0, weights=precisions)
    prior = learned.count_std**2
    shrink = prior / (prior + 1.0 / sum(precisions))
    return terms, start.corrected(kind, shrink * found / learned.n_records)


def _prediction(constant: CellModel) -> Array:
    """Return what a constant model predicts, as the residual sums compute it."""
    kind, scores = constant.labels, constant.intercept[None, :]
    zero = np.zeros(1, dtype=np.int64)
    predicted = zero - kind.residuals(scores, zero)[0] / STEPS
    if isinstance(kind, SeveralClasses):
        predicted[0] += 1.0  # the residual of class 0
    return np.asarray(predicted, dtype=np.float64)


def _smoothed(bins: Bins, sums: Array, noise: float, start: _Start) -> tuple[Array, float]:
    """Return the smoothed curve of every output, and the greatest gain."""
    correlation = prior_correlation(bins)
    curves, gains = [], []
    for output in range(sums.shape[1]):
        info = bins.counts * start.curvature[output]
        variance = (bins.counts * start.variance[output] + noise**2) / info**2
        found = smooth(sums[:, output] / info, variance, correlation, start.unit)
        curves.append(bins.centred(found.curve))
        gains.append(found.gain)
    return np.stack(curves, axis=1), max(gains)


def _line(bins: Bins) -> Line | None:
    """Return the linear feature of a number, clipped to its learned outer edges."""
    if bins.support is None:
        return None
    line = Line(*bins.support, 0.0)
    feature = np.append(line.of(bins.column.middles()), 0.0)
    sizes = np.maximum(np.bincount(bins.bin_of, minlength=bins.n_bins), 1)
    means = np.bincount(bins.bin_of, weights=feature, minlength=bins.n_bins) / sizes
    present = bins.counts[:-1] / bins.counts[:-1].sum()
    return replace(line, centre=float(present @ means[:-1]))


Feature = tuple[int, npt.NDArray[Any]]


def _joint_fit(
    session: Session,
    plan: AdditivePlan,
    terms: Sequence[FittedTerm],
    kind: LabelKind,
    start: _Start,
) -> tuple[list[FittedTerm], Array]:
    """Fit weights of all lines and curves together: columns are correlated."""
    features: list[Feature] = []
    makes: list[tuple[int, int | None, float]] = []  # column, output of its curve, factor
    for place, term in enumerate(terms):
        if term.line is not None:
            line = np.append(term.line.of(term.bins.column.middles()), 0.0)
            features.append((place, line.astype(np.float32)))
            makes.append((place, None, 1.0))
        for output in range(kind.n_outputs):
            largest = float(np.abs(term.curve[:, output]).max())
            if term.selected and largest > 0.0:
                scaled = term.curve[:, output] / (2 * largest)
                features.append((place, scaled[term.bins.bin_of].astype(np.float32)))
                makes.append((place, output, 1 / (2 * largest)))
    if "joint fit" not in plan.noise or not features:
        return list(terms), start.intercept
    weights, intercept = _linear_fit(session, plan, plan.noise["joint fit"], features, kind)
    fitted = [replace(term, curve=np.zeros_like(term.curve)) for term in terms]
    for (place, of_output, factor), weight in zip(makes, weights, strict=True):
        term = fitted[place]
        if of_output is None:
            fitted[place] = replace(term, slope=term.slope + weight)
        else:
            curve = terms[place].curve[:, of_output] * factor
            fitted[place] = replace(term, curve=term.curve + curve[:, None] * weight)
    return fitted, intercept


def _linear_fit(
    session: Session,
    plan: AdditivePlan,
    noise: GaussianNoise,
    features: Sequence[Feature],
    kind: LabelKind,
) -> tuple[Array, Array]:
    """Return weights, shape (n_features, n_outputs), and intercepts of a linear model.

    Noisy gradient descent, preconditioned by a noisy second moment: Gaussian noise throughout.
    """
    largest = _largest_norm(features)
    declared: dict[str, Any] = {"label_range": (-0.5, 0.5)}
    loss: Loss = LogCoshLoss(RESIDUAL_SHARE * 0.5, widens=True)
    unit = 1.0 / STEPS
    if not isinstance(kind, NumberLabels):
        n_classes = kind.n_classes if isinstance(kind, SeveralClasses) else 2
        declared, unit = {"n_classes": n_classes}, 1.0
        loss = LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)
    bounds = Bounds(
        row_norm=largest,
        intercept=INTERCEPT_SHARE * largest,
        # Records without a label do not count, nor do more than one of a person: unless REPLACE
        # fixes the number, the fit counts those that do.
        n_records=None if plan.budget.relation.adds_or_removes else plan.n_public,
        **declared,
    )
    problem = Problem(Objective(loss, bounds), len(features), one_each=True)
    mechanism = NoisyGradient(preconditioner=SecondMoment())
    inner = mechanism.plan(problem, budget_of_noise(noise, plan.budget))
    view = CellFeatures(tuple(features), bounds, unit)
    child = session.on(view).child(SLOT, inner)
    solved = inner.solve(child).weights.reshape(len(features) + 1, -1)
    child.close()
    return solved[:-1], bounds.intercept * solved[-1]


def _largest_norm(features: Sequence[Feature]) -> float:
    """Return the greatest norm of a row, whose columns choose their cells independently."""
    squares: dict[int, Array] = {}
    for place, feature in features:
        squares[place] = squares.get(place, 0.0) + feature.astype(np.float64) ** 2
    return math.sqrt(sum(float(square.max()) for square in squares.values())) * (1 + 2.0**-20)


def _linear_fit_on_bins(
    session: Session,
    plan: AdditivePlan,
    learned: LearnedBins,
    kind: LabelKind,
    noise: GaussianNoise,
) -> tuple[list[FittedTerm], Array]:
    """Fit one linear model on indicators of all bins and the numbers themselves."""
    features: list[Feature] = []
    terms = []
    for place, bins in enumerate(learned.bins):
        features += [(place, bins.bin_of == k) for k in range(bins.n_bins)]
        line = _line(bins)
        if line is not None:
            features.append((place, np.append(line.of(bins.column.middles()), 0.0)))
        empty = np.zeros((bins.n_bins, kind.n_outputs))
        terms.append(FittedTerm(bins, empty, np.zeros(kind.n_outputs), line, selected=True))
    weights, intercept = _linear_fit(session, plan, noise, features, kind)
    at = 0
    for place, term in enumerate(terms):
        k = term.bins.n_bins
        curve = weights[at : at + k]
        slope = weights[at + k] if term.line is not None else term.slope
        fitted = replace(term, curve=curve, slope=slope)
        # Indicators of all bins add up to 1: their common level belongs to the intercept.
        level = term.bins.counts @ fitted.of_bins() / term.bins.counts.sum()
        terms[place], intercept = replace(fitted, curve=curve - level), intercept + level
        at += k + (term.line is not None)
    return terms, intercept


@dataclass(eq=False)
class _Passes:
    """What the passes over one column observed of its curve's change, the latest last."""

    observed: list[Array] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)


def _residual_passes(
    session: Session,
    plan: AdditivePlan,
    terms: Sequence[FittedTerm],
    intercept: Array,
    kind: LabelKind,
    start: _Start,
) -> tuple[list[FittedTerm], Array]:
    """Correct the kept columns one at a time, by sums of residuals at the current model."""
    order = sorted((i for i, t in enumerate(terms) if t.selected), key=lambda i: -terms[i].gain)
    if "residual sums" not in plan.noise or not order:
        return list(terms), intercept
    whole = plan.noise["residual sums"]
    curvature, variance = _SPREAD * start.curvature, _SPREAD * start.variance
    model = _model(kind, intercept, terms)
    if isinstance(kind, NumberLabels):
        parts = gaussian_parts(whole, {"clip": CLIP_SHARE, "sums": None})
        whole = parts["sums"]
        clip, found = _residual_scale(session, model, parts["clip"])
        model = replace(model, labels=NumberLabels(clip))
        curvature, variance = start.curvature, np.array([found])
    weights = {i: _weight(terms[i].bins.n_bins) ** 2 for i in order}
    total = math.fsum(weights.values())
    shares = {str(i): weights[i] / total / plan.passes for i in order}
    noises = gaussian_parts(whole, shares)
    session.decide("columns of the residual sums", tuple(order))
    fitted = list(terms)
    changes = {i: np.zeros_like(terms[i].curve) for i in order}
    passes = {i: _Passes() for i in order}
    priors = {i: prior_correlation(terms[i].bins) for i in order}
    for _ in range(plan.passes):
        for i in order:
            bins = terms[i].bins
            query = NoisySum(ResidualSums((bins.grouping(i),), model), noises[str(i)])
            noise = query.noise_std(session.facts)
            sums = np.asarray(session.ask(query, SLOT))
            info = bins.counts[:, None] * curvature
            passes[i].observed.append(changes[i] + sums / info)
            passes[i].noise.append(noise)
            changes[i] = _remembered(bins, passes[i], info, variance, priors[i], start.unit)
            fitted[i] = replace(terms[i], curve=terms[i].curve + changes[i])
            model = _with_term(model, i, fitted[i])
    return fitted, intercept


def _remembered(
    bins: Bins, passes: _Passes, info: Array, variance: Array, prior: Array, unit: float
) -> Array:
    """Return the smoothed mean of all passes over a column; earlier ones count less.

    The records are the same in all passes: only the added noise averages.
    """
    ages = np.arange(len(passes.noise))[::-1]
    weights = _MEMORY**ages
    weights /= weights.sum()
    observed = np.tensordot(weights, np.array(passes.observed), axes=1)
    added = float(weights**2 @ np.array(passes.noise) ** 2)
    curves = []
    for output in range(observed.shape[1]):
        sampling = bins.counts * variance[output]
        spread = (sampling + added) / info[:, output] ** 2
        found = smooth(observed[:, output], spread, prior, unit)
        curves.append(bins.centred(found.curve))
    return np.stack(curves, axis=1)


def _residual_scale(
    session: Session, model: CellModel, noise: GaussianNoise
) -> tuple[float, float]:
    """Return the clip of residuals and their variance, by a table of absolute residuals."""
    edges = _RESIDUAL_EDGES
    query = NoisySum(ResidualCells(model, steps_of(edges)), noise)
    counts = np.maximum(np.asarray(session.ask(query, SLOT)), 0.0)
    if counts.sum() <= 0.0:
        return 1.0, 1.0
    shares = counts / counts.sum()
    tops = np.append(edges, 1.0)
    clip = float(tops[np.searchsorted(np.cumsum(shares), _CLIP_QUANTILE)])
    middles = (np.append(0.0, edges) + tops) / 2
    return clip, max(float(shares @ np.minimum(middles, clip) ** 2), 1e-8)


def _term_steps(term: FittedTerm) -> Integers | None:
    if term.is_zero:
        return None
    return np.asarray(steps_of(term.of_cells()), dtype=np.int32)


def _model(kind: LabelKind, intercept: Array, terms: Sequence[FittedTerm]) -> CellModel:
    return CellModel(kind, steps_of(intercept), tuple(map(_term_steps, terms)))


def _with_term(model: CellModel, place: int, term: FittedTerm) -> CellModel:
    """Return the model with one other term; the others stay the same objects."""
    terms = list(model.terms)
    terms[place] = _term_steps(term)
    return replace(model, terms=tuple(terms))


def _calibrated(
    session: Session,
    plan: AdditivePlan,
    terms: Sequence[FittedTerm],
    intercept: Array,
    kind: LabelKind,
    start: _Start,
    small: bool,
) -> tuple[list[FittedTerm], Array]:
    """Correct the slope of the score, and its intercept for two classes."""
    if "calibration" not in plan.noise or isinstance(kind, SeveralClasses):
        return list(terms), intercept
    model, noise = _model(kind, intercept, terms), plan.noise["calibration"]
    if isinstance(kind, NumberLabels):
        line = _line_of_scores(session, model, terms, intercept, start.n_records, noise)
        slope, shift = line[0], (1 - line[0]) * intercept + line[1]
    else:
        slope, added = _calibration_line(session, model, terms, intercept, noise, small)
        shift = np.array([added])
    fitted = [replace(t, curve=slope * t.curve, slope=slope * t.slope) for t in terms]
    return fitted, slope * intercept + shift


def _line_of_scores(
    session: Session,
    model: CellModel,
    terms: Sequence[FittedTerm],
    centre: Array,
    n_records: float,
    noise: GaussianNoise,
) -> tuple[float, float]:
    """Return slope and shift by which a number's scores, less the centre, best predict labels.

    A model that is mostly noise is shrunk to a constant. If the sums themselves are mostly noise,
    the slope stays near 1, the mean of its prior N(1, 1/4), and the shift near 0.
    """
    spread = min(_SCORE_RANGE * _score_spread(terms)[1], 1.0)
    scales = max(int(steps_of(spread)), 1), STEPS // 2
    query = NoisySum(ScoreMoments(model, int(steps_of(centre)[0]), *scales), noise)
    product, square, scores, labels = np.asarray(session.ask(query, SLOT))
    std, ratio = query.noise_std(session.facts), scales[0] / scales[1]
    # Covariances: u v = slope * h + noise, with h = u^2 in the units of the product.
    product -= scores * labels / n_records
    h = max(float(square - scores**2 / n_records), 0.0) * ratio
    prior = (2.0 * std) ** 2
    slope = float(np.clip((product * h + prior) / (h**2 + prior), 0.0, 1.0))
    # The mean label less the mean score; its noise is std * hypot(1, slope * ratio) / n.
    away = (labels - slope * ratio * scores) / n_records
    noise_of_mean = std * math.hypot(1.0, slope * ratio) / n_records
    shrink = _SHIFT**2 / (_SHIFT**2 + noise_of_mean**2)
    return slope, float(shrink * away * scales[1] / STEPS)


def _score_spread(terms: Sequence[FittedTerm]) -> tuple[float, float]:
    """Return mean and standard deviation of the sum of all terms, as if they were independent."""
    means, squares = [], []
    for term in terms:
        shares, values = term.bins.counts / term.bins.counts.sum(), term.of_bins()[:, 0]
        means.append(float(shares @ values))
        squares.append(float(shares @ values**2) - means[-1] ** 2)
    return math.fsum(means), math.sqrt(max(math.fsum(squares), 1e-4))


def _calibration_line(
    session: Session,
    model: CellModel,
    terms: Sequence[FittedTerm],
    intercept: Array,
    noise: GaussianNoise,
    small: bool,
) -> tuple[float, float]:
    """Return slope and shift of the log-odds, by a table of scores and classes."""
    # The scores' distribution, as if columns were independent; only the edges depend on it.
    mean, std = _score_spread(terms)
    centre = float(intercept[0]) + mean
    normal = NormalDist()
    cuts = np.array([normal.inv_cdf(k / _SCORE_CELLS) for k in range(1, _SCORE_CELLS)])
    edges = steps_of(centre + std * cuts)
    query = NoisySum(ScoreCells(model, edges), noise)
    counts = np.maximum(np.asarray(session.ask(query, SLOT)), 0.0)
    # The mean of a normal score in each cell: std * (density at its ends) / probability.
    density = np.array([0.0, *(normal.pdf(cut) for cut in cuts), 0.0])
    scores = centre + std * (density[:-1] - density[1:]) * _SCORE_CELLS
    # A small table's fit may be mostly noise: its slope may be 0.
    return _logistic_line(scores, counts, (0.0, _SLOPES[1]) if small else _SLOPES)


def _logistic_line(
    scores: Array, counts: Array, slopes: tuple[float, float]
) -> tuple[float, float]:
    """Return slope and shift of the logistic regression of counts on scores; 1 and 0 if unclear."""
    total = counts.sum(axis=1)
    if total.sum() < 1.0 or min(counts.sum(axis=0)) < 1.0:
        return 1.0, 0.0
    rows = np.column_stack([scores, np.ones_like(scores)])
    point = np.array([1.0, 0.0])
    for _ in range(30):
        p = 1.0 / (1.0 + np.exp(-np.clip(rows @ point, -30, 30)))
        gradient = rows.T @ (counts[:, 1] - total * p)
        hessian = (rows.T * (total * p * (1 - p))) @ rows + 1e-6 * np.eye(2)
        point = point + np.clip(np.linalg.solve(hessian, gradient), -1.0, 1.0)
    slope = float(np.clip(point[0], *slopes))
    shift = point[1]
    for _ in range(30):  # the intercept for the clipped slope
        p = 1.0 / (1.0 + np.exp(-np.clip(slope * scores + shift, -30, 30)))
        step = float((counts[:, 1] - total * p).sum() / max((total * p * (1 - p)).sum(), 1e-6))
        shift += min(max(step, -1.0), 1.0)
    return slope, float(shift)
