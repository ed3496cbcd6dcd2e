"""Plan a description: cells, weights, noise, and the width of every interval in advance.

All columns are counted in one release. Figures of a column have noise in proportion to a_j / w_j,
with w_j its weight and a_j = 1 for the share of a level, and sqrt(B) / 2 for the median among B
bins. The weights minimise the sum of these over columns, at a fixed sensitivity:

    Gaussian noise, sum c_j w_j^2 = 1:  w_j in proportion to (a_j / c_j)^(1/3)
    Laplace noise,  sum c_j w_j = 1:    w_j in proportion to (a_j / c_j)^(1/2)

where c_j is what a column of weight 1 adds to the (squared) sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.descriptive.intervals import acceptance
from tacit.engine import Plan, without_noise
from tacit.estimators.parameters import budget_of
from tacit.noise import Norm
from tacit.privacy import Budget, Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import Facts, GaussianNoise, LaplaceNoise, NoisySum, Session
from tacit.queries.base import plain_facts
from tacit.queries.table_counts import (
    MOMENT_WEIGHT,
    MOST_WEIGHT,
    WEIGHT_STEP,
    CountedColumn,
    TableCounts,
)
from tacit.records.coded_table import (
    Cells,
    LevelCells,
    NumberCells,
    level_cells,
    number_of_target,
    whole_step,
)
from tacit.schema import Age, NumberTarget, Schema, SchemaError, Year
from tacit.schema.column_kinds import ClippedNumber
from tacit.schema.columns import Column
from tacit.schema.encoding import check_schema
from tacit.schema.targets import Target

Array = npt.NDArray[np.float64]

LEAST_BINS, USUAL_BINS, MOST_BINS = 32, 64, 1024
SHOWN_BINS = 16  # bins of a published histogram
_LAPLACE_FOURTH = 3.0  # fourth cumulant of Laplace noise over its squared variance
# Values are spread evenly inside a bin of width 1 / B, which moves a rank by up to f' / (8 B^2).
# That is 3 / B^2 for a normal density whose standard deviation is a tenth of the range.
_INTERPOLATION = 3.0
_TOLERATED = 0.1  # of the standard deviation of a rank


@dataclass(frozen=True)
class Width:
    """The expected half width of an interval.

    Parameters
    ----------
    column, figure, group
        The figure: "share" of a level that half of the records have, "mean" and "median" of
        values that are spread evenly over the range, "count".
    half_width
        The half width of the interval of the population's figure.
    noise
        The half width that noise alone would have: the interval of the table's own figure.
    scale
        The range of the figure: 1 for a share, the declared range for a number.
    """

    column: str
    figure: str
    group: str
    half_width: float
    noise: float
    scale: float


@dataclass(frozen=True)
class DescriptionPlan(Plan):
    """A plan with the cells to count.

    Examples
    --------
    >>> from tacit.descriptive import plan_description
    >>> from tacit.schema import Category, Number, Schema
    >>> schema = Schema((Number("age", 0, 100), Category("sex", ("f", "m"))), n_records=20_000)
    >>> plan = plan_description(schema, epsilon=0.5, delta=1e-6)
    >>> print(plan)
    noisy_counts: counts of all cells and sums of numbers, with Gaussian noise, once
      count_noise_std = 17.2064
      columns = 2
      cells = 133
    >>> widths = {(width.column, width.figure): width for width in plan.widths()}
    >>> round(widths["sex", "share"].half_width, 4), round(widths["age", "mean"].half_width, 2)
    (0.007, 0.41)
    """

    facts: Facts = field(kw_only=True)
    cells: tuple[Cells, ...] = field(kw_only=True)
    counts: TableCounts = field(kw_only=True)
    by: str | None = field(kw_only=True, default=None)
    n_records: int | None = field(kw_only=True, default=None)
    confidence: float = field(kw_only=True, default=0.95)

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise on a count of weight 1."""
        query = self.queries.get("counts")
        return 0.0 if query is None else query.noise_std(self.facts)

    @property
    def fourth(self) -> float:
        """The fourth cumulant of the noise over its squared variance: 0 for Gaussian noise."""
        return _LAPLACE_FOURTH if self.counts.norm is Norm.L1 else 0.0

    @property
    def known_count(self) -> int | None:
        """The number of records, where neighbours agree on it."""
        return self.n_records if self.budget.relation is Relation.REPLACE else None

    @property
    def levels_of_groups(self) -> tuple[str, ...]:
        """The declared levels of the groups."""
        if self.counts.group is None:
            return ()
        cells = self.cells[self.counts.group]
        assert isinstance(cells, LevelCells)
        return cells.levels[: cells.n_declared]

    def totals(self, session: Session) -> Array:
        """Ask a session of a coded table for the noisy counts and sums."""
        if "counts" in self.queries:
            return np.asarray(session.ask(self.queries["counts"], "counts"))
        return session.without_noise(lambda table: self.counts.total(table, session.facts))

    def widths(self, n_records: int | None = None) -> tuple[Width, ...]:
        """Return the expected half width of each kind of figure, column by column.

        Parameters
        ----------
        n_records
            The number of records, or people; by default that of the schema.

        Raises
        ------
        ValueError
            If neither says how many records there are.
        """
        n = self.n_records if n_records is None else n_records
        if n is None:
            raise ValueError(
                "n_records is not declared, and widths depend on the number of records; pass an "
                "approximate one (n_records, or tacit describe --rows), or declare n_records in "
                "the schema."
            )
        checks.count("n_records", n, least=1, remedy="pass the number of records.")
        groups = self.counts.n_groups
        found = list(self._widths_of("all", float(n), groups))
        levels = self.levels_of_groups
        if levels:
            found += self._widths_of("each group", n / len(levels), 1)
        return tuple(found)

    def _widths_of(self, group: str, n: float, n_groups: int) -> Iterable[Width]:
        z = acceptance(self.confidence).z
        if group == "all":
            variance = size_variance(self) * n_groups
            noise = 0.0 if self.known_count is not None else z * math.sqrt(variance)
            yield Width("records", "count", group, noise, noise, n)
        for place, (cells, column) in enumerate(zip(self.cells, self.counts.columns, strict=True)):
            if place == self.counts.group:
                if group == "all":
                    noise = z * math.sqrt(size_variance(self) / 2) / n
                    yield Width(
                        cells.name,
                        "share",
                        group,
                        math.hypot(noise, z / 2 / math.sqrt(n)),
                        noise,
                        1.0,
                    )
                continue
            each = (self.noise_std / column.weight) ** 2 * n_groups
            if not isinstance(cells, NumberCells):
                # The form is 1/2 on one level and -1/2 on another one.
                noise = z * math.sqrt(each / 2) / n
                half = math.hypot(noise, z / 2 / math.sqrt(n))
                yield Width(cells.name, "share", group, half, noise, 1.0)
                continue
            span = cells.column.upper - cells.column.lower
            noise = z * math.sqrt(each) / MOMENT_WEIGHT / n / 2
            half = math.hypot(noise, z / math.sqrt(12 * n))
            name = "geometric mean" if cells.column.log else "mean"
            # On a logarithmic scale the half width is a share of the scale.
            scale = 1.0 if cells.column.log else span
            yield Width(cells.name, name, group, half * scale, noise * scale, scale)
            noise = z * math.sqrt(each * cells.n_bins / 4) / n
            half = math.hypot(noise, z / 2 / math.sqrt(n))
            yield Width(cells.name, "median", group, half * scale, noise * scale, scale)


def size_variance(plan: DescriptionPlan) -> float:
    """Return the noise variance of the estimated size of one group."""
    total = 0.0
    for column in plan.counts.columns:
        each = (plan.noise_std / column.weight) ** 2
        # The column of groups counts each group in one cell.
        n_cells = 1 if plan.counts.group is not None and not column.by_group else column.n_cells
        total += math.inf if each == 0 else 1.0 / (each * n_cells)
    return 1.0 / total


def plan_description(
    schema: Schema,
    epsilon: float,
    delta: float = 1e-6,
    *,
    by: str | None = None,
    columns: Sequence[str] | None = None,
    whole: Sequence[str] = (),
    bins: int | None = None,
    relation: Relation | str = "add_remove",
    n_records: int | None = None,
    confidence: float = 0.95,
) -> DescriptionPlan:
    """Plan a description from public facts alone; parameters as in `tacit.describe`.

    The plan's ``widths()`` are the expected half widths of all intervals.

    Examples
    --------
    >>> from tacit.descriptive import plan_description
    >>> from tacit.schema import Category, Schema
    >>> schema = Schema((Category("ward", ("A", "B")),))
    >>> plan_description(schema, 1.0, by="sex")
    Traceback (most recent call last):
    tacit.io.errors.SchemaError: by names 'sex', which is no column of the schema; ...
    """
    return plan_for(
        schema,
        budget_of(epsilon, delta, relation),
        by=by,
        columns=columns,
        whole=whole,
        bins=bins,
        n_records=n_records,
        confidence=confidence,
    )


def plan_for(
    schema: Schema,
    budget: Budget,
    *,
    by: str | None,
    columns: Sequence[str] | None,
    whole: Sequence[str],
    bins: int | None,
    n_records: int | None,
    confidence: float,
) -> DescriptionPlan:
    """Plan a description under a budget; `plan_description` has the parameters."""
    check_schema(schema)
    n = schema.n_records if n_records is None else n_records
    if n is not None:
        checks.count("n_records", n, least=1, remedy="pass the number of records.")
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence must be from 0.5 to below 1, got {confidence!r}; pass 0.95.")
    if bins is not None:
        checks.count("bins", bins, least=4, most=MOST_BINS, remedy="pass a number such as 64.")
    if budget.relation is Relation.REPLACE and n is None:
        raise ValueError(
            "n_records is not declared, and relation 'replace' makes the number of records "
            "public; declare n_records in the schema, pass n_records, or leave relation out."
        )
    chosen = _chosen(schema, columns, by)
    _check_whole(chosen, whole)
    norm = Norm.L1 if budget.is_pure else Norm.L2
    noise = _noise(budget)
    counts: TableCounts | None = None
    cells: tuple[Cells, ...] = ()
    # More bins make quantiles finer and noisier: take the fewest that are fine enough.
    n_bins = USUAL_BINS if bins is None and n is None else bins or LEAST_BINS
    while counts is None:
        cells = tuple(_cells(column, n_bins, column.name in whole, by) for column in chosen)
        tried = _counted(cells, by, norm)
        std = 0.0
        if noise is not None:
            std = NoisySum(tried, noise).noise_std(plain_facts(budget.relation))
        if bins is None and n is not None and not _is_fine(tried, n_bins, std, n):
            n_bins *= 2
        else:
            counts = tried
    facts = plain_facts(budget.relation)
    query = None if noise is None else NoisySum(counts, noise)
    kind = "Laplace" if budget.is_pure else "Gaussian"
    reason = "counts of all cells and sums of numbers, "
    reason += "without noise" if query is None else f"with {kind} noise, once"
    std = 0.0 if query is None else query.noise_std(facts)
    settings = {
        # The greatest standard deviation of the noise on one count.
        "count_noise_std": std / min(column.weight for column in counts.columns),
        "columns": len(cells),
        "cells": sum(c.n_cells * counts.groups_of(c) for c in counts.columns),
    }
    return DescriptionPlan(
        "noisy_counts",
        without_noise(budget).event if query is None else query.event(facts),
        budget,
        reason,
        settings,
        facts=facts,
        queries={} if query is None else {"counts": query},
        cells=cells,
        counts=counts,
        by=by,
        n_records=n,
        confidence=confidence,
    )


def _noise(budget: Budget) -> GaussianNoise | LaplaceNoise | None:
    if budget.is_infinite:
        return None
    if budget.is_pure:
        return LaplaceNoise(budget.epsilon)
    return GaussianNoise(gaussian_multiplier(budget))


def _is_fine(counts: TableCounts, n_bins: int, std: float, n: int) -> bool:
    """Return whether bins are so fine that spreading values evenly inside them does not matter."""
    if n_bins >= MOST_BINS:
        return True
    weights = [column.weight for column in counts.columns if column.numbers]
    if not weights:
        return True
    noise = (std / max(weights)) ** 2 * counts.n_groups * n_bins / 4
    rank = math.sqrt(noise + n / 4) / n
    return _INTERPOLATION / n_bins**2 <= _TOLERATED * rank


def _chosen(
    schema: Schema, columns: Sequence[str] | None, by: str | None
) -> tuple[Column | Target, ...]:
    """Return the columns to describe, the groups' among them."""
    known: dict[str, Column | Target] = {column.name: column for column in schema.encoded}
    if schema.target is not None:
        known[schema.target.name] = schema.target
    if not known:
        raise SchemaError(
            "every column of the schema is ignored, so there is nothing to describe; declare at "
            "least one number, category or boolean."
        )
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got {columns!r}; pass [{columns!r}].")
    names = list(known) if columns is None else list(dict.fromkeys(columns))
    for name in names:
        if name not in known:
            raise SchemaError(
                f"columns names {name!r}, which is no column of the schema, or an ignored one; "
                f"the schema describes {_listed(known)}."
            )
    if by is not None:
        if by not in known:
            raise SchemaError(
                f"by names {by!r}, which is no column of the schema; groups are the levels of one "
                f"of {_listed(_levelled(known))}."
            )
        if level_cells(known[by]) is None:
            cut = "declare it as kind = 'intervals' with cuts, or "
            raise SchemaError(
                f"by names {by!r}, which is a number and has no levels; "
                f"{'' if isinstance(known[by], Age | Year) else cut}group by one of "
                f"{_listed(_levelled(known))}."
            )
        names = [by, *(name for name in names if name != by)]
    if not names:
        raise SchemaError("columns is empty, so there is nothing to describe; name at least one.")
    return tuple(known[name] for name in names)


def _levelled(known: dict[str, Column | Target]) -> list[str]:
    return [name for name, column in known.items() if not _is_number(column)]


def _is_number(column: Column | Target) -> TypeGuard[ClippedNumber | NumberTarget]:
    return isinstance(column, ClippedNumber | NumberTarget)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "no column"


def _has_whole(column: ClippedNumber | NumberTarget) -> bool:
    """Return whether a range has a whole number."""
    return math.floor(column.upper) >= math.ceil(column.lower)


def _check_whole(chosen: Sequence[Column | Target], whole: Sequence[str]) -> None:
    if isinstance(whole, str):
        raise TypeError(f"whole must be a list of names, got {whole!r}; pass [{whole!r}].")
    # An age is counted in days, and a part of a year counts.
    numbers = {c.name: c for c in chosen if _is_number(c) and not isinstance(c, Age)}
    for name in whole:
        column = numbers.get(name)
        if column is not None and not _has_whole(column):
            raise SchemaError(
                f"whole names {name!r}, whose range from {column.lower:g} to {column.upper:g} has "
                "no whole number; leave it out of whole."
            )
        if column is None:
            raise SchemaError(
                f"whole names {name!r}, which is no number that is described; whole numbers are "
                f"among {_listed(numbers)}."
            )


def _cells(column: Column | Target, n_bins: int, whole: bool, by: str | None) -> Cells:
    levels = level_cells(column)
    if levels is not None:
        # Records of no declared group are one group more: each adds noise to figures of all.
        return LevelCells(levels.column, tells_other=column.name != by)
    number: Any = number_of_target(column) if isinstance(column, NumberTarget) else column
    assert isinstance(number, ClippedNumber)
    # A calendar year is a whole number.
    whole = whole or (isinstance(number, Year) and _has_whole(number))
    if whole and not number.log:
        # As many bins as there are whole numbers, or as many as hold a few of them each.
        n_values = math.floor(number.upper) - math.ceil(number.lower) + 1
        most = n_bins if n_values > 2 * n_bins else n_values
        return NumberCells(number, max(-(-n_values // whole_step(number, most)), 1), True)
    return NumberCells(number, n_bins, whole)


def _counted(cells: Sequence[Cells], by: str | None, norm: Norm) -> TableCounts:
    """Return the statistic, with the weights that make intervals narrow."""
    wanted = []
    for cell in cells:
        numbers = isinstance(cell, NumberCells)
        amount = math.sqrt(cell.n_cells - 1) / 2 if numbers else 1.0
        alone = TableCounts((CountedColumn(cell.n_cells, numbers=numbers),), None, norm)
        cost = alone.length(Relation.ADD_REMOVE)
        if norm is Norm.L2:
            wanted.append((max(amount, 1.0) / cost**2) ** (1 / 3))
        else:
            wanted.append(math.sqrt(max(amount, 1.0) / cost))
    # Only ratios matter; the greatest weight keeps rounding to sixteenths fine.
    largest = max(wanted)
    weights = [
        max(round(weight / largest * MOST_WEIGHT / WEIGHT_STEP), 1) * WEIGHT_STEP
        for weight in wanted
    ]
    group = None if by is None else 0
    columns = tuple(
        CountedColumn(
            cell.n_cells,
            weight,
            by_group=by is not None and place != group,
            numbers=isinstance(cell, NumberCells),
        )
        for place, (cell, weight) in enumerate(zip(cells, weights, strict=True))
    )
    return TableCounts(columns, group, norm)
