"""Readers of CSV: lines, hostile by their bytes, and files of them in blocks of every size."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from random import Random

from tacit.io.csv_file import CsvFile
from tacit.schema import (
    Age,
    Boolean,
    Category,
    ClassTarget,
    Indicator,
    Number,
    Schema,
    encode_file,
)
from tacit.testing import Encoded, Reader
from tacit.testing.readers import MARK
from tests.testing.readers.columns import WORDS, anew, encode_batches
from tests.testing.readers.hostile_values import BYTES, HOSTILE_BYTES, TEXTS

Maker = Callable[[Random, Path], Reader]

SCHEMA = Schema(
    (
        Number("age", 0, 100, missing=Indicator()),
        Number("size", 1, 1000, log=True, missing=Indicator(), missing_codes=(10, "x")),
        Age("n", "2026-01-01", 0, 99, missing=Indicator()),
        Category("town", WORDS, missing=Indicator()),
        Boolean("smoker", missing=Indicator(), fold_case=True),
    ),
    ClassTarget("ill", ("no", "YES"), fold_case=True, missing_codes=("unknown",)),
)
HEADER = b"n,age,size,town,smoker,ill"
TOWNS = [*TEXTS, '"Oslo"', '"a""b"', '"1"', "5\u2028"]


def ordinary_line(rng: Random, mark: str) -> bytes:
    fields = [
        rng.choice(["0", "1", "2", "1999-12-31", "2000-2-30"]),
        rng.choice(["39", "4.5", "130", "", "?", "1e1"]),
        rng.choice(["10", '"999"', "31.6", "x"]),
        rng.choice(TOWNS),
        rng.choice(["yes", "no", "", "T"]),
        rng.choice(["yes", "no"]),
    ]
    return mark.join(field.replace(mark, "") for field in fields).encode()


MARKED = MARK.encode()
BOM = b"\xef\xbb\xbf"


def hostile_lines(rng: Random, mark: str, block: int) -> dict[str, bytes]:
    """Return lines that are hostile by their bytes, and fields that are by their value."""
    d = mark.encode()
    line = d.join([b"1", b"39", b"10", MARKED, b"yes", b"no"])
    lines = {
        "another": line,
        "byte-order mark": BOM + line,
        "byte-order mark alone": BOM,
        "byte-order mark and open quote": BOM + b'"' + line,
        "byte-order mark and quotes": BOM + b'"' + line + b'"',
        "two byte-order marks": BOM + BOM + b'"' + line,
        "byte-order mark of UTF-16": b"\xff\xfe" + line,
        "UTF-16": line.decode().encode("utf-16-le"),
        "a quote": b'"',
        "two quotes": b'""',
        "three quotes": b'"""',
        "open quote first": b'"' + line,
        "open quote last": line + b'"',
        "quoted as a whole": b'"' + line + b'"',
        "text after a quote": b'"1"x' + line[1:],
        "blank after a quote": b'"1" ' + line[1:],
        "quote after a quote": b'"1" "' + line[1:],
        "carriage return": line.replace(MARKED, MARKED + b"\r" + MARKED),
        "carriage return first": b"\r" + line,
        "carriage return last": line + b"\r",
        "carriage returns": b"\r\r",
        "line feed in quotes": line.replace(MARKED, b'"' + MARKED + b"\n" + MARKED + b'"'),
        "open quote and line feed": line + b'"\n"' + line,
        "line feeds": b"\n\n",
        "two lines": line + b"\n" + line,
        "empty": b"",
        "blanks": b"  \t ",
        "NULs": b"\x00" * 9,
        "NUL first": b"\x00" + line,
        "too few fields": MARKED,
        "too many fields": d.join([MARKED] * 9),
        "very many fields": d * (block // 2),
        "backslash": line.replace(MARKED, MARKED + b'\\"'),
        "comment": b"#" + line,
        "separator": b"sep=" + d,
        "header": HEADER.replace(b",", d),
        "as long as a block": line.replace(MARKED, MARKED.ljust(block - len(line) + 5, b"x")),
        "longer than a block": line.replace(MARKED, MARKED * block),
        "long and not UTF-8": line.replace(MARKED, b"\xff" * (block - len(line) + 5)),
        "long and quoted": line.replace(MARKED, b'"' + MARKED * block + b'"'),
        "long and open": b'"' + MARKED * block,
    }
    pieces = [b'"', b'""', d, b"\r", b"\n", BOM, b"\xff", b"\xe2", "\ufffd".encode(), b"\x00"]
    pieces += [b"1", b" ", b"\x1a", b"a", line, d * 5]
    for number in range(9):
        lines[f"random {number}"] = b"".join(rng.choices(pieces, k=rng.randrange(1, 12)))
    for kind, value in HOSTILE_BYTES.items():
        if value is None or len(value) > block:
            continue
        for place in (1, 3, 5):
            fields = line.split(d)
            fields[place] = value
            lines[f"field {place}: {kind}"] = d.join(fields)
    return lines


def lines_of(record: bytes) -> int:
    return record.count(b"\n") + 1


def csv_content(rng: Random, mark: str) -> Callable[[list[bytes]], bytes]:
    """Return how lines are written: how they end, whether the last one does, with what before."""
    end = rng.choice([b"\n", b"\n", b"\r\n"])
    last = rng.choice([end, b""])
    header = rng.choice([b"", BOM, b"\n"]) + HEADER.replace(b",", mark.encode())
    return lambda lines: header + end + end.join(lines) + last


def labelled(rows, labels) -> Encoded:
    return Encoded([row.tobytes() + y.encode() for row, y in zip(rows, labels, strict=True)])


def encode_csv(path: Path, lines: list[bytes], end: bytes) -> Encoded:
    anew(path).write_bytes(HEADER + end + end.join([*lines, b""]))
    return labelled(*encode_file(path, SCHEMA))


def csv_file(name: str, mark: str = ",") -> Maker:
    """Return a maker of files that are read by the front door."""

    def make(rng: Random, folder: Path) -> Reader:
        path, content = folder / name, csv_content(rng, mark)

        def encode(lines):
            text = content(lines)
            anew(path).write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
            usual = mark == {"csv": ",", "tsv": "\t"}[name.split(".")[1]]
            return labelled(*encode_file(path, SCHEMA, delimiter=None if usual else mark))

        # Two at least: that a table has no record at all can be seen, says docs/known_limits.md.
        records = [ordinary_line(rng, mark) for _ in range(rng.randrange(2, 12))]
        return Reader(name + mark, records, hostile_lines(rng, mark, 300), encode, lines_of)

    return make


def csv_blocks(rng: Random, folder: Path) -> Reader:
    """Return a reader of small blocks, so that their edges fall everywhere."""
    mark = rng.choice([",", ";", "\t", "|"])
    path, content = folder / "blocks.csv", csv_content(rng, mark)
    records = [ordinary_line(rng, mark) for _ in range(rng.randrange(2, 16))]
    block = max(map(len, records)) + rng.randrange(2, 40)
    target = Category("ill", ("no", "yes"))

    def encode(lines):
        anew(path).write_bytes(content(lines))
        file = CsvFile(path, "it", mark, False, block=block)
        names = [column.name for column in (*SCHEMA.encoded, target)]
        return encode_batches(file.batches(names), (*SCHEMA.encoded, target))

    hostile = hostile_lines(rng, mark, block)
    return Reader(f"blocks of {block}", records, hostile, encode, lines_of)


def csv_column(rng: Random, folder: Path) -> Reader:
    """Return a reader of a single column, where a line is a field."""
    path = folder / "column.csv"
    end, block = rng.choice([b"\n", b"\r\n"]), rng.randrange(20, 80)
    records = [rng.choice([*BYTES, b'""', b'"1"']) for _ in range(rng.randrange(1, 12))]

    def encode(lines):
        anew(path).write_bytes(b"x" + end + end.join(lines) + end)
        return encode_batches(CsvFile(path, "it", ",", False, block=block).batches(["x"]))

    hostile = {k: v for k, v in HOSTILE_BYTES.items() if v is not None}
    hostile |= {k: v for k, v in hostile_lines(rng, ",", block).items() if "field" not in k}
    return Reader(f"a column, blocks of {block}", records, hostile, encode, lines_of)
