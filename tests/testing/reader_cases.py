"""Every reader there is, each with ordinary and hostile records; a new reader is one entry.

A maker takes a source of random choices and a folder, and returns a reader with a small table:
how it is cut into blocks, which type a column has, how lines end, are all drawn.
"""

from __future__ import annotations

import datetime
import gzip
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import feather, parquet
from scipy import sparse

from tacit.preprocessing import (
    Boolean,
    Category,
    ClassTarget,
    Indicator,
    Intervals,
    Number,
    Schema,
    encode_file,
    encode_rows,
)
from tacit.preprocessing.csv_file import CsvFile
from tacit.preprocessing.encoding import write_rows
from tacit.preprocessing.reading import open_table
from tacit.preprocessing.tables import columns_of_batch
from tacit.records import Bounds, MemoryRecords, as_rows
from tacit.testing.readers import MARK, Encoded, Reader

Maker = Callable[[Random, Path], Reader]

# Words that a careless reader changes for everybody: the mark of a lost byte, a whole number that
# is no float, a number that is a word, a word for a missing value.
WORDS = ("Oslo", "\ufffd", "\x1a", "NA", "1", "2", "7.5", "true", str(2**53), str(2**53 + 1))
COLUMNS = (
    Number("x", -1e6, 1e6, missing=Indicator()),
    Number("x", 1, 1e6, log=True),
    Intervals("x", (0, 10), missing=Indicator()),
    Category("x", WORDS, missing=Indicator()),
    Boolean("x", missing=Indicator()),
)
WIDTH = sum(len(column.names()) for column in COLUMNS)


# ---- values of a column -------------------------------------------------------------------------

NAN_WITH_PAYLOAD = struct.unpack("<d", struct.pack("<Q", 0xFFF0_0000_0004_7114))[0]
TIME = datetime.datetime(2020, 1, 1)

TEXTS = ["Oslo", "1", "7.5", " 2 ", "NA", "?", "\ufffd", "\x1a", "yes", "1e3", str(2**53 + 1), "x"]
HOSTILE_TEXTS = {
    "mark": MARK,
    "byte-order mark": "\ufeff" + MARK,
    "byte-order mark and quote": '\ufeff"' + MARK,
    "open quote": '"' + MARK,
    "quotes": f'"{MARK}""',
    "U+FFFD": "\ufffd" + MARK,
    "substitute": "\x1a" + MARK,
    "NUL": f"{MARK}\x00{MARK}",
    **{f"line end {end!r}": f"{MARK}{end}{MARK}" for end in "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028"},
    "huge": MARK + "e300",
    "too huge": MARK + "e400",
    "subnormal": MARK + "e-320",
    "nearly zero": MARK + "e-400",
    "many digits": MARK * 7,
    "very many digits": MARK * 1000,
    "full width": "\uff11" + MARK,
    "hexadecimal": "0x" + MARK,
    "underscore": "1_" + MARK,
    "plus": "+" + MARK,
    "point": MARK + ".",
    "infinity": "inf",
    "not a number": "nan",
    "empty": "",
    "blank": " ",
    "long": MARK * 20_000,
    "null": None,
}
HOSTILE_BYTES = {
    **{kind: text if text is None else text.encode() for kind, text in HOSTILE_TEXTS.items()},
    "no UTF-8": b"\xff" + MARK.encode(),
    "cut UTF-8": MARK.encode() + b"\xe2\x82",
    "overlong UTF-8": b"\xc0\x80" + MARK.encode(),
    "surrogate": b"\xed\xa0\x80" + MARK.encode(),
}
INTS = [0, 1, 2, 7, -3, 100]
LARGE_INTS = [*INTS, 2**53, 2**53 + 1]
HOSTILE_INTS = {"null": None, "mark": 471147, "most": 2**63 - 1, "large": 2**53 + 471147}
FLOATS = [0.0, 1.0, 7.5, -3.25, 1e-5, 2.0**53]
HOSTILE_FLOATS = {
    "null": None,
    "nan": float("nan"),
    "nan with payload": NAN_WITH_PAYLOAD,
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "huge": 4.71147e300,
    "subnormal": 4.71147e-320,
    "minus zero": -0.0,
    "mark": 471147.0,
}
BOOLS = [True, False, True]
HOSTILE_BOOLS = {"null": None, "true": True}
DECIMALS = [Decimal(1), Decimal("7.5"), Decimal(-3), Decimal(2**53 + 1)]
HOSTILE_DECIMALS = {"null": None, "mark": Decimal(471147), "large": Decimal("471147e20")}
HOSTILE_OBJECTS = {
    **{f"text: {kind}": text for kind, text in HOSTILE_TEXTS.items()},
    **{f"float: {kind}": number for kind, number in HOSTILE_FLOATS.items()},
    **{f"bytes: {kind}": text for kind, text in HOSTILE_BYTES.items()},
    "int": 471147,
    "large int": 2**53 + 471147,
    "larger int": 471147 * 10**400,
    "int of many digits": 471147 * 10**5000,
    "boolean": True,
    "decimal": Decimal("4.71147"),
    "signalling decimal": Decimal("sNaN471147"),
    "huge decimal": Decimal("471147e99999"),
    "fraction": Fraction(471147, 7),
    "complex": 471147j,
    "list": [471147],
    "empty list": [],
    "dictionary": {MARK: MARK},
    "array": np.array([471147, 1]),
    "array of one": np.array([471147]),
    "date": TIME,
    "timestamp": pd.Timestamp(TIME),
    "span": datetime.timedelta(471147),
    "NumPy date": np.datetime64(471147, "ns"),
    "NumPy span": np.timedelta64(471147, "ns"),
    "NumPy seconds": np.timedelta64(471147, "s"),
    "no time": pd.NaT,
    "NA": pd.NA,
    "half": np.float16(7.5),
    "NumPy int": np.int64(471147),
    "NumPy boolean": np.bool_(True),
    "NumPy text": np.str_(MARK),
    "lone surrogate": "\ud800" + MARK,
    "object": object(),
}


def encoded(rows) -> Encoded:
    return Encoded([row.tobytes() for row in rows])


def of_column(name, records, hostile, make) -> Reader:
    """Return a reader of tables with a column x, which ``make`` makes of its values."""
    return Reader(name, records, hostile, lambda v: encoded(encode_rows(make(v), COLUMNS)))


def some(rng: Random, pool) -> list:
    return [rng.choice(pool) for _ in range(rng.randrange(1, 12))]


# ---- Arrow, in memory and in files --------------------------------------------------------------


def dictionary(values, kind):
    words = pa.array(values, pa.binary()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(words.indices, words.dictionary.view(kind))


def halves(values):
    return pa.array([None if v is None else np.float16(v) for v in values], pa.float16())


BYTES = [text.encode() for text in TEXTS]
SMALL_FLOATS = {k: v for k, v in HOSTILE_FLOATS.items() if v is None or not 1e3 < abs(v) < 1e301}
ARROW_TYPES = {
    "string": (BYTES, HOSTILE_BYTES, lambda v: pa.array(v, pa.binary()).view(pa.string())),
    "large_string": (
        BYTES,
        HOSTILE_BYTES,
        lambda v: pa.array(v, pa.large_binary()).view(pa.large_string()),
    ),
    "string_view": (
        BYTES,
        HOSTILE_BYTES,
        lambda v: pa.array(v, pa.binary_view()).view(pa.string_view()),
    ),
    "binary": (BYTES, HOSTILE_BYTES, lambda v: pa.array(v, pa.binary())),
    "large_binary": (BYTES, HOSTILE_BYTES, lambda v: pa.array(v, pa.large_binary())),
    "binary_view": (BYTES, HOSTILE_BYTES, lambda v: pa.array(v, pa.binary_view())),
    "dictionary": (BYTES, HOSTILE_BYTES, lambda v: dictionary(v, pa.string())),
    "int64": (LARGE_INTS, HOSTILE_INTS, lambda v: pa.array(v, pa.int64())),
    "uint64": (INTS[:4], {**HOSTILE_INTS, "most": 2**64 - 1}, lambda v: pa.array(v, pa.uint64())),
    "int dictionary": (
        LARGE_INTS,
        HOSTILE_INTS,
        lambda v: pa.array(v, pa.int64()).dictionary_encode(),
    ),
    "float64": (FLOATS, HOSTILE_FLOATS, lambda v: pa.array(v, pa.float64())),
    "float32": (FLOATS, SMALL_FLOATS, lambda v: pa.array(v, pa.float32())),
    "float16": (FLOATS[:4], SMALL_FLOATS, halves),
    "bool": (BOOLS, HOSTILE_BOOLS, lambda v: pa.array(v, pa.bool_())),
    "decimal128": (DECIMALS, HOSTILE_DECIMALS, lambda v: pa.array(v, pa.decimal128(38, 4))),
    "decimal256": (DECIMALS, HOSTILE_DECIMALS, lambda v: pa.array(v, pa.decimal256(60, 4))),
}


def encode_batches(batches, columns=COLUMNS) -> Encoded:
    rows = []
    for batch in batches:
        out = np.zeros((batch.num_rows, sum(len(column.names()) for column in columns)))
        write_rows(columns_of_batch(batch), columns, out)
        rows.extend(row.tobytes() for row in out)
    return Encoded(rows)


def ipc(new, table, path, step) -> None:
    with pa.OSFile(str(path), "wb") as file, new(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=step)


ARROW_FILES = {
    "x.parquet": lambda table, path, step: parquet.write_table(table, path, row_group_size=step),
    "plain.parquet": lambda table, path, step: parquet.write_table(
        table, path, use_dictionary=False, data_page_size=16, compression="none"
    ),
    "x.pq": lambda table, path, step: parquet.write_table(table, path, row_group_size=step),
    "x.feather": lambda table, path, step: feather.write_feather(table, str(path), chunksize=step),
    "x.arrow": lambda table, path, step: ipc(pa.ipc.new_file, table, path, step),
    "stream.arrow": lambda table, path, step: ipc(pa.ipc.new_stream, table, path, step),
    "x.ipc": lambda table, path, step: ipc(pa.ipc.new_stream, table, path, step),
}


def arrow_file(name: str) -> Maker:
    write = ARROW_FILES[name]

    def make(rng: Random, folder: Path) -> Reader:
        kind = rng.choice(list(ARROW_TYPES))
        pool, hostile, array = ARROW_TYPES[kind]
        step, path = rng.randrange(1, 8), folder / name

        def encode(values):
            write(pa.table({"x": array(values)}), path, step)
            return encode_batches(open_table(path).batches(["x"]))

        return Reader(f"{name} of {kind}", some(rng, pool), hostile, encode)

    return make


def cut(array, step):
    return pa.chunked_array([array[i : i + step] for i in range(0, len(array), step)])


ARROW_TABLES = {
    "pyarrow table": lambda array, step: pa.table({"x": cut(array, step)}),
    "pyarrow batch": lambda array, step: pa.record_batch({"x": array}),
    "dictionary of pyarrow": lambda array, step: {"x": cut(array, step)},
    "pandas of pyarrow": lambda array, step: pd.DataFrame(
        {"x": pd.arrays.ArrowExtensionArray(cut(array, step))}
    ),
}


def arrow_table(name: str) -> Maker:
    def make(rng: Random, _: Path) -> Reader:
        kinds = [k for k in ARROW_TYPES if "pandas" not in name or "view" not in k]
        kind = rng.choice(kinds)
        pool, hostile, array = ARROW_TYPES[kind]
        step = rng.randrange(1, 8)
        return of_column(
            f"{name} of {kind}",
            some(rng, pool),
            hostile,
            lambda values: ARROW_TABLES[name](array(values), step),
        )

    return make


# ---- frames, dictionaries and arrays with names -------------------------------------------------

PANDAS_TYPES = {
    None: (LARGE_INTS, HOSTILE_OBJECTS),  # as pandas guesses, from all of them
    "object": ([*TEXTS, *LARGE_INTS, *FLOATS, *BOOLS], HOSTILE_OBJECTS),
    "str": (TEXTS, HOSTILE_TEXTS),
    "string[python]": (TEXTS, HOSTILE_TEXTS),
    "string[pyarrow]": (TEXTS, HOSTILE_TEXTS),
    "category": (TEXTS, HOSTILE_TEXTS),
    "Int64": (LARGE_INTS, HOSTILE_INTS),
    "Float64": (FLOATS, HOSTILE_FLOATS),
    "float64": (FLOATS, HOSTILE_FLOATS),
    "float32": (FLOATS, SMALL_FLOATS),
    "boolean": (BOOLS, HOSTILE_BOOLS),
    "Sparse[float]": (FLOATS, HOSTILE_FLOATS),
}
GUESSED = [LARGE_INTS, FLOATS, BOOLS, TEXTS, [*TEXTS, *LARGE_INTS]]


def pandas_frame(rng: Random, _: Path) -> Reader:
    kind = rng.choice(list(PANDAS_TYPES))
    pool, hostile = PANDAS_TYPES[kind]
    records = some(rng, pool if kind else rng.choice(GUESSED))

    def make(values):
        return pd.DataFrame({"x": pd.Series(values, dtype=kind)})

    return of_column(f"pandas of {kind}", records, hostile, make)


POLARS_TYPES = {
    pl.String: (TEXTS, HOSTILE_TEXTS),
    pl.Binary: (BYTES, HOSTILE_BYTES),
    pl.Categorical: (TEXTS, HOSTILE_TEXTS),
    pl.Int64: (LARGE_INTS, HOSTILE_INTS),
    pl.UInt64: (INTS[:4], HOSTILE_INTS),
    pl.Int128: (LARGE_INTS, {**HOSTILE_INTS, "most": 2**100}),
    pl.Float64: (FLOATS, HOSTILE_FLOATS),
    pl.Float32: (FLOATS, SMALL_FLOATS),
    pl.Boolean: (BOOLS, HOSTILE_BOOLS),
    pl.Decimal(38, 4): (DECIMALS, HOSTILE_DECIMALS),
    pl.Object: ([*TEXTS, *INTS, *FLOATS, *BOOLS], HOSTILE_OBJECTS),
    # Refused for their type, whatever they hold; a table that is refused has no rows to compare.
    pl.Datetime("ns"): ([TIME], {"null": None}),
    pl.Duration("ns"): ([datetime.timedelta(1)], {"null": None}),
}


def polars_frame(rng: Random, _: Path) -> Reader:
    kind = rng.choice(list(POLARS_TYPES))
    pool, hostile = POLARS_TYPES[kind]
    return of_column(
        f"polars of {kind}",
        some(rng, pool),
        hostile,
        lambda values: pl.DataFrame({"x": pl.Series(values, dtype=kind)}),
    )


def lists(rng: Random, _: Path) -> Reader:
    pool = rng.choice([*GUESSED, [*TEXTS, *INTS, *FLOATS, *BOOLS]])
    return of_column("dictionary of lists", some(rng, pool), HOSTILE_OBJECTS, lambda v: {"x": v})


NO_TEXT_NULLS = {kind: text for kind, text in HOSTILE_TEXTS.items() if text is not None}
NUMPY_TYPES = {
    "U200": (TEXTS, {k: v for k, v in NO_TEXT_NULLS.items() if len(v) <= 200}),
    "S200": (BYTES, {k: v for k, v in HOSTILE_BYTES.items() if v is not None and len(v) <= 200}),
    "T": (TEXTS, NO_TEXT_NULLS),
    "O": ([*TEXTS, *INTS, *FLOATS, *BOOLS], HOSTILE_OBJECTS),
    "i8": (LARGE_INTS, {k: v for k, v in HOSTILE_INTS.items() if v is not None}),
    "f8": (FLOATS, {k: v for k, v in HOSTILE_FLOATS.items() if v is not None}),
    "f4": (FLOATS, {k: v for k, v in SMALL_FLOATS.items() if v is not None}),
    "f2": (FLOATS[:4], {k: v for k, v in SMALL_FLOATS.items() if v is not None}),
    "longdouble": (FLOATS, {"huge": np.longdouble("4.71147e4000"), "nan": np.longdouble("nan")}),
    "?": (BOOLS, {"true": True}),
}


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def numpy_array(values, kind):
    return objects(values) if kind == "O" else np.array(values, dtype=kind)


def structured(values, kind):
    table = np.empty(len(values), dtype=[("n", "i4"), ("x", kind)])
    table["x"] = numpy_array(values, kind)
    return table


def masked(values, kind):
    """Return an array with a mask, under which lies whatever is hostile."""
    array = numpy_array(values, kind)
    mask = [isinstance(v, float) and abs(v) > 1e6 for v in values]
    return np.ma.MaskedArray(array, mask=mask)


def of_numpy(name: str, make, *without: str) -> Maker:
    def maker(rng: Random, _: Path) -> Reader:
        kind = rng.choice([k for k in NUMPY_TYPES if k not in without])
        pool, hostile = NUMPY_TYPES[kind]
        return of_column(f"{name} of {kind}", some(rng, pool), hostile, lambda v: make(v, kind))

    return maker


# ---- lines of a CSV -----------------------------------------------------------------------------

SCHEMA = Schema(
    (
        Number("age", 0, 100, missing=Indicator()),
        Number("size", 1, 1000, log=True, missing=Indicator()),
        Category("town", WORDS, missing=Indicator()),
        Boolean("smoker", missing=Indicator()),
    ),
    ClassTarget("ill", ("no", "yes")),
)
HEADER = b"n,age,size,town,smoker,ill"
TOWNS = [*TEXTS, '"Oslo"', '"a""b"', '"1"', "5\u2028"]


def ordinary_line(rng: Random, mark: str) -> bytes:
    fields = [
        rng.choice("0123456789"),
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
    path.write_bytes(HEADER + end + end.join([*lines, b""]))
    return labelled(*encode_file(path, SCHEMA))


def csv_file(name: str, mark: str = ",") -> Maker:
    """Return a maker of files that are read by the front door."""

    def make(rng: Random, folder: Path) -> Reader:
        path, content = folder / name, csv_content(rng, mark)

        def encode(lines):
            text = content(lines)
            path.write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
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
        path.write_bytes(content(lines))
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
        path.write_bytes(b"x" + end + end.join(lines) + end)
        return encode_batches(CsvFile(path, "it", ",", False, block=block).batches(["x"]))

    hostile = {k: v for k, v in HOSTILE_BYTES.items() if v is not None}
    hostile |= {k: v for k, v in hostile_lines(rng, ",", block).items() if "field" not in k}
    return Reader(f"a column, blocks of {block}", records, hostile, encode, lines_of)


# ---- rows of numbers ----------------------------------------------------------------------------

HOSTILE_ROWS = {
    "zeros": [0.0, 0.0, 0.0],
    "minus zeros": [-0.0, -0.0, -0.0],
    "long": [471147.0, -471147.0, 1.0],
    "huge": [4.71147e300, 1.0, -4.71147e300],
    "overflow": [1.7e308, 1.7e308, 1.7e308],
    "half overflow": [1e160, 1e-160, 1.0],
    "subnormal": [4.71147e-320, 0.0, 5e-324],
    "vanishing": [1e-200, -1e-200, 0.0],
    "nan": [float("nan"), 0.0, 0.0],
    "nan with payload": [0.0, NAN_WITH_PAYLOAD, 0.0],
    "infinity": [0.0, float("inf"), 0.0],
    "minus infinity": [0.0, 0.0, float("-inf")],
}
# docs/known_limits.md: that an array holds a NaN can be seen.
REFUSED = frozenset(
    ["nan", "nan with payload", "infinity", "minus infinity", "twice and overflowing"]
)
UNIT = Bounds(row_norm=1.0)
# Products of this many columns with each other take too long for ten thousand tables.
WIDE = 100


def summed(X) -> Encoded:
    """Return the points of every record, and all that a fit adds up of them."""
    rows, _ = as_rows(X)
    records = MemoryRecords(rows, None, UNIT)
    points: list[bytes] = []
    weights = np.zeros(records.n_features)
    weights[0] = 1.0

    def totals(block):
        points.extend(point.tobytes() for point in block.points())
        ones = np.ones(block.n_rows)
        sums = block.weighted_sum(ones), np.array([block.scores(weights).sum()])
        return sums if len(weights) > WIDE else (*sums, block.gram(ones))

    return Encoded(points, records.sum(totals))


def floats(kind):
    return lambda rows: np.array(rows, dtype=kind)


def frame(make):
    return lambda rows: make({str(i): column for i, column in enumerate(zip(*rows, strict=True))})


ROWS = {
    "float64": floats(np.float64),
    "float32": floats(np.float32),
    "columns first": lambda rows: np.asfortranarray(rows, dtype=float),
    "a view": lambda rows: np.repeat(np.array(rows, dtype=float), 2, axis=1)[:, ::2],
    "list": lambda rows: rows,
    "objects": lambda rows: np.array(rows, dtype=object),
    "pandas": frame(pd.DataFrame),
    "polars": frame(pl.DataFrame),
    "pyarrow": frame(lambda columns: pa.table({k: list(v) for k, v in columns.items()})),
}


def some_rows(rng: Random) -> list[list[float]]:
    # Mostly one way, so that a sum that forgets them is seen.
    scale = rng.choice([0.1, 1.0, 10.0])
    return [[scale, *(rng.gauss(0, scale) for _ in range(2))] for _ in range(rng.randrange(4, 12))]


# Of rows so wide a block holds 256; narrower ones are in one block until there are many.
BLOCK_WIDTH = 2100


def rows_of_two_blocks(rng: Random) -> list[list[float]]:
    rows: list[list[float]] = []
    n = rng.randrange(255, 259)
    while len(rows) < n:
        rows += some_rows(rng)
    return rows[:n]


def dense_in_blocks(rng: Random, _: Path) -> Reader:
    def wide(rows):
        X = np.zeros((len(rows), BLOCK_WIDTH))
        X[:, :3] = rows
        return X

    records = rows_of_two_blocks(rng)
    return Reader(
        "wide rows", records, HOSTILE_ROWS, lambda rows: summed(wide(rows)), may_refuse=REFUSED
    )


def dense(rng: Random, _: Path) -> Reader:
    kind = rng.choice(list(ROWS))
    hostile = HOSTILE_ROWS
    if kind == "float32":
        hostile = {k: v for k, v in hostile.items() if not any(1e38 < abs(x) < 1e309 for x in v)}
    return Reader(
        f"rows of {kind}",
        some_rows(rng),
        hostile,
        lambda rows: summed(ROWS[kind](rows)),
        may_refuse=REFUSED,
    )


# A row of a sparse array: (place, entry) in the order in which they are stored.
HOSTILE_ENTRIES = {
    **{kind: list(enumerate(row)) for kind, row in HOSTILE_ROWS.items()},
    "no entries": [],
    "explicit zeros": [(1, 0.0), (2, -0.0)],
    "not sorted": [(2, 471147.0), (0, 1.0), (1, 2.0)],
    "twice": [(0, 0.25), (0, 0.25)],
    "twice and long": [(0, 471147.0), (1, 1.0), (0, 471147.0)],
    "twice and cancelling": [(0, 4.71147e200), (0, -4.71147e200)],
    "apart and cancelling": [(0, 1e200), (1, 1.0), (0, -1e200), (2, 1e200), (2, -1e200)],
    "twice and nearly cancelling": [(0, 4.71147e20), (0, 0.5), (0, -4.71147e20)],
    "twice and overflowing": [(0, 1.7e308), (0, 1.7e308), (0, -1.7e308)],
}
TWICE = [kind for kind in HOSTILE_ENTRIES if "cancelling" in kind or "twice" in kind]


def stored(rows, width, index=np.int32):
    data = np.array([entry for row in rows for _, entry in row], dtype=float)
    places = np.array([place for row in rows for place, _ in row], dtype=index)
    ends = np.cumsum([0, *map(len, rows)]).astype(index)
    return sparse.csr_array((data, places, ends), shape=(len(rows), width))


def listed(rows, width):
    at = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    csr = stored(rows, width)
    return sparse.coo_array((csr.data, (at, csr.indices)), shape=csr.shape)


def by_columns(rows, width):
    coo = listed(rows, width)
    order = np.argsort(coo.col, kind="stable")
    ends = np.searchsorted(coo.col[order], np.arange(width + 1))
    return sparse.csc_array((coo.data[order], coo.row[order], ends), shape=coo.shape)


SPARSE = {
    "csr_array": stored,
    "csr_array of int64": lambda rows, width: stored(rows, width, np.int64),
    "csr_matrix": lambda rows, width: sparse.csr_matrix(stored(rows, width)),
    "coo_array": listed,
    "csc_array": by_columns,
}


def sparse_rows(kind: str, hostile, width: int = 3, blocks: bool = False) -> Maker:
    def make(rng: Random, _: Path) -> Reader:
        rows = rows_of_two_blocks(rng) if blocks else some_rows(rng)
        return Reader(
            f"{kind}, {width} wide",
            [list(enumerate(row)) for row in rows],
            hostile,
            lambda rows: summed(SPARSE[kind](rows, width)),
            may_refuse=REFUSED,
        )

    return make


ONCE = {kind: row for kind, row in HOSTILE_ENTRIES.items() if kind not in TWICE}
MORE_THAN_ONCE = {kind: HOSTILE_ENTRIES[kind] for kind in TWICE}

READERS: dict[str, Maker] = {
    "x.csv": csv_file("x.csv"),
    "x.csv.gz": csv_file("x.csv.gz"),
    "semicolons.csv": csv_file("semicolons.csv", ";"),
    "blanks.csv": csv_file("blanks.csv", " "),
    "x.tsv": csv_file("x.tsv", "\t"),
    "x.tsv.gz": csv_file("x.tsv.gz", "\t"),
    "CSV in blocks": csv_blocks,
    "CSV of a column": csv_column,
    **{name: arrow_file(name) for name in ARROW_FILES},
    **{name: arrow_table(name) for name in ARROW_TABLES},
    "pandas": pandas_frame,
    "polars": polars_frame,
    "lists": lists,
    "dictionary of arrays": of_numpy("array", lambda v, kind: {"x": numpy_array(v, kind)}),
    "masked arrays": of_numpy("masked array", lambda v, kind: {"x": masked(v, kind)}, "T"),
    "structured": of_numpy("structured array", structured, "T"),
    "dense rows": dense,
    **{f"sparse rows: {kind}": sparse_rows(kind, ONCE) for kind in SPARSE},
    "dense rows in blocks": dense_in_blocks,
    "sparse rows in blocks": sparse_rows("csr_array", ONCE, BLOCK_WIDTH, blocks=True),
}
# Entries that are stored more than once at the same place.
DUPLICATES: dict[str, Maker] = {
    f"sparse rows: {kind}": sparse_rows(kind, MORE_THAN_ONCE) for kind in SPARSE
}
