"""Read tables from files and from memory, as columns of raw values; import exports."""

from tacit.io.csv_file import LineCounts
from tacit.io.exports import Imported, import_query, import_table
from tacit.io.reading import line_counts, read_batches, read_table

__all__ = [
    "Imported",
    "LineCounts",
    "import_query",
    "import_table",
    "line_counts",
    "read_batches",
    "read_table",
]
