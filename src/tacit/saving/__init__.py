"""Save models as JSON and arrays in one zip, without pickle; load only intact files."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tacit.saving.container import CannotSave, NotAModel

if TYPE_CHECKING:
    from tacit.saving.certificate import Certificate as Certificate
    from tacit.saving.certificate import inspect as inspect
    from tacit.saving.model_file import load as load
    from tacit.saving.model_file import save as save

# A file may hold any model, so these modules import all of them. They are imported on first use:
# who only writes a file atomically, or catches an error, loads no model.
_NAMES = {
    "Certificate": "certificate",
    "inspect": "certificate",
    "load": "model_file",
    "save": "model_file",
}

__all__ = ["CannotSave", "Certificate", "NotAModel", "inspect", "load", "save"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"tacit.saving.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'tacit.saving' has no attribute {name!r}")
