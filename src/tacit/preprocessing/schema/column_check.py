"""How many values of a column were not read as they stand: counts, never a value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tacit.preprocessing.files.one_value import MISSING, UNKNOWN
from tacit.preprocessing.files.values import Values


@dataclass(frozen=True)
class ColumnCheck:
    """How the values of one column were read, in counts.

    **They are not private**: they are taken from the records without noise.

    Parameters
    ----------
    name, kind
        The column and its kind in the schema; ``"target"`` for what is predicted.
    records
        How many values there are.
    missing
        How many are null, empty, stored as NaN or infinity, or a word for it such as ``NA``.
    unreadable
        How many are there but are no number, none of the declared values or classes, or none of
        the words of a boolean.
    clipped
        How many are numbers outside the declared range.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import Number
    >>> from tacit.preprocessing.files.values import ArrayValues
    >>> Number("age", 0, 100).check(ArrayValues(np.array(["39", "39,5", "", "130"])))
    ColumnCheck(name='age', kind='number', records=4, missing=1, unreadable=1, clipped=1)
    """

    name: str
    kind: str
    records: int = 0
    missing: int = 0
    unreadable: int = 0
    clipped: int = 0

    def __add__(self, other: ColumnCheck) -> ColumnCheck:
        """Return the counts of both, of the same column."""
        return replace(
            self,
            records=self.records + other.records,
            missing=self.missing + other.missing,
            unreadable=self.unreadable + other.unreadable,
            clipped=self.clipped + other.clipped,
        )


def check_numbers(
    name: str, kind: str, values: Values, lower: float = -math.inf, upper: float = math.inf
) -> ColumnCheck:
    """Return how values are read as numbers of a range."""
    numbers = values.numbers()
    absent = np.isnan(numbers)
    n_absent = n_unreadable = int(absent.sum())
    if n_absent:
        # With no word declared, `codes` tells a missing value from one that is there but no number.
        n_unreadable = int((values.where(absent).codes({}) == UNKNOWN).sum())
    clipped = int(((numbers < lower) | (numbers > upper)).sum())
    return ColumnCheck(name, kind, len(numbers), n_absent - n_unreadable, n_unreadable, clipped)


def check_words(name: str, kind: str, values: Values, place: Mapping[str, int]) -> ColumnCheck:
    """Return how values are read as declared words."""
    codes = values.codes(place)
    missing, unreadable = int((codes == MISSING).sum()), int((codes == UNKNOWN).sum())
    return ColumnCheck(name, kind, len(codes), missing, unreadable)
