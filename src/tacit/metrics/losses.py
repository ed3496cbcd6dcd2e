"""The mean of a loss over a bin, for scores spread evenly in it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def mean_log(edges: Array) -> Array:
    """Return the mean of -log p over each bin: 1 - (u log u - l log l) / (u - l).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.metrics.losses import mean_log
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
