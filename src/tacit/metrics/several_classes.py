"""A confusion matrix and a histogram for each class against the others."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.metrics.evaluation import ConfusionMatrix, Draws, Evaluation
from tacit.metrics.intervals import Form, counted, ratio
from tacit.metrics.losses import mean_log, mean_square
from tacit.metrics.planning import EvaluationPlan, refuse_noise, too_few
from tacit.metrics.two_classes import Histogram
from tacit.privacy import Guarantee
from tacit.queries.evaluation import SeveralClassCells

Array = npt.NDArray[np.float64]


def several_class_evaluation(
    plan: EvaluationPlan, cells: SeveralClassCells, sums: Array, privacy: Guarantee
) -> Evaluation:
    """Return the metrics of a noisy matrix and noisy histograms; refuse where they are noise."""
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
        found = Histogram(cells.edges, counts[half], spread[half])
        # Noise on a histogram is larger than on the matrix, by 1 / share.
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
        for name, cell in (("brier", _brier(cells)), ("log_loss", _log_loss(cells))):
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


def _brier(cells: SeveralClassCells) -> Array:
    """Return (p - 1[the class])^2 by cell; their sum over classes is the Brier score."""
    e = cells.edges
    return np.concatenate([mean_square(e), mean_square(1 - e[::-1])[::-1]])


def _log_loss(cells: SeveralClassCells) -> Array:
    """Return -log p where it is the class, and 0 where it is not."""
    return np.concatenate([np.zeros(cells.n_bins), mean_log(cells.edges)])
