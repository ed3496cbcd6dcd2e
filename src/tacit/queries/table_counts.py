"""Count the records of every cell of a table, and sum its numbers, by groups: one release."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.noise import Norm
from tacit.noise.bounded import round_up
from tacit.privacy import Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity
from tacit.records.coded_table import CodedBlock

_PROOF = "table_counts.md#1-sensitivity"

# Weights are multiples of 1/16 up to 4, and numbers multiples of 2^-16: sums of up to 2^28 records
# are whole multiples of 2^-21 below 2^53 of them, which floats add and scale exactly.
WEIGHT_STEP = 1.0 / 16
MOST_WEIGHT = 4.0
_STEPS = 2.0**16
_MOST_RECORDS = 2**28
# The weight of a number's sums beside its count of 1; it adds (1/2)^2 (5/4)^2 = 0.39 to the square
# of 1. The sum of the widths of mean, standard deviation and quartiles is nearly flat about it.
MOMENT_WEIGHT = 0.5
# A value u in [-1, 1] and its square as 2 u^2 - 5/4, as in `ColumnMoments`.
SQUARE_WEIGHT = 2.0
SQUARE_SHIFT = 1.25
# The greatest norm of (u, 2 u^2 - 5/4), rounded to steps: 5/4 in L2, at u = 0 and +-1; 7/4 in L1,
# at +-1. Rounding moves each of the two by at most half a step.
_LONGEST_L2 = 1.25 + 1.0 / _STEPS
_LONGEST_L1 = 1.75 + 1.0 / _STEPS


@dataclass(frozen=True)
class CountedColumn:
    """The cells of one column, and its weight.

    Parameters
    ----------
    n_cells
        The number of cells; a record is in one of them, the last if its value is missing.
    weight
        The weight of its counts in the release: noise is divided by it.
    by_group
        Whether cells are counted for each group.
    numbers
        Whether the values are numbers in [-1, 1], whose sums are released too.
    """

    n_cells: int
    weight: float = 1.0
    by_group: bool = False
    numbers: bool = False

    def __post_init__(self) -> None:
        if self.weight / WEIGHT_STEP % 1 or not WEIGHT_STEP <= self.weight <= MOST_WEIGHT:
            raise ValueError(
                f"weight must be a multiple of {WEIGHT_STEP} up to {MOST_WEIGHT}, got "
                f"{self.weight}; others would not be added exactly."
            )


@dataclass(frozen=True)
class TableCounts:
    """The number of records in each cell of every column, by group, and sums of numbers.

    A record adds ``weight`` to one cell of each column and, for a number u in [-1, 1],
    ``weight`` / 2 x (u, 2 u^2 - 5/4) to the sums of its group. The total has, column by column,
    the counts (groups, cells) and the sums (groups, 2).

    Parameters
    ----------
    columns
        The columns, in the order of a block's.
    group
        The place of the column whose cells are the groups; None for a single group.
    norm
        L2 for Gaussian noise, L1 for Laplace noise.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Relation
    >>> from tacit.queries.table_counts import CountedColumn, TableCounts
    >>> from tacit.queries.base import plain_facts
    >>> from tacit.records.coded_table import CodedTable, LevelCells
    >>> from tacit.schema import Category
    >>> table = CodedTable({"sex": ["m", "f", "m"]}, [LevelCells(Category("sex", ("f", "m")))])
    >>> counts = TableCounts((CountedColumn(4),))
    >>> counts.total(table, plain_facts(Relation.ADD_REMOVE))
    array([1., 2., 0., 0.])
    """

    columns: tuple[CountedColumn, ...]
    group: int | None = None
    norm: Norm = Norm.L2

    @classmethod
    def tried(cls) -> tuple[TableCounts, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        columns = (
            CountedColumn(3, 1.0),
            CountedColumn(4, 1.5, by_group=True, numbers=True),
            CountedColumn(2, 0.25, by_group=True),
        )
        alone = (CountedColumn(3, 1.0, numbers=True),)
        return cls(columns, 0), cls(columns, 0, Norm.L1), cls(alone), cls(alone, None, Norm.L1)

    def neighbours(self, facts: Facts) -> Iterator[tuple[Private, Private]]:
        """Yield neighbours that differ as much as possible, and in odd ways."""
        others = [(0, 0.5), (1, -1.0)]
        odd = [(0, 0.0), (0, 1.0), (1, -1.0), (1, math.nan), (99, 7.0), (-5, -math.inf)]
        odd += [(0, 0.3), (1, 0.7071)]
        for one, other in itertools.product(odd, odd):
            replaced = [other] if facts.relation is Relation.REPLACE else []
            yield self._records([*others, *replaced]), self._records([*others, one])

    def _records(self, values: list[tuple[int, float]]) -> Private:
        k = len(self.columns)
        codes = np.array([[code] * k for code, _ in values], dtype=np.int64)
        units = np.array([[unit] * k for _, unit in values])
        return _InMemory(CodedBlock(codes, units))

    def applies(self, facts: Facts) -> bool:
        """Return True: it applies to any coded table."""
        return True

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return 1 if self.group is None else self.columns[self.group].n_cells

    def groups_of(self, column: CountedColumn) -> int:
        """Return the number of groups for which a column's cells are counted."""
        return self.n_groups if column.by_group else 1

    def length(self, relation: Relation) -> float:
        """Return the greatest norm of a record's part, or distance of two of them, in reals.

        A column of weight w adds w to one cell and at most w/2 x 5/4 to its sums, in L2:

            w^2 (1 + (5/8)^2),   and between two records  w^2 (2 + 4 (5/8)^2)

        and in L1 w (1 + 1/2 x 7/4), twice that between two records.
        """
        replaced, total = relation is Relation.REPLACE, Fraction(0)
        for column in self.columns:
            weight = Fraction(column.weight)
            if self.norm is Norm.L1:
                sums = Fraction(MOMENT_WEIGHT) * Fraction(_LONGEST_L1) if column.numbers else 0
                total += weight * (1 + sums) * (2 if replaced else 1)
                continue
            square = (Fraction(MOMENT_WEIGHT) * Fraction(_LONGEST_L2)) ** 2 if column.numbers else 0
            total += weight**2 * ((2 + 4 * square) if replaced else (1 + square))
        return float(total) if self.norm is Norm.L1 else math.sqrt(total)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return the norm of a record's part, or under REPLACE the distance of two."""
        value = round_up(round_up(self.length(facts.relation)))
        return Sensitivity(value, self.norm, _PROOF)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the weighted counts and sums. Private."""
        # Whole numbers: counts, and sums in steps of 2^-16; then weights, exactly.
        whole = records.sum(self.whole_sums)
        if whole[0] > _MOST_RECORDS:
            raise ValueError("there are more than 2^28 records to add up exactly; describe a part.")
        return np.asarray(whole[1:] * self._weights())

    def whole_sums(self, block: CodedBlock) -> Array:
        """Return the number of records, all counts, and all sums in steps of 2^-16. Private."""
        n = len(block.codes)
        group = np.zeros(n, dtype=np.int64)
        if self.group is not None:
            group = _within(block.codes[:, self.group], self.n_groups)
        parts = [np.array([float(n)])]
        for place, column in enumerate(self.columns):
            n_groups = self.groups_of(column)
            own = group if column.by_group else np.zeros(n, dtype=np.int64)
            cell = _within(block.codes[:, place], column.n_cells)
            counts = np.bincount(own * column.n_cells + cell, minlength=n_groups * column.n_cells)
            parts.append(counts.astype(np.float64))
            if column.numbers:
                steps = moment_steps(block.units[:, place])
                # Sums of whole numbers below 2^53 are exact.
                by_group = [np.bincount(own, weights=s, minlength=n_groups) for s in steps]
                parts.append(np.stack(by_group, axis=1).ravel())
        return np.concatenate(parts)

    def _weights(self) -> Array:
        parts: list[npt.NDArray[np.float64]] = []
        for column in self.columns:
            n_groups = self.groups_of(column)
            parts.append(np.full(n_groups * column.n_cells, column.weight))
            if column.numbers:
                weight = column.weight * MOMENT_WEIGHT / _STEPS
                parts.append(np.full(n_groups * 2, weight))
        return np.concatenate(parts)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that assign a record to cells and bound its numbers."""
        return TableCounts.whole_sums, moment_steps


def moment_steps(units: Array) -> tuple[Array, Array]:
    """Return u and 2 u^2 - 5/4 of each record, in whole steps of 2^-16; zeros if not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.queries.table_counts import moment_steps
    >>> [steps / 2**16 for steps in moment_steps(np.array([0.5, np.nan, 9.0]))]
    [array([0.5, 0. , 1. ]), array([-0.75,  0.  ,  0.75])]
    """
    finite = np.isfinite(units)
    u = np.clip(np.where(finite, units, 0.0), -1.0, 1.0)
    square = np.where(finite, SQUARE_WEIGHT * u * u - SQUARE_SHIFT, 0.0)
    return np.rint(u * _STEPS), np.rint(square * _STEPS)


def _within(codes: npt.NDArray[np.int64], n_cells: int) -> npt.NDArray[np.int64]:
    """Return codes; one out of range is that of a missing value."""
    return np.where((codes >= 0) & (codes < n_cells), codes, n_cells - 1)


@dataclass(frozen=True, eq=False)
class _InMemory:
    """A block as records, for tests on neighbours."""

    block: CodedBlock

    def sum(self, function: Callable[[CodedBlock], Array]) -> Array:
        """Return the function of the block."""
        return function(self.block)
