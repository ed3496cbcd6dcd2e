"""Columns of which less is public: what is missing is learned under the budget, by a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.preprocessing.errors import SchemaError
from tacit.preprocessing.files.one_value import MISSING
from tacit.preprocessing.files.values import Values
from tacit.preprocessing.schema import _check
from tacit.preprocessing.schema.column_check import ColumnCheck, check_words
from tacit.preprocessing.schema.columns import NEUTRAL, Absent, Encodes, Out, write_ones
from tacit.preprocessing.schema.missing import Fill, Indicator, Missing
from tacit.preprocessing.schema.number_columns import Number

_MOST_VALUES = 100_000


@dataclass(frozen=True)
class OpenNumber(Number):
    """A number of which only generous bounds are public; a `PrivatePipeline` learns narrower ones.

    Encoded by the public bounds as a `Number` is, but for missing values, which are NaN: the step
    that learns leaves them out and puts the middle of what it learned in their place.

    Parameters
    ----------
    name, log
        As in `Number`.
    lower, upper
        Public bounds, which may be generous: what is learned lies inside.
    missing
        ``Neutral()`` (the middle of what is learned), ``Indicator()`` or ``Fill(number)``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import OpenNumber
    >>> OpenNumber("income", 0, 10_000).encode(np.array([100.0, np.nan]))
    array([[-0.49],
           [  nan]])
    """

    kind: ClassVar[str] = "open_number"

    def _write(self, values: Values, out: Out) -> Absent:
        absent = super()._write(values, out)
        if not isinstance(self.missing, Fill):
            out[absent, 0] = np.nan
        return absent


@dataclass(frozen=True)
class OpenCategory(Encodes):
    """One of several words that nobody listed; a `PrivatePipeline` learns those that many have.

    Parameters
    ----------
    name
        The column's name in the table.
    max_values
        How many words to learn at most; as many features there are, whatever is learned.
    learned
        The words that were released, in a schema that a fit has completed; None before.
    missing
        ``Neutral()`` (zeros) or ``Indicator()``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import OpenCategory
    >>> OpenCategory("town", 3, ("Bergen", "Oslo")).encode(np.array(["Oslo", "Utsira"]))
    array([[0., 1., 0.],
           [0., 0., 0.]])
    """

    kind: ClassVar[str] = "open_category"
    name: str
    max_values: int
    learned: tuple[str, ...] | None = None
    missing: Missing = NEUTRAL

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        most = self.max_values
        if type(most) is not int or not 1 <= most <= _MOST_VALUES:
            raise SchemaError(
                f"{where}: max_values must be a whole number from 1 to {_MOST_VALUES}, got "
                f"{_check.shown(most)}; write how many words to learn at most."
            )
        if self.learned is not None:
            words = _check.words(where, "learned", self.learned) if len(self.learned) else ()
            object.__setattr__(self, "learned", words)
        if self.learned is not None and len(self.learned) > most:
            raise SchemaError(f"{where}: learned lists more than max_values words.")
        if not isinstance(self.missing, Indicator | type(NEUTRAL)):
            raise SchemaError(
                f"{where}: missing must be 'neutral' or 'indicator': which words there are is not "
                "known before they are learned."
            )

    def _names(self) -> list[str]:
        known = self.learned or ()
        rest = range(len(known) + 1, self.max_values + 1)
        return [
            *(f"{self.name}={word}" for word in known),
            *(f"{self.name}#{place}" for place in rest),
        ]

    @property
    def _place(self) -> Mapping[str, int]:
        return {word: place for place, word in enumerate(self.learned or ())}

    def _write(self, values: Values, out: Out) -> Absent:
        if self.learned is None:
            raise SchemaError(
                f"{_check.named(self.name)}: nobody knows its words yet; a PrivatePipeline that "
                "begins with a SchemaEncoder of this schema learns them, and pays for it."
            )
        codes = values.codes(self._place)
        write_ones(out, codes)
        absent: Absent = codes == MISSING
        return absent

    def check(self, values: Values) -> ColumnCheck:
        """Count what is missing or was not learned."""
        return check_words(self.name, self.kind, values, self._place)
