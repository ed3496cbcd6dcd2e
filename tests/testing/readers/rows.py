"""Readers of rows of numbers, dense and sparse, as far as the sums that a fit takes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from tacit.records import Bounds, MemoryRecords
from tacit.records import block as block_sums
from tacit.records.rows_and_labels import as_rows
from tacit.testing import Encoded, Reader
from tests.testing.readers.hostile_values import NAN_WITH_PAYLOAD

Maker = Callable[[Random, Path], Reader]

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


def wide_rows_of_two_blocks(rng: Random) -> Reader:
    """Return a reader of blocks of the real size; its tables are large."""
    records: list[list[float]] = []
    while len(records) < 256:
        records += some_rows(rng)

    def wide(rows):
        X = np.zeros((len(rows), BLOCK_WIDTH))
        X[:, :3] = rows
        return X

    return Reader(
        "wide rows",
        records[:256],
        HOSTILE_ROWS,
        lambda rows: summed(wide(rows)),
        may_refuse=REFUSED,
    )


def in_blocks(make: Maker) -> Maker:
    """Return a maker of the same readers, of small blocks, so that their edges fall everywhere."""

    def make_in_blocks(rng: Random, folder: Path) -> Reader:
        reader, size = make(rng, folder), rng.randrange(1, 8)

        def encode(rows):
            with mock.patch.multiple(block_sums, _BLOCK_BYTES=1, _FEWEST_ROWS=size):
                return reader.encode(rows)

        return replace(reader, name=f"{reader.name}, blocks of {size}", encode=encode)

    return make_in_blocks


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


def sparse_rows(kind: str, hostile) -> Maker:
    def make(rng: Random, _: Path) -> Reader:
        return Reader(
            kind,
            [list(enumerate(row)) for row in some_rows(rng)],
            hostile,
            lambda rows: summed(SPARSE[kind](rows, 3)),
            may_refuse=REFUSED,
        )

    return make


ONCE = {kind: row for kind, row in HOSTILE_ENTRIES.items() if kind not in TWICE}
MORE_THAN_ONCE = {kind: HOSTILE_ENTRIES[kind] for kind in TWICE}
