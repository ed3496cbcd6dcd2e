"""One source for a step taken once in Python and for a million of them in machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

try:
    from numba.extending import register_jitable
except ImportError:
    IS_AVAILABLE = False
else:
    IS_AVAILABLE = True


def compilable(function: F) -> F:
    """Mark a function that compiled code may call; called from Python it stays Python.

    Without numba (the extra ``fast``) it is an ordinary function and streams run at the speed of
    NumPy, with the same results.
    """
    if not IS_AVAILABLE:
        return function
    marked: F = register_jitable(function)
    return marked
