"""Learn by betting on noisy coins (BANCO), without a learning rate.

A bettor with fraction v of its wealth on every coin would have exp(v x - v^2 y) after gains x and
variance y. BANCO holds a mixture of such bettors; the magnitude is the mixture's derivative in x.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit import checks
from tacit.local._compiled import compilable
from tacit.local.learners.base import Array, Step, checked_report, weight_of_newest
from tacit.local.sanitizers.base import Tail

# Weights are exp(log magnitude): e^50 is beyond any model, and its square is finite.
LARGEST_LOG = 50.0
# Widths of the integrand beyond which exp(-36) is below the last digit.
_WIDEST = 6.0
_TINY = 1e-300
# The series for erfi has about z^2 e terms: a hundred here.
_LARGEST_SERIES = 6.0
_N_NODES = 40
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_N_NODES)


@compilable
def log_uniform_magnitude(x: float, y: float, a: float) -> float:
    """Return log m for bettors spread evenly over [-a, a], the poster's mixture, x > 0.

        m = (1 / 2a) integral_{-a}^{a} v exp(v x - v^2 y) dv

    By quadrature, at any x, y and a: the closed form, a difference of error functions, loses all
    its digits where a sqrt(y) is small or x is far above 2 a y.
    """
    return _log_integral(x, y, a, 1) - math.log(a)


@compilable
def log_scale_free_magnitude(x: float, y: float, a: float) -> float:
    """Return log m for bettors of density 1 / (pi v^2) on [-a, a], x > 0.

        m = (2 / pi) integral_0^a sinh(v x) exp(-v^2 y) dv / v   ->   erfi(x / (2 sqrt y)),  a -> oo

    This mixture has no scale of its own: it costs no log T (docs/proofs/banco.md). If a is so
    far beyond the integrand's peak that less than exp(-36) is cut off, m is erfi, summed from a
    series with positive terms; otherwise by quadrature.
    """
    root = math.sqrt(y)
    z = x / (2.0 * root)
    if z <= _LARGEST_SERIES and a * root - z >= _WIDEST:
        return math.log(max(_erfi(z), _TINY))
    return _log_integral(x, y, a, -1) + math.log(2.0 / math.pi)


@compilable
def _erfi(z: float) -> float:
    """Return (2 / sqrt(pi)) sum_n z^(2n+1) / (n! (2n+1)), z >= 0."""
    square = z * z
    power = z  # z^(2n+1) / n!
    total = z
    n = 0
    while power > 2.0**-55 * total:
        n += 1
        power *= square / n
        total += power / (2 * n + 1)
    return total * (2.0 / math.sqrt(math.pi))


@compilable
def _log_integral(x: float, y: float, a: float, power: int) -> float:
    """Return log of the integral over [0, a] of v^power sinh(v x) exp(-v^2 y).

    By Gauss-Legendre where the integrand is not negligible: v x - v^2 y is below its peak by at
    least (v - peak)^2 y and, if it still increases at a, by (a - v) (x - 2 a y) as well.
    """
    peak = min(x / (2.0 * y), a)
    top = peak * x - peak * peak * y
    slope = max(x - 2.0 * a * y, 0.0)
    width = _WIDEST / math.sqrt(y)
    high = min(peak + width, a)
    low = max(peak - min(width, _WIDEST**2 / max(slope, _TINY)), 0.0)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    total = 0.0
    for i in range(_N_NODES):
        v = middle + half * _NODES[i]
        # sinh(v x) = e^{v x} (1 - e^{-2 v x}) / 2
        # v x - v^2 y = top - (peak - v) (x - 2 peak y + (peak - v) y), without cancellation
        drop = peak - v
        body = -0.5 * math.exp(-drop * (slope + drop * y)) * math.expm1(-2.0 * v * x)
        total += _WEIGHTS[i] * (body * v if power == 1 else body / v)
    return top + math.log(max(half * total, _TINY))


# The largest v with log(1 + u) >= u - u^2 for all |u| <= v, to four digits, rounded down.
LARGEST_BET = 0.6838
LARGEST_UNIT = 1e100


class BancoState(NamedTuple):
    """The state of BANCO.

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
    """The parameters of BANCO: variance per report, the largest bet, the unit, the averaging."""

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
    updated = state.direction + report / math.sqrt(max(energy, _TINY))
    direction = updated / max(math.sqrt(np.dot(updated, updated)), 1.0)
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
    """Shared code of both forms of BANCO; they differ in the mixture and in ``unit``."""

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
        """The learner's parameters."""
        # E exp(v s - v^2 (variance/2 + norm^2)) <= exp(v g - v^2 norm^2) <= 1 + v g  needs both
        # limits on v.
        largest_bet = min(LARGEST_BET / self.norm, self.tail.largest_rate)
        variance = self.tail.variance / 2.0 + self.norm**2
        return BancoSettings(variance, largest_bet, self.unit, self.averaging)

    def init(self, n_features: int) -> BancoState:
        """Return the state before any report."""
        d = checks.count("n_features", n_features)
        return BancoState(0, 0.0, 0.0, np.zeros(d), np.zeros(d), np.zeros(d))

    def update(self, state: BancoState, report: Array) -> BancoState:
        """Return the state after another report."""
        after: BancoState = self.step(state, checked_report(report, state.point), self.settings)
        return after

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        largest_rate = None if math.isinf(self.tail.largest_rate) else self.tail.largest_rate
        return {
            "kind": self.kind,
            "tail": {"variance": self.tail.variance, "reach": largest_rate},
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

    with m the derivative of a mixture of bettors (`tacit.local.learners.banco`).

    Parameters
    ----------
    tail : Tail
        The tail of the noise along one direction; every sanitizer knows its own.
    norm : float, default=1.0
        The bound on the gradients' norm, before noise.
    unit : float, default=1.0
        The expected size of weights: a factor of two too large or too small hardly
        matters. Estimators set it from public facts.
    averaging : float, default=3.0
        The estimate gives point number i a weight of about i^averaging; 0 is the plain average of
        the theorem.

    Notes
    -----
    **Guarantee** (docs/proofs/banco.md): for ``averaging=0``, any w and n i.i.d. people, the
    expected excess loss is

        1.13 unit sqrt(c / n) + ||w|| max(3 sqrt(c L / n), 4.5 L / (a n)) + 3 ||w|| B / sqrt(n)
        c = variance / 2 + norm^2,   L = log(1 + ||w|| / unit),   a = min(0.6838 / norm, rate)

    at most, with B the root-mean-square norm of a report and rate = ``tail.largest_rate``, for
    ||w|| <= e^50 unit. For ``averaging`` = k the bound at a minimiser is at most 1 + k times that;
    in practice it is lower (benchmarks/results/local.md). States are finite for any number of
    reports.

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
    """BANCO as first published: a uniform mixture of bettors and the plain average.

    `Banco` learns faster with the same guarantee up to logarithms; this one is for
    reference. Parameters are as for `Banco`, but ``unit`` is the initial wealth: a length times a
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
