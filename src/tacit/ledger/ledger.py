"""A budget that survives: kept on disk, for many people, processes and machines."""

from __future__ import annotations

import datetime
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from tacit.ledger.audit import Verified, check_booking, terms_of, verified
from tacit.ledger.bound import Bound, account
from tacit.ledger.bound import name as name_of
from tacit.ledger.bound import text as text_of
from tacit.ledger.entry import GENESIS, Content, Entry, sealed
from tacit.ledger.errors import Interrupted, LedgerError
from tacit.ledger.spending import afford, check_names
from tacit.ledger.state import State
from tacit.ledger.store import Store, store_at
from tacit.ledger.terms import VERSION, Terms, rule_for
from tacit.ledger.walk import CHECKPOINT, Followed, caught_up, from_checkpoint, start_of_tail
from tacit.privacy import (
    Additive,
    Booked,
    Booking,
    Budget,
    Event,
    Relation,
    event_from_dict,
)
from tacit.privacy.accountant import charge_of
from tacit.privacy.filters import Charge

Seen = Booking | Iterable[Booking] | None

# What a commit of unknown outcome waits before it is asked after, in seconds.
_PAUSES = (0.0, 0.1, 0.5, 1.0)


class Ledger:
    """Keeps what was spent of one budget, in a SQLite file or a PostgreSQL database.

    Made by `create` and found again by `open`. Everything that takes ``accountant=`` takes one.

    Notes
    -----
    **Guarantee**

    1. However many threads, processes and machines charge it, and whenever they are killed, the
       releases it accepted are together within the budget by its rule (docs/proofs/ledger.md).
    2. A charge is on disk before `charge` returns; nothing is ever refunded.
    3. `copy`, `deepcopy` and scikit-learn's ``clone`` return the ledger itself, and a pickle holds
       its address: whoever loads it spends the same budget.
    4. An entry that was changed, removed or moved is named by `verify`, and by the next charge if
       it is among the last 1,000; an older copy is, by whoever knows a newer entry.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tacit.ledger import Ledger
    >>> from tacit.privacy import Budget, Gaussian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(pathlib.Path(folder) / "survey.ledger", Budget(1.0, 1e-6))
    ...     paid = ledger.charge(Gaussian(8.0))
    ...     again = Ledger.open(pathlib.Path(folder) / "survey.ledger")
    ...     again.spent() == paid, paid.booking.entry
    (True, 1)
    """

    def __init__(self, store: Store, bound: Bound, seen: tuple[Booking, ...] = ()) -> None:
        self._store = store
        self._bound = bound
        self._known = seen
        self._terms: Terms | None = None
        self._last: Followed | None = None
        # Folds of one search are charged the same event time and again.
        self._last_price: tuple[Event, float | None, Charge, dict[str, Any]] | None = None

    @classmethod
    def create(
        cls,
        address: str | os.PathLike[str],
        budget: Budget,
        rule: Additive | str | None = None,
        *,
        label: str = "",
        purpose: str = "",
        who: str | None = None,
    ) -> Ledger:
        """Make a new ledger.

        Parameters
        ----------
        address
            The file, or ``postgresql://user@host/database?ledger=name``. A password does not
            belong there: PostgreSQL takes it from its password file or PGPASSWORD.
        budget
            What may be spent in all; finite, and fixed for life.
        rule
            How charges add up; fixed for life. ``"renyi"`` (any event; the default), ``"gaussian"``
            (a tenth more of it, for Gaussian and pure events), ``"sum"`` (epsilons and deltas; the
            default of a pure budget), ``"odometer"``, or a rule itself.
        label, purpose, who
            For people; the account's name by default.

        Raises
        ------
        LedgerError
            If there is something already, or it cannot be made.
        """
        if not isinstance(budget, Budget):
            raise TypeError(f"budget must be a Budget, got {budget!r}.")
        terms = Terms(uuid.uuid4().hex, budget, rule_for(rule, budget))
        made = cls(store_at(address), Bound(who=account() if who is None else text_of("who", who)))
        content = {
            "kind": "created",
            **terms.to_dict(),
            "version": VERSION,
            "label": text_of("label", label),
            "purpose": text_of("purpose", purpose),
        }
        state = State().after(content)
        entry = made._next(content, None, state)
        made._store.create(entry, state.text)
        made._terms, made._last = terms, Followed(entry, state)
        return made

    @classmethod
    def open(cls, address: str | os.PathLike[str], *, seen: Seen = None) -> Ledger:
        """Return the ledger at an address, whose last 1,000 entries are followed.

        Parameters
        ----------
        address
            As for `create`.
        seen
            What certificates say of it, ``model.privacy_.booking``: a ledger without these entries
            is refused, now and by every charge.
        """
        opened = cls(store_at(address), Bound(who=account()), _bookings(seen))
        opened._look()
        return opened

    def bound(
        self,
        *,
        analyst: str | None = None,
        partition: str | None = None,
        label: str | None = None,
        purpose: str | None = None,
        who: str | None = None,
    ) -> Ledger:
        """Return the same ledger, whose charges count for an analyst or on a partition.

        ``label``, ``purpose`` and ``who`` are written down for people and never counted with. What
        is None stays as it is.
        """
        texts = {"label": label, "purpose": purpose, "who": who}
        names = {"analyst": analyst, "partition": partition}
        changed = {name: text_of(name, text) for name, text in texts.items() if text is not None}
        changed |= {name: name_of(name, text) for name, text in names.items() if text is not None}
        found = Ledger(self._store, replace(self._bound, **changed), self._known)
        found._terms, found._last = self._terms, self._last
        check_names(found._bound, found._look())
        return found

    # --- one of it --------------------------------------------------------------------------------

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Callable[..., Ledger], tuple[Any, ...]]:
        newest = () if self._last is None else (self._booking(self._last.entry),)
        return _reopened, (self.address, self._bound, (*self._known, *newest)[-4:])

    def __repr__(self) -> str:
        return f"Ledger({self.address!r})"

    @property
    def address(self) -> str:
        """Where it is: an absolute path, or an address without a password."""
        return self._store.address

    @property
    def terms(self) -> Terms:
        """Its number, budget and rule."""
        if self._terms is None:
            self._look()
        assert self._terms is not None
        return self._terms

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self.terms.budget

    @property
    def rule(self) -> Additive:
        """How charges add up."""
        return self.terms.rule

    # --- spending ---------------------------------------------------------------------------------

    def charge(self, event: Event, delta: float | None = None, *, key: str | None = None) -> Booked:
        """Book ``event`` and return the epsilon spent in all, or raise and book nothing.

        Parameters
        ----------
        event
            What is about to be released.
        delta
            The part of the budget's delta at which the rule ``"sum"`` counts the event.
        key
            The name of this one release, for whoever must ask again after a crash: a second charge
            by the same key books nothing and returns the first. By default each charge is its own.

        Raises
        ------
        BudgetExceeded
            If it would overspend, or the rule has no price for it.
        LedgerError
            If the ledger cannot be written, or is damaged. Nothing may be released then.
        """
        charge, content = self._priced(event, delta)
        entry, state = self._book(
            content, lambda before: afford(self.terms, self._bound, charge, content, before), key
        )
        return Booked(state.spent(self.terms), self._booking(entry))

    def check(self, event: Event, delta: float | None = None) -> None:
        """Raise if charging ``event`` would overspend; book nothing either way."""
        charge, content = self._priced(event, delta)
        afford(self.terms, self._bound, charge, content, self._look())

    def spent(self) -> float:
        """Return the epsilon spent so far, at the budget's delta, on the most exposed records."""
        return self._look().spent(self.terms)

    def remaining(self) -> float:
        """Return the epsilon of the largest release that would still be accepted."""
        state = self._look()
        return state.left(self.terms, self._bound.partition, self._bound.analyst)

    def add_analyst(self, name: str, epsilon: float) -> Booking:
        """Give an analyst a sub-budget: of what is charged, at most ``epsilon`` may be theirs.

        It is fixed for life. From then on every charge must name its analyst (`bound`).
        """
        cap = replace(self.budget, epsilon=epsilon).epsilon
        if not cap <= self.budget.epsilon:
            raise ValueError(
                f"{name!r} gets at most the budget's epsilon, {self.budget.epsilon:g}."
            )
        if not self.rule.most(replace(self.budget, epsilon=cap))[0] > 0.0:
            raise ValueError(
                f"{self.rule} accepts nothing at all within epsilon {cap:g} at delta "
                f"{self.budget.delta:g}, and a share is fixed for life; give {name!r} more."
            )
        return self._declare({"kind": "analyst", "name": name, "epsilon": cap})

    def add_partition(self, name: str) -> Booking:
        """Declare a part of the data, such as a window of time, disjoint from all other parts.

        Charges on different parts do not add up (`bound`): a record is in one of them at most.

        **Contract**: what is fixed of a record alone, for ever, says in which part it is: when it
        was made, not when it is asked for. Where a person is protected, all of a person's records
        are in one part. Nothing that was ever charged on a part read a record outside it.
        """
        if self.budget.relation is Relation.REPLACE:
            raise ValueError(
                "under REPLACE a record may be replaced by one of another part, so that charges on "
                "parts add up; make the ledger under ADD_REMOVE to have partitions."
            )
        return self._declare({"kind": "partition", "name": name})

    # --- reading ----------------------------------------------------------------------------------

    @property
    def head(self) -> Booking:
        """The newest entry, by which an older copy can be told."""
        self._look()
        assert self._last is not None
        return self._booking(self._last.entry)

    def state(self) -> State:
        """Return the totals, in parts of the budget."""
        return self._look()

    def verify(self, *, seen: Seen = None, prices: bool = False) -> Verified:
        """Follow every entry from the first on; raise naming the first that is wrong.

        Parameters
        ----------
        seen
            What certificates say of it, which must be there.
        prices
            Whether to compute each event's cost anew, too.
        """
        return verified(self._store, (*self._known, *_bookings(seen)), prices)

    def export(self) -> Iterator[Content]:
        """Yield every entry, oldest first, with its hash; ready for JSON."""
        stop = self.head.entry + 1
        for entry in self._store.entries(0, stop):
            yield {**entry.content, "hash": entry.hash}

    # --- within -----------------------------------------------------------------------------------

    def _booking(self, entry: Entry) -> Booking:
        return Booking(self.terms.ledger, entry.number, entry.hash)

    def _look(self) -> State:
        """Return the state now, after following what was not followed yet."""
        seen = self._last  # once: another thread may move it on
        if seen is None:
            return self._first_look()
        page = self._store.reading(seen.entry.number)
        self._last = found = caught_up(seen, page.entries, page.head)
        return found.state

    def _first_look(self) -> State:
        head = self._store.reading(-1).head
        start = start_of_tail(head.number)
        entries = list(self._store.entries(max(start - 1, 0), head.number + 1))
        walk = from_checkpoint(entries, head)
        first = entries[0] if start == 0 else next(self._store.entries(0, 1))
        self._terms = terms_of(first)
        for booking in self._known:
            check_booking(self._store, booking, self._terms.ledger, walk.number)
        self._last = Followed(entries[-1], walk.state)
        return walk.state

    def _priced(self, event: Event, delta: float | None) -> tuple[Charge, dict[str, Any]]:
        known = self._last_price  # once: another thread may change it
        if known is None or known[:2] != (event, delta):
            charge = charge_of(event, delta, self.budget)
            said = {"event": readable_again(event), "cost": list(self.terms.price(charge))}
            self._last_price = known = event, delta, charge, said
        charge, said = known[2:]
        return charge, {
            "kind": "charge",
            **said,
            "delta": charge.delta,
            "analyst": self._bound.analyst,
            "partition": self._bound.partition,
            "label": self._bound.label,
            "purpose": self._bound.purpose,
        }

    def _declare(self, content: dict[str, Any]) -> Booking:
        kind, name = content["kind"], name_of(content["kind"], content["name"])

        def new(before: State) -> State:
            if name in (before.analysts if kind == "analyst" else before.partitions):
                raise ValueError(f"the ledger has {kind} {name!r} already; it is fixed for life.")
            return before.after(content)

        content = {**content, "name": name}
        entry, _ = self._book(content, new)
        return self._booking(entry)

    def _book(
        self, content: dict[str, Any], accept: Callable[[State], State], key: str | None = None
    ) -> tuple[Entry, State]:
        """Write an entry in one transaction, asking again by its key if that was interrupted."""
        drawn = key is None
        content = {**content, "key": uuid.uuid4().hex if key is None else name_of("key", key)}
        if self._last is None:
            self._look()
        for place, pause in enumerate(_PAUSES):
            if pause:  # to sleep for no time at all is to give the processor away
                time.sleep(pause)
            try:
                # A key that was just drawn cannot be there yet: it is not looked for at first.
                return self._transact(content, accept, look=not drawn or place > 0)
            except Interrupted as why:
                interrupted = why
        raise self._after_all(content, interrupted)

    def _transact(
        self, content: dict[str, Any], accept: Callable[[State], State], look: bool
    ) -> tuple[Entry, State]:
        seen = self._last
        assert seen is not None
        with self._store.writing(seen.entry.number, content["key"] if look else None) as page:
            last = caught_up(seen, page.entries, page.head)
            if page.found is not None:
                return self._found(page.found, content), last.state
            after = accept(last.state)
            entry = self._next(content, last.entry, after)
            page.append(entry, after.text)
        self._last = Followed(entry, after)
        return entry, after

    def _next(self, content: Content, last: Entry | None, after: State) -> Entry:
        number = 0 if last is None else last.number + 1
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        full = {**content, "number": number, "who": self._bound.who, "when": now}
        full["state"] = after.digest
        if number and number % CHECKPOINT == 0:
            full["totals"] = after.to_dict()
        return sealed(full, GENESIS if last is None else last.hash)

    def _found(self, entry: Entry, content: Content) -> Entry:
        said = entry.content
        asked = ("kind", "key", "event", "delta", "analyst", "partition")
        if any(said.get(name) != content.get(name) for name in asked):
            raise ValueError(
                f"key {content['key']!r} is that of entry {entry.number}, another release; a key "
                "names one release alone. Nothing was booked."
            )
        before = next(self._store.entries(entry.number - 1, entry.number))
        entry.check(before.hash)
        return entry

    def _after_all(self, content: Content, why: Interrupted) -> LedgerError:
        """Return what to say of a transaction that was interrupted time and again."""
        try:
            # Whoever has the lock sees what was committed, and what was not never will be.
            with self._store.writing(-1, content["key"]) as page:
                found = page.found
        except LedgerError:
            return LedgerError(
                f"{why} Whether the charge was booked is not known, so it counts as spent and "
                f"nothing may be released; its key is {content['key']}."
            )
        booked = "It was booked after all" if found else "Nothing was booked"
        return LedgerError(f"{why} {booked}, and nothing was released.")


def _reopened(address: str, bound: Bound, seen: tuple[Booking, ...]) -> Ledger:
    return Ledger(store_at(address), bound, seen)


def readable_again(event: Event) -> dict[str, Any]:
    """Return an event's record, if it is one that whoever reads the ledger can price again."""
    record = event.to_dict()
    if event_from_dict(record) != event:
        raise TypeError(
            f"{type(event).__name__} is not what tacit reads from its own record, so that nobody "
            "could check its price; charge one of tacit's events, or register its kind."
        )
    return record


def _bookings(seen: Seen) -> tuple[Booking, ...]:
    if seen is None:
        return ()
    return (seen,) if isinstance(seen, Booking) else tuple(seen)
