"""tacit: models trained on sensitive records, with a differential-privacy guarantee."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit import datasets as datasets
    from tacit import erm as erm
    from tacit import linear_model as linear_model
    from tacit import local as local
    from tacit import location as location
    from tacit import noise as noise
    from tacit import privacy as privacy
    from tacit import records as records
    from tacit import testing as testing
    from tacit.privacy import Accountant as Accountant
    from tacit.privacy import Budget as Budget
    from tacit.privacy import Guarantee as Guarantee
    from tacit.privacy import Relation as Relation

__version__ = "0.1.0"

_SUBPACKAGES = (
    "datasets",
    "erm",
    "linear_model",
    "local",
    "location",
    "noise",
    "privacy",
    "records",
    "testing",
)
_FROM_PRIVACY = ("Accountant", "Budget", "Guarantee", "Relation")

__all__ = [*_SUBPACKAGES, *_FROM_PRIVACY, "__version__"]


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that `import tacit` stays fast.
    if name in _SUBPACKAGES:
        return importlib.import_module(f"tacit.{name}")
    if name in _FROM_PRIVACY:
        return getattr(importlib.import_module("tacit.privacy"), name)
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
