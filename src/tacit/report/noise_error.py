"""How far the noise alone may have moved a coefficient: what a plan, without data, can say.

Standard errors of the noise, not of sampling: they say how far the released number is from the
one that the same records would have given without noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.erm import (
    NoisyGradient,
    NoisySGD,
    ObjectivePerturbation,
    OutputPerturbation,
    Plan,
    SufficientStatistics,
)
from tacit.erm.objective import moved
from tacit.erm.sufficient_statistics import noise_norm
from tacit.privacy import Event, Gaussian, NonPrivate, PureEpsilon, Relation
from tacit.report.words import output_noise_std

_NO_BARS = "No error bars are shown: "


@dataclass(frozen=True)
class NoiseError:
    """The standard error of one weight, if known, and the sentence that must go with it."""

    std: float | None
    sentence: str
    is_bound: bool = False


def unknown(why: str) -> NoiseError:
    """Return that nothing can be said, and why."""
    return NoiseError(None, _NO_BARS + why)


def noise_error(plan: Plan | None, weight_norm: float | None) -> NoiseError:
    """Return the standard error that a plan's noise gives each weight.

    Parameters
    ----------
    plan
        What was run; None without noise.
    weight_norm
        The norm of all released weights, where they could be put together again.

    Examples
    --------
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.report.noise_error import noise_error
    >>> model = LogisticRegression(1.0, 0.0, classes=[0, 1], mechanism="output_perturbation")
    >>> error = noise_error(model.plan(20), None)
    >>> error.is_bound, error.std > 0
    (False, True)
    """
    if plan is None:
        return unknown("nothing is known of noise in these numbers.")
    mechanism = plan.mechanism
    if isinstance(mechanism, OutputPerturbation):
        return NoiseError(
            output_noise_std(plan),
            "Error bars are one standard deviation of the noise, known exactly: the same amount "
            "was added to every weight.",
        )
    if isinstance(mechanism, ObjectivePerturbation):
        return _tilted(plan)
    if isinstance(mechanism, SufficientStatistics):
        return _moments(plan, weight_norm)
    if isinstance(mechanism, NoisyGradient | NoisySGD):
        return unknown(
            "noise entered at every step, and how much of it the later steps took back depends "
            "on the records, which are private."
        )
    return unknown("this mechanism has no formula for what its noise does to a coefficient.")


def _tilted(plan: Plan) -> NoiseError:
    """Bound the effect of a random tilt b of the objective.

    The minimiser is a function of b whose derivative is -(H + lam I)^-1, with H >= 0 because the
    loss is convex, so it moves at most 1/lam times as far as b. For Gaussian b the Poincare
    inequality turns that into a bound on each weight's variance, (noise_std / lam)^2; it is
    attained where the records say nothing, H = 0. For sphere noise, whose covariance is
    (d + 1) r^2 I, the same holds to first order.
    """
    lam, dimension = plan.settings["regularization"], plan.problem.dimension
    if plan.budget.is_pure:
        std = plan.settings["noise_radius"] * math.sqrt(dimension + 1) / lam
    else:
        std = plan.settings["noise_std"] / lam
    return NoiseError(
        std,
        "Error bars show the most that the standard deviation of the noise can be. It is smaller "
        "for a feature about which many records speak; how much smaller depends on the records, "
        "which are private, so it is not stated.",
        is_bound=True,
    )


def _moments(plan: Plan, weight_norm: float | None) -> NoiseError:
    """Bound, roughly, the effect of noise e on X'y and N on X'X.

        w - w0 = (X'X + ridge + N)^-1 (e - N w0),  X'X + ridge >= noise_norm with confidence 95 %

    Every entry of e has std z R Y and every entry of N w at most s ||w||, s = z R^2; the least
    eigenvalue of N is near -s sqrt(2 d) (semicircle law), always above -noise_norm. The released
    w stands for w0. In the rare fit where N outweighs the ridge the inverse is close to singular,
    so that w has no standard deviation; the bar is for the others.
    """
    if weight_norm is None:
        return unknown(
            "the range of the labels was read off the data, and the noise depends on it."
        )
    objective, relation = plan.problem.objective, plan.budget.relation
    z, size, d = plan.settings["noise_multiplier"], objective.row_norm, plan.problem.dimension
    two = math.sqrt(2.0) if relation is Relation.REPLACE else 1.0
    on_entry = z * size**2 * two
    least = noise_norm(on_entry, d) - on_entry * math.sqrt(2 * d)
    on_moment = z * moved(relation) * size * objective.bounds.label_bound
    on_gram = on_entry * weight_norm
    return NoiseError(
        math.hypot(on_moment, on_gram) / least,
        "Error bars are roughly the most by which the noise moves a number in two fits of three: "
        "the records are assumed to say as little about a feature as the mechanism guards "
        "against. With many records it is far smaller.",
        is_bound=True,
    )


def mean_error(event: Event, row_norm: float, n_records: int | None, width: int) -> NoiseError:
    """Return the standard error of each coordinate of a released mean."""
    paid = event.would_be if isinstance(event, NonPrivate) else event
    if n_records is None:
        return unknown("the number of records is private, and the noise was divided by it.")
    reach = moved(event.relation) * row_norm / n_records
    sentence = "Error bars are one standard deviation of the noise, known exactly."
    if isinstance(paid, Gaussian):
        return NoiseError(reach * paid.noise_multiplier, sentence)
    if isinstance(paid, PureEpsilon):
        return NoiseError(reach / paid.epsilon * math.sqrt(width + 1), sentence)
    return unknown("nothing is known of noise in these numbers.")
