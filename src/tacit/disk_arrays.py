"""Store arrays on unnamed files: they may exceed memory, and vanish with their process.

A file is created without a name (or loses it at once), readable by its owner only. The system frees
it when the last process that holds it ends, even if that is killed or loses power.
"""

from __future__ import annotations

import os
import tempfile
from math import prod
from mmap import mmap
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from tacit.arrays import Integers

# Larger arrays, as a share of the memory, are stored on disk.
SHARE_OF_MEMORY = 0.25
_ROWS_AT_ONCE = 1 << 14
_CGROUP = Path("/sys/fs/cgroup/memory.max")
# Memory maps of unnamed files, to which nobody else can write.
_OURS: WeakSet[mmap] = WeakSet()


def disk_array(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of zeros on an unnamed file in the folder for temporary files.

    Raises
    ------
    OSError
        If the disk has no room for it. Space is allocated at once, so that no later write fails.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.disk_arrays import disk_array
    >>> disk_array((2, 3), np.int8).sum()
    np.int64(0)
    """
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    if n_bytes == 0:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(prefix="tacit-") as file:  # mode 0600, unnamed where possible
        try:
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{os.strerror(error.errno or 0)}: {n_bytes >> 20} MB are needed in "
                f"{tempfile.gettempdir()}; set TMPDIR to a folder on a larger disk",
            ) from None
        array = np.memmap(file, dtype=dtype, mode="r+", shape=shape)
    _OURS.add(_map_of(array))
    return array


def _map_of(array: Any) -> Any:
    """Return the map behind an array; None for a result that NumPy computed from such an array."""
    return array._mmap


def is_on_disk(array: Any) -> bool:
    """Return whether an array, or the array that it is a view of, is a mapped file."""
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


def may_change(array: Any) -> bool:
    """Return whether others may write to an array while it is in use.

    Others may write to a mapped file, to memory that processes share, and to memory that another
    library holds. They cannot write to memory that NumPy or Python allocated, apart from this
    process itself, nor to an unnamed file.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.disk_arrays import disk_array, may_change
    >>> may_change(np.zeros(3)), may_change(disk_array((3,), float)[1:])
    (False, False)
    >>> from multiprocessing import RawArray
    >>> may_change(np.frombuffer(RawArray("d", 3)))
    True
    """
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and _map_of(array) is not None:
            return _map_of(array) not in _OURS
        if array.base is None:
            return False
        array = array.base
        if isinstance(array, memoryview):
            array = array.obj
    # PySliceContainer owns the memory of polars' arrays, as NumPy owns its own.
    return not (isinstance(array, bytes | bytearray) or type(array).__name__ == "PySliceContainer")


def own(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array to which nobody else can write: a copy if others may, on disk if it is.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.disk_arrays import own
    >>> array = np.zeros(3)
    >>> own(array) is array
    True
    """
    if not may_change(array):
        return array
    copied = empty_like_rows(array, array.shape, array.dtype)
    copied[...] = array
    return copied


def zeros_somewhere(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of zeros: in memory, or on disk if it is large beside the memory.

    Examples
    --------
    >>> from tacit.disk_arrays import is_on_disk, zeros_somewhere
    >>> is_on_disk(zeros_somewhere((10, 2), float))
    False
    """
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    if n_bytes <= SHARE_OF_MEMORY * memory_bytes():
        return np.zeros(shape, dtype)
    return disk_array(shape, dtype)


def empty_like_rows(rows: Any, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an uninitialised array beside ``rows``: on disk if they are."""
    return disk_array(shape, dtype) if is_on_disk(rows) else np.empty(shape, dtype)


def rows_at(rows: Any, places: Integers) -> npt.NDArray[Any]:
    """Return the rows at some places: on disk if they are, and then with few in memory at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.disk_arrays import rows_at
    >>> rows_at(np.array([[1], [2], [3]]), np.array([2, 0])).ravel()
    array([3, 1])
    """
    found = empty_like_rows(rows, (len(places), *rows.shape[1:]), rows.dtype)
    for start in range(0, len(places), _ROWS_AT_ONCE):
        at = slice(start, start + _ROWS_AT_ONCE)
        found[at] = rows[places[at]]
    return found


def memory_bytes() -> int:
    """Return the memory available to this process, in bytes."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(physical, int(_CGROUP.read_text()))
    except (OSError, ValueError):  # no limit, or no cgroup
        return physical
