from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tacit.cli import schema as schema_confirm
from tacit.cli.app import app
from tacit.schema import (
    Age,
    Boolean,
    Category,
    ClassTarget,
    Fill,
    Ignored,
    Indicator,
    Intervals,
    Number,
    Schema,
)
from tests.cli.helpers import refused, run

DRAFT = """\
# ours
n_records = 2000  # from the yearbook
[columns]
name = { kind = "ignored", confirmed = false }  # ignored: too many to list
age = { kind = "number", lower = 10, upper = 90, confirmed = false }  # guessed; few
town = { kind = "category", values = [
  "Oslo", "Rome",
], confirmed = false }  # guessed
sex = { kind = "category", values = ["f", "m"] }  # by the form
ill = { kind = "target", classes = ["no", "yes"], confirmed = false }  # guessed
"""


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    path = tmp_path / "draft.toml"
    path.write_text(DRAFT)
    return path


def answered(path: Path, *answers: str, more: tuple[str, ...] = ()) -> Result:
    words = ["schema", "confirm", str(path), *more]
    return CliRunner().invoke(app, words, input="".join(f"{a}\n" for a in answers))


def test_accept_edit_ignore(draft: Path) -> None:
    result = answered(draft, "y", "e", "0", "120.5", "i", "YES")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{draft}: 2 accepted, 1 edited, 1 ignored; every line is confirmed\n"
    assert draft.read_text() == (
        "# ours\n"
        "n_records = 2000  # from the yearbook\n"
        "[columns]\n"
        'name = { kind = "ignored" }\n'
        'age = { kind = "number", lower = 0, upper = 120.5 }\n'
        'town = { kind = "ignored" }\n'
        'sex = { kind = "category", values = ["f", "m"] }  # by the form\n'
        'ill = { kind = "target", classes = ["no", "yes"] }\n'
    )
    assert "guessed; few" in result.stderr
    # Answers that are piped in are shown, and each question is on a line of its own.
    asked = [line for line in result.stderr.splitlines() if "[q]uit?" in line]
    assert [line.partition("? ")[2] for line in asked] == ["y", "e", "i", "YES"]
    assert [line[:6] for line in result.stderr.splitlines() if " of 4  " in line] == [
        f"{place} of 4" for place in (1, 2, 3, 4)
    ]


def test_quitting_keeps_what_was_answered(draft: Path) -> None:
    result = answered(draft, "y", "y", "q")
    assert "2 still to confirm" in result.stdout
    assert Schema.from_file(draft).unconfirmed == ("town", "ill")
    assert DRAFT[DRAFT.index("town") :] in draft.read_text()
    assert "1 of 2  town" in answered(draft, "q").stderr
    assert answered(draft, "y", "y").exit_code == 0
    assert "nothing to do" in answered(draft).stdout


def test_quitting_at_once_changes_nothing(draft: Path) -> None:
    assert answered(draft, "q").exit_code == 0
    assert draft.read_text() == DRAFT


def test_other_kinds_are_edited_as_the_file_has_them(draft: Path) -> None:
    result = answered(
        draft,
        *("e", '{ kind = "category", values = ["Ann"] }'),
        *("e", "", "100"),
        *("e", '["Oslo", "Rome", "Bern"]'),
        *("e", '{ well = ["no"], ill = ["yes", "very"] }'),
    )
    assert result.exit_code == 0, result.output
    schema = Schema.from_file(draft)
    assert schema.columns[:3] == (
        Category("name", ("Ann",)),
        Number("age", 10, 100),
        Category("town", ("Oslo", "Rome", "Bern")),
    )
    assert schema.target == ClassTarget.merged("ill", {"well": ["no"], "ill": ["yes", "very"]})
    assert schema.n_records == 2000
    assert schema.unconfirmed == ()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("e", "200", ""), "lower must be below upper"),
        (("e", "many", ""), "Invalid: "),
        (("e", '"x"', ""), "must be a number"),
        (("e", "1" + "0" * 5000, ""), "Invalid: "),
        (("e", "", ""), ""),  # nothing was edited, so nothing is confirmed
        (("", "what", "2"), ""),
    ],
)
def test_a_wrong_answer_is_asked_again(draft: Path, wrong: tuple[str, ...], said: str) -> None:
    # what cannot be read ends the editing, so answers after it are for the next question
    result = answered(draft, "y", *wrong, "q")
    assert result.exit_code == 0, result.output
    assert said in result.stderr
    assert Schema.from_file(draft).unconfirmed == ("age", "town", "ill")


def test_answers_that_end_write_nothing(draft: Path) -> None:
    result = answered(draft, "y", "y")
    assert result.exit_code == 2
    assert "nothing was written" in result.stderr
    assert draft.read_text() == DRAFT


def test_an_interrupt_writes_nothing(draft: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = iter("yy")

    def ask(question: str) -> str:
        for answer in given:
            return answer
        raise KeyboardInterrupt

    monkeypatch.setattr(schema_confirm, "ask", ask)
    assert answered(draft).exit_code == 130
    assert draft.read_text() == DRAFT
    assert [path.name for path in draft.parent.iterdir()] == ["draft.toml"]


def test_a_file_changed_meanwhile_is_kept(draft: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(question: str) -> str:
        draft.write_text(DRAFT + "# theirs\n")
        return "y"

    monkeypatch.setattr(schema_confirm, "ask", ask)
    assert "changed meanwhile" in refused("schema", "confirm", draft)
    assert draft.read_text() == DRAFT + "# theirs\n"


def test_another_file(draft: Path) -> None:
    out = draft.with_name("schema.json")
    assert answered(draft, *"yyyy", more=("--out", str(out))).exit_code == 0
    assert draft.read_text() == DRAFT
    assert json.loads(out.read_text())["n_records"] == 2000
    assert Schema.from_file(out).unconfirmed == ()
    assert "--force" in refused("schema", "confirm", draft, "-o", out)
    assert answered(out).exit_code == 0


def test_files_of_another_shape_are_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "draft.toml"
    path.write_text("[columns.age]\nkind = 'number'\nlower = 0\nupper = 9\nconfirmed = false\n")
    assert answered(path, "y").exit_code == 0
    assert Schema.from_file(path) == Schema((Number("age", 0, 9),))
    listed = tmp_path / "draft.json"
    listed.write_text(json.dumps({"columns": {"a": {"kind": "ignored", "confirmed": False}}}))
    assert answered(listed, "y").exit_code == 0
    assert Schema.from_file(listed) == Schema((Ignored("a"),))


def test_a_real_draft(people: Path) -> None:
    path = people.parent / "draft.toml"
    run("schema", "draft", people, "--target", "income", "-o", path)
    record = json.loads(answered(path, *"yyyyy", more=("--json",)).stdout)
    assert record["accepted"] == ["id", "age", "sex", "hours", "income"]
    assert record["unconfirmed"] == []
    assert "DRAFT" not in path.read_text()  # nor that it is secret
    assert path.read_text().startswith("[columns]")
    words = ("fit", people, "--schema", path, "-e", 1, "-o", people.parent / "m.tacit")
    assert run(*words).exit_code == 0


@pytest.mark.parametrize("content", ["", "age = {", "[columns]\nage = { kind = 'number' }"])
def test_what_is_no_schema(tmp_path: Path, content: str) -> None:
    path = tmp_path / "draft.toml"
    path.write_text(content)
    refused("schema", "confirm", path)
    assert path.read_text() == content
    refused("schema", "confirm", tmp_path / "none.toml")


def test_lists_need_no_quotes(draft: Path) -> None:
    result = answered(draft, "y", "y", "e", "jan, feb, mar", "e", '"no, thanks", yes_please', "q")
    assert result.exit_code == 0, result.output
    assert Schema.from_file(draft).columns[2] == Category("town", ("jan", "feb", "mar"))
    assert "Invalid" in result.stderr  # a word without quotes beside one with them


def test_keys_are_changed_one_by_one(draft: Path) -> None:
    result = answered(
        draft,
        *("c", "kind = age", "format = %d.%m.%Y", "missing_codes = 01.01.1900", ""),
        *("2026-01-31", "0", "110"),
        *("c", "log = yes", "missing = { value = 40 }", "missing_codes = 9999, NA", "per = 2", ""),
        *("c", "reference = Oslo", "missing = indicator", "fold_case = true", ""),
        "y",
    )
    assert result.exit_code == 0, result.output
    born, age, town, _ = Schema.from_file(draft).columns
    assert born == Age(
        "name", "2026-01-31", 0, 110, format="%d.%m.%Y", missing_codes=("01.01.1900",)
    )
    codes = ("9999", "NA")
    assert age == Number("age", 10, 90, log=True, missing=Fill(40), missing_codes=codes, per=2)
    assert town == Category(
        "town", ("Oslo", "Rome"), missing=Indicator(), reference="Oslo", fold_case=True
    )
    assert "every line is confirmed" in result.stdout


def test_a_kind_is_changed_with_the_keys_it_needs(draft: Path) -> None:
    result = answered(
        draft,
        *("c", "kind = category", "", "a, b"),
        *("c", "kind = intervals", "", "30, 60"),
        *("c", "kind = target", "", "c", "kind = boolean", "true = Oslo", "false = Rome", ""),
        *("c", "kind = category", ""),
    )
    assert result.exit_code == 0, result.output
    assert "kind = 'target' a second time" in result.stderr
    schema = Schema.from_file(draft)
    assert schema.columns[:3] == (
        Category("name", ("a", "b")),
        Intervals("age", (30, 60)),
        Boolean("town", ("Oslo",), ("Rome",)),
    )
    assert schema.target is None
    assert schema.columns[-1] == Category("ill", ("no", "yes"))


def test_a_key_without_a_value_is_taken_out_and_wrong_ones_are_refused(draft: Path) -> None:
    result = answered(
        draft, "y", "c", "lower =", "", "c", "colour = red", "", "c", "kind = x", "", "q"
    )
    assert result.exit_code == 0, result.output
    assert "lower is not declared" in result.stderr
    assert "the key 'colour' is not known" in result.stderr
    assert "kind = 'x' is not known" in result.stderr
    assert Schema.from_file(draft).unconfirmed == ("age", "town", "ill")


def test_going_back(draft: Path) -> None:
    result = answered(draft, "b", "i", "y", "b", "b", "y", "e", "0", "120", "y", "q")
    assert result.exit_code == 0, result.output
    assert "This is the first line." in result.stderr
    assert result.stdout.startswith(f"{draft}: 2 accepted, 1 edited, 0 ignored; 1 still")
    name, age, *_ = Schema.from_file(draft).columns
    assert (name, age) == (Ignored("name"), Number("age", 0, 120))
