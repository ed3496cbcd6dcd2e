"""Sum records on a Dask cluster: workers add up their parts, the driver checks and adds noise.

Every part of the records is loaded by a worker and stays there. If the worker is lost, the
scheduler lets another one load the part again. A pass sends a function to all parts and takes one
partial sum of each, by its number, in their order.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.io.reading import Paths, find_files, open_table, refuse_absent_in
from tacit.records import Block, Bounds, MemoryRecords, Sample
from tacit.records.block import added_up, fine_rows, float_error, usual_rows
from tacit.records.exact.lattice import LatticeBlock
from tacit.records.files import check_classes, check_schema, encode_batch, origin_of, wanted_columns
from tacit.records.memory import labels_as_numbers
from tacit.records.splits import DrawsWords as Words
from tacit.records.splits import poisson_choice
from tacit.schema import Schema
from tacit.schema.encoding import refuse_type_in

Array = npt.NDArray[np.float64]


class Partial(NamedTuple):
    """A worker's message about one part: sums, or the name of an error's type, and nothing else."""

    pass_number: int
    part: int
    n_records: int
    checksum: int
    arithmetic: int
    sums: tuple[Array, ...] | None
    failure: str | None = None


def one_of_each(partials: Sequence[Any], n_parts: int, pass_number: int) -> list[Partial]:
    """Return partial sums in the order of their parts, if there is exactly one of each.

    A part that is added twice counts its records twice, which doubles the sensitivity.

    Raises
    ------
    RuntimeError
        If one is missing, comes twice, belongs to another pass, or failed; or if a worker computes
        elementary functions differently from the driver.

    Examples
    --------
    >>> from tacit.cluster.dask_records import one_of_each
    >>> one_of_each([], 1, 1)
    Traceback (most recent call last):
    RuntimeError: 1 of 1 partial sums are missing; ...
    """
    by_part: dict[int, Partial] = {}
    for each in partials:
        if not isinstance(each, Partial) or each.pass_number != pass_number:
            raise RuntimeError("a partial sum is of another pass; nothing was released. Fit again.")
        if each.failure is not None:
            raise RuntimeError(
                f"a part of the records failed with {each.failure}; its message may repeat a "
                "record and is left out. Load that part by itself to see more."
            )
        if each.part in by_part:
            raise RuntimeError("a partial sum came twice; nothing was released. Fit again.")
        if each.arithmetic != arithmetic():
            raise RuntimeError(
                "a worker's NumPy computes exp or log differently from the driver's; use the same "
                "version of NumPy and the same kind of processor everywhere."
            )
        by_part[each.part] = each
    missing = set(range(n_parts)) - set(by_part)
    if missing or len(by_part) > n_parts:
        raise RuntimeError(
            f"{len(missing)} of {n_parts} partial sums are missing; nothing was released. Fit "
            "again."
        )
    return [by_part[number] for number in range(n_parts)]


@lru_cache(maxsize=1)
def arithmetic() -> int:
    """Return a checksum of elementary functions at many points, computed by this NumPy."""
    points = np.random.default_rng(0).uniform(-40.0, 40.0, 4099)
    values = [np.exp(points), np.log1p(np.exp(-np.abs(points))), np.tanh(points), np.cosh(points)]
    return zlib.crc32(b"".join(value.tobytes() for value in values))


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


_UNIT = 2.0**-53  # unit roundoff of a double
_DISJOINT = "no two of the futures or delayed parts that were passed hold the same records"


class DaskRecords:
    """Records in parts on the workers of a Dask cluster.

    Make it by `from_files`, `from_frame` or `from_delayed`. Every estimator that accepts a record
    source accepts it.

    Notes
    -----
    **Guarantee**

    1. A sum contains one partial sum of every part, in the order of the parts. A partial sum that
    is missing, comes twice, belongs to another pass or to other records is refused. If a part
    fails, the whole sum is refused. Exact sums have the bits of `MemoryRecords`; others have the
    same bits for the same list of parts.
    2. Workers draw no noise. A Poisson sample uses AES in counter mode under a key that the driver
    draws for the sample, with the number of the part and the position of the record. A part that
    is computed again therefore contains the same records.
    3. An error on a worker is reported by the name of its type, without its message.
    4. A row that is not finite counts as zeros. A record of a class that ``bounds`` do not declare
    does not count.

    **Assumes** that workers, scheduler and network are trusted: they see records, sums without
    noise, and the keys of samples. Use TLS. Every partial sum is checked for whether the worker's
    NumPy computes as the driver's does. For futures and delayed parts it is assumed that no two
    hold the same records, and the guarantee says so. Keys cannot tell: two calls on the same file
    may have one key, and so may two parts of different people whose records are equal. Merging or
    refusing such parts would let one record decide over a whole part.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> from tacit.cluster import DaskRecords
    >>> from tacit.records import Bounds
    >>> parts = [(np.full((2, 2), k), np.full(2, float(k))) for k in range(3)]
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     records = DaskRecords.from_delayed(parts, 2, Bounds(row_norm=10.0), client)
    ...     records.sum(lambda block: (block.points().sum(axis=0), block.labels.sum()))
    (array([6., 6.]), array(6.))
    """

    def __init__(
        self,
        parts: Sequence[Any],
        n_features: int,
        bounds: Bounds,
        client: Any,
        checksums: Sequence[int] | None = None,
        assumptions: tuple[str, ...] = (),
    ) -> None:
        """Hold futures of `Part`, one for each part; use one of the class methods instead."""
        if not parts:
            raise ValueError("there is no part of the records; pass at least one.")
        self._parts, self._n_features, self.bounds = list(parts), int(n_features), bounds
        self._client, self._passes = client, count(1)
        self._known: list[tuple[int, int]] | None = None
        self._checksums = checksums  # of the parts that these records were chosen from, if known
        self.assumptions = assumptions

    @classmethod
    def from_delayed(
        cls, parts: Sequence[Any], n_features: int, bounds: Bounds, client: Any
    ) -> DaskRecords:
        """Return records of pairs (rows, labels): delayed, futures, or the pairs themselves.

        The same object twice is refused. No two futures or delayed parts may hold the same records;
        this is assumed, and the guarantee says so.
        """
        parts = list(parts)
        if len({id(piece) for piece in parts}) < len(parts):
            raise ValueError(
                "a part is given twice, so that each of its records would count twice; give it "
                "once."
            )
        futures = [_future(client, piece) for piece in parts]
        loads = [client.submit(load_pair, f, n_features, bounds, pure=False) for f in futures]
        assumed = (_DISJOINT,) if any(map(_is_elsewhere, parts)) else ()
        return cls(loads, n_features, bounds, client, assumptions=assumed)

    @classmethod
    def from_frame(cls, frame: Any, label: str, bounds: Bounds, client: Any) -> DaskRecords:
        """Return records of a Dask DataFrame of numbers with one column of labels.

        If ``bounds`` declare classes, the label is -1 (or 0) and 1 for two of them, and 0, 1,
        2, ... for more. A record with another label, or without one, does not count.
        """
        names = [name for name in frame.columns if name != label]
        if len(names) == len(frame.columns):
            raise ValueError(f"the frame has no column {label!r}; name the column of labels.")
        for name in frame.columns:
            if getattr(frame.dtypes[name], "kind", "O") not in "biuf":
                raise TypeError(f"column {name!r} is not of numbers; encode it first.")
        futures = [_future(client, piece) for piece in frame.to_delayed()]
        loads = [
            client.submit(load_frame, future, names, label, bounds, pure=False)
            for future in futures
        ]
        return cls(loads, len(names), bounds, client)

    @classmethod
    def from_files(
        cls,
        files: Paths,
        schema: Schema,
        bounds: Bounds,
        client: Any,
        *,
        dtype: npt.DTypeLike = np.float32,
        origin: float | None = None,
    ) -> DaskRecords:
        """Return records of files, each read by a worker; parameters as in `ParquetRecords`.

        The driver looks up names and patterns, so driver and workers must both see the files.
        """
        check_schema(schema)
        check_classes(schema, bounds)
        origin = origin_of(schema, bounds) if origin is None else origin
        found = find_files(files)
        table = open_table(found)
        refuse_absent_in(files, table.names(), wanted_columns(schema))
        refuse_type_in(files, table, schema)
        loads = [
            client.submit(load_file, file, schema, bounds, np.dtype(dtype), origin, pure=False)
            for file in found
        ]
        return cls(loads, len(schema.feature_names), bounds, client)

    def __reduce__(self) -> tuple[Any, ...]:
        # A function sent to workers may hold an object that holds its records.
        return (Elsewhere, (self._n_features, self.bounds))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self._n_features

    def count(self) -> int:
        """Return the number of records; load them if necessary. Private."""
        return sum(self._counts())

    def sum(
        self, function: Callable[[Block], tuple[Array, ...]], *, fine: bool = False
    ) -> tuple[Array, ...]:
        """Add up ``function`` over blocks of rows in one pass."""
        return added_up(iter(self._pass(partial(plain_sum, function, fine))), fine=fine)

    def sum_in_steps(
        self,
        function: Callable[[LatticeBlock], tuple[Array, ...]],
        *,
        n_outputs: int = 1,
        keep: bool = True,
    ) -> tuple[Array, ...]:
        """Add up ``function`` over lattice blocks."""
        of_part = partial(exact_sum, function, n_outputs, keep)
        return added_up(iter(self._pass(of_part)), fine=False)

    def sum_error(self, *, fine: bool = False) -> float:
        """Return e such that a sum of n terms of size at most 1 is off by at most e.

        It is the error of the worst part, for all records, and one more rounding for each part, or
        for each level of pairs.
        """
        n, d, parts = max(self.count(), 1), self._n_features, len(self._parts)
        within = max(
            float_error(max(k, 1), fine_rows(d, k) if fine else usual_rows(d), fine=fine)
            / max(k, 1)
            for k in self._counts()
        )
        return n * (within + _UNIT * (math.log2(parts) + 1 if fine else parts))

    def every(self, step: int) -> DaskRecords:
        """Return every ``step``-th record. The choice is fixed, so it amplifies no privacy."""
        starts = np.cumsum([0, *self._counts()[:-1]])
        return self._some([partial(every, int(-start % step), step) for start in starts])

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each record independently with probability ``rate``, by its own random word.

        Two random words are the key of the whole sample.
        """
        key = int.from_bytes(words(2).tobytes(), "little")
        choices = [partial(sampled, rate, key, number) for number in range(len(self._parts))]
        return Sample(self._some(choices), rate)

    def _some(self, choices: Sequence[Callable[[MemoryRecords], MemoryRecords]]) -> DaskRecords:
        parts = [
            self._client.submit(chosen, held, choice, pure=False)
            for held, choice in zip(self._parts, choices, strict=True)
        ]
        known = None if self._known is None else [checksum for _, checksum in self._known]
        return DaskRecords(
            parts, self._n_features, self.bounds, self._client, known, self.assumptions
        )

    def _counts(self) -> list[int]:
        if self._known is None:
            self._pass(nothing)
        assert self._known is not None
        return [count for count, _ in self._known]

    def _pass(
        self, of_part: Callable[[MemoryRecords], tuple[Array, ...]]
    ) -> list[tuple[Array, ...]]:
        """Return the sums of every part, in order; raise unless there is exactly one of each."""
        this_pass = next(self._passes)  # read once: another thread may run its own pass
        futures = [
            self._client.submit(partial_of, held, of_part, this_pass, number, pure=False)
            for number, held in enumerate(self._parts)
        ]
        try:
            partials = self._client.gather(futures)
        except Exception as error:
            raise RuntimeError(
                f"the cluster failed with {type(error).__name__}; its message may repeat a record "
                "and is left out. See the logs of the workers, and fit again."
            ) from None
        found = one_of_each(partials, len(self._parts), this_pass)
        known = [(each.n_records, each.checksum) for each in found]
        checksums = [checksum for _, checksum in known]
        if self._known not in (None, known) or self._checksums not in (None, checksums):
            raise ValueError(
                "a part was loaded again and did not hold the same records; let files and delayed "
                "parts be the same each time."
            )
        self._known = known
        return [each.sums for each in found if each.sums is not None]


class Elsewhere:
    """A record source on a worker that was not sent its records: it has nothing to sum over."""

    def __init__(self, n_features: int, bounds: Bounds) -> None:
        self.n_features, self.bounds = n_features, bounds


def _is_elsewhere(piece: Any) -> bool:
    """Return whether a part is delayed or a future: identified by a key, not by its content."""
    return hasattr(piece, "__dask_graph__") or hasattr(piece, "key")


def _future(client: Any, piece: Any) -> Any:
    if hasattr(piece, "__dask_graph__"):
        return client.compute(piece)
    if _is_elsewhere(piece):
        return piece
    # Use a random key, not a hash of the content: parts of equal records would be merged.
    return client.scatter([piece], hash=False)[0]
