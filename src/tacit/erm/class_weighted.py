"""Records that count by their class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tacit.records import Block, Bounds, RecordSource, Sample
from tacit.records.lattice_block import LatticeBlock, sum_in_steps
from tacit.records.sampling import Words

Array = npt.NDArray[np.float64]
B = TypeVar("B", Block, LatticeBlock)


class ClassWeighted:
    """The same records, each weighted by its class, whatever weight it has of its own.

    Parameters
    ----------
    records
        Records whose labels are classes: -1 and 1 of two, whole numbers from 0 on of more.
    shares
        The weight of each class, in [0, 1]: public, or released.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm import ClassWeighted
    >>> from tacit.records import Bounds, MemoryRecords
    >>> records = MemoryRecords(np.ones((3, 1)), np.array([1.0, 1.0, -1.0]), Bounds(n_classes=2))
    >>> rarer = ClassWeighted(records, (1.0, 0.5))
    >>> rarer.sum(lambda block: (block.weighed(np.ones(block.n_rows)).sum(),))
    (array(2.),)
    """

    def __init__(self, records: RecordSource, shares: tuple[float, ...]) -> None:
        if len(shares) != records.bounds.n_classes:
            raise ValueError("pass one share for each of the classes that the bounds declare.")
        if not all(0.0 <= share <= 1.0 for share in shares):
            raise ValueError(f"shares must be in [0, 1], got {shares!r}; divide by the greatest.")
        self.records = records
        self.shares = shares
        self.bounds = class_weighted(records.bounds)

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
        return self.records.sum(lambda block: function(self._weighted(block)), fine=fine)

    def sum_in_steps(
        self,
        function: Callable[[LatticeBlock], tuple[Array, ...]],
        *,
        n_outputs: int = 1,
        keep: bool = True,
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks in whole steps."""
        return sum_in_steps(
            self.records,
            lambda block: function(self._weighted(block)),
            n_outputs=n_outputs,
            keep=keep,
        )

    def _weighted(self, block: B) -> B:
        shares = np.array(self.shares)[class_codes(block, self.bounds)]
        return replace(block, weights=block.weighed(shares))

    def sum_error(self, *, fine: bool = False) -> float:
        """Return e such that a sum of n terms of size at most 1 is off by at most e."""
        return self.records.sum_error(fine=fine)

    def every(self, step: int) -> RecordSource:
        """Return every ``step``-th record: the same ones each time, so it amplifies no privacy."""
        return ClassWeighted(self.records.every(step), self.shares)

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each record independently with probability ``rate``, by a word of its own."""
        sample = self.records.poisson_sample(rate, words)
        return replace(sample, records=ClassWeighted(sample.records, self.shares))


def class_weighted(bounds: Bounds) -> Bounds:
    """Return the bounds of records that are weighted by class too."""
    return replace(bounds, max_weight=bounds.max_weight or 1.0)


def class_codes(block: Block | LatticeBlock, bounds: Bounds) -> npt.NDArray[np.int64]:
    """Return the class of every record of a block, a whole number from 0 on."""
    n_classes = bounds.n_classes
    if block.labels is None or n_classes is None:
        raise ValueError("weights of classes need labels, and bounds that declare n_classes.")
    if n_classes == 2:
        return (block.labels > 0).astype(np.int64)
    return np.clip(np.rint(block.labels), 0, n_classes - 1).astype(np.int64)
