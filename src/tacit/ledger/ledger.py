"""A budget that survives: kept on disk, for many people, processes and machines."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

from tacit.ledger.audit import Verified, verified
from tacit.ledger.books import Books
from tacit.ledger.bound import Bound, account
from tacit.ledger.bound import name as name_of
from tacit.ledger.bound import text as text_of
from tacit.ledger.declaring import analyst_of, declared, partition_of
from tacit.ledger.entry import Content, Draft
from tacit.ledger.errors import LedgerError
from tacit.ledger.spending import afford, check_names
from tacit.ledger.state import State
from tacit.ledger.store import store_at
from tacit.ledger.terms import VERSION, Terms, rule_for
from tacit.privacy import (
    Additive,
    Booked,
    Booking,
    Budget,
    Event,
    event_from_dict,
)
from tacit.privacy.accountant import charge_of
from tacit.privacy.filters import Charge

Seen = Booking | Iterable[Booking] | None


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

    def __init__(self, books: Books, bound: Bound) -> None:
        self._books = books
        self._bound = bound
        # Folds of one search are charged the same event time and again.
        self._last_price: tuple[Event, float | None, Charge, Draft] | None = None

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
            How charges add up; fixed for life. ``"either"`` (epsilons and deltas, or squared mu;
            the default), ``"sum"`` (epsilons and deltas; the default of a pure budget),
            ``"gaussian"`` (Gaussian and pure events alone), ``"renyi"``, ``"odometer"``, or a rule
            itself.
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
        bound = Bound(who=account() if who is None else text_of("who", who))
        made = cls(Books(store_at(address)), bound)
        content = {
            "kind": "created",
            **terms.to_dict(),
            "version": VERSION,
            "label": text_of("label", label),
            "purpose": text_of("purpose", purpose),
            "who": bound.who,
        }
        made._books.create(terms, content)
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
        opened = cls(Books(store_at(address), _bookings(seen)), Bound(who=account()))
        opened._books.look()
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
        found = Ledger(self._books, replace(self._bound, **changed))
        check_names(found._bound, self._books.look())
        return found

    # --- one of it --------------------------------------------------------------------------------

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Callable[..., Ledger], tuple[Any, ...]]:
        last = self._books.last
        newest = () if last is None else (self._books.booking(last),)
        return _reopened, (self.address, self._bound, (*self._books.known, *newest)[-4:])

    def __repr__(self) -> str:
        return f"Ledger({self.address!r})"

    @property
    def address(self) -> str:
        """Where it is: an absolute path, or an address without a password."""
        return self._books.store.address

    @property
    def terms(self) -> Terms:
        """Its number, budget and rule."""
        return self._books.terms

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
        charge, draft = self._priced(event, delta)
        terms, bound = self.terms, self._bound
        entry, state = self._books.book(
            draft, lambda before: afford(terms, bound, charge, draft, before), key
        )
        return Booked(state.spent(terms), self._books.booking(entry))

    def check(self, event: Event, delta: float | None = None) -> None:
        """Raise if charging ``event`` would overspend; book nothing either way."""
        charge, draft = self._priced(event, delta)
        afford(self.terms, self._bound, charge, draft, self._books.look())

    def spent(self) -> float:
        """Return the epsilon spent so far, at the budget's delta, on the most exposed records."""
        return self._books.look().spent(self.terms)

    def remaining(self) -> float:
        """Return the epsilon of the largest release that would still be accepted."""
        state = self._books.look()
        return state.left(self.terms, self._bound.partition, self._bound.analyst)

    def planning_delta(self, delta: float) -> float:
        """Return the delta with which a fit that asks for ``delta`` is planned and charged."""
        return self.rule.planning_delta(delta)

    def add_analyst(self, name: str, epsilon: float) -> Booking:
        """Give an analyst a sub-budget: of what is charged, at most ``epsilon`` may be theirs.

        It is fixed for life. From then on every charge must name its analyst (`bound`).
        """
        return self._declare(analyst_of(self.terms, name, epsilon))

    def add_partition(self, name: str) -> Booking:
        """Declare a part of the data, such as a window of time, disjoint from all other parts.

        Charges on different parts do not add up (`bound`): a record is in one of them at most.

        **Contract**: what is fixed of a record alone, for ever, says in which part it is: when it
        was made, not when it is asked for. Where a person is protected, all of a person's records
        are in one part. Nothing that was ever charged on a part read a record outside it.
        """
        return self._declare(partition_of(self.terms, name))

    # --- reading ----------------------------------------------------------------------------------

    @property
    def head(self) -> Booking:
        """The newest entry, by which an older copy can be told."""
        self._books.look()
        last = self._books.last
        assert last is not None
        return self._books.booking(last)

    @property
    def analyst(self) -> str | None:
        """For whom its charges count; None for nobody in particular."""
        return self._bound.analyst

    @property
    def partition(self) -> str | None:
        """On what part of the data its charges count; None for all of them."""
        return self._bound.partition

    def entry(self, number: int) -> Content:
        """Return what one entry says, as it is stored; `verify` tells whether it was changed."""
        for found in self._books.store.entries(number, number + 1):
            return found.content
        raise LedgerError(f"the ledger has no entry {number}; its newest is {self.head.entry}.")

    def state(self) -> State:
        """Return the totals, in parts of the budget."""
        return self._books.look()

    def verify(self, *, seen: Seen = None, prices: bool = False) -> Verified:
        """Follow every entry from the first on; raise naming the first that is wrong.

        Parameters
        ----------
        seen
            What certificates say of it, which must be there.
        prices
            Whether to compute each event's cost anew, too.
        """
        return verified(self._books.store, (*self._books.known, *_bookings(seen)), prices)

    def export(self, last: int | None = None) -> Iterator[Content]:
        """Yield every entry, or the last so many, oldest first, with its hash; ready for JSON."""
        stop = self.head.entry + 1
        for entry in self._books.store.entries(0 if last is None else max(stop - last, 0), stop):
            yield {**entry.content, "hash": entry.hash}

    # --- within -----------------------------------------------------------------------------------

    def _priced(self, event: Event, delta: float | None) -> tuple[Charge, Draft]:
        known = self._last_price  # once: another thread may change it
        if known is None or known[:2] != (event, delta):
            charge = charge_of(event, delta, self.budget)
            said = {
                "kind": "charge",
                "event": readable_again(event),
                "cost": list(self.terms.price(charge)),
                "delta": charge.delta,
                **asdict(self._bound),
            }
            self._last_price = known = event, delta, charge, Draft(said)
        return known[2:]

    def _declare(self, content: Content) -> Booking:
        draft = Draft({**content, "who": self._bound.who})
        entry, _ = self._books.book(draft, lambda before: (draft, declared(content, before)))
        return self._books.booking(entry)


def _reopened(address: str, bound: Bound, seen: tuple[Booking, ...]) -> Ledger:
    return Ledger(Books(store_at(address), seen), bound)


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
