"""Entries in words: costs, files, kinds, and what was written before these words were there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger, LedgerDamaged
from tacit.ledger.entries import File, in_words, lines
from tacit.ledger.state import State
from tacit.privacy import Budget, Composed, Gaussian, Parallel, PureEpsilon, Repeated
from tacit.privacy.events.base import Event
from tests.privacy.families import FAMILIES

SHA256 = "ab" * 32


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "a.ledger", Budget(1.0, 1e-6))


def test_a_line_has_what_was_asked_for(ledger: Ledger) -> None:
    mine = ledger.bound(release="model", table="t.csv", purpose="why", label="l", who="me")
    mine.charge(PureEpsilon(0.25))
    event = Gaussian(60.0)
    mine.charge(event, ledger.planning_delta(1e-7))
    pure, noisy = lines(ledger.export(), ledger.terms)[1:]
    assert pure.epsilon == pytest.approx(0.25)
    assert pure.delta == 0.0
    assert (pure.what, pure.table, pure.purpose, pure.label) == ("model", "t.csv", "why", "l")
    assert noisy.delta == pytest.approx(1e-7)
    assert noisy.epsilon == pytest.approx(alone(event, 0.75e-7))


def alone(event: Event, delta: float) -> float:
    from tacit.privacy import Guarantee

    return Guarantee(event).epsilon(delta)


@pytest.mark.parametrize("rule", ["sum", "gaussian", "renyi", "odometer", "either"])
def test_every_rule_gives_an_entry_its_own_epsilon(tmp_path: Path, rule: str) -> None:
    ledger = Ledger.create(tmp_path / "b.ledger", Budget(2.0, 1e-6), rule)
    for _ in range(2):
        ledger.charge(Gaussian(12.0), 1e-7)
    first, second = lines(ledger.export(), ledger.terms)[1:]
    assert first.epsilon == second.epsilon == pytest.approx(alone(Gaussian(12.0), 1e-7))


def test_a_first_release_that_takes_all_keeps_its_own_epsilon(ledger: Ledger) -> None:
    event = Gaussian(1 / 0.2188)  # within (1, 1e-6) alone, and not by what a ledger plans
    ledger.charge(event, 1e-6)
    (line,) = lines(ledger.export(), ledger.terms)[1:]
    assert line.epsilon == pytest.approx(alone(event, 1e-6))


def test_a_recorded_file_is_on_the_line_of_its_charge(ledger: Ledger) -> None:
    paid = ledger.charge(PureEpsilon(0.1))
    other = ledger.charge(PureEpsilon(0.1))
    before = ledger.state()
    ledger.add_file(paid.booking, SHA256, "m.tacit")
    assert ledger.state() == before
    assert ledger.verify(prices=True).entries == 4
    found = lines(ledger.export(), ledger.terms, {other.booking.entry: File("n", "0" * 64)})
    assert [line.number for line in found] == [0, 1, 2]
    assert found[1].file == File("m.tacit", SHA256)
    assert found[2].file == File("n", "0" * 64)
    # Alone, without its charge, it is a line of its own.
    (line,) = lines(ledger.export(last=1), ledger.terms)
    assert (line.what, line.file) == ("file recorded, for entry 1", File("m.tacit", SHA256))


def test_a_second_file_does_not_replace_the_first(ledger: Ledger) -> None:
    paid = ledger.charge(PureEpsilon(0.1)).booking
    ledger.add_file(paid, SHA256, "m.tacit")
    ledger.add_file(paid, "cd" * 32, "other.tacit")
    charge, second = lines(ledger.export(), ledger.terms, {1: File("n", "0" * 64)})[1:]
    assert charge.file == File("m.tacit", SHA256)
    assert (second.what, second.file) == (
        "file recorded, for entry 1",
        File("other.tacit", "cd" * 32),
    )


def test_a_file_belongs_to_a_charge_of_this_ledger(ledger: Ledger, tmp_path: Path) -> None:
    paid = ledger.charge(PureEpsilon(0.1))
    for wrong in ("", "xyz", SHA256.upper(), SHA256 + "0"):
        with pytest.raises(ValueError, match="SHA-256 is 64"):
            ledger.add_file(paid.booking, wrong)
    with pytest.raises(ValueError, match="entry 2 is no charge"):
        ledger.add_file(ledger.add_partition("2026"), SHA256)
    other = Ledger.create(tmp_path / "other", Budget(1.0))
    with pytest.raises(RuntimeError, match="names ledger"):
        other.add_file(paid.booking, SHA256)
    assert ledger.verify().entries == 3


@pytest.mark.parametrize(
    "content",
    [
        {"entry": 0, "sha256": SHA256},
        {"entry": 7, "sha256": SHA256},
        {"entry": True, "sha256": SHA256},
        {"entry": 1, "sha256": "short"},
        {"entry": 1},
    ],
)
def test_a_forged_record_of_a_file_is_damage(content: dict[str, Any]) -> None:
    with pytest.raises((ValueError, LookupError)):
        State((0,)).after({"kind": "released", "number": 5, **content})


def test_an_unknown_kind_is_still_damage(ledger: Ledger) -> None:
    with pytest.raises((ValueError, LookupError)):
        ledger.state().after({"kind": "gift", "name": "x", "number": 3})
    assert issubclass(LedgerDamaged, RuntimeError)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_kind_of_event_has_words(family: str) -> None:
    said = in_words(FAMILIES[family](4.0).to_dict())
    assert "_" not in said
    for word in ("composed", "parallel", "repeated", "one_of", "best_of"):
        assert word not in said


def test_many_parts_are_counted() -> None:
    parts = (PureEpsilon(0.1), Gaussian(3.0), Gaussian(4.0), Repeated(PureEpsilon(0.1), 1200))
    assert in_words(Composed(parts).to_dict()) == (
        "pure release, together with Gaussian noise (2 times), together with pure release "
        "(1,200 times)"
    )
    nested = Parallel((Composed((Gaussian(3.0), PureEpsilon(0.1))), Gaussian(2.0)))
    assert in_words(nested.to_dict()).startswith("on disjoint parts of the records, the costliest")
    assert in_words({"kind": "of_the_future"}) == "of the future"


KEPT = Path(__file__).parents[1] / "golden" / "kept"


@pytest.mark.parametrize("name", ["ledger_sum", "ledger_gaussian", "ledger_renyi"])
def test_ledgers_of_before_have_lines_and_go_on(name: str, tmp_path: Path) -> None:
    """What older ledgers wrote has no release, no table and no file; new entries may follow."""
    ledger = Ledger.open(shutil.copy(KEPT / name, tmp_path / name))
    each = lines(ledger.export(), ledger.terms)
    assert len(each) == ledger.head.entry + 1
    assert any(line.is_charge for line in each)
    for line in each:
        assert (line.epsilon is not None) == line.is_charge
        assert (line.table, line.file) == ("", None)
    ledger.add_analyst("new")
    mine = ledger.bound(analyst="new", partition="2030", release="model", table="t.csv")
    paid = mine.charge(PureEpsilon(0.01))
    ledger.add_file(paid.booking, SHA256, "m.tacit")
    again = Ledger.open(ledger.address, seen=paid.booking)
    assert again.verify(prices=True).entries == len(each) + 3
    assert lines(again.export(), again.terms)[-1].file == File("m.tacit", SHA256)


def test_what_is_not_said_is_not_written(ledger: Ledger) -> None:
    ledger.charge(PureEpsilon(0.1))
    assert not {"release", "table"} & ledger.entry(1).keys()
    assert json.loads(json.dumps(ledger.entry(1)))["purpose"] == ""
