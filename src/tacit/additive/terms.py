"""Describe the term of one column of a fitted additive model: everything in it is released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.additive.fitting import FittedTerm
from tacit.additive.grid import GridColumn
from tacit.additive.shape_plot import ShapePlot
from tacit.arrays import Array, Integers
from tacit.io.values import Values
from tacit.schema.columns import Column

# Two-sided 95 % of a normal distribution.
_INTERVAL = 1.959963984540054
# A bin that holds fewer standard deviations of noise than this cannot be seen.
_SEEN = 3.0


@dataclass(frozen=True, eq=False)
class Term:
    """The term of one column: a step function over its bins, plus a line for a number.

        term(x) = curve[bin of x] + slope ((clip(x, low, high) - low) / (high - low) - 1/2 - centre)

    Parameters
    ----------
    column
        The column as the schema declares it.
    levels
        The bins in words; the last is for missing values.
    edges
        The inner edges of a number's bins; None for words.
    bin_of_level
        The bin of each declared word, and of missing values at the end; None for a number.
    curve
        The steps, shape (n_bins, n_outputs).
    slope, low, high, centre
        The line of a number; a slope of zeros without one.
    counts, count_std
        The noisy number of records in each bin, and the standard deviation of its noise.
    label_mean, label_mean_interval
        The mean label in each bin, shape (n_bins, n_outputs), and 95 % intervals for the noise
        in it, shape (n_bins, n_outputs, 2). They do not hold sampling error. NaN in a small table,
        for which no label sums are released.
    kept
        Whether label sums showed more than noise.
    gain
        The gain of the log likelihood by which this was decided, in nats.
    """

    column: Column
    levels: tuple[str, ...]
    edges: Array | None
    bin_of_level: Integers | None
    curve: Array
    slope: Array
    low: float
    high: float
    centre: float
    counts: Array
    count_std: Array
    label_mean: Array
    label_mean_interval: Array
    kept: bool
    gain: float

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name

    @property
    def is_zero(self) -> bool:
        """Whether the column does not count in the model."""
        return not (self.curve.any() or self.slope.any())

    @property
    def can_be_seen(self) -> Any:
        """Whether each bin holds more than three standard deviations of its noise."""
        return self.counts > _SEEN * self.count_std

    def scores(self, values: Values) -> Array:
        """Return the term for each value, shape (n, n_outputs)."""
        grid = GridColumn(self.column)
        if self.edges is None:
            assert self.bin_of_level is not None
            return np.asarray(self.curve[self.bin_of_level[grid.cells(values)]])
        # The middle of a value's cell, as in the fit: a line inside of one cell was not learned.
        numbers = np.append(grid.middles(), math.nan)[grid.cells(values)]
        absent = np.isnan(numbers)
        bins = np.searchsorted(self.edges, numbers, side="right")
        bins[absent] = len(self.curve) - 1
        share = (np.clip(numbers, self.low, self.high) - self.low) / (self.high - self.low)
        line = np.where(absent, 0.0, share - 0.5 - self.centre)
        return np.asarray(self.curve[bins] + line[:, None] * self.slope)

    def ranges(self) -> list[float]:
        """Return the greatest less the least value of the term, for each output."""
        found = []
        for output in range(self.curve.shape[1]):
            ends = [end for pair in ShapePlot(self, output).ends() for end in pair]
            found.append(max(ends) - min(ends))
        return found

    def to_svg(self, output: int = 0) -> str:
        """Return the shape plot of the term as SVG; `AdditiveClassifier.plot` names its units.

        Parameters
        ----------
        output
            The place of the class in ``classes_``, for several classes; 0 otherwise.
        """
        n_outputs = self.curve.shape[1]
        if not 0 <= output < n_outputs:
            raise ValueError(
                f"output must be from 0 to {n_outputs - 1}, got {output!r}: the term of "
                f"{self.name!r} has {n_outputs}."
            )
        return ShapePlot(self, output).to_svg()

    def __repr__(self) -> str:
        what = "kept" if self.kept else "no more than noise"
        return f"Term({self.name!r}, {len(self.levels)} bins, {what})"


@dataclass(frozen=True)
class LabelUnits:
    """The units of labels: label = origin + unit * fitted label, within limits."""

    origin: float = 0.0
    unit: float = 1.0
    least: float = 0.0
    most: float = 1.0

    def of(self, fitted: Array) -> Array:
        """Return fitted labels in their own units, within the limits."""
        return np.clip(self.origin + self.unit * fitted, self.least, self.most)


def term_of(fitted: FittedTerm, units: LabelUnits) -> Term:
    """Return the released term of a column, in the label's units."""
    bins, line = fitted.bins, fitted.line
    low, high, centre = (0.0, 1.0, 0.0) if line is None else (line.low, line.high, line.centre)
    mean, interval = _label_means(fitted)
    return Term(
        column=bins.column.column,
        levels=bins.names,
        edges=bins.edges,
        bin_of_level=None if bins.column.is_number else bins.bin_of,
        curve=units.unit * fitted.curve,
        slope=units.unit * fitted.slope,
        low=low,
        high=high,
        centre=centre,
        counts=bins.counts,
        count_std=bins.count_std,
        label_mean=units.of(mean),
        label_mean_interval=units.of(interval),
        kept=fitted.selected,
        gain=fitted.gain,
    )


def _label_means(fitted: FittedTerm) -> tuple[Array, Array]:
    """Return the mean label in each bin and its 95 % interval, of noise in sum and count.

    The mean is rate + g / c. At the true m = mean - rate, g - m c has mean 0 and variance
    s_g^2 + m^2 s_c^2. The interval holds all m with (g - m c)^2 of at most 1.96^2 times that
    (Fieller 1954); it is everything if the count is within its noise.
    """
    shape = fitted.curve.shape
    if fitted.label_sums is None:
        return np.full(shape, math.nan), np.full((*shape, 2), math.nan)
    rate, own = fitted.rate, fitted.counts
    assert rate is not None  # released with the label sums
    assert own is not None
    g, c = fitted.label_sums, own[:, None]
    of_count = (_INTERVAL * fitted.count_std) ** 2
    of_sum = (_INTERVAL * fitted.sum_std) ** 2
    # (c^2 - z^2 s_c^2) m^2 - 2 g c m + g^2 - z^2 s_g^2 = 0
    a, b, rest = c**2 - of_count, g * c, g**2 - of_sum
    inside = np.maximum(b**2 - a * rest, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (b - np.sqrt(inside)) / a, (b + np.sqrt(inside)) / a
    is_clear = (a > 0.0) & (c > 0.0)
    low, high = np.where(is_clear, low, -np.inf), np.where(is_clear, high, np.inf)
    return rate + g / np.maximum(c, 1.0), rate[..., None] + np.stack([low, high], axis=-1)
