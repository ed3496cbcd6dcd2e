"""Reports: what was promised, assumed, planned and released, as one HTML file."""

from tacit.report.audit_page import render_audit, write_audit
from tacit.report.collecting import facts_of
from tacit.report.facts import (
    AccuracyPicture,
    AccuracyPoint,
    Coefficient,
    Coefficients,
    PlannedMechanism,
    PublicFact,
    ReportFacts,
)
from tacit.report.ledger_page import render_ledger, write_ledger
from tacit.report.writing import render, write_report

__all__ = [
    "AccuracyPicture",
    "AccuracyPoint",
    "Coefficient",
    "Coefficients",
    "PlannedMechanism",
    "PublicFact",
    "ReportFacts",
    "facts_of",
    "render",
    "render_audit",
    "render_ledger",
    "write_audit",
    "write_ledger",
    "write_report",
]
