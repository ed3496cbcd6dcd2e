"""Keep a privacy budget on disk: charges are durable, come before the data, and have no refunds."""

from tacit.ledger.audit import Verified
from tacit.ledger.errors import LedgerDamaged, LedgerError
from tacit.ledger.ledger import Ledger
from tacit.ledger.standing import Standing, standing

__all__ = ["Ledger", "LedgerDamaged", "LedgerError", "Standing", "Verified", "standing"]
