"""A scikit-learn transformer that learns nothing from data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from tacit.preprocessing.encoding import (
    encode_file,
    encode_rows,
    encode_table,
    refuse_file_without_columns,
    refuse_without_columns,
)
from tacit.preprocessing.errors import SchemaError, TableError
from tacit.preprocessing.files.memory_tables import chunks, n_rows_of, names_of, refuse_absent
from tacit.preprocessing.files.several import Paths
from tacit.preprocessing.schema.schema import Schema
from tacit.table_facts import EncodedTable, TableFacts


def check_schema(schema: object) -> None:
    """Refuse what is no schema, such as the path of one.

    Examples
    --------
    >>> from tacit.preprocessing.encoder import check_schema
    >>> check_schema("schema.toml")
    Traceback (most recent call last):
    TypeError: schema must be a Schema, got str; pass Schema.from_file('schema.toml').
    """
    if not isinstance(schema, Schema):
        raise TypeError(
            f"schema must be a Schema, got {type(schema).__name__}; pass "
            "Schema.from_file('schema.toml')."
        )


class SchemaEncoder(TransformerMixin, BaseEstimator):
    """Turns a table into features by its public schema.

    Numbers are clipped to their declared range and mapped to [-1/2, 1/2]; a category has a feature
    for each declared value, and a value that is not declared gives zeros; missing values are
    treated as declared.

    Parameters
    ----------
    schema : Schema
        What is public about the table.
    dtype : data type, default=numpy.float64
        The type of the features.
    allow_unconfirmed : bool, default=False
        Whether to go on although the schema has lines that were guessed from the data and that
        nobody has confirmed. `tacit.TableModel` and `tacit.Pipeline` then say so in the guarantee;
        scikit-learn's own Pipeline cannot.

    Attributes
    ----------
    row_norm_ : float
        The largest possible norm of a row, for an estimator's ``row_norm``.
    n_features_in_, feature_names_in_
        The columns that are read.

    Notes
    -----
    **Guarantee**

    1. Nothing is read in `fit`, which needs no data.
    2. A row depends on its own record and on the schema, on nothing else.
    3. No row is longer than ``row_norm_``, and some record has a row of that length.

    Examples
    --------
    >>> import pandas as pd
    >>> from tacit.preprocessing import Category, Number, Schema, SchemaEncoder
    >>> schema = Schema((Number("age", 0, 100), Category("sex", ("Female", "Male"))))
    >>> encoder = SchemaEncoder(schema).fit()
    >>> encoder.transform(pd.DataFrame({"age": [30, 130], "sex": ["Male", "?"]}))
    array([[-0.2,  0. ,  1. ],
           [ 0.5,  0. ,  0. ]])
    >>> round(encoder.row_norm_, 3)
    1.118
    """

    def __init__(
        self,
        schema: Schema,
        dtype: npt.DTypeLike = np.float64,
        *,
        allow_unconfirmed: bool = False,
    ) -> None:
        self.schema = schema
        self.dtype = dtype
        self.allow_unconfirmed = allow_unconfirmed

    def __sklearn_tags__(self) -> Any:
        """Declare that there is nothing to fit."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the schema; neither ``X`` nor ``y`` is looked at."""
        columns = self._columns()
        self.row_norm_ = self.facts_out().row_norm
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        return self

    def _columns(self) -> tuple[Any, ...]:
        check_schema(self.schema)
        if not self.schema.encoded:
            raise SchemaError("every column of the schema is ignored; declare one that is not.")
        return self.schema.encoded

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return what is public of the encoded table; nothing need be known of the raw one."""
        check_schema(self.schema)
        if self.schema.unconfirmed and not self.allow_unconfirmed:
            names = ", ".join(map(repr, self.schema.unconfirmed))
            raise SchemaError(
                f"nobody has confirmed what the schema says of {names}: it was guessed from the "
                "data, which would leak. Check each line and remove its `confirmed = false`, or "
                "pass allow_unconfirmed=True, and the guarantee will say so."
            )
        return self.schema.facts

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Return the features of every record.

        Parameters
        ----------
        X
            A pandas or polars frame, a pyarrow Table or RecordBatch, a dictionary of columns, or
            a NumPy array with named fields. Columns that the schema does not declare are not read.
        """
        return encode_rows(X, self._columns(), self.dtype)

    def unread(
        self, X: Any, y: Any = None, unit: Any = None, *, with_people: bool = True
    ) -> EncodedTable:
        """Return the features and labels of a table, encoded when they are read, with their facts.

        Records whose label the schema does not declare are left out.

        Parameters
        ----------
        X
            A table as in `transform`. That it has the declared columns is checked now.
        y
            The target, one value a record, if it is not a column of the table.
        unit
            Whose each record is, one identifier a record, if no column of the schema says so.
        with_people
            Whether to ask whose the records are, if the schema says so; a score does not.
        """
        self.facts_out()  # refuses what nobody has confirmed
        schema, table, columns = self.schema, X, self._columns()
        if not with_people:
            schema = replace(schema, columns=columns, unconfirmed=())
        if y is not None and schema.target is not None:
            table = self._with_column(table, schema.target.name, y, "target")
        if unit is not None:
            name = _unused_name(schema)
            schema = schema.with_unit(name)
            table = self._with_column(table, name, unit, "identifier")
        named: list[Any] | None = None if schema.unit is None else []
        places: list[int] = []
        if schema.target is None and y is None:
            unit_name = [] if schema.unit is None else [schema.unit]
            refuse_absent(names_of(table), [*(column.name for column in columns), *unit_name])
        else:
            refuse_without_columns(table, schema)

        def read() -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
            if named is not None:
                named.clear()
            if schema.target is not None:
                places.clear()
                return encode_table(table, schema, self.dtype, identifiers=named, places=places)
            if named is not None and schema.unit is not None:
                for _, chunk in chunks(table, [schema.unit]):
                    named.extend(chunk[schema.unit].raw())
            return self.transform(table), None

        kept = places if schema.target is not None else None
        return EncodedTable(schema.facts, read, named=named, places=kept)

    def unread_file(
        self,
        path: Paths,
        *,
        delimiter: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> EncodedTable:
        """Return the features and labels of a file, encoded when they are read, with their facts.

        That it has the declared columns is checked now; arguments as in `encode_file`.
        """
        self.facts_out()  # refuses what nobody has confirmed
        refuse_file_without_columns(path, self.schema, delimiter=delimiter)
        named: list[Any] | None = None if self.schema.unit is None else []

        def read() -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
            if named is not None:
                named.clear()
            return encode_file(
                path,
                self.schema,
                self.dtype,
                delimiter=delimiter,
                progress=progress,
                identifiers=named,
            )

        return EncodedTable(self.schema.facts, read, named=named, is_a_file=True)

    def _with_column(self, table: Any, name: str, values: Any, what: str) -> Any:
        """Return a table with one column more."""
        schema, present = self.schema, names_of(table)
        names = [column.name for column in schema.encoded]
        refuse_absent(present, names)
        also = [schema.unit, None if schema.target is None else schema.target.name]
        names += [other for other in also if other is not None and other in present]
        if isinstance(values, str):
            word, declare = (
                repr(values[:80]),
                "with_unit" if what == "identifier" else "with_target",
            )
            raise TableError(
                f"the {what} is a word, {word}, and not one value for each record; pass the column "
                f"itself, table[{word}], or declare it in the schema: schema.{declare}({word})."
            )
        ndim, sized = getattr(values, "ndim", 1), hasattr(values, "__len__")
        if ndim != 1 or not sized or len(values) != n_rows_of(table):
            raise TableError(
                f"the table and the {what} have different lengths, or there is more than one "
                f"{what} a record; pass one value for each record."
            )
        return {**{other: table[other] for other in names}, name: values}

    def encode_target(self, X: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the labels of the records that have one, and which records those are.

        A record whose label the schema does not declare does not count, as in the estimators:
        an error, or a count of such records, would tell of them.
        """
        target = self.schema.target
        if target is None:
            raise SchemaError("the schema has no target; declare one, or pass labels yourself.")
        parts = [target.encode(chunk[target.name]) for _, chunk in chunks(X, [target.name])]
        labels = [target.labels[:0], *(labels for labels, _ in parts)]
        kept = [np.zeros(0, dtype=bool), *(kept for _, kept in parts)]
        return np.concatenate(labels), np.concatenate(kept)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the features."""
        return np.array(self.schema.feature_names, dtype=object)


def _unused_name(schema: Schema) -> str:
    """Return a name for the column that ``unit=`` becomes."""
    name = "unit"
    while name in schema.names:
        name += "_"
    return name
