"""Run on workers: load a part of the records, choose some of it, sum over it."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.cluster.partials import Partial, arithmetic
from tacit.file_records import encode_batch, wanted_columns
from tacit.preprocessing import Schema
from tacit.preprocessing.files.reading import open_table
from tacit.records import Block, Bounds, MemoryRecords
from tacit.records.lattice_block import LatticeBlock
from tacit.records.opening import labels_as_numbers
from tacit.records.sampling import poisson_choice

Array = npt.NDArray[np.float64]


class Part(NamedTuple):
    """A part of the records on a worker, and a checksum that detects a change after reloading."""

    records: MemoryRecords
    checksum: int


def _part(rows: Any, labels: Any, bounds: Bounds) -> Part:
    rows, labels = np.ascontiguousarray(rows), None if labels is None else np.ravel(labels)
    checksum = zlib.crc32(rows.data, 0 if labels is None else zlib.crc32(labels.data))
    return Part(MemoryRecords(rows, labels, bounds), checksum)


def load_pair(pair: Any, n_features: int, bounds: Bounds) -> Part | str:
    """Return a part of a pair (rows, labels), or the name of the error's type."""
    try:
        rows, labels = pair
        rows = np.asarray(rows, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != n_features:
            raise ValueError("another number of columns")
        return _part(rows, None if labels is None else labels_as_numbers(labels, bounds), bounds)
    except Exception as error:  # its message may repeat a record
        return type(error).__name__


def load_frame(frame: Any, names: list[str], label: str, bounds: Bounds) -> Part | str:
    """Return a part of a frame of numbers, or the name of the error's type."""
    try:
        rows = frame[names].to_numpy(dtype=np.float64, na_value=np.nan)
        labels = frame[label].to_numpy(dtype=np.float64, na_value=np.nan)
        return _part(rows, labels, bounds)
    except Exception as error:
        return type(error).__name__


def load_file(
    file: str | os.PathLike[str], schema: Schema, bounds: Bounds, dtype: Any, origin: float
) -> Part | str:
    """Return a part of a file, or the name of the error's type."""
    try:
        batches = open_table(file).batches(wanted_columns(schema))
        pairs = [encode_batch(batch, schema, dtype, origin) for batch in batches]
        if not pairs:
            return _part(np.empty((0, len(schema.feature_names))), np.empty(0), bounds)
        rows, labels = (np.concatenate(each) for each in zip(*pairs, strict=True))
        return _part(rows, labels, bounds)
    except Exception as error:
        return type(error).__name__


def partial_of(
    held: Part | str, function: Callable[[MemoryRecords], Any], pass_number: int, number: int
) -> Partial:
    """Return the sums of one part: nothing but sums and names of types leaves a worker."""
    if isinstance(held, str):
        return Partial(pass_number, number, 0, 0, arithmetic(), None, held)
    count = held.records.count()
    try:
        sums = function(held.records)
    except Exception as error:
        failure = type(error).__name__
        return Partial(pass_number, number, count, held.checksum, arithmetic(), None, failure)
    return Partial(pass_number, number, count, held.checksum, arithmetic(), sums)


def plain_sum(
    function: Callable[[Block], tuple[Array, ...]], fine: bool, records: MemoryRecords
) -> tuple[Array, ...]:
    """Return the sums of one part."""
    return records.sum(function, fine=fine)


def exact_sum(
    function: Callable[[LatticeBlock], tuple[Array, ...]],
    n_outputs: int,
    keep: bool,
    records: MemoryRecords,
) -> tuple[Array, ...]:
    """Return the sums of one part over lattice blocks."""
    return records.sum_in_steps(function, n_outputs=n_outputs, keep=keep)


def nothing(_: MemoryRecords) -> tuple[Array, ...]:
    """Return no sum, for a pass that only counts the records."""
    return (np.zeros(1),)


def chosen(held: Part | str, choice: Callable[[MemoryRecords], MemoryRecords]) -> Part | str:
    """Return some records of a part."""
    return held if isinstance(held, str) else Part(choice(held.records), held.checksum)


def every(start: int, step: int, records: MemoryRecords) -> MemoryRecords:
    """Return every ``step``-th record from a start on."""
    return records.where(slice(start, None, step))


def sampled(rate: float, key: int, number: int, records: MemoryRecords) -> MemoryRecords:
    """Return a Poisson sample of a part, the same for the same key and number."""
    from randomgen import AESCounter

    # The upper half of the counter is the part; the lower half runs over its records.
    stream = AESCounter(key=key, counter=number << 64)
    return records.where(np.flatnonzero(poisson_choice(rate, records.count(), stream.random_raw)))
