"""Every private question: what is computed, its sensitivity, its noise, and what asking costs."""

from tacit.queries.base import Facts, Held, Private, Query, Sensitivity, Statistic
from tacit.queries.count import ClassCounts, Count
from tacit.queries.noisy_sum import GaussianNoise, LaplaceNoise, Noise, NoisySum, SphereNoise
from tacit.queries.point_sum import PointSum
from tacit.queries.rules import (
    AtMost,
    CoveredBy,
    Exactly,
    ExchangedFor,
    GaussianSum,
    Sequence,
    Slot,
    composed,
    exchanged,
)
from tacit.queries.second_moment import LabelMoment, LeastEigenvalue, SecondMoment
from tacit.queries.session import Session
from tacit.queries.split_budget import split_budget
from tacit.queries.views import OneRecordEach, PoissonSample, Reweighted, View

__all__ = [
    "AtMost",
    "ClassCounts",
    "Count",
    "CoveredBy",
    "Exactly",
    "ExchangedFor",
    "Facts",
    "GaussianNoise",
    "GaussianSum",
    "Held",
    "LabelMoment",
    "LaplaceNoise",
    "LeastEigenvalue",
    "Noise",
    "NoisySum",
    "OneRecordEach",
    "PointSum",
    "PoissonSample",
    "Private",
    "Query",
    "Reweighted",
    "SecondMoment",
    "Sensitivity",
    "Sequence",
    "Session",
    "Slot",
    "SphereNoise",
    "Statistic",
    "View",
    "composed",
    "exchanged",
    "split_budget",
]
