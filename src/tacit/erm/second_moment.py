"""The second moment of rows with symmetric noise, and its leading directions."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.erm.exact_moments import MOMENT_SLACK, exact_moment
from tacit.erm.laws import pack, unpack
from tacit.noise import Bounded, Norm, Release, Source, gaussian
from tacit.privacy import Relation
from tacit.records import Bounds, RecordSource

Array = npt.NDArray[np.float64]


def second_moment(records: RecordSource, relation: Relation) -> Bounded:
    """Return the sum of x x' over rows x of norm at most R, packed, with its sensitivity.

        ||x x'||_F = R^2;   ||x x' - y y'||_F^2 = |x|^4 + |y|^4 - 2 <x, y>^2 <= 2 R^4

    The vector has the norm of the matrix: off-diagonal entries once, times sqrt(2)
    (docs/proofs/preprocessing.md, section 4). An intercept is a coordinate of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.second_moment import second_moment
    >>> from tacit.privacy import Relation
    >>> from tacit.records import Bounds, MemoryRecords
    >>> records = MemoryRecords(np.array([[3.0, 4.0]]), None, Bounds(row_norm=10.0))
    >>> second_moment(records, Relation.ADD_REMOVE).value.round(3)
    array([ 9.   , 16.   , 16.971])
    """
    gram = exact_moment(records)
    return Bounded(pack(gram), second_moment_reach(records.bounds, relation), Norm.L2, relation)


def second_moment_reach(bounds: Bounds, relation: Relation) -> float:
    """Return how far one record moves a second moment: R^2, or sqrt(2) R^2 if it is replaced."""
    two = math.sqrt(2.0) if relation is Relation.REPLACE else 1.0
    return two * bounds.total_norm**2 * (1 + MOMENT_SLACK)


def noisy_second_moment(
    records: RecordSource, noise_multiplier: float, relation: Relation, source: Source | None = None
) -> Release[Array]:
    """Release the second moment with symmetric Gaussian noise (Analyze Gauss).

    Entries on the diagonal have noise of standard deviation s = ``noise_multiplier`` times the
    sensitivity, others s / sqrt(2).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.second_moment import noisy_second_moment
    >>> from tacit.privacy import Relation
    >>> from tacit.records import Bounds, MemoryRecords
    >>> records = MemoryRecords(np.ones((50, 3)), None, Bounds(row_norm=2.0))
    >>> moment = noisy_second_moment(records, 4.0, Relation.ADD_REMOVE).value
    >>> moment.shape, bool(np.all(moment == moment.T))
    ((3, 3), True)
    """
    packed = second_moment(records, relation)
    release = gaussian(packed, noise_multiplier, source)
    width = math.isqrt(2 * packed.n_coordinates)  # d (d + 1) / 2 numbers
    return Release(unpack(np.asarray(release.value), width), release.event)


def top_directions(moment: Array, n_directions: int) -> Array:
    """Return unit vectors of the greatest eigenvalues, as rows, the greatest first.

    The largest number of each is positive, so that equal moments give equal directions.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.second_moment import top_directions
    >>> top_directions(np.diag([1.0, 9.0, 4.0]), 2)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    _, vectors = np.linalg.eigh(moment)
    leading = vectors[:, ::-1][:, :n_directions].T
    largest = np.abs(leading).argmax(axis=1)
    signs = np.where(leading[np.arange(len(leading)), largest] < 0, -1.0, 1.0)
    directions: Array = leading * signs[:, None] + 0.0
    return directions
