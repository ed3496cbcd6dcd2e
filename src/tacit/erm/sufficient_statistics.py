"""Least squares from noisy moments: AdaSSP with joint Gaussian accounting."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.objective import moved, needs_fine_sums
from tacit.erm.plan import CannotSolve, Plan, Problem, receipt
from tacit.erm.sets import WholeSpace
from tacit.noise import Bounded, Norm, Release, Source, gaussian, secure_source
from tacit.privacy import Budget, Gaussian, Relation, Repeated, calibrate
from tacit.records import Block, RecordSource

Array = npt.NDArray[np.float64]

_FLOAT_SLACK = 1e-4
_FAILURE = 0.05  # rho: how often the chosen ridge may be too small for the noise


@dataclass(frozen=True)
class SufficientStatistics:
    """Release X'X, X'y and the least eigenvalue with noise, then solve (Wang 2018, Algorithm 2).

    The three releases are accounted for together: each gets the multiplier sqrt(3) z where one
    alone would need z. Sensitivities for R the row norm and Y the label bound:

        X'X (Frobenius)   R^2, or sqrt(2) R^2 under REPLACE
        X'y               R Y, or 2 R Y
        least eigenvalue  R^2 in either case (Weyl)

    Symmetric noise (G + G')/2 is calibrated to the Frobenius norm, because the upper triangle
    with off-diagonal entries scaled by sqrt(2) is an isometric copy of a symmetric matrix.

    Examples
    --------
    >>> from tacit.erm import Objective, Problem, SufficientStatistics
    >>> from tacit.erm.losses import SquaredLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds
    >>> bounds = Bounds(row_norm=1.0, label_range=(-1.0, 1.0))
    >>> problem = Problem(Objective(SquaredLoss(), bounds), n_features=5)
    >>> plan = SufficientStatistics().plan(problem, Budget(1.0, 1e-6))
    >>> round(plan.settings["noise_multiplier"], 2)
    7.32
    """

    name = "sufficient_statistics"

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Calibrate three equal releases."""
        objective = problem.objective
        if not objective.loss.is_square:
            raise CannotSolve(
                f"sufficient statistics exist for SquaredLoss, not {type(objective.loss).__name__}."
            )
        if not isinstance(objective.feasible, WholeSpace):
            raise CannotSolve("sufficient statistics solve without a constraint only.")
        if budget.is_pure:
            raise CannotSolve("sufficient statistics use Gaussian noise; set delta > 0.")
        if not math.isfinite(objective.bounds.label_bound):
            raise CannotSolve("declare label_range: labels are clipped to it.")
        event = calibrate(lambda z: Repeated(Gaussian(z, budget.relation), 3), budget)
        multiplier = event.event.noise_multiplier  # type: ignore[attr-defined]
        size = objective.row_norm * multiplier * moved(budget.relation)
        # noise on the gradient at w: on X'y, and on X'X times w
        squared = (
            problem.dimension
            * size**2
            * (objective.bounds.label_bound**2 + (objective.row_norm * problem.typical_norm) ** 2)
        )
        ridge = objective.row_norm**2 * multiplier * math.sqrt(problem.dimension)
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=event,
            excess_risk=problem.risk_of_noise(squared, ridge),
            reason="one pass, a closed form; best when n is large and d is small",
            settings={"noise_multiplier": multiplier},
        )

    def solve(self, plan: Plan, records: RecordSource, source: Source | None) -> Release[Array]:
        """Release three statistics and solve a ridge regression."""
        source = secure_source() if source is None else source
        objective, relation = plan.problem.objective, plan.budget.relation
        multiplier = plan.settings["noise_multiplier"]
        size, label, d = objective.row_norm, objective.bounds.label_bound, plan.problem.dimension

        def moments(block: Block) -> tuple[Array, Array]:
            labels = np.clip(objective.loss.labels(block), -label, label)
            return block.gram(np.ones(block.n_rows)), block.weighted_sum(labels)

        fine = needs_fine_sums(records, _FLOAT_SLACK)
        gram, cross = records.sum(moments, fine=fine)
        slack = 1 + _FLOAT_SLACK
        two = math.sqrt(2.0) if relation is Relation.REPLACE else 1.0
        spectrum = np.linalg.eigvalsh(gram)
        least = Bounded(max(float(spectrum[0]), 0.0), size**2 * slack, Norm.L2, relation)
        packed = Bounded(_pack(gram), two * size**2 * slack, Norm.L2, relation)
        moment = Bounded(cross, moved(relation) * size * label * slack, Norm.L2, relation)
        releases = [gaussian(b, multiplier, source) for b in (least, packed, moment)]
        floor, noisy_gram, noisy_cross = (np.asarray(r.value) for r in releases)
        std = multiplier * size**2
        # a lower confidence bound on the least eigenvalue, and the ridge that covers the noise
        sure = max(float(floor) - 1.645 * std, 0.0)
        ridge = max(noise_norm(std * two, d) - sure, 0.0) + (objective.regularization or 0.0)
        weights = np.linalg.solve(
            _unpack(noisy_gram, d) + max(ridge, 1e-9 * std) * np.eye(d), noisy_cross
        )
        return Release(weights, receipt([r.event for r in releases], plan.event))


def noise_norm(std: float, dimension: int) -> float:
    """Return what the norm of symmetric noise of this std exceeds with probability rho at most."""
    return std * math.sqrt(dimension * math.log(2 * dimension * dimension / _FAILURE))


def _pack(matrix: Array) -> Array:
    """Return a symmetric matrix as a vector of the same norm."""
    upper = np.triu_indices(matrix.shape[0], 1)
    return np.concatenate([np.diag(matrix), math.sqrt(2.0) * matrix[upper]])


def _unpack(vector: Array, d: int) -> Array:
    matrix = np.diag(vector[:d])
    upper = np.triu_indices(d, 1)
    matrix[upper] = vector[d:] / math.sqrt(2.0)
    return matrix + np.triu(matrix, 1).T
