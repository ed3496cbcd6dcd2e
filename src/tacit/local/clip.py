"""Where a person's vector is cut to its norm: enforced whatever the vector is, and silently."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.local._compiled import compilable
from tacit.row_clipping import LEAST_FACTOR, MARGIN

Array = npt.NDArray[np.float64]

# Where the largest coordinate is between these, no square overflows, and those that underflow are
# too small to matter.
_SMALL, _LARGE = 1e-100, 1e100


@compilable
def clipped(vector: Array, norm: float) -> Array:
    """Return ``vector`` scaled down to Euclidean norm ``norm`` where it is longer.

    The rule, and the proof that the result is never longer than ``norm`` in real numbers, are
    those of `tacit.row_clipping`, in a form that compiles: a vector that is not finite, or 2^300
    times too long, becomes 0. The two agree within the rounding of a length.
    """
    limit = norm * (1.0 - max(MARGIN, (len(vector) + 8.0) * 2.0**-51))
    largest = float(np.max(np.abs(vector)))
    if not largest < math.inf:
        return np.zeros_like(vector)
    if _SMALL < largest < _LARGE or largest == 0.0:
        length = math.sqrt(np.dot(vector, vector))
    else:  # squares may leave the range of doubles: divide first
        direction = vector / largest
        length = largest * math.sqrt(np.dot(direction, direction))
    if length <= limit:
        return vector
    factor = limit / length
    if not factor > LEAST_FACTOR:  # also where the length is no number
        return np.zeros_like(vector)
    cut: Array = vector * factor
    return cut
