"""What teachers are asked is charged to a ledger of any rule, or refused with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from tacit.ledger import Ledger
from tacit.pate import GNMax, LNMax, Majority, PATEClassifier
from tacit.privacy import Budget, BudgetExceeded, Gaussian, Relation, Repeated, SampledGaussian

from .helpers import table

RULES = ["renyi", "gaussian", "sum", "odometer"]
AGGREGATORS = [GNMax(noise_std=60.0), LNMax(gamma=1e-4), Majority(noise_std=60.0)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("aggregator", AGGREGATORS, ids=lambda a: type(a).__name__)
def test_every_rule_has_a_price_for_every_vote(tmp_path: Path, rule: str, aggregator: Any) -> None:
    ledger = Ledger.create(tmp_path / "a", Budget(2.0, 1e-5), rule)
    event = aggregator.event(20, Relation.ADD_REMOVE)
    assert 0.0 < ledger.charge(event) < 2.0
    assert ledger.verify(prices=True).entries == 2


def test_a_majority_costs_what_its_margin_does_where_mu_are_counted(tmp_path: Path) -> None:
    one, other = (Ledger.create(tmp_path / name, Budget(2.0, 1e-5), "gaussian") for name in "ab")
    paid = one.charge(Majority(noise_std=60.0).event(20, Relation.ADD_REMOVE))
    assert paid == pytest.approx(other.charge(Repeated(Gaussian(60.0 / 2**0.5), 20)))


def test_a_pure_ledger_says_what_a_majority_needs(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", Budget(2.0))
    with pytest.raises(BudgetExceeded, match="budget a delta above 0 for it, or choose a pure"):
        ledger.charge(Majority(noise_std=60.0).event(20, Relation.ADD_REMOVE))
    assert ledger.charge(LNMax(gamma=0.01).event(20, Relation.ADD_REMOVE)) > 0.0


def test_an_event_without_a_mu_is_refused_with_the_rules_that_take_it(tmp_path: Path) -> None:
    event = SampledGaussian(2.0, 0.01)
    ledger = Ledger.create(tmp_path / "a", Budget(2.0, 1e-5), "gaussian")
    with pytest.raises(BudgetExceeded, match="a ledger's rules either, sum and renyi"):
        ledger.charge(event)
    for rule in ("either", "sum", "renyi"):
        assert Ledger.create(tmp_path / rule, Budget(2.0, 1e-5), rule).charge(event) > 0.0


@pytest.mark.parametrize("rule", ["renyi", "gaussian"])
def test_a_fit_by_majority_is_in_the_books(tmp_path: Path, rule: str) -> None:
    rows, labels, pool = table(600, n_classes=2)
    ledger = Ledger.create(tmp_path / "a", Budget(16.0, 1e-5), rule)
    model = PATEClassifier(
        GaussianNB(),
        20,
        LogisticRegression(),
        10,
        4.0,
        1e-5,
        classes=[0, 1],
        aggregator=Majority(),
        accountant=ledger,
    ).fit(rows, labels, pool)
    assert model.privacy_.booking == ledger.head
    assert ledger.head.entry == 1
    assert ledger.verify(prices=True).entries == 2
