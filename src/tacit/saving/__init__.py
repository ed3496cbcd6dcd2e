"""Save models as JSON and arrays in one zip, without pickle; load only intact files."""

from tacit.saving.certificate import Certificate, inspect
from tacit.saving.container import CannotSave, NotAModel
from tacit.saving.model_file import load, save

__all__ = ["CannotSave", "Certificate", "NotAModel", "inspect", "load", "save"]
