"""Private empirical risk minimisation: problems, mechanisms and a planner."""

from tacit.erm import mechanisms
from tacit.erm.constraints import Box, FeasibleSet, L1Ball, L2Ball, Simplex, WholeSpace

# registry: mechanisms
from tacit.erm.mechanisms import ExponentialInABall as ExponentialInABall
from tacit.erm.mechanisms import NoisyGradient as NoisyGradient
from tacit.erm.mechanisms import NoisySGD as NoisySGD
from tacit.erm.mechanisms import ObjectivePerturbation as ObjectivePerturbation
from tacit.erm.mechanisms import OutputPerturbation as OutputPerturbation
from tacit.erm.mechanisms import PublicCandidates as PublicCandidates
from tacit.erm.mechanisms import QuantileOnALine as QuantileOnALine
from tacit.erm.mechanisms import SufficientStatistics as SufficientStatistics

# end
from tacit.erm.mechanisms.balanced import Balanced
from tacit.erm.mechanisms.noisy_gradient import NoisePace
from tacit.erm.minimization import Result, choose_plan, minimize
from tacit.erm.objective import Objective
from tacit.erm.plan import CannotSolve, Mechanism, Plan, Problem
from tacit.erm.preconditioning import SecondMoment
from tacit.erm.solvers import NotCertified

__all__ = [
    "Balanced",
    "Box",
    "CannotSolve",
    "FeasibleSet",
    "L1Ball",
    "L2Ball",
    "Mechanism",
    "NoisePace",
    "NotCertified",
    "Objective",
    "Plan",
    "Problem",
    "Result",
    "SecondMoment",
    "Simplex",
    "WholeSpace",
    "choose_plan",
    "minimize",
]
__all__ += mechanisms.__all__
