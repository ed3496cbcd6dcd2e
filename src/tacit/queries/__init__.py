"""Private queries: statistics, their sensitivities, their noise, and the events that follow."""

from tacit.queries.base import Facts, Held, Private, Query, Sensitivity, Statistic
from tacit.queries.count import ClassCounts, Count
from tacit.queries.gradient import Gradient
from tacit.queries.hessian import HessianTrace
from tacit.queries.minimizer import PerturbedMinimizer, RegularizedMinimizer
from tacit.queries.moments import PointSum, SecondMoment
from tacit.queries.noise import (
    GaussianNoise,
    LaplaceNoise,
    Noise,
    NoisySum,
    SphereNoise,
    split_budget,
)
from tacit.queries.selection import Quantile, Selection
from tacit.queries.session import (
    AtMost,
    CoveredBy,
    Exactly,
    GaussianSum,
    OneRecordEach,
    PoissonSample,
    Session,
    Slot,
    composed,
)

__all__ = [
    "AtMost",
    "ClassCounts",
    "Count",
    "CoveredBy",
    "Exactly",
    "Facts",
    "GaussianNoise",
    "GaussianSum",
    "Gradient",
    "Held",
    "HessianTrace",
    "LaplaceNoise",
    "Noise",
    "NoisySum",
    "OneRecordEach",
    "PerturbedMinimizer",
    "PointSum",
    "PoissonSample",
    "Private",
    "Quantile",
    "Query",
    "RegularizedMinimizer",
    "SecondMoment",
    "Selection",
    "Sensitivity",
    "Session",
    "Slot",
    "SphereNoise",
    "Statistic",
    "composed",
    "split_budget",
]
