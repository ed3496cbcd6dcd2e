"""Define budgets, events and guarantees, and compose their costs. This package never sees data."""

from tacit.privacy.accountant import Accountant, AnyAccountant, BudgetExceeded
from tacit.privacy.booking import Booked, Booking
from tacit.privacy.budget import Budget
from tacit.privacy.calibration import BudgetUnreachable, calibrate
from tacit.privacy.conversion import replace_from_add_remove
from tacit.privacy.events import (
    BestOf,
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    LinearModelObjective,
    LogCoshObjective,
    LogisticObjective,
    MonotoneObjective,
    NoisyMajority,
    NonPrivate,
    OneOf,
    Parallel,
    PureEpsilon,
    PureObjective,
    RareLeak,
    Repeated,
    SampledGaussian,
    SmoothGaussian,
    SoftmaxObjective,
    ZeroConcentrated,
    event_from_dict,
)
from tacit.privacy.filters import (
    Additive,
    Filter,
    GaussianSum,
    RenyiSum,
    SumOfEpsilons,
    SumOrGaussian,
)
from tacit.privacy.guarantee import Curve, Guarantee
from tacit.privacy.odometer import Odometer
from tacit.privacy.relation import Relation

__all__ = [
    "Accountant",
    "Additive",
    "AnyAccountant",
    "BestOf",
    "Booked",
    "Booking",
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
    "NoisyMajority",
    "NonPrivate",
    "Odometer",
    "OneOf",
    "Parallel",
    "PureEpsilon",
    "PureObjective",
    "RareLeak",
    "Relation",
    "RenyiSum",
    "Repeated",
    "SampledGaussian",
    "SmoothGaussian",
    "SoftmaxObjective",
    "SumOfEpsilons",
    "SumOrGaussian",
    "ZeroConcentrated",
    "calibrate",
    "event_from_dict",
    "replace_from_add_remove",
]
