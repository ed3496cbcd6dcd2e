"""What can go wrong with a ledger, apart from a budget that does not suffice."""

from __future__ import annotations


class LedgerError(RuntimeError):
    """A ledger cannot be used; the message says why and what to do. Nothing was released.

    Examples
    --------
    >>> from tacit.ledger import Ledger
    >>> Ledger.open("no such file.ledger")
    Traceback (most recent call last):
        ...
    tacit.ledger.errors.LedgerError: there is no ledger at ...
    """


class LedgerDamaged(LedgerError):
    """A ledger is not what was written: an entry was changed, removed, or all put back in time."""


class Interrupted(LedgerError):
    """The store was lost in a transaction, of which it is not known whether it was stored.

    For the ledger alone, which tries again with the same key.
    """
