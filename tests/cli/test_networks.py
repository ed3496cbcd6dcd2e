"""Networks on the command line are planned, fitted, saved, inspected, asked and reported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tacit.cli.models import NETWORKS, kind_for, make_estimator, model_kind
from tacit.cli.running import Refused
from tacit.saving import load
from tacit.schema import ClassTarget, Number, NumberTarget, Schema
from tests.cli.helpers import HOURS, SCHEMA, refused, run

KNOWN = "n_records = 2000\n"
AGE = (Number("age", 0, 100),)


@pytest.mark.parametrize("name", NETWORKS)
def test_fitted_saved_inspected_and_asked(people: Path, name: str) -> None:
    schema, out = people.parent / "known.toml", people.parent / "m.tacit"
    report = people.parent / "report.html"
    schema.write_text(KNOWN + (SCHEMA if name == "network" else HOURS))
    words = ("--schema", schema, "-m", name, "-e", 2, "-o", out, "--report", report)
    result = run("fit", people, *words)
    assert result.exit_code == 0, result.output
    assert "noisy_network: noise calibrated to 300 steps" in result.output
    model = load(out)
    assert type(model.estimator_) is model_kind(name).model
    assert model.privacy_.epsilon(1e-6) <= 2.0
    assert "noisy_network" in run("inspect", out).output
    assert "epsilon = 2.0000" in report.read_text()
    answers = run("predict", out, people, "--out", people.parent / "answers.csv")
    assert answers.exit_code == 0, answers.output


def test_planned() -> None:
    words = ("plan", "--rows", 5000, "--columns", 5, "-e", 1, "-m", "network")
    assert "noise_multiplier = " in run(*words).output
    assert '"mechanism": "noisy_network"' in run(*words, "--json").output


def test_what_a_network_does_not_have_is_refused(people: Path) -> None:
    schema, out = people.parent / "known.toml", people.parent / "m.tacit"
    schema.write_text(KNOWN + SCHEMA)
    words = ("fit", people, "--schema", schema, "-m", "network", "-e", 2, "-o", out)
    assert "leave --mechanism out" in refused(*words, "--mechanism", "noisy_gradient")
    assert "leave --class-weight out" in refused(*words, "--class-weight", "balanced")
    assert "does not protect a person with several" in refused(*words, "--unit", "id")
    schema.write_text(SCHEMA)
    assert "declare n_records" in refused(*words)
    assert not out.exists()


def test_each_predicts_what_the_schema_says() -> None:
    ill = Schema(AGE, ClassTarget("ill", ("no", "yes", "maybe")))
    cost = Schema(AGE, NumberTarget("cost", 0, 1))
    assert kind_for(ill, "network").word == "network"
    assert kind_for(cost, "network_of_numbers").word == "network_of_numbers"
    with pytest.raises(Refused, match=r"choose from linear, .*, network_of_numbers\."):
        kind_for(cost, "network")
    with pytest.raises(Refused, match=r"choose from logistic, .*, network\."):
        kind_for(ill, "network_of_numbers")
    with pytest.raises(Refused, match=r"unknown; choose from logistic, .*, network"):
        model_kind("perceptron")


def test_facts_that_a_network_does_not_ask_for_are_left_out() -> None:
    made = make_estimator(model_kind("network"), 0.5, 1e-7, row_norm=2.0, classes=[0, 1])
    assert (made.epsilon, made.delta, made.classes) == (0.5, 1e-7, [0, 1])


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("tacit.deep")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(Refused, match=r"--model network: .*pip install 'tacit\[deep\]'"):
        model_kind("network")
