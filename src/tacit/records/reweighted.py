"""Weight records by a number in [0, 1], a function of each record alone: its class, its norm.

A weight never increases the effect of a record (docs/proofs/weights.md). No record's weight depends
on another record, so neighbours stay neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tacit.arrays import Array, Integers
from tacit.records.block import Block, Coordinates, measured
from tacit.records.bounds import Bounds
from tacit.records.exact.lattice import LatticeBlock, lattice_block, sum_in_steps
from tacit.records.source import RecordSource
from tacit.records.splits import DrawsWords as Words
from tacit.records.splits import Sample

# Margin for rounding: a rounded norm must not let a record exceed its bound.
_DOWN = 1 - 1e-9


class WeightFunction(Protocol):
    """A weight in [0, 1] of every record, from public numbers and the record alone."""

    def bounds(self, bounds: Bounds) -> Bounds:
        """Return the bounds of the records with these weights; raise if they have none."""

    def prepared(self, records: RecordSource) -> RecordSource:
        """Return the records, with values computed once for all passes."""

    def on_block(self, block: Block) -> Array:
        """Return one weight per record."""


@dataclass(frozen=True)
class ClassWeights:
    """A weight for each class, multiplied with a record's own weight.

    Parameters
    ----------
    shares
        The weight of each class, in [0, 1]: public, or released.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.reweighted import ClassWeights, ReweightedRecords
    >>> records = MemoryRecords(np.ones((3, 1)), np.array([1.0, 1.0, -1.0]), Bounds(n_classes=2))
    >>> rarer = ReweightedRecords(records, ClassWeights((1.0, 0.5)))
    >>> rarer.sum(lambda block: (block.weighed(np.ones(block.n_rows)).sum(),))
    (array(2.),)
    """

    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(0.0 <= share <= 1.0 for share in self.shares):
            raise ValueError(
                f"shares must be in [0, 1], got {self.shares!r}; divide by the greatest share."
            )

    def bounds(self, bounds: Bounds) -> Bounds:
        """Return the bounds of records that are weighted by class."""
        if len(self.shares) != bounds.n_classes:
            raise ValueError("pass one share for each of the classes that the bounds declare.")
        return weighted_bounds(bounds)

    def prepared(self, records: RecordSource) -> RecordSource:
        """Return the records unchanged."""
        return records

    def on_block(self, block: Block | LatticeBlock) -> Array:
        """Return the weight of each record's class."""
        weights: Array = np.array(self.shares)[class_codes(block, len(self.shares))]
        return weights


@dataclass(frozen=True, eq=False)
class LeverageWeights:
    """A lower weight for records that are long in other coordinates.

        a = min(1, (length / ||A x||)^2)

    So a ||A x|| <= length and a ||A x||^2 <= length^2: a record's gradient and Hessian are at most
    those of a row of this norm, and its score does not change.

    Parameters
    ----------
    coordinates
        A, a function of releases and public facts (a preconditioner).
    length
        The greatest norm that counts in full.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.reweighted import LeverageWeights, ReweightedRecords
    >>> from tacit.records.block import Coordinates
    >>> records = MemoryRecords(np.array([[1.0], [2.0]]), None, Bounds(row_norm=4.0))
    >>> shorter = ReweightedRecords(records, LeverageWeights(Coordinates(np.eye(1)), 1.0))
    >>> shorter.sum(lambda block: (block.weighed(np.ones(block.n_rows)),))[0].round(3)
    array([1.  , 0.25])
    """

    coordinates: Coordinates
    length: float

    def bounds(self, bounds: Bounds) -> Bounds:
        """Return the bounds of weighted records."""
        return weighted_bounds(bounds)

    def prepared(self, records: RecordSource) -> RecordSource:
        """Return records that know their norms, if the source can store them."""
        return measured(records, self.coordinates)

    def on_block(self, block: Block) -> Array:
        """Return (length / ||A x||)^2, at most 1."""
        lengths = np.maximum(self.coordinates.lengths(block), 1e-100)
        weights: Array = np.minimum(1.0, self.length * _DOWN / lengths) ** 2
        return weights


class ReweightedRecords:
    """Records times a weight that is a function of each record alone.

    Parameters
    ----------
    records
        The records, with weights of their own or without.
    weight
        `ClassWeights` or `LeverageWeights`.
    """

    def __init__(self, records: RecordSource, weight: WeightFunction) -> None:
        self.bounds = weight.bounds(records.bounds)
        self.records, self.weight = weight.prepared(records), weight

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.records.n_features

    def count(self) -> int:
        """Return the number of records. Private."""
        return self.records.count()

    def sum(
        self, function: Callable[[Block], tuple[Array, ...]], *, fine: bool = False
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks of rows in one pass."""

        def of_weighted(block: Block) -> tuple[Array, ...]:
            return function(replace(block, weights=block.weighed(self.weight.on_block(block))))

        return self.records.sum(of_weighted, fine=fine)

    def sum_in_steps(
        self,
        function: Callable[[LatticeBlock], tuple[Array, ...]],
        *,
        n_outputs: int = 1,
        keep: bool = True,
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks in whole steps."""
        weight = self.weight
        if not isinstance(weight, ClassWeights):  # norms need the rows before rounding
            return self.sum(lambda block: function(lattice_block(block, self.bounds)))

        def of_weighted(block: LatticeBlock) -> tuple[Array, ...]:
            return function(replace(block, weights=block.weighed(weight.on_block(block))))

        return sum_in_steps(self.records, of_weighted, n_outputs=n_outputs, keep=keep)

    def sum_error(self, *, fine: bool = False) -> float:
        """Return e such that a sum of n terms of size at most 1 is off by at most e."""
        return self.records.sum_error(fine=fine)

    def every(self, step: int) -> RecordSource:
        """Return every ``step``-th record. The choice is fixed, so it amplifies no privacy."""
        return ReweightedRecords(self.records.every(step), self.weight)

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each record independently with probability ``rate``, by its own random word."""
        sample = self.records.poisson_sample(rate, words)
        return replace(sample, records=ReweightedRecords(sample.records, self.weight))


def weighted_bounds(bounds: Bounds) -> Bounds:
    """Return the bounds of the records with further weights in [0, 1]."""
    return replace(bounds, max_weight=bounds.max_weight or 1.0)


def class_codes(block: Block | LatticeBlock, n_classes: int | None) -> Integers:
    """Return the class of every record of a block, an integer from 0 on."""
    if block.labels is None or n_classes is None:
        raise ValueError("weights of classes need labels, and bounds that declare n_classes.")
    if n_classes == 2:
        return (block.labels > 0).astype(np.int64)
    return np.clip(np.rint(block.labels), 0, n_classes - 1).astype(np.int64)
