"""Write HTML reports of a model: guarantee, assumptions, plan and released numbers."""

from tacit.report.collect import facts_of
from tacit.report.description import write_description
from tacit.report.facts import AccuracyPicture, AccuracyPoint, ReportFacts
from tacit.report.pages import write_audit, write_ledger
from tacit.report.write import render, write_report

__all__ = [
    "AccuracyPicture",
    "AccuracyPoint",
    "ReportFacts",
    "facts_of",
    "render",
    "write_audit",
    "write_description",
    "write_ledger",
    "write_report",
]
