"""A ledger of the rule `either`: what adds up is accepted, on disk as in memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.ledger import Ledger, status
from tacit.ledger.state import State
from tacit.ledger.store import sealed
from tacit.privacy import (
    Budget,
    BudgetExceeded,
    Gaussian,
    PureEpsilon,
    Relation,
    SumOrGaussian,
)
from tacit.privacy.accounting.gaussian_profile import gaussian_mu

BUDGET = Budget(1.0, 1e-6)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "a.ledger", BUDGET)


def test_it_is_the_default_and_found_again(ledger: Ledger) -> None:
    assert isinstance(Ledger.open(ledger.address).rule, SumOrGaussian)
    said = ledger.entry(0)["rule"]
    assert said["name"] == "either"
    shares = said["sum_share"] + said["gaussian_share"] + said["leak_share"]
    assert shares == 1.0


def test_the_first_charge_says_that_it_is(ledger: Ledger) -> None:
    ledger.charge(PureEpsilon(0.5))
    ledger.charge(PureEpsilon(0.5))
    first, second = ledger.entry(1), ledger.entry(2)
    assert first["first"] is True
    assert first["cost"][2] < first["share_cost"][2] == second["cost"][2]
    assert "first" not in second
    assert ledger.spent() == pytest.approx(1.0)
    assert ledger.verify(prices=True).entries == 3


def test_a_later_charge_at_the_first_price_is_damage(ledger: Ledger) -> None:
    ledger.charge(PureEpsilon(0.1))
    state = State((0,) * 5).after(ledger.entry(1))
    forged = {**ledger.entry(1), "number": 2}
    with pytest.raises(ValueError, match="not the first"):
        state.after(sealed(forged, "0" * 64).content)


def test_declarations_do_not_make_a_charge_a_later_one(ledger: Ledger) -> None:
    ledger.add_partition("2026")
    ledger.bound(partition="2026").charge(PureEpsilon(0.1))
    assert ledger.entry(2)["first"] is True
    ledger.add_partition("2027")
    ledger.bound(partition="2027").charge(PureEpsilon(0.1))
    assert "first" not in ledger.entry(4)


def test_a_share_of_half_buys_fits_that_add_up_to_half(ledger: Ledger) -> None:
    ledger.add_analyst("ann", 0.5)
    ann = ledger.bound(analyst="ann")
    for epsilon in (0.2, 0.3):
        ann.charge(PureEpsilon(epsilon))
    with pytest.raises(BudgetExceeded, match="'ann'"):
        ann.charge(PureEpsilon(0.05))
    assert ann.remaining() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("budget", [BUDGET, Budget(3.0, 1e-6)], ids=str)
def test_half_of_epsilon_buys_planned_fits_of_half(tmp_path: Path, budget: Budget) -> None:
    """Fits of any kind that add up to a share are accepted, each with its part of delta."""
    from tacit.linear_model import LinearRegression, LogisticRegression

    ledger = Ledger.create(tmp_path / "c.ledger", budget)
    for name in ("ann", "bo"):
        ledger.add_analyst(name, budget.epsilon / 2)
    facts: dict[str, Any] = {"row_norm": 1.0, "n_records": 20_000}
    for name in ("ann", "bo"):
        mine = ledger.bound(analyst=name)
        models: list[Any] = [
            LinearRegression(**facts, label_range=(-1.0, 1.0)),
            LogisticRegression(**facts, classes=[0, 1]),
        ]
        for model, share in zip(models, (0.2, 0.3), strict=True):
            model.set_params(epsilon=share * budget.epsilon, delta=share * budget.delta)
            plan = model.set_params(accountant=mine).plan(5)
            mine.charge(plan.event, plan.budget.delta)
    assert ledger.spent() <= budget.epsilon * (1 + 1e-9)
    assert ledger.verify(prices=True).entries == 7


@pytest.mark.parametrize("rule", ["either", "sum", "renyi"])
@pytest.mark.parametrize("asked", [0.9, 5.0])
@pytest.mark.parametrize("others", [0.0, 0.75])
def test_what_a_share_is_told_is_accepted(
    tmp_path: Path, rule: str, asked: float, others: float
) -> None:
    """Advice fits the share and the budget, whichever of them refused."""
    ledger = Ledger.create(tmp_path / "d.ledger", BUDGET, rule)
    ledger.add_analyst("ann", 0.8)
    ledger.add_analyst("bo")
    bo, ann = ledger.bound(analyst="bo"), ledger.bound(analyst="ann")
    if others:
        bo.charge(Gaussian(7.0) if rule == "renyi" else PureEpsilon(others))
    ann.charge(PureEpsilon(0.05))

    def fit(epsilon: float) -> None:
        event = Gaussian(1 / gaussian_mu(epsilon, ann.planning_delta(1e-7)))
        ann.charge(event, ann.planning_delta(1e-7))

    with pytest.raises(BudgetExceeded) as refused:
        fit(asked)
    told = str(refused.value).partition("Nothing was released.")[2]
    largest = float(re.findall(r"\d+\.\d+(?= at delta| is left)", told)[0])
    fit(largest)


def test_spent_left_and_share_agree(ledger: Ledger) -> None:
    ledger.add_analyst("ann", 0.5)
    ledger.add_analyst("bo")
    ledger.add_partition("2026")
    ann, bo = ledger.bound(analyst="ann"), ledger.bound(analyst="bo")
    for _ in range(20):
        ann.charge(Gaussian(100.0), 1e-8)
    bo.charge(PureEpsilon(0.1))
    now = status(ledger)
    assert now.spent + now.left == pytest.approx(1.0)
    assert now.share == pytest.approx(now.spent)
    mine, whole = now.analysts
    assert mine.cap == 0.5
    assert mine.spent + mine.left == pytest.approx(0.5)
    assert mine.largest == ann.remaining()
    assert (whole.cap, whole.left, whole.largest) == (None, now.left, bo.remaining())
    (part,) = now.partitions
    assert part.spent + part.left == pytest.approx(1.0)


def test_a_share_has_no_more_left_than_the_budget(ledger: Ledger) -> None:
    ledger.add_analyst("ann", 0.9)
    ledger.add_analyst("bo", 0.9)
    ledger.bound(analyst="bo").charge(PureEpsilon(0.8))
    (ann, _) = status(ledger).analysts
    assert ann.spent == 0.0
    assert ann.left == pytest.approx(0.2)


def test_a_name_without_a_share_limits_nothing(ledger: Ledger) -> None:
    """It may close the budget by a first release, which a share of the whole may not."""
    ledger.bound(analyst="cy").charge(Gaussian(1 / 0.2188), 1e-6)
    assert ledger.entry(1)["analyst"] == "cy"
    assert not ledger.state().analysts
    assert ledger.verify(prices=True).entries == 2


def test_a_name_that_escapes_a_share_is_damage(ledger: Ledger) -> None:
    ledger.add_analyst("ann", 0.1)
    ledger.bound(analyst="ann").charge(PureEpsilon(0.05))
    forged = {**ledger.entry(2), "number": 3, "analyst": "nobody"}
    del forged["first"]
    with pytest.raises(KeyError):
        ledger.state().after(sealed(forged, "0" * 64).content)


def test_what_a_refusal_names_is_accepted(tmp_path: Path) -> None:
    """The largest fit that a refusal mentions goes through, and what is above does not."""
    from tacit.linear_model import LinearRegression

    ledger = Ledger.create(tmp_path / "b.ledger", BUDGET)
    facts: dict[str, Any] = {"row_norm": 1.0, "label_range": (-1.0, 1.0), "n_records": 20_000}

    def fit(epsilon: float, delta: float) -> None:
        model = LinearRegression(epsilon, delta, accountant=ledger, **facts)
        plan = model.plan(20)
        ledger.charge(plan.event, plan.budget.delta)

    fit(0.6, 6e-7)
    with pytest.raises(BudgetExceeded, match=r"any fit of epsilon up to 0\.4 at delta up to 4e-07"):
        fit(0.5, 4e-7)
    fit(0.4, 4e-7)


def test_plans_and_fits_agree(ledger: Ledger) -> None:
    from tacit.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    y = X[:, 0] > 0
    model = LogisticRegression(1.0, 1e-6, row_norm=2.0, classes=[False, True], accountant=ledger)
    plan = model.plan(3)
    model.fit(X, y)
    assert plan.budget.delta == pytest.approx(0.75e-6)
    assert model.plan_.event == plan.event
    assert model.privacy_.target_delta == 1e-6
    assert "delta = 1e-06" in model.privacy_.statement()
    assert ledger.entry(1)["delta"] == pytest.approx(0.75e-6)
    assert model.privacy_.within(1.0, 1e-6)


def test_a_model_that_a_ledger_paid_for_is_saved(ledger: Ledger, tmp_path: Path) -> None:
    import tacit
    from tacit.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    model = LogisticRegression(1.0, 1e-6, row_norm=2.0, classes=[False, True], accountant=ledger)
    model.fit(X, X[:, 0] > 0)
    tacit.save(model, tmp_path / "a.tacit")
    again = tacit.load(tmp_path / "a.tacit")
    assert again.privacy_.statement() == model.privacy_.statement()
    assert again.plan_.budget == model.plan_.budget


def test_people_and_replacement_have_it_too(tmp_path: Path) -> None:
    for relation in (Relation.REPLACE, Relation.ADD_REMOVE_PERSON):
        budget = Budget(1.0, 1e-6, relation)
        ledger = Ledger.create(tmp_path / f"{relation.value}.ledger", budget)
        ledger.charge(PureEpsilon(0.4, relation))
        ledger.charge(PureEpsilon(0.6, relation))
        with pytest.raises(BudgetExceeded):
            ledger.charge(Gaussian(5.0, relation))


def test_two_halves_of_a_table_are_accepted(ledger: Ledger) -> None:
    """What is checked before a table is opened is what is charged after."""
    from tacit.linear_model import LinearRegression
    from tacit.schema import Number, NumberTarget, Schema
    from tacit.table_model import TableModel

    schema = Schema((Number("age", 0, 100),), NumberTarget("cost", 0, 1))
    table = {"age": np.linspace(0, 100, 300), "cost": np.linspace(0, 1, 300)}
    for _ in range(2):
        model = LinearRegression(0.5, 5e-7, accountant=ledger)
        TableModel(schema, model).fit(table)
    assert ledger.spent() == pytest.approx(1.0, rel=1e-6)
