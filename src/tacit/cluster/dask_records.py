"""Sum records on a cluster: workers compute partial sums, the driver checks them and adds noise.

Every part of the records is loaded by a worker and stays there. If the worker is lost, the
scheduler lets another one load the part again. A pass sends a function to all parts and takes one
partial sum of each, by its number, in their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.cluster import part
from tacit.cluster.partials import one_of_each
from tacit.file_records import check_classes, check_schema, origin_of, wanted_columns
from tacit.preprocessing import Schema
from tacit.preprocessing.encoding import refuse_type_in
from tacit.preprocessing.files.reading import open_table, refuse_absent_in
from tacit.preprocessing.files.several import Paths, find_files
from tacit.records import Block, Bounds, MemoryRecords, Sample
from tacit.records.lattice_block import LatticeBlock
from tacit.records.sampling import Words
from tacit.records.summing import added_up, fine_rows, float_error, usual_rows

Array = npt.NDArray[np.float64]

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
        loads = [client.submit(part.load_pair, f, n_features, bounds, pure=False) for f in futures]
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
            client.submit(part.load_frame, future, names, label, bounds, pure=False)
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
            client.submit(part.load_file, file, schema, bounds, np.dtype(dtype), origin, pure=False)
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
        return added_up(iter(self._pass(partial(part.plain_sum, function, fine))), fine=fine)

    def sum_in_steps(
        self,
        function: Callable[[LatticeBlock], tuple[Array, ...]],
        *,
        n_outputs: int = 1,
        keep: bool = True,
    ) -> tuple[Array, ...]:
        """Add up ``function`` over lattice blocks."""
        of_part = partial(part.exact_sum, function, n_outputs, keep)
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
        return self._some([partial(part.every, int(-start % step), step) for start in starts])

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each record independently with probability ``rate``, by its own random word.

        Two random words are the key of the whole sample.
        """
        key = int.from_bytes(words(2).tobytes(), "little")
        choices = [partial(part.sampled, rate, key, number) for number in range(len(self._parts))]
        return Sample(self._some(choices), rate)

    def _some(self, choices: Sequence[Callable[[MemoryRecords], MemoryRecords]]) -> DaskRecords:
        parts = [
            self._client.submit(part.chosen, held, choice, pure=False)
            for held, choice in zip(self._parts, choices, strict=True)
        ]
        known = None if self._known is None else [checksum for _, checksum in self._known]
        return DaskRecords(
            parts, self._n_features, self.bounds, self._client, known, self.assumptions
        )

    def _counts(self) -> list[int]:
        if self._known is None:
            self._pass(part.nothing)
        assert self._known is not None
        return [count for count, _ in self._known]

    def _pass(
        self, of_part: Callable[[MemoryRecords], tuple[Array, ...]]
    ) -> list[tuple[Array, ...]]:
        """Return the sums of every part, in order; raise unless there is exactly one of each."""
        this_pass = next(self._passes)  # read once: another thread may run its own pass
        futures = [
            self._client.submit(part.partial_of, held, of_part, this_pass, number, pure=False)
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
