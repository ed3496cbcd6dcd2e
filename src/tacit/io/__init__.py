"""Read tables from files and from memory, as columns of raw values."""

from tacit.io.reading import read_batches, read_table

__all__ = ["read_batches", "read_table"]
