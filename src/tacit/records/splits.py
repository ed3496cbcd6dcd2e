"""Poisson samples and disjoint parts of the records, decided record by record."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise, repeat
from numbers import Real
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.arrays import Mask
from tacit.column_values import alone
from tacit.privacy import Relation
from tacit.records.privacy_unit import People

DrawsWords = Callable[[int], npt.NDArray[np.uint64]]


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


def poisson_choice(rate: float, n_records: int, words: DrawsWords) -> Mask:
    """Return which records are in: each with probability ``rate``, by its own random word.

    A record is in if its 64 random bits, as a fraction, are below the rate: exact to 2^-64,
    rounded down.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.splits import poisson_choice
    >>> poisson_choice(0.5, 2, lambda n: np.array([2**63 - 1, 2**63], dtype=np.uint64))
    array([ True, False])
    """
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"rate must be in [0, 1], got {rate!r}; it is a probability.")
    threshold = np.uint64(min(int(rate * 2.0**64), 2**64 - 1))
    chosen: Mask = words(n_records) < threshold
    return chosen


PartOfEach = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

NO_PART = -1  # part of a record without a person, which does not count
KEY_BYTES = 32


class _Words(Protocol):
    def words(self, n: int) -> Words:
        """Return ``n`` random words of 64 bits."""


def new_key(source: _Words) -> bytes:
    """Draw a key by which records are split, independently of the records."""
    return source.words(KEY_BYTES // 8).tobytes()


def parts_of(
    shares: Sequence[float],
    key: bytes,
    relation: Relation,
    rows: Any,
    *columns: Any,
    people: People | None = None,
    positions: Sequence[int] | None = None,
) -> PartOfEach:
    """Return the part of each record: 0 for the first share, and so on.

    Parameters
    ----------
    shares
        Approximate share of the records in each part; shares add up to 1.
    key
        Random bytes, drawn independently of the records (`new_key`); they may be public.
    relation
        Decides how records are split: under ADD_REMOVE by the record itself, under
        ADD_REMOVE_PERSON by its person, under REPLACE by its position.
    rows, columns
        The records: a two-dimensional array of numbers, dense or sparse, and everything else that
        a release may read of a record: its label, its weight.
    people
        The person of each record, under ADD_REMOVE_PERSON; records without one are in no part.
    positions
        Position of each record in the original table, under REPLACE, if records that do not count
        were dropped. Without it, one of those would move all records after it.

    Notes
    -----
    **Guarantee** (docs/proofs/events.md, section 12). For any key, the parts of neighbours differ
    in one part, and there in one record (or one person). Parts are compared as multisets: the order
    of equal records does not matter.

    Equal records are distinguished by their occurrence (first, second, ...), so that a table of few
    different records is split as evenly as one of many.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Relation
    >>> from tacit.records.splits import parts_of
    >>> rows = np.arange(2000.0).reshape(-1, 2)
    >>> part = parts_of((0.9, 0.1), b"key", Relation.ADD_REMOVE, rows)
    >>> 60 < int(np.sum(part == 1)) < 140
    True
    >>> np.array_equal(part[1:], parts_of((0.9, 0.1), b"key", Relation.ADD_REMOVE, rows[1:]))
    True
    """
    edges = _edges(shares)
    words, counts = _words_by(relation, key, rows, columns, people, positions)
    return np.where(counts, _part(edges, words), NO_PART)


def places_of_parts(
    n_parts: int,
    key: bytes,
    relation: Relation,
    rows: Any,
    *columns: Any,
    people: People | None = None,
    positions: Sequence[int] | None = None,
) -> list[PartOfEach]:
    """Return the positions of the records of each of ``n_parts`` equal parts, in a fixed order.

    Notes
    -----
    **Guarantee**. As for `parts_of`. In addition, a computation on a part may depend on the order
    of its records. Under ADD_REMOVE they are in the order of their hashes, so that equal multisets
    are equal lists. Otherwise they are in their original order.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import Relation
    >>> from tacit.records.splits import places_of_parts
    >>> rows = np.arange(20.0).reshape(-1, 1)
    >>> parts = places_of_parts(3, b"key", Relation.ADD_REMOVE, rows)
    >>> np.sort(np.concatenate(parts)).tolist() == list(range(20))
    True
    """
    edges = _edges([1.0 / n_parts] * n_parts)
    words, counts = _words_by(relation, key, rows, columns, people, positions)
    part = np.where(counts, _part(edges, words), NO_PART)
    by_word = relation is Relation.ADD_REMOVE
    order = np.lexsort((words, part)) if by_word else np.argsort(part, kind="stable")
    starts = np.searchsorted(part[order], np.arange(n_parts + 1))
    return [order[first:last] for first, last in pairwise(starts)]


def _words_by(
    relation: Relation,
    key: bytes,
    rows: Any,
    columns: Sequence[Any],
    people: People | None,
    positions: Sequence[int] | None,
) -> tuple[Words, Mask]:
    """Return the word that decides the part of each record, and whether the record counts."""
    every = np.ones(rows.shape[0], dtype=np.bool_)
    if relation.by_person:
        if people is None:
            raise ValueError(
                "relation is ADD_REMOVE_PERSON, but nothing says whose each record is; pass people."
            )
        each = np.append(_words_of_people(key, people), np.uint64(0))
        return each[people.owner], people.owner >= 0
    if relation is Relation.REPLACE:
        where = np.arange(rows.shape[0]) if positions is None else np.asarray(positions, np.int64)
        return _words_of_positions(key, where.max(initial=-1) + 1)[where], every
    return _words_of_records(key, rows, columns), every


def _edges(shares: Sequence[float]) -> Words:
    """Return the words at which each part but the last ends."""
    each = [checks.positive("a share", share) for share in shares]
    if not each or abs(sum(each) - 1.0) > 1e-9:
        raise ValueError(f"shares must add up to 1, got {tuple(shares)}.")
    ends = np.cumsum(each)[:-1]
    return np.array([min(int(end * 2.0**64), 2**64 - 1) for end in ends.tolist()], dtype=np.uint64)


def _part(edges: Words, words: Words) -> PartOfEach:
    """Return the interval between edges that contains each word; an edge is in the next one."""
    return np.searchsorted(edges, words, side="right").astype(np.int64)


def _words_of_people(key: bytes, people: People) -> Words:
    return np.array([_word(key, word.tobytes()) for word in people.words], dtype=np.uint64)


def _words_of_positions(key: bytes, n_records: int) -> Words:
    # The i-th word of a stream depends on i and the key, not on the number of records.
    seed = int.from_bytes(blake2b(key, digest_size=32).digest(), "little")
    return np.random.Philox(seed).random_raw(n_records).astype(np.uint64)


def _words_of_records(key: bytes, rows: Any, columns: Sequence[Any]) -> Words:
    """Return the keyed hash of each record and its occurrence among equal records."""
    beside = zip(*map(_each_value, columns), strict=True) if columns else repeat(())
    before: dict[bytes, int] = {}
    words = np.empty(rows.shape[0], dtype=np.uint64)
    for i, (row, values) in enumerate(zip(_each_row(rows), beside, strict=bool(columns))):
        record = blake2b(row, key=key[:64], digest_size=32)
        for value in values:
            record.update(struct.pack("<q", len(value)) + value)
        same = record.digest()
        turn = before.get(same, 0)
        before[same] = turn + 1
        # Most records have no equal: use their own hash directly.
        words[i] = _word(key, same + struct.pack("<q", turn)) if turn else _first_word(same)
    return words


def _first_word(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "little")


def _word(key: bytes, content: bytes) -> int:
    return _first_word(blake2b(content, key=key[:64], digest_size=8).digest())


def _each_row(rows: Any) -> Iterator[bytes]:
    """Yield the bytes of each row as float64; -0.0 equals 0.0, and all NaN are equal."""
    sparse = hasattr(rows, "tocsr")
    for start in range(0, rows.shape[0], 4096):
        block = rows[start : start + 4096]
        # Block by block, so that a sparse table is never dense as a whole.
        dense = np.array(block.toarray() if sparse else block, dtype=np.float64) + 0.0
        dense[np.isnan(dense)] = np.nan
        for row in dense:
            yield row.tobytes()


def _each_value(column: Any) -> Iterator[bytes]:
    if _are_doubles(column):  # the result of `_bytes_of`, vectorised
        numbers = (column.astype("<f8") + 0.0)[:, None]
        return (number.tobytes() for number in np.where(np.isnan(numbers), np.nan, numbers))
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    return map(_bytes_of, values)


def _are_doubles(column: Any) -> bool:
    """Return whether every value of a column is exactly a double, or NaN."""
    kind = column.dtype.kind if isinstance(column, np.ndarray) and column.ndim == 1 else "O"
    if kind in "iu":
        return bool(np.all((column >= -(2**53)) & (column <= 2**53)))
    return kind == "b" or (kind == "f" and column.dtype.itemsize <= 8)


def _bytes_of(value: Any) -> bytes:
    """Return the bytes of a value; equal for 1, 1.0 and True, since a column's type may change."""
    # An integer of thousands of digits, for instance, cannot be converted to text.
    return alone(_number_or_text, value, type(value).__name__.encode())


def _number_or_text(value: Any) -> bytes:
    if isinstance(value, Real):
        number = alone(float, value, np.nan) + 0.0
        if number == value:
            return struct.pack("<d", number)
        if value != value:
            return struct.pack("<d", np.nan)
    text = str(value) if isinstance(value, str) else repr(value)  # np.str_ is text, too
    return str.encode(text, "utf-8", "surrogatepass")
