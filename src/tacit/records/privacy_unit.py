"""Assign records to people. Identifiers are read here, converted to numbers, and not kept.

This file says whose record is whose; it bounds nothing. A person's records are bounded in one of
two ways (docs/proofs/people.md):

- one record each: `one_each` of `records/grouped.py` keeps one record of every person;
- all records: the sum of a person's gradients is clipped in `queries/gradient.py`.

`_bound_people` of `erm/minimization.py` chooses between them by the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from hashlib import blake2b
from numbers import Real
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from tacit.column_values import alone

Places = npt.NDArray[np.int64]

# Texts that mean a missing identifier.
_NOBODY = frozenset(
    [
        "",
        "?",
        "NA",
        "N/A",
        "n/a",
        "NaN",
        "nan",
        "NULL",
        "Null",
        "null",
        "None",
        "none",
        "<NA>",
        "NaT",
    ]
)
# From this size on several integers share one float; for shorter floats from a smaller size.
_INEXACT = 2.0**53


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """The person of each record as a number, and a pseudorandom word for each person.

    Parameters
    ----------
    owner
        For each record the number of its person, from 0 on, or -1 without an identifier.
    words
        For each person 64 bits that depend on their identifier only.

    Notes
    -----
    **Guarantee**

    1. Whether two records belong to one person depends on their two identifiers only, and a
    person's word on that person's identifier only.
    2. No identifier is kept.
    """

    owner: Places
    words: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.owner)

    def where(self, mask: Any) -> People:
        """Return the people of some of the records; pass a slice or a mask."""
        present, owner = np.unique(self.owner[mask], return_inverse=True)
        nobody = int(np.sum(present < 0))
        return People(owner.reshape(-1) - nobody, self.words[present[nobody:]])

    def order(self) -> Places:
        """Return the positions of records by person, each person's in their original order."""
        return np.argsort(self.owner, kind="stable")[np.sum(self.owner < 0) :]

    def sizes(self) -> Places:
        """Return the number of records of each person, at least one."""
        return np.bincount(self.owner[self.owner >= 0], minlength=len(self.words))

    def one_each(self) -> Places:
        """Return the position of one record of each person, in the order of the records.

        It is the (word mod k)-th of a person's k records. The choice depends neither on other
        people's records nor on the content of any record.
        """
        sizes = self.sizes()
        starts = np.cumsum(sizes) - sizes
        turn = (self.words % sizes.astype(np.uint64)).astype(np.int64)
        return np.sort(self.order()[starts + turn])


def people_of(identifiers: Any) -> People:
    """Return the person of each record.

    Parameters
    ----------
    identifiers
        One per record: text, bytes, numbers, dates, UUIDs or tuples of these. Blanks around a text
        are ignored, and 1, 1.0, "1" and b"1" are the same person. A record without an identifier
        does not count, nor does one with an identifier of another type or one that raises when
        read.

    Raises
    ------
    TypeError, ValueError
        If there is not one identifier per record. Messages never repeat one.

    Notes
    -----
    An integer of size 2^53 or more that is stored as a number identifies nobody. Libraries convert
    integers to floats if another record's is missing, and floats of that size have lost their last
    digits (in single precision from 2^24 on, in half precision from 2^11). Two people taken for one
    would be protected less, and so would one taken for two.

    Examples
    --------
    >>> from tacit.records.privacy_unit import people_of
    >>> people_of(["ann", "bob", " ann ", None, float("nan")]).owner
    array([ 0,  1,  0, -1, -1])
    """
    values = _one_each_record(identifiers)
    if isinstance(values, np.ndarray):  # numbers: read each distinct one once
        different, place = np.unique(values, return_inverse=True)
        # Python's numbers are faster; shorter floats keep their dtype, which states their
        # precision.
        plain = different.dtype.kind != "f" or different.dtype == np.float64
        texts = [_text_of(value) for value in (different.tolist() if plain else different)]
        place = place.reshape(-1)
    else:
        texts, place = [_text_of(value) for value in values], np.arange(len(values))
    number: dict[str, int] = {}
    owner = np.array(
        [-1 if text is None else number.setdefault(text, len(number)) for text in texts],
        dtype=np.int64,
    )
    return People(owner[place], np.array([_word_of(text) for text in number], dtype=np.uint64))


def n_identifiers(identifiers: Any) -> int:
    """Return the number of identifiers without reading one; raise unless it is one per record."""
    shape = getattr(identifiers, "shape", None)
    listed = hasattr(identifiers, "__len__") and not isinstance(
        identifiers, str | bytes | bytearray | Mapping | Set
    )
    if not listed or (shape is not None and len(shape) != 1):
        raise TypeError(
            "unit must be one identifier for each record, in an array, a list or a column; to name "
            "a column of a table, declare it in the schema with kind = 'unit'."
        )
    return len(identifiers)


def _one_each_record(identifiers: Any) -> npt.NDArray[Any] | list[Any]:
    """Return an array of numbers, or a list of other values, depending on the dtype."""
    n_identifiers(identifiers)
    dtype = getattr(identifiers, "dtype", None)
    masked = isinstance(identifiers, np.ma.MaskedArray)
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf" and not masked:
        return np.asarray(identifiers)
    if isinstance(dtype, np.dtype) and dtype.kind == "M" and not masked:
        return list(np.datetime_as_string(np.asarray(identifiers)))
    for to_list in ("to_pylist", "to_list", "tolist"):
        if hasattr(identifiers, to_list):
            values: list[Any] = getattr(identifiers, to_list)()
            return values
    return list(identifiers)


def _text_of(value: Any) -> str | None:
    """Return a text that is equal for all identifiers of one person; None without a person."""
    return alone(_plain_text, value, None)


def _plain_text(value: Any) -> str | None:
    text = _text(value)
    # Convert to a plain str: a subclass could compare or encode differently.
    return None if text is None else str.strip(text)


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = bytes.decode(value, "utf-8", "surrogateescape")
    if isinstance(value, str):
        text = str.strip(value)
        return None if text in _NOBODY else text
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Real | Decimal):
        return _number_text(value)
    if isinstance(value, tuple):
        parts = [_text(part) for part in value]
        # Put a length before each part, so that different tuples have different texts.
        return None if None in parts else "".join(f"({len(p or '')}){p}" for p in parts)
    if isinstance(value, UUID | date | time | np.datetime64):
        text = str(value)
        return None if text in _NOBODY else text  # pandas' NaT is a date
    return None


def _number_text(value: Real | Decimal) -> str | None:
    number = float(value)
    exact = 2.0 ** (np.finfo(value).nmant + 1) if isinstance(value, np.floating) else _INEXACT
    if not abs(number) < min(exact, _INEXACT):  # also excludes NaN
        return None
    if isinstance(value, Decimal) and number != value:
        return f"{value:f}".rstrip("0")
    if number != value:  # the lost digits may distinguish another person
        return None
    return str(int(number)) if number.is_integer() else repr(number)


def _word_of(text: str) -> int:
    hashed = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(hashed, "little")
