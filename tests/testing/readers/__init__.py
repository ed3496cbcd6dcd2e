"""Every reader there is, each with ordinary and hostile records; a new reader is one entry.

A maker takes a source of random choices and a folder, and returns a reader with a small table:
how it is cut into blocks, which type a column has, how lines end, are all drawn.
"""

from tests.testing.readers.columns import FAMILIES, any_of
from tests.testing.readers.imports import imported_csv, imported_sav, imported_workbook
from tests.testing.readers.lines import Maker, csv_blocks, csv_column, csv_file
from tests.testing.readers.rows import (
    MORE_THAN_ONCE,
    ONCE,
    SPARSE,
    dense,
    in_blocks,
    sparse_rows,
)

READERS: dict[str, Maker] = {
    "x.csv": csv_file("x.csv"),
    "x.csv.gz": csv_file("x.csv.gz"),
    "semicolons.csv": csv_file("semicolons.csv", ";"),
    "blanks.csv": csv_file("blanks.csv", " "),
    "x.tsv": csv_file("x.tsv", "\t"),
    "x.tsv.gz": csv_file("x.tsv.gz", "\t"),
    "CSV in blocks": csv_blocks,
    "CSV of a column": csv_column,
    **{family: any_of(family) for family in FAMILIES},
    "imported CSV": imported_csv,
    "imported workbook": imported_workbook,
    "imported SPSS file": imported_sav,
    "dense rows": dense,
    "dense rows in blocks": in_blocks(dense),
    **{f"sparse rows: {kind}": sparse_rows(kind, ONCE) for kind in SPARSE},
    "sparse rows in blocks": in_blocks(sparse_rows("csr_array", ONCE)),
}
# Entries that are stored more than once at the same place.
DUPLICATES: dict[str, Maker] = {
    f"sparse rows: {kind}": sparse_rows(kind, MORE_THAN_ONCE) for kind in SPARSE
}
