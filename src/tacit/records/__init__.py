"""Open records, and return sums over them. No other package reads records in memory.

A new record source is a file and a line here; run `make registry` for its place in the reference.
"""

from tacit.records.block import Block as Block
from tacit.records.bounds import Bounds as Bounds
from tacit.records.chunked import ChunkedRecords as ChunkedRecords
from tacit.records.lazy_table import RowMap as RowMap
from tacit.records.memory import MemoryRecords as MemoryRecords
from tacit.records.source import RecordSource as RecordSource
from tacit.records.splits import Sample as Sample

__all__ = sorted(
    name for name, value in vars().items() if getattr(value, "__module__", "").startswith(__name__)
)
