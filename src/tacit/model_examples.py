"""Problems of sixty records that a model solves in a moment: what tests and demonstrations fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Example:
    """A problem of sixty records that a model solves in a moment.

    Parameters
    ----------
    name
        A word.
    parameters
        What the model must be told of such records.
    rows, labels
        The records; a location has no labels.
    odd
        The labels of two records that differ as much as any two can.
    """

    name: str
    parameters: Mapping[str, Any]
    rows: npt.NDArray[np.float64]
    labels: npt.NDArray[Any] | None = None
    odd: tuple[Any, Any] = (None, None)


Examples = Callable[[], tuple[Example, ...]]
_N_RECORDS = 60


def _rows() -> tuple[np.random.Generator, npt.NDArray[np.float64]]:
    rng = np.random.default_rng(5)
    return rng, rng.standard_normal((_N_RECORDS, 3))


def with_two_classes() -> tuple[Example, ...]:
    """Return one with two classes."""
    _, rows = _rows()
    known = {"row_norm": 1.5, "classes": [False, True]}
    return (Example("binary", known, rows, rows[:, 0] > 0, (False, True)),)


def with_classes() -> tuple[Example, ...]:
    """Return one with two classes and one with three."""
    rng, rows = _rows()
    known = {"row_norm": 1.5, "classes": [0, 1, 2]}
    labels = rng.integers(0, 3, _N_RECORDS)
    return (*with_two_classes(), Example("three", known, rows, labels, (2, 0)))


def with_numbers(**known: Any) -> Examples:
    """Return one whose labels are numbers, of which more may be known."""

    def examples() -> tuple[Example, ...]:
        _, rows = _rows()
        labels = rows @ [1.0, -1.0, 0.5]
        return (Example("number", {"row_norm": 1.5, **known}, rows, labels, (-1e8, 1e9)),)

    return examples


def with_counts() -> tuple[Example, ...]:
    """Return one whose labels are counts."""
    rng, rows = _rows()
    known = {"row_norm": 1.5, "label_range": (0, 9)}
    labels = rng.poisson(3.0 * np.exp(0.5 * rows[:, 0])).astype(np.float64)
    return (Example("count", known, rows, labels, (1e8, 0.0)),)


def with_points(**named: Mapping[str, Any]) -> Examples:
    """Return one without labels for each way to tell what is known of the rows."""
    return lambda: tuple(Example(name, known, _rows()[1]) for name, known in named.items())
