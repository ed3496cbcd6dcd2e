"""Follow, verify and append the entries of a ledger."""

from __future__ import annotations

import contextlib
import datetime
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from tacit.ledger.rules import name_of as name_of
from tacit.ledger.state import State, Terms
from tacit.ledger.store import (
    GENESIS,
    REMEDY,
    Content,
    Draft,
    Entry,
    Head,
    Interrupted,
    LedgerDamaged,
    LedgerError,
    Store,
    canonical,
    digest,
)
from tacit.privacy import event_from_dict
from tacit.privacy.filters import Charge
from tacit.privacy.guarantee import Booking

# Every so many entries, an entry contains the whole state, so that verification can start there.
CHECKPOINT = 100
# At least so many entries are verified when a ledger is opened.
TAIL = 1000


@dataclass(frozen=True)
class Walk:
    """Number and hash of the last verified entry, and the state after it; initially none."""

    number: int = -1
    hash: str = GENESIS
    state: State = field(default_factory=State)

    def follow(self, entries: Iterable[Entry]) -> Walk:
        """Return the walk after more entries; raise and name the first wrong one."""
        walk = self
        for entry in entries:
            walk = walk._step(entry)
        return walk

    def _step(self, entry: Entry) -> Walk:
        walk, vouched = self._hop(entry)
        if walk.state.digest != vouched:
            raise LedgerDamaged(
                f"entry {entry.number} does not follow: the totals it vouches for are not the sum "
                f"of what was charged. {REMEDY}"
            )
        return walk

    def hop(self, entries: Sequence[Entry]) -> Walk:
        """Do the work of `follow` faster: compare the state's hash once, at the end."""
        walk, vouched = self, ""
        for entry in entries:
            walk, vouched = walk._hop(entry)
        if entries and walk.state.digest != vouched:
            return self.follow(entries)  # raises and names the entry
        return walk

    def _hop(self, entry: Entry) -> tuple[Walk, str]:
        _check_number(entry, self.number + 1)
        entry.check(self.hash)
        with readable(entry):
            content = entry.content
            _check_key(entry, content)
            return Walk(entry.number, entry.hash, self.state.after(content)), content["state"]

    def check_head(self, head: Head) -> None:
        """Raise if a head is not the last verified entry with its state."""
        if head.number > self.number:
            raise LedgerDamaged(f"entry {self.number + 1} is missing. {REMEDY}")
        if (head.number, head.hash, head.state) != (self.number, self.hash, self.state.text):
            raise LedgerDamaged(
                f"the head of the ledger was changed: it is not entry {self.number} with the "
                f"totals after it. {REMEDY}"
            )


def start_of_tail(last: int) -> int:
    """Return the number of the first entry that is verified when a ledger is opened."""
    return max((last - TAIL) // CHECKPOINT * CHECKPOINT, 0)


def from_checkpoint(entries: Sequence[Entry], head: Head) -> Walk:
    """Verify entries that start at 0, or one entry before a checkpoint."""
    if not entries or entries[0].number == 0:
        walk, rest = Walk(), entries
    else:
        (before, at), rest = entries[:2], entries[2:]
        _check_number(at, before.number + 1)
        at.check(before.hash)
        with readable(at):
            walk = Walk(at.number, at.hash, State.from_dict(at.content["totals"]))
            vouched = at.content["state"]
        if walk.state.digest != vouched:
            raise LedgerDamaged(f"entry {at.number} does not follow from its totals. {REMEDY}")
    walk = walk.hop(rest)
    walk.check_head(head)
    return walk


class Followed(NamedTuple):
    """The last verified entry and the state after it."""

    entry: Entry
    state: State


def caught_up(before: Followed, entries: Sequence[Entry], head: Head) -> Followed:
    """Return the last entry and the state, given an entry verified before and the last two.

    Each writer verified the entry before its own. So three checks remain: the entry verified before
    is still stored, the head is the last entry with its state, and no total has fallen.
    """
    seen = before.entry
    if seen not in entries:
        _complain_of_the_past(seen, entries, head)
    last = entries[-1]
    if last == seen and head == Head(seen.number, seen.hash, before.state.text):
        return before
    if last.number != head.number:
        raise LedgerDamaged(f"entry {head.number} is missing. {REMEDY}")
    if last != seen:
        if len(entries) < 2 or entries[-2].number != last.number - 1:
            raise LedgerDamaged(f"entry {last.number - 1} is missing. {REMEDY}")
        last.check(entries[-2].hash)
    with readable(last):
        vouched = last.content["state"]
        state = State.from_text(head.state)
    if head.hash != last.hash or digest(head.state) != vouched:
        raise LedgerDamaged(
            f"the head of the ledger was changed: it is not entry {last.number} with the totals "
            f"after it. {REMEDY}"
        )
    if not state.has_grown_from(before.state):
        raise LedgerDamaged(
            f"between entries {seen.number} and {last.number} something was given back: a total is "
            f"less than it was, or a share is another. {REMEDY}"
        )
    return Followed(last, state)


@contextlib.contextmanager
def readable(entry: Entry) -> Iterator[None]:
    """Report an entry whose hash is right but whose content no ledger would write."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as why:
        raise LedgerDamaged(
            f"entry {entry.number} does not follow: {type(why).__name__}: {str(why)[:200]}. "
            f"{REMEDY}"
        ) from None


def _complain_of_the_past(seen: Entry, entries: Sequence[Entry], head: Head) -> None:
    if head.number < seen.number:
        raise LedgerDamaged(older(head.number, seen.number))
    if any(entry.number == seen.number for entry in entries):
        raise LedgerDamaged(f"entry {seen.number} was changed since it was last read. {REMEDY}")
    raise LedgerDamaged(f"entry {seen.number} is missing. {REMEDY}")


def older(last: int, known: int) -> str:
    """Return the error message for a ledger that ends before a known entry."""
    return (
        f"the ledger ends with entry {last}, but entry {known} is known to have been written: an "
        f"older copy was put in its place, or its end was cut off. {REMEDY}"
    )


def _check_number(entry: Entry, expected: int) -> None:
    if entry.number != expected:
        raise LedgerDamaged(f"entry {expected} is missing. {REMEDY}")


def _check_key(entry: Entry, content: Content) -> None:
    if entry.key != content.get("key") or entry.number != content["number"]:
        raise LedgerDamaged(f"entry {entry.number} was changed: its key or number. {REMEDY}")


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
    held += [
        (share.epsilon, share.spent)
        for share in state.analysts.values()
        if share.epsilon is not None
    ]
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


# Seconds to wait before each attempt to find out whether an interrupted commit was stored.
_PAUSES = (0.0, 0.1, 0.5, 1.0)


class Journal:
    """Reads and verifies the entries of a store, and appends to them.

    Parameters
    ----------
    store
        The store of the entries.
    known
        Entries of certificates, which the store must contain.
    """

    def __init__(self, store: Store, known: tuple[Booking, ...] = ()) -> None:
        self.store = store
        self.known = known
        self._terms: Terms | None = None
        self._last: Followed | None = None

    @property
    def terms(self) -> Terms:
        """The terms in the ledger's first entry."""
        if self._terms is None:
            self.look()
        assert self._terms is not None
        return self._terms

    @property
    def last(self) -> Entry | None:
        """The last verified entry, or None before the first look."""
        return None if self._last is None else self._last.entry

    def booking(self, entry: Entry) -> Booking:
        """Return the name of an entry in certificates."""
        return Booking(self.terms.ledger, entry.number, entry.hash)

    def create(self, terms: Terms, content: Content) -> None:
        """Create the store with its first entry."""
        state = State().after(content)
        entry = next_entry(Draft(content), None, None, state)
        self.store.create(entry, state.text)
        self._terms, self._last = terms, Followed(entry, state)

    def look(self) -> State:
        """Verify entries that are new since the last look, and return the state."""
        seen = self._last  # read once: another thread may replace it
        if seen is None:
            return self._first_look()
        page = self.store.reading(seen.entry.number)
        self._last = found = caught_up(seen, page.entries, page.head)
        return found.state

    def _first_look(self) -> State:
        head = self.store.reading(-1).head
        start = start_of_tail(head.number)
        entries = list(self.store.entries(max(start - 1, 0), head.number + 1))
        walk = from_checkpoint(entries, head)
        first = entries[0] if start == 0 else next(self.store.entries(0, 1))
        self._terms = terms_of(first)
        for booking in self.known:
            check_booking(self.store, booking, self._terms.ledger, walk.number)
        self._last = Followed(entries[-1], walk.state)
        return walk.state

    def book(
        self,
        draft: Draft,
        accept: Callable[[State], tuple[Draft, State]],
        key: str | None = None,
    ) -> tuple[Entry, State]:
        """Write an entry in one transaction; look it up by its key if the commit was interrupted.

        ``accept`` returns what the entry says and the state after it, or raises if there is to be
        no such entry. ``draft`` is what an entry that is found by its key is compared with.
        """
        drawn = key is None
        key = os.urandom(16).hex() if key is None else name_of("key", key)
        if self._last is None:
            self.look()
        for place, pause in enumerate(_PAUSES):
            if pause:  # sleep(0) would yield the processor
                time.sleep(pause)
            try:
                # A fresh random key cannot be stored yet, so the first attempt does not look it up.
                return self._transact(draft, accept, key, look=not drawn or place > 0)
            except Interrupted as why:
                interrupted = why
        raise self._after_all(key, interrupted)

    def _transact(
        self,
        draft: Draft,
        accept: Callable[[State], tuple[Draft, State]],
        key: str,
        look: bool,
    ) -> tuple[Entry, State]:
        seen = self._last
        assert seen is not None
        with self.store.writing(seen.entry.number, key if look else None) as page:
            last = caught_up(seen, page.entries, page.head)
            if page.found is not None:
                return self._found(page.found, key, draft.content), last.state
            accepted, after = accept(last.state)
            entry = next_entry(accepted, key, last.entry, after)
            page.append(entry, after.text)
        self._last = Followed(entry, after)
        return entry, after

    def _found(self, entry: Entry, key: str, content: Content) -> Entry:
        said = entry.content
        compared = ("kind", "event", "delta", "analyst", "partition")
        if said.get("key") != key or any(said.get(name) != content.get(name) for name in compared):
            raise ValueError(
                f"key {key!r} belongs to entry {entry.number}, another release; use a new key "
                "for each release. Nothing was booked."
            )
        before = next(self.store.entries(entry.number - 1, entry.number))
        entry.check(before.hash)
        return entry

    def _after_all(self, key: str, why: Interrupted) -> LedgerError:
        """Return the error of a transaction whose every attempt was interrupted."""
        try:
            # The lock's holder sees every commit, and an uncommitted entry can no longer be
            # committed.
            with self.store.writing(-1, key) as page:
                found = page.found
        except LedgerError:
            return LedgerError(
                f"{why} Whether the charge was booked is not known, so it counts as spent and "
                f"nothing may be released; its key is {key}."
            )
        booked = "It was booked after all" if found else "Nothing was booked"
        return LedgerError(f"{why} {booked}, and nothing was released.")


def next_entry(draft: Draft, key: str | None, last: Entry | None, after: State) -> Entry:
    """Return the entry of a draft, sealed after the last entry, with the hash of the state."""
    number = 0 if last is None else last.number + 1
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    more: dict[str, Any] = {"number": number, "when": now, "state": after.digest}
    if key is not None:
        more["key"] = key
    if number and number % CHECKPOINT == 0:
        more["totals"] = after.to_dict()
    return draft.sealed(more, GENESIS if last is None else last.hash)
