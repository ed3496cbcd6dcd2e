"""The whole ledger read again, from its first entry to its last, as an auditor would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from tacit.ledger.entry import GENESIS, REMEDY, Entry, canonical
from tacit.ledger.errors import LedgerDamaged, LedgerError
from tacit.ledger.state import State
from tacit.ledger.store import Store
from tacit.ledger.terms import Terms
from tacit.ledger.walk import Walk, older, readable
from tacit.privacy import Booking, event_from_dict
from tacit.privacy.filters import Charge

# A price computed by another version may differ in its last digits.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Verified:
    """What was found in order: the ledger, how many entries, its head, and what was spent."""

    head: Booking
    entries: int
    spent: float

    def __str__(self) -> str:
        return f"{self.entries} entries follow one another, up to {self.head}"


def check_booking(store: Store, booking: Booking, ledger: str, last: int) -> None:
    """Refuse a ledger that does not have the entry of a certificate."""
    if booking.ledger != ledger:
        raise LedgerError(
            f"the certificate is of ledger {booking.ledger}, and this is ledger {ledger}; open the "
            "one it names."
        )
    if booking.entry > last:
        raise LedgerDamaged(older(last, booking.entry))
    found = next(store.entries(booking.entry, booking.entry + 1), None)
    if found is None or found.hash != booking.head:
        raise LedgerDamaged(
            f"entry {booking.entry} is not the one that a certificate names: the ledger was "
            f"rewritten, or another copy of it was charged. {REMEDY}"
        )


def terms_of(first: Entry) -> Terms:
    """Return what the first entry of a ledger says was agreed."""
    first.check(GENESIS)
    with readable(first):
        return Terms.from_dict(first.content)


def verified(store: Store, seen: Iterable[Booking], prices: bool) -> Verified:
    """Follow every entry; raise `LedgerDamaged` naming what is wrong first."""
    store.check()
    head = store.reading(-1).head
    first = next(store.entries(0, 1), None)
    if first is None:
        raise LedgerDamaged(f"entry 0 is missing. {REMEDY}")
    terms = terms_of(first)
    entries = store.entries(0, head.number + 1)
    walk = Walk().follow(_priced(entries, terms) if prices else entries)
    walk.check_head(head)
    _check_budget(walk.state, terms)
    for booking in seen:
        check_booking(store, booking, terms.ledger, walk.number)
    booking = Booking(terms.ledger, walk.number, walk.hash)
    return Verified(booking, walk.number + 1, walk.state.spent(terms))


def _check_budget(state: State, terms: Terms) -> None:
    """Refuse totals that no charge was ever accepted at; costs are never below 0, so they rose."""
    most = terms.budget.epsilon
    held = [(most, exposure) for exposure in state.exposures()]
    held += [(share.epsilon, share.spent) for share in state.analysts.values()]
    if any(terms.spent(spent) > epsilon * (1 + _ROUNDING) for epsilon, spent in held):
        raise LedgerDamaged(
            f"what was charged is more than the budget, or than an analyst's share of it. {REMEDY}"
        )


def _priced(entries: Iterable[Entry], terms: Terms) -> Iterator[Entry]:
    @lru_cache(maxsize=1024)
    def price(event: str, delta: float, first: bool) -> tuple[int, ...]:
        import json

        charge = Charge(event_from_dict(json.loads(event)), delta)
        return (terms.first_price(charge) if first else None) or terms.price(charge)

    for entry in entries:
        yield entry  # which the walk has checked when it asks for the next
        said = entry.content
        if said["kind"] == "charge":
            event, delta, first = canonical(said["event"]), said["delta"], bool(said.get("first"))
            costs = [(said["cost"], price(event, delta, first))]
            if "share_cost" in said:
                costs.append((said["share_cost"], price(event, delta, False)))
            if any(
                c < p * (1 - _ROUNDING)
                for booked, cost in costs
                for c, p in zip(booked, cost, strict=True)
            ):
                raise LedgerDamaged(
                    f"entry {entry.number} is booked for less than its event costs. {REMEDY}"
                )
