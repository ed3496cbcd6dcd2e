"""Promises and how they add up. Nothing here ever sees data."""

from tacit.privacy.accountant import Accountant, AnyAccountant, BudgetExceeded
from tacit.privacy.budget import Budget
from tacit.privacy.calibration import BudgetUnreachable, calibrate
from tacit.privacy.conversion import replace_from_add_remove
from tacit.privacy.events import (
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    LinearModelObjective,
    LogCoshObjective,
    LogisticObjective,
    MonotoneObjective,
    NonPrivate,
    PureEpsilon,
    PureObjective,
    Repeated,
    SampledGaussian,
    SoftmaxObjective,
    ZeroConcentrated,
    event_from_dict,
)
from tacit.privacy.filters import Filter, GaussianSum, RenyiSum, SumOfEpsilons
from tacit.privacy.guarantee import Curve, Guarantee
from tacit.privacy.relation import Relation

__all__ = [
    "Accountant",
    "AnyAccountant",
    "Budget",
    "BudgetExceeded",
    "BudgetUnreachable",
    "Composed",
    "Curve",
    "Event",
    "ExponentialMechanism",
    "Filter",
    "Gaussian",
    "GaussianSum",
    "Guarantee",
    "LinearModelObjective",
    "LogCoshObjective",
    "LogisticObjective",
    "MonotoneObjective",
    "NonPrivate",
    "PureEpsilon",
    "PureObjective",
    "Relation",
    "RenyiSum",
    "Repeated",
    "SampledGaussian",
    "SoftmaxObjective",
    "SumOfEpsilons",
    "ZeroConcentrated",
    "calibrate",
    "event_from_dict",
    "replace_from_add_remove",
]
