"""Read tables from files and from memory, as columns of raw values; import exports."""

from tacit.io.exports import Imported, import_query, import_table
from tacit.io.reading import read_batches, read_table

__all__ = ["Imported", "import_query", "import_table", "read_batches", "read_table"]
