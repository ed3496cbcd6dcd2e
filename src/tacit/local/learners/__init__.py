"""Define learners: pure state machines that see only sanitised reports."""

from tacit.local.learners.banco import Banco, PosterBanco
from tacit.local.learners.base import Learner
from tacit.local.learners.gradient_descent import GradientDescent
from tacit.local.learners.serialization import state_from_bytes, state_to_bytes

__all__ = [
    "Banco",
    "GradientDescent",
    "Learner",
    "PosterBanco",
    "state_from_bytes",
    "state_to_bytes",
]
