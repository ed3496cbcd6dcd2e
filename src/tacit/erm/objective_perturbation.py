"""Objective perturbation: one ordinary minimisation of a randomly tilted objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tacit.erm.counting import COUNT_MULTIPLE, noisy_count
from tacit.erm.laws import Solved, TiltLaw
from tacit.erm.minimizer import minimize_certified
from tacit.erm.objective import Objective, moved, records_gradient
from tacit.erm.perturbed import Perturbed
from tacit.erm.plan import (
    CannotSolve,
    Mechanism,
    NoiseError,
    Plan,
    Problem,
    Settings,
    receipt,
)
from tacit.erm.sets import WholeSpace
from tacit.noise import Bounded, Norm, Release, Source, secure_source
from tacit.noise.minimizer import (
    GaussianPerturbation,
    SpherePerturbation,
    release_minimizer,
)
from tacit.privacy import (
    Budget,
    BudgetUnreachable,
    Composed,
    Event,
    Gaussian,
    PureEpsilon,
    PureObjective,
    Relation,
)
from tacit.privacy.calibration import least_noise
from tacit.privacy.gaussian_profile import gaussian_mu
from tacit.records import RecordSource

Array = npt.NDArray[np.float64]

# The output release's share: its mu is 1/50 of the whole (2e-4 of the cost), or 1/100 of epsilon.
_OUTPUT_MULTIPLE = 50.0
_OUTPUT_SHARE = 0.01
# Noise on the output, in units of (noise on the objective) / lam: far below what the
# perturbation itself does to w unless curvature exceeds 1e4 lam, where both are negligible.
_OUTPUT_NOISE = 1e-4

Covered = tuple[GaussianPerturbation | SpherePerturbation, float]


@dataclass(frozen=True)
class GaussianTilt(Settings):
    """The ridge, and b with independent Gaussian entries."""

    regularization: float
    noise_std: float
    count_noise_multiplier: float = 0.0  # 0 where the number of records is not asked for
    steadying: float = 0.0  # a further ridge, on every weight but the intercept's

    def main(self, objective: Objective, budget: Budget) -> Event:
        """Return the event that the loss declares for b."""
        event = objective.loss.perturbed_event(
            objective.sizes, self.regularization, self.noise_std, budget.relation
        )
        assert event is not None, "refused by _check_applies"
        return event

    def output(self, budget: Budget) -> Gaussian:
        """Return a Gaussian with a fiftieth of the mu."""
        multiplier = _OUTPUT_MULTIPLE / gaussian_mu(budget.epsilon, budget.delta)
        return Gaussian(multiplier, budget.relation)

    def squared_norm(self, dimension: int) -> float:
        """Return d s^2."""
        return self.noise_std**2 * dimension

    def std(self, dimension: int) -> float:
        """Return s."""
        return self.noise_std

    def in_words(self, number: Callable[[float], str]) -> str:
        """Return its standard deviation."""
        return f"Gaussian noise of standard deviation {number(self.noise_std)}"

    def count(self, relation: Relation) -> tuple[Gaussian, ...]:
        """Return the release of the number of records, if there is one."""
        asked = self.count_noise_multiplier
        return (Gaussian(asked, relation),) if asked else ()

    def following(self, problem: Problem, n_records: float) -> tuple[Problem, GaussianTilt]:
        """Return problem and noise for so many records: slopes may run further where they allow it.

        The event stays an upper bound: L and s grow by the same factor, and lam only grows.
        """
        objective = problem.objective
        wider = problem.widened(objective.lipschitz / self.noise_std, n_records).objective
        wide = wider.lipschitz / objective.lipschitz
        # rounded up, so that no float costs more than the plan
        std = self.noise_std * wide * (1 + 2.0**-50) if wide > 1.0 else self.noise_std
        ridge = max(self.regularization, _steep(objective) * std)
        problem = replace(problem, objective=wider.with_regularization(ridge))
        steadying = max(problem.steady_ridge(std, n_records) - ridge, 0.0)
        if problem.even_ridge:
            ridge, steadying = ridge + steadying, 0.0
            problem = problem.with_regularization(ridge)
        return problem, replace(self, noise_std=std, regularization=ridge, steadying=steadying)

    def covers(self, objective: Objective, other: GaussianTilt, wider: Objective) -> bool:
        """Return whether this noise on an objective costs at least what another on a wider does."""
        mu, wider_mu = objective.lipschitz / self.noise_std, wider.lipschitz / other.noise_std
        return (
            wider_mu <= mu
            and other.regularization >= self.regularization
            and wider.smoothness <= objective.smoothness
        )

    def perturbation(self, shape: tuple[int, ...], budget: Budget) -> Covered:
        """Return Gaussian noise on the objective and the output."""
        per_tau = 2 / self.regularization * self.output(budget).noise_multiplier
        return _covered(GaussianPerturbation, self, self.noise_std, per_tau, shape)


@dataclass(frozen=True)
class SphereTilt(Settings):
    """The ridge, and b with a density proportional to exp(-||b|| / r)."""

    regularization: float
    noise_radius: float

    def main(self, objective: Objective, budget: Budget) -> Event:
        """Return the pure event."""
        return PureObjective(
            objective.lipschitz,
            objective.hessian_trace,
            self.regularization,
            self.noise_radius,
            objective.loss.hessian_rank,
            budget.relation,
        )

    def output(self, budget: Budget) -> PureEpsilon:
        """Return a hundredth of epsilon."""
        return PureEpsilon(_OUTPUT_SHARE * budget.epsilon, budget.relation)

    def squared_norm(self, dimension: int) -> float:
        """Return d (d + 1) r^2."""
        return self.noise_radius**2 * dimension * (dimension + 1)

    def std(self, dimension: int) -> float:
        """Return sqrt(d + 1) r."""
        return self.noise_radius * math.sqrt(dimension + 1)

    def in_words(self, number: Callable[[float], str]) -> str:
        """Return its mean length."""
        return f"Noise of mean length {number(self.noise_radius)} a dimension"

    def count(self, relation: Relation) -> tuple[Gaussian, ...]:
        """Return that the number of records is not asked for."""
        return ()

    def perturbation(self, shape: tuple[int, ...], budget: Budget) -> Covered:
        """Return sphere noise on the objective and the output."""
        per_tau = 2 / self.regularization / self.output(budget).epsilon
        return _covered(SpherePerturbation, self, self.noise_radius, per_tau, shape)


Tilt = GaussianTilt | SphereTilt


def _covered(
    law: type[GaussianPerturbation] | type[SpherePerturbation],
    tilt: Tilt,
    noise: float,
    per_tau: float,
    shape: tuple[int, ...],
) -> Covered:
    """Return the noise, and the gradient norm tau to certify, for output noise of tau per_tau.

    A gradient norm of tau puts a point within tau / lam of the exact minimiser (strong convexity),
    so two such points differ by at most 2 tau / lam: the sensitivity of the output release. The
    float error of b counts as part of tau.
    """
    error = law(noise, 1.0, shape).error
    tau = max(_OUTPUT_NOISE * noise / tilt.regularization / per_tau, 2 * error)
    return law(noise, tau * per_tau, shape), tau - error


def _event(tilt: Tilt, objective: Objective, budget: Budget) -> Event:
    main, output = tilt.main(objective, budget), tilt.output(budget)
    return Composed((main, output, *tilt.count(budget.relation)))


def tilt_of(budget: Budget) -> type[GaussianTilt] | type[SphereTilt]:
    """Return the law of b that a budget calls for."""
    return SphereTilt if budget.is_pure else GaussianTilt


@dataclass(frozen=True)
class ObjectivePerturbation(Mechanism):
    """Minimise sum of losses + (lam/2)||w||^2 + <b, w> for random b, to a certified minimum.

    Pure budgets use sphere noise (Chaudhuri et al. 2011 with the tight Jacobian); others use
    Gaussian noise with the tightest proved profile for the loss: logistic, monotone margin
    losses, softmax, any generalised linear loss (docs/proofs/objective_perturbation.md).

    Guarantee: the event of the plan; the minimum is certified, or nothing is released.

    Examples
    --------
    >>> from tacit.erm import Objective, ObjectivePerturbation, Problem
    >>> from tacit.erm.losses import LogisticLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds
    >>> problem = Problem(Objective(LogisticLoss(), Bounds()), n_features=20)
    >>> plan = ObjectivePerturbation().plan(problem, Budget(1.0, 1e-5))
    >>> round(plan.settings["noise_std"], 2)
    3.75
    """

    name = "objective_perturbation"
    title = "Objective perturbation"
    has_law = True

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Choose lam if it was left open, calibrate the noise, say what is expected."""
        _check_applies(problem)
        lam = problem.objective.regularization
        if lam == 0.0:
            raise CannotSolve(
                "objective perturbation needs strong convexity, and regularization is 0; pass a "
                "positive one, or None to let theory choose."
            )
        _check_relation(problem, budget)
        open_ridge = lam is None and not budget.is_pure
        count = _count_multiplier(problem, budget) if open_ridge else 0.0
        if lam is None:
            lam = _choose_regularization(problem, budget)
        try:
            tilt = _least_tilt(problem.objective, budget, lam, count)
        except BudgetUnreachable as error:
            raise CannotSolve(
                f"regularization {lam:.3g} is too weak for epsilon {budget.epsilon:g}: what one "
                "record does to the curvature alone costs more. Raise regularization to "
                f"{problem.objective.hessian_trace / budget.epsilon:.3g} or above, or leave it "
                "None."
            ) from error
        problem = problem.with_regularization(lam)
        expected = problem, tilt
        if open_ridge and isinstance(tilt, GaussianTilt):
            expected = tilt.following(problem, problem.n_predicted)
            if problem.objective.bounds.total_weight is not None:
                problem, tilt = expected
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=_event(tilt, problem.objective, budget),
            excess_risk=_risk(*expected),
            reason="one release; the noise of one Gaussian mechanism; no step size"
            if not budget.is_pure
            else "one release with pure epsilon; no step size",
            settings=tilt.shown(),
        )

    def predicted(self, plan: Plan, problem: Problem) -> float:
        """Return the risk of what would follow from that count, or of what was planned."""
        tilt = tilt_of(plan.budget).of(plan)
        if isinstance(tilt, GaussianTilt) and tilt.count_noise_multiplier:
            return _risk(*tilt.following(problem, problem.n_predicted))
        return _risk(problem, tilt)

    def solve(self, plan: Plan, records: RecordSource, source: Source | None) -> Release[Array]:
        """Ask how many records there are if that is private, draw b, minimise, certify, release."""
        source = secure_source() if source is None else source
        problem, tilt, events = plan.problem, tilt_of(plan.budget).of(plan), list[Event]()
        # What is released is charged as planned: following the count only makes it cost less.
        event = Composed((tilt.main(problem.objective, plan.budget), tilt.output(plan.budget)))
        if isinstance(tilt, GaussianTilt) and tilt.count_noise_multiplier:
            asked = tilt.count_noise_multiplier
            counted = noisy_count(records, asked, plan.budget.relation, source)
            events.append(counted.event)
            planned = tilt
            problem, tilt = planned.following(problem, counted.n_records)
            if not planned.covers(plan.problem.objective, tilt, problem.objective):
                raise RuntimeError("the noise that follows the count costs more than was planned.")
        steadying = tilt.steadying if isinstance(tilt, GaussianTilt) else 0.0
        objective = problem.objective
        perturbation, tolerance = tilt.perturbation(problem.shape, plan.budget)

        def minimize(b: Array) -> Array:
            problem = Perturbed(objective, records, b, steadying)
            return minimize_certified(problem, np.zeros(plan.problem.shape), tolerance)[0]

        def implied(weights: Array) -> Bounded:
            total = records_gradient(objective, records, weights)
            reach = moved(plan.budget.relation) * objective.lipschitz
            return Bounded(total, reach * (1 + 1e-6), Norm.L2, plan.budget.relation)

        released = release_minimizer(perturbation, minimize, implied, event, source)
        law = None
        if isinstance(perturbation, GaussianPerturbation):
            stds = perturbation.noise_std, perturbation.output_std
            law = TiltLaw(objective, objective.loss.lipschitz, None, tilt.regularization, *stds)
        return Solved(released.value, receipt([*events, released.event], plan.event), law)

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Return how much noise the objective gets."""
        return f"{tilt_of(plan.budget).of(plan).in_words(number)} tilts the objective once."

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Bound the effect of a random tilt b of the objective.

        The minimiser is a function of b whose derivative is -(H + lam I)^-1, with H >= 0 because
        the loss is convex, so it moves at most 1/lam times as far as b. For Gaussian b the
        Poincare inequality turns that into a bound on each weight's variance, (noise_std / lam)^2;
        it is attained where the records say nothing, H = 0. For sphere noise, whose covariance is
        (d + 1) r^2 I, the same holds to first order.
        """
        tilt = tilt_of(plan.budget).of(plan)
        return NoiseError(
            tilt.std(plan.problem.dimension) / tilt.regularization,
            "Error bars show the most that the standard deviation of the noise can be. It is "
            "smaller for a feature that many records tell about; how much smaller depends on "
            "the records, which are private, so it is not stated.",
            is_bound=True,
        )


def _check_applies(problem: Problem) -> None:
    objective = problem.objective
    if not objective.is_linear_model:
        raise CannotSolve(
            f"{type(objective.loss).__name__} is not a function of <w, x>, so the proof of "
            "objective perturbation does not hold; use 'noisy_gradient'."
        )
    if not isinstance(objective.feasible, WholeSpace):
        raise CannotSolve(
            "objective perturbation is proved over the whole space; use 'noisy_gradient' for a "
            "constraint."
        )
    if not math.isfinite(objective.smoothness):
        raise CannotSolve(
            f"{type(objective.loss).__name__} has no bounded second derivative; use its smooth "
            "form, or 'noisy_gradient'."
        )
    if not math.isfinite(objective.lipschitz):
        raise CannotSolve(
            f"{type(objective.loss).__name__} has no bounded slope; use HuberLoss, which is the "
            "squared loss with clipped residuals, or 'sufficient_statistics'."
        )


def _check_relation(problem: Problem, budget: Budget) -> None:
    loss = problem.objective.loss
    if budget.relation is Relation.REPLACE and not (budget.is_pure or loss.monotone):
        raise CannotSolve(
            f"objective perturbation with {type(loss).__name__} is proved for ADD_REMOVE only; "
            "use 'noisy_gradient' under REPLACE, or a pure budget."
        )


def _least_tilt(objective: Objective, budget: Budget, lam: float, count: float) -> Tilt:
    def tilt(noise: float) -> Tilt:
        return SphereTilt(lam, noise) if budget.is_pure else GaussianTilt(lam, noise, count)

    def family(noise: float) -> Event:
        return _event(tilt(noise), objective, budget)

    return tilt(least_noise(family, budget, guess=objective.lipschitz))


def _risk(problem: Problem, tilt: Tilt) -> float:
    ridge = tilt.regularization + (tilt.steadying if isinstance(tilt, GaussianTilt) else 0.0)
    return problem.risk_of_noise(tilt.squared_norm(problem.dimension), ridge)


def _count_multiplier(problem: Problem, budget: Budget) -> float:
    """Return the noise with which records are counted, or 0 if their number is public."""
    if problem.objective.bounds.total_weight is not None:
        return 0.0
    return COUNT_MULTIPLE / gaussian_mu(budget.epsilon, budget.delta)


def _steep(objective: Objective) -> float:
    """Return R / (2 score unit): a ridge above this times the noise bounds what noise does.

    Along a direction that no record has, weights are noise over ridge, and scores then a few units.
    """
    return objective.row_norm / (2 * objective.score_unit)


def _quick_noise(objective: Objective, budget: Budget, lam: float) -> float:
    """Return the least noise of the main event alone, which has a closed form and is fast."""

    def family(noise: float) -> Event:
        tilt = tilt_of(budget)(lam, noise)
        if budget.is_pure:  # the whole event has a closed form too
            return _event(tilt, objective, budget)
        return Composed((tilt.main(objective, budget),))

    return least_noise(family, budget, guess=objective.lipschitz)


def _choose_regularization(problem: Problem, budget: Budget) -> float:
    """Return the lam with the least predicted risk, on a grid of factors of 1.25.

    Less regularization means more noise for the Jacobian, more means more bias; and lam is kept
    at least noise_std R / (2 score unit), where the noise alone moves scores by a few units.
    """
    objective = problem.objective
    unit = _steep(objective)
    free = objective.loss.free_regularization(objective.row_norm, budget.epsilon)
    if free is not None and not budget.is_pure:  # no need to search
        reach = moved(budget.relation) / gaussian_mu(budget.epsilon, budget.delta)
        return max(free, unit * reach * objective.lipschitz)
    best, best_risk, best_noise = math.nan, math.inf, math.nan
    least = objective.hessian_trace / budget.epsilon
    for lam in map(float, least * 1.25 ** np.arange(-4, 28)):
        try:
            noise = _quick_noise(objective, budget, lam)
        except BudgetUnreachable:
            continue
        squared = tilt_of(budget)(lam, noise).squared_norm(problem.dimension)
        risk = problem.risk_of_noise(squared, lam)
        if risk < best_risk:
            best, best_risk, best_noise = lam, risk, noise
        elif risk > 2 * best_risk:
            break
    if math.isnan(best):
        raise CannotSolve(f"no regularization meets {budget} with objective perturbation.")
    return best if budget.is_pure else max(best, unit * best_noise)
