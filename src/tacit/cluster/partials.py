"""Define partial sums of workers, and check that each part came once."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Partial(NamedTuple):
    """A worker's message about one part: sums, or the name of an error's type, and nothing else."""

    pass_number: int
    part: int
    n_records: int
    checksum: int
    arithmetic: int
    sums: tuple[Array, ...] | None
    failure: str | None = None


def one_of_each(partials: Sequence[Any], n_parts: int, pass_number: int) -> list[Partial]:
    """Return partial sums in the order of their parts, if there is exactly one of each.

    A part that is added twice counts its records twice, which doubles the sensitivity.

    Raises
    ------
    RuntimeError
        If one is missing, comes twice, belongs to another pass, or failed; or if a worker computes
        elementary functions differently from the driver.

    Examples
    --------
    >>> from tacit.cluster.partials import one_of_each
    >>> one_of_each([], 1, 1)
    Traceback (most recent call last):
    RuntimeError: 1 of 1 partial sums are missing; ...
    """
    by_part: dict[int, Partial] = {}
    for each in partials:
        if not isinstance(each, Partial) or each.pass_number != pass_number:
            raise RuntimeError("a partial sum is of another pass; nothing was released. Fit again.")
        if each.failure is not None:
            raise RuntimeError(
                f"a part of the records failed with {each.failure}; its message may repeat a "
                "record and is left out. Load that part by itself to see more."
            )
        if each.part in by_part:
            raise RuntimeError("a partial sum came twice; nothing was released. Fit again.")
        if each.arithmetic != arithmetic():
            raise RuntimeError(
                "a worker's NumPy computes exp or log differently from the driver's; use the same "
                "version of NumPy and the same kind of processor everywhere."
            )
        by_part[each.part] = each
    missing = set(range(n_parts)) - set(by_part)
    if missing or len(by_part) > n_parts:
        raise RuntimeError(
            f"{len(missing)} of {n_parts} partial sums are missing; nothing was released. Fit "
            "again."
        )
    return [by_part[number] for number in range(n_parts)]


@lru_cache(maxsize=1)
def arithmetic() -> int:
    """Return a checksum of elementary functions at many points, computed by this NumPy."""
    points = np.random.default_rng(0).uniform(-40.0, 40.0, 4099)
    values = [np.exp(points), np.log1p(np.exp(-np.abs(points))), np.tanh(points), np.cosh(points)]
    return zlib.crc32(b"".join(value.tobytes() for value in values))
