"""Run noisy gradient descent on Poisson samples, for data too large for full passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tacit.erm.mechanisms.noisy_gradient import Descent, DescentSettings, clip_of, smoothness_of
from tacit.erm.plan import CannotSolve, Plan, Problem, Solved
from tacit.privacy import Budget, Event
from tacit.privacy.accounting.calibration import least_noise
from tacit.queries import (
    Exactly,
    Facts,
    GaussianNoise,
    Gradient,
    NoisySum,
    PoissonSample,
    Session,
    Slot,
    composed,
)


@dataclass(frozen=True)
class SampledSettings(DescentSettings):
    """Steps and clipping norm, and the noise multiplier of one step."""

    noise_multiplier: float


@dataclass(frozen=True)
class NoisySGD(Descent):
    """Noisy gradient descent on Poisson samples of the records.

    Each step samples every record independently with probability ``sampling_rate``. The noisy sum
    of clipped gradients is divided by the public expected sample size. Use it for data too large
    for full passes; if full passes are affordable, `NoisyGradient` has less noise for the same
    budget. Sampling saves time only on records in memory: `ChunkedRecords` are read whole to find
    the records of a sample.

    Parameters
    ----------
    sampling_rate
        The probability with which each record enters a step's sample.
    n_steps
        The number of steps.
    clip
        The clipping norm of each record's gradient; L by default.

    Examples
    --------
    >>> from tacit.erm import NoisySGD, Objective, Problem
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds
    >>> problem = Problem(Objective(LogisticLoss(), Bounds(n_records=30_000)), n_features=20)
    >>> NoisySGD(0.02, 500).plan(problem, Budget(1.0, 1e-5)).settings["noise_multiplier"] > 1
    True
    """

    sampling_rate: float = 0.01
    n_steps: int = 500
    clip: float | None = None

    name = "noisy_sgd"
    title = "Noisy stochastic gradient descent"
    page = "noisy_gradient.md"
    proof = "noisy_gradient.md"
    suits = (
        (
            "too many records for full passes",
            "small samples; more noise for the same budget",
        ),
    )
    is_candidate = False  # no public fact says whether the data are too large for full passes

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Calibrate the noise to the sampled steps."""
        if budget.is_pure:
            raise CannotSolve("noisy SGD adds Gaussian noise, which needs delta > 0; set delta.")
        if not budget.relation.adds_or_removes:
            raise CannotSolve("Poisson sampling is proved for ADD_REMOVE only; use that relation.")
        if problem.objective.bounds.n_records is None:
            raise CannotSolve(
                "noisy SGD divides by the expected size of a sample: declare n_records, an "
                "approximate public number of records (n_records in a schema, or tacit plan "
                "--public-rows)."
            )
        clip = clip_of(problem, self.clip)

        def steps(multiplier: float) -> Event:
            return composed(self._slots(problem.facts(budget.relation), multiplier))

        multiplier = least_noise(steps, budget)
        # noise after averaging T steps, in units of a full gradient
        scale = clip * multiplier / (self.sampling_rate * math.sqrt(self.n_steps))
        squared = problem.dimension * scale**2
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=steps(multiplier),
            excess_risk=problem.risk_of_noise(squared, problem.objective.regularization or 0.0)
            + 2 * smoothness_of(problem) * problem.typical_norm**2 / (self.n_steps + 1),
            reason="small samples of the records; for data too large for full passes",
            settings=SampledSettings(self.n_steps, clip, multiplier).shown(),
        )

    def slots(self, plan: Plan) -> dict[str, Slot]:
        """Return the slot of the steps, each on a fresh sample."""
        return self._slots(plan.facts, SampledSettings.of(plan).noise_multiplier)

    def _slots(self, facts: Facts, multiplier: float) -> dict[str, Slot]:
        sampled = replace(facts, sampling_rate=self.sampling_rate)
        return {"steps": Slot(GaussianNoise(multiplier).event(sampled), Exactly(self.n_steps))}

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Descend on Poisson samples and average the iterates."""
        settings, problem = SampledSettings.of(plan), plan.problem
        objective, feasible = problem.objective, problem.objective.feasible
        noise, sampled = GaussianNoise(settings.noise_multiplier), PoissonSample(self.sampling_rate)
        ridge = objective.regularization or 0.0
        expected = self.sampling_rate * problem.n_records
        step = 1 / (2 * (smoothness_of(problem) + ridge / problem.n_records))
        w = feasible.project(np.zeros(problem.shape))
        total, first = np.zeros_like(w), self.n_steps // 2
        session.decide("number of steps", self.n_steps)
        for t in range(self.n_steps):
            gradient = NoisySum(Gradient(objective, settings.clip, expected, w), noise)
            noisy = np.asarray(session.on(sampled).ask(gradient, "steps"))
            slope = noisy / expected + ridge / problem.n_records * w
            w = feasible.project(w - step / math.sqrt(1 + t / 50) * slope)
            if t >= first:
                total += w
        return Solved(total / (self.n_steps - first))

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Describe the noise of a step and the size of a sample."""
        settings = SampledSettings.of(plan)
        std = number(settings.noise_multiplier * settings.clip)
        return (
            f"Gaussian noise of standard deviation {std} at each of {settings.n_steps:,} steps on "
            f"{number(100 * self.sampling_rate)} % of the records."
        )
