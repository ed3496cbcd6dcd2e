"""Values that are objects of their own kind: what one of them does is its own record's affair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


def alone(read: Callable[[Any], T], value: Any, otherwise: T) -> T:
    """Return what ``read`` makes of one record's value, ``otherwise`` where that fails.

    A value may be an object whose methods raise anything, in words that are what it holds. An
    error would tell of that record, and stop the others.

    Raises
    ------
    KeyboardInterrupt, SystemExit, MemoryError
        Which are no value's doing; the last without the words that it came with.

    Examples
    --------
    >>> from tacit.odd_values import alone
    >>> alone(float, "2.5", 0.0), alone(float, "HIV positive", 0.0)
    (2.5, 0.0)
    """
    try:
        return read(value)
    except (KeyboardInterrupt, SystemExit):
        raise
    except MemoryError:
        pass  # raised again below, where no error is at hand whose words could be repeated
    except BaseException:
        return otherwise
    raise MemoryError("there is not enough memory to read the records; pass fewer at a time.")


def as_objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return values as an array of what they are, none of which is asked what it is.

    Examples
    --------
    >>> from tacit.odd_values import as_objects
    >>> as_objects([1, "a"])
    array([1, 'a'], dtype=object)
    """
    return np.fromiter(values, dtype=object, count=len(values))
