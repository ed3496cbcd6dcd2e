"""Open records, and return sums over them. No other package reads records in memory."""

from tacit.records.block import Block
from tacit.records.bounds import INTERCEPT_SHARE, Bounds
from tacit.records.chunked import ChunkedRecords
from tacit.records.lazy_table import (
    MappedRows,
    MappedTable,
    RowMap,
    TableInMemory,
    UnreadRecords,
    UnreadTable,
)
from tacit.records.memory import MemoryRecords, open_records
from tacit.records.reweighted import ClassWeights, LeverageWeights, ReweightedRecords
from tacit.records.rows_and_labels import (
    as_labels,
    as_numbers,
    as_rows,
    as_weights,
    shape_of,
)
from tacit.records.source import RecordSource
from tacit.records.splits import Sample

__all__ = [
    "INTERCEPT_SHARE",
    "Block",
    "Bounds",
    "ChunkedRecords",
    "ClassWeights",
    "LeverageWeights",
    "MappedRows",
    "MappedTable",
    "MemoryRecords",
    "RecordSource",
    "ReweightedRecords",
    "RowMap",
    "Sample",
    "TableInMemory",
    "UnreadRecords",
    "UnreadTable",
    "as_labels",
    "as_numbers",
    "as_rows",
    "as_weights",
    "open_records",
    "shape_of",
]
