"""The sum of a source's points, whose sensitivity holds in floats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tacit.noise import Bounded, Norm, bounded_sum
from tacit.privacy import Relation
from tacit.records import RecordSource

Array = npt.NDArray[np.float64]

_MOST_RECORDS = 2**31


def point_sum(records: RecordSource, relation: Relation, squared: bool = False) -> Bounded:
    """Return what `tacit.noise.bounded_sum` makes of all points at once, or of their squares.

    The squares of a point's coordinates are no longer, together, than its norm squared.

    Its value for a block is a whole number of steps, and so is every sum of such values, below
    2^53 steps for up to 2^31 records: floats add them exactly, whichever blocks there are.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.point_sum import point_sum
    >>> from tacit.privacy import Relation
    >>> from tacit.records import Bounds, MemoryRecords
    >>> records = MemoryRecords(np.array([[3.0, 4.0], [0.5, 0.0]]), None, Bounds(row_norm=1.0))
    >>> np.round(point_sum(records, Relation.ADD_REMOVE).value, 3)
    array([1.1, 0.8])
    """
    if records.count() > _MOST_RECORDS:
        raise ValueError("there are more than 2^31 records to add up exactly; fit on a part.")

    def in_steps(points: Array) -> Bounded:
        norm = records.bounds.total_norm
        if squared:
            points, norm = points**2, norm**2
        return bounded_sum(points, norm, Norm.L2, relation, max_rows=_MOST_RECORDS)

    (value,) = records.sum(lambda block: (np.asarray(in_steps(block.points()).value),))
    width = records.n_features + (1 if records.bounds.intercept else 0)
    return replace(in_steps(np.empty((0, width))), value=value)
