"""Compute figures and intervals from noisy counts: post-processing, at no further cost.

`docs/proofs/table_counts.md`, section 2, derives the variances. Estimates of counts are linear in
the release, and may be negative; published counts are non-negative whole numbers that add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.descriptive.intervals import (
    Acceptance,
    acceptance,
    count_intervals,
    first_reaching,
    monotone,
    non_negative,
    normal_interval,
    share_intervals,
    whole_numbers,
)
from tacit.descriptive.planning import SHOWN_BINS, DescriptionPlan
from tacit.queries.table_counts import MOMENT_WEIGHT, SQUARE_SHIFT, SQUARE_WEIGHT
from tacit.records.coded_table import LevelCells, NumberCells

Array = npt.NDArray[np.float64]

ALL = "all"
# Fewer records than this many standard deviations of their noisy number: figures are left out.
_LEAST_SIGNAL = 3.0
QUANTILES = {"q25": 0.25, "median": 0.5, "q75": 0.75}


class Figure(NamedTuple):
    """One figure with its intervals.

    ``low`` and ``high`` bound the figure of the population (noise and sampling) if ``about`` is
    "population", and the table's own figure (noise alone) if it is "table". ``table_low`` and
    ``table_high`` always bound the table's own. ``n`` is the published number of records of a share
    or count.
    """

    column: str
    figure: str
    level: str
    group: str
    value: float
    low: float
    high: float
    about: str
    table_low: float
    table_high: float
    n: int | None = None


def figures_of(plan: DescriptionPlan, totals: Array) -> tuple[Figure, ...]:
    """Return all figures of a release.

    Parameters
    ----------
    plan
        The plan of the release.
    totals
        The noisy counts and sums.
    """
    estimates = Estimates.of(plan, totals)
    groups = list(plan.levels_of_groups)
    views = [View(ALL, tuple(range(plan.counts.n_groups)))]
    views += [View(level, (place,)) for place, level in enumerate(groups)]
    found: list[Figure | _Share] = []
    for view in views:
        found.extend(estimates.sizes(view))
    for place in range(len(plan.cells)):
        if place == plan.counts.group:
            found.extend(_level_figures(estimates, place, views[0]))
            continue
        make = _number_figures if plan.counts.columns[place].numbers else _level_figures
        for view in views:
            found.extend(make(estimates, place, view))
    return _with_intervals(found, estimates.region)


@dataclass(frozen=True)
class _Share:
    """A figure whose intervals are computed with those of all others, at once.

    ``variance`` and ``fourth`` are polynomials in the share: of the noise in counts - p present.
    ``present`` is 1 for a count, which is about the table.
    """

    figure: Figure
    estimate: float
    present: float
    variance: Array
    fourth: Array


def _with_intervals(found: Sequence[Figure | _Share], region: Acceptance) -> tuple[Figure, ...]:
    """Compute the intervals of all shares and counts."""
    places = [place for place, one in enumerate(found) if isinstance(one, _Share)]
    shares = [one for one in found if isinstance(one, _Share)]
    counts = np.array([one.estimate for one in shares])
    present = np.array([one.present for one in shares])
    variance = np.stack([one.variance for one in shares])
    fourth = np.stack([one.fourth for one in shares])
    is_count = np.array([one.figure.about == "table" for one in shares])
    low, high = np.zeros((2, len(shares))), np.zeros((2, len(shares)))
    for place, sampling in enumerate((1.0, 0.0)):
        # Sampling adds present x p (1 - p).
        both = variance + np.outer(sampling * present, [0.0, 1.0, -1.0])
        chosen = ~is_count
        low[place, chosen], high[place, chosen] = share_intervals(
            counts[chosen], present[chosen], both[chosen], fourth[chosen], region
        )
        low[place, is_count], high[place, is_count] = count_intervals(
            counts[is_count], variance[is_count, 0], fourth[is_count, 0], region
        )
    figures: list[Any] = list(found)
    for i, place in enumerate(places):
        figures[place] = shares[i].figure._replace(
            low=float(low[0, i]),
            high=float(high[0, i]),
            table_low=float(low[1, i]),
            table_high=float(high[1, i]),
        )
    return tuple(figures)


@dataclass(frozen=True)
class View:
    """Some groups taken together: all, or one."""

    name: str
    groups: tuple[int, ...]


@dataclass(frozen=True)
class ColumnCounts:
    """Estimated counts of a column in a view, with what is needed for their variance.

    Parameters
    ----------
    counts
        One estimate a cell, moved to the estimated size of each group.
    whole
        The published counts: of shown bins or levels, and of missing values.
    cell_variance
        The noise variance of a count's deviation, summed over groups; a number or one a cell.
    size_variance
        The noise variance of the sum of all counts.
    fourth
        The fourth cumulant of a count's noise over its squared variance, divided by the groups.
    """

    counts: Array
    whole: npt.NDArray[np.int64]
    cell_variance: Array
    size_variance: float
    fourth: float

    @property
    def present(self) -> float:
        """The estimated number of present values."""
        return float(self.counts[:-1].sum())

    def variance(self, form: Array) -> tuple[float, float]:
        """Return the noise variance and the fourth cumulant of a linear form of the counts."""
        variance, fourth = self.polynomials(form, np.zeros(len(form)))
        return float(variance[0]), float(fourth[0])

    def polynomials(self, cells: Array, base: Array) -> tuple[Array, Array]:
        """Return variance and fourth cumulant of the form cells - p base, by powers of p."""
        c, b = cells - cells.mean(), base - base.mean()
        v, size = self.cell_variance, self.size_variance
        variance = np.array(
            [
                float(c * c @ v) + cells.mean() ** 2 * size,
                -2 * (float(c * b @ v) + cells.mean() * base.mean() * size),
                float(b * b @ v) + base.mean() ** 2 * size,
            ]
        )
        if not self.fourth:
            return variance, np.zeros(5)
        powers = [math.comb(4, k) * (-1) ** k * float(c ** (4 - k) * b**k @ v**2) for k in range(5)]
        return variance, self.fourth * np.array(powers)


class Estimates:
    """Least-squares estimates of all counts, with margins that add up."""

    def __init__(
        self,
        plan: DescriptionPlan,
        counts: Sequence[Array],
        sums: Sequence[Array | None],
        sizes: Array,
        size_variances: Array,
    ) -> None:
        self.plan, self._counts, self._sums = plan, counts, sums
        self._sizes, self._size_variances = sizes, size_variances
        self.region: Acceptance = acceptance(plan.confidence)
        n = plan.known_count
        total = round(max(float(sizes.sum()), 0.0)) if n is None else n
        self._whole_sizes = whole_numbers(non_negative(sizes, float(total)), total)
        self._whole = [
            self._whole_sizes[None, :]
            if place == plan.counts.group
            else np.stack(
                [
                    self._published(place, own, int(size))
                    for own, size in zip(found, self._whole_sizes, strict=True)
                ]
            )
            for place, found in enumerate(counts)
        ]

    def _published(self, place: int, counts: Array, size: int) -> npt.NDArray[np.int64]:
        """Return whole counts of the shown bins or levels, and of missing values, that add up.

        Missing values are told from present ones first: bins without records would otherwise move
        all other counts.
        """
        cells = self.plan.cells[place]
        shown = counts[:-1]
        if isinstance(cells, NumberCells):
            shown = np.add.reduceat(shown, [start for _, start, _ in shown_bins(cells)])
        halves = non_negative(np.array([shown.sum(), counts[-1]]), float(size))
        present, missing = whole_numbers(halves, size).tolist()
        return np.append(whole_numbers(non_negative(shown, float(present)), present), missing)

    @classmethod
    def of(cls, plan: DescriptionPlan, totals: Array) -> Estimates:
        """Split a release into columns, and make the sizes of groups agree."""
        counts, sums, start = [], [], 0
        for column in plan.counts.columns:
            n_groups = plan.counts.groups_of(column)
            size = n_groups * column.n_cells
            part = totals[start : start + size] / column.weight
            counts.append(part.reshape(n_groups, column.n_cells))
            start += size
            own = None
            if column.numbers:
                own = totals[start : start + 2 * n_groups].reshape(n_groups, 2)
                own = own / (column.weight * MOMENT_WEIGHT)
                start += 2 * n_groups
            sums.append(own)
        # Each column says how large each group is; one with fewer cells says it more precisely.
        group, weights, said = plan.counts.group, [], []
        for place, (column, found) in enumerate(zip(plan.counts.columns, counts, strict=True)):
            own_sizes, n_cells = found.sum(axis=1), column.n_cells
            if place == group:
                own_sizes, n_cells = found[0], 1
            weights.append(column.weight**2 / n_cells)
            said.append(own_sizes)
        shares = np.array(weights) / sum(weights)
        sizes = shares @ np.stack(said)
        variances = np.full(len(sizes), plan.noise_std**2 / sum(weights))
        if plan.known_count is not None:
            # The sum is public; each group takes an equal part of the difference.
            sizes = sizes + (plan.known_count - sizes.sum()) / len(sizes)
            variances = variances * (1 - 1 / len(sizes))
        adjusted = [
            found
            if place == group
            else found + ((sizes - found.sum(axis=1)) / found.shape[1])[:, None]
            for place, found in enumerate(counts)
        ]
        if group is not None:
            adjusted[group] = sizes[None, :]
        return cls(plan, adjusted, sums, sizes, variances)

    def column(self, place: int, view: View) -> ColumnCounts:
        """Return the counts of a column in a view."""
        plan, groups = self.plan, list(view.groups)
        if place == plan.counts.group:
            # Sizes of groups are independent: no constraint ties them.
            k = len(self._sizes)
            variance = self._size_variances * (
                k / (k - 1) if plan.known_count is not None and k > 1 else 1.0
            )
            size = 0.0 if plan.known_count is not None else float(self._size_variances.sum())
            return ColumnCounts(self._sizes, self._whole_sizes, variance, size, 0.0)
        column = plan.counts.columns[place]
        each = (plan.noise_std / column.weight) ** 2
        return ColumnCounts(
            self._counts[place][groups].sum(axis=0),
            self._whole[place][groups].sum(axis=0),
            np.full(column.n_cells, each * len(groups)),
            self.size_variance(view),
            plan.fourth / len(groups),
        )

    def size_variance(self, view: View) -> float:
        """Return the noise variance of the number of records of a view."""
        if self.plan.known_count is not None and view.name == ALL:
            return 0.0
        return float(self._size_variances[list(view.groups)].sum())

    def sums(self, place: int, view: View) -> tuple[Array, float, float]:
        """Return both sums of a number in a view, their noise variance and fourth cumulant."""
        found, column = self._sums[place], self.plan.counts.columns[place]
        assert found is not None
        each = (self.plan.noise_std / (column.weight * MOMENT_WEIGHT)) ** 2
        n = len(view.groups)
        return found[list(view.groups)].sum(axis=0), each * n, self.plan.fourth * each**2 * n

    def sizes(self, view: View) -> Iterator[_Share]:
        """Yield the number of records of a view; its interval is about the table."""
        groups = list(view.groups)
        figure = _figure("records", "count", "", view, int(self._whole_sizes[groups].sum()))
        variance = np.array([self.size_variance(view), 0.0, 0.0])
        yield _Share(figure, float(self._sizes[groups].sum()), 1.0, variance, np.zeros(5))


def _figure(column: str, figure: str, level: str, view: View, count: int) -> Figure:
    """Return a count without its interval."""
    nan = math.nan
    return Figure(
        column, figure, level, view.name, float(count), nan, nan, "table", nan, nan, count
    )


def _missing(name: str, view: View, own: ColumnCounts) -> Iterator[Figure | _Share]:
    """Yield how many values are missing, and their share of all records."""
    last = np.zeros(len(own.counts))
    last[-1] = 1.0
    variance, fourth = own.polynomials(last, np.zeros(len(last)))
    n = int(own.whole[-1])
    yield _Share(
        _figure(name, "missing", "", view, n), float(own.counts[-1]), 1.0, variance, fourth
    )
    everybody, total = np.ones(len(last)), int(own.whole.sum())
    yield from _shares(name, "missing share", view, own, [("", last, n)], everybody, total)


def _shares(
    name: str,
    figure: str,
    view: View,
    own: ColumnCounts,
    levels: Sequence[tuple[str, Array, int]],
    among: Array,
    whole: int,
) -> Iterator[Figure | _Share]:
    """Yield the shares of sets of cells, given with their published counts, among others."""
    total = float(among @ own.counts)
    # A denominator that may be 0 says nothing.
    is_known = total > _LEAST_SIGNAL * math.sqrt(own.variance(among)[0])
    for level, marks, n in levels:
        value = n / whole if whole and is_known else math.nan
        plain = Figure(name, figure, level, view.name, value, 0.0, 1.0, "population", 0.0, 1.0, n)
        if not is_known:
            yield plain
            continue
        variance, fourth = own.polynomials(marks, among)
        yield _Share(plain, float(marks @ own.counts), total, variance, fourth)


def _shares_of_present(
    name: str, figure: str, view: View, own: ColumnCounts, levels: Sequence[tuple[str, Array]]
) -> Iterator[Figure | _Share]:
    """Yield the shares of all levels or bins among present values."""
    whole = own.whole[:-1]
    counted = [(level, marks, int(n)) for (level, marks), n in zip(levels, whole, strict=True)]
    present = _present(len(own.counts))
    yield from _shares(name, figure, view, own, counted, present, int(whole.sum()))


def _present(n_cells: int) -> Array:
    """Mark the cells of present values: all but the last."""
    return (np.arange(n_cells) < n_cells - 1).astype(np.float64)


def _level_figures(estimates: Estimates, place: int, view: View) -> Iterator[Figure | _Share]:
    """Yield the figures of a column of levels."""
    cells = estimates.plan.cells[place]
    assert isinstance(cells, LevelCells)
    own = estimates.column(place, view)
    yield from _missing(cells.name, view, own)
    marks = np.eye(cells.n_cells)
    levels = [(level, marks[code]) for code, level in enumerate(cells.levels)]
    yield from _shares_of_present(cells.name, "share", view, own, levels)


def _number_figures(estimates: Estimates, place: int, view: View) -> Iterator[Figure | _Share]:
    """Yield the figures of a number."""
    cells = estimates.plan.cells[place]
    assert isinstance(cells, NumberCells)
    own = estimates.column(place, view)
    yield from _missing(cells.name, view, own)
    size_variance = own.variance(_present(cells.n_cells))[0]
    if own.present > _LEAST_SIGNAL * math.sqrt(size_variance) and own.present > 1:
        yield from _moments(estimates, place, view, own, size_variance)
        yield from _quantiles(estimates, cells, view, own)
    else:
        low, high = cells.column.lower, cells.column.upper
        span = high - low
        mean, sd = _names(cells)
        ends = {mean: (low, high), sd: (0.0, span / 2), **dict.fromkeys(QUANTILES, (low, high))}
        if cells.column.log:
            ends[sd] = (1.0, math.inf)
        for figure, (a, b) in ends.items():
            yield _about_population(cells, figure, view, math.nan, (a, b), (a, b))
    yield from _histogram(cells, view, own)


def _names(cells: NumberCells) -> tuple[str, str]:
    return ("geometric mean", "geometric sd") if cells.column.log else ("mean", "sd")


def _moments(
    estimates: Estimates, place: int, view: View, own: ColumnCounts, size_variance: float
) -> Iterator[Figure]:
    """Yield mean and standard deviation, on the scale of the column."""
    cells = estimates.plan.cells[place]
    assert isinstance(cells, NumberCells)
    (first, second), variance, fourth = estimates.sums(place, view)
    n, z = own.present, estimates.region.z
    mean = float(np.clip(first / n, -1.0, 1.0))
    # second = sum of 2 u^2 - 5/4
    square = (second / n + SQUARE_SHIFT) / SQUARE_WEIGHT
    spread = float(np.clip(square - mean**2, 0.0, 1.0))
    # d mean = (d first - mean d n) / n
    noise = (variance + mean**2 * size_variance) / n**2
    cumulant = fourth / n**4
    ends = [
        np.clip(normal_interval(mean, noise + sampled, cumulant, z), -1.0, 1.0)
        for sampled in (spread / n, 0.0)
    ]
    name, sd_name = _names(cells)
    yield _of_scale(cells, name, view, mean, ends)
    # d spread = d second / (2 n) - 2 mean d first / n + (2 mean^2 - (2 square - 5/4) / 2) d n / n
    by_size = 2 * mean**2 - (SQUARE_WEIGHT * square - SQUARE_SHIFT) / SQUARE_WEIGHT
    parts = (1 / SQUARE_WEIGHT, 2 * mean)
    noise = (variance * sum(p**2 for p in parts) + by_size**2 * size_variance) / n**2
    cumulant = fourth * sum(p**4 for p in parts) / n**4
    ends = [
        np.sqrt(np.clip(normal_interval(square - mean**2, noise + sampled, cumulant, z), 0.0, 1.0))
        for sampled in (_variance_of_variance(cells, own, mean, spread) / n, 0.0)
    ]
    (low, high), (table_low, table_high) = ends
    value, low, high, table_low, table_high = (
        _spread_of_scale(cells, float(units))
        for units in (math.sqrt(spread), low, high, table_low, table_high)
    )
    yield _about_population(cells, sd_name, view, value, (low, high), (table_low, table_high))


def _of_scale(
    cells: NumberCells, figure: str, view: View, unit: float, ends: Sequence[Array]
) -> Figure:
    (low, high), (table_low, table_high) = ends
    at = cells.values_at(np.array([unit, low, high, table_low, table_high]))
    value, low, high, table_low, table_high = map(float, at)
    return _about_population(cells, figure, view, value, (low, high), (table_low, table_high))


def _about_population(
    cells: NumberCells,
    figure: str,
    view: View,
    value: float,
    ends: tuple[float, float],
    table_ends: tuple[float, float],
) -> Figure:
    return Figure(cells.name, figure, "", view.name, value, *ends, "population", *table_ends)


def _spread_of_scale(cells: NumberCells, units: float) -> float:
    """Return a standard deviation in the column's unit; on a log scale the factor exp(sd)."""
    column = cells.column
    if not column.log:
        return units * (column.upper - column.lower) / 2
    start = math.log1p(0.0) if column.lower == 0.0 else math.log(column.lower)
    end = math.log1p(column.upper) if column.lower == 0.0 else math.log(column.upper)
    return math.exp(units * (end - start) / 2)


def _variance_of_variance(
    cells: NumberCells, own: ColumnCounts, mean: float, spread: float
) -> float:
    """Return mu_4 - sigma^4 of one value, from the histogram.

    Counts may be negative: made non-negative, their noise in the tails would enlarge mu_4.
    """
    fourth = float(own.counts[:-1] @ (_middles(cells) - mean) ** 4) / own.present
    # Two values at +-sigma have mu_4 = sigma^4; a value has (u - mean)^2 within 4.
    return float(np.clip(fourth - spread**2, 0.0, 4.0))


def _middles(cells: NumberCells) -> Array:
    """Return the middle of each bin, scaled to [-1, 1]."""
    if not cells.by_integers:
        return (np.arange(cells.n_bins) + 0.5) / cells.n_bins * 2 - 1
    column = cells.column
    middle = cells.edges()[:-1] + (cells.step - 1) / 2
    return np.clip((middle - column.lower) / (column.upper - column.lower) * 2 - 1, -1.0, 1.0)


def _quantiles(
    estimates: Estimates, cells: NumberCells, view: View, own: ColumnCounts
) -> Iterator[Figure]:
    """Yield quartiles: where the cumulative counts, made monotone, reach their rank."""
    n, z, n_bins = own.present, estimates.region.z, cells.n_bins
    below = np.clip(monotone(np.cumsum(own.counts[:-1])[:-1]), 0.0, n)
    cumulative = np.concatenate([[0.0], below, [n]])
    edges, crowded = np.arange(n_bins + 1.0), _crowded(own)
    by_number = cells.by_integers and cells.step == 1  # every bin is one number
    for figure, level in QUANTILES.items():
        rank = level * n
        at = first_reaching(cumulative, rank, edges)
        form = np.append((np.arange(n_bins) < at) - level, 0.0)
        variance, fourth = own.variance(form)
        uneven = 0.0 if by_number else _unevenness(own, min(int(at), n_bins - 1))
        ends = [
            (
                _at_rank(cells, cumulative, low - uneven, crowded),
                _at_rank(cells, cumulative, high + uneven, crowded, last=True),
            )
            for low, high in (
                normal_interval(rank, variance + sampled, fourth, z)
                for sampled in (n * level * (1 - level), 0.0)
            )
        ]
        value = _at_rank(cells, cumulative, rank)
        yield _about_population(cells, figure, view, value, ends[0], ends[1])


def _unevenness(own: ColumnCounts, place: int) -> float:
    """Bound the error of a rank inside a bin from spreading its values evenly.

    If the density is linear in the bin, with the slope to a neighbour, cumulative counts differ
    from even ones by at most |difference of the counts| / 8, in the middle of the bin.
    """
    counts = own.counts[:-1]
    beside = [counts[i] for i in (place - 1, place + 1) if 0 <= i < counts.size]
    return max((abs(float(counts[place] - other)) for other in beside), default=0.0) / 8


def _crowded(own: ColumnCounts) -> npt.NDArray[np.bool_]:
    """Mark the bins whose values cannot be taken for evenly spread: far more than in both beside.

    More than three times the greater neighbour, by more than four standard deviations of noise.
    """
    counts = np.concatenate([[0.0], np.maximum(own.counts[:-1], 0.0), [0.0]])
    beside = np.maximum(counts[:-2], counts[2:])
    noise = np.sqrt(10.0 * own.cell_variance[:-1])  # of count - 3 x neighbour
    return np.asarray(counts[1:-1] - 3.0 * beside > 4.0 * noise)


def _at_rank(
    cells: NumberCells,
    cumulative: Array,
    rank: float,
    crowded: npt.NDArray[np.bool_] | None = None,
    *,
    last: bool = False,
) -> float:
    """Return the number at which cumulative counts reach a rank.

    As the end of an interval (``crowded`` is given) it is moved to the edge of a crowded bin: the
    upper end (``last``) up, the lower one down.
    """
    if cells.by_integers and cells.step == 1:
        # The least whole number up to which there are as many values.
        place = int(np.searchsorted(cumulative[1:], rank, side="left"))
        return float(cells.edges()[min(place, cells.n_bins - 1)])
    at = first_reaching(cumulative, rank, np.arange(cells.n_bins + 1.0), last=last)
    if crowded is not None and crowded[min(int(at), cells.n_bins - 1)]:
        at = float(math.ceil(at) if last else math.floor(at))
    column = cells.column
    if cells.by_integers:
        value = math.ceil(column.lower) + cells.step * at
    else:
        value = float(cells.values_at(np.array(2 * at / cells.n_bins - 1)))
    if cells.whole:
        value = math.floor(value)
    return float(min(max(value, column.lower), column.upper))


def shown_bins(cells: NumberCells) -> list[tuple[str, int, int]]:
    """Return the published bins of a histogram: label, first and last cell (exclusive)."""
    size = -(-cells.n_bins // SHOWN_BINS)
    edges, found = cells.edges(), []
    for start in range(0, cells.n_bins, size):
        stop = min(start + size, cells.n_bins)
        low, high = float(edges[start]), float(edges[stop])
        if cells.by_integers:
            high = min(high - 1, math.floor(cells.column.upper))
            label = f"{low:.10g}" if low == high else f"{low:.10g} to {high:.10g}"
        else:
            label = f"{low:.4g} to {high:.4g}"
        found.append((label, start, stop))
    return found


def _histogram(cells: NumberCells, view: View, own: ColumnCounts) -> Iterator[Figure | _Share]:
    levels = []
    for label, start, stop in shown_bins(cells):
        marks = np.zeros(cells.n_cells)
        marks[start:stop] = 1.0
        levels.append((label, marks))
    yield from _shares_of_present(cells.name, "histogram", view, own, levels)
