"""From raw tables to rows of features, by public facts alone: schemas, encoder, files."""

from tacit.preprocessing.checking import check_file
from tacit.preprocessing.draft.draft import draft_schema
from tacit.preprocessing.encoder import SchemaEncoder
from tacit.preprocessing.encoding import encode_file, encode_rows, encode_table
from tacit.preprocessing.errors import SchemaError, TableError
from tacit.preprocessing.files.reading import read_batches, read_table
from tacit.preprocessing.schema.column_check import ColumnCheck
from tacit.preprocessing.schema.columns import Column, Ignored
from tacit.preprocessing.schema.missing import Fill, Indicator, Missing, Neutral
from tacit.preprocessing.schema.number_columns import Intervals, Number
from tacit.preprocessing.schema.open_columns import OpenCategory, OpenNumber
from tacit.preprocessing.schema.schema import Schema
from tacit.preprocessing.schema.targets import ClassTarget, NumberTarget, Target
from tacit.preprocessing.schema.unit import Unit
from tacit.preprocessing.schema.word_columns import Boolean, Category

__all__ = [
    "Boolean",
    "Category",
    "ClassTarget",
    "Column",
    "ColumnCheck",
    "Fill",
    "Ignored",
    "Indicator",
    "Intervals",
    "Missing",
    "Neutral",
    "Number",
    "NumberTarget",
    "OpenCategory",
    "OpenNumber",
    "Schema",
    "SchemaEncoder",
    "SchemaError",
    "TableError",
    "Target",
    "Unit",
    "check_file",
    "draft_schema",
    "encode_file",
    "encode_rows",
    "encode_table",
    "read_batches",
    "read_table",
]
