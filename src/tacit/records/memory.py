"""Records held in memory, dense or sparse, and how whatever comes in is opened as records."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, Mask
from tacit.disk_arrays import empty_like_rows, is_on_disk, own, rows_at
from tacit.records.block import (
    Block,
    Buffers,
    Workers,
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
from tacit.records.exact.kernels import compiled, is_worth_compiling
from tacit.records.exact.lattice import LatticeBlock, LatticeTable, in_steps, lattice_block
from tacit.records.exact.tiles import Tiles
from tacit.records.lazy_table import MappedRows, TableInMemory, may_change_rows
from tacit.records.rows_and_labels import as_codes, as_numbers
from tacit.records.source import RecordSource
from tacit.records.splits import DrawsWords as Words
from tacit.records.splits import Sample, poisson_choice

T = TypeVar("T")

_SHARED_BYTES = 64 << 20  # larger tables are shared among threads
# Mapped rows that take no more memory than this are computed once, not in every pass.
CACHED_BYTES = 256 << 20


class MemoryRecords:
    """Rows and labels in memory, clipped to their bounds as they are summed.

    Parameters
    ----------
    rows
        A float32 or float64 array, or a SciPy sparse array, of shape (n, n_features). Duplicate
        entries of a sparse array are added up first. `MappedRows` are computed block by block.
    labels
        One number per row, or None. A second column holds offsets of scores, for a loss that takes
        them; it is clipped as labels are. If ``bounds`` declare classes, records of other classes
        are dropped.
    bounds
        Public bounds on every record.
    weights
        One number per row, or None for no weights; needs ``bounds.max_weight``.

    Notes
    -----
    **Guarantee**. In every pass the summed records are within their bounds, even if rows change
    between passes or during one. Memory that others may write to (`may_change`), such as a mapped
    file, is copied block by block, and each copy is clipped, in every pass. For other memory clip
    factors are computed once; this process must not write to it during a fit.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds
    >>> from tacit.records import MemoryRecords
    >>> records = MemoryRecords(np.array([[3.0, 4.0], [0.3, 0.4]]), None, Bounds(row_norm=1.0))
    >>> total, = records.sum(lambda block: (block.weighted_sum(np.ones(block.n_rows)),))
    >>> total.round(6)
    array([0.9, 1.2])
    """

    def __init__(
        self, rows: Any, labels: Any | None, bounds: Bounds, weights: Any | None = None
    ) -> None:
        is_sparse = hasattr(rows, "tocsr")
        self._is_mapped = isinstance(rows, MappedRows) and rows.nbytes > CACHED_BYTES
        rows = rows if is_sparse or self._is_mapped else np.asarray(rows)
        self._labels = None if labels is None else own(np.asarray(labels))
        self._weights = None if weights is None else np.asarray(weights)
        _refuse_other_than_numbers(rows, self._labels, self._weights, bounds)
        refuse_undeclared_weights(self._weights, bounds)
        rows = canonical(rows) if is_sparse else rows
        self._counting = of_a_class(self._labels, bounds)
        if self._counting is not None:
            at = np.flatnonzero(self._counting)
            rows = rows_at(rows, at) if is_on_disk(rows) else rows[at]
            self._labels, self._weights = some_of(self._labels, at), some_of(self._weights, at)
        self.rows = rows
        self.bounds = bounds
        self._may_change = may_change_rows(self.rows)
        self._factors: Array | None = None
        # A separate pass for clip factors would compute all rows; the first pass stores them
        # instead.
        if self._is_mapped and not self._may_change:
            self._factors = np.full(self.rows.shape[0], np.nan)
        self._lengths: Array | None = None
        self._buffers = Buffers()
        self._workers: Workers | None = None
        self._steps: LatticeTable | None = None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[1])

    def count(self) -> int:
        """Return the number of records. Private."""
        return int(self.rows.shape[0])

    def sum(
        self, function: Callable[[Block], tuple[Array, ...]], *, fine: bool = False
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks of rows in one pass."""
        self._find_factors()
        step = self._block_rows(fine)
        starts = range(0, max(self.count(), 1), step)

        def total(share: Sequence[int]) -> tuple[Array, ...]:
            parts = (function(self._block(at, at + step)) for at in share)
            return added_up(parts, fine=fine)

        return added_up(iter(self._shared(total, starts)), fine=fine)

    def _find_factors(self) -> None:
        """Compute clip factors for the whole fit before work is shared.

        The computation shares work too, and a thread must not wait for its own pool.
        """
        if self._factors is None and not self._may_change:
            self.clip_factors()

    def _shared(self, function: Callable[[Sequence[int]], T], starts: Sequence[int]) -> list[T]:
        """Return the results of each thread's share of the blocks, in order."""
        # Contiguous shares, so that each thread reads contiguous memory. A table that fits into the
        # cache is not shared: switching threads in the interpreter costs more than it saves.
        if self._workers is None:
            self._workers = Workers()
        is_large = self.count() * self.n_features * 8 > _SHARED_BYTES
        return self._workers.share(function, starts, several=is_large)

    def _of_each(self, numbers: Callable[[slice], Array]) -> Array:
        """Return one number of each record, computed in one pass, block by block."""
        found = empty_like_rows(self.rows, (self.count(),), np.float64)
        step = self._block_rows()

        def fill(starts: Sequence[int]) -> None:
            for at in starts:
                found[at : at + step] = numbers(slice(at, at + step))

        self._shared(fill, range(0, self.count(), step))
        return found

    def sum_in_steps(
        self,
        function: Callable[[LatticeBlock], tuple[Array, ...]],
        *,
        n_outputs: int = 1,
        keep: bool = True,
    ) -> tuple[Array, ...]:
        """Add up ``function`` over lattice blocks; ``keep`` stores the steps for the next time.

        Stored steps take a quarter of the memory of rows in double precision. Rows that are
        computed in every pass are rounded in every pass, too.
        """
        if self._is_mapped or (self._steps is None and not keep):
            return self.sum(lambda block: function(lattice_block(block, self.bounds)))
        return self._table().sum(function, n_outputs=n_outputs)

    def _table(self) -> LatticeTable:
        """Return the rows in lattice steps, computed the first time."""
        if self._steps is None:
            self._find_factors()
            is_sparse = hasattr(self.rows, "tocsr")
            whole = self._sparse_steps() if is_sparse else self._dense_steps()
            self._steps = LatticeTable(whole, self._labels, self.bounds, self._weights)
        return self._steps

    def _sparse_steps(self) -> Any:
        block = self._block(0, self.count())
        return in_steps(block.rows, block.factors, self.bounds.row_norm)

    def _dense_steps(self) -> Any:
        """Return tiles for compiled loops, or rows for BLAS."""
        compiles = is_worth_compiling(*self.rows.shape)
        tiles = Tiles.room_for(self.rows) if compiles and compiled() is not None else None
        whole = None
        if tiles is None:
            whole = empty_like_rows(self.rows, self.rows.shape, np.int16)
        step, norm = self._block_rows(), self.bounds.row_norm

        def fill(starts: Sequence[int]) -> None:
            for at in starts:
                block = self._block(at, at + step)
                out = None if whole is None else whole[at : at + step]
                steps = in_steps(block.rows, block.factors, norm, out=out)
                if tiles is not None:
                    tiles.put(at, steps)

        self._shared(fill, range(0, self.count(), step))
        return whole if tiles is None else tiles

    def sum_error(self, *, fine: bool = False) -> float:
        """Return e such that a sum of n terms of size at most 1 is off by at most e.

        Proof: `tacit.records.block`.
        """
        return float_error(self.count(), self._block_rows(fine), fine=fine)

    def every(self, step: int) -> MemoryRecords:
        """Return every ``step``-th record. The choice is fixed, so it amplifies no privacy.

        Solvers use it for a start near the solution; rows in memory are not copied.
        """
        return self.where(slice(None, None, step))

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each record independently with probability ``rate``.

        `tacit.records.splits` states how; the chosen rows are copied.
        """
        return Sample(self.chosen(poisson_choice(rate, self.count(), words)), rate)

    def counting(self) -> Mask | None:
        """Return which of the given records count; None if all of them do. Private."""
        return self._counting

    def chosen(self, mask: Mask) -> MemoryRecords:
        """Return the marked records; one mark per record."""
        return self.where(np.flatnonzero(mask))

    def where(self, at: Any) -> MemoryRecords:
        """Return the records at some places."""
        labels, weights = some_of(self._labels, at), some_of(self._weights, at)
        some = MemoryRecords(self.rows[at], labels, self.bounds, weights)
        # Otherwise factors are found with the rows, which are computed or copied now.
        if self._is_mapped == some._is_mapped and not self._may_change:
            some._factors = self._noted_factors()[at]
        if self._steps is not None and not some._is_mapped:
            some._steps = self._steps.some(at)
        return some

    def __getstate__(self) -> dict[str, Any]:
        """Leave out threads, and state that can be computed again."""
        return {**self.__dict__, "_workers": None, "_steps": None}

    def measured(self, lengths: Callable[[Block], Array]) -> MemoryRecords:
        """Return the records with a norm of each record in their blocks, computed in one pass.

        Records that may change are returned as they are: a norm would be that of an earlier pass.
        """
        if self._may_change:
            return self
        same = copy.copy(self)
        # Ignore stored norms, which may belong to other coordinates.
        same._lengths = self._of_each(
            lambda at: lengths(replace(self._block(at.start, at.stop), lengths=None))
        )
        return same

    def _block_rows(self, fine: bool = False) -> int:
        if fine:
            return fine_rows(self.n_features, self.count())
        return usual_rows(self.n_features)

    def clip_factors(self) -> Array:
        """Return the factor, at most 1, by which each row is scaled down to its norm.

        `tacit.row_clipping` states the rule and proves it. For rows that may change, the factors
        are those of this moment, and no guarantee may depend on them.
        """
        if self._factors is None or np.isnan(self._factors).any():
            factors = self._of_each(lambda at: factors_of(self._rows(at), self.bounds))
            if self._may_change:
                return factors
            self._factors = factors
        return self._factors

    def _noted_factors(self) -> Array:
        """Return clip factors; NaN for mapped rows whose block was not computed yet."""
        return self.clip_factors() if self._factors is None else self._factors

    def _rows(self, at: slice) -> Any:
        """Return some rows, dense ones in double precision: computed, converted or in place.

        Sums in single precision would exceed the sensitivity.
        """
        rows = self.rows[at]
        if hasattr(rows, "tocsr"):
            return rows.astype(np.float64, copy=False)
        if rows.dtype == np.float64 and not (self._is_mapped or self._may_change):
            return rows
        # A block's rows are not used after its function returns, so one buffer per thread suffices.
        converted = self._buffers.room(*rows.shape)
        if self._is_mapped:
            rows.made(converted)
        else:
            np.copyto(converted, rows)
        return converted

    def _block(self, start: int, stop: int) -> Block:
        at = slice(start, stop)
        rows = self._rows(at)
        if self._may_change:
            factors = factors_of(rows, self.bounds)
        else:
            factors = self._noted_factors()[at]
            if self._is_mapped and np.isnan(factors).any():
                factors[:] = factors_of(rows, self.bounds)
        labels, weights = some_of(self._labels, at), some_of(self._weights, at)
        block = make_block(rows, labels, factors, self.bounds, weights)
        return block if self._lengths is None else replace(block, lengths=self._lengths[at])


def refuse_undeclared_weights(weights: Any | None, bounds: Bounds) -> None:
    """Raise if records have weights without a declared bound."""
    if weights is not None and bounds.max_weight is None:
        raise ValueError(
            "the records have weights, and bounds declare no max_weight: a weight multiplies the "
            "effect of its record. Pass Bounds(max_weight=...), the greatest weight that may count."
        )


def _refuse_other_than_numbers(
    rows: Any,
    labels: npt.NDArray[Any] | None,
    weights: npt.NDArray[Any] | None,
    bounds: Bounds,
) -> None:
    """Raise before NumPy does, whose messages quote a value or a shape."""
    for what, values in (("rows", rows), ("labels", labels), ("weights", weights)):
        if values is not None and values.dtype.kind not in "biuf":
            raise TypeError(
                f"the {what} are of type {values.dtype}, not numbers; open_records reads tables, "
                "and says what is wrong with them."
            )
    for what, values in (("label", labels), ("weight", weights)):
        shapes = [rows.shape[:1]]
        # Labels may have a second column, the offset of each score (`PoissonOffsetLoss`), if there
        # is a range to which both are clipped.
        if what == "label" and bounds.label_range is not None:
            shapes.append((*rows.shape[:1], 2))
        if values is not None and values.shape not in shapes:
            raise ValueError(
                f"rows and {what}s are of different lengths; pass one {what} for each row."
            )


def open_records(X: Any, y: Any, bounds: Bounds) -> RecordSource:
    """Return a record source: a source as it is, anything else read into memory.

    Parameters
    ----------
    X
        A record source, which is not read; or an array, a SciPy sparse array, a frame or an
        Arrow table of numbers.
    y
        One number per row, or None. It must be None for a record source, which has its own labels.
        If ``bounds`` declare classes, records of other classes do not count.
    bounds
        Public bounds on every record.

    Raises
    ------
    ValueError, TypeError
        If a source was made with other bounds, or if `as_rows` or `as_numbers` refuse the table.
        Messages never repeat a value.

    Examples
    --------
    >>> from tacit.records import Bounds
    >>> from tacit.records.memory import open_records
    >>> records = open_records([[3, 4], [0, 1]], [0.0, 9.0], Bounds(label_range=(0.0, 1.0)))
    >>> open_records(records, None, records.bounds) is records
    True
    """
    if not isinstance(X, RecordSource):
        rows, labels = TableInMemory(X, y).read()
        numbers = None if labels is None else labels_as_numbers(labels, bounds)
        return MemoryRecords(rows, numbers, bounds)
    if y is not None:
        raise ValueError("a record source brings its own labels; pass None for y.")
    if X.bounds != bounds:
        raise ValueError(
            f"the records are clipped to {X.bounds} but the objective's sensitivities are derived "
            f"from {bounds}; give both the same Bounds."
        )
    return X


def labels_as_numbers(labels: Any, bounds: Bounds) -> Array:
    """Return labels as numbers; a label that is no class is NaN, other labels must be finite."""
    return as_numbers(labels) if bounds.n_classes is None else as_codes(labels)
