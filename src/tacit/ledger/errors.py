"""Define the errors of a ledger; an exhausted budget is `BudgetExceeded`."""

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
    """A ledger was tampered with: an entry was changed or removed, or an older copy restored."""


class Interrupted(LedgerError):
    """The store was lost during a transaction, and the outcome of the commit is unknown.

    Only the ledger catches this error; it tries again with the same key.
    """
