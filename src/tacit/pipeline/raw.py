"""Tables as a pipeline is given them: what is public now, the rest when all is paid for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tacit.noise import Source
from tacit.preprocessing import SchemaEncoder
from tacit.preprocessing.files.memory_tables import chunks, columns_of_batch
from tacit.preprocessing.files.reading import open_table
from tacit.queries import Facts, Private
from tacit.table_facts import EncodedTable, HandsOn, TableFacts

Words = dict[str, list[Any]]


class Raw(Protocol):
    """A table that nobody has read."""

    def columns(self, names: Sequence[str]) -> Words:
        """Read some columns as they are."""

    def unit(self) -> list[Any] | None:
        """Read whose each record is, if that is known."""

    def encoded(self, encoder: SchemaEncoder | None) -> EncodedTable:
        """Return the rows, read later, that an encoder makes of the table."""


@dataclass(frozen=True)
class Encoded:
    """A view: the rows that an encoder makes of a table, read now. Rows of numbers stay as is."""

    encoder: SchemaEncoder | None

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the rows."""
        return records.encoded(self.encoder).held(), facts


@dataclass(frozen=True)
class Through:
    """A view: the rows that a fitted step makes of those of an `EncodedTable`, read now."""

    step: HandsOn
    facts: TableFacts  # of what it makes

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the rows."""
        return records.through(self.step, self.facts).held(), facts


@dataclass(frozen=True)
class RawTable:
    """A table in memory with its schema."""

    encoder: SchemaEncoder
    table: Any
    y: Any = None
    identifiers: Any = None

    def columns(self, names: Sequence[str]) -> Words:
        """Read some columns as they are."""
        read: Words = {name: [] for name in names}
        for _, chunk in chunks(self.table, list(names)):
            for name in names:
                read[name] += chunk[name].raw()
        return read

    def unit(self) -> list[Any] | None:
        """Read whose each record is, if that is known."""
        if self.identifiers is not None:
            return list(self.identifiers)
        named = self.encoder.schema.unit
        return None if named is None else self.columns([named])[named]

    def encoded(self, encoder: SchemaEncoder | None) -> EncodedTable:
        """Return the rows, read later, that an encoder makes of the table."""
        return (encoder or self.encoder).unread(self.table, self.y, self.identifiers)


@dataclass(frozen=True)
class RawFile:
    """A file with its schema."""

    encoder: SchemaEncoder
    path: str | os.PathLike[str]
    delimiter: str | None = None
    progress: Callable[[float], None] | None = None

    def columns(self, names: Sequence[str]) -> Words:
        """Read some columns as they are."""
        read: Words = {name: [] for name in names}
        for batch in open_table(self.path, delimiter=self.delimiter).batches(list(names)):
            values = columns_of_batch(batch)
            for name in names:
                read[name] += values[name].raw()
        return read

    def unit(self) -> list[Any] | None:
        """Read whose each record is, if that is known."""
        named = self.encoder.schema.unit
        return None if named is None else self.columns([named])[named]

    def encoded(self, encoder: SchemaEncoder | None) -> EncodedTable:
        """Return the rows, read later, that an encoder makes of the table."""
        return (encoder or self.encoder).unread_file(
            self.path, delimiter=self.delimiter, progress=self.progress
        )


@dataclass(frozen=True)
class RawNumbers:
    """Numbers, which need no encoder."""

    table: EncodedTable

    def columns(self, names: Sequence[str]) -> Words:
        """Refuse: a table of numbers has no words."""
        raise TypeError(f"columns {', '.join(names)} are to be read from a table with a schema.")

    def unit(self) -> list[Any] | None:
        """Return None: it is asked for words alone."""
        return None

    def encoded(self, encoder: SchemaEncoder | None) -> EncodedTable:
        """Return the rows as they are."""
        del encoder
        return self.table
