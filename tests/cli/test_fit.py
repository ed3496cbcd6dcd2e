from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.cli.models import MODELS
from tacit.registry import Predicts
from tacit.saving import inspect, load
from tests.cli.helpers import (
    BAD_SCHEMAS,
    BAD_TABLES,
    HOURS,
    SCHEMA,
    SECRET,
    bad_tables,
    refused,
    rows,
    run,
    write_csv,
)


def test_fit_saves_a_model_and_tells_its_guarantee(people: Path, schema: Path) -> None:
    out, report = people.parent / "model.tacit", people.parent / "report.html"
    result = run(
        *("fit", people, "--schema", schema, "--target", "income", "--epsilon", 1),
        *("--delta", "1e-6", "--model", "logistic", "--out", out, "--report", report),
    )
    assert result.exit_code == 0, result.output
    # The one notice, which every CSV has, whatever its lines are.
    (notice,) = result.stderr.splitlines()
    assert "no complete records are left out, and a fit may not say how many" in notice
    assert "epsilon = 1.0000 and delta = 1e-06" in result.stdout
    assert str(out) in result.stdout
    assert inspect(out).sha256 in result.stdout
    assert load(out).privacy_.epsilon(1e-6) <= 1.0
    assert "<html" in report.read_text()


def test_nothing_private_is_printed(people: Path, schema: Path) -> None:
    result = run("fit", people, "--schema", schema, "-e", 1, "-o", people.parent / "m.tacit")
    assert result.exit_code == 0
    assert "2000" not in result.stdout.replace("sha256", "").split("sha256")[0]
    assert "2,000" not in result.stdout


def test_json(people: Path, schema: Path) -> None:
    out = people.parent / "m.tacit"
    result = run("fit", people, "--schema", schema, "-e", 0.5, "-d", 0, "-o", out, "--json")
    record = json.loads(result.stdout)
    assert record["out"] == str(out)
    assert record["report"] is None
    assert record["sha256"] == inspect(out).sha256
    assert record["guarantee"]["target_delta"] == 0
    assert record["parameters"]["epsilon"] == 0.5


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather", "csv.gz", "tsv"])
def test_every_format(people: Path, schema: Path, suffix: str) -> None:
    frame, path = pd.read_csv(people), people.parent / f"people.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    elif suffix in ("arrow", "feather"):
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    out = people.parent / "m.tacit"
    assert run("fit", path, "--schema", schema, "-e", 2, "-o", out).exit_code == 0
    assert load(out).predict({"age": [20, 90], "sex": ["f", "m"], "hours": [10, 45]}).tolist() == [
        "low",
        "high",
    ]


@pytest.mark.parametrize("name", MODELS)
def test_every_model(people: Path, schema: Path, hours: Path, name: str) -> None:
    out = people.parent / "m.tacit"
    declared = schema if MODELS[name].predicts is Predicts.CLASSES else hours
    result = run("fit", people, "--schema", declared, "-m", name, "-e", 2, "-o", out)
    assert result.exit_code == 0, result.output
    assert type(load(out).estimator_) is MODELS[name].model


def test_choices_reach_the_estimator(people: Path, hours: Path) -> None:
    out = people.parent / "m.tacit"
    hours.write_text("n_records = 2000\n" + HOURS)
    result = run(
        *(
            "fit",
            people,
            "--schema",
            hours,
            "-m",
            "quantile",
            "--quantile",
            0.9,
            "-e",
            2,
            "-o",
            out,
        ),
        *("--mechanism", "noisy_gradient", "--relation", "replace", "--float32"),
    )
    assert result.exit_code == 0, result.output
    model = load(out)
    assert model.estimator_.quantile == 0.9
    assert model.plan_.mechanism.name == "noisy_gradient"
    assert model.privacy_.relation.value == "replace"
    assert np.dtype(model.encoder_.dtype) == np.float32


def test_target_may_be_chosen_on_the_line(people: Path, schema: Path) -> None:
    schema.write_text(BAD_SCHEMAS["no target"])
    out = people.parent / "m.tacit"
    assert "--target" in refused("fit", people, "--schema", schema, "-e", 1, "-o", out)
    words = ("fit", people, "--schema", schema, "-e", 1, "-o", out, "--target")
    assert "no column 'town' to be the target" in refused(*words, "town")
    assert run(*words, "income").exit_code == 0


def test_a_target_that_the_schema_does_not_have(people: Path, schema: Path) -> None:
    words = ("fit", people, "--schema", schema, "-e", 1, "-o", people.parent / "m.tacit")
    sentence = refused(*words, "--target", "incom")
    assert "no column 'incom'" in sentence
    assert "'income'" in sentence
    assert "kind" not in sentence


def test_another_delimiter(people: Path, schema: Path) -> None:
    out = people.parent / "m.tacit"
    for mark, typed in ((";", ";"), ("\t", r"\t"), ("\t", "\t"), ("|", "|")):
        path = people.parent / "other.csv"
        path.write_text(people.read_text().replace(",", mark))
        words = ("fit", path, "--schema", schema, "-e", 1, "-o", out, "--force")
        assert f"pass the delimiter {mark!r}" in refused(*words)
        assert run(*words, "--delimiter", typed).exit_code == 0


def test_unconfirmed_lines_are_refused_unless_told_otherwise(people: Path, schema: Path) -> None:
    schema.write_text(SCHEMA.replace("upper = 100", "upper = 100, confirmed = false"))
    out = people.parent / "m.tacit"
    words = ("fit", people, "--schema", schema, "-e", 1, "-o", out)
    sentence = refused(*words)
    assert "'age'" in sentence
    assert "--allow-unconfirmed" in sentence
    assert not out.exists()
    result = run(*words, "--allow-unconfirmed")
    assert result.exit_code == 0
    assert "NOT CONFIRMED" in result.stderr
    assert "'age' was guessed from the data" in result.stdout
    assert "'age' was guessed from the data" in inspect(out).statement


def test_without_noise_it_is_loud(people: Path, schema: Path) -> None:
    out = people.parent / "m.tacit"
    result = run("fit", people, "--schema", schema, "-e", "inf", "-o", out)
    assert result.exit_code == 0
    assert "NO PRIVACY" in result.stderr
    assert "NO privacy guarantee" in result.stdout


@pytest.mark.parametrize("what", BAD_TABLES)
def test_bad_tables(tmp_path: Path, schema: Path, what: str) -> None:
    path = bad_tables(tmp_path / "bad")[what]
    out = tmp_path / "m.tacit"
    refused("fit", path, "--schema", schema, "-e", 1, "-o", out)
    assert not out.exists()


@pytest.mark.parametrize("what", BAD_SCHEMAS)
def test_bad_schemas(people: Path, schema: Path, what: str) -> None:
    schema.write_text(BAD_SCHEMAS[what])
    out = people.parent / "m.tacit"
    refused("fit", people, "--schema", schema, "-e", 1, "-o", out)
    assert not out.exists()


@pytest.mark.parametrize("path", ["no-such.toml", "x" * 5000 + ".toml", "."])
def test_schemas_that_cannot_be_read(people: Path, path: str) -> None:
    refused("fit", people, "--schema", path, "-e", 1, "-o", people.parent / "m.tacit")


def test_bounds_are_asked_for_by_name(people: Path, schema: Path) -> None:
    schema.write_text(BAD_SCHEMAS["no bounds"])
    sentence = refused("fit", people, "--schema", schema, "-e", 1, "-o", people.parent / "m")
    assert "'age'" in sentence
    assert "upper" in sentence


def test_unknown_classes_do_not_count(tmp_path: Path, schema: Path) -> None:
    table = rows(600)
    for row in table[::3]:
        row[-1] = SECRET
    out = tmp_path / "m.tacit"
    some = write_csv(tmp_path / "some.csv", table)
    result = run("fit", some, "--schema", schema, "-e", 1, "-o", out)
    assert result.exit_code == 0
    assert SECRET not in result.output
    everyone = write_csv(tmp_path / "all.csv", [[*row[:-1], SECRET] for row in table])
    sentence = refused("fit", everyone, "--schema", schema, "-e", 1, "-o", tmp_path / "n.tacit")
    assert "classes" in sentence
    assert (tmp_path / "n.tacit").exists(), "it is paid for"


def test_missing_and_impossible_values_are_fine(tmp_path: Path, schema: Path, hours: Path) -> None:
    table = rows(600)
    for row in table[::3]:
        row[1], row[3] = "nan", "NaN"
    for row in table[1::3]:
        row[1], row[2], row[3] = "inf", SECRET, SECRET
    path = write_csv(tmp_path / "people.csv", table)
    for declared in (schema, hours):
        out = tmp_path / f"{declared.stem}.tacit"
        result = run("fit", path, "--schema", declared, "-e", 1, "-o", out)
        assert result.exit_code == 0, result.output
        assert SECRET not in result.output


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("-e", -1), "epsilon"),
        (("-e", 0), "takes inf, for no privacy"),
        (("-e", "nan"), "epsilon"),
        (("-e", 1, "-d", 2), "delta"),
        (("-e", 1, "--mechanism", "magic"), "magic"),
        (("-e", 1, "--mechanism", "sufficient_statistics"), "sufficient statistics"),
        (("-e", 1, "--relation", "twins"), "twins"),
        (("-e", 1, "--relation", "replace"), "n_records"),
        (("-e", 1, "-m", "poisson"), "logistic"),
        (("-e", 1, "--quantile", 0.5), "--quantile"),
        (("-e", 1, "--delimiter", "too long"), "delimiter"),
        (("-e", 1, "--report", "report.pdf"), "report.html"),
    ],
)
def test_bad_options(people: Path, schema: Path, more: tuple[object, ...], said: str) -> None:
    out = people.parent / "m.tacit"
    assert said in refused("fit", people, "--schema", schema, "-o", out, *more)
    assert not out.exists()


def test_files_are_not_overwritten(people: Path, schema: Path) -> None:
    out = people.parent / "m.tacit"
    out.write_text("precious")
    words = ("fit", people, "--schema", schema, "-e", 1)
    assert "--force" in refused(*words, "-o", out)
    assert out.read_text() == "precious"
    before = people.read_bytes()
    refused(*words, "-o", people, "--force")
    assert people.read_bytes() == before
    refused(*words, "-o", people.parent / "r.html", "--report", people.parent / "r.html")
    refused(*words, "-o", people.parent / "no-such-folder" / "m.tacit")
    assert run(*words, "-o", out, "--force").exit_code == 0
    assert load(out).privacy_.epsilon(1e-6) <= 1.0
