"""Choose how a missing value is encoded: a public choice per column, never a statistic."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Neutral:
    """Encode a missing value as neutral: the middle of a number's range, no category at all.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Neutral, Number
    >>> Number("age", 0, 100, missing=Neutral()).encode(np.array([20.0, np.nan]))
    array([[-0.3],
           [ 0. ]])
    """


@dataclass(frozen=True)
class Indicator:
    """Give a missing value its own feature, which is 1; the others are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Indicator, Number
    >>> Number("age", 0, 100, missing=Indicator()).encode(np.array([20.0, np.nan]))
    array([[-0.3,  0. ],
           [ 0. ,  1. ]])
    """


@dataclass(frozen=True)
class Fill:
    """Replace a missing value by a declared one, in the column's own units.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import Fill, Number
    >>> Number("age", 0, 100, missing=Fill(40)).encode(np.array([20.0, np.nan]))
    array([[-0.3],
           [-0.1]])
    """

    value: float | str | bool


Missing = Neutral | Indicator | Fill
