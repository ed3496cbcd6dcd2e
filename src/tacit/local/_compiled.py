"""One source for a step taken once in Python and for a million of them in machine code.

numba takes a fifth of a second to import, so that it is when something is compiled.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

IS_AVAILABLE = importlib.util.find_spec("numba") is not None
_marked = list[Callable[..., object]]()


def compilable(function: F) -> F:
    """Mark a function that compiled code may call; called from Python it stays Python.

    Without numba (the extra ``fast``) streams run at the speed of NumPy, with the same results.
    """
    _marked.append(function)
    return function


def machine_code(function: F) -> F:
    """Return a function compiled, that may call those marked."""
    from numba import njit
    from numba.extending import register_jitable

    while _marked:
        register_jitable(_marked.pop())
    made: F = njit(function)
    return made
