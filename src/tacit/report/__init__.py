"""Reports: what was promised, assumed, planned and released, as one HTML file."""

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
    "write_report",
]
