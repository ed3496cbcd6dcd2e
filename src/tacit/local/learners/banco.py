"""BANCO: learning by betting on noisy coins, without a learning rate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit import checks
from tacit.local._compiled import compilable
from tacit.local.learners.base import Array, Step, checked_report, weight_of_newest
from tacit.local.learners.magnitude import (
    LARGEST_LOG,
    log_scale_free_magnitude,
    log_uniform_magnitude,
)
from tacit.local.tail import Tail

# The largest v with log(1 + u) >= u - u^2 for all |u| <= v, to four digits, rounded down.
LARGEST_BET = 0.6838
LARGEST_UNIT = 1e100
_TINY = 1e-300


class BancoState(NamedTuple):
    """Where BANCO stands.

    ``gain`` is the sum of <report, direction>, ``energy`` the sum of ||report||^2; ``point`` is
    where the next person is asked, ``estimate`` the average of the points asked at so far.
    """

    n_reports: int
    gain: float
    energy: float
    direction: Array
    point: Array
    estimate: Array


class BancoSettings(NamedTuple):
    """BANCO's numbers: variance per report, the largest bet, the unit, the averaging."""

    variance: float
    largest_bet: float
    unit: float
    averaging: float


@compilable
def _advanced(
    state: BancoState, report: Array, gain: float, log_magnitude: float, settings: BancoSettings
) -> BancoState:
    n = state.n_reports + 1
    energy = state.energy + np.dot(report, report)
    # Projected gradient ascent with the scale-free rate 1 / sqrt(energy), on the unit ball.
    moved = state.direction + report / math.sqrt(max(energy, _TINY))
    direction = moved / max(math.sqrt(np.dot(moved, moved)), 1.0)
    # The magnitude is odd in the gain.
    size = settings.unit * math.exp(min(log_magnitude, LARGEST_LOG))
    point = direction * (size if gain > 0.0 else -size)
    share = weight_of_newest(n, settings.averaging)
    estimate = state.estimate + share * (state.point - state.estimate)
    return BancoState(n, gain, energy, direction, point, estimate)


@compilable
def scale_free_step(state: BancoState, report: Array, settings: BancoSettings) -> BancoState:
    """Return the state after a report, betting with the scale-free mixture."""
    gain = state.gain + np.dot(report, state.direction)
    y = (state.n_reports + 1) * settings.variance
    log_magnitude = -math.inf
    if gain != 0.0:
        log_magnitude = log_scale_free_magnitude(abs(gain), y, settings.largest_bet)
    return _advanced(state, report, gain, log_magnitude, settings)


@compilable
def uniform_step(state: BancoState, report: Array, settings: BancoSettings) -> BancoState:
    """Return the state after a report, betting with the poster's uniform mixture."""
    gain = state.gain + np.dot(report, state.direction)
    y = (state.n_reports + 1) * settings.variance
    log_magnitude = -math.inf
    if gain != 0.0:
        log_magnitude = log_uniform_magnitude(abs(gain), y, settings.largest_bet)
    return _advanced(state, report, gain, log_magnitude, settings)


@dataclass(frozen=True)
class _Bettor(ABC):
    """What both forms of BANCO share; they differ in the mixture they bet with, and in ``unit``."""

    kind: ClassVar[str]

    tail: Tail
    norm: float = 1.0
    unit: float = 1.0
    averaging: float = 3.0

    def __post_init__(self) -> None:
        if not isinstance(self.tail, Tail):
            raise TypeError(f"tail must be a Tail, got {self.tail!r}; pass sanitizer.tail.")
        checks.positive("norm", self.norm)
        if checks.positive("unit", self.unit) > LARGEST_UNIT:
            raise ValueError(
                f"unit must be at most 1e100, got {self.unit!r}; state weights in larger units."
            )
        checks.at_least("averaging", self.averaging, 0.0)

    @property
    @abstractmethod
    def step(self) -> Step:
        """The update as a function of state, report and settings."""

    @property
    def settings(self) -> BancoSettings:
        """The learner's numbers."""
        # E exp(v s - v^2 (variance/2 + norm^2)) <= exp(v g - v^2 norm^2) <= 1 + v g  needs both
        # limits on v.
        largest_bet = min(LARGEST_BET / self.norm, self.tail.reach)
        variance = self.tail.variance / 2.0 + self.norm**2
        return BancoSettings(variance, largest_bet, self.unit, self.averaging)

    def init(self, n_features: int) -> BancoState:
        """Return the state before any report."""
        d = checks.count("n_features", n_features)
        return BancoState(0, 0.0, 0.0, np.zeros(d), np.zeros(d), np.zeros(d))

    def update(self, state: BancoState, report: Array) -> BancoState:
        """Return the state after one more report."""
        after: BancoState = self.step(state, checked_report(report, state.point), self.settings)
        return after

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        reach = None if math.isinf(self.tail.reach) else self.tail.reach
        return {
            "kind": self.kind,
            "tail": {"variance": self.tail.variance, "reach": reach},
            "norm": self.norm,
            "unit": self.unit,
            "averaging": self.averaging,
        }


@dataclass(frozen=True)
class Banco(_Bettor):
    """Betting on noisy coins (Jun and Orabona 2019): one pass, no learning rate.

    The point is a magnitude times a direction. The direction follows projected gradient ascent on
    the unit ball; the magnitude bets on the coins s = <report, direction>,

        point = unit * m(x, y) * direction,   x = sum of s,   y = n (variance / 2 + norm^2)

    with m the derivative of a mixture of bettors (`tacit.local.learners.magnitude`).

    Parameters
    ----------
    tail : Tail
        How noisy the reports are along one direction; every sanitizer knows its own.
    norm : float, default=1.0
        The bound on the gradients' norm, before noise.
    unit : float, default=1.0
        The size of weights that would be no surprise: twice too large or too small hardly
        matters. Estimators set it from public facts.
    averaging : float, default=3.0
        The answer gives point number i a weight of about i^averaging; 0 is the plain average of
        the theorem.

    Notes
    -----
    **Guarantee** (docs/proofs/banco.md): for ``averaging=0``, any w and n people drawn alike, the
    expected excess loss is

        1.13 unit sqrt(c / n) + ||w|| max(3 sqrt(c L / n), 4.5 L / (a n)) + 3 ||w|| B / sqrt(n)
        c = variance / 2 + norm^2,   L = log(1 + ||w|| / unit),   a = min(0.6838 / norm, reach)

    at most, B the root-mean-square norm of a report, for ||w|| <= e^50 unit. For ``averaging`` = k
    the bound at a minimiser is at most 1 + k times that; in practice it is lower
    (benchmarks/results/local.md). States are finite for any number of reports.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import Banco, Tail
    >>> learner = Banco(Tail(variance=1.0))
    >>> state = learner.init(2)
    >>> for _ in range(500):
    ...     state = learner.update(state, np.array([1.0, 0.0]) * (state.point[0] < 3.0))
    >>> bool(2.5 < state.estimate[0] < 4.0)
    True
    """

    kind = "banco"

    @property
    def step(self) -> Step:
        """The update, with the scale-free mixture."""
        return scale_free_step


@dataclass(frozen=True)
class PosterBanco(_Bettor):
    """BANCO as it was announced: a uniform mixture of bettors and the plain average.

    `Banco` learns faster with the same guarantee up to logarithms; this one is kept as the
    reference. Parameters as for `Banco`, but ``unit`` is the wealth to begin with: a length times a
    gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local import PosterBanco, Tail
    >>> learner = PosterBanco(Tail(variance=1.0))
    >>> learner.update(learner.init(2), np.ones(2)).n_reports
    1
    """

    kind = "poster_banco"

    averaging: float = 0.0

    @property
    def step(self) -> Step:
        """The update, with the uniform mixture."""
        return uniform_step
