"""Mistakes on the command line: each is one sentence, and the ledger has no new entry."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import tacit
from tacit.estimators.parameters import NobodyCountedWarning
from tacit.ledger import Ledger
from tacit.linear_model import LogisticRegression
from tacit.tuning import PrivateSearch
from tests.cli.helpers import HOURS, SCHEMA, refused, rows, run, write_csv


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files, good and bad, that every row may name."""
    made = tmp_path_factory.mktemp("mistakes")
    write_csv(made / "people.csv", rows(300))
    write_csv(made / "pool.csv", rows(60))
    (made / "schema.toml").write_text(SCHEMA)
    (made / "hours.toml").write_text(HOURS)
    (made / "misspelt.toml").write_text(SCHEMA.replace('"low", "high"', '"Low", "High"'))
    (made / "guessed.toml").write_text(SCHEMA.replace("upper = 100", "upper = 100, confirmed = 0"))
    (made / "guessed.toml").write_text(
        (made / "guessed.toml").read_text().replace("= 0 ", "= false ")
    )
    (made / "other.csv").write_text("a,b\n1,2\n")
    (made / "folder").mkdir()
    columns: dict[str, Any] = {"id": ["a"] * 9, "age": [30] * 9, "sex": ["f"] * 9}
    columns |= {"hours": [1] * 9, "income": ["low"] * 9}
    for name, other in (("numbers", {"income": [1] * 9}), ("dates", {"age": _dates()})):
        pa.parquet.write_table(pa.table({**columns, **other}), made / f"{name}.parquet")
    out = made / "model.tacit"
    fitted = run("fit", made / "people.csv", "--schema", made / "schema.toml", "-e", 9, "-o", out)
    assert fitted.exit_code == 0, fitted.output
    made_ledger = run("ledger", "create", made / "survey.ledger", "-e", 100, "-d", 1e-3)
    assert made_ledger.exit_code == 0, made_ledger.output
    return made


def _dates() -> Any:
    return pa.array([0] * 9, pa.date32())


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    yield
    for name in ("new.tacit", "new.html"):
        (folder / name).unlink(missing_ok=True)


FIT = "fit people.csv --schema schema.toml -e 1 -o new.tacit"
EVALUATE = "evaluate model.tacit people.csv -e 1"
PATE = "pate people.csv --public pool.csv --schema schema.toml -e 8 -o new.tacit --teachers 10"
PATE += " --queries 10"

# Name: the command, what is changed in it, what is added, and a part of the sentence.
MISTAKES: dict[str, tuple[str, dict[str, str], str, str]] = {
    "out in no folder": (FIT, {"new.tacit": "no/new.tacit"}, "", "there is no such folder"),
    "out is a folder": (FIT, {"new.tacit": "folder"}, "", "is a folder"),
    "out exists": (FIT, {"new.tacit": "model.tacit"}, "", "exists"),
    "out is the table": (FIT, {"new.tacit": "people.csv"}, "--force", "reads or writes"),
    "out is the ledger": (FIT, {"new.tacit": "survey.ledger"}, "--force", "reads or writes"),
    "out is its journal": (FIT, {"new.tacit": "survey.ledger-journal"}, "", "reads or writes"),
    "out is no file": (FIT, {"new.tacit": "/dev/null"}, "--force", "not a regular file"),
    "out cannot be written": (FIT, {"new.tacit": "/proc/new.tacit"}, "", "nothing was charged"),
    "report is a picture": (FIT, {}, "--report new.png", "a report is an HTML file"),
    "report in no folder": (FIT, {}, "--report no/new.html", "there is no such folder"),
    "report is the ledger": (FIT, {}, "--force --report survey.ledger", "reads or writes"),
    "model": (FIT, {}, "--model logit", "--model 'logit' is unknown"),
    "model of numbers": (FIT, {}, "--model linear", "does not predict classes"),
    "mechanism": (FIT, {}, "--mechanism objective", "is unknown"),
    "relation": (FIT, {}, "--relation swap", "--relation 'swap' is unknown"),
    "replace": (FIT, {}, "--relation replace", "n_records"),
    "epsilon 0": (FIT, {"-e 1": "-e 0"}, "", "--epsilon must be above 0"),
    "epsilon in words": (FIT, {"-e 1": "-e one"}, "", "write it with a decimal point"),
    "delta": (FIT, {}, "--delta 2", "delta must be in"),
    "target misspelt": (FIT, {}, "--target incme", "no column 'incme'"),
    "quantile of classes": (FIT, {}, "--quantile 0.5", "--quantile is for"),
    "class weight": (FIT, {}, "--class-weight hihg=3", "is not understood"),
    "standard errors": (FIT, {}, "--inference 0.1 --model svc", "no standard errors"),
    "share held out": (FIT, {}, "--evaluate 2", "evaluate must be a share"),
    "partition": (FIT, {}, "--partition north", "no partition 'north'"),
    "certificate": (FIT, {}, "--certificate people.csv", "not a model"),
    "delimiter": (FIT, {}, "--delimiter ::", "delimiter must be one"),
    "another delimiter": (FIT, {}, "--delimiter ;", "no column named"),
    "no table": (FIT, {"people.csv": "none.csv"}, "", "there is no such file"),
    "table of another form": (FIT, {"people.csv": "schema.toml"}, "", "no known ending"),
    "no schema": (FIT, {"schema.toml": "none.toml"}, "", "there is no such file"),
    "schema guessed": (FIT, {"schema.toml": "guessed.toml"}, "", "not confirmed"),
    "network of unknown size": (FIT, {}, "--model network", "declare n_records"),
    "certificates without TLS": (FIT, {}, "--tls-ca x.pem", "belong together"),
    "target of numbers": (FIT, {"people.csv": "numbers.parquet"}, "", "no record would count"),
    "column of dates": (FIT, {"people.csv": "dates.parquet"}, "", "neither a number nor text"),
    "no model to evaluate": (EVALUATE, {"model.tacit": "none.tacit"}, "", "no such file"),
    "what is no model": (EVALUATE, {"model.tacit": "pool.csv"}, "", "not a model"),
    "bins": (EVALUATE, {}, "--bins 0", "bins must be in"),
    "too few rows": (EVALUATE, {}, "--rows 2", "too few"),
    "report of an evaluation": (EVALUATE, {}, "--report no/new.html", "no such folder"),
    "evaluation over the ledger": (EVALUATE, {}, "--force --report survey.ledger", "reads or"),
    "unit that predicts": (EVALUATE, {}, "--unit age", "predicts from"),
    "labels of numbers": (EVALUATE, {"people.csv": "numbers.parquet"}, "", "no record would count"),
    "pool without columns": (PATE, {"pool.csv": "other.csv"}, "", "no column named"),
    "pool that is the table": (PATE, {"pool.csv": "people.csv"}, "", "the sensitive table itself"),
    "pool of other classes": (PATE, {"schema.toml": "misspelt.toml"}, "", "has one of the classes"),
    "teacher": (PATE, {}, "--teacher tre", "--teacher must be one of"),
    "student": (PATE, {}, "--student tre", "--student must be one of"),
    "no teachers": (PATE, {"10 --queries": "0 --queries"}, "", "n_teachers must be in"),
    "jobs": (PATE, {}, "--jobs 0", "n_jobs must be a whole number other than 0"),
    "many queries": (PATE, {"--queries 10": "--queries 1000"}, "", "X_public has 60 rows"),
    "teachers of numbers": (PATE, {"schema.toml": "hours.toml"}, "", "teachers vote for classes"),
    "student over the ledger": (PATE, {"new.tacit": "survey.ledger"}, "--force", "reads or"),
}


def words(row: tuple[str, dict[str, str], str, str]) -> list[str]:
    command, changes, added, _ = row
    for old, new in changes.items():
        command = command.replace(old, new)
    return [*command.split(), *added.split(), "--ledger", "survey.ledger"]


def test_there_are_forty() -> None:
    assert len(MISTAKES) >= 40


@pytest.mark.parametrize("name", MISTAKES)
def test_nothing_is_charged(name: str) -> None:
    said = refused(*words(MISTAKES[name]))
    assert MISTAKES[name][3] in said
    assert Ledger.open("survey.ledger").head.entry == 0
    assert not Path("new.tacit").exists()


def test_an_export_does_not_replace_its_ledger() -> None:
    for command in ("export survey.ledger --out", "show survey.ledger --html"):
        said = refused("ledger", *command.split(), "survey.ledger", "--force")
        assert "reads or writes" in said
    assert Ledger.open("survey.ledger").head.entry == 0


def test_no_output_replaces_a_ledger_that_the_command_does_not_name() -> None:
    shutil.copy("survey.ledger", "survey.csv")
    fit = FIT.replace("new.tacit", "survey.ledger")
    for command in (fit, "predict model.tacit people.csv -o survey.csv"):
        assert "is a database" in refused(*command.split(), "--force")
    assert Ledger.open("survey.ledger").head.entry == 0
    assert Ledger.open("survey.csv").head.entry == 0


@pytest.mark.parametrize("data", ["part-*.csv", "file://{here}/part-1.csv"])
def test_no_output_replaces_one_of_several_tables(data: str) -> None:
    for number in (1, 2):
        shutil.copy("people.csv", f"part-{number}.csv")
    before = Path("part-1.csv").read_bytes()
    words = [word.replace("new.tacit", "part-1.csv") for word in FIT.split()]
    words[1] = data.format(here=Path.cwd())
    assert "reads or writes" in refused(*words, "--force")
    assert Path("part-1.csv").read_bytes() == before


# --- nobody's label counted -----------------------------------------------------------------------


TRIES = 8  # The noisy count of nobody is above its threshold once in forty times.


@pytest.mark.filterwarnings("default:the evaluation has no result")
@pytest.mark.parametrize(
    "added", ["", "--evaluate 0.1", "--model svc", "--inference 0.1", "--class-weight balanced"]
)
def test_a_model_of_nobody_is_told_and_not_lost(added: str) -> None:
    """At epsilon 0.1 the count of 300 records cannot be told from 0 in most fits."""
    command = [*FIT.replace("schema.toml", "misspelt.toml").split(), *added.split(), "--force"]
    for _ in range(TRIES):
        shutil.copy("survey.ledger", "copy.ledger")
        result = run(*command, "--ledger", "copy.ledger")
        if result.exit_code:
            break
        Path("new.tacit").unlink()
    assert result.exit_code == 2
    said = result.stderr
    assert "about 0 of your records had a declared class" in said
    assert "is classes=['High', 'Low'] right?" in said
    assert "Epsilon 1 and delta 1e-05 were charged to the ledger" in said
    assert "is saved in new.tacit" in said
    assert [entry["kind"] for entry in Ledger.open("copy.ledger").export()][1:] == [
        "charge",
        "released",
    ]
    assert tacit.load("new.tacit").privacy_.booking is not None


def test_a_number_that_is_public_is_not_counted() -> None:
    # Nothing that is released tells how many had a class; so nothing is said.
    Path("public.toml").write_text("n_records = 300\n" + Path("misspelt.toml").read_text())
    fitted = run(*FIT.replace("schema.toml", "public.toml").split())
    assert (fitted.exit_code, "about 0" in fitted.output) == (0, False)


def of(classes: list[str], n: int = 4000, **told: Any) -> list[str]:
    """Return the warnings of a fit."""
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (n, 3))
    labels = np.where(x[:, 0] > 0, "yes", "no")
    model = LogisticRegression(row_norm=1.0, classes=classes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NobodyCountedWarning)
        (PrivateSearch(model, told["space"], 3.0) if told else model).fit(x, labels)
    return [str(w.message) for w in caught if w.category is NobodyCountedWarning]


def test_the_released_count_decides() -> None:
    assert of(["no", "yes"]) == []
    said = next(filter(None, (of(["No", "Yes"]) for _ in range(TRIES))))[0]
    assert "is classes=['No', 'Yes'] right?" in said
    assert "give or take" in said


def test_tries_of_a_search_say_nothing() -> None:
    # Their counts are not released.
    assert of(["No", "Yes"], space={"regularization": [1.0, 10.0]}) == []
