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
)
from tacit.privacy.filters import Charge, Totals
from tacit.privacy.odometer import ORDERS

# Version of the format of entries; the first entry of each ledger contains it.
VERSION = 1
# These words never change their meaning: ledgers outlive code.
RULES: Mapping[str, type[Additive]] = {
    "sum": SumOfEpsilons,
    "gaussian": GaussianSum,
    "renyi": RenyiSum,
    "odometer": Odometer,
}


def rule_for(rule: Additive | str | None, budget: Budget) -> Additive:
    """Return a composition rule that a ledger of this budget can use.

    Parameters
    ----------
    rule
        ``"sum"``, ``"gaussian"``, ``"renyi"`` (at the best order for the budget),
        ``"odometer"``, or an instance of one of these rules. By default renyi, and sum for a
        pure budget.

    Examples
    --------
    >>> from tacit.ledger.terms import rule_for
    >>> from tacit.privacy import Budget
    >>> rule_for(None, Budget(1.0, 1e-6))
    RenyiSum(order=22.0)
    """
    if budget.is_infinite:
        raise ValueError(
            "a ledger keeps a finite budget, and epsilon is infinite; try things out without "
            "a ledger."
        )
    if rule is None:
        rule = "sum" if budget.is_pure else "renyi"
    if isinstance(rule, str):
        if rule not in RULES:
            raise ValueError(f"there is no rule {rule!r}; choose one of {', '.join(RULES)}.")
        by_order = rule == "renyi" and not budget.is_pure
        rule = RenyiSum.best_for(budget) if by_order else RULES[rule]()
    if type(rule) not in RULES.values():
        raise TypeError(
            f"rule must be one that every tacit can read ({', '.join(RULES)}), got {rule!r}."
        )
    if budget.is_pure and not isinstance(rule, SumOfEpsilons):
        raise ValueError(
            f"{type(rule).__name__} has no price at delta 0; pass a delta, or rule='sum'."
        )
    if not min(rule.most(budget)) >= 0.0 or rule.most(budget)[0] <= 0.0:
        raise ValueError(f"{rule} accepts no release within {budget}; leave the order out.")
    return rule


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

    def fits(self, parts: Parts, epsilon: float | None = None) -> bool:
        """Return whether a total is within the budget, or within a smaller epsilon."""
        if epsilon is None and self.rule.is_linear:
            return max(parts) <= LIMIT
        return self.rule.fits(totals_of(parts, self.most), self._within(epsilon))

    def spent(self, parts: Parts) -> float:
        """Return the epsilon of a total."""
        return self.rule.epsilon(totals_of(parts, self.most), self.budget.delta) * any(parts)

    def left(self, parts: Parts, epsilon: float | None = None) -> float:
        """Return the epsilon of the largest release that still fits beside a total."""
        if not self.fits(parts, epsilon):
            return 0.0
        return self.rule.left(totals_of(parts, self.most), self._within(epsilon))

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
        if rule["name"] not in RULES or rule.get("orders", list(ORDERS)) != list(ORDERS):
            raise LedgerError(
                f"this tacit does not know the ledger's rule ({rule['name']}) as it was when the "
                "ledger was made; use a newer tacit."
            )
        kind = RULES[rule["name"]]
        made = RenyiSum(rule["order"]) if kind is RenyiSum else kind()
        relation = Relation(budget["relation"])
        terms = cls(record["ledger"], Budget(budget["epsilon"], budget["delta"], relation), made)
        if not all(map(math.isclose, terms.most, record["most"])):
            raise LedgerError(
                "this tacit computes another size of the ledger's budget; use the tacit that made "
                "the ledger."
            )
        # `most` is solved for in floats, whose last digits may differ; the stored numbers define a
        # part.
        terms.__dict__["most"] = tuple(record["most"])
        return terms
