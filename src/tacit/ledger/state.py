"""Terms of a ledger, costs in fixed point, and what was spent by whom on what.

Integers add up without rounding, in any order and on any machine, and an auditor can read them:
250,000,000,000,000,000 parts are a quarter of the budget.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from tacit.ledger.store import Content, LedgerError, canonical, digest
from tacit.privacy import (
    Budget,
    GaussianSum,
    Odometer,
    Relation,
    RenyiSum,
    SumOfEpsilons,
    SumOrGaussian,
    filters,
)
from tacit.privacy.filters import ORDERS, ROUNDING, Additive, Charge, Totals, default_rule

Parts = tuple[int, ...]

WHOLE = 10**18
# The tolerance `ROUNDING` of an accountant, in parts: costs and limits are computed in floats.
LIMIT = WHOLE + int(WHOLE * ROUNDING)
# Stands for infinity: larger than any finite cost, and `added` never exceeds it.
INFINITE = WHOLE**2


def parts_of(cost: Totals, limits: Totals) -> Parts:
    """Return a cost as a fraction of each total's limit, in units of 10^-18, rounded up.

    Examples
    --------
    >>> from tacit.ledger.state import parts_of
    >>> parts_of((0.25, 0.0), (1.0, 1e-6))
    (250000000000000000, 0)
    """
    return tuple(_parts(c, m) for c, m in zip(cost, limits, strict=True))


def _parts(cost: float, limit: float) -> int:
    if not cost >= 0.0:  # NaN or negative
        raise ArithmeticError(f"a cost of {cost!r} is no bound, so the event is refused.")
    if cost == 0.0:
        return 0
    if math.isinf(cost) or limit == 0.0:
        return INFINITE
    return min(math.ceil(Fraction(cost) * WHOLE / Fraction(limit)), INFINITE)


def added(one: Parts, other: Parts) -> Parts:
    """Return the sum of two costs, at most `INFINITE` in each total."""
    return tuple([min(a + b, INFINITE) for a, b in zip(one, other, strict=True)])


def totals_of(parts: Parts, limits: Totals) -> Totals:
    """Return parts as the floats that a rule computes with."""
    return tuple([_total(p, m) for p, m in zip(parts, limits, strict=True)])


def _total(part: int, limit: float) -> float:
    # part * limit / WHOLE. Python divides two integers to the nearest float, so compute it exactly.
    above, below = limit.as_integer_ratio()
    return math.inf if part >= INFINITE else part * above / (WHOLE * below)


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
    >>> from tacit.ledger.state import rule_for
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
    def limits(self) -> Totals:
        """The most that each total may be under the budget; it equals 10^18 parts."""
        return self.rule.most(self.budget)

    def price(self, charge: Charge) -> Parts:
        """Return the cost of a charge, in parts."""
        return parts_of(self.rule.cost(charge), self.limits)

    def first_price(self, charge: Charge) -> Parts | None:
        """Return the price if this is the first charge; None if the rule has no special one."""
        cost = self.rule.first_cost(charge)
        return None if cost is None else parts_of(cost, self.limits)

    def fits(self, parts: Parts, epsilon: float | None = None) -> bool:
        """Return whether a total is within the budget, or within a smaller epsilon of it."""
        if epsilon is None and self.rule.has_limits:
            return self.rule.holds([part <= LIMIT for part in parts])
        return self.rule.fits(totals_of(parts, self.limits), self._within(epsilon))

    def spent(self, parts: Parts) -> float:
        """Return the epsilon of a total."""
        if not any(parts):
            return 0.0
        return self.rule.epsilon(totals_of(parts, self.limits), self.budget.delta)

    def left(self, parts: Parts, epsilon: float | None = None) -> float:
        """Return the epsilon of the largest release that still fits beside a total."""
        if not self.fits(parts, epsilon):
            return 0.0
        return self.rule.left(totals_of(parts, self.limits), self._within(epsilon))

    def accepts(self, *accounts: tuple[Parts, float | None]) -> str:
        """Return a sentence on the largest release that fits totals, each within its epsilon."""
        return self.rule.accepts(
            *((totals_of(parts, self.limits), self._within(epsilon)) for parts, epsilon in accounts)
        )

    def over(self, parts: Parts, epsilon: float | None = None) -> str:
        """Return by how much a total is over the budget, as the end of a sentence."""
        return self.rule.over(totals_of(parts, self.limits), self._within(epsilon))

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
        return {"ledger": self.ledger, "budget": budget, "rule": rule, "most": list(self.limits)}

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
        if not all(map(math.isclose, terms.limits, record["most"])):
            raise LedgerError(
                "this tacit computes another size of the ledger's budget; use the tacit that made "
                "the ledger."
            )
        # Limits are solved for in floats, whose last digits may differ; the stored numbers define a
        # part.
        terms.__dict__["limits"] = tuple(record["most"])
        return terms


@dataclass(frozen=True)
class Share:
    """An analyst's part of the budget: at most ``epsilon``, of which ``spent`` is used.

    Without an epsilon the analyst is known by name, and the budget alone is the limit.
    """

    epsilon: float | None
    spent: Parts


def _check_released(content: Content) -> None:
    """Raise unless an entry names an earlier entry and the file that was released for it."""
    paid, sha256 = content["entry"], content["sha256"]
    if type(paid) is not int or not 0 < paid < content.get("number", math.inf):
        raise ValueError(f"entry {paid!r} is none that a file could be released for")
    if not (isinstance(sha256, str) and len(sha256) == 64 and set(sha256) <= _DIGITS):
        raise ValueError("a SHA-256 is 64 hexadecimal digits")


_DIGITS = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class State:
    """Running totals: of the whole data set, of each partition and of each analyst.

    A record is in at most one partition. It is therefore exposed to the charges on the whole data
    set and on that partition only (docs/proofs/ledger.md, section 6).
    """

    whole: Parts = ()
    partitions: Mapping[str, Parts] = field(default_factory=dict)
    analysts: Mapping[str, Share] = field(default_factory=dict)

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was charged yet, on the whole data set or on any part of it."""
        return not any(self.whole) and not any(any(part) for part in self.partitions.values())

    @property
    def is_divided(self) -> bool:
        """Whether some analyst has a share of the budget."""
        return any(share.epsilon is not None for share in self.analysts.values())

    def exposures(self, partition: str | None = None) -> Iterable[Parts]:
        """Return the total of a partition's records, or the totals of every partition's records."""
        if partition is not None:
            return (added(self.whole, self.partitions[partition]),)
        if not self.partitions:
            return (self.whole,)
        return [added(self.whole, parts) for parts in self.partitions.values()]

    def after(self, content: Content) -> State:
        """Return the state after an entry."""
        kind = content["kind"]
        if kind == "charge":
            return self._charged(content)
        if kind == "created":
            if self.whole:
                raise ValueError("a ledger is made once")
            return State((0,) * len(content["most"]))
        if kind == "released":
            _check_released(content)
            return self
        name, nothing = content["name"], (0,) * len(self.whole)
        # A second declaration would reset the total to zero.
        if name in (self.analysts if kind == "analyst" else self.partitions):
            raise ValueError(f"{kind} {name!r} is there already")
        if kind == "analyst":
            share = Share(content["epsilon"], nothing)
            return replace(self, analysts={**self.analysts, name: share})
        if kind == "partition":
            return replace(self, partitions={**self.partitions, name: nothing})
        raise ValueError(f"{kind!r} is no kind of entry")

    def _charged(self, content: Content) -> State:
        cost = tuple(content["cost"])
        # An analyst's share pays the ordinary price, `share_cost`, even for the first charge.
        share_cost = tuple(content.get("share_cost", cost))
        if not all(type(part) is int and part >= 0 for part in (*cost, *share_cost)):
            raise ValueError("a cost is whole numbers, none below 0")
        if content.get("first") and not self.is_untouched:
            raise ValueError("a charge that is not the first is priced as the first")
        whole, partitions, analysts = self.whole, self.partitions, self.analysts
        partition, analyst = content["partition"], content["analyst"]
        if partition is None:
            whole = added(whole, cost)
        else:
            partitions = {**partitions, partition: added(partitions[partition], cost)}
        # A name that nobody declared is a note, unless the budget is divided.
        if analyst is not None and (analyst in analysts or self.is_divided):
            share = analysts[analyst]
            share = replace(share, spent=added(share.spent, share_cost))
            analysts = {**analysts, analyst: share}
        return State(whole, partitions, analysts)

    def has_grown_from(self, earlier: State) -> bool:
        """Return whether no total has fallen and every share has the epsilon it was given."""
        then, now = (
            {("",): s.whole}
            | {("part", name): parts for name, parts in s.partitions.items()}
            | {("share", name, a.epsilon): a.spent for name, a in s.analysts.items()}
            for s in (earlier, self)
        )
        return then.keys() <= now.keys() and all(
            old <= new for name in then for old, new in zip(then[name], now[name], strict=True)
        )

    def spent(self, terms: Terms) -> float:
        """Return the epsilon of the most exposed record."""
        return max(map(terms.spent, self.exposures()))

    def left(self, terms: Terms, partition: str | None, analyst: str | None) -> float:
        """Return the epsilon of the largest release that would still be accepted."""
        left = min(map(terms.left, self.exposures(partition)))
        if analyst is None:
            return left
        share = self.analysts.get(analyst)
        if share is None or share.epsilon is None:
            return left
        return min(left, terms.left(share.spent, share.epsilon))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        return {
            "whole": list(self.whole),
            "partitions": {name: list(parts) for name, parts in self.partitions.items()},
            "analysts": {
                name: {"epsilon": share.epsilon, "spent": list(share.spent)}
                for name, share in self.analysts.items()
            },
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> State:
        """Return the state of a dictionary made by `to_dict`."""
        return cls(
            tuple(record["whole"]),
            {name: tuple(parts) for name, parts in record["partitions"].items()},
            {
                name: Share(share["epsilon"], tuple(share["spent"]))
                for name, share in record["analysts"].items()
            },
        )

    @cached_property
    def text(self) -> str:
        """The state as the text that is stored with the head."""
        if self.partitions or self.analysts:
            return canonical(self.to_dict())
        # Equals `canonical(self.to_dict())`, ten times faster, for a ledger without names.
        return f'{{"analysts":{{}},"partitions":{{}},"whole":[{",".join(map(str, self.whole))}]}}'

    @property
    def digest(self) -> str:
        """The hash of the state, which each entry contains."""
        return digest(self.text)

    @classmethod
    def from_text(cls, text: str) -> State:
        """Return the state of a text made by `text`."""
        return cls.from_dict(json.loads(text))
