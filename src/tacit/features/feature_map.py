"""What all maps of rows share: scikit-learn's manners, and facts that go from step to step."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, validate_data

from tacit.features.domain import Domain, declared_domain, domain_of
from tacit.records import MappedRows, RowMap, as_rows, shape_of
from tacit.table_facts import EncodedTable, TableFacts

Array = npt.NDArray[np.float64]


class FeatureMap(TransformerMixin, BaseEstimator):
    """A transformer that learns nothing: public parameters and public facts say what it does.

    A member says which `RowMap` it is on a `Domain`, how its columns are called and what is the
    greatest norm of its rows.

    **Guarantee**

    1. `fit` reads no value: columns are noted, and the facts of an `EncodedTable`.
    2. A row depends on the row it is made of and on public facts, to the last bit.
    3. No row is longer than the norm of `facts_out`, but for rounding, if the rows it is made of
       are as declared; ranges are enforced where the norm depends on them.
    """

    row_norm: float | None
    ranges: Any

    def __sklearn_tags__(self) -> Any:
        """Declare that there is nothing to fit, and sparse rows."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def row_map(self, domain: Domain) -> RowMap:
        """Return what makes a row of one in the domain."""

    @abstractmethod
    def output(self, domain: Domain) -> Domain:
        """Return where the rows it makes are: their names, greatest norm and ranges."""

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Note the columns of a table, or the facts that come with it; no value is read."""
        self.__dict__.pop("domain_", None)  # of an earlier table
        if isinstance(X, EncodedTable | TableFacts):
            facts = X.facts if isinstance(X, EncodedTable) else X
            self.n_features_in_ = len(facts.names)
            self.domain_ = self._domain_of(facts)
        elif X is not None:
            shape_of(X)
            validate_data(self, X, skip_check_array=True)
            self.domain_ = self._declared(self.n_features_in_)
        if X is not None:
            self.output(self.domain_)  # refuses parameters that do not fit
        return self

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return what is public of the rows it makes, from what is public of those it takes."""
        if facts is None:
            out = self.output(self._domain())
            return TableFacts(out.names, out.longest, ranges=out.ranges)
        out = self.output(self._domain_of(facts))
        return replace(facts, names=out.names, row_norm=out.longest, ranges=out.ranges)

    def transform(self, X: Any) -> Array:
        """Return the features of every row."""
        rows, _ = as_rows(X)
        if hasattr(self, "n_features_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        return np.asarray(self.mapped(rows))

    def mapped(self, rows: Any) -> MappedRows:
        """Return the features of rows that are read already, made when they are looked at."""
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
        """Return where the rows of a table are: as it says, or, where it does not, as declared."""
        if math.isinf(facts.row_norm) and facts.ranges is None:
            return declared_domain(list(facts.names), self.row_norm, self.ranges)
        return domain_of(facts)

    def _declared(self, n_columns: int) -> Domain:
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(n_columns)])
        return declared_domain(names, self.row_norm, self.ranges)
