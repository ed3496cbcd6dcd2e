"""Define record sources: private rows are accessible through sums over blocks only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from tacit.arrays import Array
from tacit.records.block import Block
from tacit.records.bounds import Bounds
from tacit.records.splits import DrawsWords as Words
from tacit.records.splits import Sample


@runtime_checkable
class RecordSource(Protocol):
    """Records that can be summed over.

    A solver learns about records through `sum` only. The number of records is itself private under
    ADD_REMOVE; it is used in float-error bounds and noisy counts only.

    A source of your own is one class: make blocks with `tacit.records.block.make_block`, add up
    with `tacit.records.block`, choose with `tacit.records.splits`, and pass
    `tacit.testing.check_record_source`. If a guarantee must state assumptions about the source, its
    ``assumptions`` are a tuple of sentences.
    """

    bounds: Bounds

    @property
    def n_features(self) -> int:
        """Number of columns; public."""

    def sum(
        self, function: Callable[[Block], tuple[Array, ...]], *, fine: bool = False
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks of rows in one pass.

        ``fine`` requests small blocks in double precision: slower, with a tighter bound on float
        error (`sum_error`).
        """

    def sum_error(self, *, fine: bool = False) -> float:
        """Return e such that a sum of n terms of size at most 1 is off by at most e.

        The bound holds for any order in which a function adds up the terms of its block.
        """

    def count(self) -> int:
        """Return the number of records. Private."""

    def every(self, step: int) -> RecordSource:
        """Return every ``step``-th record. The choice is fixed, so it amplifies no privacy."""

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each record independently with probability ``rate``, by its own random word.

        Every pass over the sample reads the same records; one release from it costs its `event`.
        """


def assumptions_of_source(records: object) -> tuple[str, ...]:
    """Return the assumptions about a source that a guarantee must state.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.source import assumptions_of_source
    >>> assumptions_of_source(MemoryRecords(np.eye(2), None, Bounds()))
    ()
    """
    return tuple(getattr(records, "assumptions", ()))
