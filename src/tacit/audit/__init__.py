"""Compute lower bounds on epsilon from fits of tacit's estimators or of any other code."""

from tacit.audit.estimators import audit
from tacit.audit.files import FileAudit, audit_files
from tacit.audit.finding import Audit, Finding
from tacit.audit.foreign import audit_fits, audit_one_run
from tacit.audit.one_run import epsilon_of_guesses, gaussian_epsilon_of_guesses

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
