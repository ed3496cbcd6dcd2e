"""Choose public bin edges for histograms of scores, and predict their error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks

Array = npt.NDArray[np.float64]

CHOICES = (16, 32, 64)
MOST_BINS, USUAL_BINS = 64, 32
# Error of the area under a curve due to B bins of crowded scores: BIN_ERROR / B^2 (measured on
# Diabetes-130, where nine scores in ten lie between 0.05 and 0.24).
BIN_ERROR = 1.0


def bin_edges(n_bins: int) -> Array:
    """Return the edges of ``n_bins`` bins from 0 to 1, narrower near both ends.

    Edges are at equal steps of asin(sqrt(p)), which stabilises the variance of a share p of a
    sample: a rare class, whose scores are all near 0, is resolved as finely as a
    frequent one. One half is always an edge, so that the decisions of a classifier at one half
    follow exactly from the bins.

    Examples
    --------
    >>> from tacit.metrics.histogram import bin_edges
    >>> bin_edges(4).round(3), bin_edges(3).round(3)
    (array([0.   , 0.146, 0.5  , 0.854, 1.   ]), array([0.  , 0.25, 0.5 , 1.  ]))
    """
    n_bins = checks.count("bins", n_bins, least=2, most=4096, remedy="64 do for any table.")
    edges: Array = np.sin(np.linspace(0.0, math.pi / 2, n_bins + 1)) ** 2
    edges[1 + int(np.argmin(np.abs(edges[1:-1] - 0.5)))] = 0.5
    return edges


def checked_edges(edges: Any) -> Array:
    """Check edges given by the user; they rise from 0 to 1 and include one half."""
    given = np.asarray(edges, dtype=np.float64)
    rising = given.ndim == 1 and len(given) > 2 and bool(np.all(np.diff(given) > 0))
    if not rising or given[0] != 0.0 or given[-1] != 1.0 or 0.5 not in given:
        raise ValueError(
            "bins must be a number, or edges that rise from 0 to 1 with 0.5 among them."
        )
    return given


def good_bins(noise_std: float, n_records: int | None) -> int:
    """Return the number of bins with the least error: noise favours few, resolution many.

    The area under the ROC curve has noise of about 0.4 noise_std sqrt(B) / min(P, N), and an
    error of about 1 / B^2 from B bins. The rarer class is assumed to be a quarter of the records;
    if their number is unknown, the result is 32.

    Examples
    --------
    >>> from tacit.metrics.histogram import good_bins
    >>> good_bins(36.3, 16_000), good_bins(4.22, 16_000), good_bins(0.0, 100)
    (16, 32, 64)
    """
    if noise_std == 0.0:
        return MOST_BINS
    if n_records is None:
        return USUAL_BINS

    def error(n_bins: int) -> float:
        return math.hypot(auc_std(noise_std, n_bins, n_records / 4), BIN_ERROR / n_bins**2)

    return min(CHOICES, key=error)


def auc_std(noise_std: float, n_bins: int, rarer: float) -> float:
    """Return the approximate standard deviation of the noise on the area under the ROC curve."""
    return 0.4 * noise_std * math.sqrt(n_bins) / max(rarer, 1.0)


def accuracy_std(noise_std: float, n_bins: int, n_records: float, accuracy: float = 1.0) -> float:
    """Return the noise on an accuracy a: sigma sqrt(B (a^2 + (1 - a)^2)) / n.

    B cells of correct answers and B of wrong ones: accuracy = C / (C + W) has derivatives
    (1 - a) / n and -a / n.
    """
    a = accuracy
    return noise_std * math.sqrt(n_bins * (a * a + (1 - a) ** 2)) / max(n_records, 1.0)


def squashed(scores: Array) -> Array:
    """Return 1 / (1 + exp(-score)), which preserves the order and maps 0 to one half."""
    from scipy.special import expit

    probabilities: Array = expit(scores)
    return probabilities
