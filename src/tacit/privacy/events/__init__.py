"""Define events: records of a release and its cost. A new event is one file and one line here."""

from tacit.privacy.events.base import Event, event_from_dict
from tacit.privacy.events.best_of import BestOf
from tacit.privacy.events.composed import Composed, NonPrivate, OneOf, Parallel, RareLeak, Repeated
from tacit.privacy.events.gaussian import Gaussian, SampledGaussian, SmoothGaussian
from tacit.privacy.events.majority import NoisyMajority
from tacit.privacy.events.objective import (
    LinearModelObjective,
    LogCoshObjective,
    LogisticObjective,
    MonotoneObjective,
    PureObjective,
    SoftmaxObjective,
)
from tacit.privacy.events.pure import ExponentialMechanism, PureEpsilon, ZeroConcentrated

__all__ = [
    "BestOf",
    "Composed",
    "Event",
    "ExponentialMechanism",
    "Gaussian",
    "LinearModelObjective",
    "LogCoshObjective",
    "LogisticObjective",
    "MonotoneObjective",
    "NoisyMajority",
    "NonPrivate",
    "OneOf",
    "Parallel",
    "PureEpsilon",
    "PureObjective",
    "RareLeak",
    "Repeated",
    "SampledGaussian",
    "SmoothGaussian",
    "SoftmaxObjective",
    "ZeroConcentrated",
    "event_from_dict",
]
