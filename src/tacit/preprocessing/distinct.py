"""Whether records differ in a whole number, as they do in an identifier."""

from __future__ import annotations

import math
from collections.abc import Collection

from tacit.preprocessing.words import number_of

# Whether later records differ as well is not looked at, so that memory stays small.
_MOST_RECORDS = 100_000


class Distinct:
    """Counts the different whole numbers among records, until too few differ.

    Parameters
    ----------
    least
        The share of records that must differ for counting to go on.

    Examples
    --------
    >>> from tacit.preprocessing.distinct import Distinct
    >>> number = Distinct(least=0.95)
    >>> number.add(3, ["4711", "4712", "4713"])
    >>> number.is_each
    True
    >>> number.add(1, ["4711"])
    >>> number.is_each, number.is_nearly_each
    (False, False)
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._seen: set[str] = set()
        self._low, self._high = math.inf, -math.inf
        self.n_records = 0
        self.is_nearly_each = True

    def add(self, n_records: int, texts: Collection[str]) -> None:
        """Take note of the different values of some more records."""
        if not self.is_nearly_each or self.n_records >= _MOST_RECORDS:
            return
        self.n_records += n_records
        self._seen.update(texts)
        numbers = [number_of(text) for text in texts]
        self._low, self._high = min([self._low, *numbers]), max([self._high, *numbers])
        whole = all(number.is_integer() for number in numbers)
        if not whole or len(self._seen) < self._least * self.n_records:
            self.is_nearly_each = False
            self._seen.clear()

    @property
    def is_dense(self) -> bool:
        """Whether the numbers leave few gaps, as those do that are counted up."""
        return self._high - self._low < 2 * self.n_records

    @property
    def is_each(self) -> bool:
        """Whether no two records have the same whole number, and none has none."""
        return self.is_nearly_each and len(self._seen) == self.n_records
