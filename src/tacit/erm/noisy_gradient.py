"""Noisy gradient descent: every step's gradient is released, nothing else is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from tacit.erm.counting import COUNT_MULTIPLE, GaussianQuestion, noisy_count
from tacit.erm.course import (
    Course,
    NoisePace,
    choose_steps,
    clip_of,
    growing_momentum,
    slope_smoothness,
    smoothness_of,
)
from tacit.erm.exact_gradient import ExactGradient
from tacit.erm.laws import Solved
from tacit.erm.objective import moved
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
from tacit.erm.preconditioner import FLOAT_SLACK, SecondMoment, Turned
from tacit.erm.shrinking import TRACE_MULTIPLE, can_shrink, shrunk
from tacit.noise import Bounded, Norm, Release, Source, decide, gaussian, secure_source
from tacit.privacy import (
    Budget,
    Composed,
    Event,
    Gaussian,
    Relation,
    Repeated,
)
from tacit.privacy.calibration import gaussian_multiplier
from tacit.records import Block, RecordSource
from tacit.records.coordinates import measured
from tacit.records.person_sums import MOST_COUNTED
from tacit.records.summing import needs_fine_sums

Array = npt.NDArray[np.float64]

# Charged to the sensitivity in turned coordinates, where clips may be far below the slopes there
# are: most of it is for the rounding of shared records' scores.
TURNED_SLACK = 1e-3


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
    preconditioner
        `SecondMoment()` asks for the rows' second moment, where there are records enough, and
        takes steps, clips gradients and adds noise in the coordinates it asks for; None for none.
        The clip is then by default the greatest slope times the rows' length there.
    pace
        `NoisePace()` makes steps as long as their noise allows, for clips far below the slopes
        there are; by default they are as long as the loss's curvature allows.

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
    preconditioner: SecondMoment | None = None
    pace: NoisePace | None = None

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
        if self.preconditioner is not None:
            self.preconditioner.check(problem)
        course = self._course(problem, budget, _most_counted(problem, budget))
        # one Gaussian of the whole budget where what is released decides what else is
        public = problem.objective.bounds.total_weight is not None and self.preconditioner is None
        step = Gaussian(self._step_multiplier(problem, budget, course.n_steps), budget.relation)
        steps: Event = Repeated(step, course.n_steps)
        if _shrinks(problem, budget):
            steps = Composed((steps, Gaussian(_trace_multiplier(budget), budget.relation)))
        whole = Gaussian(gaussian_multiplier(budget), budget.relation)
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=steps if public else whole,
            excess_risk=self._course(problem, budget, problem.n_predicted).risk(),
            reason="exact Gaussian accounting; any loss, any set; no minimiser to certify",
            settings=DescentSettings(course.n_steps, course.clip).shown(),
        )

    def tuned(self, problem: Problem, budget: Budget) -> NoisyGradient:
        """Return the same with a second moment, where so many records pay for it.

        How ill-conditioned a table is no public fact tells: the moment costs a tenth of the
        noise's variance and saves up to all but a tenth of the risk.
        """
        asked = SecondMoment()
        if not asked.pays(problem, budget, _most_counted(problem, budget)):
            return self
        try:
            asked.check(problem)
        except CannotSolve:
            return self
        return replace(self, preconditioner=asked)

    def _course(
        self, problem: Problem, budget: Budget, n_records: float, turned: Turned | None = None
    ) -> Course:
        """Return how to descend over so many records, in other coordinates if these are turned."""
        whole = gaussian_multiplier(budget)
        problem = problem.widened(1 / whole, n_records)
        smoothness, objective = n_records * smoothness_of(problem), problem.objective
        longest = objective.row_norm
        if turned is not None:
            # A row as long as declared may lie where the others do not: where errors are squared
            # it must not miss by more than others.
            longest = longest if math.isfinite(objective.bounds.label_bound) else turned.row_norm
            smoothness = turned.moment * slope_smoothness(problem)
            smoothness *= MOST_COUNTED if budget.relation.by_person else 1
            problem = turned.problem(problem)
        clip = clip_of(problem, self.clip)
        noise = moved(budget.relation) * clip * whole
        # The average of the last quarter has the noise of a quarter of the releases.
        ridge = problem.objective.regularization
        if ridge is None:
            ridge = problem.steady_ridge(2 * noise, n_records)
        n_steps = self.n_steps or choose_steps(problem, noise * longest, ridge, smoothness)
        return Course(
            problem, n_records, n_steps, clip, ridge, 2 * noise, smoothness, objective, turned
        )

    def solve(self, plan: Plan, records: RecordSource, source: Source | None) -> Release[Array]:
        """Count the records if their number is private, then descend as that asks for."""
        source = secure_source() if source is None else source
        budget, events = plan.budget, list[Event]()
        n = _most_counted(plan.problem, budget)
        if plan.problem.objective.bounds.total_weight is None:
            asked = COUNT_MULTIPLE * gaussian_multiplier(budget)
            counted = noisy_count(records, GaussianQuestion(asked, budget.relation), source)
            events.append(counted.event)
            n = counted.n_records
        turned = None
        if self.preconditioner is not None and self.preconditioner.pays(plan.problem, budget, n):
            turned = self.preconditioner.ask(plan.problem, records, budget, n, source)
            events.append(turned.event)
        course = self._course(plan.problem, budget, n, turned)
        multiplier = self._step_multiplier(plan.problem, budget, course.n_steps, turned)
        decide("number of steps", course.n_steps)
        noisy_gradient = _noisy_gradient(
            course, records, budget.relation, multiplier, source, events
        )
        step, momentum = 1 / (course.smoothness + course.ridge), growing_momentum
        noise = multiplier * _reach(course, budget.relation)
        if self.pace is not None:
            step, momentum = self.pace.step(noise, course.n_steps), self.pace.constant
        w = _descend(noisy_gradient, plan.problem, course.n_steps, step, momentum)
        if turned is not None:
            return Solved(turned.coordinates.of(w), _receipt(events, plan.event))
        law, risk = course.law(noise, step), None
        if _shrinks(plan.problem, budget):
            question = GaussianQuestion(_trace_multiplier(budget), budget.relation)
            w, event, risk = shrunk(w, law, records, question, n, source)
            events.append(event)
        return Solved(w, _receipt(events, plan.event), law, risk=risk)

    def _step_multiplier(
        self, problem: Problem, budget: Budget, n_steps: int, turned: Turned | None = None
    ) -> float:
        """Return the multiplier of a step, within the budget with whatever else is asked.

        1 / z^2 = 1 / count^2 + 1 / trace^2 + T / step^2,   z that of one Gaussian release

        With a second moment, 1 / moment^2 = share / z^2, in the place of the trace.
        """
        asked = 0.0
        if problem.objective.bounds.total_weight is None:
            asked += 1 / COUNT_MULTIPLE**2
        if turned is not None and self.preconditioner is not None:
            asked += self.preconditioner.share
        elif _shrinks(problem, budget):
            asked += 1 / TRACE_MULTIPLE**2
        mu2 = 1 / gaussian_multiplier(budget) ** 2
        if asked or self.preconditioner is not None:
            # rounded up, so that the parts never cost more than the whole
            mu2 *= (1 - asked) * (1 - 2.0**-40)
        return math.sqrt(n_steps / mu2)

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Return how much noise a step gets."""
        settings = DescentSettings.of(plan)
        multiplier = self._step_multiplier(plan.problem, plan.budget, settings.n_steps)
        std = number(multiplier * moved(plan.budget.relation) * settings.clip)
        return f"Gaussian noise of standard deviation {std} at each of {settings.n_steps:,} steps."


def descend_there(
    problem: Problem,
    budget: Budget,
    records: RecordSource,
    turned: Turned,
    n_records: float,
    mu: float,
    source: Source,
) -> tuple[Array, list[Event]]:
    """Return weights from steps in the coordinates of a second moment, and what the steps cost.

    ``mu`` is for all of them together: T steps of multiplier sqrt(T) / mu.
    """
    course = NoisyGradient()._course(problem, budget, n_records, turned)
    multiplier, events = math.sqrt(course.n_steps) / mu, list[Event]()
    decide("number of steps", course.n_steps)
    gradient = _noisy_gradient(course, records, budget.relation, multiplier, source, events)
    step = 1 / (course.smoothness + course.ridge)
    return turned.coordinates.of(_descend(gradient, problem, course.n_steps, step)), events


def _noisy_gradient(
    course: Course,
    records: RecordSource,
    relation: Relation,
    multiplier: float,
    source: Source,
    events: list[Event],
) -> Callable[[Array], Array]:
    """Return what releases the sum of the clipped gradients at a point, and adds the ridge."""
    gradient = _exact(course, relation)
    total: Callable[[Array], Bounded] = partial(gradient, records)
    if course.turned is not None:
        total = _turned_gradient(course, course.turned, records, relation)

    def noisy_gradient(at: Array) -> Array:
        released = gaussian(total(at), multiplier, source)
        events.append(released.event)
        return np.asarray(released.value) + course.pull(at)

    return noisy_gradient


def _exact(course: Course, relation: Relation) -> ExactGradient:
    shape = course.problem.shape
    return ExactGradient(course.objective, shape, course.clip, relation, course.n_records)


def _turned_gradient(
    course: Course, turned: Turned, records: RecordSource, relation: Relation
) -> Callable[[Array], Bounded]:
    """Return what adds up gradients in other coordinates, in double precision."""
    turned.check_rounding(records)
    if not relation.by_person:
        records = measured(records, turned.coordinates)
    # a gradient of norm C there has norm at most C / shrinks before it is turned
    fine = needs_fine_sums(records, FLOAT_SLACK * turned.shrinks / 2)
    reach, there = _reach(course, relation), turned.coordinates
    loss, bounds = course.objective.loss, course.objective.bounds

    def total(at: Array) -> Bounded:
        weights = there.of(at)

        def gradient(block: Block) -> tuple[Array]:
            return (loss.gradient_clipped_in(there, block, weights, bounds, course.clip),)

        (value,) = records.sum(gradient, fine=fine)
        return Bounded(there.of(value), reach, Norm.L2, relation)

    return total


def _descend(
    gradient: Callable[[Array], Array],
    problem: Problem,
    n_steps: int,
    step: float,
    momentum: Callable[[int], float] = growing_momentum,
) -> Array:
    feasible = problem.objective.feasible
    w = feasible.project(np.zeros(problem.shape))
    velocity = np.zeros_like(w)
    total, first = np.zeros_like(w), (3 * n_steps) // 4
    for t in range(n_steps):
        at = w + momentum(t) * velocity
        following = feasible.project(at - step * gradient(at))
        velocity, w = following - w, following
        if t >= first:
            total += w
    return total / (n_steps - first)


def _reach(course: Course, relation: Relation) -> float:
    """Return how far one record, or person, moves a step's sum."""
    if course.turned is None:
        return _exact(course, relation).sensitivity
    return moved(relation) * course.clip * (1 + TURNED_SLACK)


def _receipt(events: list[Event], planned: Event) -> Event:
    if isinstance(planned, Gaussian):
        return gaussian_receipt(events, planned)
    return receipt(events, planned)


def _most_counted(problem: Problem, budget: Budget) -> float:
    """Return how many records count at most where n_records is that of people, or of records."""
    return float(problem.n_records * (MOST_COUNTED if budget.relation.by_person else 1))


def _shrinks(problem: Problem, budget: Budget) -> bool:
    """Return whether weights are shrunk; what a person's records bend is not bounded."""
    return can_shrink(problem) and not budget.relation.by_person


def _trace_multiplier(budget: Budget) -> float:
    return TRACE_MULTIPLE * gaussian_multiplier(budget)
