"""Transformers of scikit-learn that learn nothing, as steps that know what is public of their rows.

Each is fitted to a made-up record, which tells it the number of columns and nothing else.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.preprocessing import Binarizer, Normalizer, OneHotEncoder, PolynomialFeatures

from tacit.table_facts import TableFacts

Ranges = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Stateless:
    """One of `KNOWN`, which gives rows of a norm that follows from what it takes."""

    transformer: Any

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return what is public of its rows."""
        if facts is None:
            raise ValueError("the step takes the rows of a step before it.")
        made = self._made(len(facts.names))
        try:
            self.transform(np.zeros((1, len(facts.names))))
        except (TypeError, ValueError) as why:
            raise TypeError(
                f"{type(self.transformer).__name__} fails on a made-up row of {len(facts.names)} "
                f"numbers ({why}); its categories must be numbers, as rows of a pipeline are."
            ) from why
        row_norm, ranges = KNOWN[type(self.transformer)](made, facts)
        names = tuple(map(str, made.get_feature_names_out(list(facts.names))))
        return replace(facts, names=names, row_norm=row_norm, ranges=ranges)

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Return its rows; one that is not finite, taken or given, is zeros, as everywhere."""
        given = np.array(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        odd = ~np.isfinite(given).all(axis=1)
        given[odd] = 0.0  # scikit-learn would refuse it, and all others with it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a value that overflows: it would tell of a record
            made = self._made(given.shape[1]).transform(given)
        rows = np.array(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
        rows[odd | ~np.isfinite(rows).all(axis=1)] = 0.0
        return rows

    def _made(self, n_columns: int) -> Any:
        record: Any = np.zeros((1, n_columns))
        if isinstance(self.transformer, OneHotEncoder):
            record = np.array([[words[0] for words in self.transformer.categories]])
        return clone(self.transformer).fit(record)


def _polynomial(made: Any, facts: TableFacts) -> tuple[float, Ranges | None]:
    """Bound monomials by the columns' ranges, and their squares' sum by powers of the row norm.

    The squares of all monomials of degree k are among the terms of (sum x_i^2)^k.
    """
    degrees = made.powers_.sum(axis=1)
    by_norm = math.sqrt(sum(facts.row_norm ** (2 * int(k)) for k in np.unique(degrees)))
    if facts.ranges is None:
        return by_norm, None
    largest = np.max(np.abs(np.array(facts.ranges)), axis=1)
    each = np.prod(largest**made.powers_, axis=1)
    ranges = tuple(
        (0.0 if not k else -float(b), float(b)) for k, b in zip(degrees, each, strict=True)
    )
    return min(by_norm, float(np.linalg.norm(each))), ranges


def _one_hot(made: Any, facts: TableFacts) -> tuple[float, Ranges | None]:
    return math.sqrt(len(facts.names)), ((0.0, 1.0),) * len(made.get_feature_names_out())


def _normalizer(made: Any, facts: TableFacts) -> tuple[float, Ranges | None]:
    # An entry of an L1- or L2-normalised row is at most 1, and so is the row's L2 norm.
    row_norm = math.sqrt(len(facts.names)) if made.norm == "max" else 1.0
    return row_norm, ((-1.0, 1.0),) * len(facts.names)


def _binarizer(_: Any, facts: TableFacts) -> tuple[float, Ranges | None]:
    return math.sqrt(len(facts.names)), ((0.0, 1.0),) * len(facts.names)


KNOWN: dict[type[Any], Callable[[Any, TableFacts], tuple[float, Ranges | None]]] = {
    Binarizer: _binarizer,
    Normalizer: _normalizer,
    OneHotEncoder: _one_hot,
    PolynomialFeatures: _polynomial,
}


def learns_nothing(transformer: Any) -> bool:
    """Return whether a transformer of scikit-learn is one of `KNOWN`, with settings that are."""
    if type(transformer) is OneHotEncoder:
        given = not isinstance(transformer.categories, str)
        unlimited = transformer.min_frequency is None and transformer.max_categories is None
        return given and unlimited and transformer.handle_unknown == "ignore"
    return type(transformer) in KNOWN
