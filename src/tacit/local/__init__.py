"""Learn under local privacy: devices sanitise their answers, and the server learns from them."""

from tacit.local.client import AlreadyAnswered, Client
from tacit.local.estimators import (
    LocalGeometricMedian,
    LocalLinearSVC,
    LocalLogisticRegression,
    LocalMedian,
    LocalRegressor,
)
from tacit.local.learners import (
    Banco,
    BancoState,
    GradientDescent,
    GradientDescentState,
    Learner,
    PosterBanco,
    learner_from_dict,
    state_from_bytes,
    state_to_bytes,
)
from tacit.local.protocol import Agreement, Question, Reason, Rejected, Report
from tacit.local.sanitizers import (
    GaussianNoise,
    HalfSphere,
    NoNoise,
    PrivUnit,
    Sanitizer,
    SphereNoise,
    least_noise,
    sanitizer_from_dict,
)
from tacit.local.sanitizers.base import Tail
from tacit.local.server import Accepted, Server
from tacit.local.subgradients import (
    Absolute,
    Distance,
    Hinge,
    Huber,
    LocalLoss,
    Logistic,
    SumOfDistances,
)

__all__ = [
    "Absolute",
    "Accepted",
    "Agreement",
    "AlreadyAnswered",
    "Banco",
    "BancoState",
    "Client",
    "Distance",
    "GaussianNoise",
    "GradientDescent",
    "GradientDescentState",
    "HalfSphere",
    "Hinge",
    "Huber",
    "Learner",
    "LocalGeometricMedian",
    "LocalLinearSVC",
    "LocalLogisticRegression",
    "LocalLoss",
    "LocalMedian",
    "LocalRegressor",
    "Logistic",
    "NoNoise",
    "PosterBanco",
    "PrivUnit",
    "Question",
    "Reason",
    "Rejected",
    "Report",
    "Sanitizer",
    "Server",
    "SphereNoise",
    "SumOfDistances",
    "Tail",
    "learner_from_dict",
    "least_noise",
    "sanitizer_from_dict",
    "state_from_bytes",
    "state_to_bytes",
]
