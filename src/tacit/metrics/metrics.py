"""Compute metrics with intervals from noisy sums: regression, two classes, several classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.metrics.evaluation import (
    ConfusionMatrix,
    Curve,
    Draws,
    Estimate,
    Evaluation,
    Form,
    counted,
    ratio,
)
from tacit.metrics.planning import EvaluationPlan, refuse_noise, too_few
from tacit.privacy import Guarantee
from tacit.queries.evaluation import (
    ABSOLUTE,
    COUNT,
    LABEL,
    LABEL_SQUARE,
    SQUARE,
    NumberSums,
    SeveralClassCells,
    TwoClassCells,
)

Array = npt.NDArray[np.float64]


def mean_log(edges: Array) -> Array:
    """Return the mean of -log p over each bin: 1 - (u log u - l log l) / (u - l).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.metrics.metrics import mean_log
    >>> mean_log(np.array([0.0, 1.0]))
    array([1.])
    """
    inside = np.where(edges > 0.0, edges * np.log(np.where(edges > 0.0, edges, 1.0)), 0.0)
    result: Array = 1.0 - np.diff(inside) / np.diff(edges)
    return result


def mean_square(edges: Array) -> Array:
    """Return the mean of p^2 over each bin: (u^3 - l^3) / (3 (u - l))."""
    result: Array = np.diff(edges**3) / (3 * np.diff(edges))
    return result


def log_loss_cells(edges: Array) -> Array:
    """Return -log(1 - p) for label 0 and -log p for label 1, by bin."""
    return np.concatenate([mean_log(1 - edges[::-1])[::-1], mean_log(edges)])


def brier_cells(edges: Array) -> Array:
    """Return p^2 for label 0 and (1 - p)^2 for label 1, by bin."""
    return np.concatenate([mean_square(edges), mean_square(1 - edges[::-1])[::-1]])


def number_evaluation(
    plan: EvaluationPlan, cells: NumberSums, sums: Array, privacy: Guarantee
) -> Evaluation:
    """Return MSE, RMSE, MAE and R2; refuse them if they would be mostly noise."""
    refuse_noise(plan, float(sums[COUNT]))
    noise, w = np.full(5, plan.noise_std), cells.width
    one = Form(_at(COUNT))
    mse = ratio(Form(w * w * _at(SQUARE)), one, sums, noise, 0.0, w * w)
    metrics = {
        "mse": mse,
        "rmse": Estimate(*(math.sqrt(end) for end in (mse.value, mse.low, mse.high))),
        "mae": ratio(Form(w * _at(ABSOLUTE)), one, sums, noise, 0.0, w),
        "r2": r2(sums, noise),
    }
    return Evaluation(privacy, metrics, counted(_at(COUNT), sums, noise), plan.noise_std)


def r2(sums: Array, noise: Array) -> Estimate:
    """Return 1 - residual / total, the R2 of scikit-learn.

    residual = w^2 S_rr,  total = (w/2)^2 (S_uu - S_u^2 / n),  so
    1 - R2 = 4 n S_rr / (n S_uu - S_u^2)
    """
    nothing = np.zeros(5)
    residual = Form(nothing, 4 * _product(COUNT, SQUARE))
    total = Form(nothing, _product(COUNT, LABEL_SQUARE) - _product(LABEL, LABEL))
    lost = ratio(residual, total, sums, noise, 0.0, math.inf)
    return Estimate(1 - lost.value, 1 - lost.high, 1 - lost.low)


def _at(place: int) -> Array:
    row: Array = np.eye(5)[place]
    return row


def _product(one: int, other: int) -> Array:
    """Return the symmetric S with x' S x = x_one x_other."""
    square = np.zeros((5, 5))
    square[one, other] += 0.5
    square[other, one] += 0.5
    return square


def two_class_evaluation(
    plan: EvaluationPlan,
    cells: TwoClassCells,
    counts: Array,
    privacy: Guarantee,
    positive: Any = None,
) -> Evaluation:
    """Return the metrics of noisy counts, label 0 first; refuse those that would be noise.

    Curves are told for the class ``positive``, by default the second.
    """
    classes = tuple(cells.classes.tolist())
    found = Histogram(cells.edges, counts, np.full(len(counts), plan.noise_std), classes[1])
    of_positive = found.mirrored(classes[0]) if positive == classes[0] else found
    refuse_noise(plan, float(counts.sum()))
    metrics = {"accuracy": found.accuracy()}
    refused, draws = {}, {}
    why = too_few(plan, min(found.n_zeros, found.n_ones))
    if why is None:
        metrics["auc"] = found.auc()
        draws = {"roc": of_positive.roc, "precision_recall": of_positive.precision_recall}
    else:
        refused["auc"] = why
    if plan.probabilities:
        metrics |= {"brier": found.brier(), "log_loss": found.log_loss()}
        metrics["calibration_bias"] = of_positive.calibration_bias()
        draws["calibration"] = of_positive.calibration
    return Evaluation(
        privacy,
        metrics,
        counted(np.ones(len(counts)), counts, found.noise),
        plan.noise_std,
        refused,
        found.confusion(classes),
        Draws(draws),
        positive=of_positive.positive,
    )


class Histogram:
    """Noisy counts of scores by bin, label 0 first, and the metrics computed from them.

    Parameters
    ----------
    edges
        The B + 1 edges of the bins.
    counts
        2 B noisy counts.
    noise
        The standard deviation of the noise on each count.
    positive
        The name of label 1, for the titles of curves.
    """

    def __init__(
        self, edges: Array, counts: Array, noise: Array, positive: Any = "label 1"
    ) -> None:
        self.edges, self.counts, self.noise = edges, counts, noise
        self.positive = positive
        self.n_bins = len(edges) - 1
        self.n_zeros = float(counts[: self.n_bins].sum())
        self.n_ones = float(counts[self.n_bins :].sum())
        # Masks of the cells above each inner edge, and of the cells of label 1.
        self._half = int(np.searchsorted(edges, 0.5))
        self._one = np.repeat([0.0, 1.0], self.n_bins)

    def mirrored(self, positive: Any) -> Histogram:
        """Return the same counts by 1 - score, with the labels exchanged."""
        counts, noise = self.counts[::-1].copy(), self.noise[::-1].copy()
        return Histogram(1.0 - self.edges[::-1], counts, noise, positive)

    def _above(self, edge: int) -> Array:
        return np.tile((np.arange(self.n_bins) >= edge).astype(np.float64), 2)

    def _ratio(self, top: Any, bottom: Any, greatest: float = 1.0, least: float = 0.0) -> Estimate:
        return ratio(Form(top), Form(bottom), self.counts, self.noise, least, greatest)

    def accuracy(self) -> Estimate:
        """Return the share of records on the correct side of one half."""
        right = (self._above(self._half) == self._one).astype(np.float64)
        return self._ratio(right, np.ones_like(right))

    def brier(self) -> Estimate:
        """Return the mean squared difference of probability and label."""
        return self._ratio(brier_cells(self.edges), np.ones(2 * self.n_bins))

    def log_loss(self) -> Estimate:
        """Return the mean of -log of the probability of the true class."""
        return self._ratio(log_loss_cells(self.edges), np.ones(2 * self.n_bins), math.inf)

    def calibration_bias(self) -> Estimate:
        """Return the mean probability minus the share of label 1."""
        middles = np.tile((self.edges[1:] + self.edges[:-1]) / 2, 2)
        return self._ratio(middles - self._one, np.ones(2 * self.n_bins), least=-1.0)

    def auc(self) -> Estimate:
        """Return the probability that a record of label 1 scores above one of label 0.

        P N auc = sum over bins of ones_i zeros_j beats_ij, a product of independent noisy counts,
        so noise does not bias it.
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
        """Return the true positive rate at each edge, by the false positive rate."""
        zeros, ones = 1 - self._one, self._one
        edges = range(self.n_bins, -1, -1)
        x = [self._ratio(self._above(edge) * zeros, zeros) for edge in edges]
        y = [self._ratio(self._above(edge) * ones, ones) for edge in edges]
        name = f"ROC of {self.positive}: true positive rate, by false positive rate"
        return _curve(name, "false positive rate", "true positive rate", x, y)

    def precision_recall(self) -> Curve:
        """Return the precision at each edge, by the recall."""
        ones = self._one
        edges = range(self.n_bins - 1, -1, -1)
        x = [self._ratio(self._above(edge) * ones, ones) for edge in edges]
        y = [self._ratio(self._above(edge) * ones, self._above(edge)) for edge in edges]
        name = f"Precision of {self.positive}, by recall"
        return _curve(name, "recall", "precision", x, y, rising=False)

    def calibration(self) -> Curve:
        """Return the share of label 1 in each bin with more records than noise."""
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        points = []
        for place, middle in enumerate(middles):
            here = np.tile((np.arange(self.n_bins) == place).astype(np.float64), 2)
            share = self._ratio(here * self._one, here)
            if share.high - share.low < 1.0:
                points.append((Estimate(middle, middle, middle), share))
        x, y = [p[0] for p in points], [p[1] for p in points]
        share_of = f"share of {self.positive}"
        name = f"Calibration: {share_of}, by predicted probability"
        return _curve(name, "predicted probability", share_of, x, y, rising=False)


def beats_in(edges: Array) -> Array:
    """Return how often label 1 in bin i scores above label 0 in bin j.

    1 if i > j, 0 if i < j, and within a bin 1/2 + (s1 - s0) / 6, for densities proportional to
    1 + s t on [-1, 1]. Slopes are those between the neighbouring bins, s_i n_i = sum of G_ij n_j,
    so that the sum over bins of ones_i zeros_i (s1_i - s0_i) / 6 is ones' (G' - G) zeros / 6. The
    area is invariant under monotone maps of the scores; widths are those of asin(sqrt(p)), equal by
    default, in which densities near 0 and 1 are smoother.
    """
    even = np.arcsin(np.sqrt(edges))
    widths, middles = np.diff(even), (even[1:] + even[:-1]) / 2
    b = len(widths)
    slopes = np.zeros((b, b))
    for i in range(1, b - 1):
        overlap = widths[i] ** 2 / (2 * (middles[i + 1] - middles[i - 1]))
        slopes[i, i + 1], slopes[i, i - 1] = overlap / widths[i + 1], -overlap / widths[i - 1]
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
    """Return points as a curve; an increasing curve is fitted isotonically, at no cost."""
    xs = np.array([point.value for point in x])
    ys = np.array([point.value for point in y])
    low, high = np.array([p.low for p in y]), np.array([p.high for p in y])
    if rising:
        xs, ys, low, high = (_risen(values) for values in (xs, ys, low, high))
    return Curve(name, x_name, y_name, xs, ys, low, high)


def _risen(values: Array) -> Array:
    """Return the least-squares non-decreasing sequence."""
    from sklearn.isotonic import isotonic_regression

    risen: Array = isotonic_regression(values)
    return risen


def several_class_evaluation(
    plan: EvaluationPlan, cells: SeveralClassCells, sums: Array, privacy: Guarantee
) -> Evaluation:
    """Return the metrics of a noisy matrix and noisy histograms; refuse mere noise."""
    k = cells.n_classes
    matrix, noise = sums[: k * k], np.full(k * k, plan.noise_std)
    n_records = counted(np.ones(k * k), matrix, noise)
    refuse_noise(plan, float(matrix.sum()))
    one, right = Form(np.ones(k * k)), Form(np.eye(k).ravel())
    metrics = {"accuracy": ratio(right, one, matrix, noise, 0.0, 1.0)}
    counts = sums[k * k :] / cells.share
    spread = np.full(len(counts), plan.noise_std / cells.share)
    refused, draws = {}, {}
    for j, name in enumerate(cells.classes.tolist()):
        half = slice(2 * j * cells.n_bins, 2 * (j + 1) * cells.n_bins)
        found = Histogram(cells.edges, counts[half], spread[half], name)
        # Noise on a histogram is larger than on the matrix by the factor 1 / share.
        why = too_few(plan, min(found.n_zeros, found.n_ones) * cells.share)
        if why is None:
            metrics[f"auc {name}"], draws[f"roc {name}"] = found.auc(), found.roc
        else:
            refused[f"auc {name}"] = why
        if plan.probabilities:
            draws[f"calibration {name}"] = found.calibration
    if plan.probabilities:
        x, noisy = np.concatenate([matrix, counts]), np.concatenate([noise, spread])
        whole = Form(np.concatenate([np.ones(k * k), np.zeros(len(counts))]))
        # For the log loss, -log p for the true class and 0 for the others; over all classes, the
        # squares of `brier_cells` sum to the Brier score.
        log_loss = np.concatenate([np.zeros(cells.n_bins), mean_log(cells.edges)])
        for name, cell in (("brier", brier_cells(cells.edges)), ("log_loss", log_loss)):
            top = Form(np.concatenate([np.zeros(k * k), np.tile(cell, k)]))
            most = 2.0 if name == "brier" else math.inf
            metrics[name] = ratio(top, whole, x, noisy, 0.0, most)
    table = [[counted(np.eye(k * k)[i * k + j], matrix, noise) for j in range(k)] for i in range(k)]
    confusion = ConfusionMatrix(tuple(cells.classes.tolist()), tuple(map(tuple, table)))
    return Evaluation(
        privacy,
        metrics,
        n_records,
        plan.noise_std,
        refused,
        confusion,
        Draws(draws),
    )
