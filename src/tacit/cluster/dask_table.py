"""Count the records of a table on a Dask cluster, for `tacit.describe`.

Each worker reads its parts as cells and returns whole numbers; the driver adds them up, and the
session adds noise. For people, identifiers are sent to the driver, which chooses one record of each
person; the choice depends on identifiers alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.cluster.dask_records import Partial, _future, arithmetic, one_of_each
from tacit.io.memory_tables import chunks, columns_of_batch, refuse_absent
from tacit.io.reading import Paths, find_files, open_table, refuse_absent_in
from tacit.records.coded_table import Cells, CodedBlock, code_chunk, pieces
from tacit.records.privacy_unit import people_of

Array = npt.NDArray[np.float64]


class CodedPart(NamedTuple):
    """A part of the records on a worker as cells, with identifiers if people are told apart."""

    block: CodedBlock
    identifiers: list[Any]
    checksum: int


def load_coded(piece: Any, cells: Sequence[Cells], unit: str | None) -> CodedPart | str:
    """Return a part of a file (a path) or a frame, or the name of the error's type."""
    try:
        names = list(dict.fromkeys(cell.name for cell in cells))
        names += [] if unit is None else [unit]
        if isinstance(piece, str):
            batches = open_table(piece).batches(names)
            found = [(batch.num_rows, columns_of_batch(batch)) for batch in batches]
        else:
            found = list(chunks(piece, names))
        blocks = [
            code_chunk(c, n, cells) for whole, chunk in found for n, c in pieces(whole, chunk)
        ]
        blocks.append(CodedBlock(np.zeros((0, len(cells)), np.int64), np.zeros((0, len(cells)))))
        codes = np.concatenate([block.codes for block in blocks])
        units = np.concatenate([block.units for block in blocks])
        identifiers = [] if unit is None else [w for _, c in found for w in c[unit].raw()]
        checksum = zlib.crc32(codes.tobytes(), zlib.crc32(units.tobytes()))
        return CodedPart(CodedBlock(codes, units), identifiers, checksum)
    except Exception as error:  # its message may repeat a record
        return type(error).__name__


def identifiers_of(held: CodedPart | str) -> tuple[list[Any], int] | str:
    """Return the identifiers of a part, and its checksum."""
    return held if isinstance(held, str) else (held.identifiers, held.checksum)


def counts_of(
    held: CodedPart | str,
    function: Callable[[CodedBlock], Array],
    chosen: npt.NDArray[np.bool_] | None,
    number: int,
    pass_number: int,
) -> Partial:
    """Return the whole numbers of one part: nothing else leaves a worker."""
    if isinstance(held, str):
        return Partial(pass_number, number, 0, 0, arithmetic(), None, held)
    n = len(held.block.codes)
    try:
        block = held.block if chosen is None else held.block.where(chosen)
        sums = (function(block),)
    except Exception as error:
        failure = type(error).__name__
        return Partial(pass_number, number, n, held.checksum, arithmetic(), None, failure)
    return Partial(pass_number, number, n, held.checksum, arithmetic(), sums)


class DaskTable:
    r"""A table on the workers of a Dask cluster, for `tacit.describe`.

    Make it by `from_files` or `from_frame`.

    Notes
    -----
    **Guarantee**. A sum contains one partial sum of every part. One that is missing, comes twice or
    failed is refused, with the name of the error's type and not its message. Workers draw no noise.

    **Assumes** that workers, scheduler and network are trusted, as `DaskRecords` does.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from distributed import Client
    >>> import tacit
    >>> from tacit.cluster import DaskTable
    >>> from tacit.schema import Category, Schema
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("a.csv", "b.csv"):
    ...     _ = (folder / name).write_text("sex\n" + "f\nm\n" * 500)
    >>> schema = Schema((Category("sex", ("f", "m")),))
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     table = DaskTable.from_files(str(folder / "*.csv"), client)
    ...     found = tacit.describe(table, schema, epsilon=1.0)
    >>> 1900 < found.figure("records", "count").value < 2100
    True
    """

    def __init__(
        self,
        pieces: Sequence[Any],
        client: Any,
        check: Callable[[Sequence[str]], None],
        type_of: Callable[[str], Any],
    ) -> None:
        """Hold the pieces, paths or delayed frames; use one of the class methods instead."""
        self._pieces, self._client = list(pieces), client
        self._check, self._type_of = check, type_of
        self.assumptions: tuple[str, ...] = ()

    @classmethod
    def from_files(cls, files: Paths, client: Any) -> DaskTable:
        """Return a table of files, each read by a worker; driver and workers must see them."""
        found = find_files(files)
        table = open_table(found)
        present = table.names()
        return cls(
            found, client, lambda names: refuse_absent_in(files, present, names), table.type_of
        )

    @classmethod
    def from_frame(cls, frame: Any, client: Any) -> DaskTable:
        """Return the table of a Dask DataFrame."""
        present = list(frame.columns)
        pieces = [_future(client, piece) for piece in frame.to_delayed()]
        return cls(
            pieces, client, lambda names: refuse_absent(present, names), frame.dtypes.__getitem__
        )

    def coded(self, cells: Sequence[Cells], unit: str | None = None) -> _CodedParts:
        """Return the records as cells; columns are checked at once, and no record is read."""
        self._check([cell.name for cell in cells] + ([] if unit is None else [unit]))
        for cell in cells:
            cell.refuse_type(self._type_of(cell.name))
        return _CodedParts(self._pieces, tuple(cells), unit, self._client)


class _CodedParts:
    """Parts of a table as cells, on workers; `sum` loads them."""

    def __init__(
        self, pieces: Sequence[Any], cells: tuple[Cells, ...], unit: str | None, client: Any
    ) -> None:
        self._pieces, self._cells, self._unit, self._client = pieces, cells, unit, client
        self._passes = count(1)

    def sum(self, function: Callable[[CodedBlock], Array]) -> Array:
        """Add up an array of whole numbers over parts. Private."""
        submit = self._client.submit
        held = [
            submit(load_coded, piece, self._cells, self._unit, pure=False) for piece in self._pieces
        ]
        chosen: list[npt.NDArray[np.bool_] | None] = [None] * len(held)
        checksums: list[int] | None = None
        if self._unit is not None:
            masks, checksums = self._one_each(held)
            chosen = list(masks)
        this_pass = next(self._passes)
        partials = self._gathered(
            [
                submit(counts_of, part, function, mask, number, this_pass, pure=False)
                for number, (part, mask) in enumerate(zip(held, chosen, strict=True))
            ]
        )
        found = one_of_each(partials, len(held), this_pass)
        if checksums is not None and [each.checksum for each in found] != checksums:
            raise ValueError(
                "a part was loaded again and did not hold the same records; let files and delayed "
                "parts be the same each time."
            )
        total = np.zeros(1)
        for each in found:
            assert each.sums is not None
            total = total + each.sums[0]  # whole numbers: exact in any order
        return total

    def _one_each(self, held: Sequence[Any]) -> tuple[list[npt.NDArray[np.bool_]], list[int]]:
        """Mark one record of each person, part by part; return the checksums of the parts too."""
        said = self._gathered(
            [self._client.submit(identifiers_of, part, pure=False) for part in held]
        )
        if any(isinstance(each, str) for each in said):
            failure = next(each for each in said if isinstance(each, str))
            raise RuntimeError(
                f"a part of the records failed with {failure}; its message may repeat a record and "
                "is left out. Load that part by itself to see more."
            )
        people = people_of([who for identifiers, _ in said for who in identifiers])
        mask = np.zeros(len(people), dtype=bool)
        mask[people.one_each()] = True
        ends = np.cumsum([len(identifiers) for identifiers, _ in said])
        return np.split(mask, ends[:-1]), [checksum for _, checksum in said]

    def _gathered(self, futures: Sequence[Any]) -> list[Any]:
        try:
            return list(self._client.gather(list(futures)))
        except Exception as error:
            raise RuntimeError(
                f"the cluster failed with {type(error).__name__}; its message may repeat a record "
                "and is left out. See the logs of the workers, and describe the table again."
            ) from None
