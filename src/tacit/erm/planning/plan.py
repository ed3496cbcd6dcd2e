"""What will be run and what it will cost, made from public facts alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tacit.engine import norm_in_words, plan_lines
from tacit.erm.inference.estimator_law import Solved
from tacit.erm.objective import Objective
from tacit.privacy import Budget, Event, Relation
from tacit.queries import Count, Facts, Noise, NoisySum, Session, Slot

# The part of mu^2 for a number, a count or a trace: a tenth of the mu.
NUMBER_SHARE = 0.01
# The part for a number of a pure epsilon, which adds up as it is.
PURE_SHARE = 1 / 50


class Counted(NamedTuple):
    """A number of records that was released, and one that is likely not above it.

    Where fewer records than there seem to be do more harm, ``at_least`` is to go by.
    """

    n_records: float
    at_least: float


def ask_count(session: Session, noise: Noise, slot: str) -> Counted:
    """Ask for the number of records; never below the noise in it, which would say nothing."""
    query = NoisySum(Count(), noise)
    std = query.noise_std(session.facts)
    n_records = max(float(np.asarray(session.ask(query, slot))), std, 1.0)
    # two standard deviations: of forty counts one is further above the truth
    return Counted(n_records, max(n_records - 2 * std, 1.0))


Array = npt.NDArray[np.float64]

# Assumed where the number of records is private, for step counts and predictions only.
TYPICAL_N_RECORDS = 40_000
# Assumed mean square of a coefficient, in units of (score unit / row norm)^2.
TYPICAL_SQUARED_WEIGHT = 0.1
# Predictions assume that curvature is a third of the greatest, as where rows are shorter than
# they may be and slopes half saturated, that it differs tenfold between directions, and that half
# of what a model that knows nothing loses can be explained. Tables of many columns are never
# round: what counts happens in fifty directions at most, for every score.
TYPICAL_CURVATURE = 1 / 3
MOST_DIRECTIONS = 50
TYPICAL_SPECTRUM = 10.0 ** -((np.arange(10) + 0.5) / 10)
TYPICAL_SPECTRUM /= TYPICAL_SPECTRUM.mean()
TYPICAL_SHARE = 1 / 2
# From this mu n / d on slopes are let run further: the noise of a quarter of the label bound then
# costs 1e-4 of its square, a thousandth of what labels usually vary.
WIDENS_FROM = 16.0
# Noise may cost this share of what a model that knows nothing loses, before shrinking.
MAY_COST = 1 / 15
_UP = 1 + 2.0**-50  # more than the roundings of a few products
# How long rows may count beside the intercept's coordinate.
ROW_SCALES = tuple(float(2.0 ** (-i / 4)) for i in range(21))


class CannotSolve(ValueError):
    """The mechanism does not apply to this problem; the message says why and what does."""


@dataclass(frozen=True)
class Problem:
    """An objective and the public shape of the data.

    ``expected_records`` sharpens predictions where the number of records is private;
    ``even_ridge`` asks for weights as the laws of standard errors describe them: all held by one
    ridge, tilted by one noise and not shrunk; ``one_each`` says that of each person one record is
    used at most.

    Examples
    --------
    >>> from tacit.erm import Objective, Problem
    >>> from tacit.erm.losses import SoftmaxLoss
    >>> from tacit.records import Bounds
    >>> Problem(Objective(SoftmaxLoss(10), Bounds()), n_features=784).dimension
    7840
    """

    objective: Objective
    n_features: int
    expected_records: int | None = None
    even_ridge: bool = False
    one_each: bool = False

    @property
    def dimension(self) -> int:
        """The number of weights."""
        return self.objective.dimension(self.n_features)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return self.objective.shape(self.n_features)

    @property
    def n_records(self) -> int:
        """The public number of records, or a typical one, from which settings follow."""
        return self.objective.bounds.n_records or TYPICAL_N_RECORDS

    @property
    def n_predicted(self) -> int:
        """The number of records for which risk is predicted; no setting depends on it."""
        return self.expected_records or self.n_records

    @property
    def typical_norm(self) -> float:
        """The norm of w that predictions and default settings assume."""
        objective = self.objective
        unit = (
            objective.score_unit / objective.gradient_scale
        )  # a point has the size of a record itself
        guess = math.sqrt(TYPICAL_SQUARED_WEIGHT * self.dimension) * unit
        return min(guess, objective.feasible.radius(self.dimension))

    def facts(self, relation: Relation) -> Facts:
        """Return what is public of records, one of each person, under a relation."""
        return Facts(self.objective.bounds, self.n_features, relation)

    def with_regularization(self, regularization: float) -> Problem:
        """Return the same problem with lam set."""
        return replace(self, objective=self.objective.with_regularization(regularization))

    def columns(self, each: float, intercept: float) -> Array:
        """Return a number for every weight, another one for the intercept's."""
        numbers = np.full(self.shape, each)
        if self.objective.bounds.intercept:
            numbers[-1] = intercept
        return numbers

    def with_wider_slope(self, mu: float, n_records: float) -> Problem:
        """Return the problem for so many records: slopes may run further where noise is small.

        Slopes that saturate at k cost about (size of residuals / k)^4, and noise (k d / (mu n))^2:
        both together are least for k that grows like the cube root of mu n / d.
        """
        factor = self.widening(mu, n_records)
        return replace(
            self,
            objective=replace(self.objective, loss=self.objective.loss.with_wider_slope(factor)),
        )

    def widening(self, mu: float, n_records: float) -> float:
        """Return how much further than usual slopes may run for so many records."""
        return max(math.cbrt(mu * n_records / (WIDENS_FROM * self.directions)), 1.0)

    @property
    def directions(self) -> int:
        """How many directions of the weights matter, for predictions and default settings."""
        outputs = self.objective.n_outputs
        return min(self.dimension, outputs * MOST_DIRECTIONS)

    def curvature(self, n_records: float) -> float:
        """Return a linear model's typical curvature: the trace, spread over what matters."""
        return TYPICAL_CURVATURE * n_records * self.objective.hessian_trace / self.directions

    def steady_ridge(self, noise_std: float, n_records: float) -> float:
        """Return the ridge at which noise in the gradient does little harm, whatever is learned.

            T s^2 / 2 / (h + ridge)^2 = MAY_COST times the loss of knowing nothing

        T is the trace of a record's Hessian and h the curvature, even in all directions: where
        noise does most harm. The ridge is 0 where there are records enough.
        """
        objective = self.objective
        trace, loss = objective.hessian_trace, objective.loss.guess(objective.bounds)
        if loss is None or not math.isfinite(trace):
            return 0.0
        needed = noise_std * math.sqrt(trace / (2 * MAY_COST * loss))
        return max(needed - self.curvature(n_records), 0.0)

    def row_scale(self, noise_std: float, ridge: float, n_records: float) -> float:
        """Return how long rows count beside the intercept's coordinate, at most 1.

        Noise is proportional to the norm of both together. Where there are too few records to learn
        from rows, shorter ones leave more for the constant:

            (h v / 2 + lam^2 E) / (h + lam)^2 over the rows + v / (2 h) over the intercept

        is least, with v the noise's variance, lam the ridge that holds it and E what there is to
        explain. Noise and ridge are given for rows of full length.
        """
        objective, bounds = self.objective, self.objective.bounds
        loss = objective.loss.guess(bounds)
        if not bounds.intercept or loss is None or not math.isfinite(objective.hessian_trace):
            return 1.0
        h, explained = self.curvature(n_records), TYPICAL_SHARE * loss * n_records
        of_constant = h * self.directions * (bounds.intercept / bounds.total_norm) ** 2

        def risk(scale: float) -> float:
            std = noise_std * bounds.length(scale)
            held = self.held(std, ridge * bounds.length(scale) ** 2, scale, n_records)
            noise = self.directions * h * (std / scale) ** 2 / 2
            rows = (noise + held**2 * explained) / (h + held) ** 2
            return float(rows + objective.n_outputs * std**2 / (2 * of_constant))

        return float(min(ROW_SCALES, key=risk))

    def held(self, noise_std: float, ridge: float, scale: float, n_records: float) -> float:
        """Return the ridge on weights of rows that count so long: the steady one, or their own.

        The latter, ridge / scale^2, is what the event of such rows asks for; rounded up, so that
        scale^2 times it is no less than the ridge (`perturbs_objective.least_ridge`).
        """
        own = ridge / scale**2 * _UP if scale < 1.0 else ridge
        return max(self.steady_ridge(noise_std / scale, n_records), own)

    def risk_of_noise(self, squared_noise: float, regularization: float) -> float:
        """Predict the excess risk per record of a gradient off by noise and ridge.

            sum over directions of (h v / 2 + lam^2 e) / (h + lam)^2 / n

        with v the noise's variance and e what there is to explain, both for one direction. On
        points, where curvature is known, (E||b||^2 + (lam ||w||)^2) / (2 n^2 h); for a loss without
        curvature ||w|| sqrt(E||b||^2 + (lam ||w||)^2) / n.
        """
        n, objective = self.n_predicted, self.objective
        loss = objective.loss.guess(objective.bounds)
        if loss is None or not math.isfinite(objective.hessian_trace):
            size = squared_noise + (regularization * self.typical_norm) ** 2
            if math.isfinite(objective.hessian_trace):
                return size / (2 * n * n * objective.hessian_trace)
            return self.typical_norm * math.sqrt(size) / n
        h = self.curvature(n) * TYPICAL_SPECTRUM
        explained = TYPICAL_SHARE * loss * n / self.directions
        lost = h * squared_noise / (2 * self.dimension) + regularization**2 * explained
        return self.directions / n * float((lost / (h + regularization) ** 2).mean())


@dataclass(frozen=True)
class NoiseError:
    """How far the noise alone may have moved a weight, if known, and the sentence that says so.

    The standard error of the noise, not of sampling: how far the released number is from the one
    that the same records would have given without noise.
    """

    std: float | None
    sentence: str
    is_bound: bool = False


def unknown(why: str) -> NoiseError:
    """Return that nothing can be said, and why."""
    return NoiseError(None, "No error bars are shown: " + why)


class Mechanism(ABC):
    """A way to place noise: plan from public facts, solve, and say what the noise did."""

    name: ClassVar[str]  # what ``mechanism=`` accepts
    title: ClassVar[str]  # the same in a heading
    is_named: ClassVar[bool] = True  # whether its name alone says what to run
    is_candidate: ClassVar[bool] = True  # whether "auto" considers it
    uses_moments: ClassVar[bool] = False  # whether it works from X'X and X'y alone
    counts_classes: ClassVar[bool] = False  # whether it weights classes by their counts
    has_law: ClassVar[bool] = False  # whether it says how its weights came about (`Law`)
    perturbs_objective: ClassVar[bool] = (
        False  # whether it minimises the objective with a random linear term
    )
    adds_up_people: ClassVar[bool] = False  # whether it bounds what a person's records add up to

    @abstractmethod
    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Return a plan within the budget, or raise CannotSolve."""

    def tuned(self, problem: Problem, budget: Budget) -> Mechanism:
        """Return what "auto" runs in its place, for what no public fact excludes."""
        return self

    def predicted(self, plan: Plan, problem: Problem) -> float:
        """Return the excess risk of a plan for as many records as a problem expects."""
        return self.plan(problem, plan.budget).excess_risk

    def slots(self, plan: Plan) -> dict[str, Slot]:
        """Return what a plan of this mechanism may ask, by name; together its event."""
        return {"weights": Slot(plan.event)}

    @abstractmethod
    def solve(self, plan: Plan, session: Session) -> Solved:
        """Carry out a plan of this mechanism: ask what was planned, and solve."""

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Return where a plan puts noise and how much, a sentence."""
        return f"{plan.reason[:1].upper()}{plan.reason[1:]}."

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Return the standard error that a plan's noise gives each weight.

        ``weight_norm`` is the norm of all released weights, where it is known.
        """
        return unknown("this mechanism has no formula for what its noise does to a coefficient.")


@dataclass(frozen=True)
class Settings:
    """What a mechanism chose, with types; a plan holds the same as numbers by name."""

    def shown(self) -> dict[str, float]:
        """Return the settings by name."""
        return asdict(self)

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return those of a plan; whole numbers are ints, even if a file held them as floats."""
        chosen = plan.settings
        whole = {field.name for field in fields(cls) if field.type == "int"}
        return cls(**{name: int(v) if name in whole else v for name, v in chosen.items()})


@dataclass(frozen=True)
class Plan:
    """A mechanism, its settings, its event and what it should achieve.

    Examples
    --------
    >>> from tacit.erm import Objective, Problem, choose_plan
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds
    >>> problem = Problem(Objective(LogisticLoss(), Bounds()), n_features=20)
    >>> choose_plan(problem, Budget(1.0, 1e-6)).mechanism.name
    'objective_perturbation'
    """

    mechanism: Mechanism
    problem: Problem
    budget: Budget
    event: Event
    excess_risk: float
    reason: str
    settings: Mapping[str, float] = field(default_factory=dict)
    rejected: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.mechanism.name

    @property
    def facts(self) -> Facts:
        """What is public of the records it is carried out on."""
        facts = self.problem.facts(self.budget.relation)
        return replace(facts, sums_by_person=True) if self._sums_by_person else facts

    @property
    def _sums_by_person(self) -> bool:
        return self.adds_up_people and self.budget.relation.by_person

    def slots(self) -> Mapping[str, Slot]:
        """Return what may be asked, by name."""
        return self.mechanism.slots(self)

    def solve(self, session: Session) -> Solved:
        """Carry it out."""
        return self.mechanism.solve(self, session)

    def noise_in_words(self, number: Callable[[float], str]) -> str:
        """Return where noise goes and how much, a sentence."""
        return self.mechanism.noise_in_words(self, number)

    @property
    def adds_up_people(self) -> bool:
        """Whether all of a person's records are used; with weights one of each is."""
        weighted = self.problem.objective.bounds.max_weight is not None
        return self.mechanism.adds_up_people and not (weighted or self.problem.one_each)

    def noise_error(self, weight_norm: float | None) -> NoiseError:
        """Return the standard error that the noise gives each weight."""
        return self.mechanism.noise_error(self, weight_norm)

    def __str__(self) -> str:
        risk = f"predicted excess risk per record: {self.excess_risk:.3g}"
        norm = norm_in_words(self.problem.objective.bounds.row_norm)
        relation = self.budget.relation
        whose = [f"protects {relation.subject}{_of_each(self)}"] if relation.by_person else []
        return "\n".join(plan_lines(self, risk, norm, *whose))


def _of_each(plan: Plan) -> str:
    if plan.adds_up_people:
        return "; what they add up to is clipped"
    return "; one record of each person is used"
