"""Private empirical risk minimisation: a problem, five places for the noise, a planner."""

from tacit.erm.balanced import Balanced, balanced_exactly
from tacit.erm.ball import ExponentialInABall
from tacit.erm.course import NoisePace
from tacit.erm.engine import Result, minimize, minimize_unread
from tacit.erm.exponential_mechanism import PublicCandidates, QuantileOnALine
from tacit.erm.minimizer import NotCertified
from tacit.erm.noisy_gradient import NoisyGradient
from tacit.erm.noisy_sgd import NoisySGD
from tacit.erm.objective import Objective
from tacit.erm.objective_perturbation import ObjectivePerturbation
from tacit.erm.output_perturbation import OutputPerturbation
from tacit.erm.plan import CannotSolve, Mechanism, Plan, Problem
from tacit.erm.planner import choose_plan
from tacit.erm.preconditioner import SecondMoment
from tacit.erm.sets import Box, FeasibleSet, L1Ball, L2Ball, Simplex, WholeSpace
from tacit.erm.sufficient_statistics import SufficientStatistics

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
