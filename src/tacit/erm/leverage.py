"""Records that count by how long they are in other coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tacit.records import Block, RecordSource, Sample
from tacit.records.coordinates import Coordinates, measured
from tacit.records.sampling import Words

Array = npt.NDArray[np.float64]

_DOWN = 1 - 1e-9  # so that no rounding of a length lets a record do more than was said


class LeverageWeighted:
    """The same records; one that is longer than ``length`` there counts for less.

        a = min(1, (length / ||A x||)^2)

    so that a ||A x|| <= length and a ||A x||^2 <= length^2: neither its gradient nor its Hessian is
    more than that of a row of this length, and its score is what it was.

    Parameters
    ----------
    records
        The records, with weights of their own or without.
    coordinates
        A, a function of releases and public facts.
    length
        The greatest length that counts in full.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.leverage import LeverageWeighted
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.coordinates import Coordinates
    >>> records = MemoryRecords(np.array([[1.0], [2.0]]), None, Bounds(row_norm=4.0))
    >>> shorter = LeverageWeighted(records, Coordinates(np.eye(1)), 1.0)
    >>> shorter.sum(lambda block: (block.weighed(np.ones(block.n_rows)),))[0].round(3)
    array([1.  , 0.25])
    """

    def __init__(self, records: RecordSource, coordinates: Coordinates, length: float) -> None:
        self.records = measured(records, coordinates)
        self.coordinates = coordinates
        self.length = length
        self.bounds = replace(records.bounds, max_weight=records.bounds.max_weight or 1.0)

    @property
    def n_features(self) -> int:
        """How many columns a row has."""
        return self.records.n_features

    def count(self) -> int:
        """Return the number of records. Private."""
        return self.records.count()

    def sum(
        self, function: Callable[[Block], tuple[Array, ...]], *, fine: bool = False
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks of rows in one pass."""

        def of_weighted(block: Block) -> tuple[Array, ...]:
            lengths = np.maximum(self.coordinates.lengths(block), 1e-100)
            shares = np.minimum(1.0, self.length * _DOWN / lengths) ** 2
            return function(replace(block, weights=block.weighed(shares)))

        return self.records.sum(of_weighted, fine=fine)

    def sum_error(self, *, fine: bool = False) -> float:
        """Return e such that a sum of n terms of size at most 1 is off by at most e."""
        return self.records.sum_error(fine=fine)

    def every(self, step: int) -> RecordSource:
        """Return every ``step``-th record: the same ones each time, so it amplifies no privacy."""
        return LeverageWeighted(self.records.every(step), self.coordinates, self.length)

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each record independently with probability ``rate``, by a word of its own."""
        sample = self.records.poisson_sample(rate, words)
        weighted = LeverageWeighted(sample.records, self.coordinates, self.length)
        return replace(sample, records=weighted)
