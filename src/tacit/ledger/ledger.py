"""Keep one privacy budget on disk for many people, processes and machines."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from tacit.ledger.journal import Journal, Verified, check_booking, verified
from tacit.ledger.rules import (
    Bound,
    account,
    afford,
    analyst_of,
    check_names,
    declared,
    partition_of,
)
from tacit.ledger.rules import name_of as name_of
from tacit.ledger.rules import text as text_of
from tacit.ledger.state import VERSION, State, Terms, rule_for
from tacit.ledger.store import Content, Draft, LedgerError, store_at
from tacit.privacy import Budget, Event, event_from_dict
from tacit.privacy.accountant import charge_of
from tacit.privacy.filters import Additive, Charge
from tacit.privacy.guarantee import Booked, Booking

Seen = Booking | Iterable[Booking] | None


class Ledger:
    """Budget on disk that many processes and people share, in SQLite or PostgreSQL.

    `create` makes a ledger and `open` finds it again. Pass it wherever ``accountant=`` is accepted.

    Notes
    -----
    **Guarantee**

    1. All accepted releases together are within the budget by the ledger's rule. This holds for any
    number of threads, processes and machines, and if they are killed (docs/proofs/ledger.md).
    2. A charge is on disk before `charge` returns; nothing is ever refunded.
    3. `copy`, `deepcopy` and scikit-learn's ``clone`` return the ledger itself. A pickle holds its
    address, so a process that loads the pickle spends the same budget.
    4. `verify` names an entry that was changed, removed or moved. The next charge does so for the
    last 1,000 entries. A holder of a newer certificate detects an older copy.

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

    def __init__(self, journal: Journal, bound: Bound) -> None:
        self._journal = journal
        self._bound = bound
        # The folds of one search charge the same event repeatedly.
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
        """Create a new ledger.

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
            Notes for people; ``who`` is the account's name by default.

        Raises
        ------
        LedgerError
            If the address is taken, or the ledger cannot be created.
        """
        if not isinstance(budget, Budget):
            raise TypeError(f"budget must be a Budget, got {budget!r}.")
        terms = Terms(uuid.uuid4().hex, budget, rule_for(rule, budget))
        bound = Bound(who=account() if who is None else text_of("who", who))
        made = cls(Journal(store_at(address)), bound)
        content = {
            "kind": "created",
            **terms.to_dict(),
            "version": VERSION,
            "label": text_of("label", label),
            "purpose": text_of("purpose", purpose),
            "who": bound.who,
        }
        made._journal.create(terms, content)
        return made

    @classmethod
    def open(cls, address: str | os.PathLike[str], *, seen: Seen = None) -> Ledger:
        """Open the ledger at an address, and verify its last 1,000 entries.

        Parameters
        ----------
        address
            As for `create`.
        seen
            Bookings in certificates, ``model.privacy_.booking``. A ledger without these entries is
            refused, now and by every charge.
        """
        opened = cls(Journal(store_at(address), _bookings(seen)), Bound(who=account()))
        opened._journal.look()
        return opened

    def bound(
        self,
        *,
        analyst: str | None = None,
        partition: str | None = None,
        label: str | None = None,
        purpose: str | None = None,
        who: str | None = None,
        release: str | None = None,
        table: str | None = None,
    ) -> Ledger:
        """Return the same ledger, with charges that count for an analyst or on a partition.

        ``label``, ``purpose``, ``who``, ``release`` (what is released: a model, an evaluation) and
        ``table`` (which records are read) are notes for people and do not affect the budget. An
        analyst without a share is a note too. A parameter that is None stays as it is.
        """
        texts = {"label": label, "purpose": purpose, "who": who}
        texts |= {"release": release, "table": table}
        names = {"analyst": analyst, "partition": partition}
        changed = {name: text_of(name, text) for name, text in texts.items() if text is not None}
        changed |= {name: name_of(name, text) for name, text in names.items() if text is not None}
        found = Ledger(self._journal, replace(self._bound, **changed))
        check_names(found._bound, self._journal.look())
        return found

    # --- identity: every copy is the same ledger --------------------------------------------------

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Callable[..., Ledger], tuple[Any, ...]]:
        last = self._journal.last
        newest = () if last is None else (self._journal.booking(last),)
        return _reopened, (self.address, self._bound, (*self._journal.known, *newest)[-4:])

    def __repr__(self) -> str:
        return f"Ledger({self.address!r})"

    @property
    def address(self) -> str:
        """The absolute path, or the URL without a password."""
        return self._journal.store.address

    @property
    def terms(self) -> Terms:
        """The ledger's identifier, budget and rule."""
        return self._journal.terms

    @property
    def budget(self) -> Budget:
        """The budget for all charges together."""
        return self.terms.budget

    @property
    def rule(self) -> Additive:
        """The composition rule."""
        return self.terms.rule

    # --- spending ---------------------------------------------------------------------------------

    def charge(self, event: Event, delta: float | None = None, *, key: str | None = None) -> Booked:
        """Book ``event`` and return the epsilon spent in all, or raise and book nothing.

        Parameters
        ----------
        event
            The event of the planned release.
        delta
            The part of the budget's delta at which the rule ``"sum"`` counts the event.
        key
            Name of this release, for a caller who may have to repeat the charge after a crash. A
            second charge with the same key books nothing and returns the first. By default each
            charge has a key of its own.

        Raises
        ------
        BudgetExceeded
            If it would overspend, or the rule has no price for it.
        LedgerError
            If the ledger cannot be written, or is damaged. Nothing may be released then.
        """
        charge, draft = self._priced(event, delta)
        terms, bound = self.terms, self._bound
        entry, state = self._journal.book(
            draft, lambda before: afford(terms, bound, charge, draft, before), key
        )
        return Booked(state.spent(terms), self._journal.booking(entry))

    def check(self, event: Event, delta: float | None = None) -> None:
        """Raise if charging ``event`` would exceed the budget; book nothing either way."""
        charge, draft = self._priced(event, delta)
        afford(self.terms, self._bound, charge, draft, self._journal.look())

    def spent(self) -> float:
        """Return the epsilon spent so far, at the budget's delta, on the most exposed records."""
        return self._journal.look().spent(self.terms)

    def remaining(self) -> float:
        """Return the epsilon of the largest release that would still be accepted."""
        state = self._journal.look()
        return state.left(self.terms, self._bound.partition, self._bound.analyst)

    def planning_delta(self, delta: float) -> float:
        """Return the delta with which a fit that asks for ``delta`` is planned and charged."""
        return self.rule.planning_delta(delta)

    def add_analyst(self, name: str, epsilon: float | None = None) -> Booking:
        """Give an analyst a share: their charges may spend at most ``epsilon``.

        Charges fit the share as they fit the budget: those that add up to it are accepted. The
        share is fixed for life, and from then on every charge must name its analyst (`bound`).
        Charges that named the analyst before, as a note, count for the budget and not for the
        share.
        Without an epsilon the analyst has no share, and may spend what is left of the budget.
        """
        return self._declare(analyst_of(self.terms, name, epsilon))

    def add_file(self, booking: Booking, sha256: str, file: str = "") -> Booking:
        """Record the file that was released for a charge: its SHA-256, and its name for people.

        It costs nothing. Readers of the ledger can then tell the file from any other.

        Parameters
        ----------
        booking
            Of the charge, from the model's certificate: ``model.privacy_.booking``.
        sha256
            ``tacit.saving.inspect(path).sha256``: 64 hexadecimal digits.
        file
            The name of the file.
        """
        check_booking(self._journal.store, booking, self.terms.ledger, self.head.entry)
        if self.entry(booking.entry)["kind"] != "charge":
            raise ValueError(f"entry {booking.entry} is no charge, so nothing was released for it.")
        return self._declare(
            {
                "kind": "released",
                "entry": booking.entry,
                "sha256": text_of("sha256", sha256),
                "file": text_of("file", file),
            }
        )

    def add_partition(self, name: str) -> Booking:
        """Declare a part of the data, such as a window of time, disjoint from all other parts.

        Charges on different parts do not add up (`bound`): a record is in at most one part.

        **Contract**: the part of a record depends only on facts of the record that never change:
        the time it was made, not the time of the query. If a person is protected, all records of a
        person are in one part. No charge on a part has read a record outside that part.
        """
        return self._declare(partition_of(self.terms, name))

    # --- reading ----------------------------------------------------------------------------------

    @property
    def head(self) -> Booking:
        """The newest entry; an older copy of the ledger lacks it."""
        self._journal.look()
        last = self._journal.last
        assert last is not None
        return self._journal.booking(last)

    @property
    def analyst(self) -> str | None:
        """The analyst whose charges these are; None without one."""
        return self._bound.analyst

    @property
    def partition(self) -> str | None:
        """The partition that charges count on; None for the whole data set."""
        return self._bound.partition

    def entry(self, number: int) -> Content:
        """Return the content of one entry as stored; `verify` detects changes."""
        for found in self._journal.store.entries(number, number + 1):
            return found.content
        raise LedgerError(f"the ledger has no entry {number}; its newest is {self.head.entry}.")

    def state(self) -> State:
        """Return the totals, in parts of the budget."""
        return self._journal.look()

    def verify(self, *, seen: Seen = None, prices: bool = False) -> Verified:
        """Check every entry from the first on; raise and name the first wrong one.

        Parameters
        ----------
        seen
            Bookings in certificates, which the ledger must contain.
        prices
            Whether to compute the cost of each event anew.
        """
        return verified(self._journal.store, (*self._journal.known, *_bookings(seen)), prices)

    def export(self, last: int | None = None) -> Iterator[Content]:
        """Yield all entries, or the last ``last``, oldest first, with hashes; ready for JSON."""
        stop = self.head.entry + 1
        for entry in self._journal.store.entries(0 if last is None else max(stop - last, 0), stop):
            yield {**entry.content, "hash": entry.hash}

    # --- internals --------------------------------------------------------------------------------

    def _priced(self, event: Event, delta: float | None) -> tuple[Charge, Draft]:
        known = self._last_price  # read once: another thread may replace it
        if known is None or known[:2] != (event, delta):
            charge = charge_of(event, delta, self.budget)
            said = {
                "kind": "charge",
                "event": readable_again(event),
                "cost": list(self.terms.price(charge)),
                "delta": charge.delta,
                **self._bound.to_dict(),
            }
            self._last_price = known = event, delta, charge, Draft(said)
        return known[2:]

    def _declare(self, content: Content) -> Booking:
        draft = Draft({**content, "who": self._bound.who})
        entry, _ = self._journal.book(draft, lambda before: (draft, declared(content, before)))
        return self._journal.booking(entry)


def _reopened(address: str, bound: Bound, seen: tuple[Booking, ...]) -> Ledger:
    return Ledger(Journal(store_at(address), seen), bound)


def readable_again(event: Event) -> dict[str, Any]:
    """Return an event's record; raise unless a reader of the ledger can price the event again."""
    record = event.to_dict()
    if event_from_dict(record) != event:
        raise TypeError(
            f"tacit cannot read {type(event).__name__} from its own record, so nobody could check "
            "its price; charge one of tacit's events, or register its kind."
        )
    return record


def _bookings(seen: Seen) -> tuple[Booking, ...]:
    if seen is None:
        return ()
    return (seen,) if isinstance(seen, Booking) else tuple(seen)
