"""Choosing parameters from private records: the search is part of what is paid for."""

from tacit.privacy.tries import Capped, FixedTries, Poisson, TruncatedNegativeBinomial
from tacit.tuning.disjoint import DisjointSearch
from tacit.tuning.scores import HeldOut, PublicScore
from tacit.tuning.search import PrivateSearch
from tacit.tuning.space import LogUniform, Made, Uniform

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
