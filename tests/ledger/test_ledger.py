"""A ledger is one budget for whoever has its address, on either store."""

from __future__ import annotations

import copy
import json
import math
import pickle
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from tacit.ledger import Ledger, LedgerError
from tacit.linear_model import LogisticRegression
from tacit.location import Mean
from tacit.privacy import (
    Accountant,
    AnyAccountant,
    Budget,
    BudgetExceeded,
    Gaussian,
    NonPrivate,
    PureEpsilon,
    Relation,
)
from tacit.privacy.guarantee import Booked
from tests.privacy.test_accountant import in_a_child, needs_fork

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((60, 2))
LABELS = ROWS[:, 0] > 0
PURE = Budget(1.0)


def charges(ledger: Ledger) -> list[float]:
    """Return the epsilon of each entry that is a pure charge."""
    return [e["event"]["epsilon"] for e in ledger.export() if e["kind"] == "charge"]


# --- what a ledger is ----------------------------------------------------------------------------


def test_it_is_an_accountant_that_is_found_again(address: str) -> None:
    ledger = Ledger.create(address, PURE)
    assert isinstance(ledger, AnyAccountant)
    paid = ledger.charge(PureEpsilon(0.25))
    assert paid == 0.25
    assert isinstance(paid, Booked)
    again = Ledger.open(address)
    assert (again.spent(), again.remaining()) == (0.25, 0.75)
    assert (again.budget, again.rule) == (ledger.budget, ledger.rule)
    assert again.head == paid.booking == ledger.verify().head
    with pytest.raises(
        BudgetExceeded, match=r"over the budget.* Epsilon 0\.75 is left\. .*for life\."
    ):
        again.charge(PureEpsilon(0.76))
    again.check(PureEpsilon(0.75))
    with pytest.raises(BudgetExceeded):
        again.check(PureEpsilon(0.76))
    assert charges(again) == [0.25]


def test_a_budget_is_spent_to_the_last(address: str) -> None:
    ledger = Ledger.create(address, PURE)
    for _ in range(10):
        ledger.charge(PureEpsilon(0.1))
    assert ledger.spent() == pytest.approx(1.0)
    with pytest.raises(BudgetExceeded):
        ledger.charge(PureEpsilon(1e-9))


def test_there_is_no_second_ledger_at_an_address(address: str) -> None:
    ledger = Ledger.create(address, PURE)
    ledger.charge(PureEpsilon(0.5))
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(address, PURE)
    assert ledger.spent() == 0.5


def test_a_ledger_that_is_not_there_is_not_made(address: str) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(address)
    assert not Path(address).exists()


def test_a_file_that_is_no_ledger_is_not_touched(tmp_path: Path) -> None:
    for name, body in (("a.txt", b"hello" * 500), ("empty", b"")):
        path = tmp_path / name
        path.write_bytes(body)
        with pytest.raises(LedgerError, match="not a"):
            Ledger.open(path)
        assert path.read_bytes() == body


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_is_the_same_ledger(duplicate: Callable[[Ledger], Ledger], tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", PURE)
    assert duplicate(ledger) is ledger
    assert clone(Mean(accountant=ledger)).accountant is ledger


def test_a_pickle_holds_the_address(address: str) -> None:
    ledger = Ledger.create(address, PURE).bound(label="first")
    other = pickle.loads(pickle.dumps(ledger))
    other.charge(PureEpsilon(0.6))
    assert ledger.spent() == 0.6
    with pytest.raises(BudgetExceeded):
        ledger.charge(PureEpsilon(0.6))
    assert [e["label"] for e in ledger.export()] == ["", "first"]


def test_an_address_is_where_the_file_is_and_not_where_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("a #1?%41.ledger", PURE)
    assert (tmp_path / "a #1?%41.ledger").exists()
    monkeypatch.chdir("/")
    assert pickle.loads(pickle.dumps(ledger)).charge(PureEpsilon(0.5)) == 0.5


# --- who may spend -------------------------------------------------------------------------------


def test_threads_do_not_overspend(address: str) -> None:
    ledger, start = Ledger.create(address, PURE), threading.Barrier(4)
    accepted: list[float] = []

    def spend() -> None:
        start.wait()
        try:
            accepted.append(ledger.charge(PureEpsilon(0.4)))
        except BudgetExceeded:
            accepted.append(math.inf)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(accepted) == [0.4, 0.8, math.inf, math.inf]
    assert charges(ledger) == [0.4, 0.4]


@needs_fork
def test_a_forked_process_spends_the_same_budget(address: str) -> None:
    ledger = Ledger.create(address, PURE)
    ledger.charge(PureEpsilon(0.2))
    assert in_a_child(lambda: str(float(ledger.charge(PureEpsilon(0.6))))) == "0.8"
    assert "over the budget" in in_a_child(lambda: str(ledger.charge(PureEpsilon(0.6))))
    # The parent's connection still works, and sees it.
    with pytest.raises(BudgetExceeded):
        ledger.charge(PureEpsilon(0.6))
    assert ledger.charge(PureEpsilon(0.1)) == pytest.approx(0.9)
    assert ledger.verify().entries == 4


@needs_fork
def test_a_fork_while_threads_charge_does_not_hang_the_child(address: str) -> None:
    ledger = Ledger.create(address, PURE)
    stop = threading.Event()

    def spend() -> None:
        while not stop.wait(0.002):  # or the child would hardly ever have its turn
            ledger.charge(PureEpsilon(1e-6))

    thread = threading.Thread(target=spend)
    thread.start()
    try:
        said = [in_a_child(lambda: str(bool(ledger.charge(PureEpsilon(0.01))))) for _ in range(8)]
    finally:
        stop.set()
        thread.join()
    assert said == ["True"] * 8
    assert charges(ledger).count(0.01) == 8
    ledger.verify()


def test_searches_over_processes_spend_one_budget(tmp_path: Path) -> None:
    # The case for which an Accountant must refuse to be pickled: 5 fits, then 6, of 0.1 each.
    ledger = Ledger.create(tmp_path / "a", Budget(0.8))
    model = LogisticRegression(0.1, 0.0, classes=[False, True], accountant=ledger)
    scores = cross_val_score(model, ROWS, LABELS, cv=5, n_jobs=2)
    assert np.isfinite(scores).all()
    assert len(list(ledger.export())) == 1 + 5
    search = GridSearchCV(model, {"regularization": [1.0, 2.0]}, cv=3, n_jobs=2, refit=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three fits failed, and have no score
        search.fit(ROWS, LABELS)
    assert ledger.verify().entries == 1 + 8
    assert ledger.spent() == pytest.approx(0.8)


def test_a_refused_fit_does_not_open_the_records(address: str) -> None:
    class Rows:
        """Rows that count how often they are looked at."""

        opened = 0

    def work() -> None:
        Rows.opened += 1
        raise AssertionError("opened")

    from tacit.engine import Plan, release

    ledger = Ledger.create(address, PURE)
    plan = Plan("sum", PureEpsilon(1.5), Budget(1.5), "test")
    with pytest.raises(BudgetExceeded):
        release(plan, work, accountant=ledger)
    assert Rows.opened == 0
    paid = replace(plan, event=PureEpsilon(0.5), budget=Budget(0.5))
    with pytest.raises(AssertionError, match="opened"):
        release(paid, work, accountant=ledger)
    # No refund, although nothing was released.
    assert ledger.spent() == 0.5


def test_a_model_says_where_it_was_booked(address: str) -> None:
    ledger = Ledger.create(address, Budget(1.0, 1e-6))
    model = Mean(0.5, 1e-7, row_norm=2.0, accountant=ledger).fit(ROWS)
    assert model.privacy_.booking == ledger.head
    assert str(ledger.head) in model.privacy_.statement()
    assert Mean(0.5, 1e-7, row_norm=2.0).fit(ROWS).privacy_.booking is None
    one = Accountant(Budget(1.0, 1e-6))
    assert Mean(0.5, 1e-7, row_norm=2.0, accountant=one).fit(ROWS).privacy_.booking is None


def test_what_is_not_private_is_refused(address: str) -> None:
    ledger = Ledger.create(address, Budget(1.0, 1e-6))
    with pytest.raises(BudgetExceeded, match="because of sunshine"):
        ledger.charge(NonPrivate("because of sunshine"))
    with pytest.raises(BudgetExceeded, match="no guarantee"):
        Mean(0.5, 1e-7, row_norm=2.0, accountant=ledger, random_state=1).fit(ROWS)
    with pytest.raises(ValueError, match="kept under add_remove"):
        ledger.charge(Gaussian(9.0, relation=Relation.REPLACE))
    with pytest.raises(ValueError, match="finite"):
        Ledger.create(address + "2", Budget(math.inf))
    assert ledger.verify().entries == 1


# --- keys ----------------------------------------------------------------------------------------


def test_a_key_is_one_release(address: str) -> None:
    ledger = Ledger.create(address, PURE)
    paid = ledger.charge(PureEpsilon(0.5), key="march")
    assert Ledger.open(address).charge(PureEpsilon(0.5), key="march").booking == paid.booking
    assert ledger.spent() == 0.5
    with pytest.raises(ValueError, match="entry 1, another release"):
        ledger.charge(PureEpsilon(0.1), key="march")
    with pytest.raises(ValueError, match="printable"):
        ledger.charge(PureEpsilon(0.1), key="")
    assert charges(ledger) == [0.5]


def test_a_key_is_not_another_partys(address: str) -> None:
    """Nor at another delta, on another partition: that one would be released for nothing."""
    ledger = Ledger.create(address, Budget(1.0, 1e-6), "sum")
    ledger.add_partition("march")
    ledger.add_analyst("ann", 0.5)
    ledger.add_analyst("bo", 0.5)
    ann = ledger.bound(analyst="ann")
    ann.charge(PureEpsilon(0.1), 0.0, key="one")
    for other, delta in (
        (ledger.bound(analyst="bo"), 0.0),
        (ann.bound(partition="march"), 0.0),
        (ann, 1e-7),
    ):
        with pytest.raises(ValueError, match="entry 4, another release"):
            other.charge(PureEpsilon(0.1), delta, key="one")


# --- analysts and partitions ---------------------------------------------------------------------


def test_a_share_that_buys_nothing_is_not_given(address: str) -> None:
    """At the order that is best for a large budget nothing fits into a small one."""
    ledger = Ledger.create(address, Budget(5.0, 1e-6), "renyi")
    with pytest.raises(ValueError, match="accepts no release within epsilon 2"):
        ledger.add_analyst("ann", 2.0)
    ledger.add_analyst("ann", 3.0)
    ledger.bound(analyst="ann").charge(Gaussian(30.0))


def test_an_analyst_spends_a_share(address: str) -> None:
    ledger = Ledger.create(address, PURE)
    ledger.add_analyst("ann", 0.3)
    ledger.add_analyst("bo", 0.9)
    ann, bo = ledger.bound(analyst="ann"), ledger.bound(analyst="bo")
    ann.charge(PureEpsilon(0.25))
    assert [ann.remaining(), bo.remaining()] == pytest.approx([0.05, 0.75])
    with pytest.raises(BudgetExceeded, match=r"'ann'.* epsilon 0\.35 .* 0\.05 is left"):
        ann.charge(PureEpsilon(0.1))
    bo.charge(PureEpsilon(0.7))
    with pytest.raises(BudgetExceeded, match="over the budget"):
        bo.charge(PureEpsilon(0.1))
    for wrong in (lambda: ledger.charge(PureEpsilon(0.01)), lambda: ledger.bound(analyst="cy")):
        with pytest.raises(ValueError, match="analyst"):
            wrong()
    with pytest.raises(ValueError, match="already"):
        ledger.add_analyst("ann", 0.9)
    with pytest.raises(ValueError, match="at most"):
        ledger.add_analyst("di", 1.1)
    assert pickle.loads(pickle.dumps(ann)).charge(PureEpsilon(0.05)) == pytest.approx(1.0)
    assert ledger.verify().entries == 6


def test_charges_on_parts_that_are_disjoint_do_not_add_up(address: str) -> None:
    ledger = Ledger.create(address, PURE)
    for name in ("2025", "2026"):
        ledger.add_partition(name)
    old, new = ledger.bound(partition="2025"), ledger.bound(partition="2026")
    assert old.charge(PureEpsilon(0.6)) == 0.6
    assert new.charge(PureEpsilon(0.6)) == 0.6
    assert ledger.charge(PureEpsilon(0.3)) == pytest.approx(0.9)
    for books in (ledger, old, new):
        with pytest.raises(BudgetExceeded):
            books.charge(PureEpsilon(0.2))
    # A window that is declared later was part of the whole all the time.
    ledger.add_partition("2027")
    newest = ledger.bound(partition="2027")
    assert newest.remaining() == pytest.approx(0.7)
    newest.charge(PureEpsilon(0.7))
    assert ledger.spent() == pytest.approx(1.0)
    assert ledger.remaining() == pytest.approx(0.0)
    assert old.remaining() == pytest.approx(0.1)
    with pytest.raises(ValueError, match="no partition"):
        ledger.bound(partition="2028")
    ledger.verify()


def test_parts_are_refused_where_a_record_may_move(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", Budget(1.0, relation=Relation.REPLACE))
    with pytest.raises(ValueError, match="REPLACE"):
        ledger.add_partition("a")


# --- for people ----------------------------------------------------------------------------------


def test_notes_are_kept_and_not_counted_with(address: str) -> None:
    ledger = Ledger.create(address, PURE, purpose="the survey of 2026", who="\u00e5sa")
    ledger.bound(label="a", purpose='"; DROP TABLE entries; --\x00', who="bo").charge(
        PureEpsilon(0.1)
    )
    first, second = json.loads(json.dumps(list(ledger.export())))
    assert (first["who"], first["purpose"]) == ("\u00e5sa", "the survey of 2026")
    assert (second["who"], second["label"]) == ("bo", "a")
    assert second["purpose"] == '"; DROP TABLE entries; --\x00'
    assert second["cost"] == [100000000000000006, 0]  # 0.1 as a double, rounded up
    with pytest.raises(ValueError, match="1000"):
        ledger.bound(purpose="x" * 1001)


def test_the_clock_is_not_counted_with(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import datetime

    class Past(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Past:
            return cls(1970, 1, 1, tzinfo=tz)

    ledger = Ledger.create(address, PURE)
    ledger.charge(PureEpsilon(0.6))
    monkeypatch.setattr(datetime, "datetime", Past)
    with pytest.raises(BudgetExceeded):
        ledger.charge(PureEpsilon(0.6))
    ledger.charge(PureEpsilon(0.1))
    ledger.verify()
