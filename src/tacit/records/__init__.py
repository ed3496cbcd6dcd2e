"""Open records, and return sums over them. No other package reads records in memory.

A new record source is a file and a line here; run `make registry` for its place in the reference.
"""

from tacit.records.block import Block as Block
from tacit.records.bounds import INTERCEPT_SHARE as INTERCEPT_SHARE
from tacit.records.bounds import Bounds as Bounds
from tacit.records.chunked import ChunkedRecords as ChunkedRecords
from tacit.records.lazy_table import MappedRows as MappedRows
from tacit.records.lazy_table import MappedTable as MappedTable
from tacit.records.lazy_table import RowMap as RowMap
from tacit.records.lazy_table import TableInMemory as TableInMemory
from tacit.records.lazy_table import UnreadRecords as UnreadRecords
from tacit.records.lazy_table import UnreadTable as UnreadTable
from tacit.records.memory import MemoryRecords as MemoryRecords
from tacit.records.memory import open_records as open_records
from tacit.records.reweighted import ClassWeights as ClassWeights
from tacit.records.reweighted import LeverageWeights as LeverageWeights
from tacit.records.reweighted import ReweightedRecords as ReweightedRecords
from tacit.records.rows_and_labels import as_labels as as_labels
from tacit.records.rows_and_labels import as_numbers as as_numbers
from tacit.records.rows_and_labels import as_rows as as_rows
from tacit.records.rows_and_labels import as_weights as as_weights
from tacit.records.rows_and_labels import shape_of as shape_of
from tacit.records.source import RecordSource as RecordSource
from tacit.records.splits import Sample as Sample

__all__ = sorted(
    name for name, value in vars().items() if getattr(value, "__module__", "").startswith(__name__)
)
