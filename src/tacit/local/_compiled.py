"""Compile a function with numba, from the source that also runs in Python.

numba takes a fifth of a second to import, so it is imported only for a compilation.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

IS_AVAILABLE = importlib.util.find_spec("numba") is not None
_marked = list[Callable[..., object]]()


def compilable(function: F) -> F:
    """Mark a function that compiled code may call; in Python it is unchanged.

    Without numba (the extra ``fast``) streams run at the speed of NumPy, with equal results.
    """
    _marked.append(function)
    return function


def machine_code(function: F) -> F:
    """Compile a function that may call marked functions."""
    from numba import njit
    from numba.extending import register_jitable

    while _marked:
        register_jitable(_marked.pop())
    made: F = njit(function)
    return made
