"""Run noisy gradient descent: plan its schedule, and release the gradient of every step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tacit.arrays import Array
from tacit.erm.objective import Objective, n_changed
from tacit.erm.plan import (
    NUMBER_SHARE,
    CannotSolve,
    DescentLaw,
    Mechanism,
    NoiseError,
    Plan,
    Problem,
    Settings,
    Solved,
    ask_count,
    unknown,
)
from tacit.erm.preconditioning import Preconditioner, SecondMoment
from tacit.erm.shrinkage import can_shrink, shrunk
from tacit.privacy import Budget, Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import (
    Exactly,
    GaussianNoise,
    GaussianSum,
    Gradient,
    NoisySum,
    Session,
    Slot,
    composed,
)
from tacit.queries.gradient import Measured, PreconditionedGradient
from tacit.queries.noise import gaussian_rest, split_gaussian
from tacit.records.grouped import MOST_COUNTED

_MOST_STEPS = 1000  # a step is a full pass over the records
# For the step size only, a non-smooth loss counts as smoothed over this share of a score unit.
_CORNER = 0.1


@dataclass(frozen=True)
class DescentSchedule:
    """The schedule of a descent, derived from public facts and the number of records."""

    problem: Problem
    n_records: float
    n_steps: int
    clip: float
    ridge: float
    noise_std: float  # of the averaged iterate, in units of a full gradient
    smoothness: float  # of the sum of all losses: n beta, or a bound from the second moment
    objective: Objective  # in original coordinates; ``problem`` may be preconditioned
    preconditioner: Preconditioner | None = None

    def risk(self) -> float:
        """Predict the excess risk; stopping after T steps acts like a ridge of 4 n beta / T^2."""
        undone = 4 * self.smoothness / self.n_steps**2
        squared = self.problem.dimension * self.noise_std**2
        return self.problem.risk_of_noise(squared, self.ridge + undone)

    def law(self, noise_std: float, step: float) -> DescentLaw:
        """Return the asymptotic law of the weights, in the original coordinates."""
        limit = self.clip / self.objective.gradient_scale
        return DescentLaw(self.objective, limit, None, self.ridge, noise_std, self.n_steps, step)

    def pull(self, v: Array) -> Array:
        """Return the ridge's part of the gradient.

        A user's ridge applies to w; ours applies to v and spares the intercept.
        """
        is_given = self.objective.regularization is not None or self.problem.even_ridge
        if self.preconditioner is not None:
            if is_given:
                return self.ridge * self.preconditioner.coordinates.of(
                    self.preconditioner.coordinates.of(v)
                )
            return self.ridge * self.preconditioner.without_constant(
                v, self.objective.bounds.intercept
            )
        pulled = self.ridge * v
        if self.objective.bounds.intercept and not is_given:
            pulled[-1] = 0.0
        return pulled


def growing_momentum(t: int) -> float:
    """Return t / (t + 3), Nesterov's momentum for a smooth loss."""
    return t / (t + 3.0)


@dataclass(frozen=True)
class NoisePace:
    """Set the step size by the noise: all noise together moves a score by a given amount.

    If nearly every record's gradient is clipped, the loss's curvature does not determine a useful
    step size. With momentum m and noise of std s in each of T steps, steps of size

        scores (1 - m) / (sqrt(T) s)

    move the score of a row of norm 1 by noise of std ``scores`` in all, for every T. More steps
    cost time, but neither privacy nor noise.

    Parameters
    ----------
    scores
        This standard deviation, before averaging and in the coordinates of the descent.
    momentum
        m, constant over the steps.

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
                f"and {self.momentum!r}; NoisePace() has usable defaults."
            )

    def step(self, noise_std: float, n_steps: int) -> float:
        """Return the step size for gradients with this noise."""
        return round(self.scores * (1 - self.momentum), 12) / (math.sqrt(n_steps) * noise_std)

    def constant(self, t: int) -> float:
        """Return the momentum, which is the same in every step."""
        return self.momentum


def clip_of(problem: Problem, clip: float | None) -> float:
    """Return the clipping norm of a record's gradient: the user's, or the loss's default."""
    objective = problem.objective
    if clip is not None:
        if not 0.0 < clip < math.inf:
            raise CannotSolve(
                f"clip must be positive and finite, got {clip!r}; None takes the loss's own."
            )
        return min(clip, objective.lipschitz)
    slope = objective.loss.default_clip(objective.bounds)
    if slope is None:
        raise CannotSolve(
            f"the gradient of {type(objective.loss).__name__} is unbounded and no label_range is "
            "declared; declare it, or pass NoisyGradient(clip=...)."
        )
    return slope * objective.gradient_scale


def smoothness_of(problem: Problem) -> float:
    """Return beta; for a non-smooth loss, that of its smoothed form."""
    objective = problem.objective
    if math.isfinite(objective.smoothness):
        return objective.smoothness
    return objective.lipschitz * objective.gradient_scale / (_CORNER * objective.score_unit)


def slope_smoothness(problem: Problem) -> float:
    """Return the smoothness of the loss in its score, without the factor R^2."""
    return smoothness_of(problem) / problem.objective.squared_gradient_scale


def choose_steps(problem: Problem, noise: float, ridge: float, smoothness: float) -> int:
    """Return T = sqrt(4 n beta / lam0), the steps after which noise outweighs progress.

    lam0 = ridge + noise R / (2 unit) is the curvature below which noise hides the remaining
    progress. ``noise`` already includes the factor R, the row norm.
    """
    objective = problem.objective
    unit = objective.score_unit if objective.is_linear_model else 1.0
    lam0 = ridge + noise / (2 * unit)
    steps = math.sqrt(4 * smoothness / lam0)
    return int(min(max(math.ceil(steps), 10), _MOST_STEPS))


@dataclass(frozen=True)
class DescentSettings(Settings):
    """The number of steps, and the clipping norm of a record's gradient."""

    n_steps: int
    clip: float


class Descent(Mechanism):
    """The part that both descents share: they have no error bars."""

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Return no error bars: the effect of per-step noise depends on the data."""
        return unknown(
            "noise was added at every step, and later steps remove a part of it that depends "
            "on the records, which are private."
        )


@dataclass(frozen=True)
class NoisyGradient(Descent):
    """Run full-batch noisy gradient descent with momentum, projection and averaging.

    Each step releases the sum of the records' gradients, each clipped to norm C, plus Gaussian
    noise; T steps of multiplier z cost exactly one Gaussian mechanism of multiplier z / sqrt(T).
    The number of steps and the step size come from public facts, never from raw gradients.

        step 1/(n beta); momentum t/(t+3) (Nesterov 1983); the last quarter averaged

    Takes any loss (clipped if it has no Lipschitz constant) and any feasible set, under either
    relation. The descent starts at 0. Without a feasible set, weights on all-zero columns carry
    noise that never moves a score, so the risk depends only on the rank of the data (Song et al.
    2021).

    Parameters
    ----------
    n_steps
        T; derived from theory by default.
    clip
        C, the clipping norm of each record's gradient; L by default. Under ADD_REMOVE_PERSON the
        sum of a person's gradients is clipped to C as well.
    preconditioner
        `SecondMoment()` asks for the second moment of the rows, if there are enough records. Steps,
        clipping and noise are then in preconditioned coordinates, and the default clip is the
        greatest derivative of the loss times the row norm in these coordinates. None: no
        preconditioner.
    pace
        `NoisePace()` sets the step size by the noise, for clips far below the typical gradient
        norm. By default the loss's curvature sets the step size.

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
    suits = (
        (
            "several classes (or objective perturbation, if classes and columns are few)",
            "one joint release; epsilon is not split over the classes",
        ),
        (
            "Huber, quantile, Poisson, linear regression, REPLACE; declare `n_records`",
            "objective perturbation is not proved for these losses under REPLACE",
        ),
        ("a constraint on the weights", "it projects at every step"),
        ("a loss with a corner", "it needs no second derivative"),
        (
            "geometric median (`tacit.location.GeometricMedian`)",
            "not a function of <w, x>, and not smooth",
        ),
    )
    has_law = True
    adds_up_people = True

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Choose clipping norm, steps and noise."""
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
            raise CannotSolve("the budget is infinite, so there is no noise to plan; use minimize.")
        if self.preconditioner is not None:
            self.preconditioner.check(problem)
        schedule = self._schedule(problem, budget, _most_counted(problem, budget))
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=composed(self._slots(problem, budget, schedule.n_steps)),
            excess_risk=self._schedule(problem, budget, problem.n_predicted).risk(),
            reason="exact Gaussian accounting; any loss, any set; no minimiser to certify",
            settings=DescentSettings(schedule.n_steps, schedule.clip).shown(),
        )

    def slots(self, plan: Plan) -> dict[str, Slot]:
        """Return the slots of the steps and the trace, or one Gaussian slot for all queries."""
        return self._slots(plan.problem, plan.budget, DescentSettings.of(plan).n_steps)

    def _slots(self, problem: Problem, budget: Budget, n_steps: int) -> dict[str, Slot]:
        facts = problem.facts(budget.relation)
        if self._adapts(problem):
            # If later queries depend on earlier answers, charge one Gaussian for the whole budget.
            whole = GaussianNoise(gaussian_multiplier(budget))
            return {"everything": Slot(whole.event(facts), GaussianSum())}
        noise = self._noise(problem, budget)
        step = gaussian_rest(noise["steps"], times=n_steps)
        slots = {"steps": Slot(step.event(facts), Exactly(n_steps))}
        if "trace" in noise:
            slots["trace"] = Slot(noise["trace"].event(facts))
        return slots

    def _adapts(self, problem: Problem) -> bool:
        """Return whether the number of steps depends on a noisy count or second moment."""
        return problem.objective.bounds.total_weight is None or self.preconditioner is not None

    def tuned(self, problem: Problem, budget: Budget) -> NoisyGradient:
        """Return a copy with a preconditioner, if there are enough records for a second moment.

        No public fact says how ill-conditioned a table is. The moment costs a tenth of the noise's
        variance and saves up to nine tenths of the risk.
        """
        requested = SecondMoment()
        if not requested.pays(problem, budget, _most_counted(problem, budget)):
            return self
        try:
            requested.check(problem)
        except CannotSolve:
            return self
        return replace(self, preconditioner=requested)

    def _schedule(
        self,
        problem: Problem,
        budget: Budget,
        n_records: float,
        preconditioner: Preconditioner | None = None,
    ) -> DescentSchedule:
        """Return the schedule for this many records, in preconditioned coordinates if given."""
        whole = gaussian_multiplier(budget)
        problem = problem.with_wider_slope(1 / whole, n_records)
        smoothness, objective = n_records * smoothness_of(problem), problem.objective
        longest = objective.row_norm
        if preconditioner is not None:
            # For regression keep the declared row norm: a long test row must not be extrapolated
            # badly.
            longest = (
                longest if math.isfinite(objective.bounds.label_bound) else preconditioner.row_norm
            )
            smoothness = preconditioner.moment * slope_smoothness(problem)
            smoothness *= MOST_COUNTED if budget.relation.by_person else 1
            problem = preconditioner.problem(problem)
        clip = clip_of(problem, self.clip)
        noise = n_changed(budget.relation) * clip * whole
        # Averaging the last quarter of the steps leaves the noise of a quarter of the releases.
        ridge = problem.objective.regularization
        if ridge is None:
            ridge = problem.stabilizing_ridge(2 * noise, n_records)
        n_steps = self.n_steps or choose_steps(problem, noise * longest, ridge, smoothness)
        return DescentSchedule(
            problem,
            n_records,
            n_steps,
            clip,
            ridge,
            2 * noise,
            smoothness,
            objective,
            preconditioner,
        )

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Count the records if their number is private, then descend by the adapted schedule."""
        problem, budget = plan.problem, plan.budget
        steps = trace = "everything"
        if not self._adapts(problem):
            steps, trace = "steps", "trace"
        n, count = _most_counted(problem, budget), None
        noise = self._noise(problem, budget)
        if "count" in noise:
            count = ask_count(session, noise["count"], steps)
            n = count.n_records
        preconditioner = None
        if self.preconditioner is not None and self.preconditioner.pays(problem, budget, n):
            preconditioner = self.preconditioner.ask(session, steps, problem, budget, n)
            noise = self._noise(problem, budget, self.preconditioner)
        schedule = self._schedule(problem, budget, n, preconditioner)
        each = gaussian_rest(noise["steps"], times=schedule.n_steps)
        session.decide("number of steps", schedule.n_steps)
        std = NoisySum(_gradient(schedule, np.zeros(problem.shape)), each).noise_std(session.facts)
        step, momentum = 1 / (schedule.smoothness + schedule.ridge), growing_momentum
        if self.pace is not None:
            step, momentum = self.pace.step(std, schedule.n_steps), self.pace.constant
        w = _descend(schedule, session, steps, each, problem, step, momentum)
        bound = schedule.problem.objective.loss.lipschitz
        if preconditioner is not None:
            return Solved(preconditioner.coordinates.of(w), count=count, slope_bound=bound)
        law, risk = schedule.law(std, step), None
        if "trace" in noise:
            w, risk = shrunk(w, law, session, noise["trace"], trace, n)
        return Solved(w, law, risk=risk, count=count, slope_bound=bound)

    def _noise(
        self, problem: Problem, budget: Budget, moment: SecondMoment | None = None
    ) -> dict[str, GaussianNoise]:
        """Return the noise of each query, and of all steps as if they were one release.

        If a second moment was released, its share replaces that of the trace.
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
        """Describe the noise of a step."""
        settings = DescentSettings.of(plan)
        steps = self._noise(plan.problem, plan.budget)["steps"]
        each = gaussian_rest(steps, times=settings.n_steps)
        std = number(each.multiplier * n_changed(plan.budget.relation) * settings.clip)
        return f"Gaussian noise of standard deviation {std} at each of {settings.n_steps:,} steps."


def descend_preconditioned(
    problem: Problem,
    budget: Budget,
    session: Session,
    slot: str,
    preconditioner: Preconditioner,
    n_records: float,
    whole: GaussianNoise,
) -> tuple[Array, float]:
    """Return weights from steps in preconditioned coordinates, and the loss's slope bound.

    All steps together cost no more than one release with the noise ``whole``.
    """
    schedule = NoisyGradient()._schedule(problem, budget, n_records, preconditioner)
    noise = gaussian_rest(whole, times=schedule.n_steps)
    session.decide("number of steps", schedule.n_steps)
    step = 1 / (schedule.smoothness + schedule.ridge)
    w = _descend(schedule, session, slot, noise, problem, step)
    return preconditioner.coordinates.of(w), schedule.problem.objective.loss.lipschitz


def _gradient(schedule: DescentSchedule, at: Array) -> Gradient | PreconditionedGradient:
    """Return the sum-of-clipped-gradients statistic at a point."""
    preconditioner = schedule.preconditioner
    if preconditioner is None:
        return Gradient(schedule.objective, schedule.clip, schedule.n_records, at)
    return PreconditionedGradient(
        schedule.objective, preconditioner.coordinates, preconditioner.shrinks, schedule.clip, at
    )


def _descend(
    schedule: DescentSchedule,
    session: Session,
    slot: str,
    noise: GaussianNoise,
    problem: Problem,
    step: float,
    momentum: Callable[[int], float] = growing_momentum,
) -> Array:
    """Take all steps along noisy gradients; return the average of the last quarter."""
    feasible, n_steps = problem.objective.feasible, schedule.n_steps
    if schedule.preconditioner is not None:
        session = session.on(Measured(schedule.preconditioner.coordinates))
    w = feasible.project(np.zeros(problem.shape))
    velocity = np.zeros_like(w)
    total, first = np.zeros_like(w), (3 * n_steps) // 4
    for t in range(n_steps):
        at = w + momentum(t) * velocity
        noisy = np.asarray(session.ask(NoisySum(_gradient(schedule, at), noise), slot))
        next_point = feasible.project(at - step * (noisy + schedule.pull(at)))
        velocity, w = next_point - w, next_point
        if t >= first:
            total += w
    return total / (n_steps - first)


def _most_counted(problem: Problem, budget: Budget) -> float:
    """Return the largest number of counted records; a person counts for MOST_COUNTED records."""
    return float(problem.n_records * (MOST_COUNTED if budget.relation.by_person else 1))


def _shrinks(problem: Problem, budget: Budget) -> bool:
    """Return whether weights are shrunk; a person's part of the Hessian trace is not bounded."""
    return can_shrink(problem) and not budget.relation.by_person
