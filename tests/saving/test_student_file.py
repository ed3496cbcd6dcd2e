"""Students in files: arrays that predict what the student predicts, and nothing of teachers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from tacit import load, save
from tacit.pate import PATEClassifier, PATERegressor, PublishedStudent, SemiSupervised
from tacit.saving import CannotSave, NotAModel
from tacit.saving.container import from_json, to_json
from tacit.saving.model_file import members_of, stored_in
from tests.pate.helpers import table

ROWS, LABELS, POOL = table(1500)
STUDENTS = [
    SemiSupervised(n_rounds=1),
    LogisticRegression(),
    LinearDiscriminantAnalysis(),
    RidgeClassifier(),
    RandomForestClassifier(7, max_depth=4, random_state=0),
    DecisionTreeClassifier(max_depth=3, random_state=0),
    GradientBoostingClassifier(n_estimators=9, max_depth=2, random_state=0),
]
MADE = PATEClassifier(GaussianNB(), 30, n_queries=30, epsilon=20.0, delta=1e-5)


def fitted(student: Any, names: tuple[str, ...] = ("a", "b", "c")) -> Any:
    return (
        clone(MADE)
        .set_params(student=student, classes=list(names))
        .fit(ROWS, np.array(names)[LABELS % len(names)], POOL)
    )


@pytest.mark.parametrize("names", [("a", "b", "c"), ("no", "yes")])
@pytest.mark.parametrize("student", STUDENTS, ids=repr)
def test_a_student_is_saved(student: Any, names: tuple[str, ...], tmp_path: Path) -> None:
    model = fitted(student, names)
    save(model, tmp_path / "student.tacit")
    again = load(tmp_path / "student.tacit")
    assert type(again) is PublishedStudent
    np.testing.assert_array_equal(again.predict(ROWS), model.predict(ROWS))
    if hasattr(model.student_, "predict_proba"):
        np.testing.assert_allclose(again.predict_proba(ROWS), model.predict_proba(ROWS), atol=1e-12)
    assert again.privacy_ == model.privacy_
    save(again, tmp_path / "again.tacit")
    assert (tmp_path / "again.tacit").read_bytes() == (tmp_path / "student.tacit").read_bytes()


@pytest.mark.parametrize(
    "student",
    [
        LinearRegression(),
        RandomForestRegressor(5, random_state=0),
        GradientBoostingRegressor(n_estimators=9, random_state=0),
    ],
)
def test_numbers(student: Any, tmp_path: Path) -> None:
    model = PATERegressor(LinearRegression(), 30, student, 20, 9.0, 1e-5, label_range=(-3, 3))
    model.fit(ROWS, ROWS[:, 0], POOL)
    save(model, tmp_path / "m.tacit")
    np.testing.assert_allclose(load(tmp_path / "m.tacit").predict(ROWS), model.predict(ROWS))


def test_a_student_of_one_class(tmp_path: Path) -> None:
    model = clone(MADE).set_params(classes=[0, 1, 2], epsilon=900.0)
    model.fit(ROWS, np.full(1500, 1), POOL)
    save(model, tmp_path / "m.tacit")
    assert set(load(tmp_path / "m.tacit").predict(ROWS).tolist()) == {1}


@pytest.mark.parametrize(
    "student",
    [
        KNeighborsClassifier(1),
        GradientBoostingClassifier(n_estimators=2, init=GaussianNB()),
        GradientBoostingClassifier(n_estimators=2, loss="exponential"),
    ],
)
def test_what_has_no_form_is_refused(student: Any, tmp_path: Path) -> None:
    names = ("a", "b")  # which is all that the exponential loss knows
    with pytest.raises(CannotSave, match=type(student).__name__):
        save(fitted(student, names), tmp_path / "m.tacit")


def test_nothing_of_teachers_or_votes_is_in_the_file() -> None:
    members = members_of(fitted(LogisticRegression()))
    assert set(members) == {
        "model.json",
        "guarantee.json",
        "arrays.coef.npy",
        "arrays.intercept.npy",
        "released.classes_.npy",
        "released.met_.npy",
    }


def damaged(change: Any) -> dict[str, bytes]:
    members = dict(members_of(fitted(DecisionTreeClassifier(max_depth=3, random_state=0))))
    record = from_json(members["model.json"], "model.json")
    change(record, members)
    members["model.json"] = to_json(record)
    return members


def other_array(name: str, value: Any) -> Any:
    from tacit.saving.codec import describe, to_npy

    def change(record: Any, members: dict[str, bytes]) -> None:
        record["arrays"][name] = {"array": describe(value)}
        members[f"arrays.{name}.npy"] = to_npy(value)

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda record, _: record.update(form="pickle"),
        lambda record, _: record.update(form="linear"),
        lambda record, _: record["released"].update(n_features_in_=0),
        lambda record, _: record.update(extra=1),
        lambda record, _: record["parameters"].update(delta=1e-9),
        lambda record, _: record["released"].update(met_=None),
        other_array("left", np.zeros(3, dtype=np.int64)),
        other_array("roots", np.array([999], dtype=np.int64)),
        other_array("value", np.full((1, 3), np.nan)),
        other_array("feature", np.array([7.0])),
    ],
)
def test_damage_is_noticed(change: Any) -> None:
    with pytest.raises(NotAModel):
        stored_in(damaged(change))


def test_trees_that_go_in_circles_are_refused() -> None:
    def circle(record: Any, members: dict[str, bytes]) -> None:
        n = record["arrays"]["left"]["array"]["shape"][0]
        for name in ("left", "right"):
            other_array(name, np.roll(np.arange(n), 1).astype(np.int64))(record, members)

    with pytest.raises(NotAModel, match="not trees"):
        stored_in(damaged(circle))
