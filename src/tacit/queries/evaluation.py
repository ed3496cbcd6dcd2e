"""How well a model does: counts and sums over its answers to records, and their labels.

These statistics are asked of `Answered`, not of a `RecordSource`. The model is public: a release of
its own, or made of other records. Its answer to a record depends on that record alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
    """What a model says of each record, NaN where it has no answer, and the records' labels.

    A session of an evaluation holds it in the place of the records.
    """

    answers: npt.NDArray[Any]
    labels: Labels

    def __repr__(self) -> str:
        return "Answered(...)"


@dataclass(frozen=True, eq=False)
class TwoClassCells:
    """The number of records by class and bin of the score: (2, B) counts, one cell a record.

    Adding or removing a record moves one count by 1. Replacing one moves two.

    Parameters
    ----------
    classes
        Both, sorted.
    edges
        Of the bins of scores, B + 1 of them.
    norm
        L2 for Gaussian noise, L1 for Laplace noise.
    """

    classes: Labels
    edges: Array
    norm: Norm = Norm.L2

    @classmethod
    def tried(cls) -> tuple[TwoClassCells, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        arguments = np.array([0, 1]), np.linspace(0.0, 1.0, 5)
        return cls(*arguments), cls(*arguments, Norm.L1)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Answered, Answered]]:
        """Yield answers to neighbours, as far apart as there are."""
        scores = [0.0, 0.2, 0.5, 1.0, math.nan]
        return _neighbours(scores, self.classes.tolist(), facts)

    def applies(self, facts: Facts) -> bool:
        """Return that it can be asked of any answers."""
        return True

    @property
    def n_bins(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1; for a record that is replaced 2 in L1 and sqrt(2) in L2."""
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

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what says in which cell a record is."""
        return codes_of, bin_of


@dataclass(frozen=True, eq=False)
class SeveralClassCells:
    """The confusion matrix, and for each class a histogram of its score by whether it is the class.

    A record adds 1 to one cell of the K x K matrix and ``share`` to one cell of each of the K
    histograms, so that its vector has squared norm 1 + K share^2. ``share`` is the power of two
    with K share^2 in (1/4, 1]: floats then add the shares exactly.

    Parameters
    ----------
    classes, edges, norm
        As in `TwoClassCells`.
    """

    classes: Labels
    edges: Array
    norm: Norm = Norm.L2

    @classmethod
    def tried(cls) -> tuple[SeveralClassCells, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        edges = np.linspace(0.0, 1.0, 5)
        three, five = np.array(["a", "b", "c"]), np.arange(5)
        return cls(three, edges), cls(three, edges, Norm.L1), cls(five, edges)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Answered, Answered]]:
        """Yield answers to neighbours, as far apart as there are."""
        k = self.n_classes
        scores = [*np.eye(k), np.full(k, 0.3), np.append(math.nan, np.ones(k - 1))]
        return _neighbours(scores, self.classes.tolist(), facts)

    def applies(self, facts: Facts) -> bool:
        """Return that it can be asked of any answers."""
        return True

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

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return sqrt(1 + K share^2) in L2 and 1 + K share in L1.

        Replacing a record moves two cells of each part: sqrt(2) and 2 times as much.
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

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what says in which cells a record is."""
        return codes_of, bin_of


# The coordinates of `NumberSums`.
COUNT, ABSOLUTE, SQUARE, LABEL, LABEL_SQUARE = range(5)


@dataclass(frozen=True)
class NumberSums:
    """Sums of residuals and labels, for numbers in [low, high].

    With w = high - low, r = (label - prediction) / w and u = (label - middle) / (w / 2), both
    clipped to [-1, 1], a record adds (1, |r|, r^2, u, u^2), of norm at most sqrt(5). Two records
    are at most sqrt(6) apart: (|r|, r^2) by at most (1, 1), and (u, u^2) by at most 2, since
    (1 + x)^2 + (1 - x^2)^2 <= 4 for x in [0, 1]. A record is counted in steps of 2e-6.

    Parameters
    ----------
    low, high
        The least and greatest label.
    norm
        L2 for Gaussian noise, L1 for Laplace noise.
    """

    low: float
    high: float
    norm: Norm = Norm.L2

    def __post_init__(self) -> None:
        # Else some labels would be no number of halves, and the error would tell of a record.
        if not 0.0 < self.width / 2 < math.inf:
            raise ValueError(
                f"label_range ({self.low!r}, {self.high!r}) is not rising, or as wide or narrow "
                "as no double is; change units."
            )

    @classmethod
    def tried(cls) -> tuple[NumberSums, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return cls(-3.0, 9.0), cls(-3.0, 9.0, Norm.L1)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Answered, Answered]]:
        """Yield answers to neighbours, as far apart as there are."""
        ends = [self.low, self.high]
        answers = [*ends, 1e300, -math.inf, math.inf, math.nan]
        return _neighbours(answers, [*ends, (self.low + self.high) / 2, 1e9, math.nan], facts)

    def applies(self, facts: Facts) -> bool:
        """Return that it can be asked of any answers."""
        return True

    @property
    def n_bins(self) -> int:
        """One: there are no bins."""
        return 1

    @property
    def width(self) -> float:
        """The width of the range."""
        return self.high - self.low

    @property
    def _longest(self) -> float:
        return math.sqrt(5.0) if self.norm is Norm.L2 else 5.0

    @property
    def _row_bound(self) -> float:
        """A hair longer than any row, so that none is scaled down."""
        return self._longest * (1 + 1e-9)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return sqrt(5), or sqrt(6), and 5 in L1, with what rounding of a sum may add to them."""
        value = sum_sensitivity(self._row_bound, 5, self.norm, Relation.ADD_REMOVE)
        if facts.relation is Relation.REPLACE:
            distance = math.sqrt(6.0) if self.norm is Norm.L2 else 5.0
            # Each row is rounded by what the sensitivity is above the norm it was clipped to.
            value = round_up(distance + 2 * (value - self._longest))
        return Sensitivity(value, self.norm, _PROOF)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sums. Private."""
        r, u = self.scaled(records)
        rows = np.column_stack([np.ones_like(r), np.abs(r), r * r, u, u * u])
        # The relation matters for the sensitivity alone.
        return np.asarray(bounded_sum(rows, self._row_bound, self.norm, Relation.ADD_REMOVE).value)

    def scaled(self, records: Answered) -> tuple[Array, Array]:
        """Return r and u of the records that have a label and an answer. Private."""
        numbers = _numbers(records.labels)
        known = np.isfinite(numbers) & ~np.isnan(records.answers)
        label = np.clip(numbers[known], self.low, self.high)
        answer = np.clip(records.answers[known], self.low, self.high)
        r = np.clip((label - answer) / self.width, -1.0, 1.0)
        u = np.clip((label - (self.low + self.width / 2)) / (self.width / 2), -1.0, 1.0)
        return r, u

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what clips and rounds a record."""
        return NumberSums.scaled, bounded_sum


Cells = TwoClassCells | SeveralClassCells | NumberSums


@dataclass(frozen=True, eq=False)
class WrongAnswers:
    """Less the number of records that a classifier takes for another class than theirs.

    One record moves it by at most 1, put in or replaced.

    Parameters
    ----------
    classes
        All there are, sorted; answers are the probability of the second, or one of each class.
    """

    classes: Labels

    @classmethod
    def tried(cls) -> tuple[WrongAnswers, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return cls(np.array([0, 1])), cls(np.array(["a", "b", "c"]))

    def neighbours(self, facts: Facts) -> Iterator[tuple[Answered, Answered]]:
        """Yield answers to neighbours, as far apart as there are."""
        k = len(self.classes)
        scores: list[Any] = [0.0, 1.0, math.nan] if k == 2 else [*np.eye(k), np.full(k, math.nan)]
        return _neighbours(scores, self.classes.tolist(), facts)

    def applies(self, facts: Facts) -> bool:
        """Return that it can be asked of any answers."""
        return True

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1."""
        return Sensitivity(1.0, Norm.L2, _PROOF)

    def total(self, records: Private, facts: Facts) -> float:
        """Return less their number. Private."""
        answers: Array = records.answers
        codes, known = codes_of(records.labels, self.classes)
        said = np.argmax(answers, axis=1) if answers.ndim == 2 else answers > 0.5
        known = known & ~(np.isnan(answers).any(axis=1) if answers.ndim == 2 else np.isnan(answers))
        return -float(np.sum(known & (said != codes)))

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what says of which class a record is."""
        return (codes_of,)


@dataclass(frozen=True)
class SquaredResiduals:
    """Less the sum of squared residuals, in units of the width of a range.

    A sum of numbers in [0, 1]: one record, put in or replaced, moves it by at most 1.

    Parameters
    ----------
    low, high
        The least and greatest label.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        NumberSums(self.low, self.high)  # refuses a range that is none

    @classmethod
    def tried(cls) -> tuple[SquaredResiduals, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return (cls(-3.0, 9.0),)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Answered, Answered]]:
        """Yield answers to neighbours, as far apart as there are."""
        return NumberSums(self.low, self.high).neighbours(facts)

    def applies(self, facts: Facts) -> bool:
        """Return that it can be asked of any answers."""
        return True

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1, and what rounding adds: twice, as of a record that is replaced."""
        # Each r^2 is rounded by half of what the sensitivity is above 1, twice when replaced.
        one = sum_sensitivity(1.0, 1, Norm.L2, Relation.ADD_REMOVE)
        return Sensitivity(round_up(2 * one - 1.0), Norm.L2, _PROOF)

    def total(self, records: Private, facts: Facts) -> float:
        """Return less the sum. Private."""
        r, _ = NumberSums(self.low, self.high).scaled(records)
        return -float(bounded_sum(r * r, 1.0, Norm.L2, Relation.ADD_REMOVE).value)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what clips and rounds a record."""
        return NumberSums.scaled, bounded_sum


@dataclass(frozen=True)
class MistakeBalance:
    """The sum of (mistake - 1/2), which compares models as well as that of mistakes does.

    Asked of one number a record, from 0, right, to 1, wrong; others are clipped. All models are
    asked about the same records, so that the halves shift all sums alike; but a record that comes
    or goes moves this one by 1/2 at most, and one that is replaced by 1.

    Parameters
    ----------
    whole
        Whether mistakes are 0 or 1, as of classes: halves add up exactly.
    """

    whole: bool

    @classmethod
    def tried(cls) -> tuple[MistakeBalance, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return cls(True), cls(False)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Array, Array]]:
        """Yield mistakes of neighbours, as far apart as there are."""
        others = np.array([0.0, 1.0, 0.3])
        for one, other in itertools.product([0.0, 1.0, 0.2, -5.0, 1e300, math.nan], repeat=2):
            replaced = [other] if facts.relation is Relation.REPLACE else []
            yield np.append(others, replaced), np.append(others, one)

    def applies(self, facts: Facts) -> bool:
        """Return that it can be asked of any mistakes."""
        return True

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1/2, or 1 where a record is replaced, and what rounding of a sum adds."""
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
        """Return what clips and rounds a record."""
        return _within_one, bounded_sum


@dataclass(frozen=True)
class CandidateMistakes:
    """Less the sum of mistakes of each of several models: asked in a `Selection`, for an index.

    Asked of one array a model, with one number a record from 0, right, to 1, wrong; others are
    clipped, and counted in whole steps of 2^-20, which add up exactly. A record that comes lowers
    utilities and raises none: under ADD_REMOVE they are monotone.

    Parameters
    ----------
    n_candidates
        How many models there are.
    """

    n_candidates: int

    @classmethod
    def tried(cls) -> tuple[CandidateMistakes, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return cls(1), cls(3)

    def neighbours(self, facts: Facts) -> Iterator[tuple[list[Array], list[Array]]]:
        """Yield mistakes of neighbours, as far apart as there are."""
        one = MistakeBalance(False)
        for first, second in one.neighbours(facts):
            yield [first] * self.n_candidates, [second] * self.n_candidates

    def applies(self, facts: Facts) -> bool:
        """Return that it can be asked of any mistakes."""
        return True

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1: a record is at most one mistake of each."""
        return Sensitivity(1.0, Norm.LINF, _PROOF)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the utilities. Private."""
        steps = [np.floor(_within_one(wrong) * 2.0**20).sum() / 2.0**20 for wrong in records]
        if len(steps) != self.n_candidates:
            raise ValueError(f"there are {len(steps)} candidates, and {self.n_candidates} planned.")
        return -np.array(steps)

    def drawn(self, records: Private, facts: Facts, epsilon: float, source: Source) -> Release[int]:
        """Return which candidate was drawn. Called by a `Selection` alone."""
        stated = self.sensitivity(facts)
        bounded = Bounded(self.total(records, facts), stated.value, stated.norm, facts.relation)
        monotone = facts.relation.adds_or_removes
        return select(bounded, epsilon, monotone=monotone, source=source)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what clips a record."""
        return (_within_one,)


def _within_one(wrong: Any) -> Array:
    """Return mistakes clipped to [0, 1]; one that is no number is a mistake."""
    return np.clip(np.nan_to_num(np.asarray(wrong, dtype=np.float64), nan=1.0), 0.0, 1.0)


def bin_of(scores: Array, edges: Array) -> npt.NDArray[np.int64]:
    """Return the bin of each score; one that is an edge is in the bin below it.

    scikit-learn says the second class where its probability is above one half: one half itself is
    the first class, and so is the bin that ends there.

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
    """Return each label as a number, NaN for one that is none, whatever the others are."""
    if labels.dtype.kind in "biuf":
        return labels.astype(np.float64)  # type: ignore[no-any-return]
    convert: Callable[[Any], float] = float
    return np.array([alone(convert, value, math.nan) for value in labels.tolist()])


def _neighbours(
    answers: list[Any], labels: list[Any], facts: Facts
) -> Iterator[tuple[Answered, Answered]]:
    """Yield two records and one more, of any answer and label, and these without it or another."""
    records = list(itertools.product(answers, [*labels, None, "x"]))
    others = [[one] for one in records] if facts.relation is Relation.REPLACE else [[]]
    for one, other in itertools.product(records, others):
        yield _answered([*records[:2], *other]), _answered([*records[:2], one])


def _answered(records: list[tuple[Any, Any]]) -> Answered:
    labels = as_objects([label for _, label in records])
    return Answered(np.array([answer for answer, _ in records], dtype=np.float64), labels)
