"""Read the scores of a table by a fitted additive model, to evaluate the model on its records.

An evaluation asks a model for its answer to each record. An additive model reads raw columns, so
that a table is turned into scores while it is read, after the charge. A score depends on its own
record and on released terms alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from tacit.additive.terms import Term
from tacit.arrays import Array
from tacit.estimators.parameters import DECLARED_CLASSES
from tacit.io.memory_tables import Chunk
from tacit.schema import Schema
from tacit.table_facts import EncodedTable


def score_chunk(terms: Mapping[str, Term], intercept: float | Array, chunk: Chunk) -> Array:
    """Return the scores of a chunk's records, shape (n, n_outputs)."""
    total: Array = intercept + np.sum([t.scores(chunk[n]) for n, t in terms.items()], axis=0)
    return total


def scored_table(
    schema: Schema,
    score: Callable[[Chunk], Array],
    n_outputs: int,
    read: Callable[[list[str]], Iterator[Chunk]],
    *,
    is_a_file: bool,
) -> EncodedTable:
    """Return the unread scores and labels of a table, with the facts of its schema.

    Parameters
    ----------
    schema
        The schema of the table, with a target. If it has a unit, identifiers are read too.
    score
        Returns the scores of a chunk's records, shape (n, n_outputs).
    n_outputs
        The number of scores of a record.
    read
        Returns the chunks of a table with the named columns; it is called on reading.
    is_a_file
        Whether the table is a file.
    """
    target = schema.target
    assert target is not None
    named: list[Any] | None = None if schema.unit is None else []
    names = [*(column.name for column in schema.encoded), target.name]
    names += [] if schema.unit is None else [schema.unit]

    def read_scores() -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        if named is not None:
            named.clear()
        scores = [np.empty((0, n_outputs))]
        labels = [np.zeros(0, dtype=target.labels.dtype)]
        for chunk in read(names):
            # Labels of the records that have one, and which records these are.
            found, mask = target.encode(chunk[target.name])
            labels.append(found)
            scores.append(score(chunk)[mask])
            if named is not None and schema.unit is not None:
                named.extend(compress(chunk[schema.unit].raw(), mask))
        return np.concatenate(scores), np.concatenate(labels)

    return EncodedTable(schema.facts, read_scores, named=named, is_a_file=is_a_file)


def probabilities(scores: Array) -> Array:
    """Return the probability of each class from log-odds, or from one score per class."""
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    scores = scores - scores.max(axis=1, keepdims=True)
    weights = np.exp(scores)
    shares: Array = weights / weights.sum(axis=1, keepdims=True)
    return shares


class ScoreClassifier(ClassifierMixin, BaseEstimator):
    """Predict classes from the scores of an additive model.

    Parameters
    ----------
    classes
        The classes as declared; ``classes_`` are sorted, and the last declared one is positive.
    """

    def __init__(self, classes: npt.NDArray[Any]) -> None:
        self.classes = classes
        self.classes_ = np.sort(classes)
        setattr(self, DECLARED_CLASSES, classes)
        self.n_features_in_ = 1 if len(classes) == 2 else len(classes)

    def predict_proba(self, X: Array) -> Array:
        """Return the probability of each class, in the order of ``classes_``."""
        return probabilities(X[:, 0] if X.shape[1] == 1 else X)

    def predict(self, X: Array) -> npt.NDArray[Any]:
        """Return the class of greatest probability."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])


class ScoreRegressor(RegressorMixin, BaseEstimator):
    """Predict numbers from the scores of an additive model, within the label's range."""

    def __init__(self, label_range: tuple[float, float]) -> None:
        self.label_range = label_range
        self.n_features_in_ = 1

    def predict(self, X: Array) -> Array:
        """Return the score of each record, clipped to the range."""
        return np.clip(X[:, 0], *self.label_range)
