"""A small table, teachers of every temper, and how many teachers a record moves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

from tacit.estimators.parameters import codes_of
from tacit.pate.teachers import each_vote
from tacit.privacy import Relation
from tacit.records.privacy_unit import people_of
from tacit.records.splits import places_of_parts

N_TEACHERS = 20


def table(n: int = 400, n_classes: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return rows, labels 0 ... and a public pool."""
    rng = np.random.default_rng(seed)
    rows, pool = rng.standard_normal((n, 3)), rng.standard_normal((40, 3))
    cuts = np.quantile(rows[:, 0], np.linspace(0, 1, n_classes + 1)[1:-1])
    return rows, np.searchsorted(cuts, rows[:, 0]), pool


class OrderedTree(ClassifierMixin, BaseEstimator):
    """A tree that looks at the order of its rows and at all of them: both decide an offset."""

    def fit(self, X: Any, y: Any) -> OrderedTree:
        self.classes_ = np.unique(y)
        self.tree_ = DecisionTreeClassifier(max_depth=3).fit(X, y)
        ends = np.asarray(X)[[0, -1], 0]
        self.offset_ = float(ends[1] - ends[0]) + 0.02 * float(np.sum(X))
        return self

    def predict(self, X: Any) -> Any:
        return self.tree_.predict(np.asarray(X) + self.offset_)


class Fragile(ClassifierMixin, BaseEstimator):
    """Fails, warns, prints nothing useful or answers nonsense when it meets a large number."""

    def __init__(self, temper: str = "raise") -> None:
        self.temper = temper

    def fit(self, X: Any, y: Any) -> Fragile:
        self.odd_ = bool(np.max(np.abs(X)) > 50)
        # draws from NumPy's global generator
        self.tree_ = DecisionTreeClassifier(max_depth=2, max_features=1).fit(X, y)
        if self.odd_ and self.temper == "raise":
            raise ValueError(f"saw {np.max(X)}")
        if self.odd_ and self.temper == "warn":
            warnings.warn(f"saw {np.max(X)}", UserWarning, stacklevel=1)
        if self.odd_ and self.temper == "draw":
            np.random.standard_normal(1000)  # noqa: NPY002
        return self

    def predict(self, X: Any) -> Any:
        said = self.tree_.predict(X)
        if self.odd_ and self.temper == "shape":
            return said[:-1]
        if self.odd_ and self.temper == "type":
            return [None] * len(said)
        if self.odd_ and self.temper == "class":
            return said + 77
        return said


def each_teacher(
    teacher: Any,
    rows: Any,
    labels: Any,
    queries: Any,
    relation: Relation,
    unit: Any = None,
    key: bytes = b"k" * 32,
) -> npt.NDArray[Any]:
    """Return the votes of every teacher, one a row."""
    labels = np.asarray(labels, dtype=object)
    classes = np.array([0, 1, 2])
    codes, known = codes_of(labels, classes)
    people = None if unit is None else people_of(unit)
    parts = places_of_parts(N_TEACHERS, key, relation, rows, labels, people=people)
    parts = [part[known[part]] for part in parts]
    return np.array(list(each_vote(teacher, parts, rows, codes, classes, queries, key)))


def n_changed(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> int:
    """Return how many teachers vote otherwise on any query."""
    return int(np.sum(np.any(first != second, axis=1)))
