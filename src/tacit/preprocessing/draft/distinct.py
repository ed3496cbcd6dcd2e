"""Whether records differ in a whole number, as they do in an identifier."""

from __future__ import annotations

import math
from collections.abc import Collection

from tacit.preprocessing.files.one_value import number_of

# Later records are not compared, so that memory stays small.
_MOST_RECORDS = 100_000
# From here on floats have lost their last digits.
_INEXACT = 2.0**53


class Distinct:
    """Counts the different whole numbers among records, until too few of those differ.

    Parameters
    ----------
    least
        The share of records that must differ for counting to go on.

    Examples
    --------
    >>> from tacit.preprocessing.draft.distinct import Distinct
    >>> number = Distinct(least=0.95)
    >>> number.add(3, ["4711", "4712", "4713"])
    >>> number.is_each
    True
    >>> number.add(1, ["4711"])
    >>> number.is_each, number.is_most
    (False, False)
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._seen: set[str] = set()
        self._low, self._high = math.inf, -math.inf
        self.n_records = 0
        self.is_most = True

    def add(self, n_records: int, texts: Collection[str]) -> None:
        """Take note of the different values of some more records."""
        if not self.is_most or self.n_records >= _MOST_RECORDS:
            return
        self.n_records += n_records
        self._seen.update(texts)
        numbers = [number_of(text) for text in texts]
        self._low, self._high = min([self._low, *numbers]), max([self._high, *numbers])
        whole = all(number.is_integer() for number in numbers)
        if not whole or len(self._seen) < self._least * self.n_records:
            self.is_most = False
            self._seen.clear()

    @property
    def is_counted_up(self) -> bool:
        """Whether the numbers leave few gaps, or the same gap everywhere."""
        span = self._high - self._low
        if span < 2 * self.n_records:
            return True
        if span >= _INEXACT:
            return False
        # All steps are multiples of their greatest common divisor; n - 1 steps of it make the span.
        step = math.gcd(*(int(number_of(text) - self._low) for text in self._seen))
        return span == step * (len(self._seen) - 1)

    @property
    def is_each(self) -> bool:
        """Whether no two records have the same whole number, and none has none."""
        return self.is_most and len(self._seen) == self.n_records
