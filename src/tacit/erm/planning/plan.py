"""Define problems, mechanisms and plans; a plan is made from public facts alone."""

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

# Share of mu^2 for a single number, a count or a trace: a tenth of the mu.
NUMBER_SHARE = 0.01
# Share of a pure epsilon for a single number; pure epsilons add up linearly.
PURE_SHARE = 1 / 50


class Counted(NamedTuple):
    """A noisy number of records, and a lower bound on the true number.

    Use ``at_least`` for decisions that are harmed by an overestimate.
    """

    n_records: float
    at_least: float


def ask_count(session: Session, noise: Noise, slot: str) -> Counted:
    """Ask for the number of records; a count below its own noise is raised to the noise."""
    query = NoisySum(Count(), noise)
    std = query.noise_std(session.facts)
    n_records = max(float(np.asarray(session.ask(query, slot))), std, 1.0)
    # two standard deviations: one count in forty is further above the truth
    return Counted(n_records, max(n_records - 2 * std, 1.0))


Array = npt.NDArray[np.float64]

# Assumed if the number of records is private, for step counts and predictions only.
TYPICAL_N_RECORDS = 40_000
# Assumed mean square of a coefficient, in units of (score unit / row norm)^2.
TYPICAL_SQUARED_WEIGHT = 0.1
# Predictions make four assumptions about a table. The curvature is a third of its upper bound,
# since rows are shorter than allowed and gradients half saturated. It varies tenfold between
# directions. Half of the loss of a constant model can be explained. The effective rank is at most
# 50 per output.
TYPICAL_CURVATURE = 1 / 3
MOST_DIRECTIONS = 50
TYPICAL_SPECTRUM = 10.0 ** -((np.arange(10) + 0.5) / 10)
TYPICAL_SPECTRUM /= TYPICAL_SPECTRUM.mean()
TYPICAL_SHARE = 1 / 2
# Widen the loss's clipping point once mu n / d exceeds 16. Noise of a quarter of the label bound
# then costs 1e-4 of the bound's square, a thousandth of the typical variance of the labels.
WIDENS_FROM = 16.0
# The share of a constant model's loss that noise may cost, before shrinkage.
MAY_COST = 1 / 15
_UP = 1 + 2.0**-50  # covers the rounding of a few products
# Candidate factors for shrinking feature rows relative to the intercept.
ROW_SCALES = tuple(float(2.0 ** (-i / 4)) for i in range(21))


class CannotSolve(ValueError):
    """The mechanism does not apply to this problem; the message has the reason and the remedy."""


@dataclass(frozen=True)
class Problem:
    """An objective and the public shape of the data.

    ``expected_records`` sharpens predictions if the number of records is private. ``even_ridge``
    requests weights that the laws of standard errors describe: one ridge on all weights, one
    isotropic perturbation, no shrinkage. ``one_each`` says that at most one record per person is
    used.

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
        """The public number of records, or a typical one; settings are derived from it."""
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
        )  # on points, w has the size of a record
        guess = math.sqrt(TYPICAL_SQUARED_WEIGHT * self.dimension) * unit
        return min(guess, objective.feasible.radius(self.dimension))

    def facts(self, relation: Relation) -> Facts:
        """Return the public facts of the records, one per person, under a relation."""
        return Facts(self.objective.bounds, self.n_features, relation)

    def with_regularization(self, regularization: float) -> Problem:
        """Return a copy with lam set."""
        return replace(self, objective=self.objective.with_regularization(regularization))

    def columns(self, each: float, intercept: float) -> Array:
        """Return an array over the weights: ``each``, and ``intercept`` for the intercept."""
        numbers = np.full(self.shape, each)
        if self.objective.bounds.intercept:
            numbers[-1] = intercept
        return numbers

    def with_wider_slope(self, mu: float, n_records: float) -> Problem:
        """Return the problem with the loss's clipping point widened, if noise is small.

        Saturating the gradient at k costs about (size of residuals / k)^4, noise (k d / (mu n))^2.
        The sum is least for k that grows like the cube root of mu n / d.
        """
        factor = self.widening(mu, n_records)
        return replace(
            self,
            objective=replace(self.objective, loss=self.objective.loss.with_wider_slope(factor)),
        )

    def widening(self, mu: float, n_records: float) -> float:
        """Return the factor, at least 1, by which the loss's clipping point is widened."""
        return max(math.cbrt(mu * n_records / (WIDENS_FROM * self.directions)), 1.0)

    @property
    def directions(self) -> int:
        """The assumed effective rank of the weights, for predictions and default settings."""
        outputs = self.objective.n_outputs
        return min(self.dimension, outputs * MOST_DIRECTIONS)

    def curvature(self, n_records: float) -> float:
        """Return a linear model's typical curvature: the trace divided by the effective rank."""
        return TYPICAL_CURVATURE * n_records * self.objective.hessian_trace / self.directions

    def steady_ridge(self, noise_std: float, n_records: float) -> float:
        """Return the ridge that limits the harm of gradient noise to MAY_COST.

            T s^2 / 2 / (h + ridge)^2 = MAY_COST times the loss of a constant model

        T is the trace of a record's Hessian and h the curvature, equal in all directions: the case
        in which noise does most harm. With enough records the ridge is 0.
        """
        objective = self.objective
        trace, loss = objective.hessian_trace, objective.loss.guess(objective.bounds)
        if loss is None or not math.isfinite(trace):
            return 0.0
        needed = noise_std * math.sqrt(trace / (2 * MAY_COST * loss))
        return max(needed - self.curvature(n_records), 0.0)

    def row_scale(self, noise_std: float, ridge: float, n_records: float) -> float:
        """Return the factor on feature rows, relative to the intercept's coordinate, at most 1.

        Noise is proportional to the norm of row and intercept together. With too few records to
        learn from the features, shorter rows leave less noise on the intercept. The factor
        minimises

            (h v / 2 + lam^2 E) / (h + lam)^2 over the rows + v / (2 h) over the intercept

        with v the noise's variance, lam the ridge and E the explainable loss. Noise and ridge are
        given for rows at factor 1.
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
        """Return the ridge on the weights of scaled rows: `steady_ridge`, or their own if greater.

        Their own ridge, ridge / scale^2, is required by the event. It is rounded up, so that
        scale^2 times it is no less than the ridge (`tacit.queries.minimizer.least_ridge`).
        """
        own = ridge / scale**2 * _UP if scale < 1.0 else ridge
        return max(self.steady_ridge(noise_std / scale, n_records), own)

    def risk_of_noise(self, squared_noise: float, regularization: float) -> float:
        """Predict the excess risk per record from gradient noise and ridge.

            sum over directions of (h v / 2 + lam^2 e) / (h + lam)^2 / n

        v is the noise's variance and e the explainable loss, both for one direction. On points,
        whose curvature is known, the risk is (E||b||^2 + (lam ||w||)^2) / (2 n^2 h). For a loss
        without curvature it is ||w|| sqrt(E||b||^2 + (lam ||w||)^2) / n.
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
    """The standard error that the noise gives a weight, if known, and a sentence that explains it.

    This is the error of the noise, not of sampling: the distance between the released number and
    the number that the same records would give without noise.
    """

    std: float | None
    sentence: str
    is_bound: bool = False


def unknown(why: str) -> NoiseError:
    """Return a `NoiseError` without error bars, and the reason."""
    return NoiseError(None, "No error bars are shown: " + why)


class Mechanism(ABC):
    """An algorithm that adds noise: it plans from public facts, solves, and describes its noise."""

    name: ClassVar[str]  # the value of ``mechanism=``
    title: ClassVar[str]  # the name in headings
    key: ClassVar[str] = ""  # the word in saved files, if it is not the name; it never changes
    page: ClassVar[str] = ""  # its page in docs/mechanisms, if that is not named after it
    proof: ClassVar[str] = ""  # its page in docs/proofs, if that is not named after it
    suits: ClassVar[tuple[tuple[str, str], ...]] = ()  # tasks to choose it for, and the reason
    is_named: ClassVar[bool] = True  # whether the name alone configures it
    is_candidate: ClassVar[bool] = True  # whether "auto" considers it
    uses_moments: ClassVar[bool] = False  # whether it needs X'X and X'y only
    counts_classes: ClassVar[bool] = False  # whether it weights classes by their counts
    has_law: ClassVar[bool] = False  # whether it states the asymptotic law of its weights (`Law`)
    perturbs_objective: ClassVar[bool] = (
        False  # whether it minimises the objective with a random linear term
    )
    adds_up_people: ClassVar[bool] = False  # whether it bounds the sum over a person's records

    @abstractmethod
    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Return a plan within the budget, or raise CannotSolve."""

    def tuned(self, problem: Problem, budget: Budget) -> Mechanism:
        """Return the variant that "auto" runs, unless public facts exclude it."""
        return self

    def predicted(self, plan: Plan, problem: Problem) -> float:
        """Return the excess risk of a plan, for the number of records that a problem expects."""
        return self.plan(problem, plan.budget).excess_risk

    def slots(self, plan: Plan) -> dict[str, Slot]:
        """Return the slots of a plan by name; together they are its event."""
        return {"weights": Slot(plan.event)}

    @abstractmethod
    def solve(self, plan: Plan, session: Session) -> Solved:
        """Ask the planned queries and compute the weights."""

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Describe in a sentence where a plan adds noise, and how much."""
        return f"{plan.reason[:1].upper()}{plan.reason[1:]}."

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Return the standard error that a plan's noise gives each weight.

        ``weight_norm`` is the norm of all released weights, if known.
        """
        return unknown("this mechanism has no formula for the effect of noise on a coefficient.")


@dataclass(frozen=True)
class Settings:
    """The typed settings of a mechanism; a plan stores the same values as numbers by name."""

    def shown(self) -> dict[str, float]:
        """Return the settings by name."""
        return asdict(self)

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Read the settings of a plan; int fields become ints, even if a file stored floats."""
        chosen = plan.settings
        whole = {field.name for field in fields(cls) if field.type == "int"}
        return cls(**{name: int(v) if name in whole else v for name, v in chosen.items()})


@dataclass(frozen=True)
class Plan:
    """A mechanism, its settings, its event and its predicted risk.

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
        """The public facts of the records on which the plan is run."""
        facts = self.problem.facts(self.budget.relation)
        return replace(facts, sums_by_person=True) if self._sums_by_person else facts

    @property
    def _sums_by_person(self) -> bool:
        return self.adds_up_people and self.budget.relation.by_person

    def slots(self) -> Mapping[str, Slot]:
        """Return the slots by name."""
        return self.mechanism.slots(self)

    def solve(self, session: Session) -> Solved:
        """Run the plan in a session."""
        return self.mechanism.solve(self, session)

    def noise_in_words(self, number: Callable[[float], str]) -> str:
        """Describe in a sentence where noise is added, and how much."""
        return self.mechanism.noise_in_words(self, number)

    @property
    def adds_up_people(self) -> bool:
        """Whether all records of a person are used; with weights, one record per person is used."""
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
        return "; the sum over a person's records is clipped"
    return "; one record of each person is used"
