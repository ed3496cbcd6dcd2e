"""The door to private rows: sums over blocks, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tacit.records.block import Block
from tacit.records.bounds import Bounds
from tacit.records.sampling import Sample, Words

Array = npt.NDArray[np.float64]


@runtime_checkable
class RecordSource(Protocol):
    """Records that can be summed over.

    Everything a solver learns comes through `sum`; the number of records is itself private under
    ADD_REMOVE and is only ever used in float-error bounds and noisy counts.

    A source of your own is one class: make blocks with `tacit.records.block.make_block`, add up
    with `tacit.records.summing`, choose with `tacit.records.sampling`, and pass
    `tacit.testing.check_record_source`. What a guarantee must say of it, if anything, are its
    ``assumptions``, a tuple of sentences.
    """

    bounds: Bounds

    @property
    def n_features(self) -> int:
        """How many columns a row has; public."""

    def sum(
        self, function: Callable[[Block], tuple[Array, ...]], *, fine: bool = False
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks of rows in one pass.

        ``fine`` asks for small blocks in double precision: slower, with a tighter bound on
        float error (`sum_error`).
        """

    def sum_error(self, *, fine: bool = False) -> float:
        """Return e such that a sum of n terms of size at most 1 is off by at most e.

        In whichever order a function adds up the terms of its block.
        """

    def count(self) -> int:
        """Return the number of records. Private."""

    def every(self, step: int) -> RecordSource:
        """Return every ``step``-th record: the same ones each time, so it amplifies no privacy."""

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each record independently with probability ``rate``, by a word of its own.

        The sample is the same however often it is read; one release from it costs its `event`.
        """


def assumptions_of_source(records: object) -> tuple[str, ...]:
    """Return what a guarantee that rests on records must say of where they come from.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.source import assumptions_of_source
    >>> assumptions_of_source(MemoryRecords(np.eye(2), None, Bounds()))
    ()
    """
    return tuple(getattr(records, "assumptions", ()))
