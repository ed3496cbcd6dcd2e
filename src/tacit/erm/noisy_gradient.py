"""Noisy gradient descent: every step's gradient is released, nothing else is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tacit.erm.counting import NUMBER_SHARE, ask_count
from tacit.erm.course import (
    Course,
    NoisePace,
    choose_steps,
    clip_of,
    growing_momentum,
    slope_smoothness,
    smoothness_of,
)
from tacit.erm.laws import Solved
from tacit.erm.objective import moved
from tacit.erm.plan import (
    CannotSolve,
    Mechanism,
    NoiseError,
    Plan,
    Problem,
    Settings,
    unknown,
)
from tacit.erm.preconditioner import SecondMoment, Turned
from tacit.erm.shrinking import can_shrink, shrunk
from tacit.privacy import Budget, Relation
from tacit.privacy.calibration import gaussian_multiplier
from tacit.queries import (
    Exactly,
    GaussianNoise,
    GaussianSum,
    Gradient,
    Measured,
    NoisySum,
    PreconditionedGradient,
    Session,
    Slot,
    composed,
)
from tacit.queries.split_budget import gaussian_rest, split_gaussian
from tacit.records.person_sums import MOST_COUNTED

Array = npt.NDArray[np.float64]


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
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=composed(self._slots(problem, budget, course.n_steps)),
            excess_risk=self._course(problem, budget, problem.n_predicted).risk(),
            reason="exact Gaussian accounting; any loss, any set; no minimiser to certify",
            settings=DescentSettings(course.n_steps, course.clip).shown(),
        )

    def slots(self, plan: Plan) -> dict[str, Slot]:
        """Return the steps and the trace, or one Gaussian for whatever is asked."""
        return self._slots(plan.problem, plan.budget, DescentSettings.of(plan).n_steps)

    def _slots(self, problem: Problem, budget: Budget, n_steps: int) -> dict[str, Slot]:
        facts = problem.facts(budget.relation)
        if self._adapts(problem):
            # If later questions depend on earlier answers, one Gaussian is charged for all.
            whole = GaussianNoise(gaussian_multiplier(budget))
            return {"everything": Slot(whole.event(facts), GaussianSum())}
        noise = self._noise(problem, budget)
        step = gaussian_rest(noise["steps"], times=n_steps)
        slots = {"steps": Slot(step.event(facts), Exactly(n_steps))}
        if "trace" in noise:
            slots["trace"] = Slot(noise["trace"].event(facts))
        return slots

    def _adapts(self, problem: Problem) -> bool:
        """Return whether the number of steps follows from a count or from a second moment."""
        return problem.objective.bounds.total_weight is None or self.preconditioner is not None

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

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Count the records if their number is private, then descend as that asks for."""
        problem, budget = plan.problem, plan.budget
        steps = trace = "everything"
        if not self._adapts(problem):
            steps, trace = "steps", "trace"
        n = _most_counted(problem, budget)
        noise = self._noise(problem, budget)
        if "count" in noise:
            n = ask_count(session, noise["count"], steps).n_records
        turned = None
        if self.preconditioner is not None and self.preconditioner.pays(problem, budget, n):
            turned = self.preconditioner.ask(session, steps, problem, budget, n)
            noise = self._noise(problem, budget, self.preconditioner)
        course = self._course(problem, budget, n, turned)
        each = gaussian_rest(noise["steps"], times=course.n_steps)
        session.decide("number of steps", course.n_steps)
        std = NoisySum(_gradient(course, np.zeros(problem.shape)), each).noise_std(session.facts)
        step, momentum = 1 / (course.smoothness + course.ridge), growing_momentum
        if self.pace is not None:
            step, momentum = self.pace.step(std, course.n_steps), self.pace.constant
        w = _descend(course, session, steps, each, problem, step, momentum)
        if turned is not None:
            return Solved(turned.coordinates.of(w))
        law, risk = course.law(std, step), None
        if "trace" in noise:
            w, risk = shrunk(w, law, session, noise["trace"], trace, n)
        return Solved(w, law, risk=risk)

    def _noise(
        self, problem: Problem, budget: Budget, moment: SecondMoment | None = None
    ) -> dict[str, GaussianNoise]:
        """Return the noise of whatever is asked, and of all steps as if they were one release.

        Where a second moment was asked for, its share takes the place of the trace's.
        """
        shares: dict[str, float | None] = {"steps": None}
        if problem.objective.bounds.total_weight is None:
            shares["count"] = NUMBER_SHARE
        if moment is not None:
            shares["second moment"] = moment.share
        elif _shrinks(problem, budget):
            shares["trace"] = NUMBER_SHARE
        return split_gaussian(budget, shares)

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Return how much noise a step gets."""
        settings = DescentSettings.of(plan)
        steps = self._noise(plan.problem, plan.budget)["steps"]
        each = gaussian_rest(steps, times=settings.n_steps)
        std = number(each.multiplier * moved(plan.budget.relation) * settings.clip)
        return f"Gaussian noise of standard deviation {std} at each of {settings.n_steps:,} steps."


def descend_there(
    problem: Problem,
    budget: Budget,
    session: Session,
    slot: str,
    turned: Turned,
    n_records: float,
    whole: GaussianNoise,
) -> Array:
    """Return weights from steps in the coordinates of a second moment.

    All of them together cost no more than one release with the noise ``whole``.
    """
    course = NoisyGradient()._course(problem, budget, n_records, turned)
    noise = gaussian_rest(whole, times=course.n_steps)
    session.decide("number of steps", course.n_steps)
    step = 1 / (course.smoothness + course.ridge)
    return turned.coordinates.of(_descend(course, session, slot, noise, problem, step))


def _gradient(course: Course, at: Array) -> Gradient | PreconditionedGradient:
    """Return the sum of clipped gradients at a point."""
    turned = course.turned
    if turned is None:
        return Gradient(course.objective, course.clip, course.n_records, at)
    return PreconditionedGradient(
        course.objective, turned.coordinates, turned.shrinks, course.clip, at
    )


def _descend(
    course: Course,
    session: Session,
    slot: str,
    noise: GaussianNoise,
    problem: Problem,
    step: float,
    momentum: Callable[[int], float] = growing_momentum,
) -> Array:
    """Take all steps along noisy gradients; return the average of the last quarter."""
    feasible, n_steps = problem.objective.feasible, course.n_steps
    if course.turned is not None:
        session = session.on(Measured(course.turned.coordinates))
    w = feasible.project(np.zeros(problem.shape))
    velocity = np.zeros_like(w)
    total, first = np.zeros_like(w), (3 * n_steps) // 4
    for t in range(n_steps):
        at = w + momentum(t) * velocity
        noisy = np.asarray(session.ask(NoisySum(_gradient(course, at), noise), slot))
        following = feasible.project(at - step * (noisy + course.pull(at)))
        velocity, w = following - w, following
        if t >= first:
            total += w
    return total / (n_steps - first)


def _most_counted(problem: Problem, budget: Budget) -> float:
    """Return how many records count at most where n_records is that of people, or of records."""
    return float(problem.n_records * (MOST_COUNTED if budget.relation.by_person else 1))


def _shrinks(problem: Problem, budget: Budget) -> bool:
    """Return whether weights are shrunk; what a person's records bend is not bounded."""
    return can_shrink(problem) and not budget.relation.by_person
