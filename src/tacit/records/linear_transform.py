"""Change the coordinates of records' vectors, in which gradients are clipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tacit.row_clipping import row_norms

if TYPE_CHECKING:
    from tacit.records.block import Block
    from tacit.records.source import RecordSource

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The map x -> A x of a record's vector x, its intercept coordinate included.

    Parameters
    ----------
    matrix
        A, symmetric: a function of releases and public facts (a preconditioner).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.linear_transform import Coordinates
    >>> records = MemoryRecords(np.array([[3.0, 4.0]]), None, Bounds(row_norm=10.0))
    >>> halved = Coordinates(np.diag([1.0, 0.5]))
    >>> records.sum(lambda block: (halved.lengths(block),))[0].round(3)
    array([3.606])
    """

    matrix: Array

    def of(self, vectors: Array) -> Array:
        """Return A times a vector, or times each column of several."""
        product: Array = self.matrix @ vectors
        return product

    def lengths(self, block: Block) -> Array:
        """Return ||A x|| of every record of a block, stored or computed."""
        if block.lengths is not None:
            return block.lengths
        return row_norms(block.points() @ self.matrix)

    def squares(self, inner: Any, last: Array, intercept: float) -> Array:
        """Return ||A s||^2 of sums s; the intercept coordinate is passed separately."""
        dense = inner.toarray() if hasattr(inner, "tocsr") else inner
        sums = np.column_stack([dense, last]) if intercept else dense
        squares: Array = row_norms(sums @ self.matrix) ** 2
        return squares


@runtime_checkable
class NotesLengths(Protocol):
    """A source that can store a norm of each record from one pass to the next."""

    def measured(self, lengths: Callable[[Block], Array]) -> RecordSource:
        """Return the records with blocks that know a norm of each record."""


def measured(records: RecordSource, coordinates: Coordinates) -> RecordSource:
    """Return the records; if the source can store norms, compute them once.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.linear_transform import Coordinates, measured
    >>> records = MemoryRecords(np.array([[3.0, 4.0]]), None, Bounds(row_norm=10.0))
    >>> measured(records, Coordinates(np.eye(2))).sum(lambda block: (block.lengths,))
    (array([5.]),)
    """
    if isinstance(records, NotesLengths):
        return records.measured(coordinates.lengths)
    return records
