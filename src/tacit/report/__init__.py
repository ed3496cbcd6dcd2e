"""Write HTML reports of a model: guarantee, assumptions, plan and released numbers."""

from tacit.report.collect import facts_of
from tacit.report.description import render_description, write_description
from tacit.report.facts import (
    AccuracyPicture,
    AccuracyPoint,
    Coefficient,
    Coefficients,
    PlannedMechanism,
    PublicFact,
    ReportFacts,
)
from tacit.report.pages import render_audit, render_ledger, write_audit, write_ledger
from tacit.report.write import render, write_report

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
    "render_description",
    "render_ledger",
    "write_audit",
    "write_description",
    "write_ledger",
    "write_report",
]
