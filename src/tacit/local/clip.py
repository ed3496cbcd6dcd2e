"""Where a person's vector is cut to its norm: enforced whatever the vector is, and silently."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.local._compiled import compilable

Array = npt.NDArray[np.float64]

# Where the largest coordinate is between these, no square overflows, and those that underflow are
# too small to matter.
_SMALL, _LARGE = 1e-100, 1e100


@compilable
def clipped(vector: Array, norm: float) -> Array:
    """Return ``vector`` scaled down to Euclidean norm ``norm`` where it is longer.

    The sum of d squares is known within d 2^-53 relative, in whatever order it is taken, so the
    limit is lowered by more than that and the result is never longer than ``norm`` in real numbers.
    A vector that is not finite becomes 0: an error would tell something of the record.
    """
    limit = norm * (1.0 - (len(vector) + 8.0) * 2.0**-52)
    largest = float(np.max(np.abs(vector)))
    if _SMALL < largest < _LARGE:
        length = math.sqrt(np.dot(vector, vector))
        return vector if length <= limit else vector * (limit / length)
    if not largest < math.inf:
        return np.zeros_like(vector)
    if largest == 0.0:
        return vector
    # Squares may leave the range of doubles: divide first.
    direction = vector / largest
    length = math.sqrt(np.dot(direction, direction))
    if length <= limit / largest:
        return vector
    cut: Array = direction * (limit / length)
    return cut
