"""Sum integers exactly, for any blocks and any order of additions.

A block's sum, an integer below 2^53, is split into its low 26 bits and the rest. Each part is added
separately: floats add both exactly for up to 2^26 blocks. At the end the two parts are joined. The
result is exact below 2^53 and rounded once above (docs/proofs/exact_sums.md, section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.records.lattice_block import LatticeBlock, sum_in_steps
from tacit.records.source import RecordSource

Array = npt.NDArray[np.float64]

_LOW = 2.0**26
_MOST = 2.0**53
_MOST_RECORDS = 2**31
# Safety factor: four times the stated number of records may exist before a sum is clipped.
_MARGIN = 4


def split(whole: Array) -> tuple[Array, Array]:
    """Return integers of size up to 2^53 as high and low parts.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.exact_sums import split
    >>> split(np.array([2.0**26 + 5, -1.0]))
    (array([ 1., -1.]), array([5.0000000e+00, 6.7108863e+07]))
    """
    high = np.floor(whole / _LOW)
    return high, whole - high * _LOW


@dataclass(frozen=True)
class Rounding:
    """Rounding of a sum of terms with a given number of bits, and its cost in sensitivity.

    Parameters
    ----------
    term_bits
        A term is a vector of integers; its norm and each integer are below 2^term_bits.
    n_records
        Approximate number of records, if public; it only decides the way of rounding.

    Notes
    -----
    **Guarantee** (docs/proofs/exact_sums.md, section 3). If one of two data sets has one term more,
    the result moves by at most the term's norm times 1 + `slack`. The slack is

    - 0, if four times ``n_records`` terms are below 2^53. A larger sum is clipped to 2^53, per
      coordinate: that loses accuracy, never privacy.
    - 2^-21 otherwise: the sum is rounded once, by 2^-53 of itself, and there are at most 2^31
      records.

    Examples
    --------
    >>> from tacit.records.exact_sums import Rounding
    >>> Rounding(33, 200_000).slack, Rounding(33).slack == 2.0**-21
    (0.0, True)
    """

    term_bits: int
    n_records: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether no sum is rounded."""
        if self.n_records is None:
            return self.term_bits <= 20  # 2^33 records
        return _MARGIN * max(self.n_records, 1.0) * 2.0**self.term_bits <= _MOST

    @property
    def slack(self) -> float:
        """Relative increase of the sensitivity by rounding."""
        return 0.0 if self.is_exact else 2.0**-52 * _MOST_RECORDS

    def joined(self, parts: tuple[Array, Array]) -> Array:
        """Return the joined parts as doubles."""
        high, low = parts
        carried = np.floor(low / _LOW)
        # Normalise the low part to [0, 2^26): it is then unique, however the sum was split.
        high, low = high + carried, low - carried * _LOW
        if not self.is_exact:
            return high * _LOW + low  # one rounding: both terms are doubles
        limit = _MOST / _LOW
        # At the limit drop the low part, which would make the sum jump.
        low = np.where((high >= -limit) & (high < limit), low, 0.0)
        return np.clip(high, -limit, limit) * _LOW + low


def exact_sum(
    records: RecordSource,
    function: Callable[[LatticeBlock], Array],
    rounding: Rounding,
    *,
    n_outputs: int = 1,
    keep: bool = True,
) -> Array:
    """Return the sum over lattice blocks of ``function``, integers of size up to 2^53.

    ``keep`` as in `sum_in_steps`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.exact_sums import Rounding, exact_sum
    >>> records = MemoryRecords(np.array([[0.5, 0.25], [0.25, 0.0]]), None, Bounds(row_norm=1.0))
    >>> exact_sum(records, lambda block: block.whole_sum(np.ones(block.n_rows)), Rounding(16))
    array([24576.,  8192.])
    """
    check_not_too_many(records, rounding)
    high, low = sum_in_steps(
        records, lambda block: split(function(block)), n_outputs=n_outputs, keep=keep
    )
    return rounding.joined((high, low))


def check_not_too_many(records: RecordSource, rounding: Rounding) -> None:
    """Raise if there are more records than the rounding slack covers."""
    if not rounding.is_exact and records.count() > _MOST_RECORDS:
        raise ValueError("there are more than 2^31 records to add up; fit on a part of them.")
