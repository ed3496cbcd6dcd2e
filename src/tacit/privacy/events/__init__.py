"""Events: what was released and what it cost. A new event is one file and one line here."""

from tacit.privacy.events.base import Event, event_from_dict
from tacit.privacy.events.composed import Composed, NonPrivate, Repeated, common_relation
from tacit.privacy.events.gaussian import Gaussian, SampledGaussian
from tacit.privacy.events.log_cosh import LogCoshObjective
from tacit.privacy.events.objective import (
    LinearModelObjective,
    LogisticObjective,
    MonotoneObjective,
    PureObjective,
    SoftmaxObjective,
)
from tacit.privacy.events.pure import ExponentialMechanism, PureEpsilon, ZeroConcentrated

__all__ = [
    "Composed",
    "Event",
    "ExponentialMechanism",
    "Gaussian",
    "LinearModelObjective",
    "LogCoshObjective",
    "LogisticObjective",
    "MonotoneObjective",
    "NonPrivate",
    "PureEpsilon",
    "PureObjective",
    "Repeated",
    "SampledGaussian",
    "SoftmaxObjective",
    "ZeroConcentrated",
    "common_relation",
    "event_from_dict",
]
