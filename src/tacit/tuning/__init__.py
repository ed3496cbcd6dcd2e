"""Choose parameters on private records; the budget covers the search."""

from tacit.privacy.accounting.number_of_trials import (
    Capped,
    FixedTries,
    Poisson,
    TruncatedNegativeBinomial,
)
from tacit.tuning.disjoint import DisjointSearch
from tacit.tuning.search import PrivateSearch
from tacit.tuning.space import LogUniform, Made, Uniform
from tacit.tuning.trials import HeldOut, PublicScore

__all__ = [
    "Capped",
    "DisjointSearch",
    "FixedTries",
    "HeldOut",
    "LogUniform",
    "Made",
    "Poisson",
    "PrivateSearch",
    "PublicScore",
    "TruncatedNegativeBinomial",
    "Uniform",
]
