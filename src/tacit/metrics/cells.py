"""What is counted of the records, and how far one record can move it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.metrics.edges import bin_of
from tacit.noise import Bounded, Norm, bounded_sum
from tacit.noise.bounded import round_up
from tacit.odd_values import alone
from tacit.privacy import Relation
from tacit.public_facts import codes_of

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


class Cells(Protocol):
    """Sums over records, with their sensitivity; a record that says nothing adds nothing."""

    @property
    def n_bins(self) -> int:
        """How many bins there are for each class; 1 where there are none."""

    def sensitivity(self, relation: Relation) -> float:
        """Return how far one record can move the sums, in L2 norm."""

    def l1_sensitivity(self, relation: Relation) -> float:
        """Return how far one record can move the sums, in L1 norm."""

    def total(self, answers: Array, labels: Any, relation: Relation, norm: Norm) -> Bounded:
        """Return the sums. ``answers`` are the model's, NaN where it had none."""


@dataclass(frozen=True, eq=False)
class TwoClassCells:
    """The number of records by class and bin of the score: (2, B) counts, one cell a record.

    Adding or removing a record moves one count by 1. Replacing one moves two: sqrt(2).
    """

    classes: npt.NDArray[Any]
    edges: Array
    probabilities: bool = True

    @property
    def n_bins(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    def sensitivity(self, relation: Relation) -> float:
        """Return 1, or sqrt(2)."""
        return 1.0 if relation.adds_or_removes else round_up(math.sqrt(2.0))

    def l1_sensitivity(self, relation: Relation) -> float:
        """Return 1, or 2."""
        return 1.0 if relation.adds_or_removes else 2.0

    def total(self, answers: Array, labels: Any, relation: Relation, norm: Norm) -> Bounded:
        """Return the counts, class by class."""
        codes, known = codes_of(labels, self.classes)
        known = known & ~np.isnan(answers)
        cell = codes[known] * self.n_bins + bin_of(answers[known], self.edges)
        return _bounded(_count(cell, 2 * self.n_bins), self, relation, norm)


@dataclass(frozen=True, eq=False)
class SeveralClassCells:
    """The confusion matrix, and for each class a histogram of its score by whether it is the class.

    A record adds 1 to one cell of the K x K matrix and ``share`` to one cell of each of the K
    histograms, so that its vector has squared norm 1 + K share^2. ``share`` is the power of two
    with K share^2 in (1/4, 1]: floats then add the shares exactly.
    """

    classes: npt.NDArray[Any]
    edges: Array
    probabilities: bool = True

    @property
    def n_bins(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def share(self) -> float:
        """What a record adds to a histogram."""
        return 2.0 ** -math.ceil(math.log2(self.n_classes) / 2)

    def sensitivity(self, relation: Relation) -> float:
        """Return sqrt(1 + K share^2); replacing moves two cells of each part: sqrt(2) as much."""
        square = 1.0 + self.n_classes * self.share**2
        return round_up(math.sqrt(square * (1.0 if relation.adds_or_removes else 2.0)))

    def l1_sensitivity(self, relation: Relation) -> float:
        """Return 1 + K share, or twice as much."""
        return (1.0 + self.n_classes * self.share) * (1.0 if relation.adds_or_removes else 2.0)

    def total(self, answers: Array, labels: Any, relation: Relation, norm: Norm) -> Bounded:
        """Return the matrix, row by row, and the histograms: (K, 2, B), others first."""
        k, b = self.n_classes, self.n_bins
        codes, known = codes_of(labels, self.classes)
        known = known & ~np.isnan(answers).any(axis=1)
        codes, answers = codes[known], answers[known]
        matrix = _count(codes * k + np.argmax(answers, axis=1), k * k)
        each = [
            _count((codes == j) * b + bin_of(answers[:, j], self.edges), 2 * b) for j in range(k)
        ]
        sums = np.concatenate([matrix, self.share * np.concatenate(each)])
        return _bounded(sums, self, relation, norm)


# The coordinates of `NumberSums`.
COUNT, ABSOLUTE, SQUARE, LABEL, LABEL_SQUARE = range(5)


@dataclass(frozen=True)
class NumberSums:
    """Sums of residuals and labels, for numbers in [low, high].

    With w = high - low, r = (label - prediction) / w and u = (label - middle) / (w / 2), both
    clipped to [-1, 1], a record adds (1, |r|, r^2, u, u^2), of norm at most sqrt(5). Two records
    are at most sqrt(6) apart: (|r|, r^2) by at most (1, 1), and (u, u^2) by at most 2, since
    (1 + x)^2 + (1 - x^2)^2 <= 4 for x in [0, 1]. A record is counted in steps of 2e-6.
    """

    low: float
    high: float
    n_bins: int = 1

    def __post_init__(self) -> None:
        # Else some labels would be no number of halves, and the error would tell of a record.
        if not 0.0 < self.width / 2 < math.inf:
            raise ValueError(
                f"label_range ({self.low!r}, {self.high!r}) is not rising, or as wide or narrow "
                "as no double is; change units."
            )

    @property
    def width(self) -> float:
        """The width of the range."""
        return self.high - self.low

    def sensitivity(self, relation: Relation) -> float:
        """Return sqrt(5), or sqrt(6), and what rounding of a sum may add to them."""
        return self._bounded(np.zeros((0, 5)), relation, Norm.L2).sensitivity

    def l1_sensitivity(self, relation: Relation) -> float:
        """Return 5 for either relation."""
        return self._bounded(np.zeros((0, 5)), relation, Norm.L1).sensitivity

    def total(self, answers: Array, labels: Any, relation: Relation, norm: Norm) -> Bounded:
        """Return the sums."""
        r, u = self._scaled(answers, labels)
        rows = np.column_stack([np.ones_like(r), np.abs(r), r * r, u, u * u])
        return self._bounded(rows, relation, norm)

    def squares(self, answers: Array, labels: Any) -> Bounded:
        """Return the sum of r^2 alone; one record moves it by at most 1, put in or replaced."""
        r, _ = self._scaled(answers, labels)
        total = bounded_sum(r * r, 1.0, Norm.L2, Relation.ADD_REMOVE)
        # Each r^2 is rounded by half of what the sensitivity is above 1, twice when replaced.
        return Bounded(total.value, 2 * total.sensitivity - 1.0, Norm.L2, Relation.ADD_REMOVE)

    def _scaled(self, answers: Array, labels: Any) -> tuple[Array, Array]:
        """Return r and u of the records that have a label and an answer."""
        numbers = _numbers(labels)
        known = np.isfinite(numbers) & ~np.isnan(answers)
        label = np.clip(numbers[known], self.low, self.high)
        answer = np.clip(answers[known], self.low, self.high)
        r = np.clip((label - answer) / self.width, -1.0, 1.0)
        u = np.clip((label - (self.low + self.width / 2)) / (self.width / 2), -1.0, 1.0)
        return r, u

    def _bounded(self, rows: Array, relation: Relation, norm: Norm) -> Bounded:
        longest = math.sqrt(5.0) if norm is Norm.L2 else 5.0
        apart = math.sqrt(6.0) if norm is Norm.L2 else 5.0
        # A hair longer than any row, so that none is scaled down.
        total = bounded_sum(rows, longest * (1 + 1e-9), norm, Relation.ADD_REMOVE)
        if relation.adds_or_removes:
            return Bounded(total.value, total.sensitivity, norm, relation)
        # Each row is rounded by what the sensitivity is above the norm it was clipped to.
        rounding = total.sensitivity - longest
        return Bounded(total.value, round_up(apart + 2 * rounding), norm, relation)


def _bounded(sums: Array, cells: Cells, relation: Relation, norm: Norm) -> Bounded:
    far = cells.sensitivity if norm is Norm.L2 else cells.l1_sensitivity
    return Bounded(sums, far(relation), norm, relation)


def _count(cells: Any, n_cells: int) -> Array:
    return np.bincount(cells, minlength=n_cells).astype(np.float64)


def _numbers(labels: Any) -> Array:
    """Return each label as a number, NaN for one that is none, whatever the others are."""
    if labels.dtype.kind in "biuf":
        return labels.astype(np.float64)  # type: ignore[no-any-return]
    convert: Callable[[Any], float] = float
    return np.array([alone(convert, value, math.nan) for value in labels.tolist()])
