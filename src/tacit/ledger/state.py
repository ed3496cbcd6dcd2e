"""Compute running totals of a ledger from its entries: in all, per partition and per analyst."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tacit.ledger.entry import Content, canonical, digest
from tacit.ledger.parts import Parts, added
from tacit.ledger.terms import Terms


@dataclass(frozen=True)
class Share:
    """An analyst's part of the budget: at most ``epsilon``, of which ``spent`` is used."""

    epsilon: float
    spent: Parts


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
        # The price of a first charge holds for the whole budget, not for a share of it.
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
        if analyst is not None:
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
        share = self.analysts[analyst]
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
