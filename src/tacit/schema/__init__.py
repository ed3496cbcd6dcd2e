"""Declare what is public about a table, and encode its records as rows of features."""

from tacit.io.errors import SchemaError, TableError
from tacit.schema.column_kinds import (
    Boolean,
    Category,
    Intervals,
    Number,
    OpenCategory,
    OpenNumber,
)
from tacit.schema.columns import Fill, Ignored, Indicator, Neutral
from tacit.schema.date_kinds import Age, Weekday, Year
from tacit.schema.draft import draft_schema
from tacit.schema.encoding import SchemaEncoder, check_file, encode_file, encode_table
from tacit.schema.schema import Schema, Unit
from tacit.schema.targets import ClassTarget, NumberTarget

__all__ = [
    "Age",
    "Boolean",
    "Category",
    "ClassTarget",
    "Fill",
    "Ignored",
    "Indicator",
    "Intervals",
    "Neutral",
    "Number",
    "NumberTarget",
    "OpenCategory",
    "OpenNumber",
    "Schema",
    "SchemaEncoder",
    "SchemaError",
    "TableError",
    "Unit",
    "Weekday",
    "Year",
    "check_file",
    "draft_schema",
    "encode_file",
    "encode_table",
]
