"""Compute lower bounds on epsilon from fits of tacit's estimators or of any other code."""

from tacit.audit.black_box import audit_fits, audit_one_run
from tacit.audit.distinguishing import epsilon_of_guesses, gaussian_epsilon_of_guesses
from tacit.audit.estimators import audit
from tacit.audit.files import FileAudit, audit_files
from tacit.audit.results import Audit, Finding

__all__ = [
    "Audit",
    "FileAudit",
    "Finding",
    "audit",
    "audit_files",
    "audit_fits",
    "audit_one_run",
    "epsilon_of_guesses",
    "gaussian_epsilon_of_guesses",
]
