"""Problems, plans and mechanisms: what a mechanism is given, and what it returns.

The law of an estimate: let w0 be the true weights, H the Hessian of the losses at w0 and g the
records' gradient. Then

    w = P(H) (H w0 - g + e),   g and e with mean 0

to first order (docs/proofs/inference.md, section 2). A law consists of P and the covariance of the
noise e, in the eigenbasis of H and for any H. It holds only released or planned values.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import ClassVar, Self

import numpy as np

from tacit.arrays import Array
from tacit.engine import norm_in_words, plan_lines
from tacit.erm.objective import Objective
from tacit.privacy import Budget, Event, Relation
from tacit.queries import Count, Facts, Noise, NoisySum, Session, Slot


@dataclass(frozen=True, eq=False)
class Law(ABC):
    """The asymptotic law of a mechanism's weights, as a function of the Hessian.

    The last axis of arguments is over the eigenbasis of H; any axes may precede it.
    """

    objective: Objective  # as minimised: its loss may be adapted to the number of records
    slope_limit: float  # clip of a record's d1
    gram: Array | None = None  # noisy H, if the mechanism released it
    ridge: float = 0.0

    def share(self, eigenvalues: Array) -> Array:
        """Return h P(h) = h / (h + ridge) for eigenvalues h of H: the share of the truth."""
        return eigenvalues / (eigenvalues + self.ridge)

    @abstractmethod
    def noise(self, eigenvalues: Array, truth: Array) -> Array:
        """Return the covariance matrix of e, given the weights without ridge."""

    def variance(self, eigenvalue: float) -> float:
        """Return the variance that noise gives a weight along an eigenvector, for a truth of 0."""
        h = np.array([eigenvalue])
        return float(self.noise(h, np.zeros(1))[0, 0] * (self.share(h)[0] / eigenvalue) ** 2)


@dataclass(frozen=True, eq=False)
class PerturbedMinimizerLaw(Law):
    """Law of a perturbed minimiser: P(h) = 1 / (h + ridge), e perturbation and output noise."""

    noise_std: float = 0.0
    output_std: float = 0.0

    def noise(self, eigenvalues: Array, truth: Array) -> Array:
        """Return s^2 plus the output noise, which acts like h + ridge times it on the gradient."""
        output = self.output_std * (eigenvalues + self.ridge)
        return _diagonal(self.noise_std**2 + output**2)


@dataclass(frozen=True, eq=False)
class DescentLaw(Law):
    """Law of noisy gradient descent with momentum t / (t + 3) and the last quarter averaged."""

    noise_std: float = 0.0
    n_steps: int = 1
    step: float = 1.0

    def share(self, eigenvalues: Array) -> Array:
        """Return h times the sum of the effects of all steps' gradients."""
        result: Array = eigenvalues * self._effects(eigenvalues)[0]
        return result

    def noise(self, eigenvalues: Array, truth: Array) -> Array:
        """Return s^2 (sum of squared effects) / (sum of effects)^2."""
        total, squares = self._effects(eigenvalues)
        return _diagonal(self.noise_std**2 * squares / total**2)

    def _effects(self, eigenvalues: Array) -> tuple[Array, Array]:
        """Return sum k_t and sum k_t^2, with k_t the effect of a unit in step t's gradient.

            w_t+1 = (1 - step a) (w_t + m_t v_t) + step (c - noise_t),  v_t+1 = w_t+1 - w_t

        with a = h + ridge. k_t is the effect on the averaged weights, computed backwards by the
        chain rule.
        """
        a, first = eigenvalues + self.ridge, (3 * self.n_steps) // 4
        on_w, on_v, total, squares = (np.zeros_like(a) for _ in range(4))
        for t in reversed(range(self.n_steps)):
            both = on_w + on_v + (1 / (self.n_steps - first) if t >= first else 0.0)
            effect = self.step * both
            total, squares = total + effect, squares + effect**2
            on_point = (1 - self.step * a) * both
            on_w, on_v = on_point - on_v, t / (t + 3.0) * on_point
        return total, squares


@dataclass(frozen=True, eq=False)
class MomentLaw(Law):
    """Law of noisy moments: (G + N + ridge) w = G w0 - g + e, so that the noise is e - N w0.

    Its eigenvalues are those of G + N.
    """

    moment_std: float = 0.0
    gram_std: float = 0.0

    def noise(self, eigenvalues: Array, truth: Array) -> Array:
        """Return s^2 I + t^2 (||w0||^2 I + w0 w0') / 2; diagonal entries of N have variance t^2."""
        size = np.sum(truth**2, axis=-1)[..., None, None]
        outer = truth[..., :, None] * truth[..., None, :]
        one = np.eye(truth.shape[-1])
        result: Array = self.moment_std**2 * one + self.gram_std**2 * (size * one + outer) / 2
        return result


def _diagonal(variances: Array) -> Array:
    result: Array = variances[..., :, None] * np.eye(variances.shape[-1])
    return result


@dataclass(frozen=True, eq=False)
class Errors:
    """Weights corrected for the ridge, and their standard errors from noise and sampling."""

    estimates: Array
    standard_errors: Array


@dataclass(frozen=True)
class Counted:
    """A noisy number of records, and a lower bound on the true number.

    Use ``at_least`` for decisions that are harmed by an overestimate. ``answer`` is the count as it
    was released, with noise of standard deviation ``std``.
    """

    n_records: float
    at_least: float
    answer: float
    std: float

    @property
    def may_be_none(self) -> bool:
        """Whether the released count cannot be told from that of no records at all.

        Of no records it is so in 39 cases of 40.
        """
        return self.answer <= 2 * self.std


@dataclass(frozen=True, eq=False)
class Solved:
    """Released weights, their law, their standard errors and their risk.

    ``risk`` is the excess risk per record, estimated from the releases. ``count`` is the released
    number of records, if the plan has one. ``slope_bound`` is the bound on the derivative of the
    loss that was minimised, None for the plan's own: it follows from the plan and ``count``.
    """

    weights: Array
    law: Law | None = None
    errors: Errors | None = None
    risk: float | None = None
    count: Counted | None = None
    slope_bound: float | None = None


# Share of mu^2 for a single number, a count or a trace: a tenth of the mu.
NUMBER_SHARE = 0.01
# Share of a pure epsilon for a single number; pure epsilons add up linearly.
PURE_SHARE = 1 / 50


def ask_count(session: Session, noise: Noise, slot: str) -> Counted:
    """Ask for the number of records; a count below its own noise is raised to the noise."""
    query = NoisySum(Count(), noise)
    std = query.noise_std(session.facts)
    answer = float(np.asarray(session.ask(query, slot)))
    n_records = max(answer, std, 1.0)
    # two standard deviations: one count in forty is further above the truth
    return Counted(n_records, max(n_records - 2 * std, 1.0), answer, std)


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
    used. ``declared_ridge`` says that the ridge was given, and is not adapted to the records.

    Examples
    --------
    >>> from tacit.erm import Objective
    >>> from tacit.erm.plan import Problem
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
    declared_ridge: bool = False

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

    def typical_eigenvalue(self, n_records: float) -> float:
        """Return a typical eigenvalue of the Hessian: its trace divided by the effective rank."""
        return TYPICAL_CURVATURE * n_records * self.objective.hessian_trace / self.directions

    def stabilizing_ridge(self, noise_std: float, n_records: float) -> float:
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
        return max(needed - self.typical_eigenvalue(n_records), 0.0)

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
        h, explained = self.typical_eigenvalue(n_records), TYPICAL_SHARE * loss * n_records
        of_constant = h * self.directions * (bounds.intercept / bounds.total_norm) ** 2

        def risk(scale: float) -> float:
            std = noise_std * bounds.length(scale)
            held = self.held(std, ridge * bounds.length(scale) ** 2, scale, n_records)
            noise = self.directions * h * (std / scale) ** 2 / 2
            rows = (noise + held**2 * explained) / (h + held) ** 2
            return float(rows + objective.n_outputs * std**2 / (2 * of_constant))

        return float(min(ROW_SCALES, key=risk))

    def held(self, noise_std: float, ridge: float, scale: float, n_records: float) -> float:
        """Return the ridge on scaled rows' weights: `stabilizing_ridge`, or their own if greater.

        Their own ridge, ridge / scale^2, is required by the event. It is rounded up, so that
        scale^2 times it is no less than the ridge (`tacit.queries.minimizer.least_ridge`).
        """
        own = ridge / scale**2 * _UP if scale < 1.0 else ridge
        return max(self.stabilizing_ridge(noise_std / scale, n_records), own)

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
        h = self.typical_eigenvalue(n) * TYPICAL_SPECTRUM
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
    >>> from tacit.erm import Objective, choose_plan
    >>> from tacit.erm.plan import Problem
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
