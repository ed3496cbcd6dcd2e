"""Keep a privacy budget on disk: charges are durable, come before the data, and have no refunds."""

from tacit.ledger.ledger import Ledger
from tacit.ledger.status import LedgerStatus, status
from tacit.ledger.store import LedgerDamaged, LedgerError

__all__ = [
    "Ledger",
    "LedgerDamaged",
    "LedgerError",
    "LedgerStatus",
    "status",
]
