"""Predict records independently: no record's answer depends on another's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import is_classifier

from tacit.column_values import as_objects
from tacit.noise import Source
from tacit.privacy import Relation
from tacit.queries import Facts, Private
from tacit.queries.evaluation import Answered
from tacit.records.privacy_unit import People, people_of
from tacit.records.rows_and_labels import refuse_masked

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
_BLOCK = 1 << 16


def answers_of(estimator: Any, rows: Any) -> Array:
    """Return a model's answer to each record, NaN if it has none.

    Parameters
    ----------
    estimator
        A fitted classifier or regressor. A record that it fails on has no answer; the others are
        answered all the same.
    rows
        An array, dense or sparse, or a frame.

    Returns
    -------
    array
        For two classes, the probability of the second or its squashed score; for several, a column
        per class; for a regressor, the prediction.
    """
    width = _n_answers(estimator)
    n = rows.shape[0]
    answers = np.full((n, width), np.nan)
    for start in range(0, n, _BLOCK):
        places = np.arange(start, min(start + _BLOCK, n))
        in_halves(lambda some: _answers(estimator, taken(rows, some)), places, answers)
    answers[np.isnan(answers).any(axis=1)] = np.nan
    if is_classifier(estimator):
        answers = np.clip(answers, 0.0, 1.0)  # NaN is kept
    return answers[:, 0] if width == 1 else answers


def answered(
    estimator: Any, rows: Any, labels: Any, people: People | None = None, *, relation: Relation
) -> Answered:
    """Return a model's answers to records with their labels, for the queries of an evaluation.

    Parameters
    ----------
    estimator
        As in `answers_of`.
    rows, labels
        The records.
    people
        The person of each record, under ADD_REMOVE_PERSON: one record per person counts.
    relation
        Which data sets are neighbours.
    """
    found = labels_of(labels)
    if rows.shape[0] != len(found):
        raise ValueError("X and y are of different lengths; pass one label for each row.")
    if relation.by_person:
        if people is None:
            raise ValueError(
                "relation is ADD_REMOVE_PERSON, but the records have no unit; pass unit=..."
            )
        chosen = people.one_each()
        rows, found = taken(rows, chosen), found[chosen]
    return Answered(answers_of(estimator, rows), found)


@dataclass(frozen=True, eq=False)
class AnswersOf:
    """A view of an `EncodedTable`: a fitted model's answers in place of the records.

    Parameters
    ----------
    estimator
        As in `answers_of`.
    before
        The fitted steps before the estimator.
    """

    estimator: Any
    before: tuple[Any, ...] = ()

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return the answers, one per record or per person."""
        rows, labels = records.read()
        for step in self.before:
            if rows.shape[0]:  # steps may reject empty input
                rows = step.transform(rows)
        people = people_of(records.identifiers()) if records.has_people else None
        return answered(self.estimator, rows, labels, people, relation=facts.relation), facts


def labels_of(labels: Any) -> npt.NDArray[Any]:
    """Return labels as an array without conversion; an odd label does not change the others."""
    refuse_masked(labels, "y")
    if not hasattr(labels, "dtype") and not hasattr(labels, "__array__"):
        return as_objects(list(labels))
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(
            f"y should be a 1d array, got {array.ndim} dimensions; one label a record."
        )
    return array


def taken(rows: Any, places: npt.NDArray[np.int64]) -> Any:
    """Return the selected rows."""
    if hasattr(rows, "iloc"):
        return rows.iloc[places]
    if hasattr(rows, "tocsr"):
        return rows.tocsr()[places]
    if hasattr(rows, "take") and hasattr(rows, "column_names"):  # an Arrow table
        return rows.take(places)
    return rows[places]


def _n_answers(estimator: Any) -> int:
    if not is_classifier(estimator):
        return 1
    k = len(estimator.classes_)
    return 1 if k == 2 else k


def in_halves(ask: Callable[[Places], Array], places: Places, answers: Array) -> None:
    """Fill in one row of answers per place; a record that fails keeps its initial value.

    If a call on all places fails, each half is tried separately: an odd record cannot change the
    answers of the others, whatever error it causes.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning would reveal one record
            answers[places] = ask(places).reshape(len(places), -1)
    except Exception:
        if len(places) > 1:
            half = len(places) // 2
            in_halves(ask, places[:half], answers)
            in_halves(ask, places[half:], answers)


def _answers(estimator: Any, rows: Any) -> Array:
    if not is_classifier(estimator):
        return np.asarray(estimator.predict(rows), dtype=np.float64)
    if hasattr(estimator, "predict_proba"):
        found = np.asarray(estimator.predict_proba(rows), dtype=np.float64)
        return found[:, 1] if found.shape[1] == 2 else found
    # 1 / (1 + exp(-score)) preserves the order and maps 0 to one half.
    scores: Array = expit(np.asarray(estimator.decision_function(rows), dtype=np.float64))
    return scores
