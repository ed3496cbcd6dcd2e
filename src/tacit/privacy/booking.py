"""Identify the ledger entry that paid for a release, so that certificates can name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit import checks

_HEX = "0123456789abcdef"


@dataclass(frozen=True)
class Booking:
    """The entry of a ledger that paid for a release, and the ledger's head right after it.

    Parameters
    ----------
    ledger
        The ledger's identifier: 32 random hexadecimal digits.
    entry
        The entry's number.
    head
        The SHA-256 of that entry, which depends on all entries before it. It shows whether a
        ledger was rewritten or restored from an older copy.

    Examples
    --------
    >>> from tacit.privacy import Booking
    >>> print(Booking("0" * 32, 7, "a" * 64))
    entry 7 of ledger 00000000000000000000000000000000 (head aaaaaaaaaaaa...)
    """

    ledger: str
    entry: int
    head: str

    def __post_init__(self) -> None:
        if type(self.entry) is not int or self.entry < 0:
            checks.count("entry", self.entry, least=0)
        for name, value, digits in (("ledger", self.ledger, 32), ("head", self.head, 64)):
            if not isinstance(value, str) or len(value) != digits or value.strip(_HEX):
                raise ValueError(f"{name} must be {digits} hexadecimal digits, got {value!r}.")

    def __str__(self) -> str:
        return f"entry {self.entry} of ledger {self.ledger} (head {self.head[:12]}...)"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        return {"ledger": self.ledger, "entry": self.entry, "head": self.head}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Booking:
        """Return the booking of a dictionary made by `to_dict`."""
        if not isinstance(record, Mapping) or set(record) != {"ledger", "entry", "head"}:
            raise ValueError("a booking states ledger, entry and head; this one does not.")
        return cls(**record)


class Booked(float):
    """The epsilon spent in all after a charge, and the entry of that charge.

    Examples
    --------
    >>> from tacit.privacy import Booked, Booking
    >>> paid = Booked(0.5, Booking("0" * 32, 7, "a" * 64))
    >>> paid < 1.0, paid.booking.entry
    (True, 7)
    """

    __slots__ = ("booking",)
    booking: Booking

    def __new__(cls, spent: float, booking: Booking) -> Booked:
        """Return the number, with its booking."""
        made = super().__new__(cls, spent)
        made.booking = booking
        return made

    def __getnewargs__(self) -> tuple[float, Booking]:  # type: ignore[override]
        return float(self), self.booking
