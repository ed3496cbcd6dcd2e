"""Define learners: pure state machines that see only sanitised reports."""

from tacit.local.learners.banco import Banco, BancoState, PosterBanco
from tacit.local.learners.base import Learner
from tacit.local.learners.gradient_descent import GradientDescent, GradientDescentState
from tacit.local.learners.serialization import learner_from_dict, state_from_bytes, state_to_bytes

__all__ = [
    "Banco",
    "BancoState",
    "GradientDescent",
    "GradientDescentState",
    "Learner",
    "PosterBanco",
    "learner_from_dict",
    "state_from_bytes",
    "state_to_bytes",
]
