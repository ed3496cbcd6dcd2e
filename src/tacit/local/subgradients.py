"""Compute one person's clipped negative subgradient at the server's point.

Each loss is a small frozen class with a plain function that can be compiled. Records are
already clipped, so that the norm of the answer is at most ``norm`` at any point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.local._compiled import compilable
from tacit.row_clipping import LEAST_FACTOR, MARGIN

Array = npt.NDArray[np.float64]

# If the largest coordinate is between these, no square overflows, and underflowing squares
# are negligible.
_SMALL, _LARGE = 1e-100, 1e100


@compilable
def clipped(vector: Array, norm: float) -> Array:
    """Scale ``vector`` down to Euclidean norm ``norm`` if it is longer.

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
    else:  # squares may overflow or underflow, so divide first
        direction = vector / largest
        length = largest * math.sqrt(np.dot(direction, direction))
    if length <= limit:
        return vector
    factor = limit / length
    if not factor > LEAST_FACTOR:  # also if the length is NaN
        return np.zeros_like(vector)
    cut: Array = vector * factor
    return cut


# All pull functions have the same signature, so that one loop can run any of them.
# ruff: noqa: ARG001


@compilable
def logistic_pull(point: Array, features: Array, label: float, width: float) -> Array:
    """Return y sigmoid(-y s) x."""
    margin = label * np.dot(point, features)
    # The cap avoids an overflow of exp where the weight is 0 anyway.
    weight = 1.0 / (1.0 + math.exp(min(margin, 700.0)))
    return (label * weight) * features


@compilable
def hinge_pull(point: Array, features: Array, label: float, width: float) -> Array:
    """Return y x if the margin is below 1, else 0."""
    margin = label * np.dot(point, features)
    return (label if margin < 1.0 else 0.0) * features


@compilable
def absolute_pull(point: Array, features: Array, label: float, width: float) -> Array:
    """Return sign(y - s) x."""
    pull: Array = np.sign(label - np.dot(point, features)) * features
    return pull


@compilable
def huber_pull(point: Array, features: Array, label: float, width: float) -> Array:
    """Return clip((y - s) / width, -1, 1) x."""
    residual = (label - np.dot(point, features)) / width
    pull: Array = min(max(residual, -1.0), 1.0) * features
    return pull


@compilable
def distance_pull(point: Array, features: Array, label: float, width: float) -> Array:
    """Return (x - w) / ||x - w||, 0 at the record itself."""
    away = features - point
    largest = np.max(np.abs(away))
    if largest == 0.0:
        return away
    # Squares of tiny numbers lose digits, so that the result could be longer than 1.
    away = away / largest
    pull: Array = away / math.sqrt(np.dot(away, away))
    return pull


@compilable
def sign_pull(point: Array, features: Array, label: float, width: float) -> Array:
    """Return the sign of every coordinate of x - w."""
    pull: Array = np.sign(features - point)
    return pull


class LocalLoss:
    """A loss whose subgradients have a known bound.

    ``pull(point, features, label, width)`` returns the negative subgradient; ``width`` is the
    loss's own parameter, 0 if it has none.
    """

    kind: ClassVar[str]
    pull: ClassVar[Any]
    width: float = 0.0

    def norm(self, n_features: int, row_norm: float) -> float:
        """Return the largest norm of a subgradient, for records of norm at most ``row_norm``.

        It is ``row_norm`` for a loss of the score <w, x> whose derivative is at most 1.
        """
        return row_norm


@dataclass(frozen=True)
class Logistic(LocalLoss):
    """log(1 + exp(-y <w, x>)), y = -1 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import Logistic
    >>> Logistic.pull(np.zeros(1), np.array([0.5]), 1.0, 0.0)
    array([0.25])
    """

    kind = "logistic"
    pull = staticmethod(logistic_pull)


@dataclass(frozen=True)
class Hinge(LocalLoss):
    """max(0, 1 - y <w, x>), y = -1 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import Hinge
    >>> Hinge.pull(np.zeros(1), np.array([0.5]), -1.0, 0.0)
    array([-0.5])
    """

    kind = "hinge"
    pull = staticmethod(hinge_pull)


@dataclass(frozen=True)
class Absolute(LocalLoss):
    """|y - <w, x>|, whose minimiser is the conditional median.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import Absolute
    >>> Absolute.pull(np.zeros(1), np.array([0.5]), 3.0, 0.0)
    array([0.5])
    """

    kind = "absolute"
    pull = staticmethod(absolute_pull)


@dataclass(frozen=True)
class Huber(LocalLoss):
    """Huber's loss over its width: quadratic within ``width`` of 0, absolute beyond.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import Huber
    >>> Huber(width=2.0).pull(np.zeros(1), np.array([0.5]), 1.0, 2.0)
    array([0.25])
    """

    kind = "huber"
    pull = staticmethod(huber_pull)

    width: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("width", self.width)


@dataclass(frozen=True)
class Distance(LocalLoss):
    """||w - x||, whose minimiser is the geometric median.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import Distance
    >>> Distance.pull(np.zeros(2), np.array([3.0, 4.0]), 0.0, 0.0)
    array([0.6, 0.8])
    """

    kind = "distance"
    pull = staticmethod(distance_pull)

    def norm(self, n_features: int, row_norm: float) -> float:
        """Return 1, for any records."""
        return 1.0


@dataclass(frozen=True)
class SumOfDistances(LocalLoss):
    """sum_j |w_j - x_j|, whose minimiser is the median of every column.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import SumOfDistances
    >>> SumOfDistances.pull(np.zeros(2), np.array([3.0, -4.0]), 0.0, 0.0)
    array([ 1., -1.])
    """

    kind = "sum_of_distances"
    pull = staticmethod(sign_pull)

    def norm(self, n_features: int, row_norm: float) -> float:
        """Return sqrt(d), because every coordinate is -1, 0 or 1."""
        return math.sqrt(n_features)
