"""Adapt scikit-learn transformers as steps: stateless ones, and ones a user vouches for.

A stateless transformer is fitted to a made-up record, from which it takes only the number of
columns.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import Binarizer, Normalizer, OneHotEncoder, PolynomialFeatures

from tacit.metrics.predictions import in_halves, taken
from tacit.records.bounds import checked_row_norm
from tacit.row_clipping import clipped_rows
from tacit.table_facts import TableFacts, check_row_by_row


class Vouched(TransformerMixin, BaseEstimator):
    """Any transformer whose user vouches that it learns nothing and maps each record by itself.

    This cannot be proved. ``FunctionTransformer(lambda X: X - X.mean(0))`` mixes rows, and with it
    no guarantee would hold. A test on made-up rows finds and refuses this example, but not
    a transformer that mixes rows only for other values, so the guarantee repeats the user's
    assumption. The transformer is never fitted. A record that it fails on becomes a row of zeros.

    Parameters
    ----------
    transformer : transformer
        Has ``transform``.
    row_norm : float
        Longer rows are scaled down to this norm.
    n_features_out : int or None
        The number of output columns; None for as many as the input has.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from tacit.pipeline import Vouched
    >>> step = Vouched(FunctionTransformer(np.log1p), row_norm=2.0)
    >>> step.transform(np.array([[0.0, 1.0]])).round(2)
    array([[0.  , 0.69]])
    """

    def __init__(
        self, transformer: Any, *, row_norm: float, n_features_out: int | None = None
    ) -> None:
        self.transformer = transformer
        self.row_norm = row_norm
        self.n_features_out = n_features_out

    def __sklearn_tags__(self) -> Any:
        """Declare that there is nothing to fit."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Do nothing; ``X`` is ignored."""
        return self

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the public facts of the output rows, with the user's assumption."""
        if facts is None:
            raise ValueError("a Vouched step takes the rows of a step before it.")
        self._check_on_zeros(len(facts.names))
        kind = type(self.transformer).__name__
        check_row_by_row(kind, self, facts)
        names = facts.names
        if self.n_features_out is not None:
            names = tuple(f"{kind.lower()}{place}" for place in range(self.n_features_out))
        sentence = (
            f"a step of the pipeline ({kind}) makes each row from its own record alone and learns "
            "nothing from the records, for which its user vouches"
        )
        return replace(
            facts,
            names=names,
            row_norm=checked_row_norm(self.row_norm),
            ranges=None,
            assumptions=(*facts.assumptions, sentence),
        )

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Return the transformer's rows, scaled down; values that are not numbers become 0."""
        rows = np.zeros((X.shape[0], self._width(X.shape[1])))
        in_halves(lambda places: self._made(taken(X, places)), np.arange(X.shape[0]), rows)
        return clipped_rows(np.where(np.isfinite(rows), rows, 0.0), self.row_norm)

    def _made(self, X: Any) -> npt.NDArray[np.float64]:
        found = self.transformer.transform(X)
        rows = np.asarray(found.toarray() if hasattr(found, "toarray") else found, np.float64)
        if rows.shape != (X.shape[0], self._width(X.shape[1])):
            raise ValueError(
                f"{type(self.transformer).__name__} must give one row of {self._width(X.shape[1])} "
                "columns for each record; declare n_features_out=..."
            )
        return rows

    def _width(self, n_columns: int) -> int:
        return n_columns if self.n_features_out is None else self.n_features_out

    def _check_on_zeros(self, n_columns: int) -> None:
        """Refuse a transformer that fails on a row of zeros, before records are read."""
        with np.errstate(all="ignore"):
            try:
                self._made(np.zeros((1, n_columns)))
            except Exception as why:
                raise ValueError(
                    f"{type(self.transformer).__name__} fails on a made-up record of zeros: {why}"
                ) from why


Ranges = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Stateless:
    """One of `KNOWN`; its output norm follows from its input facts."""

    transformer: Any

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the public facts of the output rows."""
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
        """Transform rows; a row that is not finite, before or after, becomes zeros."""
        given = np.array(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        odd = ~np.isfinite(given).all(axis=1)
        given[odd] = 0.0  # scikit-learn would raise, and the error would reveal a record
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about an overflow would reveal a record
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
    """Bound monomials by the columns' ranges, and the sum of squares by powers of the row norm.

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
    """Return whether a transformer of scikit-learn is one of `KNOWN` with supported settings."""
    if type(transformer) is OneHotEncoder:
        given = not isinstance(transformer.categories, str)
        unlimited = transformer.min_frequency is None and transformer.max_categories is None
        return given and unlimited and transformer.handle_unknown == "ignore"
    return type(transformer) in KNOWN
