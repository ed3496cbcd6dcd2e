"""``--class-weight``, from the words to the saved model and its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.cli.models import class_weight_of, make_estimator, model_kind
from tacit.cli.running import Refused
from tacit.saving import load
from tests.cli.helpers import run


@pytest.mark.parametrize("bad", [["balanced", "a=1"], ["a"], ["c=1"], ["a=x"], ["=1"], ["a=1=2"]])
def test_words_without_a_meaning_are_refused(bad: list[str]) -> None:
    with pytest.raises(Refused, match="CLASS=NUMBER"):
        class_weight_of(bad, ["a", "b"])


def test_a_class_may_have_any_name() -> None:
    assert class_weight_of(["a=b=2", "=3"], ["a=b", ""]) == {"a=b": 2.0, "": 3.0}
    assert class_weight_of(["1=2"], [0, 1]) == {1: 2.0}
    assert class_weight_of(None, ["a", "b"]) is None


def test_numbers_have_no_classes() -> None:
    with pytest.raises(Refused, match="is for classifiers"):
        make_estimator(model_kind("linear"), 1.0, 1e-6, class_weight="balanced")


def test_plan() -> None:
    words = ["plan", "--rows", "30000", "--columns", "5", "--epsilon", "1", "--json"]
    result = run(*words, "--class-weight", "balanced")
    assert result.exit_code == 0, result.output
    assert "counted first" in json.dumps(json.loads(result.stdout))
    assert run(*words, "--class-weight", "1=8").exit_code == 0


@pytest.mark.parametrize("given", [["balanced"], ["high=3"]])
def test_fit(people: Path, schema: Path, tmp_path: Path, given: list[str]) -> None:
    out, report = tmp_path / "model.tacit", tmp_path / "report.html"
    words: list[Any] = ["fit", people, "--schema", schema, "--epsilon", "1", "--out", out]
    options = [word for value in given for word in ("--class-weight", value)]
    result = run(*words, "--report", report, *options)
    assert result.exit_code == 0, result.output
    model = load(out).estimator_
    assert model.class_weight == ("balanced" if given == ["balanced"] else {"high": 3.0})
    assert "Class weights" in report.read_text(encoding="utf-8")
