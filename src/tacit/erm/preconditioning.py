"""Precondition gradient descent with a private second moment of the rows.

Let M be the second moment of the rows, released with symmetric noise of norm about l = lam0 / 2:

    A = sqrt(P),   P = V diag(lam0 / (max(lam - l, 0) + lam0)) V',   M + noise = V lam V'

In the coordinates A x all directions above the noise have about equal curvature, so that steps are
long. Rows are short: their mean square is trace(P M) / n <= d lam0 / n. Records' gradients are
clipped to that norm in these coordinates, and noise is added in them. In the original coordinates
the noise is then large in directions with much information and small in those with little. The
released model keeps its meaning: scores are <w, x> with w = A v (docs/proofs/noisy_gradient.md,
section 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tacit import queries
from tacit.arrays import Array
from tacit.erm.constraints import WholeSpace
from tacit.erm.plan import CannotSolve, Problem
from tacit.privacy import Budget
from tacit.queries import GaussianNoise, NoisySum, OneRecordEach, Session
from tacit.queries.gradient import FLOAT_SLACK, rounds_too_much
from tacit.queries.moments import unpack
from tacit.queries.noise import split_gaussian
from tacit.records.block import Coordinates, fine_rows, float_error
from tacit.records.grouped import MOST_COUNTED

# The matrix takes 8 d^2 bytes, its eigenvectors 20 d^3 operations.
_MOST_COLUMNS = 4096
# Require head-room for twice the noisy count, so that feasibility need not be rechecked after the
# moment is released.
_AT_MOST = 2.0


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """A change of coordinates derived from a noisy second moment.

    Parameters
    ----------
    coordinates
        The matrix A.
    row_norm
        The root mean square of the rows' norm in these coordinates; gradients are clipped to it.
    moment
        lam0, an upper bound on the second moment in every direction of these coordinates.
    shrinks
        The least eigenvalue of A: ||x|| <= ||A x|| / shrinks for every vector x.
    """

    coordinates: Coordinates
    row_norm: float
    moment: float
    shrinks: float

    def problem(self, problem: Problem) -> Problem:
        """Return the problem in these coordinates, in which the intercept is not a coordinate."""
        bounds = problem.objective.bounds
        preconditioned = replace(bounds, row_norm=self.row_norm, intercept=0.0)
        width = problem.n_features + (1 if bounds.intercept else 0)
        objective = replace(problem.objective, bounds=preconditioned)
        return replace(problem, objective=objective, n_features=width)

    @cached_property
    def _constant(self) -> Array:
        """The unit direction of a constant model, A^-1 e, with the intercept's coordinate last."""
        last = np.zeros(len(self.coordinates.matrix))
        last[-1] = 1.0
        along = np.linalg.solve(self.coordinates.matrix, last)
        return np.asarray(along / np.linalg.norm(along), dtype=np.float64)

    def without_constant(self, v: Array, intercept: float) -> Array:
        """Return v with the direction of the constant model projected out."""
        if not intercept:
            return v
        rest: Array = v - np.multiply.outer(self._constant, self._constant @ v)
        return rest


def _sum_error(width: int, n_records: float) -> float:
    """Return the float error of two neighbours' sums together, in units of one gradient."""
    most = math.ceil(_AT_MOST * n_records)
    return 2 * float_error(most, fine_rows(width, most), fine=True)


@dataclass(frozen=True)
class SecondMoment:
    """Ask privately for the second moment of the rows, as a preconditioner of `NoisyGradient`.

    Use it for tables with nearly dependent columns or columns of very different size. The moment is
    queried only if its noise is below the moment of isotropic rows: 2 sqrt(2 d) z d <= n, with z
    the noise multiplier. Public facts and the noisy count decide. Otherwise the steps get the
    share.

    Parameters
    ----------
    share
        Share of the budget, of mu^2.
    always
        Whether to ask for any number of records, for rows that are known to be anisotropic.

    Examples
    --------
    >>> from tacit.erm import NoisyGradient, Objective, Problem, SecondMoment
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds
    >>> problem = Problem(Objective(LogisticLoss(), Bounds(n_records=30_000)), n_features=20)
    >>> NoisyGradient(preconditioner=SecondMoment()).plan(problem, Budget(1.0, 1e-5)).event
    Gaussian(noise_multiplier=3.73..., relation=<Relation.ADD_REMOVE: 'add_remove'>)
    >>> SecondMoment().pays(problem, Budget(1.0, 1e-5), 1_000)
    False
    """

    share: float = 0.09
    always: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise ValueError(
                f"share must be between 0 and 1, got {self.share!r}; it is the part of the budget "
                "for the second moment, 0.09 say."
            )

    def noise_multiplier(self, budget: Budget) -> float:
        """Return the noise multiplier of the second moment: mu_moment^2 = share mu^2."""
        return split_gaussian(budget, {"moment": self.share})["moment"].multiplier

    def check(self, problem: Problem) -> None:
        """Refuse a problem whose steps cannot be preconditioned."""
        objective = problem.objective
        if not objective.is_linear_model:
            raise CannotSolve("a preconditioner needs a linear model; leave it out.")
        if not isinstance(objective.feasible, WholeSpace):
            raise CannotSolve(
                "SecondMoment cannot be combined with a constraint: the projection is not defined "
                "in preconditioned coordinates; leave the preconditioner or the constraint out."
            )
        if problem.even_ridge:
            raise CannotSolve(
                "standard errors are derived for steps without a preconditioner; leave the "
                "preconditioner out, or set inference=0."
            )
        if problem.n_features > _MOST_COLUMNS:
            raise CannotSolve(
                f"a second moment of {problem.n_features:,} columns takes too long, the limit is "
                f"{_MOST_COLUMNS:,}; leave the preconditioner out, or project the rows."
            )

    def pays(
        self, problem: Problem, budget: Budget, n_records: float, below_noise: float = 1.0
    ) -> bool:
        """Return whether the second moment of isotropic rows exceeds its noise.

        ``below_noise`` allows a moment that many times below its noise. Returns False if there are
        so many records that float error makes sums in preconditioned coordinates infeasible.
        """
        n = n_records / (MOST_COUNTED if budget.relation.by_person else 1)
        width = problem.n_features + (1 if problem.objective.bounds.intercept else 0)
        lam0, most = self._least(problem, budget, width), n * problem.objective.row_norm**2
        stretch = math.sqrt(most / lam0 + 2)  # upper bound on 1 / (least eigenvalue of A)
        if rounds_too_much(width, n_records, math.sqrt(width) * stretch):
            return False
        if _sum_error(width, n_records) > FLOAT_SLACK / stretch / 2:
            return False
        return (
            self.always or lam0 * width <= below_noise * most
        )  # isotropic rows have the moment n R^2 / d in every direction

    def _least(self, problem: Problem, budget: Budget, width: int) -> float:
        """Return lam0 = 2 s sqrt(2 d), twice the norm of the noise."""
        stated = queries.SecondMoment().sensitivity(problem.facts(budget.relation))
        return 2 * self.noise_multiplier(budget) * stated.value * math.sqrt(2 * width)

    def ask(
        self, session: Session, slot: str, problem: Problem, budget: Budget, n_records: float
    ) -> Preconditioner:
        """Release the second moment and derive the preconditioner from it."""
        query = NoisySum(queries.SecondMoment(), GaussianNoise(self.noise_multiplier(budget)))
        noisy = np.asarray(session.on(OneRecordEach()).ask(query, slot))
        found, vectors = np.linalg.eigh(unpack(noisy, session.facts.n_coordinates))
        lam0 = self._least(problem, budget, len(found))
        # Directions that may be noise alone (at most lam0 / 2) keep the factor 1.
        directions = lam0 / (np.maximum(found - lam0 / 2, 0.0) + lam0)
        # trace(P M) / n, but at least lam0 / n (one direction) and at most R^2 (the longest row).
        mean = max(float(directions @ found), lam0) / n_records
        matrix = (vectors * np.sqrt(directions)) @ vectors.T
        return Preconditioner(
            Coordinates((matrix + matrix.T) / 2),
            math.sqrt(min(mean, problem.objective.row_norm**2)),
            lam0,
            math.sqrt(float(directions.min())),
        )
