from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger
from tacit.saving import inspect, load
from tests.cli.helpers import SCHEMA, SECRET, refused, rows, run, write_csv

PERSON = "one person with all their records"
WITH_UNIT = SCHEMA.replace('id = { kind = "ignored" }', 'id = { kind = "unit" }')


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """Two records a person, whose names must not be seen again."""
    table = [[f"{SECRET}{place // 2}", *row[1:]] for place, row in enumerate(rows())]
    return write_csv(tmp_path / "visits.csv", table)


@pytest.mark.parametrize("mechanism", ["auto", "noisy_gradient"])
@pytest.mark.parametrize("way", ["option", "schema"])
def test_a_fit_protects_people(visits: Path, schema: Path, way: str, mechanism: str) -> None:
    out, report = visits.parent / "m.tacit", visits.parent / "m.html"
    told = ["--unit", "id"] if way == "option" else []
    if way == "schema":
        schema.write_text(WITH_UNIT)
    result = run(
        *("fit", visits, "--schema", schema, "-e", 1, "-o", out, "--report", report, *told),
        *("--mechanism", mechanism),
    )
    assert result.exit_code == 0, result.output
    assert PERSON in " ".join(result.stdout.replace("│", " ").split())
    certificate = inspect(out)
    assert certificate.to_dict()["guarantee"]["relation"] == "add_remove_person"
    assert certificate.to_dict()["feature_names"] == ["age", "sex=f", "sex=m", "hours"]
    assert load(out).schema.unit == "id"
    assert PERSON in report.read_text()
    for text in (result.output, report.read_text(), out.read_bytes().decode("latin-1")):
        assert SECRET not in text
    # a prediction needs no identifier
    table = write_csv(visits.parent / "new.csv", rows(5))
    table.write_text("\n".join(line.partition(",")[2] for line in table.read_text().splitlines()))
    predicted = run("predict", out, table, "--out", visits.parent / "p.csv")
    assert predicted.exit_code == 0, predicted.output


def test_a_unit_that_the_schema_does_not_declare(visits: Path, schema: Path) -> None:
    schema.write_text(SCHEMA.replace('id = { kind = "ignored" }\n', ""))
    out = visits.parent / "m.tacit"
    assert run("fit", visits, "--schema", schema, "-e", 1, "--unit", "id", "-o", out).exit_code == 0
    assert load(out).privacy_.relation.by_person


@pytest.mark.parametrize("command", ["fit", "plan", "compare", "evaluate"])
def test_a_relation_that_there_is_not_is_refused_with_a_unit_too(
    visits: Path, schema: Path, model: Path, command: str
) -> None:
    of_schema = ("--schema", schema, "--unit", "id")
    start = {
        "fit": ("fit", visits, *of_schema, "--out", visits.parent / "m.tacit"),
        "plan": ("plan", "--rows", 100, *of_schema),
        "compare": ("compare", visits, *of_schema, "--public"),
        "evaluate": ("evaluate", model, visits, "--unit", "id"),
    }[command]
    said = refused(*start, "--epsilon", 1, "--relation", "twins")
    assert "--relation 'twins' is unknown; choose from add_remove, replace, add_remove_per" in said


@pytest.mark.parametrize("of", ["record", "person"])
@pytest.mark.parametrize("command", ["fit", "evaluate", "pate"])
def test_a_ledger_of_the_other_unit_names_the_unit_and_the_remedy(
    visits: Path, schema: Path, model: Path, of: str, command: str
) -> None:
    relations = {"record": "add_remove", "person": "add_remove_person"}
    kept = relations[of]
    ledger, pool = visits.parent / "l", write_csv(visits.parent / "pool.csv", rows(300))
    run("ledger", "create", ledger, "--epsilon", 5, "--relation", kept)
    start = {
        "fit": ("fit", visits, "--schema", schema, "--out", visits.parent / "m.tacit"),
        "evaluate": ("evaluate", model, visits),
        "pate": (
            *("pate", visits, "--public", pool, "--schema", schema, "--teacher", "bayes"),
            *("--out", visits.parent / "s.tacit", "--teachers", 40, "--queries", 30),
        ),
    }[command]
    start = (*start, "--epsilon", 2, "--ledger", ledger)
    if of == "person":
        said = refused(*start)
        assert "protects people, and no unit is named; pass --unit" in said
    else:
        said = refused(*start, "--unit", "id")
        assert "the unit is the column 'id': it protects a person" in said
        assert "protects single records. Leave the unit out, or charge a ledger made with" in said
        # A unit need not be declared, so that a mistyped one reads like one that is not.
        said = refused(*start, "--unit", "idd")
        assert "the column 'idd', which the schema lacks (did you mean 'id'?)" in said
    assert Ledger.open(ledger).spent() == 0.0


def test_a_misspelt_unit_is_not_said_to_be_declared(
    visits: Path, schema: Path, model: Path
) -> None:
    fit = ("fit", visits, "--schema", schema, "--out", visits.parent / "m.tacit")
    for words in (fit, ("evaluate", model, visits)):
        said = refused(*words, "-e", 1, "--unit", "ib")
        assert "no column named 'ib', which identifies the person of a record (--unit, or" in said
        assert "schema declares" not in said


def test_a_plan_for_people(schema: Path) -> None:
    words = ("plan", "--rows", 2000, "--epsilon", 1, "--json")
    for told in (("--schema", schema, "--unit", "id"), ("--columns", 4, "--unit", "id")):
        record = json.loads(run(*words, *told).stdout)
        assert (record["relation"], record["features"]) == ("add_remove_person", 4)
    # a column that names people is no feature, whatever it was
    record = json.loads(run(*words, "--schema", schema, "--unit", "age").stdout)
    assert record["features"] == 3
    # what is counted are people
    few = run("plan", "--rows", 90, "--epsilon", 0.1, "--columns", 4, "--unit", "id")
    assert "4 features, 90 people\n" in few.stdout
    assert re.search(r"people needed: about [\d,]+ people for", few.stdout)
    assert "use more people" in few.stderr
    assert "rows" not in few.stdout.partition("\n\n")[0]


def test_compare_by_people(visits: Path, schema: Path) -> None:
    words = ("compare", visits, "--schema", schema, "--public", "-e", 1, "--repeats", 1, "--json")
    result = run(*words, "--unit", "id")
    assert result.exit_code == 0, result.output
    assert SECRET not in result.output


@pytest.mark.parametrize("more", [("--class-weight", "balanced"), ("--inference", 0.1)], ids=str)
def test_people_with_weights_or_errors(more: Any, visits: Path, schema: Path) -> None:
    words = ("fit", visits, "--schema", schema, "-e", 1, "-o", visits.parent / "m.tacit")
    result = run(*words, "--unit", "id", *more)
    assert result.exit_code == 0, result.output
    assert SECRET not in result.output


def test_what_is_refused(visits: Path, schema: Path) -> None:
    out = visits.parent / "m.tacit"
    words = ("fit", visits, "--schema", schema, "-e", 1, "-o", out)
    assert "any number of" in refused(*words, "--unit", "id", "--relation", "replace")
    assert "--unit COLUMN" in refused(*words, "--relation", "add_remove_person")
    assert "the target" in refused(*words, "--unit", "income")
    assert "no column named 'nobody'" in refused(*words, "--unit", "nobody")
    schema.write_text(WITH_UNIT)
    assert "the schema's unit is 'id'" in refused(*words, "--unit", "age")
    planned = ("plan", "--rows", 99, "--epsilon", 1, "--schema", schema)
    assert "any number of" in refused(*planned, "--relation", "replace")


@pytest.mark.filterwarnings("default")
def test_too_few_records_held_out_are_said_without_code(visits: Path, schema: Path) -> None:
    """A hundredth of 1,000 people are about ten, far fewer than noise hides at this budget."""
    result = run(
        *("fit", visits, "--schema", schema, "--unit", "id", "-e", 0.5, "--evaluate", 0.01),
        *("--out", visits.parent / "m.tacit"),
    )
    assert result.exit_code == 0, result.output
    (said,) = (line for line in result.stderr.splitlines() if "evaluation" in line)
    assert said.startswith("the evaluation has no result: about ")
    assert said.endswith("(evaluate, or tacit fit --evaluate).")
    assert "Warning" not in result.stderr
    assert ".py" not in result.stderr
