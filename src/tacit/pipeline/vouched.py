"""A transformer that handles each record by itself, because somebody says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from tacit.metrics.reading import in_halves, taken
from tacit.records.bounds import checked_row_norm
from tacit.row_clipping import clipped_rows
from tacit.table_facts import TableFacts, check_rows_apart


class Vouched(TransformerMixin, BaseEstimator):
    """Any transformer, vouched for: it learns nothing, and a row depends on its record alone.

    Nothing can prove that. ``FunctionTransformer(lambda X: X - X.mean(0))`` mixes rows, and with it
    no guarantee would hold. It is tried on made-up rows, where this one is found and refused;
    what mixes rows only of other values is not, so the guarantee repeats what was vouched for. The
    transformer is never fitted. A row of zeros stands for a record that it fails on.

    Parameters
    ----------
    transformer : transformer
        Has ``transform``.
    row_norm : float
        Rows longer than this are scaled down to it.
    n_features_out : int or None
        How many columns it gives; None for as many as it takes.

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
        """Do nothing: ``X`` is not looked at."""
        return self

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return what is public of its rows, with the sentence that was vouched for."""
        if facts is None:
            raise ValueError("a vouched-for step takes the rows of a step before it.")
        self._check_on_zeros(len(facts.names))
        kind = type(self.transformer).__name__
        check_rows_apart(kind, self, facts)
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
        """Return the transformer's rows, scaled down; what is not a number there counts as 0."""
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
        """Refuse, before records are read, what would fail on all of them."""
        with np.errstate(all="ignore"):
            try:
                self._made(np.zeros((1, n_columns)))
            except Exception as why:
                raise ValueError(
                    f"{type(self.transformer).__name__} fails on a made-up record of zeros: {why}"
                ) from why
