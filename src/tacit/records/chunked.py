"""Read records block by block in every pass: from files, a database, a generator."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, Mask
from tacit.records.block import (
    Block,
    added_up,
    canonical,
    factors_of,
    fine_rows,
    float_error,
    make_block,
    of_a_class,
    some_of,
    usual_rows,
)
from tacit.records.bounds import Bounds
from tacit.records.lazy_table import TableInMemory, may_change_rows
from tacit.records.memory import labels_as_numbers, refuse_undeclared_weights
from tacit.records.rows_and_labels import as_weights
from tacit.records.splits import DrawsWords as Words
from tacit.records.splits import Sample, poisson_choice

Read = Callable[[], Iterable[tuple[Any, ...]]]
Part = tuple[Any, Array | None, Array | None]


class ChunkedRecords:
    """Rows and labels that are read anew in every pass, a block at a time.

    Parameters
    ----------
    read
        Called once per pass; returns an iterable of pairs (rows, labels), or of triples (rows,
        labels, weights) if records have weights. Rows are anything that `as_rows` accepts: arrays,
        SciPy sparse arrays, frames, Arrow tables. Labels are one number per row, or None
        throughout. If ``bounds`` declare classes, records of other classes are dropped. A block
        may be empty, and its memory may be reused for the next one.
    n_features
        Number of columns: declared, since nothing is read before a fit was charged.
    bounds
        Public bounds on every record.

    Notes
    -----
    **Guarantee**

    1. Sums equal those of `MemoryRecords` of the same rows within `sum_error`. No bit of them
    depends on the blocks of ``read``, since records are regrouped.
    2. At most one block as read and one of some megabytes are held at a time. A Poisson sample
    takes one byte per record, and its rows are read like any others.
    3. A source that yields other records, or another order, than in its first pass is refused
    before a sum is returned.
    4. No error repeats a value, not even one that ``read`` raises.

    **Assumes** that changes are accidental: the number of records and 32-bit checksums detect them.
    Sensitivity needs less. In each pass one person may change at most one row, and may not decide
    which rows others have. Then every single sum moves by at most its bound, even if passes differ.
    The checksums protect what spans passes: a sample that is read twice must contain the same
    records twice, and float error is bounded by the number of records.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, ChunkedRecords
    >>> def read():
    ...     for start in range(3):
    ...         yield np.full((2, 2), start), np.full(2, start)
    >>> records = ChunkedRecords(read, 2, Bounds(row_norm=10.0, label_range=(0.0, 1.0)))
    >>> records.sum(lambda block: (block.points().sum(axis=0), block.labels.sum()))
    (array([6., 6.]), array(4.))
    """

    def __init__(self, read: Read, n_features: int, bounds: Bounds) -> None:
        if not callable(read):
            raise TypeError(
                "read must be a function that is called once a pass and returns the blocks; an "
                "iterator could be read only once. Pass lambda: ..., or a generator function."
            )
        if not n_features >= 1:
            raise ValueError(f"n_features must be at least 1, got {n_features!r}.")
        self.bounds = bounds
        self._n_features = int(n_features)
        self._parts: Callable[[], Iterator[Part]] = lambda: _checked(read, n_features, bounds)
        self._seen: tuple[int, tuple[int, ...]] | None = None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self._n_features

    def count(self) -> int:
        """Return the number of records, read in a first pass if necessary. Private."""
        if self._seen is None:
            for _ in self._pass():
                pass
        assert self._seen is not None
        return self._seen[0]

    def sum(
        self, function: Callable[[Block], tuple[Array, ...]], *, fine: bool = False
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks of rows in one pass."""
        parts = _cut(self._pass(), self._block_rows(fine))
        return added_up((function(block) for block in self._blocks(parts)), fine=fine)

    def sum_error(self, *, fine: bool = False) -> float:
        """Return e such that a sum of n terms of size at most 1 is off by at most e.

        Proof: `tacit.records.block`.
        """
        return float_error(self.count(), self._block_rows(fine), fine=fine)

    def every(self, step: int) -> ChunkedRecords:
        """Return every ``step``-th record. The choice is fixed, so it amplifies no privacy."""
        return self._where(lambda start, n: np.arange(-start % step, n, step))

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each record independently with probability ``rate``, by its own random word."""
        return Sample(self.chosen(poisson_choice(rate, self.count(), words)), rate)

    def counting(self) -> Mask | None:
        """Return which of the records as read count; None if all of them do. Private."""
        marks = [(part[0].shape[0], of_a_class(part[1], self.bounds)) for part in self._parts()]
        if all(known is None for _, known in marks):
            return None
        return np.concatenate([np.ones(n, bool) if known is None else known for n, known in marks])

    def chosen(self, mask: Mask) -> ChunkedRecords:
        """Return the marked records; one mark per record."""
        return self._where(lambda start, n: np.flatnonzero(mask[start : start + n]))

    def _where(self, places: Callable[[int, int], npt.NDArray[np.intp]]) -> ChunkedRecords:
        """Return some records: of the n from ``start`` on, those at ``places(start, n)``."""

        def parts() -> Iterator[Part]:
            start = 0
            for part in self._pass():
                n = part[0].shape[0]
                yield _taken(part, places(start, n))
                start += n

        some = copy.copy(self)
        some._parts, some._seen = parts, None
        return some

    def _block_rows(self, fine: bool) -> int:
        return fine_rows(self._n_features, self.count()) if fine else usual_rows(self._n_features)

    def _blocks(self, parts: Iterator[Part]) -> Iterator[Block]:
        """Yield each part within its bounds; an empty part if there is none."""
        nothing: Part = np.empty((0, self._n_features)), np.empty(0), None
        for rows, labels, weights in chain([next(parts, nothing)], parts):
            # Sums in single precision would exceed the sensitivity.
            rows = rows.astype(np.float64, copy=may_change_rows(rows))
            if not hasattr(rows, "tocsr"):
                rows = np.ascontiguousarray(rows)  # the layout of joined blocks
            refuse_undeclared_weights(weights, self.bounds)
            yield make_block(rows, labels, factors_of(rows, self.bounds), self.bounds, weights)

    def _pass(self) -> Iterator[Part]:
        """Yield the blocks; raise at the end if they differ from the first pass."""
        count = 0
        checksums: tuple[int, ...] = ()
        for part in self._parts():
            checksums = _checksums(part, checksums)
            known = of_a_class(part[1], self.bounds)
            counted = part if known is None else _taken(part, np.flatnonzero(known))
            count += counted[0].shape[0]
            if counted[0].shape[0]:
                yield counted
        if self._seen not in (None, (count, checksums)):
            raise ValueError(
                "the blocks did not hold the same records in the same order as in an earlier "
                "pass; let read() return the same ones each time, for instance from a copy."
            )
        self._seen = count, checksums


def _checked(read: Read, n_features: int, bounds: Bounds) -> Iterator[Part]:
    """Yield the blocks that are not empty, as numbers of one kind; errors repeat no value."""
    first: tuple[bool, ...] | None = None
    for rows, labels, weights in _silently(read):
        if _is_empty(rows) and (labels is None or _is_empty(labels)):
            continue
        table = TableInMemory(rows, labels)
        if table.n_columns != n_features:
            raise ValueError(
                f"a block has another number of columns than n_features={n_features}; pass one "
                "number for each feature in every block."
            )
        rows, labels = table.read()
        kind = hasattr(rows, "tocsr"), labels is None, weights is None
        first = first or kind
        if kind != first:
            raise ValueError(
                "some blocks are sparse, or come without labels or weights, and others do not; "
                "make all of them alike."
            )
        yield (
            canonical(rows) if kind[0] else rows,
            None if kind[1] else labels_as_numbers(labels, bounds),
            None if kind[2] else as_weights(weights, rows.shape[0]),
        )


def _silently(read: Read) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the blocks of ``read``; its errors may quote a record, so they are replaced."""
    try:
        for block in read():
            rows, labels, *rest = block
            (weights,) = rest or (None,)
            yield rows, labels, weights
    except Exception as error:
        raise RuntimeError(
            f"reading the blocks failed with {type(error).__name__}; its message may repeat a "
            "record and is left out. Pairs (rows, labels), or triples with weights, are "
            "expected; call read() by itself to see more."
        ) from None


def _is_empty(values: Any) -> bool:
    shape = getattr(values, "shape", None)
    return not (shape[0] if shape else len(values))


def _cut(parts: Iterator[Part], step: int) -> Iterator[Part]:
    """Yield the records ``step`` at a time."""
    mask: list[Part] = []
    held = 0
    for part in parts:
        n, at = part[0].shape[0], 0
        while held + n - at >= step:
            upto = at + step - held
            yield _joined([*mask, _taken(part, slice(at, upto))])
            at, mask, held = upto, [], 0
        if at < n:
            # Fancy indexing copies: the reader may reuse the memory for its next block.
            mask.append(_taken(part, np.arange(at, n)))
            held += n - at
    if mask:
        yield _joined(mask)


def _taken(part: Part, at: Any) -> Part:
    rows, labels, weights = part
    return rows[at], some_of(labels, at), some_of(weights, at)


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    rows, labels, weights = zip(*parts, strict=True)
    if hasattr(rows[0], "tocsr"):
        from scipy.sparse import vstack

        table = vstack(rows, format="csr")
    else:
        table = np.concatenate(rows)
    return (
        table,
        None if labels[0] is None else np.concatenate(labels),
        None if weights[0] is None else np.concatenate(weights),
    )


def _checksums(part: Part, earlier: tuple[int, ...]) -> tuple[int, ...]:
    """Continue checksums over a part; they do not depend on where blocks end."""
    rows, *numbers = part
    if hasattr(rows, "tocsr"):
        arrays = [rows.data, rows.indices.astype(np.int64), np.diff(rows.indptr).astype(np.int64)]
    else:
        arrays = [rows]
    arrays += [array for array in numbers if array is not None]
    return tuple(
        zlib.crc32(np.ascontiguousarray(array).data, before)
        for array, before in zip(arrays, earlier or (0,) * len(arrays), strict=True)
    )
