"""Learn from reports alone: BANCO without a learning rate, gradient descent, and stored states.

A bettor with fraction v of its wealth on every coin would have exp(v x - v^2 y) after gains x and
variance y. BANCO holds a mixture of such bettors; the magnitude is the mixture's derivative in x.
"""

from __future__ import annotations

import dataclasses
import math
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.local._compiled import compilable
from tacit.local.sanitizers.base import Tail

Array = npt.NDArray[np.float64]

Step = Callable[[Any, Array, Any], Any]

# No sanitizer makes a larger report; below it, sums of squares are finite for any number of people.
LARGEST_REPORT = 1e100


class Learner(Protocol):
    """Learns from reports, each an unbiased estimate of a negative subgradient.

    ``step(state, report, settings)`` is one update in plain arithmetic that can be compiled;
    `update` calls it. States are immutable named tuples, so one can be stored,
    saved (`tacit.local.state_to_bytes`) and resumed.
    """

    @property
    def step(self) -> Step:
        """The update as a function of state, report and settings."""

    @property
    def settings(self) -> Any:
        """The learner's parameters, as a named tuple of floats."""

    def init(self, n_features: int) -> Any:
        """Return the state before any report."""

    def update(self, state: Any, report: Array) -> Any:
        """Return the state after another report."""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""


def checked_report(report: Array, point: Array) -> Array:
    """Check a report: as long as the point, finite, and not above `LARGEST_REPORT`."""
    checked = checks.vector("report", report, point.size)
    largest = float(np.max(np.abs(checked)))
    if largest > LARGEST_REPORT:
        raise ValueError(
            f"report has a coordinate of size {largest:g}, above {LARGEST_REPORT:g}: no sanitizer "
            "makes such a report; it is refused."
        )
    return checked


@compilable
def weight_of_newest(n: int, averaging: float) -> float:
    """Return the newest point's weight in the average of ``n`` points.

        (1 + k) / (n + k)

    k = 0 is the plain average; k > 0 gives point i a weight of about i^k, which forgets the
    start of learning (Shamir and Zhang 2013).
    """
    return (1.0 + averaging) / (n + averaging)


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

    with m the derivative of a mixture of bettors (`tacit.local.learners`).

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
    >>> from tacit.local.learners import Banco
    >>> from tacit.local import Tail
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
    >>> from tacit.local.learners import PosterBanco
    >>> from tacit.local import Tail
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
    >>> from tacit.local.learners import GradientDescent
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


_MAGIC = b"tacit-state"
_VERSION = 1
# The order is stored in files: append, never reorder.
_STATES: tuple[type[Any], ...] = (BancoState, GradientDescentState)
_SCALARS = {BancoState: 2, GradientDescentState: 0}
_VECTORS = {BancoState: 3, GradientDescentState: 2}
_HEADER = struct.Struct("<BBIQ")  # version, kind of state, number of features, number of reports
_LEARNERS: dict[str, Any] = {c.kind: c for c in (Banco, PosterBanco, GradientDescent)}


def state_to_bytes(state: Any) -> bytes:
    """Encode a learner's state as bytes, exactly.

    Examples
    --------
    >>> from tacit.local.learners import GradientDescent, state_from_bytes, state_to_bytes
    >>> state = GradientDescent(rate=1.0).init(3)
    >>> state_from_bytes(state_to_bytes(state)).n_reports
    0
    """
    kind = type(state)
    if kind not in _STATES:
        raise TypeError(f"state must be a learner's state, got {kind.__name__}.")
    fields = tuple(state)
    header = _HEADER.pack(_VERSION, _STATES.index(kind), state.point.size, state.n_reports)
    scalars = np.array(fields[1 : 1 + _SCALARS[kind]], dtype="<f8").tobytes()
    vectors = b"".join(np.asarray(v, dtype="<f8").tobytes() for v in fields[1 + _SCALARS[kind] :])
    body = _MAGIC + header + scalars + vectors
    return body + struct.pack("<I", zlib.crc32(body))


def state_from_bytes(data: bytes) -> Any:
    """Decode the bytes of `state_to_bytes`; refuse anything else with a reason.

    Examples
    --------
    >>> from tacit.local.learners import state_from_bytes
    >>> state_from_bytes(b"something else")
    Traceback (most recent call last):
    ...
    ValueError: not a tacit learner state: it does not begin with its mark.
    """
    start = len(_MAGIC) + _HEADER.size
    if data[: len(_MAGIC)] != _MAGIC:
        raise ValueError("not a tacit learner state: it does not begin with its mark.")
    if len(data) < start + 4:
        raise ValueError(f"the state is truncated after {len(data)} bytes; use a whole file.")
    if struct.unpack("<I", data[-4:])[0] != zlib.crc32(data[:-4]):
        raise ValueError("the state is damaged: its checksum differs; use an undamaged copy.")
    version, code, d, n_reports = _HEADER.unpack(data[len(_MAGIC) : start])
    if version != _VERSION or code >= len(_STATES):
        raise ValueError(
            f"the state has version {version} and kind {code}, unknown to this tacit; read it "
            "with the version that wrote it, or newer."
        )
    kind = _STATES[code]
    n_scalars, n_vectors = _SCALARS[kind], _VECTORS[kind]
    if d < 1 or len(data) != start + 8 * (n_scalars + n_vectors * d) + 4:
        raise ValueError(f"the state has {len(data)} bytes, which is wrong for {d} features.")
    numbers = np.frombuffer(data[start:-4], dtype="<f8").astype(np.float64)
    if not np.all(np.isfinite(numbers)):
        raise ValueError("the state has a number that is not finite.")
    scalars = [float(x) for x in numbers[:n_scalars]]
    vectors = [v.copy() for v in numbers[n_scalars:].reshape(n_vectors, d)]
    return kind(n_reports, *scalars, *vectors)


def learner_from_dict(record: Mapping[str, Any]) -> Learner:
    """Make the learner that ``to_dict`` described.

    Examples
    --------
    >>> from tacit.local.learners import GradientDescent, learner_from_dict
    >>> learner_from_dict(GradientDescent(rate=1.0).to_dict())
    GradientDescent(rate=1.0, decay=0.5, radius=inf, averaging=3.0)
    """
    fields = dict(record)
    kind = fields.pop("kind", None)
    if kind not in _LEARNERS:
        raise ValueError(f"unknown learner kind {kind!r}: this tacit knows {sorted(_LEARNERS)}.")
    names = {field.name for field in dataclasses.fields(_LEARNERS[kind])}
    if set(fields) != names:
        raise ValueError(
            f"a {kind!r} learner has the parameters {sorted(names)}, got {sorted(fields)}; pass "
            "what to_dict returned."
        )
    if "tail" in fields:
        tail = fields["tail"]
        if not isinstance(tail, Mapping) or set(tail) != {"variance", "reach"}:
            raise ValueError("tail must have a variance and a reach; pass what to_dict returned.")
        fields["tail"] = Tail(tail["variance"], _or_infinity(tail["reach"]))
    if "radius" in fields:
        fields["radius"] = _or_infinity(fields["radius"])
    learner: Learner = _LEARNERS[kind](**fields)
    return learner


def _or_infinity(value: Any) -> Any:
    # JSON has no infinity.
    return math.inf if value is None else value
