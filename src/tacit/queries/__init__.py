"""Every private question: what is computed, its sensitivity, its noise, and what asking costs."""

from tacit.queries.base import Facts, Held, Query, Sensitivity, Statistic, View
from tacit.queries.count import Count
from tacit.queries.noisy_sum import GaussianNoise, Noise, NoisySum, SphereNoise
from tacit.queries.point_sum import PointSum
from tacit.queries.second_moment import LabelMoment, LeastEigenvalue, SecondMoment
from tacit.queries.session import AtMost, Exactly, Session, Slot, composed
from tacit.queries.split_budget import split_budget

__all__ = [
    "AtMost",
    "Count",
    "Exactly",
    "Facts",
    "GaussianNoise",
    "Held",
    "LabelMoment",
    "LeastEigenvalue",
    "Noise",
    "NoisySum",
    "PointSum",
    "Query",
    "SecondMoment",
    "Sensitivity",
    "Session",
    "Slot",
    "SphereNoise",
    "Statistic",
    "View",
    "composed",
    "split_budget",
]
