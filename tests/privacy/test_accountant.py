"""A budget is one thing: not copied, not forked, not raced, and it says what it means."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import pickle
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from tacit.linear_model import LogisticRegression
from tacit.location import Mean
from tacit.privacy import (
    Accountant,
    AnyAccountant,
    Budget,
    BudgetExceeded,
    Gaussian,
    GaussianSum,
    LogisticObjective,
    NonPrivate,
    Odometer,
    PureEpsilon,
    RenyiSum,
    SumOfEpsilons,
)
from tacit.privacy.filters import Charge, Filter
from tacit.privacy.guarantee import Booking

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((60, 2))
LABELS = ROWS[:, 0] > 0
RULES: list[Filter] = [SumOfEpsilons(), GaussianSum(), RenyiSum(16.0)]


def in_a_child(work: Callable[[], str]) -> str:
    """Return what ``work`` says in a forked process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            said = work()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as stream:
        return stream.read()


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


# --- one budget ---------------------------------------------------------------------------------


def test_it_is_an_accountant() -> None:
    assert isinstance(Accountant(Budget(1.0)), AnyAccountant)


def test_pickling_is_refused_and_the_ledger_named() -> None:
    with pytest.raises(TypeError, match="ledger"):
        pickle.dumps(Accountant(Budget(1.0)))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_is_the_same_accountant(duplicate: Callable[[Accountant], Accountant]) -> None:
    accountant = Accountant(Budget(1.0))
    assert duplicate(accountant) is accountant


def test_an_estimator_that_holds_one_still_clones() -> None:
    accountant = Accountant(Budget(1.0, 1e-5))
    for estimator in (LogisticRegression(accountant=accountant), Mean(accountant=accountant)):
        assert clone(estimator).accountant is accountant


def test_a_search_over_processes_spends_nothing_it_cannot_book() -> None:
    # 13 fits of epsilon 1 under a budget of 1 before accountants refused to be pickled.
    accountant = Accountant(Budget(1.0, 1e-5))
    model = LogisticRegression(1.0, 1e-6, classes=[False, True], accountant=accountant)
    search = GridSearchCV(model, {"regularization": [1.0, 2.0, 3.0, 4.0]}, cv=3, n_jobs=2)
    with pytest.raises(Exception, match=r"pickle|ledger"):
        search.fit(ROWS, LABELS)
    assert accountant.events == ()


@needs_fork
def test_a_forked_process_cannot_spend_it() -> None:
    accountant = Accountant(Budget(1.0))
    for ask in (
        lambda: str(accountant.charge(PureEpsilon(1.0))),
        lambda: str(accountant.check(PureEpsilon(1.0))),
        lambda: str(accountant.spent()),
        lambda: str(accountant.remaining()),
        lambda: str(accountant.guarantee()),
    ):
        assert "ledger" in in_a_child(ask)
    assert accountant.charge(PureEpsilon(1.0)) == 1.0


@needs_fork
def test_a_child_of_a_child_cannot_spend_it_and_may_have_its_own() -> None:
    accountant = Accountant(Budget(1.0))
    assert "ledger" in in_a_child(
        lambda: in_a_child(lambda: str(accountant.charge(PureEpsilon(1.0))))
    )
    assert in_a_child(lambda: str(Accountant(Budget(1.0)).charge(PureEpsilon(0.5)))) == "0.5"


@needs_fork
def test_a_child_is_refused_even_where_it_has_its_parents_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # In a PID namespace a child can have the number its parent has.
    monkeypatch.setattr(os, "getpid", lambda: 1)
    accountant = Accountant(Budget(1.0))
    assert "ledger" in in_a_child(lambda: str(accountant.charge(PureEpsilon(1.0))))


@needs_fork
def test_a_fork_while_a_charge_is_made_does_not_hang_the_child() -> None:
    accountant = Accountant(Budget(1.0), SlowRule())
    thread = threading.Thread(target=accountant.charge, args=(PureEpsilon(0.1),))
    thread.start()
    SlowRule.entered.wait()
    try:
        assert "ledger" in in_a_child(lambda: str(accountant.charge(PureEpsilon(0.1))))
    finally:
        SlowRule.leave.set()
        thread.join()


class SlowRule(SumOfEpsilons):
    entered, leave = threading.Event(), threading.Event()

    def spent(self, charges: tuple[object, ...], delta: float) -> float:  # type: ignore[override]
        self.entered.set()
        self.leave.wait(10)
        return 0.1


class Deliberate(SumOfEpsilons):
    """A rule that takes its time, so that whoever may come in between does."""

    def spent(self, charges: tuple[Charge, ...], delta: float) -> float:
        time.sleep(0.05)
        return super().spent(charges, delta)


def test_threads_do_not_overspend() -> None:
    accountant, start = Accountant(Budget(1.0), Deliberate()), threading.Barrier(4)
    accepted: list[float] = []

    def spend() -> None:
        start.wait()
        with contextlib.suppress(BudgetExceeded):
            accepted.append(accountant.charge(PureEpsilon(0.6)))

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert accepted == [0.6]
    assert len(accountant.events) == 1


def test_threads_of_a_search_share_the_budget() -> None:
    accountant = Accountant(Budget(1.0))

    def fit(_: int) -> bool:
        try:
            Mean(0.4, 0.0, accountant=accountant).fit(ROWS)
        except BudgetExceeded:
            return False
        return True

    done = Parallel(n_jobs=2, backend="threading")(delayed(fit)(i) for i in range(5))
    assert sum(done) == 2


@pytest.mark.parametrize("name", ["budget", "rule"])
def test_what_was_agreed_cannot_be_changed(name: str) -> None:
    accountant = Accountant(Budget(1.0))
    with pytest.raises(AttributeError):
        setattr(accountant, name, getattr(Accountant(Budget(9.0)), name))


# --- what is left, and what is said -------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_what_remains_can_be_spent_and_no_more(rule: Filter) -> None:
    accountant = Accountant(Budget(2.0, 1e-5), rule)
    released = PureEpsilon if isinstance(rule, SumOfEpsilons) else _gaussian
    for spent in (None, Gaussian(6.0)):
        if spent is not None:
            accountant.charge(spent)
        left = accountant.remaining()
        assert (0.0 if spent else 1.6) < left <= 2.000001
        accountant.check(released(left * 0.999))
        with pytest.raises(BudgetExceeded):
            accountant.check(released(left * 1.001))


def _gaussian(epsilon: float) -> Gaussian:
    from tacit.privacy.accounting.gaussian_profile import gaussian_mu

    return Gaussian(1 / gaussian_mu(epsilon, 1e-5))


def test_nothing_remains_when_all_is_spent() -> None:
    accountant = Accountant(Budget(1.0))
    accountant.charge(PureEpsilon(1.0))
    assert accountant.remaining() == 0.0
    assert Accountant(Budget(math.inf)).remaining() == math.inf


def test_repr_says_how_it_stands() -> None:
    accountant = Accountant(Budget(1.0, 1e-5))
    accountant.charge(PureEpsilon(0.25))
    assert repr(accountant) == (
        "Accountant(epsilon 1, delta 1e-05, ADD_REMOVE, by SumOrGaussian: "
        "spent 0.25 on 1 release, 0.75 left)"
    )


def test_used_up_deltas_are_said_in_so_many_words() -> None:
    accountant = Accountant(Budget(1.0, 1e-6), SumOfEpsilons())
    accountant.charge(Gaussian(30.0), 1e-6)
    with pytest.raises(BudgetExceeded, match="deltas are used up") as refusal:
        accountant.charge(Gaussian(30.0), 1e-6)
    assert "epsilon inf" not in str(refusal.value)
    assert "smaller delta" in str(refusal.value)


def test_an_event_without_a_price_is_said_to_have_none() -> None:
    accountant = Accountant(Budget(1.0, 1e-6), GaussianSum())
    with pytest.raises(BudgetExceeded, match="no Gaussian mechanism") as refusal:
        accountant.charge(LogisticObjective(100.0, 0.01, 1.0))
    assert "SumOfEpsilons" in str(refusal.value)
    with pytest.raises(BudgetExceeded, match="delta 0"):
        Accountant(Budget(1.0), RenyiSum()).charge(PureEpsilon(0.1))


def test_what_is_not_private_is_refused_with_its_reason() -> None:
    for rule in RULES:
        with pytest.raises(BudgetExceeded, match="because of sunshine") as refusal:
            Accountant(Budget(1.0, 1e-6), rule).charge(NonPrivate("because of sunshine"))
        assert "random_state" in str(refusal.value)


def test_the_guarantee_says_what_it_assumes() -> None:
    accountant = Accountant(Budget(1.0, 1e-5))
    for _ in range(4):
        accountant.charge(Gaussian(16.6), 2.5e-6)
    promise = accountant.guarantee()
    assert promise is not None
    said = promise.statement()
    assert "fixed before the first" in said
    # What is spent when the analyst stops may depend on outputs: a filter promises its budget.
    assert "cost together at most epsilon = 1.0000 and delta = 1e-05 by SumOrGaussian; 0." in said
    assert f"{accountant.spent():.4f}"[:-1] in said


@pytest.mark.parametrize(
    ("budget", "rule"), [(Budget(1.0), None), (Budget(1.0, 1e-6), Odometer())], ids=str
)
def test_pure_sums_and_odometers_promise_what_is_spent(
    budget: Budget, rule: Odometer | None
) -> None:
    accountant = Accountant(budget, rule)
    accountant.charge(PureEpsilon(0.2))
    promise = accountant.guarantee()
    assert promise is not None
    (note,) = promise.notes
    spent = math.ceil(accountant.spent() * 1e4) / 1e4
    assert f"cost together at most epsilon = {spent:.4f} and" in note
    assert note.endswith(f"by {type(accountant.rule).__name__}.")


@pytest.mark.parametrize("rule", ["renyi", 1.0, RenyiSum])
def test_what_is_no_rule_is_refused_with_those_there_are(rule: object) -> None:
    with pytest.raises(TypeError, match=r"rule must be a composition rule, got .*RenyiSum"):
        Accountant(Budget(1.0, 1e-6), rule)


@pytest.mark.parametrize("event", [0.5, "gaussian", Budget(0.5, 1e-6)])
def test_what_is_no_event_is_refused_and_nothing_charged(event: object) -> None:
    accountant = Accountant(Budget(1.0, 1e-6))
    for charge in (accountant.charge, accountant.check):
        with pytest.raises(TypeError, match=r"event must be an event, got .*PureEpsilon"):
            charge(event)
    assert accountant.events == ()


def test_entries_are_counted_from_zero_on() -> None:
    for entry in (-1, True, 2.0):
        with pytest.raises((TypeError, ValueError), match="entry"):
            Booking("0" * 32, entry, "a" * 64)  # type: ignore[arg-type]
