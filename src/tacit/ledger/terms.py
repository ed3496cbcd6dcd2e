"""Define the fixed terms of a ledger: its identifier, its budget and its composition rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tacit.ledger.errors import LedgerError
from tacit.ledger.parts import LIMIT, Parts, parts_of, totals_of
from tacit.privacy import (
    Additive,
    Budget,
    GaussianSum,
    Odometer,
    Relation,
    RenyiSum,
    SumOfEpsilons,
    SumOrGaussian,
    filters,
)
from tacit.privacy.filters import Charge, Totals, default_rule
from tacit.privacy.odometer import ORDERS

# Version of the format of entries; the first entry of each ledger contains it.
VERSION = 1
# These words never change their meaning: ledgers outlive code.
RULES: Mapping[str, type[Additive]] = {
    "sum": SumOfEpsilons,
    "gaussian": GaussianSum,
    "renyi": RenyiSum,
    "odometer": Odometer,
    "either": SumOrGaussian,
}
# The constants of `SumOrGaussian`, written into the first entry of a ledger that keeps to it.
_SHARES = {
    "sum_share": filters.SUM_SHARE,
    "gaussian_share": filters.GAUSSIAN_SHARE,
    "leak_share": filters.LEAK_SHARE,
    "reserve": filters.RESERVE,
}


def rule_for(rule: Additive | str | None, budget: Budget) -> Additive:
    """Return a composition rule that a ledger of this budget can use.

    Parameters
    ----------
    rule
        ``"either"``, ``"sum"``, ``"gaussian"``, ``"renyi"`` (at the order that is best for the
        budget), ``"odometer"`` or one of those rules itself. By default either, and sum for a pure
        budget.

    Examples
    --------
    >>> from tacit.ledger.terms import rule_for
    >>> from tacit.privacy import Budget
    >>> rule_for("renyi", Budget(1.0, 1e-6))
    RenyiSum(order=22.0)
    """
    if budget.is_infinite:
        raise ValueError(
            "a ledger keeps a finite budget, and epsilon is infinite; try things out without "
            "a ledger."
        )
    if rule is None:
        rule = default_rule(budget)
    if isinstance(rule, str):
        if rule not in RULES:
            raise ValueError(f"there is no rule {rule!r}; choose one of {', '.join(RULES)}.")
        rule = _made(rule, budget)
    if type(rule) not in RULES.values():
        raise TypeError(
            f"rule must be one that every tacit can read ({', '.join(RULES)}), got {rule!r}."
        )
    if budget.is_pure and not isinstance(rule, SumOfEpsilons):
        raise ValueError(
            f"{type(rule).__name__} has no price at delta 0; pass a delta, or rule='sum'."
        )
    if isinstance(rule, SumOrGaussian) and rule.budget != budget:
        raise ValueError(f"the rule is made for {rule.budget}, and the ledger's is {budget}.")
    if not min(rule.most(budget)) >= 0.0 or rule.most(budget)[0] <= 0.0:
        raise ValueError(f"{rule} accepts no release within {budget}; leave the order out.")
    return rule


def _made(word: str, budget: Budget) -> Additive:
    """Return the rule that a word names, for a budget."""
    if word == "either" and not budget.is_pure:
        return SumOrGaussian(budget)
    if word == "renyi" and not budget.is_pure:
        return RenyiSum.best_for(budget)
    return SumOfEpsilons() if word == "either" else RULES[word]()


@dataclass(frozen=True)
class Terms:
    """A ledger's identifier, budget and rule, and the prices of events under them."""

    ledger: str
    budget: Budget
    rule: Additive

    @cached_property
    def most(self) -> Totals:
        """The most that each total may be under the budget; it equals 10^18 parts."""
        return self.rule.most(self.budget)

    def price(self, charge: Charge) -> Parts:
        """Return the cost of a charge, in parts."""
        return parts_of(self.rule.cost(charge), self.most)

    def first_price(self, charge: Charge) -> Parts | None:
        """Return what the very first charge costs, None where that is what any charge costs."""
        cost = self.rule.first_cost(charge)
        return None if cost is None else parts_of(cost, self.most)

    def fits(self, parts: Parts, epsilon: float | None = None) -> bool:
        """Return whether a total is within the budget, or within a smaller epsilon of it."""
        if epsilon is None and self.rule.has_limits:
            return self.rule.holds([part <= LIMIT for part in parts])
        return self.rule.fits(totals_of(parts, self.most), self._within(epsilon))

    def spent(self, parts: Parts) -> float:
        """Return the epsilon of a total."""
        return self.rule.epsilon(totals_of(parts, self.most), self.budget.delta) * any(parts)

    def left(self, parts: Parts, epsilon: float | None = None) -> float:
        """Return the epsilon of the largest release that still fits beside a total."""
        if not self.fits(parts, epsilon):
            return 0.0
        return self.rule.left(totals_of(parts, self.most), self._within(epsilon))

    def accepts(self, parts: Parts, epsilon: float | None = None) -> str:
        """Return a sentence on the largest release that a total leaves room for."""
        return self.rule.accepts(totals_of(parts, self.most), self._within(epsilon))

    def over(self, parts: Parts, epsilon: float | None = None) -> str:
        """Return by how much a total is over the budget, as the end of a sentence."""
        return self.rule.over(totals_of(parts, self.most), self._within(epsilon))

    def _within(self, epsilon: float | None) -> Budget:
        return self.budget if epsilon is None else replace(self.budget, epsilon=epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary, the first entry of a ledger."""
        word = next(word for word, rule in RULES.items() if rule is type(self.rule))
        rule: dict[str, Any] = {"name": word}
        if isinstance(self.rule, RenyiSum):
            rule["order"] = self.rule.order
        if isinstance(self.rule, Odometer):
            rule["orders"] = list(ORDERS)
        if isinstance(self.rule, SumOrGaussian):
            rule |= _SHARES
        budget = {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "relation": self.budget.relation.value,
        }
        return {"ledger": self.ledger, "budget": budget, "rule": rule, "most": list(self.most)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Terms:
        """Return the terms of a dictionary made by `to_dict`, with the stored size of a part."""
        if record.get("version", VERSION) != VERSION:
            raise LedgerError("the ledger was made by a newer tacit; use that one.")
        rule, budget = record["rule"], record["budget"]
        shares = {name: rule.get(name, share) for name, share in _SHARES.items()}
        orders = rule.get("orders", list(ORDERS))
        if rule["name"] not in RULES or orders != list(ORDERS) or shares != _SHARES:
            raise LedgerError(
                f"this tacit does not know the ledger's rule ({rule['name']}) as it was when the "
                "ledger was made; use a newer tacit."
            )
        agreed = Budget(budget["epsilon"], budget["delta"], Relation(budget["relation"]))
        word = rule["name"]
        made = RenyiSum(rule["order"]) if word == "renyi" else _made(word, agreed)
        terms = cls(record["ledger"], agreed, made)
        if not all(map(math.isclose, terms.most, record["most"])):
            raise LedgerError(
                "this tacit computes another size of the ledger's budget; use the tacit that made "
                "the ledger."
            )
        # `most` is solved for in floats, whose last digits may differ; the stored numbers define a
        # part.
        terms.__dict__["most"] = tuple(record["most"])
        return terms
