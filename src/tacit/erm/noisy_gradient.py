"""Noisy gradient descent: every step's gradient is released, nothing else is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.counting import COUNT_MULTIPLE, noisy_count
from tacit.erm.laws import DescentLaw, Solved
from tacit.erm.objective import moved, needs_fine_sums
from tacit.erm.plan import (
    CannotSolve,
    Mechanism,
    NoiseError,
    Plan,
    Problem,
    Settings,
    gaussian_receipt,
    receipt,
    unknown,
)
from tacit.noise import Bounded, Norm, Release, Source, decide, gaussian, secure_source
from tacit.privacy import (
    Budget,
    Event,
    Gaussian,
    Relation,
    Repeated,
)
from tacit.privacy.calibration import gaussian_multiplier
from tacit.records import RecordSource
from tacit.records.person_sums import MOST_COUNTED

Array = npt.NDArray[np.float64]

# Charged to the sensitivity for the float error of a sum; sums are checked against it.
FLOAT_SLACK = 1e-4
_MOST_STEPS = 1000
# A loss with corners is treated, for the step size alone, as rounded over this share of a score.
_CORNER = 0.1


@dataclass(frozen=True)
class DescentSettings(Settings):
    """How many steps, and the norm that a record's gradient is scaled down to."""

    n_steps: int
    clip: float


class Descent(Mechanism):
    """What both descents say of their noise."""

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Return that nothing is known."""
        return unknown(
            "noise entered at every step, and how much of it the later steps took back depends "
            "on the records, which are private."
        )


@dataclass(frozen=True)
class _Course:
    """How to descend over a number of records, from it and from public facts."""

    problem: Problem
    n_records: float
    n_steps: int
    clip: float
    ridge: float
    noise_std: float  # of the average, in units of a full gradient

    def risk(self) -> float:
        """Predict the excess risk; what T steps leave undone is like a ridge of 4 n beta / T^2."""
        undone = 4 * self.n_records * smoothness_of(self.problem) / self.n_steps**2
        squared = self.problem.dimension * self.noise_std**2
        return self.problem.risk_of_noise(squared, self.ridge + undone)


@dataclass(frozen=True)
class NoisyGradient(Descent):
    """Full-batch noisy gradient descent with momentum, projection and averaging.

    Each step releases the sum of the records' gradients, each clipped to norm C, plus Gaussian
    noise; T steps of multiplier z cost exactly one Gaussian mechanism of multiplier z / sqrt(T).
    Number of steps and step size come from public facts, never from raw gradients.

        step 1/(n beta); momentum t/(t+3) (Nesterov 1983); the last quarter averaged

    Takes any loss (clipped if it has no Lipschitz constant) and any feasible set, under either
    relation. Started at 0 and without a set, weights on columns that are all zero carry noise
    that never reaches a score, so the risk depends on the rank of the data only (Song et al.
    2021).

    Parameters
    ----------
    n_steps
        T; from theory by default.
    clip
        C, the norm to which each record's gradient is scaled down; L by default. Under
        ADD_REMOVE_PERSON what a person's records add up to is scaled down to it as well.

    Examples
    --------
    >>> from tacit.erm import NoisyGradient, Objective, Problem
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds
    >>> problem = Problem(Objective(LogisticLoss(), Bounds(n_records=30_000)), n_features=20)
    >>> NoisyGradient().plan(problem, Budget(1.0, 1e-5)).settings["n_steps"]
    127
    """

    n_steps: int | None = None
    clip: float | None = None

    name = "noisy_gradient"
    title = "Noisy gradient descent"
    has_law = True
    adds_up_people = True

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Choose clip, steps and noise."""
        if budget.is_pure:
            raise CannotSolve(
                "noisy gradient descent adds Gaussian noise, which needs delta > 0; set delta, "
                "or use 'objective_perturbation' or 'output_perturbation' for a pure budget."
            )
        if budget.relation is Relation.REPLACE and problem.objective.bounds.n_records is None:
            raise CannotSolve(
                "under REPLACE the number of records is a public fact: declare n_records."
            )
        clip_of(problem, self.clip)
        if budget.is_infinite:
            raise CannotSolve("the budget is infinite: nothing is noisy.")
        course = self._course(problem, budget, _most_counted(problem, budget))
        public = problem.objective.bounds.total_weight is not None
        step = Gaussian(_step_multiplier(problem, budget, course.n_steps), budget.relation)
        whole = Gaussian(gaussian_multiplier(budget), budget.relation)
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=Repeated(step, course.n_steps) if public else whole,
            excess_risk=self._course(problem, budget, problem.n_predicted).risk(),
            reason="exact Gaussian accounting; any loss, any set; no minimiser to certify",
            settings=DescentSettings(course.n_steps, course.clip).shown(),
        )

    def _course(self, problem: Problem, budget: Budget, n_records: float) -> _Course:
        """Return how to descend over so many records."""
        whole = gaussian_multiplier(budget)
        problem = problem.widened(1 / whole, n_records)
        clip = clip_of(problem, self.clip)
        noise = moved(budget.relation) * clip * whole
        # The average of the last quarter has the noise of a quarter of the releases.
        ridge = problem.objective.regularization
        if ridge is None:
            ridge = problem.steady_ridge(2 * noise, n_records)
        n_steps = self.n_steps or _choose_steps(problem, noise, ridge, n_records)
        return _Course(problem, n_records, n_steps, clip, ridge, 2 * noise)

    def solve(self, plan: Plan, records: RecordSource, source: Source | None) -> Release[Array]:
        """Count the records if their number is private, then descend as that asks for."""
        source = secure_source() if source is None else source
        budget, events = plan.budget, list[Event]()
        n = _most_counted(plan.problem, budget)
        if plan.problem.objective.bounds.total_weight is None:
            asked = COUNT_MULTIPLE * gaussian_multiplier(budget)
            counted = noisy_count(records, asked, budget.relation, source)
            events.append(counted.event)
            n = counted.n_records
        course = self._course(plan.problem, budget, n)
        problem, clip, ridge = course.problem, course.clip, course.ridge
        multiplier = _step_multiplier(problem, budget, course.n_steps)
        decide("number of steps", course.n_steps)
        fine = needs_fine_sums(records, FLOAT_SLACK)
        reach = moved(budget.relation) * clip * (1 + FLOAT_SLACK)
        objective = problem.objective

        def noisy_gradient(w: Array) -> Array:
            (total,) = records.sum(lambda b: (objective.gradient(b, w, clip),), fine=fine)
            bounded = Bounded(total, reach, Norm.L2, budget.relation)
            released = gaussian(bounded, multiplier, source)
            events.append(released.event)
            return np.asarray(released.value) + ridges * w

        ridges = np.full(problem.shape, ridge)
        spared = objective.regularization is None and not problem.even_ridge
        if objective.bounds.intercept and spared:
            ridges[-1] = 0.0  # nothing holds a constant back but what was asked for
        step = 1 / (n * smoothness_of(problem) + ridge)
        w = _descend(noisy_gradient, problem, course.n_steps, step)
        limit = clip / objective.reach
        law = DescentLaw(objective, limit, None, ridge, multiplier * reach, course.n_steps, step)
        planned = plan.event
        if isinstance(planned, Gaussian):
            return Solved(w, gaussian_receipt(events, planned), law)
        return Solved(w, receipt(events, planned), law)

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Return how much noise a step gets."""
        settings = DescentSettings.of(plan)
        multiplier = _step_multiplier(plan.problem, plan.budget, settings.n_steps)
        std = number(multiplier * moved(plan.budget.relation) * settings.clip)
        return f"Gaussian noise of standard deviation {std} at each of {settings.n_steps:,} steps."


def _descend(
    gradient: Callable[[Array], Array], problem: Problem, n_steps: int, step: float
) -> Array:
    feasible = problem.objective.feasible
    w = feasible.project(np.zeros(problem.shape))
    velocity = np.zeros_like(w)
    total, first = np.zeros_like(w), (3 * n_steps) // 4
    for t in range(n_steps):
        momentum = t / (t + 3.0)
        at = w + momentum * velocity
        following = feasible.project(at - step * gradient(at))
        velocity, w = following - w, following
        if t >= first:
            total += w
    return total / (n_steps - first)


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


def _most_counted(problem: Problem, budget: Budget) -> float:
    """Return how many records count at most where n_records is that of people, or of records."""
    return float(problem.n_records * (MOST_COUNTED if budget.relation.by_person else 1))


def smoothness_of(problem: Problem) -> float:
    """Return beta, or for a loss with corners that of its rounded form."""
    objective = problem.objective
    if math.isfinite(objective.smoothness):
        return objective.smoothness
    return objective.lipschitz * objective.reach / (_CORNER * objective.score_unit)


def _choose_steps(problem: Problem, noise: float, ridge: float, n_records: float) -> int:
    """Return T = sqrt(4 n beta / lam0), the steps after which noise outweighs progress.

    lam0 = ridge + noise R / (2 unit): the curvature below which the noise hides what is left.
    """
    objective = problem.objective
    unit = objective.score_unit if objective.is_linear_model else 1.0
    lam0 = ridge + noise * objective.row_norm / (2 * unit)
    steps = math.sqrt(4 * n_records * smoothness_of(problem) / lam0)
    return int(min(max(math.ceil(steps), 10), _MOST_STEPS))


def _step_multiplier(problem: Problem, budget: Budget, n_steps: int) -> float:
    """Return the multiplier of a step, within the budget with the count if that is private.

    1 / z^2 = 1 / count^2 + T / step^2,   z that of one Gaussian release
    """
    mu2 = 1 / gaussian_multiplier(budget) ** 2
    if problem.objective.bounds.total_weight is None:
        # rounded up, so that the parts never cost more than the whole
        mu2 *= (1 - 1 / COUNT_MULTIPLE**2) * (1 - 2.0**-40)
    return math.sqrt(n_steps / mu2)
