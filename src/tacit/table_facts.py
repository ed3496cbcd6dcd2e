"""Carry the public facts of a table's rows and labels from one step to the next.

A schema makes these facts. A transformer's `facts_out` maps the facts of its input rows to those of
its output rows. An estimator uses them in place of its own parameters. They travel with the table,
in an `EncodedTable`.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, Mask


@dataclass(frozen=True)
class SourceColumn:
    """A column of a raw table: how many features it became, and their greatest norm together.

    Examples
    --------
    >>> from tacit.table_facts import SourceColumn
    >>> SourceColumn("ward", n_features=3, norm=1.0).norm  # one feature of the three is 1
    1.0
    """

    name: str
    n_features: int
    norm: float = math.inf

    def __post_init__(self) -> None:
        if self.n_features < 1 or not self.norm > 0.0:
            raise ValueError(
                f"a source column has at least one feature and a positive norm, got "
                f"{self.n_features!r} and {self.norm!r}; leave out a column without features."
            )


@dataclass(frozen=True)
class TableFacts:
    """The public facts about a table of numbers, and the assumptions under which they are public.

    Parameters
    ----------
    names
        The names of the columns.
    row_norm
        The greatest norm of a row; infinite if unknown.
    n_records
        The number of records, if it is public.
    classes
        The classes, for a classification.
    label_range
        The least and the greatest label, for a regression.
    assumptions
        Sentences that a guarantee relying on these facts must repeat.
    of_people
        Whether records are grouped by person; a person with all their records is then protected.
    ranges
        The least and the greatest value of each column, if known.
    sources
        The columns of the raw table that the features were made of, in their order, if known.

    Examples
    --------
    >>> from tacit.schema import ClassTarget, Number, Schema
    >>> Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes"))).facts.parameters()
    {'n_records': None, 'row_norm': 0.5, 'classes': ['no', 'yes']}
    """

    names: tuple[str, ...]
    row_norm: float
    n_records: int | None = None
    classes: tuple[Any, ...] | None = None
    label_range: tuple[float, float] | None = None
    assumptions: tuple[str, ...] = ()
    of_people: bool = False
    ranges: tuple[tuple[float, float], ...] | None = None
    sources: tuple[SourceColumn, ...] | None = None

    def parameters(self) -> dict[str, Any]:
        """Return the facts under the names of estimators' parameters."""
        known: dict[str, Any] = {"n_records": self.n_records}
        if math.isfinite(self.row_norm):
            known["row_norm"] = self.row_norm
        if self.classes is not None:
            known["classes"] = list(self.classes)
        if self.label_range is not None:
            known["label_range"] = self.label_range
        return known

    def through(self, step: HandsOn) -> TableFacts:
        """Return the facts of a transformer's output; the grouping by person is unchanged.

        A step that keeps the names, such as a scaler, keeps the sources, and not their norms.
        """
        out = facts_through(step, self)
        sources = self.sources if out.names == self.names else None
        if sources is not None:
            sources = tuple(replace(source, norm=math.inf) for source in sources)
        return replace(out, of_people=self.of_people, sources=sources)

    def of_part(self, share: float) -> TableFacts:
        """Return the facts of a part of the records, with its approximate size if public."""
        n = self.n_records
        if n is None or share == 1.0:
            return self
        return replace(self, n_records=max(round(n * share), 1))


@runtime_checkable
class HandsOn(Protocol):
    """A transformer that learns nothing from records, and knows the public facts of its rows."""

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the facts of the output rows, from those of the input rows."""

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Return the rows."""


def facts_through(step: HandsOn, facts: TableFacts | None) -> TableFacts:
    """Return the public facts of a step's output rows, for a step of any author.

    tacit's own steps make each row from its own record. A third-party step is tested on synthetic
    rows, which cannot prove this, so that the guarantee names it as an assumption of the user.
    Assumptions from before such a step remain after it.

    Parameters
    ----------
    step
        An object with ``facts_out`` and ``transform``.
    facts
        The facts of its input rows; None if nothing is known.

    Raises
    ------
    ValueError
        If an output row of the step depends on other rows.
    """
    given = step.facts_out(facts)
    if type(step).__module__.partition(".")[0] == "tacit":
        return given
    kind = type(step).__name__
    check_row_by_row(kind, step, facts or given)
    before = () if facts is None else facts.assumptions
    sentence = (
        f"a step of the pipeline ({kind}) makes each row from its own record alone and learns "
        "nothing from the records beyond what it releases, for which its user vouches"
    )
    # In their order, without duplicates.
    said = tuple(dict.fromkeys((*before, *given.assumptions, sentence)))
    return replace(given, assumptions=said)


# Number of synthetic rows: batches of about 100 reveal effects that a few rows would not.
_N_TRIED = 128
# Relative to the largest output of a step: above rounding, also that of float32.
_TOLERANCE = 1e-4


def check_row_by_row(kind: str, step: Any, facts: TableFacts) -> None:
    """Refuse a transformer whose output for a synthetic row depends on the other rows.

    Rows within the declared ranges and norm are transformed together, alone, in pairs, and in
    another order. A step that fails on them, or that is random, cannot be tested. A step that mixes
    rows only for values or batch sizes that were not tested is not detected.

    Examples
    --------
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from tacit.table_facts import TableFacts, check_row_by_row
    >>> centring = FunctionTransformer(lambda X: X - X.mean(0))
    >>> check_row_by_row("FunctionTransformer", centring, TableFacts(("age", "hours"), 1.0))
    Traceback (most recent call last):
        ...
    ValueError: FunctionTransformer gives a row other numbers when other rows are beside it...
    """
    rows = _made_up(facts)
    together = _tried(step, rows)
    if together is None or not _alike(together, _tried(step, rows)):
        return
    order = np.random.default_rng(1).permutation(_N_TRIED)
    batches = [*([place] for place in range(4)), [0, 1], [3, 2, 1], order, order[: _N_TRIED // 2]]
    for places in map(np.asarray, batches):
        found = _tried(step, rows[places])
        if found is not None and not _alike(together[places], found, of=together):
            raise ValueError(
                f"{kind} gives a row other numbers when other rows are beside it, so that one "
                "record would change the rows of others and no guarantee would hold; let it make "
                "each row from its own record alone (no mean, maximum or order of a batch)."
            )


def _made_up(facts: TableFacts) -> Array:
    generator = np.random.default_rng(0)
    n_columns = len(facts.names)
    rows = generator.standard_normal((_N_TRIED, n_columns))
    if facts.ranges is not None:
        lower, upper = np.array(facts.ranges, dtype=np.float64).reshape(n_columns, 2).T
        rows = generator.uniform(lower, upper, (_N_TRIED, n_columns))
    if math.isfinite(facts.row_norm):
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= facts.row_norm / np.maximum(lengths, facts.row_norm)
    rows[2], rows[-1] = 0.0, rows[0]  # one row of zeros, and one duplicate
    return rows


def _copy(step: Any) -> Any:
    """Copy the step for each trial: a step that remembers rows is detected, and left unchanged."""
    try:
        return copy.deepcopy(step)
    except Exception:  # it holds something that cannot be copied; test the step itself
        return step


def _tried(step: Any, rows: Array) -> Array | None:
    """Return a step's output for synthetic rows; None if it fails, for instance before a fit."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = _copy(step).transform(rows.copy())
            made = np.asarray(found.toarray() if hasattr(found, "toarray") else found, np.float64)
        except Exception:
            return None
    return made if made.ndim == 2 and len(made) == len(rows) else None


def _alike(one: Any, other: Any, of: Any = None) -> bool:
    """Return whether two tables are equal up to rounding relative to the larger table ``of``."""
    if other is None or one.shape != other.shape:
        return False
    table = np.abs(one if of is None else of)
    largest = float(np.max(table, initial=0.0, where=np.isfinite(table)))
    return bool(np.allclose(one, other, rtol=0.0, atol=_TOLERANCE * largest, equal_nan=True))


@dataclass(frozen=True)
class EncodedTable:
    """Rows and labels that are read after the charge, and their public facts."""

    facts: TableFacts
    read: Callable[[], tuple[npt.NDArray[Any], npt.NDArray[Any] | None]]
    n_rows: None = None  # the number of records that count is known only after reading
    # Filled while reading: one identifier per record, if records are grouped by person.
    named: list[Any] | None = field(default=None, repr=False)
    # Filled while reading: the position of each record in the original table, if records that do
    # not count are left out.
    places: list[int] | None = field(default=None, repr=False)
    # Whether the table is a file; its unreadable lines have no position.
    is_a_file: bool = False
    # Returns a weight for each record that was read, after reading; None without weights.
    weigh: Callable[[], npt.NDArray[np.float64]] | None = field(default=None, repr=False)

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.facts.names)

    @property
    def has_people(self) -> bool:
        """Whether records are grouped by person."""
        return self.named is not None

    def identifiers(self) -> list[Any]:
        """Return one identifier per record that was read."""
        return self.named or []

    def refuse_positions(self) -> None:
        """Refuse to split by position a table without positions, before anything is charged."""
        if self.is_a_file:
            raise ValueError(
                "under 'replace' records are held out by their position, but an unreadable line of "
                "a file has none, so that it would move all others; read the table into memory "
                "first, hold no records out, or use relation 'add_remove'."
            )

    def part(self, chosen: Mask, share: float) -> EncodedTable:
        """Return a part of the records, about ``share`` of all, with their identifiers.

        The part has no positions, so that no part of it can be taken.
        """
        rows, labels = self.read()
        part = rows[chosen], None if labels is None else labels[chosen]
        named = None
        if self.named is not None:
            named = [who for who, keep in zip(self.named, chosen.tolist(), strict=True) if keep]
        weights = None if self.weigh is None else self.weigh()[chosen]
        weigh = None if weights is None else lambda: weights
        return EncodedTable(self.facts.of_part(share), lambda: part, named=named, weigh=weigh)

    def held(self) -> EncodedTable:
        """Read the table now and return it, so that it is read only once."""
        rows, labels = self.read()
        return replace(self, read=lambda: (rows, labels))

    def through(self, step: HandsOn, facts: TableFacts | None = None) -> EncodedTable:
        """Return the output table of a transformer; ``facts`` are the facts of it, if known."""
        facts = self.facts.through(step) if facts is None else facts

        def read() -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
            rows, labels = self.read()
            if not rows.shape[0]:  # an empty part, which transformers refuse
                return np.zeros((0, len(facts.names))), labels
            # Rows of a row-wise map are computed when they are summed, not all at once.
            make = getattr(step, "mapped", step.transform)
            return make(rows), labels

        return replace(self, facts=facts, read=read)
