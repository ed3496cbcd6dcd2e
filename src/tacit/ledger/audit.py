"""Verify a whole ledger, from its first entry to its last."""

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

# Relative tolerance: another version of tacit may compute a price with other last digits.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Verified:
    """Result of a verification: the head, the number of entries, and the epsilon spent."""

    head: Booking
    entries: int
    spent: float

    def __str__(self) -> str:
        return f"{self.entries} entries follow one another, up to {self.head}"


def check_booking(store: Store, booking: Booking, ledger: str, last: int) -> None:
    """Raise if a ledger lacks the entry that a certificate names."""
    if booking.ledger != ledger:
        raise LedgerError(
            f"the certificate names ledger {booking.ledger}, and this is ledger {ledger}; open the "
            "ledger that it names."
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
    """Return the terms in the first entry of a ledger."""
    first.check(GENESIS)
    with readable(first):
        return Terms.from_dict(first.content)


def verified(store: Store, seen: Iterable[Booking], prices: bool) -> Verified:
    """Check every entry of a ledger; raise `LedgerDamaged` naming the first error."""
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
    """Raise if a total exceeds the budget: costs are never negative, so no charge could do it."""
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
        yield entry  # the walk checks the entry's hash before it takes the next one
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
