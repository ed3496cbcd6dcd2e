"""Finding the ledger that pays, and what certificates say of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.errors import Refused

if TYPE_CHECKING:
    from tacit.ledger import Ledger
    from tacit.privacy import Booking


def bookings(certificates: list[Path] | None) -> list[Booking]:
    """Return the entries that saved models name."""
    from tacit.saving import inspect

    found = []
    for path in certificates or ():
        booking = inspect(path).privacy.booking
        if booking is None:
            raise Refused(f"{path.name} names no ledger: it was fitted without one; leave it out.")
        found.append(booking)
    return found


def paying(
    address: str | None,
    certificates: list[Path] | None,
    *,
    epsilon: float | None = None,
    analyst: str | None,
    partition: str | None,
    label: str | None,
    purpose: str | None,
) -> Ledger | None:
    """Return the ledger that pays for a release, or None where none was named.

    Examples
    --------
    >>> from tacit.cli.ledger_opening import paying
    >>> paying(None, None, analyst="ann", partition=None, label=None, purpose=None)
    Traceback (most recent call last):
    tacit.cli.errors.Refused: --analyst is about a ledger; pass --ledger as well.
    """
    from tacit.ledger import Ledger

    said = {"analyst": analyst, "partition": partition, "label": label, "purpose": purpose}
    if address is None:
        for name, value in {**said, "certificate": certificates}.items():
            if value:
                raise Refused(f"--{name} is about a ledger; pass --ledger as well.")
        return None
    if epsilon is not None and math.isinf(epsilon):
        raise Refused(
            "--epsilon inf promises nothing, and no ledger pays for that; choose a finite epsilon, "
            "or leave --ledger out."
        )
    opened = Ledger.open(address, seen=bookings(certificates))
    return opened.bound(analyst=analyst, partition=partition, label=label, purpose=purpose)
