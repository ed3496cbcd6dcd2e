"""Verify entries one by one, and name the first one that does not follow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tacit.ledger.entry import GENESIS, REMEDY, Content, Entry, digest
from tacit.ledger.errors import LedgerDamaged
from tacit.ledger.state import State
from tacit.ledger.store import Head

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
