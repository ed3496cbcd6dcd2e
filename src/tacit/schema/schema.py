"""Declare the public facts of a table: its columns, target and privacy unit."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tacit.io.errors import SchemaError
from tacit.schema import _check
from tacit.schema.column_kinds import Boolean, Category, Number, OpenCategory, OpenNumber
from tacit.schema.columns import Column, Ignored, OfLevels
from tacit.schema.targets import ClassTarget, NumberTarget, Target
from tacit.table_facts import SourceColumn, TableFacts


@dataclass(frozen=True)
class Unit(Ignored):
    """A column that identifies people, such as a patient's number: never a feature.

    Only a fit reads it, to group the records of each person, who is then protected with all
    of them. A prediction does not need it.

    Examples
    --------
    >>> from tacit.schema import Unit
    >>> Unit("patient number").names()
    []
    """

    kind: ClassVar[str] = "unit"


@dataclass(frozen=True)
class Schema:
    """The columns of a table with their public facts.

    Parameters
    ----------
    columns
        `Number`, `Intervals`, `Category`, `Boolean`, `Ignored` and `Unit`; features come in this
        order.
    target
        `ClassTarget` or `NumberTarget`: the column to predict, if any.
    n_records
        The number of records, if it is public.
    unconfirmed
        The names of columns whose lines were guessed from the data and not confirmed.

    Notes
    -----
    **Assumes**. The declarations do not come from the records. If they do, the guarantee does
    not cover them; ``unconfirmed`` and `assumptions` say so.

    **Guarantee**

    1. A row of features depends only on its own record and on the schema.
    2. No row is longer than `row_norm`, and some record attains it.

    Examples
    --------
    >>> from tacit.schema import Category, ClassTarget, Number, Schema
    >>> schema = Schema(
    ...     columns=(Number("age", 17, 90), Category("sex", ("Female", "Male"))),
    ...     target=ClassTarget("income", ("<=50K", ">50K")),
    ... )
    >>> schema.feature_names
    ('age', 'sex=Female', 'sex=Male')
    >>> print(schema.to_toml())
    [columns]
    age = { kind = "number", lower = 17, upper = 90 }
    sex = { kind = "category", values = ["Female", "Male"] }
    income = { kind = "target", classes = ["<=50K", ">50K"] }
    <BLANKLINE>
    """

    columns: tuple[Column, ...]
    target: Target | None = None
    n_records: int | None = None
    unconfirmed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "unconfirmed", tuple(self.unconfirmed))
        _check_names(self.names, "column", "declare each column once")
        _check_names(self.feature_names, "feature", "rename a column")
        if self.n_records is not None:
            _check_count(self.n_records)
        units = [column.name for column in self.columns if isinstance(column, Unit)]
        if len(units) > 1:
            raise SchemaError(
                f"column {_check.shown(units[1])}: kind = 'unit' a second time, after "
                f"{_check.shown(units[0])}; only one column can be the unit: ignore the other."
            )
        strangers = set(self.unconfirmed) - set(self.names)
        if strangers:
            raise SchemaError(
                f"unconfirmed names {_check.shown(min(strangers))}, which is not a column."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, the target last."""
        target = () if self.target is None else (self.target.name,)
        return (*(column.name for column in self.columns), *target)

    @property
    def encoded(self) -> tuple[Column, ...]:
        """The columns that become features."""
        return tuple(column for column in self.columns if not isinstance(column, Ignored))

    @property
    def has_indicators_alone(self) -> bool:
        """Whether every feature of every record is 0 or 1."""
        return all(isinstance(c, OfLevels) and c.reference is None for c in self.encoded)

    @property
    def unit(self) -> str | None:
        """The name of the unit column, if there is one."""
        return next((column.name for column in self.columns if isinstance(column, Unit)), None)

    @property
    def open_numbers(self) -> tuple[str, ...]:
        """The names of the features with bounds to learn."""
        return tuple(c.names()[0] for c in self.columns if isinstance(c, OpenNumber))

    @property
    def open_words(self) -> dict[str, int]:
        """The columns with words to learn, and the largest number of words of each."""
        return {c.name: c.max_values for c in self.columns if isinstance(c, OpenCategory)}

    @property
    def is_open(self) -> bool:
        """Whether a pipeline must learn bounds or words before it can encode the table."""
        return bool(self.open_words or self.open_numbers)

    def refuse_open(self) -> None:
        """Raise if bounds or words are left to learn, which only a `PrivatePipeline` does."""
        names = [*self.open_words, *self.open_numbers]
        if names:
            raise SchemaError(
                f"the schema leaves {', '.join(map(repr, names))} open, to be learned under "
                "the budget; fit a PrivatePipeline that begins with a SchemaEncoder of it, as "
                "tacit fit does."
            )

    def with_words(self, learned: Mapping[str, Sequence[str]]) -> Schema:
        """Return the schema with the released words of its open categories."""
        columns = tuple(
            replace(column, learned=_without(learned[column.name], column.missing_codes))
            if isinstance(column, OpenCategory)
            else column
            for column in self.columns
        )
        return replace(self, columns=columns)

    def with_references(self) -> Schema:
        """Return the schema in which every category and interval is compared with a reference.

        The reference is the first of a column's levels, unless the column declares another.
        Standard errors beside an intercept need one: see `Category`.

        Examples
        --------
        >>> from tacit.schema import Category, Schema
        >>> schema = Schema((Category("ward", ("A", "B", "C")),)).with_references()
        >>> schema.feature_names, schema.references
        (('ward=B', 'ward=C'), {'ward': 'A'})
        """
        columns = tuple(c.with_reference() if isinstance(c, OfLevels) else c for c in self.columns)
        return replace(self, columns=columns)

    @property
    def references(self) -> dict[str, str]:
        """The columns with a reference level, and that level."""
        levelled = (column for column in self.columns if isinstance(column, OfLevels))
        return {c.name: c.reference for c in levelled if c.reference is not None}

    def check_references(self, estimator: Any) -> None:
        """Refuse an estimator that requests undefined standard errors.

        They are undefined if a column has a feature for each level beside an intercept, and if
        words are to be learned, since a feature without a word is zero in every record.
        """
        share = getattr(estimator, "inference", 0.0)
        if not share or not hasattr(estimator, "fit_intercept"):
            return
        if self.open_words:
            raise SchemaError(
                f"inference={share!r} while the words of {_listed(self.open_words)} are to be "
                "learned: a feature without a word is zero in all records, so standard errors "
                "are undefined. Set inference=0, or learn the words in a fit of "
                "their own and declare them, kind = 'category' with values = [...]."
            )
        whole = [c.name for c in self.columns if isinstance(c, OfLevels) and c.lacks_reference]
        if whole and estimator.fit_intercept:
            raise SchemaError(
                f"inference={share!r} beside an intercept, and a feature for each level of "
                f"{_listed(whole)}: these add up to the intercept, so standard errors are "
                "undefined. Pass schema.with_references(), which compares levels "
                "with the first, or write reference = ... in the schema's line."
            )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, in the order of the columns."""
        return tuple(name for column in self.columns for name in column.names())

    @property
    def effect_units(self) -> tuple[tuple[str, float], ...]:
        """The unit in which the effect of each feature is told: a name and a factor.

        The effect is the coefficient times the factor, which is 1 unless ``per`` is declared.

        Examples
        --------
        >>> from tacit.schema import Number, Schema
        >>> Schema((Number("age", 10, 110, per=10),)).effect_units
        (('age (per 10)', 0.1),)
        """
        return tuple(unit for column in self.columns for unit in column.effect_units())

    @property
    def row_norm(self) -> float:
        """The largest possible L2 norm of a row of features."""
        # Each column attains its largest norm independently of the others: see `columns`.
        return math.hypot(*(column.largest for column in self.columns))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions that a guarantee must repeat: the lines guessed from the data."""
        if not self.unconfirmed:
            return ()
        names = ", ".join(map(repr, self.unconfirmed))
        return (
            f"what the schema says of {names} was guessed from the data, was not confirmed by a "
            "person and does not have to be protected",
        )

    @property
    def facts(self) -> TableFacts:
        """The public facts of the encoded table, for an estimator."""
        target = self.target
        return TableFacts(
            self.feature_names,
            self.row_norm,
            self.n_records,
            classes=target.classes if isinstance(target, ClassTarget) else None,
            label_range=(
                (target.lower, target.upper) if isinstance(target, NumberTarget) else None
            ),
            assumptions=self.assumptions,
            of_people=self.unit is not None,
            ranges=tuple(pair for column in self.columns for pair in column.ranges()),
            sources=tuple(
                SourceColumn(column.name, len(column.names()), column.largest)
                for column in self.columns
                if column.names()
            ),
        )

    def with_target(self, name: str) -> Schema:
        """Return the schema with another column as the target.

        A category becomes its classes, a boolean two classes named by the first of their
        words, and a number its range. The schema must not have another target.
        """
        if name not in self.names:
            raise SchemaError(
                f"the schema has no column {_check.shown(name)} to be the target; "
                f"{_check.nearest(name, self.names)}."
            )
        if self.target is not None:
            if self.target.name == name:
                return self
            raise SchemaError(
                f"the schema's target is {_check.shown(self.target.name)}, not "
                f"{_check.shown(name)}; change the kind of one of them in the schema."
            )
        (found,) = (column for column in self.columns if column.name == name)
        rest = tuple(column for column in self.columns if column.name != name)
        return replace(self, columns=rest, target=_as_target(found))

    def with_unit(self, name: str) -> Schema:
        """Return the schema with a column as the unit; the column need not be declared.

        The schema must not have another unit, and the column must not be the target.
        """
        if self.unit == name:
            return self
        if self.unit is not None:
            raise SchemaError(
                f"the schema's unit is {_check.shown(self.unit)}, not {_check.shown(name)}; change "
                "the kind of one of them in the schema."
            )
        if self.target is not None and self.target.name == name:
            raise SchemaError(f"{_check.shown(name)} is the target; it cannot be the unit as well.")
        rest = tuple(column for column in self.columns if column.name != name)
        unconfirmed = tuple(other for other in self.unconfirmed if other != name)
        return replace(self, columns=(*rest, Unit(name)), unconfirmed=unconfirmed)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and dictionaries, for JSON."""
        from tacit.schema.schema_file import schema_to_dict

        return schema_to_dict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Schema:
        """Return the schema of `to_dict`, or of the content of a schema file."""
        from tacit.schema.schema_file import schema_from_dict

        return schema_from_dict(record)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Schema:
        """Return the schema of a ``.toml`` or ``.json`` file.

        Raises
        ------
        SchemaError
            Names the file, the column, the key and the remedy.
        """
        from tacit.schema.schema_file import read_schema

        return read_schema(path)

    def to_toml(self) -> str:
        """Return the content of a schema file."""
        from tacit.schema.schema_file import schema_to_toml

        return schema_to_toml(self)

    def digest(self) -> str:
        """Return the SHA-256 of the schema's canonical JSON: the same for the same facts."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode("ascii")).hexdigest()


def _without(words: Sequence[str], missing_codes: Sequence[str]) -> tuple[str, ...]:
    """Return learned words without those that mean a missing value."""
    return tuple(word for word in words if word not in missing_codes)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_check.shown, names))


def _as_target(column: Column) -> Target:
    if isinstance(column, Category):
        levels = (column.values, column.words)
        return ClassTarget(column.name, *levels, column.fold_case, column.missing_codes)
    if isinstance(column, Number):
        return NumberTarget(column.name, column.lower, column.upper, column.missing_codes)
    if isinstance(column, Boolean):
        words = (column.false, column.true)
        merged = None if len(column.true) == len(column.false) == 1 else words
        names = (column.false[0], column.true[0])
        return ClassTarget(column.name, names, merged, column.fold_case, column.missing_codes)
    raise SchemaError(
        f"column {_check.shown(column.name)}: a column of kind {column.kind!r} declares no labels; "
        'write { kind = "target", classes = [...] } or lower and upper.'
    )


def _check_names(names: Sequence[str], what: str, remedy: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise SchemaError(f"two {what}s are named {_check.shown(twice)}; {remedy}.")


def _check_count(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**63:
        raise SchemaError(
            f"n_records must be a whole number of at least 1, got {_check.shown(value)}; leave it "
            "out where the number of records is not public."
        )
