"""Mechanisms of private ERM, one file each. A new mechanism is a file and a line here.

Its names, its rows in the documentation and its tests follow from the line: run `make registry`.
"""

from collections.abc import Mapping

from tacit.erm.plan import Mechanism

# isort: off
# "auto" tries mechanisms in this order, and prefers an earlier one: it needs fewer assumptions.
from tacit.erm.mechanisms.objective_perturbation.mechanism import (
    ObjectivePerturbation as ObjectivePerturbation,
)
from tacit.erm.mechanisms.noisy_gradient import NoisyGradient as NoisyGradient
from tacit.erm.mechanisms.output_perturbation import OutputPerturbation as OutputPerturbation
from tacit.erm.mechanisms.sufficient_statistics import SufficientStatistics as SufficientStatistics
from tacit.erm.mechanisms.noisy_sgd import NoisySGD as NoisySGD
from tacit.erm.mechanisms.exponential import QuantileOnALine as QuantileOnALine
from tacit.erm.mechanisms.exponential import PublicCandidates as PublicCandidates
from tacit.erm.mechanisms.exponential import ExponentialInABall as ExponentialInABall
# isort: on

_NAMED = tuple(vars().values())
_FOUND = [
    kind
    for kind in _NAMED
    if isinstance(kind, type) and issubclass(kind, Mechanism) and kind is not Mechanism
]
# Every mechanism by its stored word in saved models.
KINDS: Mapping[str, type[Mechanism]] = {kind.key or kind.name: kind for kind in _FOUND}
# Those that need no more than a name; the names that "auto" tries, in order.
MECHANISMS: dict[str, Mechanism] = {kind.name: kind() for kind in _FOUND if kind.is_named}
CANDIDATES = tuple(name for name, mechanism in MECHANISMS.items() if mechanism.is_candidate)

__all__ = sorted(kind.__name__ for kind in _FOUND)
