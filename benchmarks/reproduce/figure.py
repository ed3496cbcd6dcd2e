"""What a figure is: what it measures, what must be true of it, and how it is drawn."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tacit.datasets.base import find_file

Rows = list[dict[str, Any]]


class Run(Protocol):
    """What a measurement is given: whether it is a small one, and where results are kept."""

    quick: bool

    def cell(
        self, settings: dict[str, Any], measure: Callable[..., dict[str, Any]], *args: Any
    ) -> None:
        """Add a row: the settings, and what ``measure(*args)`` returns, unless it is kept."""


@dataclass(frozen=True)
class Figure:
    """One figure: ``measure`` fills rows, ``check`` says what must hold, ``draw`` draws them."""

    name: str
    title: str
    original: str  # which figure, table or theorem of which document, and what it says
    found: str  # what is seen here, for the gallery; a template of `summary`
    measure: Callable[[Run], None]
    check: Callable[[Rows], None]
    draw: Callable[[Rows], Any]
    summary: Callable[[Rows], dict[str, str]] = lambda rows: {}
    data: tuple[str, ...] = ()  # files of the data folder without which it is skipped
    needs: tuple[str, ...] = ()  # packages without which it is skipped

    def caption(self, rows: Rows) -> str:
        """Return what is seen, with the figures that were measured in it."""
        return self.found.format(**self.summary(rows))


class Skipped(Exception):
    """A figure cannot be made here; the message says why."""


class NotReproduced(Exception):
    """A figure came out otherwise than it must; the message says how."""


def require_data(names: Sequence[str]) -> None:
    """Raise `Skipped` unless every file is in the data folder."""
    for name in names:
        try:
            find_file(name)
        except FileNotFoundError as error:
            raise Skipped(str(error)) from error


def require(holds: bool, what: str) -> None:
    """Raise `NotReproduced` unless something holds."""
    if not holds:
        raise NotReproduced(what)


def where(rows: Rows, **settings: Any) -> Rows:
    """Return the rows with these settings."""
    return [row for row in rows if all(row.get(key) == value for key, value in settings.items())]


def mean_of(rows: Rows, **settings: Any) -> float:
    """Return the mean over the repeats of the one row with these settings."""
    (row,) = where(rows, **settings)
    return statistics.fmean(row["values"])
