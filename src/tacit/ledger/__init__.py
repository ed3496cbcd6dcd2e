"""A budget that survives: durable, charged before the data are opened, without refunds."""

from tacit.ledger.audit import Verified
from tacit.ledger.errors import LedgerDamaged, LedgerError
from tacit.ledger.ledger import Ledger
from tacit.ledger.standing import Standing, standing

__all__ = ["Ledger", "LedgerDamaged", "LedgerError", "Standing", "Verified", "standing"]
