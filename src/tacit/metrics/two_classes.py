"""Everything about two classes that a histogram of scores by class says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.metrics.evaluation import ConfusionMatrix, Curve, Draws, Evaluation
from tacit.metrics.intervals import Estimate, Form, counted, ratio
from tacit.metrics.losses import brier_cells, log_loss_cells
from tacit.metrics.planning import EvaluationPlan, refuse_noise, too_few
from tacit.privacy import Guarantee
from tacit.queries.evaluation import TwoClassCells

Array = npt.NDArray[np.float64]


def two_class_evaluation(
    plan: EvaluationPlan, cells: TwoClassCells, counts: Array, privacy: Guarantee
) -> Evaluation:
    """Return the metrics of noisy counts, label 0 first; refuse where they are but noise."""
    found = Histogram(cells.edges, counts, np.full(len(counts), plan.noise_std))
    refuse_noise(plan, float(counts.sum()))
    metrics = {"accuracy": found.accuracy()}
    refused, draws = {}, {}
    why = too_few(plan, min(found.n_zeros, found.n_ones))
    if why is None:
        metrics["auc"] = found.auc()
        draws = {"roc": found.roc, "precision_recall": found.precision_recall}
    else:
        refused["auc"] = why
    if plan.probabilities:
        metrics |= {"brier": found.brier(), "log_loss": found.log_loss()}
        metrics["calibration_bias"] = found.calibration_bias()
        draws["calibration"] = found.calibration
    return Evaluation(
        privacy,
        metrics,
        counted(np.ones(len(counts)), counts, found.noise),
        plan.noise_std,
        refused,
        found.confusion(tuple(cells.classes.tolist())),
        Draws(draws),
    )


class Histogram:
    """Counts of scores by bin, label 0 first, and what follows from them.

    Parameters
    ----------
    edges
        Of the bins, B + 1 of them.
    counts
        2 B noisy counts.
    noise
        The standard deviation of the noise on each.
    """

    def __init__(self, edges: Array, counts: Array, noise: Array) -> None:
        self.edges, self.counts, self.noise = edges, counts, noise
        self.n_bins = len(edges) - 1
        self.n_zeros = float(counts[: self.n_bins].sum())
        self.n_ones = float(counts[self.n_bins :].sum())
        # Which cells are above each inner edge, and which are of label 1.
        self._half = int(np.searchsorted(edges, 0.5))
        self._one = np.repeat([0.0, 1.0], self.n_bins)

    def _above(self, edge: int) -> Array:
        return np.tile((np.arange(self.n_bins) >= edge).astype(np.float64), 2)

    def _ratio(self, top: Any, bottom: Any, greatest: float = 1.0, least: float = 0.0) -> Estimate:
        return ratio(Form(top), Form(bottom), self.counts, self.noise, least, greatest)

    def accuracy(self) -> Estimate:
        """Return the share of records on their side of one half."""
        right = (self._above(self._half) == self._one).astype(np.float64)
        return self._ratio(right, np.ones_like(right))

    def brier(self) -> Estimate:
        """Return the mean squared distance of probability and label."""
        return self._ratio(brier_cells(self.edges), np.ones(2 * self.n_bins))

    def log_loss(self) -> Estimate:
        """Return the mean of -log of the probability of the true class."""
        return self._ratio(log_loss_cells(self.edges), np.ones(2 * self.n_bins), math.inf)

    def calibration_bias(self) -> Estimate:
        """Return the mean probability less the share of label 1."""
        middles = np.tile((self.edges[1:] + self.edges[:-1]) / 2, 2)
        return self._ratio(middles - self._one, np.ones(2 * self.n_bins), least=-1.0)

    def auc(self) -> Estimate:
        """Return the probability that a one scores above a zero.

        P N auc = sum over bins of ones_i zeros_j beats_ij, a product of independent noisy counts,
        so that noise leaves its mean as it is.
        """
        b, beats = self.n_bins, beats_in(self.edges)
        nothing = np.zeros(2 * b)
        return ratio(
            Form(nothing, _between(beats)),
            Form(nothing, _between(np.ones((b, b)))),
            self.counts,
            self.noise,
            0.0,
            1.0,
        )

    def confusion(self, classes: tuple[Any, ...]) -> ConfusionMatrix:
        """Return the confusion matrix at one half."""
        above = self._above(self._half)
        cells = [
            [counted(side * label, self.counts, self.noise) for side in (1 - above, above)]
            for label in (1 - self._one, self._one)
        ]
        return ConfusionMatrix(classes, tuple(map(tuple, cells)))

    def roc(self) -> Curve:
        """Return the share of ones above each edge, by the share of zeros above it."""
        zeros, ones = 1 - self._one, self._one
        edges = range(self.n_bins, -1, -1)
        x = [self._ratio(self._above(edge) * zeros, zeros) for edge in edges]
        y = [self._ratio(self._above(edge) * ones, ones) for edge in edges]
        name = "ROC: ones found, by zeros taken for ones"
        return _curve(name, "false positive rate", "true positive rate", x, y)

    def precision_recall(self) -> Curve:
        """Return the share of ones among those above an edge, by the share of ones found."""
        ones = self._one
        edges = range(self.n_bins - 1, -1, -1)
        x = [self._ratio(self._above(edge) * ones, ones) for edge in edges]
        y = [self._ratio(self._above(edge) * ones, self._above(edge)) for edge in edges]
        name = "Precision, by the share of ones found"
        return _curve(name, "recall", "precision", x, y, rising=False)

    def calibration(self) -> Curve:
        """Return the share of ones in each bin that holds more records than noise."""
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        points = []
        for place, middle in enumerate(middles):
            here = np.tile((np.arange(self.n_bins) == place).astype(np.float64), 2)
            share = self._ratio(here * self._one, here)
            if share.high - share.low < 1.0:
                points.append((Estimate(middle, middle, middle), share))
        x, y = [p[0] for p in points], [p[1] for p in points]
        name = "Calibration: the share of ones, by predicted probability"
        return _curve(name, "predicted probability", "share of ones", x, y, rising=False)


def beats_in(edges: Array) -> Array:
    """Return how often a one of bin i scores above a zero of bin j.

    1 if i > j, 0 if i < j, and within a bin 1/2 + (s1 - s0) / 6, for densities proportional to
    1 + s t on [-1, 1]. Slopes are those between the bins to either side, s_i n_i = sum of G_ij n_j,
    so that the sum over bins of ones_i zeros_i (s1_i - s0_i) / 6 is ones' (G' - G) zeros / 6. An
    area does not change when scores are stretched; widths are those of asin(sqrt(p)), even by
    default, in which densities near 0 and 1 are smoother.
    """
    even = np.arcsin(np.sqrt(edges))
    widths, middles = np.diff(even), (even[1:] + even[:-1]) / 2
    b = len(widths)
    slopes = np.zeros((b, b))
    for i in range(1, b - 1):
        reach = widths[i] ** 2 / (2 * (middles[i + 1] - middles[i - 1]))
        slopes[i, i + 1], slopes[i, i - 1] = reach / widths[i + 1], -reach / widths[i - 1]
    kernel: Array = np.tri(b) - 0.5 * np.eye(b) + (slopes.T - slopes) / 6
    return kernel


def _between(kernel: Array) -> Array:
    """Return the symmetric matrix S with x' S x = ones' kernel zeros, for x = (zeros, ones)."""
    b = len(kernel)
    square = np.zeros((2 * b, 2 * b))
    square[b:, :b], square[:b, b:] = kernel / 2, kernel.T / 2
    return square


def _curve(
    name: str,
    x_name: str,
    y_name: str,
    x: list[Estimate],
    y: list[Estimate],
    rising: bool = True,
) -> Curve:
    """Return points as a curve; one that must rise is made to, which costs nothing."""
    xs = np.array([point.value for point in x])
    ys = np.array([point.value for point in y])
    low, high = np.array([p.low for p in y]), np.array([p.high for p in y])
    if rising:
        xs, ys, low, high = (_risen(values) for values in (xs, ys, low, high))
    return Curve(name, x_name, y_name, xs, ys, low, high)


def _risen(values: Array) -> Array:
    """Return the least-squares rising sequence."""
    from sklearn.isotonic import isotonic_regression

    risen: Array = isotonic_regression(values)
    return risen
