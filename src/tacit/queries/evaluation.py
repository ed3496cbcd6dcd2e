"""Evaluate a model: counts and sums over its answers to records, and their labels.

These statistics are asked of `Answered`, not of a `RecordSource`. The model is public: a release of
its own, or trained on other records. Its answer to a record depends on that record alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Integers
from tacit.column_values import alone, as_objects
from tacit.noise import Norm, Release, Source
from tacit.noise.bounded import Bounded, round_up
from tacit.noise.selection.finite import select
from tacit.noise.summation import bounded_sum, sum_sensitivity
from tacit.privacy import Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity
from tacit.records.rows_and_labels import codes_of

Labels = npt.NDArray[Any]
_PROOF = "evaluation.md#1-sensitivity"


@dataclass(frozen=True, eq=False)
class Answered:
    """A model's answer to each record, NaN without an answer, and the records' labels.

    The session of an evaluation holds it in place of the records.
    """

    answers: npt.NDArray[Any]
    labels: Labels

    def __repr__(self) -> str:
        return "Answered(...)"


@dataclass(frozen=True, eq=False)
class _Cells:
    """Counts of records by class and bin of a score."""

    classes: Labels
    edges: Array
    norm: Norm = Norm.L2

    @property
    def n_bins(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that assign a record to cells."""
        return codes_of, bin_of


@dataclass(frozen=True, eq=False)
class TwoClassCells(_Cells):
    """The number of records by class and bin of the score: (2, B) counts, one cell per record.

    Adding or removing a record moves one count by 1. Replacing a record moves two counts.

    Parameters
    ----------
    classes
        Both classes, sorted.
    edges
        The B + 1 edges of the bins of scores.
    norm
        L2 for Gaussian noise, L1 for Laplace noise.
    """

    @classmethod
    def tried(cls) -> tuple[TwoClassCells, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        arguments = np.array([0, 1]), np.linspace(0.0, 1.0, 5)
        return cls(*arguments), cls(*arguments, Norm.L1)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Answered, Answered]]:
        """Yield answers to neighbours that differ as much as possible."""
        scores = [0.0, 0.2, 0.5, 1.0, math.nan]
        return _neighbours(scores, self.classes.tolist(), facts)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1; under REPLACE 2 in L1 and sqrt(2) in L2."""
        value = facts.n_changed
        if self.norm is Norm.L2 and value > 1.0:
            value = round_up(math.sqrt(value))
        return Sensitivity(value, self.norm, _PROOF)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the counts, class by class. Private."""
        answers: Array = records.answers
        codes, known = codes_of(records.labels, self.classes)
        known = known & ~np.isnan(answers)
        cell = codes[known] * self.n_bins + bin_of(answers[known], self.edges)
        return _count(cell, 2 * self.n_bins)


@dataclass(frozen=True, eq=False)
class SeveralClassCells(_Cells):
    """The confusion matrix, and per class histograms of its score inside and outside the class.

    A record adds 1 to one cell of the K x K matrix and ``share`` to one cell of each of the K
    histograms, so that its vector has squared norm 1 + K share^2. ``share`` is the power of two
    with K share^2 in (1/4, 1]: floats then add the shares exactly.

    Parameters
    ----------
    classes, edges, norm
        As in `TwoClassCells`.
    """

    @classmethod
    def tried(cls) -> tuple[SeveralClassCells, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        edges = np.linspace(0.0, 1.0, 5)
        three, five = np.array(["a", "b", "c"]), np.arange(5)
        return cls(three, edges), cls(three, edges, Norm.L1), cls(five, edges)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Answered, Answered]]:
        """Yield answers to neighbours that differ as much as possible."""
        k = self.n_classes
        scores = [*np.eye(k), np.full(k, 0.3), np.append(math.nan, np.ones(k - 1))]
        return _neighbours(scores, self.classes.tolist(), facts)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.classes)

    @property
    def share(self) -> float:
        """The amount that a record adds to a histogram."""
        return 2.0 ** -math.ceil(math.log2(self.n_classes) / 2)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return sqrt(1 + K share^2) in L2 and 1 + K share in L1.

        Replacing a record moves two cells of each part: sqrt(2) times as far in L2, 2 times in L1.
        """
        value = (1.0 + self.n_classes * self.share) * facts.n_changed
        if self.norm is Norm.L2:
            square = 1.0 + self.n_classes * self.share**2
            value = round_up(math.sqrt(square * facts.n_changed))
        return Sensitivity(value, self.norm, _PROOF)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the matrix, row by row, and the histograms: (K, 2, B), others first. Private."""
        k, b = self.n_classes, self.n_bins
        codes, known = codes_of(records.labels, self.classes)
        known = known & ~np.isnan(records.answers).any(axis=1)
        codes, answers = codes[known], records.answers[known]
        matrix = _count(codes * k + np.argmax(answers, axis=1), k * k)
        each = [
            _count((codes == j) * b + bin_of(answers[:, j], self.edges), 2 * b) for j in range(k)
        ]
        return np.concatenate([matrix, self.share * np.concatenate(each)])


# Indices of the coordinates of `NumberSums`.
COUNT, ABSOLUTE, SQUARE, LABEL, LABEL_SQUARE = range(5)


@dataclass(frozen=True)
class _InRange:
    """A statistic of numbers in [low, high]."""

    low: float
    high: float

    def __post_init__(self) -> None:
        # Otherwise some labels could not be halved, and the error would reveal a record.
        if not 0.0 < self.width / 2 < math.inf:
            raise ValueError(
                f"label_range ({self.low!r}, {self.high!r}) is not increasing, or its width is "
                "beyond the range of doubles; change units."
            )

    def neighbours(self, facts: Facts) -> Iterator[tuple[Answered, Answered]]:
        """Yield answers to neighbours that differ as much as possible."""
        ends = [self.low, self.high]
        answers = [*ends, 1e300, -math.inf, math.inf, math.nan]
        return _neighbours(answers, [*ends, (self.low + self.high) / 2, 1e9, math.nan], facts)

    @property
    def width(self) -> float:
        """The width of the range."""
        return self.high - self.low

    def scaled(self, records: Answered) -> tuple[Array, Array]:
        """Return r and u (see `NumberSums`) of the records with a label and an answer. Private."""
        numbers = _numbers(records.labels)
        known = np.isfinite(numbers) & ~np.isnan(records.answers)
        label = np.clip(numbers[known], self.low, self.high)
        answer = np.clip(records.answers[known], self.low, self.high)
        r = np.clip((label - answer) / self.width, -1.0, 1.0)
        u = np.clip((label - (self.low + self.width / 2)) / (self.width / 2), -1.0, 1.0)
        return r, u

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip and round a record."""
        return _InRange.scaled, bounded_sum


@dataclass(frozen=True)
class NumberSums(_InRange):
    """Sums of residuals and labels, for numbers in [low, high].

    With w = high - low, r = (label - prediction) / w and u = (label - middle) / (w / 2), both
    clipped to [-1, 1], a record adds (1, |r|, r^2, u, u^2), of norm at most sqrt(5). Two records
    are at most sqrt(6) apart: (|r|, r^2) by at most (1, 1), and (u, u^2) by at most 2, since
    (1 + x)^2 + (1 - x^2)^2 <= 4 for x in [0, 1]. Rows are rounded to a lattice of step 2e-6.

    Parameters
    ----------
    low, high
        The least and greatest label.
    norm
        L2 for Gaussian noise, L1 for Laplace noise.
    """

    norm: Norm = Norm.L2

    @classmethod
    def tried(cls) -> tuple[NumberSums, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return cls(-3.0, 9.0), cls(-3.0, 9.0, Norm.L1)

    @property
    def n_bins(self) -> int:
        """One: there are no bins."""
        return 1

    @property
    def _longest(self) -> float:
        return math.sqrt(5.0) if self.norm is Norm.L2 else 5.0

    @property
    def _row_bound(self) -> float:
        """A bound slightly above the norm of any row, so that no row is scaled down."""
        return self._longest * (1 + 1e-9)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return sqrt(5), or sqrt(6), and 5 in L1, plus the rounding of a sum."""
        value = sum_sensitivity(self._row_bound, 5, self.norm, Relation.ADD_REMOVE)
        if facts.relation is Relation.REPLACE:
            distance = math.sqrt(6.0) if self.norm is Norm.L2 else 5.0
            # The excess of the sensitivity over the clipping norm is the rounding of one row.
            value = round_up(distance + 2 * (value - self._longest))
        return Sensitivity(value, self.norm, _PROOF)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sums. Private."""
        r, u = self.scaled(records)
        rows = np.column_stack([np.ones_like(r), np.abs(r), r * r, u, u * u])
        # The relation affects the sensitivity only.
        return np.asarray(bounded_sum(rows, self._row_bound, self.norm, Relation.ADD_REMOVE).value)


Cells = TwoClassCells | SeveralClassCells | NumberSums


@dataclass(frozen=True, eq=False)
class WrongAnswers:
    """Minus the number of records that a classifier assigns to a wrong class.

    Adding, removing or replacing a record moves it by at most 1.

    Parameters
    ----------
    classes
        All classes, sorted; answers are the probability of the second, or one of each class.
    """

    classes: Labels

    @classmethod
    def tried(cls) -> tuple[WrongAnswers, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return cls(np.array([0, 1])), cls(np.array(["a", "b", "c"]))

    def neighbours(self, facts: Facts) -> Iterator[tuple[Answered, Answered]]:
        """Yield answers to neighbours that differ as much as possible."""
        k = len(self.classes)
        scores: list[Any] = [0.0, 1.0, math.nan] if k == 2 else [*np.eye(k), np.full(k, math.nan)]
        return _neighbours(scores, self.classes.tolist(), facts)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1."""
        return Sensitivity(1.0, Norm.L2, _PROOF)

    def total(self, records: Private, facts: Facts) -> float:
        """Return minus the number of wrong answers. Private."""
        answers: Array = records.answers
        codes, known = codes_of(records.labels, self.classes)
        said = np.argmax(answers, axis=1) if answers.ndim == 2 else answers > 0.5
        known = known & ~(np.isnan(answers).any(axis=1) if answers.ndim == 2 else np.isnan(answers))
        return -float(np.sum(known & (said != codes)))

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the function that assigns a record to a class."""
        return (codes_of,)


@dataclass(frozen=True)
class SquaredResiduals(_InRange):
    """Minus the sum of squared residuals, in units of the width of a range.

    Terms are in [0, 1]: adding, removing or replacing a record moves the sum by at most 1.

    Parameters
    ----------
    low, high
        The least and greatest label.
    """

    @classmethod
    def tried(cls) -> tuple[SquaredResiduals, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (cls(-3.0, 9.0),)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1 plus twice the rounding of a record, which covers a replacement."""
        # The excess of the sensitivity over 1 is twice the rounding of one r^2.
        one = sum_sensitivity(1.0, 1, Norm.L2, Relation.ADD_REMOVE)
        return Sensitivity(round_up(2 * one - 1.0), Norm.L2, _PROOF)

    def total(self, records: Private, facts: Facts) -> float:
        """Return minus the sum. Private."""
        r, _ = self.scaled(records)
        return -float(bounded_sum(r * r, 1.0, Norm.L2, Relation.ADD_REMOVE).value)


@dataclass(frozen=True)
class MistakeBalance:
    """The sum of (mistake - 1/2), which compares models as well as the sum of mistakes does.

    It is asked of one number per record, from 0 (right) to 1 (wrong); others are clipped. All
    models are compared on the same records, so that the halves shift all sums equally. Adding or
    removing a record moves this sum by at most 1/2, and replacing one by at most 1.

    Parameters
    ----------
    whole
        Whether mistakes are 0 or 1, as for classes: halves then add up exactly.
    """

    whole: bool

    @classmethod
    def tried(cls) -> tuple[MistakeBalance, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return cls(True), cls(False)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Array, Array]]:
        """Yield mistakes of neighbours that differ as much as possible."""
        others = np.array([0.0, 1.0, 0.3])
        for one, other in itertools.product([0.0, 1.0, 0.2, -5.0, 1e300, math.nan], repeat=2):
            replaced = [other] if facts.relation is Relation.REPLACE else []
            yield np.append(others, replaced), np.append(others, one)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1/2, or 1 under REPLACE, plus the rounding of a sum."""
        value = facts.n_changed / 2
        if not self.whole:
            value = sum_sensitivity(0.5, 1, Norm.L2, facts.relation)
        return Sensitivity(value, Norm.L2, _PROOF)

    def total(self, records: Private, facts: Facts) -> float | Array:
        """Return the sum. Private."""
        wrong = _within_one(records)
        if self.whole:
            return float((np.rint(wrong) - 0.5).sum())
        return bounded_sum(wrong[:, None] - 0.5, 0.5, Norm.L2, facts.relation).value

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that clip and round a record."""
        return _within_one, bounded_sum


@dataclass(frozen=True)
class CandidateMistakes:
    """Minus the sum of mistakes of each of several models; a `Selection` returns an index.

    It is asked of one array per model, with one number per record from 0 (right) to 1 (wrong).
    Others are clipped, and all are rounded to steps of 2^-20, which add up exactly. An added record
    lowers utilities and raises none: under ADD_REMOVE they are monotone.

    Parameters
    ----------
    n_candidates
        The number of models.
    """

    n_candidates: int

    @classmethod
    def tried(cls) -> tuple[CandidateMistakes, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return cls(1), cls(3)

    def neighbours(self, facts: Facts) -> Iterator[tuple[list[Array], list[Array]]]:
        """Yield mistakes of neighbours that differ as much as possible."""
        one = MistakeBalance(False)
        for first, second in one.neighbours(facts):
            yield [first] * self.n_candidates, [second] * self.n_candidates

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1: a record adds at most one mistake to each model."""
        return Sensitivity(1.0, Norm.LINF, _PROOF)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the utilities. Private."""
        steps = [np.floor(_within_one(wrong) * 2.0**20).sum() / 2.0**20 for wrong in records]
        if len(steps) != self.n_candidates:
            raise ValueError(f"got {len(steps)} candidates, but {self.n_candidates} were planned.")
        return -np.array(steps)

    def drawn(self, records: Private, facts: Facts, epsilon: float, source: Source) -> Release[int]:
        """Return the index of the drawn candidate. Called by a `Selection` only."""
        stated = self.sensitivity(facts)
        bounded = Bounded(self.total(records, facts), stated.value, stated.norm, facts.relation)
        monotone = facts.relation.adds_or_removes
        return select(bounded, epsilon, monotone=monotone, source=source)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the function that clips a record."""
        return (_within_one,)


def _within_one(wrong: Any) -> Array:
    """Return mistakes clipped to [0, 1]; NaN counts as a mistake."""
    return np.clip(np.nan_to_num(np.asarray(wrong, dtype=np.float64), nan=1.0), 0.0, 1.0)


def bin_of(scores: Array, edges: Array) -> Integers:
    """Return the bin of each score; a score on an edge is in the bin below it.

    scikit-learn predicts the second class if its probability is above one half. A probability of
    one half means the first class, and so does the bin that ends at one half.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.queries.evaluation import bin_of
    >>> bin_of(np.array([0.0, 0.5, 0.6]), np.array([0.0, 0.5, 1.0]))
    array([0, 0, 1])
    """
    return np.searchsorted(edges[1:-1], scores, side="left").astype(np.int64)


def _count(cells: Any, n_cells: int) -> Array:
    return np.bincount(cells, minlength=n_cells).astype(np.float64)


def _numbers(labels: Any) -> Array:
    """Return each label as a number, NaN if it is not one, independently of the other labels."""
    if labels.dtype.kind in "biuf":
        return labels.astype(np.float64)  # type: ignore[no-any-return]
    convert: Callable[[Any], float] = float
    return np.array([alone(convert, value, math.nan) for value in labels.tolist()])


def _neighbours(
    answers: list[Any], labels: list[Any], facts: Facts
) -> Iterator[tuple[Answered, Answered]]:
    """Yield records with and without one more, or with one replaced, for all answers and labels."""
    records = list(itertools.product(answers, [*labels, None, "x"]))
    others = [[one] for one in records] if facts.relation is Relation.REPLACE else [[]]
    for one, other in itertools.product(records, others):
        yield _answered([*records[:2], *other]), _answered([*records[:2], one])


def _answered(records: list[tuple[Any, Any]]) -> Answered:
    labels = as_objects([label for _, label in records])
    return Answered(np.array([answer for answer, _ in records], dtype=np.float64), labels)
