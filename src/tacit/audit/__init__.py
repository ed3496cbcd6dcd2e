"""Compute lower bounds on epsilon from fits of tacit's estimators or of any other code."""

from tacit.audit.black_box import audit_fits, audit_one_run
from tacit.audit.estimators import audit
from tacit.audit.files import audit_files
from tacit.audit.results import Audit

__all__ = [
    "Audit",
    "audit",
    "audit_files",
    "audit_fits",
    "audit_one_run",
]
