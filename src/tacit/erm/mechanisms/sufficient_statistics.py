"""Solve least squares from noisy moments: AdaSSP with joint Gaussian accounting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.erm.constraints import WholeSpace
from tacit.erm.objective import n_changed
from tacit.erm.plan import (
    CannotSolve,
    Mechanism,
    MomentLaw,
    NoiseError,
    Plan,
    Problem,
    Settings,
    Solved,
    unknown,
)
from tacit.privacy import Budget, Relation
from tacit.queries import Exactly, GaussianNoise, NoisySum, SecondMoment, Session, Slot, composed
from tacit.queries.moments import LabelMoment, LeastEigenvalue, unpack
from tacit.queries.noise import gaussian_rest, split_gaussian

_FAILURE = 0.05  # rho: probability that the chosen ridge is too small for the noise


@dataclass(frozen=True)
class MomentSettings(Settings):
    """The noise multiplier of each of the three releases."""

    noise_multiplier: float


@dataclass(frozen=True)
class SufficientStatistics(Mechanism):
    """Release X'X, X'y and the least eigenvalue with noise, then solve (Wang 2018, Algorithm 2).

    The three releases are accounted for together: each gets the multiplier sqrt(3) z, if one alone
    would need z. Sensitivities for R the row norm and Y the label bound:

        X'X (Frobenius)   R^2, or sqrt(2) R^2 under REPLACE
        X'y               R Y, or 2 R Y
        least eigenvalue  R^2 in either case (Weyl)

    With weights the moments are X'AX and X'Ay, A the diagonal of weights in [0, 1]. No sensitivity
    grows (docs/proofs/weights.md, section 4).

    Symmetric noise (G + G')/2 is calibrated to the Frobenius norm, because the upper triangle
    with off-diagonal entries scaled by sqrt(2) is an isometric copy of a symmetric matrix.

    Examples
    --------
    >>> from tacit.erm import Objective, Problem, SufficientStatistics
    >>> from tacit.erm.losses import SquaredLoss
    >>> from tacit.privacy import Budget
    >>> from tacit.records import Bounds
    >>> bounds = Bounds(row_norm=1.0, label_range=(-1.0, 1.0))
    >>> problem = Problem(Objective(SquaredLoss(), bounds), n_features=5)
    >>> plan = SufficientStatistics().plan(problem, Budget(1.0, 1e-6))
    >>> round(plan.settings["noise_multiplier"], 2)
    7.32
    """

    name = "sufficient_statistics"
    title = "Sufficient statistics"
    suits = (("least squares without clipped residuals, few columns", "one pass, closed form"),)
    has_law = True
    uses_moments = True

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Calibrate three equal releases."""
        objective = problem.objective
        if not objective.loss.is_square:
            raise CannotSolve(
                f"sufficient statistics exist for SquaredLoss, not {type(objective.loss).__name__}."
            )
        if not isinstance(objective.feasible, WholeSpace):
            raise CannotSolve("sufficient statistics solve without a constraint only.")
        if budget.is_pure:
            raise CannotSolve("sufficient statistics use Gaussian noise; set delta > 0.")
        if not math.isfinite(objective.bounds.label_bound):
            raise CannotSolve("declare label_range: labels are clipped to it.")

        whole = split_gaussian(budget, {"moments": None})["moments"]
        noise = gaussian_rest(whole, times=3)
        multiplier, event = noise.multiplier, noise.event(problem.facts(budget.relation))
        size = objective.row_norm * multiplier * n_changed(budget.relation)
        # The gradient at w has the noise of X'y, plus the noise of X'X times w.
        squared = (
            problem.dimension
            * size**2
            * (objective.bounds.label_bound**2 + (objective.row_norm * problem.typical_norm) ** 2)
        )
        ridge = objective.row_norm**2 * multiplier * math.sqrt(problem.dimension)
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=composed({"moments": Slot(event, Exactly(3))}),
            excess_risk=problem.risk_of_noise(squared, ridge),
            reason="one pass and a closed form; best if n is large and d is small",
            settings=MomentSettings(multiplier).shown(),
        )

    def slots(self, plan: Plan) -> dict[str, Slot]:
        """Return the slots of the three releases; all have the same multiplier."""
        noise = GaussianNoise(MomentSettings.of(plan).noise_multiplier)
        return {"moments": Slot(noise.event(plan.facts), Exactly(3))}

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Ask for the three statistics and solve a ridge regression."""
        objective, d, facts = plan.problem.objective, plan.problem.dimension, session.facts
        noise = GaussianNoise(MomentSettings.of(plan).noise_multiplier)
        eigenvalue = NoisySum(LeastEigenvalue(), noise)
        gram, cross = NoisySum(SecondMoment(), noise), NoisySum(LabelMoment(objective.loss), noise)
        moment = session.hold(SecondMoment())
        floor = float(session.ask(eigenvalue, "moments", of=moment))
        known = unpack(np.asarray(session.ask(gram, "moments", of=moment)), d)
        noisy_cross = np.asarray(session.ask(cross, "moments"))
        std = noise.multiplier * objective.row_norm**2
        two = math.sqrt(2.0) if facts.relation is Relation.REPLACE else 1.0
        # A lower confidence bound on the least eigenvalue (1.645: 95 %, one-sided), then the ridge
        # that covers the noise.
        sure = max(floor - 1.645 * std, 0.0)
        ridge = max(noise_norm(std * two, d) - sure, 0.0) + (objective.regularization or 0.0)
        ridge = max(ridge, 1e-9 * std)
        weights = np.linalg.solve(known + ridge * np.eye(d), noisy_cross)
        label, stds = objective.bounds.label_bound, (cross.noise_std(facts), gram.noise_std(facts))
        return Solved(weights, MomentLaw(objective, label, known, ridge, *stds))

    def expected_law(self, plan: Plan, n_records: float) -> MomentLaw:
        """Return the law of the solution; its ridge is that of records without information."""
        objective, d, facts = plan.problem.objective, plan.problem.dimension, plan.facts
        noise = GaussianNoise(MomentSettings.of(plan).noise_multiplier)
        gram, cross = NoisySum(SecondMoment(), noise), NoisySum(LabelMoment(objective.loss), noise)
        stds = cross.noise_std(facts), gram.noise_std(facts)
        return MomentLaw(
            objective, objective.bounds.label_bound, None, noise_norm(stds[1], d), *stds
        )

    def noise_in_words(self, plan: Plan, number: Callable[[float], str]) -> str:
        """Describe the noise on the moments."""
        multiplier = number(MomentSettings.of(plan).noise_multiplier)
        return f"Gaussian noise of {multiplier} times the sensitivity on each of three moments."

    def noise_error(self, plan: Plan, weight_norm: float | None) -> NoiseError:
        """Bound approximately the effect of noise e on X'y and of noise N on X'X.

            w - w0 = (X'X + ridge + N)^-1 (e - N w0),  X'X + ridge >= noise_norm, 95 % sure

        Every entry of e has std z R Y. Every entry of N w has std at most s ||w||, s = z R^2. The
        least eigenvalue of N is near -s sqrt(2 d) (semicircle law), always above -noise_norm. The
        released w is used in place of w0. In the rare fit in which N outweighs the ridge, the
        inverse is close to singular and w has no standard deviation; the error bar describes the
        other fits.
        """
        if weight_norm is None:
            return unknown(
                "the range of the labels was read off the data, and the noise depends on it."
            )
        objective, relation = plan.problem.objective, plan.budget.relation
        z, size = MomentSettings.of(plan).noise_multiplier, objective.row_norm
        two = math.sqrt(2.0) if relation is Relation.REPLACE else 1.0
        on_entry, d = z * size**2 * two, plan.problem.dimension
        least = noise_norm(on_entry, d) - on_entry * math.sqrt(2 * d)
        on_moment = z * n_changed(relation) * size * objective.bounds.label_bound
        return NoiseError(
            math.hypot(on_moment, on_entry * weight_norm) / least,
            "Error bars are roughly the most by which the noise moves a number in two fits of "
            "three, if the records inform about a feature as little as the mechanism guards "
            "against. With many records the effect is far smaller.",
            is_bound=True,
        )


def noise_norm(std: float, dimension: int) -> float:
    """Return the norm that symmetric noise of this std exceeds with probability at most rho."""
    return std * math.sqrt(dimension * math.log(2 * dimension * dimension / _FAILURE))
