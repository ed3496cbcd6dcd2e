"""Count and sum over the cells of a table: bins of columns, residuals of an additive model.

A `CellTable` has a public cell of every column for each record, and its label. An additive model is
a table of whole numbers for each column, one per cell. Scores, probabilities and residuals are then
whole numbers of steps of 2^-20. A record's part depends on this record and the model alone, to the
last bit, and all sums are exact (docs/proofs/additive.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import Integers
from tacit.noise import Norm, Source
from tacit.noise.bounded import round_up
from tacit.privacy import Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity
from tacit.records import Bounds, MemoryRecords

# Labels, scores and residuals are whole numbers of steps of 2^-20.
STEPS = 2**20
# Sums of so many records, each of at most 2^20 steps and times a weight, are below 2^53: exact.
MOST_RECORDS = 2**26
# Weights of columns are whole eighths, at most 16: their products with sums are exact.
WEIGHT_UNIT = 1 / 8
MOST_WEIGHT = 16.0
# The logistic function is tabulated at steps of 2^-10 of a score, from -16 to 16.
_SCORE_SHIFT = 10
_SCORE_LIMIT = 16 * 2**10

_COUNTS = "additive.md#1-counts-of-a-tree-that-grows-with-its-answers"
_RESIDUALS = "additive.md#2-sums-of-residuals-at-the-current-model"
_TABLES = "additive.md#3-tables-of-scores-and-residuals"


def steps_of(values: Any) -> Integers:
    """Return numbers as whole steps of 2^-20, clipped to 64 in size; NaN counts as 0.

    The scores of thousands of columns are then exact in 64 bits.

    Examples
    --------
    >>> from tacit.queries.table_cells import steps_of
    >>> steps_of([0.5, -100.0])
    array([  524288, -67108864])
    """
    clipped = np.clip(np.nan_to_num(np.asarray(values, dtype=np.float64)), -64.0, 64.0)
    return np.rint(clipped * STEPS).astype(np.int64)


class LabelKind(Protocol):
    """The kind of a label: two classes, several classes, or a number."""

    @property
    def n_outputs(self) -> int:
        """The number of scores of a record."""

    @property
    def n_sums(self) -> int:
        """The number of sums over labels that `CellCounts` releases."""

    def sums(self, labels: Integers) -> Array:
        """Return the sums over labels; a label's own part has norm at most 1. Private."""

    def residuals(self, scores: Integers, labels: Integers) -> Integers:
        """Return label minus prediction in steps, shape (n, n_outputs). Private."""

    def largest_residual(self, constant: Integers | None) -> float:
        """Return the greatest norm of a residual; ``constant`` is the score of a constant model."""

    def tried_labels(self) -> list[int]:
        """Return labels at both ends, for conformance tests."""


_GRID = (np.arange(2 * _SCORE_LIMIT) + 0.5) / 2.0**_SCORE_SHIFT - 16.0
_LOGISTIC = np.rint(STEPS / (1.0 + np.exp(-_GRID))).astype(np.int64)
_EXP = np.rint(STEPS * np.exp(-np.arange(_SCORE_LIMIT + 1) / 2.0**_SCORE_SHIFT)).astype(np.int64)


@dataclass(frozen=True)
class TwoClasses:
    """Labels 0 and 1; a score is the log-odds of class 1."""

    n_outputs = 1
    n_sums = 2

    def sums(self, labels: Integers) -> Array:
        """Return the number of records of each class."""
        return np.bincount(np.clip(labels, 0, 1), minlength=2).astype(np.float64)

    def probabilities(self, scores: Integers) -> Integers:
        """Return the probability of class 1 in steps, from a table: no float is involved."""
        place = np.clip((scores >> _SCORE_SHIFT) + _SCORE_LIMIT, 0, 2 * _SCORE_LIMIT - 1)
        return np.asarray(_LOGISTIC[place])

    def residuals(self, scores: Integers, labels: Integers) -> Integers:
        """Return y - p, in [-1, 1]."""
        return np.clip(labels, 0, 1)[:, None] * STEPS - self.probabilities(scores)

    def largest_residual(self, constant: Integers | None) -> float:
        """Return 1, or the larger of p and 1 - p for a constant model."""
        if constant is None:
            return 1.0
        p = int(self.probabilities(constant)[0])
        return max(p, STEPS - p) / STEPS

    def tried_labels(self) -> list[int]:
        """Return both classes."""
        return [0, 1]


@dataclass(frozen=True)
class SeveralClasses:
    """Labels 0 to n_classes - 1; one score per class, whose softmax are the probabilities."""

    n_classes: int

    @property
    def n_outputs(self) -> int:
        """One score per class."""
        return self.n_classes

    @property
    def n_sums(self) -> int:
        """One count per class."""
        return self.n_classes

    def sums(self, labels: Integers) -> Array:
        """Return the number of records of each class."""
        codes = np.clip(labels, 0, self.n_classes - 1)
        return np.bincount(codes, minlength=self.n_classes).astype(np.float64)

    def probabilities(self, scores: Integers) -> Integers:
        """Return the probabilities in steps, from a table of exp and one division each."""
        behind = (scores.max(axis=1, keepdims=True) - scores) >> _SCORE_SHIFT
        weights = _EXP[np.minimum(behind, _SCORE_LIMIT)]
        # Division of whole numbers is correctly rounded: it depends on the record alone.
        shares = (weights * STEPS) / weights.sum(axis=1, keepdims=True)
        return np.asarray(np.rint(shares).astype(np.int64))

    def residuals(self, scores: Integers, labels: Integers) -> Integers:
        """Return the indicator of the class minus the probabilities; its norm is at most sqrt 2."""
        residuals = -self.probabilities(scores)
        residuals[np.arange(len(labels)), np.clip(labels, 0, self.n_classes - 1)] += STEPS
        return residuals

    def largest_residual(self, constant: Integers | None) -> float:
        """Return sqrt(2) plus the rounding, or the longest residual of a constant model."""
        if constant is None:
            return round_up(math.sqrt(2.0) + math.sqrt(self.n_classes) / (2 * STEPS))
        every = np.arange(self.n_classes)
        scores = np.broadcast_to(constant, (self.n_classes, self.n_classes))
        steps = self.residuals(scores, every)
        return round_up(math.sqrt(int((steps**2).sum(axis=1).max())) / STEPS)

    def tried_labels(self) -> list[int]:
        """Return the first and the last class."""
        return [0, self.n_classes - 1]


@dataclass(frozen=True)
class NumberLabels:
    """Labels in [-1/2, 1/2]; residuals are clipped to ``clip``, at most 1.

    `CellCounts` releases the sums of 7/4 y and 7/4 y^2, of norm at most 7/4 sqrt(5/16) < 1.
    """

    clip: float = 1.0
    n_outputs = 1
    n_sums = 2

    @property
    def _limit(self) -> int:
        return max(1, min(math.floor(self.clip * STEPS), STEPS))

    def _within(self, labels: Integers) -> Integers:
        return np.clip(labels, -STEPS // 2, STEPS // 2)

    def sums(self, labels: Integers) -> Array:
        """Return the sums of 7/4 y and 7/4 y^2."""
        y = self._within(labels)
        squares = (y * y) >> 20  # whole steps of y^2, below its value
        return 1.75 * np.array([y.sum(), squares.sum()], dtype=np.float64) / STEPS

    def residuals(self, scores: Integers, labels: Integers) -> Integers:
        """Return the clipped y - score."""
        away = self._within(labels)[:, None] - scores
        return np.asarray(np.clip(away, -self._limit, self._limit))

    def largest_residual(self, constant: Integers | None) -> float:
        """Return the clip, or the greatest distance of a label from a constant model."""
        if constant is None:
            return self._limit / STEPS
        return min(self._limit, STEPS // 2 + abs(int(constant[0]))) / STEPS

    def tried_labels(self) -> list[int]:
        """Return both ends and the middle."""
        return [-STEPS // 2, 0, STEPS // 2, 99 * STEPS]


@dataclass(frozen=True, eq=False)
class CellModel:
    """An additive model over cells: the score is the intercept plus one term per column.

    Parameters
    ----------
    labels
        The kind of the labels.
    intercept
        Steps, one per output.
    terms
        For each column None, or an array of steps of shape (n_cells, n_outputs).
    """

    labels: LabelKind
    intercept: Integers
    terms: tuple[Integers | None, ...]

    def largest_residual(self) -> float:
        """Return the greatest norm of a record's residual, in units of the label."""
        is_constant = all(term is None for term in self.terms)
        return self.labels.largest_residual(self.intercept if is_constant else None)


@dataclass(eq=False)
class CellTable:
    """The cell of each record in each column, and its label; the session of a fit holds it.

    Parameters
    ----------
    cells
        One array of whole numbers per column, from 0.
    labels
        Codes of classes, or numbers in steps.
    """

    cells: tuple[Integers, ...]
    labels: Integers
    # The scores of the last model. Whole numbers can be updated term by term without an error.
    _model: CellModel | None = field(default=None, repr=False)
    _scores: Integers | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if len(self.labels) > MOST_RECORDS:
            raise ValueError(f"there are more than {MOST_RECORDS:,} records; fit on a part.")

    def __repr__(self) -> str:
        return "CellTable(...)"

    @property
    def n_records(self) -> int:
        """The number of records. Private."""
        return len(self.labels)

    def scores(self, model: CellModel) -> Integers:
        """Return the scores of all records in steps, shape (n, n_outputs). Private."""
        old, scores = self._model, self._scores
        self._model = None  # until the update is complete
        if old is None or scores is None or len(old.terms) != len(model.terms):
            old, scores = None, np.zeros((self.n_records, model.labels.n_outputs), np.int64)
        before = np.zeros_like(model.intercept) if old is None else old.intercept
        scores += model.intercept - before
        for place, (cells, term) in enumerate(zip(self.cells, model.terms, strict=True)):
            known = None if old is None else old.terms[place]
            if term is known:
                continue
            if known is not None:
                scores -= known[cells]
            if term is not None:
                scores += term[cells]
        self._model, self._scores = model, scores
        return scores


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of the cells of a column, and the weight of the column in a release.

    Parameters
    ----------
    column
        The place of the column.
    group_of
        The group of each cell; -1 for cells that do not count.
    n_groups
        The number of groups.
    weight
        Whole eighths, from 1/8 to 16; the column's noise is inversely proportional to it.
    """

    column: int
    group_of: Integers
    n_groups: int
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.weight <= MOST_WEIGHT or self.weight % WEIGHT_UNIT:
            raise ValueError(f"weight must be whole eighths up to 16, got {self.weight!r}.")

    def totals(self, records: CellTable, values: Integers | None = None) -> Array:
        """Return the count, or the sum of steps, in each group. Private and exact."""
        groups = self.group_of[records.cells[self.column]] + 1  # group 0 does not count
        if values is None:
            return np.bincount(groups, minlength=self.n_groups + 1)[1:].astype(np.float64)
        # Floats add whole numbers below 2^53 exactly, in any order.
        return np.asarray(np.bincount(groups, values, minlength=self.n_groups + 1)[1:], np.float64)


def _root_of_squares(values: list[float]) -> float:
    return round_up(math.sqrt(math.fsum(value**2 for value in values)))


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Counts of records in groups of cells of several columns, times the columns' weights.

    A record is in at most one group per column. With ``labels`` the number of records follows, and
    the sums over labels, to which a record adds a vector of norm at most 1 each.

        sensitivity = sqrt(sum of weight^2 [+ 2]), times sqrt(2) under REPLACE

    Parameters
    ----------
    groups
        The groups of each column; a column may occur once.
    labels
        The kind of the labels, if they are summed.
    """

    groups: tuple[Grouping, ...]
    labels: LabelKind | None = None

    def __post_init__(self) -> None:
        _refuse_twice(self.groups)

    @classmethod
    def tried(cls) -> tuple[CellCounts, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (
            cls(_TRIED_GROUPS),
            cls(_TRIED_GROUPS, TwoClasses()),
            cls(_TRIED_GROUPS[:1], SeveralClasses(3)),
            cls((), NumberLabels()),
        )

    def neighbours(self, facts: Facts) -> Iterator[tuple[CellTable, CellTable]]:
        """Yield neighbouring tables."""
        return _neighbours(self.labels or TwoClasses(), facts)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return the norm of a record's part; sqrt(2) times it under REPLACE."""
        own = [group.weight for group in self.groups]
        own += [] if self.labels is None else [1.0, 1.0]
        value = _root_of_squares(own * int(facts.n_changed))
        return Sensitivity(value, Norm.L2, _COUNTS)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the counts of all groups, then the number of records and the label sums."""
        parts = [group.weight * group.totals(records) for group in self.groups]
        if self.labels is not None:
            parts += [np.array([float(records.n_records)]), self.labels.sums(records.labels)]
        return np.concatenate(parts)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that assign a record to groups and bound its label."""
        return Grouping.totals, TwoClasses.sums, SeveralClasses.sums, NumberLabels.sums


@dataclass(frozen=True, eq=False)
class ResidualSums:
    """Sums of residuals in groups of cells of several columns, times the columns' weights.

    The residual is the label minus the prediction of a model that follows from earlier answers.

        sensitivity = (greatest residual) sqrt(sum of weight^2), twice that under REPLACE

    Parameters
    ----------
    groups
        The groups of each column; a column may occur once.
    model
        The model; a constant one has smaller residuals.
    """

    groups: tuple[Grouping, ...]
    model: CellModel

    def __post_init__(self) -> None:
        _refuse_twice(self.groups)

    @classmethod
    def tried(cls) -> tuple[ResidualSums, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (
            *(cls(_TRIED_GROUPS, model) for model in _tried_models()),
            cls(_TRIED_GROUPS[1:], _tried_models()[0]),
        )

    def neighbours(self, facts: Facts) -> Iterator[tuple[CellTable, CellTable]]:
        """Yield neighbouring tables."""
        return _neighbours(self.model.labels, facts)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return the norm of a record's part, times two under REPLACE."""
        weights = _root_of_squares([group.weight for group in self.groups])
        value = facts.n_changed * round_up(self.model.largest_residual() * weights)
        return Sensitivity(value, Norm.L2, _RESIDUALS)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sums, shape (all groups, n_outputs). Private."""
        scores = records.scores(self.model)
        residuals = self.model.labels.residuals(scores, records.labels)
        outputs = [
            np.concatenate([group.weight * group.totals(records, column) for group in self.groups])
            for column in residuals.T
        ]
        return np.stack(outputs, axis=1) / STEPS

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that compute and bound a record's residual."""
        return (
            Grouping.totals,
            CellTable.scores,
            TwoClasses.residuals,
            SeveralClasses.residuals,
            NumberLabels.residuals,
        )


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """The number of records by class and by cell of the score, for two classes.

    A record is in one cell: the sensitivity is 1, and sqrt(2) under REPLACE.

    Parameters
    ----------
    model
        The model.
    edges
        The inner edges of the cells of scores, in steps.
    """

    model: CellModel
    edges: Integers

    @classmethod
    def tried(cls) -> tuple[ScoreCells, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (cls(_tried_models()[0], steps_of([-1.0, 0.0, 1.0])),)

    def neighbours(self, facts: Facts) -> Iterator[tuple[CellTable, CellTable]]:
        """Yield neighbouring tables."""
        return _neighbours(self.model.labels, facts)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1, or sqrt(2)."""
        return Sensitivity(_root_of_squares([1.0] * int(facts.n_changed)), Norm.L2, _TABLES)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the counts, shape (n_cells, 2). Private."""
        found = np.searchsorted(self.edges, records.scores(self.model)[:, 0], side="right")
        cell = 2 * found + np.clip(records.labels, 0, 1)
        n_cells = len(self.edges) + 1
        return np.bincount(cell, minlength=2 * n_cells).reshape(-1, 2).astype(np.float64)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the function that computes a record's score."""
        return (CellTable.scores,)


@dataclass(frozen=True, eq=False)
class ResidualCells:
    """The number of records by cell of the absolute residual, for labels that are numbers.

    A record is in one cell: the sensitivity is 1, and sqrt(2) under REPLACE.

    Parameters
    ----------
    model
        The model.
    edges
        The inner edges of the cells of absolute residuals, in steps.
    """

    model: CellModel
    edges: Integers

    @classmethod
    def tried(cls) -> tuple[ResidualCells, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (cls(_tried_models()[5], steps_of([0.01, 0.1, 0.5])),)

    def neighbours(self, facts: Facts) -> Iterator[tuple[CellTable, CellTable]]:
        """Yield neighbouring tables."""
        return _neighbours(self.model.labels, facts)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1, or sqrt(2)."""
        return Sensitivity(_root_of_squares([1.0] * int(facts.n_changed)), Norm.L2, _TABLES)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the counts. Private."""
        residuals = self.model.labels.residuals(records.scores(self.model), records.labels)
        found = np.searchsorted(self.edges, np.abs(residuals[:, 0]), side="right")
        return np.bincount(found, minlength=len(self.edges) + 1).astype(np.float64)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that compute a record's residual."""
        return CellTable.scores, NumberLabels.residuals


@dataclass(frozen=True, eq=False)
class ScoreMoments:
    """The sums of u v, u^2, u and v over records, for labels that are numbers.

    u is the score and v the label, less a centre, each in units of its scale and clipped to
    [-1, 1]. The line from scores to labels follows from these sums. A record adds a vector of norm
    at most 2, and two records differ by at most sqrt(13).

    Parameters
    ----------
    model
        The model.
    centre
        The centre of scores and labels, in steps.
    score_scale, label_scale
        The greatest distance from the centre that counts, in steps.
    """

    model: CellModel
    centre: int
    score_scale: int
    label_scale: int

    @classmethod
    def tried(cls) -> tuple[ScoreMoments, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        model = _tried_models()[2]
        return cls(model, 0, STEPS // 2, STEPS // 2), cls(model, 1000, STEPS // 7, STEPS // 3)

    def neighbours(self, facts: Facts) -> Iterator[tuple[CellTable, CellTable]]:
        """Yield neighbouring tables."""
        return _neighbours(self.model.labels, facts)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 2, or sqrt(13) under REPLACE."""
        squared = 13.0 if facts.relation is Relation.REPLACE else 4.0
        return Sensitivity(round_up(math.sqrt(squared)), Norm.L2, _TABLES)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sums of u v, u^2, u and v. Private."""
        u = self._scaled(records.scores(self.model)[:, 0], self.score_scale)
        v = self._scaled(records.labels, self.label_scale)
        # Both products are rounded to whole steps, towards 0: none exceeds 1 in size.
        products = np.stack([u * v, u * u])
        whole = np.sign(products) * (np.abs(products) >> 20)
        sums = [*whole.sum(axis=1), u.sum(), v.sum()]
        return np.array(sums, dtype=np.float64) / STEPS

    def _scaled(self, values: Integers, scale: int) -> Integers:
        clipped = np.clip(values - self.centre, -scale, scale)
        # A product of floats is correctly rounded: it depends on the record alone.
        whole = np.rint(clipped * (STEPS / scale)).astype(np.int64)
        return np.asarray(np.clip(whole, -STEPS, STEPS))

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that compute a record's score and scale it."""
        return CellTable.scores, ScoreMoments._scaled


@dataclass(frozen=True, eq=False)
class CellFeatures:
    """A view of a `CellTable` as rows of features, each a function of one column's cell.

    Rows depend on their own record alone, and are clipped to the row norm of ``bounds`` as they
    are summed, like all rows.

    Parameters
    ----------
    features
        The place of a column, and the feature of each of its cells.
    bounds
        The bounds of the records.
    label_unit
        The factor between stored labels and those of the rows: 1 for classes.
    """

    features: tuple[tuple[int, npt.NDArray[Any]], ...]
    bounds: Bounds
    label_unit: float = 1.0

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the rows in memory, and their facts."""
        rows = np.empty((records.n_records, len(self.features)), dtype=np.float32)
        for place, (column, feature) in enumerate(self.features):
            rows[:, place] = feature[records.cells[column]]
        labels = records.labels.astype(np.float64) * self.label_unit
        made = MemoryRecords(rows, labels, self.bounds)
        return made, Facts(self.bounds, len(self.features), facts.relation)


def _refuse_twice(groups: tuple[Grouping, ...]) -> None:
    """Refuse two groupings of one column: a record would be in two groups at one weight."""
    columns = [group.column for group in groups]
    if len(set(columns)) < len(columns):
        raise ValueError("a column is grouped twice in one release; ask two queries.")


# What conformance tests try: two columns of three and two cells, one cell of which is not counted.
_TRIED_GROUPS = (
    Grouping(0, np.array([0, 1, -1]), 2),
    Grouping(1, np.array([1, 0]), 2, weight=2.5),
)


def _tried_models() -> tuple[CellModel, ...]:
    """Return models with extreme terms: two classes, three classes, a number."""
    extreme = steps_of([[-60.0], [60.0], [0.5]]), steps_of([[0.0], [1.0]])
    three = steps_of(np.array([[-60.0, 0, 60.0], [60.0, 0.0, -60.0], [0.0, 0.0, 0.0]]))
    return (
        CellModel(TwoClasses(), steps_of([0.1]), extreme),
        CellModel(SeveralClasses(3), steps_of([0.0, 0.1, 0.2]), (three, None)),
        CellModel(NumberLabels(0.25), steps_of([0.1]), extreme),
        CellModel(TwoClasses(), steps_of([-1.0]), (None, None)),
        CellModel(SeveralClasses(3), steps_of([0.0, 0.1, 0.2]), (None, None)),
        CellModel(NumberLabels(), steps_of([0.1]), (None, None)),
    )


def _neighbours(labels: LabelKind, facts: Facts) -> Iterator[tuple[CellTable, CellTable]]:
    """Yield tables with and without one more record, or with one replaced, for all cells."""
    records = list(itertools.product(range(3), range(2), labels.tried_labels()))
    others = [[one] for one in records] if facts.relation is Relation.REPLACE else [[]]
    for one, other in itertools.product(records, others):
        yield _table([*records[:2], *other]), _table([*records[:2], one])


def _table(records: list[tuple[int, int, int]]) -> CellTable:
    first, second, labels = np.array(records, dtype=np.int64).reshape(-1, 3).T
    return CellTable((first, second), labels)
