"""How to descend: what follows from a number of records, or from a second moment."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.laws import DescentLaw
from tacit.erm.objective import Objective
from tacit.erm.plan import CannotSolve, Problem
from tacit.erm.preconditioner import Turned

Array = npt.NDArray[np.float64]

_MOST_STEPS = 1000
# A loss with corners is treated, for the step size alone, as rounded over this share of a score.
_CORNER = 0.1


@dataclass(frozen=True)
class Course:
    """How to descend over a number of records, from it and from public facts."""

    problem: Problem
    n_records: float
    n_steps: int
    clip: float
    ridge: float
    noise_std: float  # of the average, in units of a full gradient
    smoothness: float  # of the sum of all losses: n beta, or what a second moment says
    objective: Objective  # as minimised; the problem may be one in other coordinates
    turned: Turned | None = None

    def risk(self) -> float:
        """Predict the excess risk; what T steps leave undone is like a ridge of 4 n beta / T^2."""
        undone = 4 * self.smoothness / self.n_steps**2
        squared = self.problem.dimension * self.noise_std**2
        return self.problem.risk_of_noise(squared, self.ridge + undone)

    def law(self, noise_std: float, step: float) -> DescentLaw:
        """Return how the weights come about, in the records' own coordinates."""
        limit = self.clip / self.objective.reach
        return DescentLaw(self.objective, limit, None, self.ridge, noise_std, self.n_steps, step)

    def pull(self, v: Array) -> Array:
        """Return what the ridge adds to a gradient.

        One that was asked for is on w; one of our own on v, and leaves a constant alone.
        """
        asked = self.objective.regularization is not None or self.problem.even_ridge
        if self.turned is not None:
            if asked:
                return self.ridge * self.turned.coordinates.of(self.turned.coordinates.of(v))
            return self.ridge * self.turned.without_constant(v, self.objective.bounds.intercept)
        pulled = self.ridge * v
        if self.objective.bounds.intercept and not asked:
            pulled[-1] = 0.0
        return pulled


def growing_momentum(t: int) -> float:
    """Return t / (t + 3), Nesterov's for a smooth loss."""
    return t / (t + 3.0)


@dataclass(frozen=True)
class NoisePace:
    """Steps as long as noise allows: all of it together moves a score by so much.

    Where nearly every record's gradient is clipped, the loss's curvature says nothing of how far
    to go. With momentum m and noise of std s in each of T steps, steps of

        scores (1 - m) / (sqrt(T) s)

    move the score of a row of length 1 by noise of std ``scores`` in all, whatever T is: more
    steps cost time, and neither privacy nor noise.

    Parameters
    ----------
    scores
        That standard deviation, before averaging and in the coordinates of the descent.
    momentum
        m, the same in all steps.

    Examples
    --------
    >>> from tacit.erm import NoisePace
    >>> NoisePace(10.0).step(0.5, 100)
    0.2
    """

    scores: float = 5.0
    momentum: float = 0.9

    def __post_init__(self) -> None:
        if not (0.0 < self.scores < math.inf and 0.0 <= self.momentum < 1.0):
            raise ValueError(
                f"scores must be positive and momentum at least 0 and below 1, got {self.scores!r} "
                f"and {self.momentum!r}."
            )

    def step(self, noise_std: float, n_steps: int) -> float:
        """Return how far a step goes along a gradient with so much noise."""
        return round(self.scores * (1 - self.momentum), 12) / (math.sqrt(n_steps) * noise_std)

    def constant(self, t: int) -> float:
        """Return the momentum of every step."""
        return self.momentum


def clip_of(problem: Problem, clip: float | None) -> float:
    """Return the norm to which a record's gradient is scaled down: as asked, or the loss's own."""
    objective = problem.objective
    if clip is not None:
        if not 0.0 < clip < math.inf:
            raise CannotSolve(f"clip must be positive and finite, got {clip!r}.")
        return min(clip, objective.lipschitz)
    slope = objective.loss.default_clip(objective.bounds)
    if slope is None:
        raise CannotSolve(
            f"{type(objective.loss).__name__} has no bounded slope and no label_range is "
            "declared; declare it, or pass NoisyGradient(clip=...)."
        )
    return slope * objective.reach


def smoothness_of(problem: Problem) -> float:
    """Return beta, or for a loss with corners that of its rounded form."""
    objective = problem.objective
    if math.isfinite(objective.smoothness):
        return objective.smoothness
    return objective.lipschitz * objective.reach / (_CORNER * objective.score_unit)


def slope_smoothness(problem: Problem) -> float:
    """Return the same of the loss alone, R^2 left out."""
    return smoothness_of(problem) / problem.objective.squared_reach


def choose_steps(problem: Problem, noise: float, ridge: float, smoothness: float) -> int:
    """Return T = sqrt(4 n beta / lam0), the steps after which noise outweighs progress.

    lam0 = ridge + noise R / (2 unit): the curvature below which the noise hides what is left;
    ``noise`` is given with R in it, the length of a row.
    """
    objective = problem.objective
    unit = objective.score_unit if objective.is_linear_model else 1.0
    lam0 = ridge + noise / (2 * unit)
    steps = math.sqrt(4 * smoothness / lam0)
    return int(min(max(math.ceil(steps), 10), _MOST_STEPS))
