"""Define public feature maps: the domain of their rows, and their base class."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, validate_data

from tacit import checks
from tacit.records import RowMap
from tacit.records.lazy_table import MappedRows
from tacit.records.rows_and_labels import as_rows, shape_of
from tacit.row_clipping import clip_factors, row_norms
from tacit.table_facts import EncodedTable, SourceColumn, TableFacts

Array = npt.NDArray[np.float64]
Ranges = tuple[tuple[float, float], ...]

# The row norm if nothing is declared, as in the estimators.
_UNDECLARED_NORM = 1.0


@dataclass(frozen=True)
class Domain:
    """The possible rows: of norm at most ``row_norm``, each number within its range.

    Parameters
    ----------
    names
        The names of the columns.
    row_norm
        The greatest norm of a row.
    ranges
        The least and the greatest value of each column, if known.

    Examples
    --------
    >>> from tacit.features import Domain
    >>> Domain(("a", "b"), 9.0, ((0.0, 3.0), (-4.0, 1.0))).longest
    5.0
    """

    names: tuple[str, ...]
    row_norm: float
    ranges: Ranges | None = None

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.names)

    @property
    def largest_values(self) -> Array:
        """The greatest absolute value of each column."""
        if self.ranges is None:
            return np.full(self.n_columns, self.row_norm)
        farthest = np.abs(np.array(self.ranges)).max(axis=1)
        return np.asarray(np.minimum(farthest, self.row_norm))

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """The group of each column; here each is by itself."""
        return np.arange(self.n_columns)

    @property
    def largest_squares(self) -> Array:
        """The greatest squared norm of the columns of each group."""
        return np.asarray(self.largest_values**2)

    @property
    def longest(self) -> float:
        """The greatest norm of a row in the domain."""
        # the farthest corner of the ranges, or the sphere if that is nearer
        return min(self.row_norm, math.hypot(*self.largest_values))

    @property
    def widths(self) -> Array:
        """The width of the range of each column."""
        if self.ranges is None:
            return np.full(self.n_columns, 2.0 * self.row_norm)
        low, high = np.array(self.ranges).T
        return np.asarray(high - low)

    def held(self, rows: Any) -> Array:
        """Return dense rows within the domain: values clipped, then rows scaled down."""
        dense = rows.toarray() if hasattr(rows, "tocsr") else rows
        dense = dense.astype(np.float64, copy=False)
        if self.ranges is not None:
            low, high = np.array(self.ranges).T
            dense = np.clip(dense, low, high)
        factors = clip_factors(row_norms(dense), self.row_norm, self.n_columns)
        return np.asarray(dense * factors[:, None] if np.any(factors < 1.0) else dense)


# Rounded up, so that rows whose source columns attain their norms are unchanged.
_SLACK = 1 + 2.0**-20


@dataclass(frozen=True)
class GroupedDomain(Domain):
    """The possible rows of features that were made of columns of a raw table.

    The features of one source column are neighbours, and together have at most its norm.

    Examples
    --------
    >>> from tacit.features.feature_map import GroupedDomain
    >>> from tacit.table_facts import SourceColumn
    >>> ward = SourceColumn("ward", 2, 1.0)
    >>> rows = GroupedDomain(("ward=A", "ward=B"), 9.0, ((0.0, 1.0),) * 2, (ward,))
    >>> round(rows.longest, 5), rows.groups.tolist()
    (1.0, [0, 0])
    """

    sources: tuple[SourceColumn, ...] = ()

    def __post_init__(self) -> None:
        if sum(source.n_features for source in self.sources) != len(self.names):
            raise ValueError(
                f"sources have {sum(source.n_features for source in self.sources)} features, and "
                f"the rows {len(self.names)}; pass the sources of all features."
            )

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """The number of the source column of each column."""
        return np.repeat(np.arange(len(self.sources)), [s.n_features for s in self.sources])

    @property
    def largest_squares(self) -> Array:
        """The greatest squared norm of the features of each source column."""
        found = super().largest_squares
        norms = np.array([source.norm * _SLACK for source in self.sources])
        added = np.bincount(self.groups, found, len(self.sources))
        return np.asarray(np.minimum(added, np.minimum(norms, self.row_norm) ** 2))

    @property
    def longest(self) -> float:
        """The greatest norm of a row in the domain."""
        return min(self.row_norm, math.sqrt(float(self.largest_squares.sum())))

    def held(self, rows: Any) -> Array:
        """Return dense rows within the domain; features of a source are scaled down first."""
        dense = rows.toarray() if hasattr(rows, "tocsr") else rows
        dense = np.array(dense, dtype=np.float64, order="C")  # a copy, which is written to
        if self.ranges is not None:
            low, high = np.array(self.ranges).T
            np.clip(dense, low, high, out=dense)
        start = 0
        for source in self.sources:
            part = dense[:, start : start + source.n_features]
            start += source.n_features
            if math.isfinite(source.norm):
                norms = row_norms(part)
                factors = clip_factors(norms, source.norm * _SLACK, source.n_features)
                if np.any(factors < 1.0):
                    part *= factors[:, None]
        return super().held(dense)


@dataclass(frozen=True)
class RowByRow:
    """A `RowMap` that writes the features of one row after the other, within a domain."""

    domain: Domain

    @property
    def n_columns(self) -> int:
        """The number of output columns."""
        return self.domain.n_columns

    def __call__(self, rows: Any, out: Array) -> None:
        """Write the features of finite rows to ``out``."""
        for row, made in zip(self.domain.held(rows), out, strict=True):
            made[:] = self.features(row)

    @abstractmethod
    def features(self, row: Array) -> npt.NDArray[Any]:
        """Return the features of a row."""


def declared_domain(names: Sequence[str], row_norm: Any, ranges: Any) -> Domain:
    """Return the domain of the parameters: a norm, and one range for all columns or one for each.

    Examples
    --------
    >>> from tacit.features.feature_map import declared_domain
    >>> declared_domain(["a", "b"], None, (0, 1)).ranges
    ((0.0, 1.0), (0.0, 1.0))
    """
    columns = tuple(map(str, names))
    if ranges is None:
        norm = _UNDECLARED_NORM if row_norm is None else checks.positive("row_norm", row_norm)
        return Domain(columns, norm)
    pairs = np.asarray(ranges, dtype=float)
    pairs = np.broadcast_to(pairs, (len(columns), 2)) if pairs.ndim == 1 else pairs
    if pairs.shape != (len(columns), 2) or not np.all(pairs[:, 0] < pairs[:, 1]):
        raise ValueError(
            f"ranges must be (low, high), or one such pair for each of the {len(columns)} columns, "
            f"low before high, got {ranges!r}."
        )
    if not np.all(np.isfinite(pairs)):
        raise ValueError(f"ranges must be finite, got {ranges!r}; pass what you vouch for.")
    bounds = tuple((float(low), float(high)) for low, high in pairs)
    norm = math.hypot(*np.abs(pairs).max(axis=1))
    # A ball around the whole box has no effect; rounded up, so that the corners are inside.
    norm = norm * (1 + 2.0**-20) if row_norm is None else checks.positive("row_norm", row_norm)
    return Domain(columns, norm, bounds)


def domain_of(facts: TableFacts) -> Domain:
    """Return the domain of a table's rows."""
    return Domain(facts.names, facts.row_norm, facts.ranges)


class FeatureMap(TransformerMixin, BaseEstimator):
    """A transformer that learns nothing: public parameters and public facts determine it.

    A member defines its `RowMap` on a `Domain`, the names of its columns and the greatest norm of
    its rows.

    **Guarantee**

    1. `fit` reads no value: it records the columns, and the facts of an `EncodedTable`.
    2. An output row depends on its input row and on public facts, to the last bit.
    3. No output row is longer than the norm of `facts_out`, up to rounding, if the input rows are
       as declared. Ranges are enforced if the norm depends on them.
    """

    row_norm: float | None
    ranges: Any

    def __sklearn_tags__(self) -> Any:
        """Declare a transformer without a fit, and sparse input."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def row_map(self, domain: Domain) -> RowMap:
        """Return the row map on a domain."""

    @abstractmethod
    def output(self, domain: Domain) -> Domain:
        """Return the domain of the output rows: their names, greatest norm and ranges."""

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Record the columns of a table, or its facts; no value is read."""
        self.__dict__.pop("domain_", None)  # left from an earlier table
        if isinstance(X, EncodedTable | TableFacts):
            facts = X.facts if isinstance(X, EncodedTable) else X
            self.n_features_in_ = len(facts.names)
            self.domain_ = self._domain_of(facts)
        elif X is not None:
            shape_of(X)
            validate_data(self, X, skip_check_array=True)
            self.domain_ = self._declared(self.n_features_in_)
        if X is not None:
            self.output(self.domain_)  # refuses invalid parameters
        return self

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the public facts of the output rows, from those of the input rows."""
        if facts is None:
            out = self.output(self._domain())
            return TableFacts(out.names, out.longest, ranges=out.ranges)
        out = self.output(self._domain_of(facts))
        return replace(
            facts, names=out.names, row_norm=out.longest, ranges=out.ranges, sources=None
        )

    def transform(self, X: Any) -> Array:
        """Return the features of every row."""
        rows, _ = as_rows(X)
        if hasattr(self, "n_features_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        return np.asarray(self.mapped(rows))

    def mapped(self, rows: Any) -> MappedRows:
        """Return the features of rows in memory, computed when they are accessed."""
        known = getattr(self, "domain_", None)
        return MappedRows(rows, self.row_map(known or self._declared(rows.shape[1])))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the features."""
        domain = self._domain()
        if input_features is not None or hasattr(self, "feature_names_in_"):
            names = _check_feature_names_in(self, input_features)
            domain = replace(domain, names=tuple(map(str, names)))
        return np.array(self.output(domain).names, dtype=object)

    def _domain(self) -> Domain:
        if not hasattr(self, "domain_"):
            raise ValueError(
                f"{type(self).__name__} does not know the columns yet; pass a table to fit, which "
                "reads none of its values."
            )
        domain: Domain = self.domain_
        return domain

    def _domain_of(self, facts: TableFacts) -> Domain:
        """Return the domain of a table's rows: that of the table, or the declared one."""
        if math.isinf(facts.row_norm) and facts.ranges is None:
            return declared_domain(list(facts.names), self.row_norm, self.ranges)
        return domain_of(facts)

    def _declared(self, n_columns: int) -> Domain:
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(n_columns)])
        return declared_domain(names, self.row_norm, self.ranges)
