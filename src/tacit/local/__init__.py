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
    GradientDescent,
    Learner,
    PosterBanco,
    state_from_bytes,
    state_to_bytes,
)
from tacit.local.protocol import Agreement, Question, Reason, Rejected, Report
from tacit.local.sanitizers import (
    GaussianNoise,
    HalfSphere,
    PrivUnit,
    Sanitizer,
    SphereNoise,
    least_noise,
)
from tacit.local.sanitizers.base import Tail
from tacit.local.server import Server
from tacit.local.subgradients import Absolute, Distance, Hinge, Huber, Logistic, SumOfDistances

__all__ = [
    "Absolute",
    "Agreement",
    "AlreadyAnswered",
    "Banco",
    "Client",
    "Distance",
    "GaussianNoise",
    "GradientDescent",
    "HalfSphere",
    "Hinge",
    "Huber",
    "Learner",
    "LocalGeometricMedian",
    "LocalLinearSVC",
    "LocalLogisticRegression",
    "LocalMedian",
    "LocalRegressor",
    "Logistic",
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
    "least_noise",
    "state_from_bytes",
    "state_to_bytes",
]
