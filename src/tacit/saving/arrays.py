"""Arrays as .npy members: the header is composed and compared, never parsed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.saving.errors import CannotSave, NotAModel

AnyArray = npt.NDArray[Any]

_MAGIC = b"\x93NUMPY\x01\x00"
_ALIGNED = 64
# bool, integers, floats, text, bytes: what can be stored without pickle
_KINDS = "biufUS"
_MOST_DIMENSIONS = 8


def describe(array: AnyArray) -> dict[str, Any]:
    """Return the type, shape and order of an array, ready for JSON."""
    if array.dtype.kind not in _KINDS or array.dtype.itemsize == 0:
        raise CannotSave(f"arrays of type {array.dtype} cannot be stored without pickle.")
    return {
        "dtype": array.dtype.newbyteorder("<").str,
        "shape": [int(n) for n in array.shape],
        "fortran_order": bool(array.flags.f_contiguous and not array.flags.c_contiguous),
    }


def to_npy(array: AnyArray) -> bytes:
    """Return the .npy file of an array."""
    facts = describe(array)
    little = array.astype(facts["dtype"], copy=False)
    header = _header(facts["dtype"], tuple(facts["shape"]), facts["fortran_order"])
    return header + little.tobytes("F" if facts["fortran_order"] else "C")


def from_npy(body: bytes, facts: Any) -> AnyArray:
    """Return the array of a .npy file that must be of the described type, shape and size."""
    dtype, shape, fortran_order = _checked(facts)
    header = _header(dtype.str, shape, fortran_order)
    if body[: len(header)] != header:
        raise NotAModel(f"an array is not of the declared type {dtype} and shape {shape}.")
    # compared in exact integers, before anything of that size is made
    if len(body) - len(header) != math.prod(shape) * dtype.itemsize:
        raise NotAModel(f"an array of shape {shape} has the wrong number of bytes for it.")
    flat = np.frombuffer(body, dtype=dtype, offset=len(header))
    array = flat.astype(dtype.newbyteorder("="), copy=True)
    return array.reshape(shape, order="F" if fortran_order else "C")


def _checked(facts: Any) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    if not isinstance(facts, dict) or set(facts) != {"dtype", "shape", "fortran_order"}:
        raise NotAModel("an array is declared without its dtype, shape and fortran_order.")
    try:
        dtype = np.dtype(facts["dtype"]) if isinstance(facts["dtype"], str) else None
    except (TypeError, ValueError, SyntaxError, MemoryError, OverflowError):
        dtype = None
    # a plain type, spelt as NumPy spells it: no structured types, no objects
    if dtype is None or dtype.str != facts["dtype"] or dtype.kind not in _KINDS:
        raise NotAModel("an array has a type that models do not have.")
    shape = facts["shape"]
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        raise NotAModel("an array has a shape that is not a short list of sizes.")
    if not all(type(n) is int and n >= 0 for n in shape) or dtype.itemsize == 0:
        raise NotAModel("an array has a size that is not a whole number.")
    if type(facts["fortran_order"]) is not bool:
        raise NotAModel("an array's fortran_order is neither true nor false.")
    return dtype, tuple(shape), facts["fortran_order"]


def _header(dtype: str, shape: tuple[int, ...], fortran_order: bool) -> bytes:
    """Return the header of format 1.0 (numpy.lib.format), padded as it asks."""
    text = f"{{'descr': '{dtype}', 'fortran_order': {fortran_order}, 'shape': {shape}, }}"
    used = len(_MAGIC) + 2 + len(text) + 1
    text += " " * (-used % _ALIGNED) + "\n"
    return _MAGIC + len(text).to_bytes(2, "little") + text.encode("ascii")
