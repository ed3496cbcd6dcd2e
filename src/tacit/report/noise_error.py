"""How far the noise alone may have moved a number, as the plan or the event tells."""

from __future__ import annotations

import math

from tacit.erm import Plan
from tacit.erm.objective import moved
from tacit.erm.plan import NoiseError as NoiseError
from tacit.erm.plan import unknown as unknown
from tacit.privacy import Event, Gaussian, NonPrivate, PureEpsilon


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
    return plan.mechanism.noise_error(plan, weight_norm)


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
