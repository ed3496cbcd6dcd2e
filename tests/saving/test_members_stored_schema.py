from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tacit.linear_model import LogisticRegression
from tacit.saving import NotAModel, load, save
from tacit.saving.model_file import load_bytes
from tacit.schema import ClassTarget, Number, Schema
from tacit.table_model import TableModel
from tests.saving.helpers import edited


def columns(record: Any) -> Any:
    return record["schema"]["facts"]["columns"]


def line(record: Any, name: str) -> Any:
    found = columns(record)
    return found[name] if isinstance(found, dict) else next(c for c in found if c["name"] == name)


def confirm_nothing(record: Any) -> None:
    record["schema"]["allow_unconfirmed"] = False


def other_classes(record: Any) -> None:
    line(record, "ill")["classes"] = ["yes", "nope"]


def number_for_classes(record: Any) -> None:
    target = line(record, "ill")
    del target["classes"]
    target.update(lower=0.0, upper=1.0)


def more_values(record: Any) -> None:
    line(record, "sex")["values"] = ["f", "m", "x"]


def other_norm(record: Any) -> None:
    record["released"]["row_norm_"] = 5.0


def unknown_key(record: Any) -> None:
    line(record, "sex")["colour"] = "blue"


def guessed(record: Any) -> None:
    line(record, "sex")["confirmed"] = False
    record["schema"]["allow_unconfirmed"] = True


def other_range(record: Any) -> None:
    line(record, "visits")["upper"] = 21.0


def odd_range(record: Any) -> None:
    record["parameters"]["label_range"] = 3


@pytest.mark.parametrize(
    ("name", "edit", "why"),
    [
        ("table_float32", confirm_nothing, "nobody confirmed"),
        ("table", other_classes, "other classes"),
        ("table", number_for_classes, "not what its estimator predicts"),
        ("table", more_values, "another number of features"),
        ("table", other_norm, "another row norm"),
        ("table", unknown_key, "schema is not possible"),
        ("table", guessed, "does not say which lines"),
        ("table_float32", other_range, "another range"),
        ("table_float32", odd_range, "another range"),
    ],
)
def test_a_schema_that_is_not_the_estimator_s(name: str, edit: Any, why: str) -> None:
    with pytest.raises(NotAModel, match=why):
        load_bytes(edited(name, edit))


def test_merged_classes_are_saved(tmp_path: Path) -> None:
    target = ClassTarget.merged("t", {"other": ["b", "c"], "early": ["a"]})
    schema = Schema((Number("x", 0, 1),), target)
    table = {"x": [0.1, 0.9] * 200, "t": ["a", "b", "a", "c"] * 100}
    model = TableModel(schema, LogisticRegression(1.0, 1e-6)).fit(table)
    save(model, tmp_path / "m.tacit")
    loaded = load(tmp_path / "m.tacit")
    assert loaded.schema == schema
    assert loaded.schema.digest() == schema.digest()
    assert loaded.classes_.tolist() == ["early", "other"]
    assert set(loaded.predict(table)) <= {"early", "other"}
