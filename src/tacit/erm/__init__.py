"""Private empirical risk minimisation: problems, mechanisms and a planner."""

from tacit.erm.constraints import Box, FeasibleSet, L1Ball, L2Ball, Simplex, WholeSpace
from tacit.erm.mechanisms.balanced import Balanced, balanced_exactly
from tacit.erm.mechanisms.exponential import ExponentialInABall, PublicCandidates, QuantileOnALine
from tacit.erm.mechanisms.noisy_gradient import NoisePace, NoisyGradient
from tacit.erm.mechanisms.noisy_sgd import NoisySGD
from tacit.erm.mechanisms.objective_perturbation.mechanism import ObjectivePerturbation
from tacit.erm.mechanisms.output_perturbation import OutputPerturbation
from tacit.erm.mechanisms.sufficient_statistics import SufficientStatistics
from tacit.erm.minimization import Result, choose_plan, minimize, minimize_unread
from tacit.erm.objective import Objective
from tacit.erm.plan import CannotSolve, Mechanism, Plan, Problem
from tacit.erm.preconditioning import SecondMoment
from tacit.erm.solvers import NotCertified

__all__ = [
    "Balanced",
    "Box",
    "CannotSolve",
    "ExponentialInABall",
    "FeasibleSet",
    "L1Ball",
    "L2Ball",
    "Mechanism",
    "NoisePace",
    "NoisyGradient",
    "NoisySGD",
    "NotCertified",
    "Objective",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Plan",
    "Problem",
    "PublicCandidates",
    "QuantileOnALine",
    "Result",
    "SecondMoment",
    "Simplex",
    "SufficientStatistics",
    "WholeSpace",
    "balanced_exactly",
    "choose_plan",
    "minimize",
    "minimize_unread",
]
