"""tacit: models trained on sensitive records, with a differential-privacy guarantee."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit import additive as additive
    from tacit import audit as audit
    from tacit import cluster as cluster
    from tacit import datasets as datasets
    from tacit import deep as deep
    from tacit import descriptive as descriptive
    from tacit import erm as erm
    from tacit import features as features
    from tacit import images as images
    from tacit import io as io
    from tacit import kernel as kernel
    from tacit import ledger as ledger
    from tacit import linear_model as linear_model
    from tacit import local as local
    from tacit import location as location
    from tacit import metrics as metrics
    from tacit import noise as noise
    from tacit import pate as pate
    from tacit import pipeline as pipeline
    from tacit import preprocessing as preprocessing
    from tacit import privacy as privacy
    from tacit import queries as queries
    from tacit import records as records
    from tacit import report as report
    from tacit import saving as saving
    from tacit import schema as schema
    from tacit import table_model as table_model
    from tacit import testing as testing
    from tacit import tuning as tuning
    from tacit.descriptive import describe as describe
    from tacit.estimators.parameters import NobodyCountedWarning as NobodyCountedWarning
    from tacit.estimators.parameters import UndeclaredWarning as UndeclaredWarning
    from tacit.pipeline import PrivatePipeline as PrivatePipeline
    from tacit.privacy import Accountant as Accountant
    from tacit.privacy import Budget as Budget
    from tacit.privacy import Guarantee as Guarantee
    from tacit.privacy import Relation as Relation
    from tacit.privacy.budget import WeakPromiseWarning as WeakPromiseWarning
    from tacit.saving import load as load
    from tacit.saving import save as save
    from tacit.table_model import TableModel as TableModel

__version__ = "0.2.0.dev0"

_SUBPACKAGES = (
    "additive",
    "audit",
    "cluster",
    "datasets",
    "descriptive",
    "erm",
    "features",
    "images",
    "io",
    "kernel",
    "ledger",
    "linear_model",
    "local",
    "location",
    "metrics",
    "noise",
    "pate",
    "pipeline",
    "preprocessing",
    "privacy",
    "queries",
    "records",
    "report",
    "saving",
    "schema",
    "table_model",
    "testing",
    "tuning",
)
# Those that need what `pip install tacit` does not bring.
_OPTIONAL = ("deep",)
_NAMES = {
    "Accountant": "privacy",
    "Budget": "privacy",
    "Guarantee": "privacy",
    "NobodyCountedWarning": "estimators.parameters",
    "PrivatePipeline": "pipeline",
    "Relation": "privacy",
    "TableModel": "table_model",
    "UndeclaredWarning": "estimators.parameters",
    "WeakPromiseWarning": "privacy.budget",
    "describe": "descriptive",
    "load": "saving",
    "save": "saving",
}

__all__ = [*_SUBPACKAGES, *_NAMES, "__version__"]


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that `import tacit` stays fast.
    if name in (*_SUBPACKAGES, *_OPTIONAL):
        return importlib.import_module(f"tacit.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"tacit.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
