"""Append entries to a ledger and verify its hash chain incrementally."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable
from typing import Any

from tacit.ledger.audit import check_booking, terms_of
from tacit.ledger.bound import name as name_of
from tacit.ledger.entry import GENESIS, Content, Draft, Entry
from tacit.ledger.errors import Interrupted, LedgerError
from tacit.ledger.state import State
from tacit.ledger.store import Store
from tacit.ledger.terms import Terms
from tacit.ledger.walk import CHECKPOINT, Followed, caught_up, from_checkpoint, start_of_tail
from tacit.privacy import Booking

# Seconds to wait before each attempt to find out whether an interrupted commit was stored.
_PAUSES = (0.0, 0.1, 0.5, 1.0)


class Books:
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
        entry = following(Draft(content), None, None, state)
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
            entry = following(accepted, key, last.entry, after)
            page.append(entry, after.text)
        self._last = Followed(entry, after)
        return entry, after

    def _found(self, entry: Entry, key: str, content: Content) -> Entry:
        said = entry.content
        asked = ("kind", "event", "delta", "analyst", "partition")
        if said.get("key") != key or any(said.get(name) != content.get(name) for name in asked):
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


def following(draft: Draft, key: str | None, last: Entry | None, after: State) -> Entry:
    """Return the entry of a draft, sealed after the last entry, with the hash of the state."""
    number = 0 if last is None else last.number + 1
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    more: dict[str, Any] = {"number": number, "when": now, "state": after.digest}
    if key is not None:
        more["key"] = key
    if number and number % CHECKPOINT == 0:
        more["totals"] = after.to_dict()
    return draft.sealed(more, GENESIS if last is None else last.hash)
