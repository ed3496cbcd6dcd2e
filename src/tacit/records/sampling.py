"""Poisson samples, which know at which rate they were drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Words = Callable[[int], npt.NDArray[np.uint64]]


@dataclass(frozen=True)
class Sample:
    """Records of which each was taken independently with probability ``rate``.

    Whoever draws the sample says at which rate, so that no rate is stated twice: what a question
    costs follows from it (`tacit.queries.PoissonSample`).

    Contract: one release from one sample. The event assumes that the records are drawn afresh
    for every release.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import secure_source
    >>> from tacit.records import Bounds, MemoryRecords
    >>> records = MemoryRecords(np.ones((1000, 2)), None, Bounds(row_norm=2.0))
    >>> sample = records.poisson_sample(0.1, secure_source().words)
    >>> 20 < sample.records.count() < 180
    True
    >>> sample.rate
    0.1
    """

    records: Any  # a RecordSource, or the records of a network
    rate: float


def poisson_choice(rate: float, n_records: int, words: Words) -> npt.NDArray[np.bool_]:
    """Return which records are in: each with probability ``rate``, by its own random word.

    A record is in if its 64 random bits, as a fraction, are below the rate: exact to 2^-64,
    rounded down.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.sampling import poisson_choice
    >>> poisson_choice(0.5, 2, lambda n: np.array([2**63 - 1, 2**63], dtype=np.uint64))
    array([ True, False])
    """
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"rate must be in [0, 1], got {rate!r}; it is a probability.")
    threshold = np.uint64(min(int(rate * 2.0**64), 2**64 - 1))
    chosen: npt.NDArray[np.bool_] = words(n_records) < threshold
    return chosen
