"""Share code of the PATE estimators before and after the teachers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from tacit.estimators.parameters import (
    Assumed,
    budget_of,
    column_names,
    warn_if_weak,
    with_people,
)
from tacit.noise import Source, secure_source
from tacit.pate.query_points import Places, check_pool, queries_of
from tacit.pate.teachers import Said
from tacit.privacy import Budget, Relation
from tacit.records import TableInMemory, as_rows
from tacit.records.lazy_table import has_people, read_people
from tacit.records.privacy_unit import People
from tacit.records.splits import new_key, places_of_parts
from tacit.table_facts import EncodedTable

PUBLIC_POOL = "the public rows, and what is known of them, come from none of the protected records"


@dataclass(frozen=True)
class TeacherQueries:
    """The public facts of a fit: an unread table, and the queries."""

    table: Any
    budget: Budget
    pool: Any
    places: Places
    facts: Assumed

    @property
    def queries(self) -> Any:
        """The public rows on which teachers vote."""
        return self.pool[self.places]


def teacher_queries(model: Any, X: Any, y: Any, X_public: Any, unit: Any) -> TeacherQueries:
    """Return the unread table and the queries; only the shape of the records is read."""
    budget = budget_of(model.epsilon, model.delta, model.relation, model.accountant)
    if X_public is None:
        raise ValueError(
            "X_public is missing: teachers vote on public rows, and the student "
            "learns from them; pass rows of the same columns that need no protection."
        )
    if X_public is X:
        raise ValueError(
            "X_public is X, the sensitive records themselves, but public rows are not protected; "
            "pass other rows, which need no protection."
        )
    if isinstance(X, EncodedTable):
        if budget.relation is Relation.REPLACE:
            X.refuse_positions()
        table: Any = X
        model.n_features_in_ = X.n_columns
        facts: Assumed = X.facts
    else:
        table = TableInMemory(X, y, unit)
        validate_data(model, X, reset=True, skip_check_array=True)
        facts = column_names(getattr(model, "feature_names_in_", None))
    pool, _ = as_rows(X_public)
    check_pool(pool, model.n_queries, table.n_columns)
    places = queries_of(model.queries).places(pool, model.n_queries)
    budget = with_people(budget, has_people(table))
    warn_if_weak(budget)
    return TeacherQueries(table, budget, pool, places, facts)


def split(
    queried: TeacherQueries, n_teachers: int, rows: Any, labels: Any, key: bytes, counts: Any
) -> list[Places]:
    """Return the positions of each teacher's records among the valid ones."""
    relation = queried.budget.relation
    people: People | None = read_people(queried.table) if has_people(queried.table) else None
    places = getattr(queried.table, "places", None)
    parts = places_of_parts(
        n_teachers, key, relation, rows, labels, people=people, positions=places
    )
    return [part[counts[part]] for part in parts]


def key_of(source: Source | None) -> bytes:
    """Return the key by which records are split, from a separate source."""
    return new_key(secure_source() if source is None else source)


def progress_of(model: Any) -> Said | None:
    """Return the function to call when a teacher is done."""
    if not model.verbose:
        return None

    def said(done: int, total: int) -> None:
        if done == total or done % max(total // 20, 1) == 0:
            sys.stderr.write(f"{done} of {total} teachers\n")

    return said


def check_teacher(teacher: Any) -> None:
    """Refuse an invalid teacher, before anything is charged."""
    _check_learner("teacher", teacher, "fit")


def check_student(student: Any) -> None:
    """Refuse an invalid student, which would otherwise fail after the charge."""
    if student is not None:
        _check_learner("student", student, "fit", "learn")


def _check_learner(name: str, learner: Any, *ways: str) -> None:
    if isinstance(learner, type):
        raise TypeError(
            f"{name} must be an estimator, got the class {learner.__name__} itself; pass "
            f"{learner.__name__}()."
        )
    if not (hasattr(learner, "predict") and any(hasattr(learner, way) for way in ways)):
        raise TypeError(
            f"{name} must be an estimator with fit and predict, got {type(learner).__name__}; "
            "pass one of scikit-learn, say."
        )


def rows_to_ask(model: Any, X: Any) -> Any:
    """Return rows with the fitted columns."""
    rows, _ = as_rows(X)
    validate_data(model, X, reset=False, skip_check_array=True)
    return np.asarray(rows) if not hasattr(rows, "tocsr") else rows
