"""An accountant that remembers where its last charge was booked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from tacit.deep.checkpoint import CheckpointError
from tacit.engine import check_accountant
from tacit.privacy import AnyAccountant, Booked, Booking, Budget, Event
from tacit.privacy.filters import Filter


class Paying:
    """The same accountant; ``booking`` says where the charge is written, if anywhere."""

    def __init__(self, accountant: AnyAccountant) -> None:
        check_accountant(accountant)
        self._accountant = accountant
        self.booking: Booking | None = None

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self._accountant.budget

    @property
    def rule(self) -> Filter:
        """How charges add up."""
        return self._accountant.rule

    def charge(self, event: Event, delta: float | None = None) -> float:
        """Book an event, and remember where."""
        paid = self._accountant.charge(event, delta)
        self.booking = paid.booking if isinstance(paid, Booked) else None
        return paid

    def check(self, event: Event, delta: float | None = None) -> None:
        """Raise if charging an event would overspend."""
        self._accountant.check(event, delta)

    def spent(self) -> float:
        """Return the epsilon spent so far."""
        return self._accountant.spent()

    def remaining(self) -> float:
        """Return the epsilon of the largest release that would still be accepted."""
        return self._accountant.remaining()


def has_booked(accountant: AnyAccountant | None, booking: Booking | None, event: Event) -> bool:
    """Return whether the charge of an event is in this very ledger already.

    An accountant in memory has forgotten what an earlier process charged, and is charged again. A
    ledger that was put back to an older state has forgotten it, too, and is refused. So is one
    whose charge counts for another analyst or on another part of the data: what is released next
    would be of records that nobody paid for.
    """
    if booking is None or not isinstance(accountant, _KeepsBooks):
        return False
    if accountant.head.ledger != booking.ledger:
        return False
    accountant.verify(seen=booking)
    entry = accountant.entry(booking.entry)
    for what, ours in (("partition", accountant.partition), ("analyst", accountant.analyst)):
        if entry.get(what) != ours:
            raise CheckpointError(
                f"the training was charged with {what}={entry.get(what)!r}, and would go on with "
                f"{what}={ours!r}, where nothing was charged for it; use the ledger bound as it "
                "was, or name another checkpoint, which is charged anew."
            )
    if entry.get("event") != event.to_dict():
        raise CheckpointError(
            f"{booking} paid for another release than this training; name another checkpoint, "
            "which is charged anew."
        )
    return True


@runtime_checkable
class _KeepsBooks(Protocol):
    """An accountant that can say whether an entry is among its own: a ledger."""

    @property
    def head(self) -> Booking:
        """The newest entry."""

    @property
    def analyst(self) -> str | None:
        """For whom its charges count."""

    @property
    def partition(self) -> str | None:
        """On what part of the data its charges count."""

    def entry(self, number: int) -> Mapping[str, Any]:
        """Return what an entry says."""

    def verify(self, *, seen: Booking) -> object:
        """Raise unless an entry is there."""
