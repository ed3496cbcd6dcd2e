"""Describe a table privately: a Table 1 with intervals, from one release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from tacit.descriptive.description import Description
from tacit.descriptive.figures import figures_of
from tacit.descriptive.planning import DescriptionPlan, plan_for
from tacit.engine import release_answers
from tacit.estimators.parameters import budget_of, source_of, warn_if_weak, with_people
from tacit.privacy import AnyAccountant, Relation
from tacit.records.coded_table import Cells, CodedRecords, CodedTable
from tacit.schema import Schema, SchemaEncoder
from tacit.schema.encoding import check_schema


@runtime_checkable
class Elsewhere(Protocol):
    """A table whose records are elsewhere, such as `tacit.cluster.DaskTable`."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The sentences that a guarantee must repeat."""

    def coded(self, cells: Sequence[Cells], unit: str | None = None) -> CodedRecords:
        """Return the records as cells; columns are checked at once, and no record is read."""


def describe(
    table: Any,
    schema: Schema,
    epsilon: float,
    delta: float = 1e-6,
    *,
    by: str | None = None,
    columns: Sequence[str] | None = None,
    whole: Sequence[str] = (),
    bins: int | None = None,
    unit: Any = None,
    relation: Relation | str = "add_remove",
    n_records: int | None = None,
    confidence: float = 0.95,
    accountant: AnyAccountant | None = None,
    random_state: int | None = None,
    delimiter: str | None = None,
    allow_unconfirmed: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Description:
    """Describe all columns of a schema within one budget: a Table 1.

    One release of noisy counts and sums gives, for all records and for each group, the number of
    records, missing values, shares of levels, means, standard deviations, quartiles and
    histograms, each with intervals.

    Parameters
    ----------
    table
        A pandas or polars frame, a pyarrow Table, a dictionary of columns, the path of a file or
        several, or a `tacit.cluster.DaskTable`.
    schema
        The public schema. Ignored columns are not read; a target is described like a column.
    epsilon, delta, relation, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`. With a delta of 0 the noise is Laplace noise.
        An epsilon of infinity adds no noise.
    by
        The column of levels, or the target, by whose levels all other columns are told apart.
    columns
        The columns to describe, by default all.
    whole
        The columns of whole numbers: their quartiles are whole numbers.
    bins
        The number of bins of a number's range from which quartiles are computed; by default as many
        as the noise allows.
    unit
        The person of each record: an identifier a record, or the name of a column. One record of
        each person then counts, and people are protected. By default the schema's unit.
    n_records
        The approximate number of records, or people, if it is public; by default the schema's.
    confidence
        The probability with which an interval contains its figure.
    delimiter
        The separator of the fields of a CSV.
    allow_unconfirmed
        Whether to accept lines of the schema that were guessed from the data.
    progress
        Called with the share of a file that was read.

    Returns
    -------
    Description
        The figures, as text, frame, CSV, LaTeX or HTML, and the guarantee ``privacy_``.

    Notes
    -----
    **Intervals**. ``low`` and ``high`` contain the figure of the population of which the records
    are independent draws: they cover sampling and noise. ``table_low`` and ``table_high`` contain
    the figure of this table: they cover noise alone. Counts have the second kind only. Numbers are
    clipped to the declared range, and figures are about clipped numbers.

    **Guarantee**. Columns and parameters are checked, and the budget is charged, before a record
    is read. No record raises an error.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> from tacit.schema import Category, Number, Schema
    >>> rng = np.random.default_rng(0)
    >>> table = {"age": rng.normal(50, 12, 20_000), "sex": rng.choice(["f", "m"], 20_000)}
    >>> schema = Schema((Number("age", 0, 100), Category("sex", ("f", "m"))))
    >>> found = tacit.describe(table, schema, epsilon=1.0, delta=1e-6)
    >>> mean = found.figure("age", "mean")
    >>> bool(mean.low < 50.5 and mean.high > 49.5 and mean.high - mean.low < 1)
    True
    >>> found.privacy_.within(1.0, 1e-6)
    True
    """
    check_schema(schema)
    SchemaEncoder(schema, allow_unconfirmed=allow_unconfirmed).facts_out()
    who = schema.unit if unit is None else unit
    budget = with_people(budget_of(epsilon, delta, relation, accountant), who is not None)
    plan = plan_for(
        schema,
        budget,
        by=by,
        columns=columns,
        whole=whole,
        bins=bins,
        n_records=n_records,
        confidence=confidence,
    )
    warn_if_weak(budget, plan.n_records)
    records, assumptions = _coded(table, plan, who, delimiter, progress)
    released = release_answers(
        plan,
        lambda: records,
        plan.totals,
        accountant=accountant,
        source=source_of(random_state),
        assumptions=(*schema.assumptions, *assumptions),
    )
    return Description(figures_of(plan, released.value), released.privacy, plan)


def _coded(
    table: Any,
    plan: DescriptionPlan,
    unit: Any,
    delimiter: str | None,
    progress: Callable[[float], None] | None,
) -> tuple[CodedRecords, tuple[str, ...]]:
    """Return the unread records, and what is assumed of them."""
    if isinstance(table, Elsewhere):
        if delimiter is not None or not (unit is None or isinstance(unit, str)):
            raise ValueError(
                "records elsewhere take unit as the name of a column, and no delimiter."
            )
        return table.coded(plan.cells, unit), table.assumptions
    coded = CodedTable(table, plan.cells, unit=unit, delimiter=delimiter, progress=progress)
    return coded, ()
