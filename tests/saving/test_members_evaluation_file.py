"""What a pipeline's fit found on records held out: in its file, its certificate and its report."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.report import facts_of, render
from tacit.saving import NotAModel, inspect, load, save
from tacit.saving.container import pack
from tacit.saving.model_file import members_of
from tacit.schema import Category, ClassTarget, Number, NumberTarget, Schema, SchemaEncoder

RNG = np.random.default_rng(11)
AGE = RNG.uniform(0, 100, 12_000)
WARD = RNG.choice(["A", "B"], 12_000)
COLUMNS = (Number("age", 0, 100), Category("ward", ("A", "B")))
LABELS: dict[str, tuple[Any, Any, Any]] = {
    "two": (ClassTarget("ill", ("yes", "no")), np.where(AGE > 40, "yes", "no"), LogisticRegression),
    "three": (
        ClassTarget("age group", ("young", "old", "middle")),
        np.select([AGE < 30, AGE < 60], ["young", "middle"], "old"),
        LogisticRegression,
    ),
    "numbers": (NumberTarget("pressure", 0, 200), 80 + AGE, LinearRegression),
}


@cache
def fitted(name: str, evaluate: float = 0.4, **more: Any) -> PrivatePipeline:
    target, labels, estimator = LABELS[name]
    steps = [("schema", SchemaEncoder(Schema(COLUMNS, target))), ("model", estimator())]
    model = PrivatePipeline(steps, 4.0, evaluate=evaluate, **more)
    return model.fit({"age": AGE, "ward": WARD, target.name: labels})


@pytest.mark.parametrize("more", [{}, {"delta": 0.0}, {"random_state": 3}], ids=str)
@pytest.mark.parametrize("name", LABELS)
def test_it_is_saved_to_the_last_digit(name: str, more: dict[str, Any], tmp_path: Path) -> None:
    model = fitted(name, **more)
    save(model, tmp_path / "model.tacit")
    loaded, certificate = load(tmp_path / "model.tacit"), inspect(tmp_path / "model.tacit")
    assert loaded.evaluation_.to_dict() == model.evaluation_.to_dict()
    assert certificate.to_dict()["evaluation"] == model.evaluation_.to_dict()
    for line in model.evaluation_.lines():
        assert f"  {line}" in str(certificate).splitlines()
    save(loaded, tmp_path / "again.tacit")
    assert (tmp_path / "again.tacit").read_bytes() == (tmp_path / "model.tacit").read_bytes()


def test_without_records_held_out_there_is_none(tmp_path: Path) -> None:
    save(fitted("two", 0.0), tmp_path / "model.tacit")
    assert load(tmp_path / "model.tacit").evaluation_ is None
    assert "evaluation" not in json.loads(members_of(fitted("two", 0.0))["model.json"])
    assert inspect(tmp_path / "model.tacit").to_dict()["evaluation"] is None


@pytest.mark.parametrize("name", LABELS)
def test_the_report_shows_it_and_the_norm_that_the_fit_went_by(name: str) -> None:
    model = fitted(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as that of a row norm that nobody declared
        facts = facts_of(model)
    page = render(facts)
    assert "Private evaluation" in page
    said = {fact.name: fact.value for fact in facts.public}
    assert float(said["Row norm"]) == pytest.approx(np.sqrt(1.25), rel=1e-5)
    assert "not declared" not in page
    assert "Private evaluation" not in render(facts_of(fitted(name, 0.0)))


def _shorter(record: dict[str, Any], members: dict[str, bytes], other: dict[str, bytes]) -> None:
    record["evaluation"] = json.loads(other["model.json"])["evaluation"]
    members["evaluation.npy"] = other["evaluation.npy"]


def _of_nobody(record: dict[str, Any], members: dict[str, bytes], other: dict[str, bytes]) -> None:
    record["evaluation"] = {"tuple": [1.0, 2.0]}
    del members["evaluation.npy"]


@pytest.mark.parametrize("forge", [_shorter, _of_nobody])
def test_sums_that_the_fit_cannot_have_released_are_refused(
    forge: Callable[..., None], tmp_path: Path
) -> None:
    members, other = dict(members_of(fitted("two"))), members_of(fitted("numbers"))
    record = json.loads(members["model.json"])
    forge(record, members, other)
    members["model.json"] = json.dumps(record).encode()
    (tmp_path / "forged.tacit").write_bytes(pack(members))
    with pytest.raises(NotAModel):
        load(tmp_path / "forged.tacit")


def test_an_evaluation_of_a_fit_that_held_nothing_out_is_refused(tmp_path: Path) -> None:
    members, other = dict(members_of(fitted("two", 0.0))), members_of(fitted("two"))
    record = json.loads(members["model.json"])
    _shorter(record, members, other)
    members["model.json"] = json.dumps(record).encode()
    (tmp_path / "forged.tacit").write_bytes(pack(members))
    with pytest.raises(NotAModel, match="cannot have released"):
        load(tmp_path / "forged.tacit")
