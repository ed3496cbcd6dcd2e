"""Every private question: what is computed, its sensitivity, its noise, and what asking costs."""

from tacit.queries.base import Facts, Held, Private, Query, Sensitivity, Statistic
from tacit.queries.clipped_sum import ClippedSum, ClippedSumAndCount
from tacit.queries.column_moments import ColumnMoments
from tacit.queries.correlated_sum import CorrelatedStep, OrderedRun, OrderedSum
from tacit.queries.count import ClassCounts, Count
from tacit.queries.frequent_values import FrequentValues
from tacit.queries.gradient import Gradient, Measured, PreconditionedGradient
from tacit.queries.hessian import (
    ClippedNorms,
    HessianTrace,
    OuterProducts,
    SecondDerivatives,
    SquaredSlopes,
)
from tacit.queries.minimizer import (
    GaussianObjectiveNoise,
    ObjectiveNoise,
    PerturbedMinimizer,
    RegularizedMinimizer,
    SphereObjectiveNoise,
)
from tacit.queries.noisy_sum import GaussianNoise, LaplaceNoise, Noise, NoisySum, SphereNoise
from tacit.queries.point_sum import PointSum
from tacit.queries.quantile import Quantile
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
from tacit.queries.selection import CandidateRisks, RiskInBall, Selection, selection_event
from tacit.queries.session import Session
from tacit.queries.split_budget import split_budget
from tacit.queries.views import OneRecordEach, PoissonSample, Reweighted, View
from tacit.queries.votes import (
    GaussianWinners,
    GreatestCounts,
    LaplaceWinners,
    Leads,
    Majorities,
    PredictionSum,
    SharedVotes,
    Thresholds,
    Votes,
)
from tacit.queries.votes_cost import SmoothValue, VotesCost

__all__ = [
    "AtMost",
    "CandidateRisks",
    "ClassCounts",
    "ClippedNorms",
    "ClippedSum",
    "ClippedSumAndCount",
    "ColumnMoments",
    "CorrelatedStep",
    "Count",
    "CoveredBy",
    "Exactly",
    "ExchangedFor",
    "Facts",
    "FrequentValues",
    "GaussianNoise",
    "GaussianObjectiveNoise",
    "GaussianSum",
    "GaussianWinners",
    "Gradient",
    "GreatestCounts",
    "Held",
    "HessianTrace",
    "LabelMoment",
    "LaplaceNoise",
    "LaplaceWinners",
    "Leads",
    "LeastEigenvalue",
    "Majorities",
    "Measured",
    "Noise",
    "NoisySum",
    "ObjectiveNoise",
    "OneRecordEach",
    "OrderedRun",
    "OrderedSum",
    "OuterProducts",
    "PerturbedMinimizer",
    "PointSum",
    "PoissonSample",
    "PreconditionedGradient",
    "PredictionSum",
    "Private",
    "Quantile",
    "Query",
    "RegularizedMinimizer",
    "Reweighted",
    "RiskInBall",
    "SecondDerivatives",
    "SecondMoment",
    "Selection",
    "Sensitivity",
    "Sequence",
    "Session",
    "SharedVotes",
    "Slot",
    "SmoothValue",
    "SphereNoise",
    "SphereObjectiveNoise",
    "SquaredSlopes",
    "Statistic",
    "Thresholds",
    "View",
    "Votes",
    "VotesCost",
    "composed",
    "exchanged",
    "selection_event",
    "split_budget",
]
