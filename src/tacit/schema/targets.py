"""What is predicted: one of several classes, or a number in a range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.column_values import kind_of_type
from tacit.io.errors import SchemaError, TableError, wrong_type
from tacit.io.values import Values, number_of
from tacit.schema import _check
from tacit.schema.columns import (
    ColumnCheck,
    check_numbers,
    check_words,
    places,
    without_codes,
)

Labels = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ClassTarget:
    """One of several classes. A record of none of them does not count.

    Parameters
    ----------
    name
        The column's name in the table.
    classes
        The public classes: all text, all whole numbers, or False and True. They are compared as
        text without outer blanks, False and True also in capitals or capitalised, and labels have
        their type.
    words
        The values of the table that each class stands for, in the order of the classes, which then
        are names; `merged` takes both together. By default each class is its own value.
    fold_case
        Whether small letters and capitals are the same.
    missing_codes
        Values that mean a missing label.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import ClassTarget
    >>> from tacit.io.values import ArrayValues
    >>> target = ClassTarget("income", ("<=50K", ">50K"))
    >>> target.encode(ArrayValues(np.array([">50K", "?", " <=50K"])))
    (array(['>50K', '<=50K'], dtype='<U5'), array([ True, False,  True]))
    >>> target = ClassTarget.merged("readmitted", {"early": ["<30"], "other": [">30", "NO"]})
    >>> target.encode(ArrayValues(np.array(["NO", "<30", ">30"])))[0]
    array(['other', 'early', 'other'], dtype='<U5')
    """

    kind: ClassVar[str] = "target"
    name: str
    classes: tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]
    words: tuple[tuple[str, ...], ...] | None = None
    fold_case: bool = False
    missing_codes: tuple[str, ...] = ()

    @classmethod
    def merged(cls, name: str, values: Mapping[str, Sequence[Any]]) -> ClassTarget:
        """Return a target whose classes stand for one or more values of the table each."""
        return cls(name, tuple(values), tuple(values.values()))  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        words = _check.words(where, "classes", self.classes)
        if len(words) < 2:
            raise SchemaError(
                f"{where}: classes must be at least two, got {_check.shown(words)}; a record of "
                "none of them does not count, so declare the others as well."
            )
        if {type(label) for label in self.classes} not in ({str}, {int}, {bool}):
            raise SchemaError(
                f"{where}: classes must be all text, all whole numbers or false and true, got "
                f"{_check.shown(self.classes)}; put quotation marks around each."
            )
        object.__setattr__(self, "classes", tuple(self.classes))
        try:
            in_64_bits = self.labels.dtype.kind in "Uib"
        except OverflowError:
            in_64_bits = False
        if not in_64_bits:
            raise SchemaError(f"{where}: classes are too large for whole numbers; quote them.")
        if self.words is not None:
            merged = _check.merged(where, "classes", "class", self.classes, self.words)
            object.__setattr__(self, "words", merged)
        _check.flag(where, "fold_case", self.fold_case)
        declared = [word for own in self._words for word in own]
        if self.fold_case:
            _check.folded(where, "classes", declared)
        codes = _check.missing_codes(where, self.missing_codes, declared, self.fold_case)
        object.__setattr__(self, "missing_codes", codes)

    @property
    def labels(self) -> Labels:
        """The classes as an array."""
        return np.array(self.classes)

    @property
    def _words(self) -> Sequence[Sequence[str]]:
        """The values of the table for each class."""
        if self.words is not None:
            return self.words
        words = [(word,) for word in _check.words("", "classes", self.classes)]
        if isinstance(self.classes[0], bool) and not self.fold_case:
            # as JSON, pandas and R write them
            return [(word, word.title(), word.upper()) for (word,) in words]
        return words

    @property
    def _place(self) -> Mapping[str, int]:
        return places(self._words, self.missing_codes, self.fold_case)

    def encode(self, values: Values) -> tuple[Labels, Mask]:
        """Return the labels of the records that have one, and which those are."""
        codes = values.codes(self._place)
        mask = codes >= 0
        return self.labels[codes[mask]], mask

    def refuse_type(self, dtype: Any) -> None:
        """Refuse a column that no declared class can stand in, by its type alone."""
        kind = None if dtype is None else kind_of_type(dtype)
        refuse_times(self.name, dtype)
        words = [word for own in self._words for word in own]
        can_be = {
            "numbers": any(not math.isnan(number_of(word)) for word in words),
            "booleans": bool({"true", "false"} & set(words)),
        }
        if not can_be.get(kind or "", True):
            example = 'no = ["0"], yes = ["1"]'
            if kind == "booleans":
                example = 'no = ["false"], yes = ["true"]'
            raise TableError(
                f"column {self.name!r} is of type {dtype}, which is {kind}, and none of the "
                f"classes that the schema declares, {_check.shown(list(words))}, can stand in it: "
                "no record would count; declare the classes as the column has them, such as "
                f'{self.name} = {{ kind = "target", classes = {{ {example} }} }}. '
                "Nothing was read or charged."
            )

    def check(self, values: Values) -> ColumnCheck:
        """Count the labels that are missing or not declared; their records do not count."""
        return check_words(self.name, self.kind, values, self._place)


@dataclass(frozen=True)
class NumberTarget:
    """A number, clipped to [lower, upper]. A record without one does not count.

    Parameters
    ----------
    name
        The column's name in the table.
    lower, upper
        The range to which labels are clipped, a public fact.
    missing_codes
        Values that mean a missing label, such as 9999.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.schema import NumberTarget
    >>> from tacit.io.values import ArrayValues
    >>> NumberTarget("visits", 0, 20).encode(ArrayValues(np.array([3.0, np.nan, 77.0])))
    (array([ 3., 20.]), array([ True, False,  True]))
    """

    kind: ClassVar[str] = "target"
    name: str
    lower: float
    upper: float
    missing_codes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = _check.named(self.name)
        lower, upper = _check.interval(where, self.lower, self.upper)
        codes = _check.missing_codes(where, self.missing_codes)
        object.__setattr__(self, "missing_codes", codes)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def labels(self) -> Labels:
        """No labels: the type of the numbers."""
        return np.empty(0)

    def encode(self, values: Values) -> tuple[Labels, Mask]:
        """Return the numbers of the records that have one, and which those are."""
        numbers = without_codes(values.numbers(), self.missing_codes)
        mask = ~np.isnan(numbers)
        return np.clip(numbers[mask], self.lower, self.upper), mask

    def refuse_type(self, dtype: Any) -> None:
        """Refuse a column of which no number can be made, by its type alone."""
        refuse_times(self.name, dtype)

    def check(self, values: Values) -> ColumnCheck:
        """Count the labels that are missing, no number, or outside the range."""
        limits = (self.lower, self.upper)
        return check_numbers(self.name, self.kind, values, *limits, codes=self.missing_codes)


def refuse_times(name: str, dtype: Any) -> None:
    """Refuse a column of dates or times, by its type alone."""
    if dtype is not None and kind_of_type(dtype) in ("dates", "spans of time"):
        raise wrong_type(name, dtype)


Target = ClassTarget | NumberTarget
