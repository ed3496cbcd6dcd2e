from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tacit.cli.models import MODELS
from tacit.cli.plan import rows_for
from tacit.linear_model import LogisticRegression
from tacit.saving import load
from tests.cli.helpers import BAD_SCHEMAS, SCHEMA, refused, run


def planned(*words: object) -> Any:
    result = run("plan", *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_plan_is_that_of_the_estimator() -> None:
    record = planned("--rows", 30_000, "--columns", 100, "-e", 1, "--loss", "logistic")
    plan = LogisticRegression(1.0, 1e-6, row_norm=10.0, classes=[0, 1]).plan(100, 30_000)
    assert record["mechanism"] == plan.mechanism.name
    assert record["settings"] == dict(plan.settings)
    assert record["gap"] == plan.excess_risk
    assert record["loss_of_guessing"] == pytest.approx(math.log(2))
    assert [m["mechanism"] for m in record["mechanisms"] if m["chosen"]] == [record["mechanism"]]


def test_rows_needed_are_enough() -> None:
    words = ("--columns", 20, "-e", 1, "--gap", 0.001)
    needed = planned("--rows", 1000, *words)["rows_needed"]
    assert planned("--rows", needed, *words)["gap"] <= 0.001
    assert planned("--rows", int(0.85 * needed), *words)["gap"] > 0.001
    # wherever the search starts, up to its two digits
    assert planned("--rows", 10**7, *words)["rows_needed"] == pytest.approx(needed, rel=0.1)


def test_rows_for() -> None:
    assert rows_for(1.0, lambda n: 0.5, 1000) == 1
    assert rows_for(0.1, lambda n: 0.5, 1000) is None
    assert rows_for(0.5, lambda n: 1 / n, 1) == 2


def test_from_a_schema(schema: Path) -> None:
    record = planned("--rows", 5000, "--schema", schema, "-e", 1)
    assert record["features"] == 4
    assert record["row_norm"] == pytest.approx(math.sqrt(1.5))
    assert record["model"] == "logistic"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(m, marks=() if m in ("logistic", "linear") else pytest.mark.slow)
        for m in MODELS
    ],
)
def test_every_model(name: str) -> None:
    record = planned("--rows", 5000, "--columns", 5, "-e", 1, "-m", name, "--range", 0, 20)
    assert record["gap"] > 0
    assert record["loss_of_guessing"] > 0
    assert record["rows_needed"] >= 1


def test_public_rows_and_replace() -> None:
    words = ("--rows", 5000, "--columns", 5, "-e", 1)
    assert planned(*words)["rows_are_public"] is False
    assert planned(*words, "--public-rows")["rows_are_public"] is True
    assert planned(*words, "--relation", "replace")["relation"] == "replace"


def test_in_words() -> None:
    result = run("plan", "--rows", 30_000, "--columns", 100, "-e", 1)
    assert result.stderr == ""
    assert "mechanism: objective_perturbation" in result.stdout
    assert "rows needed: about" in result.stdout
    assert "\n* objective_perturbation\t" in result.stdout
    (sampled,) = (line for line in result.stdout.splitlines() if "noisy_sgd" in line)
    assert sampled.endswith("(n_records in a schema, or tacit plan --public-rows).")
    known = run("plan", "--rows", 30_000, "--columns", 100, "-e", 1, "--public-rows")
    assert "--public-rows" not in known.stdout
    drowned = run("plan", "--rows", 50, "--columns", 100, "-e", 0.01)
    assert "dominate" in drowned.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--columns", 5, "-e", 0), "epsilon"),
        (("--columns", 5, "-e", -1), "got -1: at 0 the output may not depend"),
        (("--columns", 5, "-e", "1;5"), "--epsilon '1;5' is not a number"),
        (("--columns", 5, "-e", "1,", "--inference", 0.1), "--epsilon '' is not a number"),
        (("--columns", 5, "-e", 1, "--inference", "much"), "a share such as 0.1, or auto"),
        (("--columns", 5, "-e", 1, "--evaluate", 1), "--evaluate must be a share"),
        (("--columns", 5, "-e", 1, "--rarer", 0.9), "--rarer"),
        (("--columns", 5, "-e", 1, "-m", "svc", "--inference", 0.1), "no standard errors"),
        (("--columns", 5, "-e", "inf"), "infinite"),
        (("--columns", 5, "-e", 1, "-d", -1), "delta"),
        (("--columns", 0, "-e", 1), "--columns"),
        (("-e", 1), "--columns or --schema"),
        (("--columns", 5, "-e", 1, "--gap", 0), "--gap"),
        (("--columns", 5, "-e", 1, "-m", "forest"), "forest"),
        (("--columns", 5, "-e", 1, "-m", "svc", "--classes", 3), "--classes 3"),
        (("--columns", 5, "-e", 1, "-m", "linear", "--range", 1, 0), "range"),
        (("--columns", 5, "-e", 1, "--row-norm", -1), "row_norm"),
        (("--schema", "no-such.toml", "-e", 1), "no such file"),
        (("--schema", "x" * 5000 + ".toml", "-e", 1), "too long"),
    ],
)
def test_bad_options(words: tuple[object, ...], said: str) -> None:
    assert said in refused("plan", "--rows", 1000, *words)


@pytest.mark.parametrize("what", BAD_SCHEMAS)
def test_bad_schemas(schema: Path, what: str) -> None:
    schema.write_text(BAD_SCHEMAS[what])
    refused("plan", "--rows", 1000, "--schema", schema, "-e", 1)


def test_unconfirmed_lines_may_be_planned_with(schema: Path) -> None:
    schema.write_text(SCHEMA.replace("upper = 100", "upper = 100, confirmed = false"))
    assert planned("--rows", 1000, "--schema", schema, "-e", 1)["features"] == 4


def test_several_budgets_and_rows_give_one_table(schema: Path) -> None:
    words = ("--rows", "2000,20000", "--schema", schema, "-e", "0.5,4", "--inference", 0.2)
    header, *lines = run("plan", *words).stdout.splitlines()
    assert header.split("\t")[:4] == ["epsilon", "rows", "gap", "share"]
    assert [line.split("\t")[:2] for line in lines] == [
        ["0.5", "2,000"], ["4", "2,000"], ["0.5", "20,000"], ["4", "20,000"]
    ]  # fmt: skip
    records = planned(*words)["plans"]
    found = [record["inference"] for record in records]
    assert found[0]["standard_error"] > found[1]["standard_error"] > found[3]["standard_error"]
    assert found[0]["sampling_error"] == pytest.approx(found[1]["sampling_error"], rel=0.01)
    assert found[3]["verdict"] == "good"
    assert lines[0].split("\t")[-1] == found[0]["verdict"]
    assert records[0]["features"] == 3  # one level of a category is its reference


def test_a_share_is_chosen_for_the_rows_at_hand() -> None:
    words = ("--rows", 5000, "--columns", 5, "-e", 1)
    chosen = planned(*words, "--inference", "auto")["inference"]
    for share in (0.02, 0.5, 0.9):
        other = planned(*words, "--inference", share)["inference"]
        assert chosen["standard_error"] <= 1.001 * other["standard_error"]


@pytest.mark.filterwarnings("default:the evaluation has no result")
@pytest.mark.parametrize("epsilon", [0.2, 8.0])
def test_a_refused_auc_is_foreseen(
    epsilon: float, people: Path, schema: Path, tmp_path: Path
) -> None:
    """The plan says of an AUC what the fit then does."""
    words = ("--schema", schema, "-e", epsilon, "--evaluate", 0.3)
    foreseen = planned("--rows", 2000, *words)["evaluation"]
    out = tmp_path / "model.tacit"
    assert run("fit", people, *words, "--out", out).exit_code == 0
    evaluation = load(out).evaluation_
    told = evaluation is not None and "auc" in evaluation.metrics
    assert foreseen["auc"] is told is (epsilon == 8.0)
    if not told:
        said = run("plan", "--rows", 2000, *words).stdout
        assert f"no, from {foreseen['rows_for_auc']:,} rows" in said
        enough = planned("--rows", foreseen["rows_for_auc"], *words)["evaluation"]
        assert enough["auc"] is True
