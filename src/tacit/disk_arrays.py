"""Arrays on files that have no name: what does not fit into memory, and is gone with its process.

A file is made without a name (or loses it at once), readable by its owner alone, and the system
frees it when the last process that holds it ends, however it ends: killed, or out of power.
"""

from __future__ import annotations

import os
import tempfile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

# An array larger than this share of the memory is made on disk.
SHARE_OF_MEMORY = 0.25
_ROWS_AT_ONCE = 1 << 14
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def disk_array(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of zeros on a nameless file in the folder for temporary files.

    Raises
    ------
    OSError
        If the disk has no room for it: it is set aside at once, so that nothing fails later.

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
    with tempfile.TemporaryFile(prefix="tacit-") as file:  # mode 0600, and no name where possible
        try:
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{os.strerror(error.errno or 0)}: {n_bytes >> 20} MB are needed in "
                f"{tempfile.gettempdir()}; set TMPDIR to a folder on a larger disk",
            ) from None
        return np.memmap(file, dtype=dtype, mode="r+", shape=shape)


def is_on_disk(array: Any) -> bool:
    """Return whether an array, or what it is a view of, is a file."""
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


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
    """Return room for an array beside ``rows``: on disk if they are."""
    return disk_array(shape, dtype) if is_on_disk(rows) else np.empty(shape, dtype)


def rows_at(rows: Any, places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return the rows at some places: on disk if they are, and then never many in memory.

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
    """Return how much memory this process may have."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(physical, int(_CGROUP.read_text()))
    except (OSError, ValueError):  # no limit, or no such thing
        return physical
