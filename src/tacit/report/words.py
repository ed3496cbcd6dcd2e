"""Mechanisms and their plans in plain words."""

from __future__ import annotations

import math

from tacit.erm import (
    NoisyGradient,
    NoisySGD,
    ObjectivePerturbation,
    OutputPerturbation,
    Plan,
    SufficientStatistics,
)
from tacit.privacy import Composed, Event, Gaussian, Repeated
from tacit.report.numbers import short

_NAMES = {
    "objective_perturbation": "Objective perturbation",
    "output_perturbation": "Output perturbation",
    "noisy_gradient": "Noisy gradient descent",
    "noisy_sgd": "Noisy stochastic gradient descent",
    "sufficient_statistics": "Sufficient statistics",
    "exponential_mechanism": "Exponential mechanism",
}


def mechanism_title(name: str) -> str:
    """Return a mechanism's name as a heading has it.

    Examples
    --------
    >>> from tacit.report.words import mechanism_title
    >>> mechanism_title("noisy_gradient"), mechanism_title("my_own")
    ('Noisy gradient descent', 'My own')
    """
    plain = name.replace("_", " ")
    return _NAMES.get(name, plain[:1].upper() + plain[1:])


def noise_in_words(plan: Plan) -> str:
    """Return where a plan puts noise and how much, a sentence.

    Examples
    --------
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.report.words import noise_in_words
    >>> noise_in_words(LogisticRegression(1.0, 1e-6, classes=[0, 1]).plan(20))
    'Gaussian noise of standard deviation ... tilts the objective once.'
    """
    mechanism, settings = plan.mechanism, plan.settings
    if isinstance(mechanism, ObjectivePerturbation):
        if plan.budget.is_pure:
            radius = short(settings["noise_radius"], 3)
            return f"Noise of mean length {radius} a dimension tilts the objective once."
        std = short(settings["noise_std"], 3)
        return f"Gaussian noise of standard deviation {std} tilts the objective once."
    if isinstance(mechanism, OutputPerturbation):
        std = short(output_noise_std(plan), 3)
        return f"Noise of standard deviation {std} is added to each weight once."
    if isinstance(mechanism, NoisyGradient):
        steps, std = int(settings["n_steps"]), short(_step_noise(plan), 3)
        return f"Gaussian noise of standard deviation {std} at each of {steps:,} steps."
    if isinstance(mechanism, NoisySGD):
        std = short(settings["noise_multiplier"] * settings["clip"], 3)
        steps, share = int(settings["n_steps"]), short(100 * mechanism.sampling_rate, 3)
        return (
            f"Gaussian noise of standard deviation {std} at each of {steps:,} steps on {share} % "
            "of the records."
        )
    if isinstance(mechanism, SufficientStatistics):
        multiplier = short(settings["noise_multiplier"], 3)
        return f"Gaussian noise of {multiplier} times the sensitivity on each of three moments."
    return f"{plan.reason[:1].upper()}{plan.reason[1:]}."


def output_noise_std(plan: Plan) -> float:
    """Return the standard deviation that output perturbation adds to each weight."""
    sensitivity, dimension = plan.settings["sensitivity"], plan.problem.dimension
    if isinstance(plan.event, Gaussian):
        return sensitivity * plan.event.noise_multiplier
    # Sphere noise of scale s has E||noise||^2 = d (d + 1) s^2 over d weights.
    return sensitivity / plan.event.pure_epsilon() * math.sqrt(dimension + 1)


def _step_noise(plan: Plan) -> float:
    from tacit.erm.objective import moved

    step: Event = plan.event.events[-1] if isinstance(plan.event, Composed) else plan.event
    if not isinstance(step, Repeated) or not isinstance(step.event, Gaussian):
        return math.nan
    return step.event.noise_multiplier * moved(plan.budget.relation) * plan.settings["clip"]
