from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tacit.ledger import Ledger, LedgerError
from tacit.report.wording import rounded_up
from tacit.saving import inspect
from tests.cli.helpers import HOURS, refused, run


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "survey.ledger"
    made = run("ledger", "create", path, "-e", 3, "--label", "Survey", "--purpose", "incomes")
    assert made.exit_code == 0, made.output
    return path


def test_a_fit_is_paid_by_the_ledger(ledger: Path, people: Path, schema: Path) -> None:
    out = people.parent / "m.tacit"
    fit = ("fit", people, "--schema", schema, "--ledger", ledger, "--out", out)
    result = run(*fit, "-e", 1, "--purpose", "by age", "--label", "first")
    assert result.exit_code == 0, result.output
    booking = inspect(out).privacy.booking
    assert booking is not None
    assert booking.head == list(Ledger.open(ledger).export())[1]["hash"]
    assert f"entry 1 of ledger {booking.ledger}" in result.stdout
    assert booking.head in run("inspect", out).stdout
    assert booking.ledger in (run("inspect", out, "--json").stdout)
    entry = list(Ledger.open(ledger).export())[1]
    assert (entry["label"], entry["purpose"]) == ("first", "by age")
    assert (entry["release"], entry["table"]) == ("model", people.name)
    # The file is known only after the fit, so that it is an entry of its own, without a cost.
    recorded = list(Ledger.open(ledger).export())[2]
    assert (recorded["kind"], recorded["entry"]) == ("released", 1)
    assert (recorded["sha256"], recorded["file"]) == (inspect(out).sha256, out.name)
    shown = run("ledger", "show", ledger).stdout.splitlines()
    (line,) = (line for line in shown if line.startswith("1\t"))
    assert "model (objective perturbation" in line
    assert f"from {people.name}; first; by age; m.tacit, SHA-256 {recorded['sha256'][:12]}" in line
    assert line.endswith("\t1\t3.33e-07")  # a third of the budget is a third of its delta
    assert not any(line.startswith("2\t") for line in shown)


def test_a_ledger_that_cannot_take_the_hash_is_no_failed_fit(
    ledger: Path, people: Path, schema: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise LedgerError("the disk is full.")

    monkeypatch.setattr(Ledger, "add_file", full)
    out = people.parent / "m.tacit"
    result = run("fit", people, "--schema", schema, "--ledger", ledger, "--out", out, "-e", 1)
    assert result.exit_code == 0, result.output
    assert "its SHA-256 is not in the ledger: the disk is full." in result.stderr
    assert out.exists()


def test_an_evaluation_says_of_which_model(ledger: Path, people: Path, model: Path) -> None:
    words = ("evaluate", model, people, "-e", 1, "--ledger", ledger, "--purpose", "is it good?")
    assert run(*words).exit_code == 0
    shown = run("ledger", "show", ledger, "--json").stdout
    line = json.loads(shown)["entries"][0]
    assert line["what"] == f"evaluation of {model.name}"
    assert (line["table"], line["purpose"]) == (people.name, "is it good?")
    assert line["epsilon"] == pytest.approx(1.0)
    assert line["delta"] == pytest.approx(1e-6 / 3)


@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_fits_that_add_up_are_accepted_without_a_delta(
    model: str, people: Path, schema: Path, tmp_path: Path
) -> None:
    if model == "linear":
        schema.write_text(HOURS)
    ledger = tmp_path / "l"
    assert run("ledger", "create", ledger, "-e", 1, "-d", 1e-6, "--analyst", "a=0.5").exit_code == 0
    fit = ("fit", people, "--schema", schema, "--model", model, "--ledger", ledger)
    for place, epsilon in enumerate((0.3, 0.2)):
        out = tmp_path / f"{place}.tacit"
        result = run(*fit, "--out", out, "-e", epsilon, "--analyst", "a")
        assert result.exit_code == 0, result.output
        assert inspect(out).privacy.target_delta == pytest.approx(epsilon * 1e-6)
    told = refused(*fit, "--out", tmp_path / "x.tacit", "-e", 0.45, "--analyst", "a")
    assert "for 'a', whose share is epsilon 0.5" in told


def test_a_pure_ledger_is_charged_pure_fits(people: Path, schema: Path, tmp_path: Path) -> None:
    ledger, out = tmp_path / "l", tmp_path / "m.tacit"
    assert run("ledger", "create", ledger, "-e", 1, "-d", 0).exit_code == 0
    fit = ("fit", people, "--schema", schema, "--ledger", ledger, "-e", 1, "--out", out)
    assert run(*fit).exit_code == 0
    assert inspect(out).privacy.epsilon(0.0) <= 1.0


def test_an_unpaid_fit_reads_no_table(ledger: Path, people: Path, schema: Path) -> None:
    people.unlink()  # a table that is not there is not noticed: nobody got so far
    fit = ("fit", people, "--schema", schema, "--out", people.parent / "m.tacit")
    assert "over the budget" in refused(*fit, "--ledger", ledger, "-e", 9)
    assert "no ledger at" in refused(*fit, "--ledger", ledger.with_suffix(".x"), "-e", 1)
    assert "no partition" in refused(*fit, "--ledger", ledger, "-e", 1, "--partition", "x")
    assert "--ledger as well" in refused(*fit, "-e", 1, "--purpose", "x")
    assert "password" in refused(*fit, "-e", 1, "--ledger", "postgresql://a:hunter2@h/d")
    assert Ledger.open(ledger).verify().entries == 1


def test_show_tells_what_is_left_and_what_it_buys(ledger: Path) -> None:
    before = run("ledger", "show", ledger).stdout
    assert "[" + "." * 40 + "] 0.0 %" in before
    for _ in range(3):
        paid = run("ledger", "charge", ledger, "--gaussian", 12, "--purpose", "a sum")
        assert paid.exit_code == 0, paid.output
    shown = run("ledger", "show", ledger, "--json")
    record = json.loads(shown.stdout)
    assert record["share"] == pytest.approx(record["spent"] / record["budget"]["epsilon"])
    assert record["rule"]["name"] == "either"
    assert record["head"] == Ledger.open(ledger).head.to_dict()
    text = run("ledger", "show", ledger).stdout
    share = f"{rounded_up(100 * record['share'], 1)} %"
    assert re.search(r"\[#+\.+\] " + re.escape(share), text)
    for bought in record["buys"]:
        line = f"{bought['epsilon']:g}\t{bought['releases']:,}"
        assert line in text
    assert "adds up: spent is the lesser of two sums" in text
    spent, left = map(
        float, re.search(r"epsilon: ([\d.]+) spent of 3, ([\d.]+) left", text).groups()
    )  # type: ignore[union-attr]
    assert spent + left == pytest.approx(3.0, abs=2e-4)
    assert spent / 3 == pytest.approx(record["share"], abs=1e-4)
    assert record["accepts"] in text
    plain = run("ledger", "create", ledger.with_suffix(".sum"), "-e", 1, "--rule", "sum").stdout
    assert "adds up" not in plain  # there it is
    # What it says it would buy is accepted, and one more is not.
    releases = record["buys"][4]["releases"]
    from tacit.privacy.accounting.gaussian_profile import gaussian_mu

    # A fit asks for its share of delta, and is planned at 3/4 of it.
    epsilon = record["buys"][4]["epsilon"]
    each = ("--gaussian", 1 / gaussian_mu(epsilon, 0.75e-6 * epsilon / 3))
    over = refused("ledger", "charge", ledger, *each, "--times", releases + 1)
    assert "over the budget" in over
    assert "raise" not in over
    assert "fixed for life" in over
    # ... and so is what the refusal says would be, and hardly more is not.
    left = float(re.search(r"Gaussian ones up to ([\d.]+) at delta 1e-06", over).group(1))  # type: ignore[union-attr]
    assert left == pytest.approx(record["largest"], abs=1e-4)
    copy = Path(shutil.copy(ledger, ledger.with_suffix(".copy")))
    more, most = (("--gaussian", 1 / gaussian_mu(e, 0.75e-6)) for e in (left + 2e-4, left))
    assert "over the budget" in refused("ledger", "charge", copy, *more)
    assert run("ledger", "charge", copy, *most).exit_code == 0
    assert run("ledger", "charge", ledger, *each, "--times", releases).exit_code == 0


def test_show_has_the_last_entries_the_newest_first(ledger: Path) -> None:
    for place in range(12):
        run("ledger", "charge", ledger, "--pure", 0.01, "--purpose", f"count {place}")
    run("ledger", "declare", ledger, "--partition", "2027")
    run("ledger", "charge", ledger, "--pure", 0.01, "--label", "x", "--partition", "2027")
    lines = [line.split("\t") for line in run("ledger", "show", ledger).stdout.splitlines()]
    rows = [line for line in lines if len(line) == 6]
    assert rows[0] == ["entry", "when", "who", "what", "epsilon", "delta"]
    made = "release made elsewhere (pure release)"
    whats = [
        f"{made}, on 2027; x",
        "partition declared: 2027",
        *(f"{made}; count {n}" for n in range(11, 3, -1)),
    ]
    assert [row[3] for row in rows[1:]] == whats
    assert [int(row[0]) for row in rows[1:]] == list(range(14, 4, -1))
    entries = list(Ledger.open(ledger).export())
    for row in rows[1:]:
        entry = entries[int(row[0])]
        assert row[1:3] == [entry["when"][:10], entry["who"]]
        assert row[4:] == (["0.01", "0"] if entry["kind"] == "charge" else ["", ""])


def test_the_terminal_and_the_page_name_the_same_share(ledger: Path, tmp_path: Path) -> None:
    run("ledger", "charge", ledger, "--gaussian", 12)
    text = run("ledger", "show", ledger, "--html", tmp_path / "a.html").stdout
    (share,) = re.findall(r"\] ([0-9.]+) %", text)
    assert f"{share}\N{NO-BREAK SPACE}% of the budget is spent" in (tmp_path / "a.html").read_text()


def test_a_key_is_paid_once(ledger: Path) -> None:
    charge = ("ledger", "charge", ledger, "--pure", 0.1, "--key", "march", "--json")
    first, second = (json.loads(run(*charge).stdout) for _ in range(2))
    assert first == {**second, "already_booked": False}
    assert second["already_booked"]
    assert first["entry"] == 1
    said = run(*charge[:-1]).stdout
    assert f"already, as entry 1 of ledger {first['ledger']}; nothing was charged" in said
    other = run(*charge[:-2], "april").stdout
    assert "already" not in other
    assert "entry 2 of ledger" in other
    assert "another release" in refused(*charge[:4], 0.2, *charge[5:])


def test_remedies_are_words_of_the_command_line(
    ledger: Path, people: Path, schema: Path, model: Path
) -> None:
    assert "make one with tacit ledger create" in refused(
        "ledger", "show", ledger.with_suffix(".x")
    )
    fit = ("fit", people, "--schema", schema, "--out", people.parent / "m.tacit")
    for words in (fit, ("evaluate", model, people)):
        said = refused(*words, "--epsilon", "inf", "--ledger", ledger)
        assert "--epsilon inf has no finite cost, so it cannot be charged" in said
    made = refused("ledger", "create", ledger.with_suffix(".y"), "--epsilon", "inf")
    assert made.endswith("try things out without a ledger.")


def test_what_is_charged_must_be_said(ledger: Path) -> None:
    assert "exactly one" in refused("ledger", "charge", ledger)
    assert "exactly one" in refused("ledger", "charge", ledger, "--pure", 1, "--zcdp", 1)
    assert "epsilon" in refused("ledger", "charge", ledger, "--pure", -1)


def test_a_name_without_a_share_is_recorded_and_limits_nothing(tmp_path: Path) -> None:
    plain, divided = tmp_path / "plain", tmp_path / "divided"
    assert run("ledger", "create", plain, "-e", 1, "-d", 0).exit_code == 0
    charge = ("ledger", "charge", plain, "--pure", 0.3)
    assert run(*charge, "--analyst", "cy").exit_code == 0
    assert run(*charge).exit_code == 0  # nobody needs a name where nobody has a share
    assert list(Ledger.open(plain).export())[1]["analyst"] == "cy"
    assert "for cy\trelease" in run("ledger", "show", plain).stdout
    made = ("ledger", "create", divided, "-e", 1, "-d", 0, "--analyst", "ann=0.2")
    assert run(*made, "--analyst", "bo").exit_code == 0
    charge = ("ledger", "charge", divided, "--pure", 0.3)
    assert "'ann'" in refused(*charge, "--analyst", "ann")
    assert run(*charge, "--analyst", "bo").exit_code == 0
    shown = run("ledger", "show", divided).stdout
    assert "bo\tnone\t0.3\t0.7\t0.7" in shown
    assert "ann\t0.2\t0\t0.2\t0.2" in shown
    # Where somebody has a share, a misspelt name must not escape it.
    said = refused(*charge, "--analyst", "anne")
    assert "'anne' is none of them ('ann', 'bo')" in said
    assert "names none of them" in refused(*charge)
    assert run("ledger", "verify", divided).exit_code == 0


def test_analysts_and_partitions(tmp_path: Path) -> None:
    path = tmp_path / "a"
    made = run("ledger", "create", path, "-e", 1, "-d", 0, "--analyst", "ann=0.4")
    assert made.exit_code == 0, made.output
    assert run("ledger", "declare", path, "--partition", "2026").exit_code == 0
    charge = ("ledger", "charge", path, "--pure", 0.3)
    assert "analyst" in refused(*charge)
    assert run(*charge, "--analyst", "ann", "--partition", "2026").exit_code == 0
    assert "'ann'" in refused(*charge, "--analyst", "ann")
    shown = run("ledger", "show", path).stdout
    assert "ann\t0.4\t0.3\t0.1\t0.1" in shown
    assert "2026\t0.3\t0.7\t0.7" in shown
    assert "NAME=EPSILON" in refused("ledger", "declare", path, "--analyst", "ann=much")
    assert "fixed for life" in refused("ledger", "declare", path, "--analyst", "ann=0.5")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-e", "inf"), "finite"),
        (("-e", 1, "-d", 0, "--rule", "renyi"), "delta 0"),
        (("-e", 1, "--rule", "best"), "there is no rule 'best'"),
        (("-e", 1, "--relation", "x"), "--relation 'x' is unknown"),
        (("-e", -1), "above 0"),
        (("-e", 1, "--analyst", "ann=2"), "at most"),
    ],
)
def test_what_cannot_be_made(tmp_path: Path, words: tuple[object, ...], said: str) -> None:
    assert said in refused("ledger", "create", tmp_path / "a", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--analyst", "ann=2", "--analyst", "bo=9"), "at most the budget's epsilon"),
        (("--analyst", "ann=2", "--analyst", "ann=1"), "is given twice"),
        (("--partition", "2026", "--partition", "2026"), "already"),
        (("--partition", " "), "must be a name"),
        (("--partition", "2026", "--relation", "replace"), "under REPLACE"),
    ],
)
def test_a_ledger_is_not_half_made(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    # One without the shares that were asked for lets anybody spend all of it.
    path = tmp_path / "a.ledger"
    assert said in refused("ledger", "create", path, "-e", 3, *words)
    assert not path.exists()
    run("ledger", "create", path, "-e", 3)
    if "replace" not in words:
        assert said in refused("ledger", "declare", path, *words)
        assert len(run("ledger", "export", path).stdout.splitlines()) == 1


def test_verify_names_an_older_copy_by_a_newer_certificate(
    ledger: Path, people: Path, schema: Path
) -> None:
    out, old = people.parent / "m.tacit", people.parent / "old.ledger"
    shutil.copy(ledger, old)
    fit = ("fit", people, "--schema", schema, "-e", 1, "--out", out, "--ledger")
    assert run(*fit, ledger).exit_code == 0
    told = run("ledger", "verify", ledger, "--certificate", out, "--prices")
    assert told.exit_code == 0
    assert "3 entries" in told.stdout
    sha256 = inspect(out).sha256
    assert f"m.tacit\tfound: entry 1\t{sha256}" in told.stdout
    told = run("ledger", "verify", ledger, "--certificate", out, "--json")
    (found,) = json.loads(told.stdout)["certificates"]
    assert found == {"file": str(out), "sha256": sha256, "entry": 1}
    assert "no certificate was given" in run("ledger", "verify", ledger).stderr
    assert run("ledger", "verify", old).exit_code == 0
    for words in (
        ("ledger", "verify", old, "--certificate", out),
        ("ledger", "show", old, "--certificate", out),
        ("ledger", "charge", old, "--pure", 0.1, "--certificate", out),
        (*fit[:6], "--out", people.parent / "n.tacit", "--ledger", old, "--certificate", out),
    ):
        assert "older copy" in refused(*words)


def test_a_certificate_without_a_ledger_is_refused(ledger: Path, model: Path) -> None:
    assert "names no ledger" in refused("ledger", "verify", ledger, "--certificate", model)


def test_export_prints_every_entry(ledger: Path, tmp_path: Path) -> None:
    run("ledger", "charge", ledger, "--pure", 0.1)
    lines = run("ledger", "export", ledger).stdout.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["created", "charge"]
    assert run("ledger", "export", ledger, "--out", tmp_path / "a.jsonl").exit_code == 0
    assert (tmp_path / "a.jsonl").read_text().splitlines() == lines
    assert "exists" in refused("ledger", "export", ledger, "--out", tmp_path / "a.jsonl")


def test_html(ledger: Path, tmp_path: Path) -> None:
    run("ledger", "charge", ledger, "--pure", 0.1, "--purpose", "<script>alert(1)</script>")
    page = tmp_path / "ledger.html"
    assert run("ledger", "show", ledger, "--html", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "<h1>Survey</h1>" in text
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert Ledger.open(ledger).head.head in text
    assert "exists" in refused("ledger", "show", ledger, "--html", page)
    assert "HTML" in refused("ledger", "show", ledger, "--html", tmp_path / "a.txt")


def test_a_damaged_ledger_is_one_sentence(ledger: Path) -> None:
    ledger.write_bytes(ledger.read_bytes()[:5000])
    for command in ("show", "verify", "export"):
        refused("ledger", command, ledger)


def test_a_file_that_is_no_ledger_and_a_folder_that_is_not_there_name_the_path(
    tmp_path: Path, people: Path
) -> None:
    said = refused("ledger", "show", people)
    assert "no ledger (check the path), or is damaged" in said
    said = refused("ledger", "create", tmp_path / "none" / "l", "-e", 1)
    assert "name a file in an existing folder" in said
