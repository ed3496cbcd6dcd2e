"""No record changes how another is read, by any reader, whatever it holds.

``TACIT_FUZZ_CASES`` sets how many tables are read, 10,000 unless told; ``make fuzz`` reads 200,000.
"""

from __future__ import annotations

import inspect
import logging
import os
import re
import warnings
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tacit.io import memory_tables, reading
from tacit.io.csv_file import BLOCK
from tacit.records import rows_and_labels
from tacit.testing import Encoded, Reader, check_reader
from tests.testing.readers import DUPLICATES, READERS
from tests.testing.readers.columns import FAMILIES
from tests.testing.readers.lines import encode_csv, hostile_lines
from tests.testing.readers.rows import HOSTILE_ROWS, wide_rows_of_two_blocks

CASES = int(os.environ.get("TACIT_FUZZ_CASES", "10000"))
# A table is made anew after so many hostile records.
KINDS_A_TABLE = 4


def check_some(reader: Reader, first: int, rng: Random) -> int:
    """Check some kinds at two positions each; return how many tables were read."""
    kinds, n = list(reader.hostile), len(reader.records)
    chosen = [kinds[(first + i) % len(kinds)] for i in range(KINDS_A_TABLE)]
    places = [0, rng.randint(0, n), n]
    return sum(check_reader(reader, kind, rng.sample(places, 2)) for kind in chosen)


@pytest.mark.parametrize("name", READERS)
def test_no_record_changes_another(tmp_path: Path, name: str) -> None:
    cases = -(-CASES // len(READERS))
    number = n_tables = n_kinds = 0
    while n_tables < cases or KINDS_A_TABLE * number < n_kinds:
        # One seed a table, so that a failure can be had again by its number alone.
        rng = Random(number)
        reader = READERS[name](rng, tmp_path)
        n_kinds = max(n_kinds, len(reader.hostile))
        try:
            n_tables += check_some(reader, KINDS_A_TABLE * number, rng)
        except AssertionError as error:
            raise AssertionError(f"table {number} of {name}: {error}") from None
        number += 1


# What most often has a library take another road for a whole column.
TELLING = {"null", "no UTF-8", "nan", "infinity", "huge", "most", "large", "byte-order mark"}
TELLING |= {"float: null", "text: mark", "larger int", "NumPy seconds", "array", "complex", "true"}


# Other names of files that are read the same way.
SLOW = {"x.pq", "x.ipc"}


@pytest.mark.parametrize(
    "family", [pytest.param(f, marks=pytest.mark.slow if f in SLOW else ()) for f in FAMILIES]
)
def test_no_type_of_column_is_left_out(tmp_path: Path, family: str) -> None:
    for kind, typed in FAMILIES[family].items():
        reader = typed.reader(f"{family} of {kind}", typed.ordinary, 3, tmp_path)
        for each in TELLING & set(reader.hostile):
            check_reader(reader, each, [0, 3])


@pytest.mark.parametrize("name", DUPLICATES)
def test_no_entry_that_is_stored_twice_changes_another_record(tmp_path: Path, name: str) -> None:
    for number in range(5):
        reader = DUPLICATES[name](Random(number), tmp_path)
        for kind in reader.hostile:
            check_reader(reader, kind)


# Ours are of BLOCK bytes after the header, Arrow's of twice that, one byte of which is not ours.
EDGES = [BLOCK, 2 * BLOCK - 1, 2 * BLOCK]
AT_EDGES = [
    "byte-order mark and open quote",
    "a quote",
    "open quote first",
    "open quote last",
    "carriage return",
    "carriage return last",
    "line feed in quotes",
    "empty",
    "very many fields",
    "as long as a block",
    "longer than a block",
    "long and not UTF-8",
    "long and open",
    "field 3: no UTF-8",
    "field 3: U+FFFD",
]


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        *((kind, "\n") for kind in AT_EDGES),
        *(
            pytest.param(kind, "\r\n", marks=() if "carriage" in kind else pytest.mark.slow)
            for kind in AT_EDGES
        ),
    ],
    ids=repr,
)
def test_at_the_edges_of_blocks_of_the_real_size(tmp_path: Path, kind: str, end: str) -> None:
    hostile = hostile_lines(Random(0), ",", BLOCK)
    line = "1,39,10,\ufffd,yes,no".encode()
    for edge in EDGES:
        for inside in {0, 1, 2, len(hostile[kind]) // 2, len(hostile[kind])}:
            before = lines_of_size(edge - inside, line, len(end))
            reader = Reader(
                f"edge {edge}, {inside} bytes inside",
                [*before, line, line],
                hostile,
                lambda lines: encode_csv(tmp_path / "x.csv", lines, end.encode()),
                lambda record: record.count(b"\n") + 1,
            )
            check_reader(reader, kind, [len(before)])


@pytest.mark.parametrize("kind", HOSTILE_ROWS)
def test_at_the_edge_of_a_block_of_rows_of_the_real_size(kind: str) -> None:
    check_reader(wide_rows_of_two_blocks(Random(0)), kind, [255, 256])


def lines_of_size(size: int, line: bytes, n_end: int) -> list[bytes]:
    """Return lines that are so many bytes with their ends."""
    usual = b"0" * 9_000 + line
    n, rest = divmod(size, len(usual) + n_end)
    if rest < len(line) + n_end and n:  # too little for a line of its own
        n, rest = n - 1, rest + len(usual) + n_end
    return [usual] * n + [b"0" * (rest - len(line) - n_end) + line] * (rest >= len(line) + n_end)


def test_every_reader_is_here(tmp_path: Path) -> None:
    csv = {f"{suffix}{zipped}" for suffix in reading._DELIMITERS for zipped in ("", ".gz")}
    endings = {re.sub(r"^[^.]*", "", name) for name in READERS}
    assert csv | {*reading._PARQUET, *reading._ARROW} <= endings


def test_every_kind_of_table_is_here() -> None:
    for module, known in (
        (memory_tables, {"pyarrow", "pandas", "polars"}),
        (rows_and_labels, {"pyarrow", "pandas", "polars"}),
    ):
        # by which name a library's tables are known; another one needs another reader
        assert set(re.findall(r'(?:library|\[0\]) == "(\w+)"', inspect.getsource(module))) == known
        assert all(any(library in name for name in READERS) for library in known)


# ---- the contract itself ------------------------------------------------------------------------


def each(records: list[int]) -> Encoded:
    return Encoded([record.to_bytes(8, "little", signed=True) for record in records])


def leaking(what: str):  # type: ignore[no-untyped-def]
    def encode(records: list[int]) -> Encoded:
        odd = [record for record in records if record > 99]
        if odd and what == "log":
            logging.getLogger("reader").debug("odd: %d", odd[0])
        elif odd and what == "warning":
            warnings.warn("an odd record", stacklevel=1)
        elif odd and what == "refusal":
            raise ValueError("an odd record")
        elif odd and what == "cause":
            try:
                raise ValueError(f"odd: {odd[0]}")
            except ValueError as error:
                raise ValueError("refused") from error
        elif what == "rank":
            return each(sorted(records))
        elif odd and what == "lost":
            return each([record for record in records if record <= 99][1:])
        elif what == "first":
            return each([record + (i == 0 and record > 99) for i, record in enumerate(records)])
        elif odd and what == "twice":
            return each([r for record in records for r in [record] * (1 + (record > 99))])
        elif odd and what == "sum":
            return Encoded(each(records).rows, [np.array([5.0])])
        return Encoded(each(records).rows, [np.array([0.0])] * (what == "sum"))

    return encode


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("log", "is repeated"),
        ("warning", "a warning or a line"),
        ("refusal", "the table is refused"),
        ("cause", "is repeated"),
        ("rank", "is read differently"),
        ("lost", "another record is lost"),
        ("first", "by where it stands"),
        ("twice", "more than its own"),
        ("sum", "sum 0 moves by 5"),
    ],
)
def test_what_the_contract_catches(what: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_reader(Reader(what, [1, 3, 2], {"odd": 471147}, leaking(what)), "odd")


def test_what_the_contract_lets_pass() -> None:
    assert check_reader(Reader("each", [1, 3, 2], {"odd": 471147}, each), "odd") == 5
    known = Reader("known", [1], {"odd": 471147}, leaking("refusal"), may_refuse=frozenset(["odd"]))
    assert check_reader(known, "odd", [0, 1]) == 3
    always = Reader("by type", [100], {"odd": 471147}, leaking("refusal"))
    assert check_reader(always, "odd", [0, 1]) == 3
    by_value = Reader("by value", [100], {"even": 2}, leaking("refusal"))
    with pytest.raises(AssertionError, match="no longer refused"):
        check_reader(by_value, "even", [0])
