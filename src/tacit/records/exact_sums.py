"""Sums of whole numbers that are exact whichever blocks there are and however they are added.

A block's sum, a whole number below 2^53, is split into its low 26 bits and the rest, and each is
added by itself: floats add both exactly for up to 2^26 blocks. At the end the two are one number
again, which is a double itself if it is below 2^53 and is rounded once if it is not
(docs/proofs/exact_sums.md, section 3).
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
# Four times as many records as are said to be there may be there before a sum is held back.
_MARGIN = 4


def split(whole: Array) -> tuple[Array, Array]:
    """Return whole numbers of size up to 2^53 as high and low parts.

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
    """What becomes of a sum of terms of a number of bits, and what that costs.

    Parameters
    ----------
    term_bits
        A term is a vector of whole numbers, each and all together of norm below 2^term_bits.
    n_records
        About how many there are, if that is public; decides nothing but the way of rounding.

    Notes
    -----
    **Guarantee** (docs/proofs/exact_sums.md, section 3). Between data sets of which one has a term
    more, the result moves by at most the term's norm times 1 + `slack`:

    - 0, if four times ``n_records`` terms are below 2^53. A sum beyond is held to 2^53, coordinate
      by coordinate: that loses accuracy, never privacy.
    - 2^-21 else: the sum is rounded once, by 2^-53 of itself, and there are at most 2^31 records.

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
        """Whether nothing is rounded."""
        if self.n_records is None:
            return self.term_bits <= 20  # 2^33 records
        return _MARGIN * max(self.n_records, 1.0) * 2.0**self.term_bits <= _MOST

    @property
    def slack(self) -> float:
        """What is charged to the sensitivity, as a share of it."""
        return 0.0 if self.is_exact else 2.0**-52 * _MOST_RECORDS

    def joined(self, parts: tuple[Array, Array]) -> Array:
        """Return the sum of parts as doubles."""
        high, low = parts
        carried = np.floor(low / _LOW)
        # In [0, 2^26) there is one low part for a sum, however it was split.
        high, low = high + carried, low - carried * _LOW
        if not self.is_exact:
            return high * _LOW + low  # one rounding: both terms are doubles
        limit = _MOST / _LOW
        # Beyond a limit the sum is the limit: a low part there would make it jump.
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
    """Return the sum over blocks in steps of ``function``, whole numbers of size up to 2^53.

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
    """Refuse more records than the charge for rounding covers."""
    if not rounding.is_exact and records.count() > _MOST_RECORDS:
        raise ValueError("there are more than 2^31 records to add up; fit on a part.")
