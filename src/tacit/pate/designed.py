"""Public rows whose answers tell a linear student the most: a Bayesian D-optimal design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.records import as_rows

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DesignedQueries:
    """The rows whose answers tell a linear student the most, each given those before it.

    Answers are noisy, and a row far from the middle, in a direction that was not asked about yet,
    moves a line more than a common one. For a linear student and teachers who barely agree; a
    student that goes by neighbours wants `KMeansQueries`.

    Parameters
    ----------
    ridge
        What is believed beforehand, in answers: 1 says that the score of a row of mean length is
        as uncertain as one answer is noisy, so that the first answer along a direction and what was
        believed count alike. Less asks about every direction, however short rows are along it;
        more, about the longest rows, whatever was asked before.

    Notes
    -----
    With x the rows less their mean (an intercept is learned besides), m their mean squared length
    and A = (ridge m I + sum of x x' over the rows asked so far)^-1, the next row has the greatest
    x' A x. That is the greedy maximum of log det of the information on the weights (Chaloner and
    Verdinelli 1995, section 2.2), at least 1 - 1/e of what any choice gains, since the gain
    is submodular. Exact; (rows + queries) x columns for each query; ties go to the first row.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate import DesignedQueries
    >>> pool = np.array([[3.0, 0.0], [-3.1, 0.0], [0.0, 2.5], [0.0, -2.4]])
    >>> DesignedQueries().places(pool, 2)  # the longest, then another direction
    array([1, 2])
    """

    ridge: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("ridge", self.ridge)

    def places(self, pool: Any, n_queries: int) -> Places:
        """Return distinct places, those that tell the most first."""
        rows = _scaled(pool)
        if n_queries > rows.shape[0]:
            raise ValueError(
                f"n_queries is {n_queries}, and the pool has {rows.shape[0]} rows; pass fewer "
                "queries or more public rows."
            )
        mean = np.asarray(rows.mean(axis=0)).ravel()
        squares = _squared_lengths(rows, mean)
        # Rows that are all alike have length 0, and any of them will do.
        believed = self.ridge * float(squares.mean()) or 1.0
        left = squares / believed  # x' A x, or -inf of a row that was asked about
        steps = np.zeros((n_queries, rows.shape[1]))  # A = I / believed - steps' steps
        chosen = np.empty(n_queries, dtype=np.int64)
        for i in range(n_queries):
            chosen[i] = at = int(np.argmax(left))
            row = _dense(rows[[at]]) - mean
            # Sherman and Morrison: A - A x x' A / (1 + x' A x) = A - step step'
            step = row / believed - (steps[:i] @ row) @ steps[:i]
            steps[i] = step / np.sqrt(1.0 + max(float(row @ step), 0.0))
            left -= (rows @ steps[i] - mean @ steps[i]) ** 2
            left[at] = -np.inf
        return chosen


def _scaled(pool: Any) -> Any:
    """Return finite rows, divided by their greatest value: the design has no unit."""
    rows, _ = as_rows(pool)
    largest = float(abs(rows).max())
    return rows.astype(np.float64) / (largest or 1.0)


def _dense(row: Any) -> Array:
    return np.asarray(row.toarray() if hasattr(row, "tocsr") else row).ravel()


def _squared_lengths(rows: Any, mean: Array) -> Array:
    """Return |x - mean|^2 = |x|^2 - 2 x' mean + |mean|^2 of each row, without filling zeros in."""
    if hasattr(rows, "tocsr"):
        own = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        lengths: Array = np.maximum(own - 2.0 * (rows @ mean) + mean @ mean, 0.0)
    else:
        lengths = np.sum((rows - mean) ** 2, axis=1)
    return lengths
