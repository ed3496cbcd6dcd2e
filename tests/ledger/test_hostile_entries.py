"""Entries that follow by their hashes and say what no ledger says, and words that would mislead.

Whoever can write the file or the tables can add such an entry at the end: every certificate is
still good then, so it is for the reader to see that something was given back.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.ledger import Ledger, LedgerDamaged
from tacit.ledger.state import INFINITE, WHOLE, State, parts_of
from tacit.ledger.store import Entry, canonical, digest
from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Composed,
    Event,
    Gaussian,
    Parallel,
    PureEpsilon,
    Relation,
    Repeated,
    ZeroConcentrated,
)
from tacit.privacy.events.base import Array
from tests.cli.helpers import run as command
from tests.ledger.test_tampering import run

BUDGET = Budget(1.0)
NOTHING = '{"analysts":{},"partitions":{},"whole":[0,0]}'


def forged(address: str, body: str, state: str) -> None:
    """Add an entry as an intruder would: its hash follows, and it vouches for the new totals."""
    last = list(Ledger.open(address)._journal.store.entries(0, 99))[-1]
    entry = Entry(last.number + 1, body, digest(f"{last.hash}\n{body}"), f"key{last.number}")
    row = (entry.number, entry.key, entry.body, entry.hash)
    run(
        address,
        ("INSERT INTO entries (number, key, body, hash) VALUES (?, ?, ?, ?)", row),
        ("UPDATE head SET number = ?, hash = ?, state = ?", (entry.number, entry.hash, state)),
    )


def content(number: int, state: str, **said: Any) -> str:
    return canonical({"number": number, "key": f"key{number - 1}", "state": digest(state), **said})


def charged(cost: list[Any], **more: Any) -> dict[str, Any]:
    """Return what a charge of a given cost says."""
    event = PureEpsilon(0.1).to_dict()
    bound = {"analyst": None, "partition": None, "label": "", "purpose": "", **more}
    return {"kind": "charge", "event": event, "delta": 0.0, "cost": cost, **bound}


def with_totals(ledger: Ledger, **changed: Any) -> str:
    return canonical({**ledger.state().to_dict(), **changed})


def refund(ledger: Ledger) -> tuple[dict[str, Any], str]:
    return charged([-WHOLE // 4, 0]), with_totals(ledger, whole=[0, 0])


def half_of_a_part(ledger: Ledger) -> tuple[dict[str, Any], str]:
    return charged([0.5, 0]), with_totals(ledger)


def made_again(ledger: Ledger) -> tuple[dict[str, Any], str]:
    return {"kind": "created", **ledger.terms.to_dict(), "version": 1}, NOTHING


def share_again(ledger: Ledger) -> tuple[dict[str, Any], str]:
    shares = {"ann": {"epsilon": 1.0, "spent": [0, 0]}}
    return {"kind": "analyst", "name": "ann", "epsilon": 1.0}, with_totals(ledger, analysts=shares)


def part_again(ledger: Ledger) -> tuple[dict[str, Any], str]:
    return {"kind": "partition", "name": "p"}, with_totals(ledger, partitions={"p": [0, 0]})


def unknown_kind(ledger: Ledger) -> tuple[dict[str, Any], str]:
    return {"kind": "amnesty", "name": "x"}, with_totals(ledger, whole=[0, 0])


def no_such_analyst(ledger: Ledger) -> tuple[dict[str, Any], str]:
    return charged([0, 0], analyst="bo"), with_totals(ledger)


def too_few_costs(ledger: Ledger) -> tuple[dict[str, Any], str]:
    return charged([5]), with_totals(ledger)


FORGERIES = [refund, half_of_a_part, made_again, share_again, part_again, unknown_kind]
FORGERIES += [no_such_analyst, too_few_costs]


def spent_ledger(address: str) -> Ledger:
    """Return a ledger in which everything is half spent."""
    ledger = Ledger.create(address, BUDGET)
    ledger.add_analyst("ann", 0.5)
    ledger.add_partition("p")
    ledger = ledger.bound(analyst="ann")
    ledger.charge(PureEpsilon(0.25))
    ledger.bound(partition="p").charge(PureEpsilon(0.25))
    return ledger


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_an_entry_that_gives_back_is_named(
    address: str, forge: Callable[[Ledger], tuple[dict[str, Any], str]]
) -> None:
    ledger = spent_ledger(address)
    said, state = forge(ledger)
    forged(address, content(5, state, **said), state)
    with pytest.raises(LedgerDamaged, match="entry 5 does not follow"):
        ledger.verify()
    with pytest.raises(LedgerDamaged, match="entry 5 does not follow"):
        Ledger.open(address)
    if state != with_totals(spent_ledger(address + "2")):
        # Nor does a process that had it open go on from totals that fell.
        with pytest.raises(LedgerDamaged, match="given back"):
            ledger.charge(PureEpsilon(0.01))


@pytest.mark.parametrize("body", ["x", "[]", "7", '{"number":5}', "[" * 100_000, '{"number":NaN}'])
def test_an_entry_that_says_nothing_is_named(tmp_path: Path, body: str) -> None:
    path = str(tmp_path / "a")
    ledger = spent_ledger(path)
    forged(path, body, ledger.state().text)
    for use in (ledger.verify, lambda: Ledger.open(path), lambda: ledger.charge(PureEpsilon(0.01))):
        with pytest.raises(LedgerDamaged, match="entry 5"):
            use()


def test_more_than_the_budget_is_named(address: str) -> None:
    ledger = spent_ledger(address)
    over = charged([WHOLE, 0], analyst="ann")
    state = ledger.state().after(over).text
    forged(address, content(5, state, **over), state)
    with pytest.raises(LedgerDamaged, match="more than the budget"):
        ledger.verify()
    with pytest.raises(BudgetExceeded):
        Ledger.open(address).bound(analyst="ann").charge(PureEpsilon(0.01))


# --- numbers -------------------------------------------------------------------------------------

TINY = [Gaussian(1e170), PureEpsilon(1e-200), ZeroConcentrated(1e-320), PureEpsilon(5e-324)]


@pytest.mark.parametrize("rule", ["sum", "gaussian", "renyi", "odometer"])
@pytest.mark.parametrize("event", TINY, ids=str)
def test_no_release_is_so_small_that_it_is_free(tmp_path: Path, rule: str, event: Event) -> None:
    ledger = Ledger.create(tmp_path / "a", Budget(1.0, 1e-6), rule)
    if rule == "gaussian" and isinstance(event, ZeroConcentrated):
        pytest.skip("has no mu")
    ledger.charge(event, 0.0 if isinstance(event, PureEpsilon) else None)
    assert max(ledger.state().whole) > 0
    assert min(ledger.terms.price(_charge(ledger, event))) >= (0 if rule == "sum" else 1)


def _charge(ledger: Ledger, event: Event) -> Any:
    from tacit.privacy.accountant import charge_of

    return charge_of(event, None, ledger.budget)


@pytest.mark.parametrize("cost", [float("nan"), -1.0, -1e-300])
def test_a_cost_that_is_none_is_refused(cost: float) -> None:
    with pytest.raises(ArithmeticError):
        parts_of((cost,), (1.0,))


def test_costs_beyond_any_number_stay_there(tmp_path: Path) -> None:
    assert parts_of((np.inf, 1e300, 0.0), (1.0, 1e-300, 0.0)) == (INFINITE, INFINITE, 0)
    ledger = Ledger.create(tmp_path / "a", Budget(1.0, 1e-6))
    for event in (Repeated(Gaussian(1e-3), 2**53), Repeated(PureEpsilon(1e-6), 2**53)):
        with pytest.raises(BudgetExceeded):
            ledger.charge(event)
    with pytest.raises(ValueError, match="count"):
        Repeated(PureEpsilon(1e-9), 10**400)
    with pytest.raises(ValueError, match="count"):
        Repeated(Repeated(PureEpsilon(1e-9), 2**40), 2**40)
    assert ledger.verify().entries == 1


def test_releases_on_parts_of_a_part_cost_what_the_worst_does(address: str) -> None:
    ledger = Ledger.create(address, Budget(1.0, 1e-6), "gaussian")
    ledger.add_partition("2026")
    mine = ledger.bound(partition="2026")
    many = Parallel((Composed((Gaussian(20.0), Gaussian(20.0))), Gaussian(30.0)))
    mine.charge(many)
    (cost,) = ledger.state().partitions["2026"]
    (twice,) = ledger.terms.price(_charge(ledger, Repeated(Gaussian(20.0), 2)))
    assert cost == pytest.approx(twice)
    assert ledger.state().whole == (0,)
    for rule in ("renyi", "odometer", "sum"):
        other = Ledger.create(f"{address}{rule}", Budget(1.0, 1e-6), rule)
        alone = Accountant(Budget(1.0, 1e-6), other.rule)  # type: ignore[arg-type]
        assert other.charge(many) == pytest.approx(alone.charge(many))


@dataclass(frozen=True)
class Cheap(PureEpsilon):
    """An event of one's own that says it costs nothing, under the name of one of tacit's."""

    epsilon: float = 9.0
    relation: Relation = field(default=Relation.ADD_REMOVE)

    def pure_epsilon(self) -> float:
        return 1e-9

    def renyi(self, orders: Array) -> Array:
        return np.full_like(orders, 1e-9)


def test_an_event_that_nobody_else_can_price_is_refused(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", Budget(1.0, 1e-6))
    with pytest.raises(TypeError, match="nobody could check its price"):
        ledger.charge(Cheap())
    assert ledger.verify(prices=True).entries == 1


# --- words ---------------------------------------------------------------------------------------


def test_names_that_look_the_same_are_the_same(address: str) -> None:
    ledger = Ledger.create(address, BUDGET)
    ledger.add_partition("M\u00e4rz")
    with pytest.raises(ValueError, match="already"):
        ledger.add_partition("Ma\u0308rz")
    ledger.bound(partition="Ma\u0308rz").charge(PureEpsilon(0.25))
    assert ledger.bound(partition="M\u00e4rz").remaining() == 0.75
    for wrong in (" ann", "ann ", "", "a\nb", "\x1b[31m", "\u202eann", "x" * 201, "\ud800", 7):
        with pytest.raises(ValueError, match="printable"):
            ledger.add_analyst(wrong, 0.5)  # type: ignore[arg-type]
    assert ledger.verify().entries == 3


def test_an_account_of_any_name_may_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.report import write_ledger

    for name in ("x" * 100_000, "\udc80\x1b[31m<script>alert(1)</script>"):
        monkeypatch.setenv("LOGNAME", name)
        ledger = Ledger.create(tmp_path / f"a{len(name)}", BUDGET)
        ledger.charge(PureEpsilon(0.5))
        assert all(len(entry["who"]) <= 1000 for entry in ledger.export())
        write_ledger(tmp_path / "a.html", ledger)
        page = (tmp_path / "a.html").read_text(encoding="utf-8")
        assert "<script" not in page
        assert "\x1b" not in page


EVIL = "\x1b]0;owned\x07\x1b[31m<img src=x onerror=alert(1)>\u202e"


def test_what_strangers_wrote_does_not_reach_the_terminal(tmp_path: Path) -> None:
    """A ledger that another office sent may hold any text, with hashes that follow."""
    path = str(tmp_path / "a")
    ledger = Ledger.create(path, BUDGET, label="Survey", purpose=EVIL)
    said = {"kind": "partition", "name": EVIL, "when": EVIL, "who": EVIL}
    state = ledger.state().after(said).text
    forged(path, content(1, state, **said), state)
    out = tmp_path / "a.html"
    for words in (("show", path, "--html", str(out)), ("show", path, "--json"), ("verify", path)):
        done = command("ledger", *words)
        assert done.exit_code == 0, done.output
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", done.output)
    assert not re.search("[\x1b\u202e]|<img", out.read_text(encoding="utf-8"))
    command("ledger", "export", path, "--out", str(tmp_path / "a.jsonl"))
    text = (tmp_path / "a.jsonl").read_text()
    assert "\x1b" not in text
    assert [json.loads(line)["kind"] for line in text.splitlines()] == ["created", "partition"]
    assert os.path.exists(out)


def test_a_state_that_lost_something_has_not_grown() -> None:
    before = State((5, 0), {"p": (1, 0)}, {})
    assert before.has_grown_from(before)
    assert State((5, 1), {"p": (1, 0), "q": (0, 0)}, {}).has_grown_from(before)
    for less in (State((4, 9), {"p": (1, 0)}), State((5, 0)), State((5, 0), {"p": (0, 9)})):
        assert not less.has_grown_from(before)
