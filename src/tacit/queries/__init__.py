"""Every private question: what is computed, its sensitivity, its noise, and what asking costs."""

from tacit.queries.base import Facts, Held, Private, Query, Sensitivity, Statistic, plain_facts
from tacit.queries.clipped_sum import ClippedSum, ClippedSumAndCount
from tacit.queries.column_moments import ColumnMoments
from tacit.queries.correlated_sum import CorrelatedStep, OrderedRun, OrderedSum
from tacit.queries.count import ClassCounts, Count
from tacit.queries.evaluation import (
    Answered,
    CandidateMistakes,
    MistakeBalance,
    NumberSums,
    SeveralClassCells,
    SquaredResiduals,
    TwoClassCells,
    WrongAnswers,
)
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
    BestOfTries,
    CoveredBy,
    Exactly,
    ExchangedFor,
    GaussianSum,
    Sequence,
    Slot,
    best_of,
    composed,
    exchanged,
)
from tacit.queries.second_moment import LabelMoment, LeastEigenvalue, SecondMoment
from tacit.queries.selection import CandidateRisks, RiskInBall, Selection, selection_event
from tacit.queries.session import ChildPlan, InParts, Questions, Session
from tacit.queries.split_budget import split_budget
from tacit.queries.views import (
    DisjointParts,
    OneRecordEach,
    PoissonSample,
    Reweighted,
    Split,
    View,
)
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
    "Answered",
    "AtMost",
    "BestOfTries",
    "CandidateMistakes",
    "CandidateRisks",
    "ChildPlan",
    "ClassCounts",
    "ClippedNorms",
    "ClippedSum",
    "ClippedSumAndCount",
    "ColumnMoments",
    "CorrelatedStep",
    "Count",
    "CoveredBy",
    "DisjointParts",
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
    "InParts",
    "LabelMoment",
    "LaplaceNoise",
    "LaplaceWinners",
    "Leads",
    "LeastEigenvalue",
    "Majorities",
    "Measured",
    "MistakeBalance",
    "Noise",
    "NoisySum",
    "NumberSums",
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
    "Questions",
    "RegularizedMinimizer",
    "Reweighted",
    "RiskInBall",
    "SecondDerivatives",
    "SecondMoment",
    "Selection",
    "Sensitivity",
    "Sequence",
    "Session",
    "SeveralClassCells",
    "SharedVotes",
    "Slot",
    "SmoothValue",
    "SphereNoise",
    "SphereObjectiveNoise",
    "Split",
    "SquaredResiduals",
    "SquaredSlopes",
    "Statistic",
    "Thresholds",
    "TwoClassCells",
    "View",
    "Votes",
    "VotesCost",
    "WrongAnswers",
    "best_of",
    "composed",
    "exchanged",
    "plain_facts",
    "selection_event",
    "split_budget",
]
