"""Learn by projected stochastic gradient descent, which needs a learning rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit import checks
from tacit.local._compiled import compilable
from tacit.local.learners.base import Array, Step, checked_report, weight_of_newest


class GradientDescentState(NamedTuple):
    """The state of gradient descent: ``point`` is the next question, ``estimate`` the average."""

    n_reports: int
    point: Array
    estimate: Array


class GradientDescentSettings(NamedTuple):
    """The parameters of gradient descent."""

    rate: float
    decay: float
    radius: float
    averaging: float


@compilable
def gradient_step(
    state: GradientDescentState, report: Array, settings: GradientDescentSettings
) -> GradientDescentState:
    """Return the state after a report: w <- project(w + rate n^-decay report)."""
    n = state.n_reports + 1
    updated = state.point + (settings.rate / n**settings.decay) * report
    length = math.sqrt(np.dot(updated, updated))
    if length > settings.radius:
        updated = updated * (settings.radius / length)
    share = weight_of_newest(n, settings.averaging)
    estimate = state.estimate + share * (state.point - state.estimate)
    return GradientDescentState(n, updated, estimate)


@dataclass(frozen=True)
class GradientDescent:
    """Projected stochastic gradient descent with averaging.

        w <- project(w + rate * n^-decay * report)   onto the ball of radius ``radius``

    Parameters
    ----------
    rate : float
        The learning rate. The best one depends on the unknown ||w*||; `Banco` needs none.
    decay : float, default=0.5
        0 for a constant rate, 0.5 for rate / sqrt(n).
    radius : float, default=inf
        The ball to which points are confined.
    averaging : float, default=3.0
        The estimate gives point number i a weight of about i^averaging; 0 is the plain average.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import GradientDescent
    >>> learner = GradientDescent(rate=0.5, decay=0.0)
    >>> learner.update(learner.init(2), np.array([1.0, -1.0])).point
    array([ 0.5, -0.5])
    """

    kind: ClassVar[str] = "gradient_descent"

    rate: float
    decay: float = 0.5
    radius: float = math.inf
    averaging: float = 3.0

    def __post_init__(self) -> None:
        checks.positive("rate", self.rate)
        if not checks.at_least("decay", self.decay, 0.0) <= 1.0:
            raise ValueError(f"decay must be in [0, 1], got {self.decay!r}.")
        checks.above_zero("radius", self.radius)
        checks.at_least("averaging", self.averaging, 0.0)

    @property
    def step(self) -> Step:
        """The update as a function of state, report and settings."""
        return gradient_step

    @property
    def settings(self) -> GradientDescentSettings:
        """The learner's parameters."""
        return GradientDescentSettings(self.rate, self.decay, self.radius, self.averaging)

    def init(self, n_features: int) -> GradientDescentState:
        """Return the state before any report."""
        d = checks.count("n_features", n_features)
        return GradientDescentState(0, np.zeros(d), np.zeros(d))

    def update(self, state: GradientDescentState, report: Array) -> GradientDescentState:
        """Return the state after another report."""
        return gradient_step(state, checked_report(report, state.point), self.settings)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return {
            "kind": self.kind,
            "rate": self.rate,
            "decay": self.decay,
            "radius": None if math.isinf(self.radius) else self.radius,
            "averaging": self.averaging,
        }
