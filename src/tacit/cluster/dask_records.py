"""Records on a cluster: workers add up, the driver checks that each part came once, and adds noise.

Every part of the records is loaded by a worker and stays there; if the worker is lost, the
scheduler has another one load it again. A pass sends a function to all parts and takes one partial
sum of each, by its number, in their order.
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

_UNIT = 2.0**-53
_DISJOINT = "no two of the futures or delayed parts that were passed hold the same records"


class DaskRecords:
    """Records in parts on the workers of a Dask cluster.

    Made by `from_files`, `from_frame` or `from_delayed`; every estimator that takes a record source
    takes it.

    Notes
    -----
    **Guarantee**

    1. A sum has one partial sum of every part, in the order of the parts: one that is missing,
       comes twice, belongs to another pass or to other records is refused, and so is the whole sum
       if a part fails. Exact sums have the bits of `MemoryRecords`; others the same bits for the
       same list of parts.
    2. Workers draw no noise. A Poisson sample goes by AES in counter mode under a key that the
       driver draws for it, the number of the part and the place of the record: a part that is done
       again has the same records in it.
    3. What goes wrong on a worker comes back as the name of its type, without its words.
    4. A row that is not finite counts as zeros. A record of no class that ``bounds`` declare does
       not count.

    **Assumes** that workers, the scheduler and what connects them are trusted: they see records,
    their sums without noise, and the keys of samples. Use TLS. That their NumPy computes what the
    driver's does is checked with every partial sum. Of futures and delayed parts, that no two hold
    the same records, which the guarantee repeats: a key does not tell it. Two calls on the same
    file may have one key, and so may two parts of different people whose records are equal, so
    that to merge or refuse them would let one record decide over a whole part.

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
        """Hold futures of `Part`, one for each part; see the ways to make one."""
        if not parts:
            raise ValueError("there is no part of the records; pass at least one.")
        self._parts, self._n_features, self.bounds = list(parts), int(n_features), bounds
        self._client, self._passes = client, count(1)
        self._known: list[tuple[int, int]] | None = None
        self._checksums = checksums  # of the parts that these were chosen from, if they are known
        self.assumptions = assumptions

    @classmethod
    def from_delayed(
        cls, parts: Sequence[Any], n_features: int, bounds: Bounds, client: Any
    ) -> DaskRecords:
        """Return records of pairs (rows, labels): delayed, futures, or the pairs themselves.

        The same object twice is refused; that no two futures or delayed parts hold the same
        records is assumed, and the guarantee says so.
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
        """Return records of a Dask DataFrame of numbers, one column of which is the label.

        Where ``bounds`` declare classes, the label is -1 (or 0) and 1 for two of them, and 0, 1,
        2, ... for more; a record of another label, or of none, does not count.
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

        Names and patterns are looked up by the driver, so that both must see the files.
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
        # A function that is sent to workers may hold an object that holds its records.
        return (Elsewhere, (self._n_features, self.bounds))

    @property
    def n_features(self) -> int:
        """How many columns a row has."""
        return self._n_features

    def count(self) -> int:
        """Return the number of records; the first time by loading them. Private."""
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
        """Add up ``function`` over blocks in whole steps."""
        of_part = partial(part.exact_sum, function, n_outputs, keep)
        return added_up(iter(self._pass(of_part)), fine=False)

    def sum_error(self, *, fine: bool = False) -> float:
        """Return e such that a sum of n terms of size at most 1 is off by at most e.

        That of the worst part, for all records, and one rounding more for each part added in turn,
        or for each level of pairs.
        """
        n, d, parts = max(self.count(), 1), self._n_features, len(self._parts)
        within = max(
            float_error(max(k, 1), fine_rows(d, k) if fine else usual_rows(d), fine=fine)
            / max(k, 1)
            for k in self._counts()
        )
        return n * (within + _UNIT * (math.log2(parts) + 1 if fine else parts))

    def every(self, step: int) -> DaskRecords:
        """Return every ``step``-th record: the same ones each time, so it amplifies no privacy."""
        starts = np.cumsum([0, *self._counts()[:-1]])
        return self._some([partial(part.every, int(-start % step), step) for start in starts])

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each record independently with probability ``rate``, by a word of its own.

        Two random words are the key of all of them.
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
        """Return the sums of every part, in order; refuse anything but one of each."""
        this_pass = next(self._passes)  # once: another thread may have a pass of its own
        futures = [
            self._client.submit(part.partial_of, held, of_part, this_pass, number, pure=False)
            for number, held in enumerate(self._parts)
        ]
        try:
            partials = self._client.gather(futures)
        except Exception as error:
            raise RuntimeError(
                f"the cluster failed with {type(error).__name__}, whose words may repeat a record "
                "and are left out; see the logs of its workers, and fit again."
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
    """What a record source is on a worker that was not sent its records: nothing to sum over."""

    def __init__(self, n_features: int, bounds: Bounds) -> None:
        self.n_features, self.bounds = n_features, bounds


def _is_elsewhere(piece: Any) -> bool:
    """Return whether a part is delayed or a future: known by a key, and not by what it holds."""
    return hasattr(piece, "__dask_graph__") or hasattr(piece, "key")


def _future(client: Any, piece: Any) -> Any:
    if hasattr(piece, "__dask_graph__"):
        return client.compute(piece)
    if _is_elsewhere(piece):
        return piece
    # By a key that is no hash of what it holds: parts of equal records would be one.
    return client.scatter([piece], hash=False)[0]
