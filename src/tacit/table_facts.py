"""What is public of a table's rows and labels, as one step hands it to the next.

A schema makes these facts, a transformer's `facts_out` turns those of the rows it takes into those
of the rows it gives, and an estimator relies on them rather than on its own parameters. They
travel with the table, in an `EncodedTable`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class TableFacts:
    """The public facts about a table of numbers, and what must be assumed for them to be public.

    Parameters
    ----------
    names
        The columns.
    row_norm
        No row is longer than this; infinite where nothing is known.
    n_records
        The number of records, where that is public.
    classes
        The labels there are, of a classification.
    label_range
        The least and the greatest label, of a regression.
    assumptions
        What a guarantee that relies on these facts must repeat.
    of_people
        Whether it is known whose each record is: a person with all of theirs is then protected.
    ranges
        The least and the greatest value of each column, where that is known.

    Examples
    --------
    >>> from tacit.preprocessing import ClassTarget, Number, Schema
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

    def parameters(self) -> dict[str, Any]:
        """Return the facts by the names that estimators' parameters have."""
        known: dict[str, Any] = {"n_records": self.n_records}
        if math.isfinite(self.row_norm):
            known["row_norm"] = self.row_norm
        if self.classes is not None:
            known["classes"] = list(self.classes)
        if self.label_range is not None:
            known["label_range"] = self.label_range
        return known

    def through(self, step: HandsOn) -> TableFacts:
        """Return the facts of what a transformer makes of the table; its people stay."""
        return replace(step.facts_out(self), of_people=self.of_people)


@runtime_checkable
class HandsOn(Protocol):
    """A transformer that learns nothing from records, and knows what is public of its rows."""

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the facts of the rows it gives, from those of the rows it takes."""

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Return the rows."""


@dataclass(frozen=True)
class EncodedTable:
    """Rows and labels that are made when a plan has been charged, and what is public of them."""

    facts: TableFacts
    read: Callable[[], tuple[npt.NDArray[Any], npt.NDArray[Any] | None]]
    n_rows: None = None  # which records count shows when they are read
    # Filled as they are read, one a record, where it is known whose each is.
    named: list[Any] | None = field(default=None, repr=False)
    # Filled as they are read: where each record stands in the table as it came, if some that do
    # not count are left out.
    places: list[int] | None = field(default=None, repr=False)
    # Of a file, whose lines that cannot be read have no place.
    is_a_file: bool = False

    @property
    def n_columns(self) -> int:
        """How many numbers a row has."""
        return len(self.facts.names)

    @property
    def has_people(self) -> bool:
        """Whether it is known whose each record is."""
        return self.named is not None

    def identifiers(self) -> list[Any]:
        """Return one identifier for each record that was read."""
        return self.named or []

    def refuse_positions(self) -> None:
        """Refuse to split by position what has none, before anything is charged."""
        if self.is_a_file:
            raise ValueError(
                "under 'replace' records are held out by their position, and a line of a file that "
                "cannot be read has none, so that it would move all others; read the table into "
                "memory first, hold no records out, or use relation 'add_remove'."
            )

    def held(self) -> EncodedTable:
        """Return the table as it is read now, so that it is read once."""
        rows, labels = self.read()
        return replace(self, read=lambda: (rows, labels))

    def through(self, step: HandsOn) -> EncodedTable:
        """Return the table that a transformer makes of this one."""
        facts = self.facts.through(step)

        def read() -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
            rows, labels = self.read()
            if not rows.shape[0]:  # of a part in which there are none; transformers refuse that
                return np.zeros((0, len(facts.names))), labels
            # Rows that a map makes one by one are made when they are summed, not all at once.
            make = getattr(step, "mapped", step.transform)
            return make(rows), labels

        return replace(self, facts=facts, read=read)
