"""Open records, and return sums over them. No other package reads records in memory."""

from tacit.records.block import Block
from tacit.records.bounds import INTERCEPT_SHARE, Bounds
from tacit.records.chunked import ChunkedRecords
from tacit.records.mapped import MappedRows, MappedTable, RowMap
from tacit.records.memory import MemoryRecords
from tacit.records.opening import open_records
from tacit.records.reweighted import ClassWeights, LeverageWeights, ReweightedRecords
from tacit.records.rows_and_labels import (
    as_labels,
    as_numbers,
    as_rows,
    shape_of,
)
from tacit.records.sampling import Sample
from tacit.records.source import RecordSource
from tacit.records.unread import TableInMemory, UnreadRecords, UnreadTable
from tacit.records.weights import as_weights

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
