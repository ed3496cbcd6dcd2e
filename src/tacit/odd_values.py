"""Read values that are arbitrary objects, so that one value affects its own record only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


def alone(read: Callable[[Any], T], value: Any, otherwise: T) -> T:
    """Return ``read`` of one record's value, or ``otherwise`` if that fails.

    A value may be an object whose methods raise anything, with a message that contains its
    content. Such an error would reveal that record, and stop the others.

    Raises
    ------
    KeyboardInterrupt, SystemExit, MemoryError
        They are no value's fault; MemoryError is raised without its original message.

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
        pass  # raised again below, outside this handler, so that the original is not chained
    except BaseException:
        return otherwise
    raise MemoryError("there is not enough memory to read the records; pass fewer at a time.")


def as_objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return values as an array of objects, without calling any of their methods.

    Examples
    --------
    >>> from tacit.odd_values import as_objects
    >>> as_objects([1, "a"])
    array([1, 'a'], dtype=object)
    """
    return np.fromiter(values, dtype=object, count=len(values))
