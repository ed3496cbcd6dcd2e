"""Objective perturbation: minimise sum of losses + (lam/2)||w||^2 + <b, w> with random b.

All four approximate forms bound the privacy loss by a random variable X, in both directions and
for any other records:

    X = jacobian + max over vertices of G_i, at least ``jacobian``,  G_i ~ N(mu_i^2/2, mu_i^2)

(proofs in docs/proofs/objective_perturbation.md). A union bound over the vertices gives
P[X > x] <= sum_i weight_i P[G_i > x - jacobian]. From it follow, in closed form, delta(epsilon) =
E(1 - exp(epsilon - X))_+ and the Renyi bound log E exp((a-1) X) / (a-1).
Since E(1 - exp(epsilon - X))_+ is convex in exp(epsilon), it composes.

Assumes, for every event here: the released w is the exact minimiser over the whole space; the
perturbation is independent of the data; every coordinate, the intercept included, is
regularised. A certified approximate minimiser is a further Gaussian event.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from tacit import checks
from tacit.privacy.accounting.gaussian_profile import gaussian_delta, lost_digits
from tacit.privacy.accounting.root_finding import decreasing_root
from tacit.privacy.budget import Relation
from tacit.privacy.events.base import Array, Event, check_add_remove
from tacit.privacy.events.pure import PureEpsilon

_WEAK_RIDGE = 2.0  # above this k the bound with a fixed Jacobian is tighter
_NOISE = "calibrate it to a Budget; without noise record NonPrivate(reason=...)."
_BOUND = "pass the bound enforced on every record."
_RIDGE = "objective perturbation needs strong convexity: pass a positive L2 regularization."


@dataclass(frozen=True)
class LossBound:
    """The law of X: ``jacobian`` plus the greatest of Gaussians, by a union bound.

    ``vertices`` holds (weight, mu) pairs.
    """

    jacobian: float
    vertices: tuple[tuple[float, float], ...]

    def _floor(self) -> float:
        """Return y0 >= 0, the point from which on the union bound on P[G > y] is at most 1."""

        def excess(y: float) -> float:
            return sum(k * float(ndtr(m / 2 - y / m)) for k, m in self.vertices) - 1.0

        if excess(0.0) <= 0.0:
            return 0.0
        return decreasing_root(excess, self._greatest_mu)

    def delta(self, epsilon: Array) -> Array:
        """Return E(1 - exp(epsilon - X))_+."""
        floor = self._floor()

        def above(y: Array) -> Array:
            total = np.zeros_like(y)
            for weight, mu in self.vertices:
                total += weight * gaussian_delta(mu, y)
            return total

        y = epsilon - self._rounded_jacobian
        # Below the floor X exceeds epsilon with certainty: 1 - e^{y - y0} (1 - delta(y0)).
        at_floor = above(np.array([floor]))[0]
        short = np.minimum(y - floor, 0.0)
        below = np.exp(short) * at_floor - np.expm1(short)  # keeps the digits of delta(y0)
        result: Array = np.where(y >= floor, above(np.maximum(y, floor)), below)
        return np.clip(result, 0.0, 1.0)

    def renyi(self, orders: Array) -> Array:
        """Return log E exp((a-1) X) / (a-1)."""
        b, floor = orders - 1.0, self._floor()
        atom = 1.0 - sum(k * float(ndtr(m / 2 - floor / m)) for k, m in self.vertices)
        with np.errstate(divide="ignore"):
            log_total = b * floor + np.log(np.full_like(b, max(atom, 0.0)))
            for weight, mu in self.vertices:
                # E[e^{bG}; G > y0] = exp(b (b+1) mu^2 / 2) Phi((mu^2/2 + b mu^2 - y0) / mu)
                log_mass = np.log(ndtr(mu / 2 + b * mu - floor / mu))
                log_total = np.logaddexp(
                    log_total, math.log(weight) + b * (b + 1) * mu**2 / 2 + log_mass
                )
        # The expectation is nearly 1 for small mu: add the rounding error of its logarithm.
        log_total += lost_digits(self._greatest_mu, 0.0, log_total)
        result: Array = self._rounded_jacobian + log_total / b
        return result

    @property
    def _greatest_mu(self) -> float:
        return max(mu for _, mu in self.vertices)

    @property
    def _rounded_jacobian(self) -> float:
        # Round up: for small mu the last bits of the Jacobian are large beside mu.
        return self.jacobian * (1.0 + float(lost_digits(self._greatest_mu, 0.0)))


def _one_sided(mu: float, relation: Relation) -> tuple[tuple[float, float], ...]:
    """Return the vertices of a loss whose derivative has a constant sign."""
    return ((1.0, mu),) if relation.adds_or_removes else ((1.0, 2 * mu), (2.0, mu))


class ObjectiveEvent(Event):
    """Event of a random linear term: the cost increases in a few ratios, which can be compared."""

    @abstractmethod
    def cost_ratios(self) -> tuple[float, ...]:
        """Return gradient over noise, curvature over ridge and, if it matters, the rank.

        X increases in each of them, and depends on nothing else
        (docs/proofs/objective_perturbation.md, section 13).
        """

    def covers(self, other: Event) -> bool:
        """Return whether ``other`` is of this kind and none of its ratios is greater."""
        if type(other) is not type(self) or other.relation is not self.relation:
            return False
        return all(b <= a for a, b in zip(self.cost_ratios(), other.cost_ratios(), strict=True))

    def dominated_gaussian_mu(self) -> float | None:
        """Return L / s under ADD_REMOVE, None otherwise: X is never below that Gaussian's loss.

        Proof: docs/proofs/objective_perturbation.md, section 15.
        """
        return self.cost_ratios()[0] if self.relation is Relation.ADD_REMOVE else None

    def _without_jacobian(self) -> LossBound | None:
        """Return the law of X where the first data set lacks the record, or None if it is alike.

        The determinant of the Hessian is then the smaller one, and the noise pays alone
        (docs/proofs/events.md, section 14).
        """
        return None

    def profiles_by_order(self, epsilon: Array) -> tuple[Array, Array] | None:
        """Return the profile, and that of the order in which the Jacobian is free."""
        both, cheaper = self.profile(epsilon), self._without_jacobian()
        if both is None:
            return None
        if cheaper is None or not self.relation.adds_or_removes:
            return both, both
        return both, np.minimum(cheaper.delta(epsilon), both)


class _Perturbed(ObjectiveEvent):
    """An event whose privacy loss is bounded by X."""

    @abstractmethod
    def _bound(self) -> LossBound:
        """Return the law of X."""

    def _without_jacobian(self) -> LossBound | None:
        """Return the same law with a Jacobian of 0."""
        return replace(self._bound(), jacobian=0.0)

    def profile(self, epsilon: Array) -> Array:
        """Return E(1 - exp(epsilon - X))_+."""
        return self._bound().delta(epsilon)

    def renyi(self, orders: Array) -> Array:
        """Return log E exp((a-1) X) / (a-1)."""
        return self._bound().renyi(orders)


@dataclass(frozen=True)
class LogisticObjective(_Perturbed):
    """Logistic regression by objective perturbation, b ~ N(0, noise_std^2 I).

    Contract: rows (the intercept's coordinate included) have norm at most ``row_norm``; labels
    are -1 or 1; the loss of a record is a log(1 + exp(-y <w, x>)) for a weight a in [0, 1];
    ``regularization`` is lam of the SUM form.

    Guarantee, ADD_REMOVE (docs/proofs/objective_perturbation.md): with
    mu = row_norm / noise_std and k = row_norm^2 (1/lam - 1/(2 noise_std^2)),

        X = max over t in [0, 1] of t G + k t (1 - t),   G ~ N(mu^2/2, mu^2)

    So delta(epsilon) is the Gaussian mechanism's for epsilon >= k, and the release is mu-GDP
    if lam >= 2 noise_std^2. Under REPLACE the jacobian is k_+/4 and the vertices are 2 mu once and
    mu twice. For k > 2 the jacobian is the greatest of log(1 + u R^2/lam) -
    u R^2/(2 noise_std^2) over u in [0, 1/4], with the vertex mu under ADD_REMOVE.

    Examples
    --------
    >>> from tacit.privacy import Guarantee, LogisticObjective
    >>> event = LogisticObjective(row_norm=1.0, regularization=10.0, noise_std=3.730632)
    >>> round(Guarantee(event).epsilon(1e-5), 5)
    1.0
    """

    kind = "logistic_objective"

    row_norm: float
    regularization: float
    noise_std: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        self._check(row_norm=_BOUND, regularization=_RIDGE, noise_std=_NOISE)

    def cost_ratios(self) -> tuple[float, ...]:
        """Return R / s and R^2 / lam."""
        return self.row_norm / self.noise_std, self._stretch

    @property
    def _stretch(self) -> float:
        # R^2 / lam: effect of one record on the Jacobian, per unit of second derivative
        return self.row_norm**2 / self.regularization

    @property
    def _relief(self) -> float:
        # R^2 / (2 s^2): the part that the quadratic term of the noise offsets
        return self.row_norm**2 / (2 * self.noise_std**2)

    @property
    def _curvature(self) -> float:
        # k = R^2 (1/lam - 1/(2 s^2))
        return self._stretch - self._relief

    def _jacobian(self) -> float:
        """Return the greatest of log(1 + u R^2/lam) - u R^2/(2 s^2), u = t (1 - t) <= 1/4."""
        if self._curvature <= _WEAK_RIDGE:
            # log(1 + a) <= a is tight enough for a weak effect
            return max(self._curvature, 0.0) / 4
        u = min(1 / self._relief - 1 / self._stretch, 0.25)
        return math.log1p(u * self._stretch) - u * self._relief

    def _bound(self) -> LossBound:
        mu = self.row_norm / self.noise_std
        return LossBound(self._jacobian(), _one_sided(mu, self.relation))

    def gaussian_mu(self) -> float | None:
        """Return mu if the Jacobian costs nothing at any epsilon, else None."""
        if self.relation.adds_or_removes and self._curvature <= 0.0:
            return self.row_norm / self.noise_std
        return None

    def profile(self, epsilon: Array) -> Array:
        """Return E(1 - exp(epsilon - X))_+."""
        mu, k = self.row_norm / self.noise_std, self._curvature
        # Two valid bounds. The choice depends on the parameters only: the pointwise minimum of two
        # profiles need not be convex.
        if self.relation is Relation.REPLACE or k > _WEAK_RIDGE:
            return self._bound().delta(epsilon)
        if k <= 0.0:
            return gaussian_delta(mu, epsilon)
        low = _below_curvature(mu, k, np.minimum(epsilon, k))
        result: Array = np.where(epsilon >= k, gaussian_delta(mu, epsilon), low)
        return result

    def renyi(self, orders: Array) -> Array:
        """Return the bound with jacobian k/4, or the Gaussian's if the Jacobian costs nothing."""
        mu = self.gaussian_mu()
        return orders * mu**2 / 2 if mu is not None else self._bound().renyi(orders)


def _below_curvature(mu: float, k: float, epsilon: Array) -> Array:
    """Return delta for epsilon < k, where X = (G+k)^2/(4k) on |G| < k, G above, 0 below."""
    e = np.maximum(epsilon, 0.0)
    # X > e  <=>  G > g = 2 sqrt(k e) - k  (every G when epsilon < 0)
    g = 2 * np.sqrt(k * e) - k
    # E[exp(-X); g < G < k]: the two quadratics add up to one centred at 0, of precision tau:
    # exp(-mu^2/8 - k/4) / (mu sqrt(tau)) * (Phi(k sqrt(tau)) - Phi(g sqrt(tau)))
    root_tau = math.sqrt(1 / mu**2 + 1 / (2 * k))
    middle = np.where(
        g > 0,
        ndtr(-g * root_tau) - ndtr(-k * root_tau),
        ndtr(k * root_tau) - ndtr(g * root_tau),
    )
    middle = middle * math.exp(-(mu**2) / 8 - k / 4) / (mu * root_tau)
    above = ndtr(-mu / 2 - k / mu)  # E[exp(-G); G > k]
    below = np.where(epsilon < 0, ndtr(-mu / 2 - k / mu), 0.0)  # P[G < -k], where X = 0
    reached = np.where(epsilon < 0, 1.0, ndtr(mu / 2 - g / mu))
    # Through logarithms: exp(epsilon) may overflow although the product is small. A part that
    # underflows is subtracted as 0, which rounds delta up.
    with np.errstate(divide="ignore"):
        subtracted = np.exp(np.minimum(epsilon + np.log(middle + above + below), 0.0))
    lost = lost_digits(mu, g / mu, np.abs(epsilon) + k) * (reached + subtracted)
    result: Array = np.clip(reached - subtracted + lost, 0.0, 1.0)
    return result


@dataclass(frozen=True)
class _OfOneScore(ObjectiveEvent):
    """A loss of one score with bounded derivatives."""

    lipschitz: float
    smoothness: float
    regularization: float
    noise_std: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        self._check(lipschitz=_BOUND, smoothness=_BOUND, regularization=_RIDGE, noise_std=_NOISE)

    def cost_ratios(self) -> tuple[float, ...]:
        """Return L / s and beta / lam."""
        return self._mu, self.smoothness / self.regularization

    @property
    def _mu(self) -> float:
        return self.lipschitz / self.noise_std

    @property
    def _jacobian(self) -> float:
        # log-determinant of a Hessian that one record changes by rank one
        return math.log1p(self.smoothness / self.regularization)


@dataclass(frozen=True)
class MonotoneObjective(_OfOneScore, _Perturbed):
    """A margin loss whose derivative has a constant sign (Huber-smoothed hinge).

    Contract: the loss is a convex function of y <w, x> with derivative of one sign; per-record
    gradient norm at most ``lipschitz``, Hessian of rank one and norm at most ``smoothness``.

    Guarantee: jacobian log(1 + smoothness/lam); ADD_REMOVE: one vertex mu = lipschitz/noise_std;
    REPLACE: 2 mu once and mu twice.

    Examples
    --------
    >>> from tacit.privacy import Guarantee, MonotoneObjective
    >>> event = MonotoneObjective(1.0, 0.25, regularization=10.0, noise_std=3.81656)
    >>> round(Guarantee(event).epsilon(1e-5), 4)
    1.0
    """

    kind = "monotone_objective"

    def _bound(self) -> LossBound:
        return LossBound(self._jacobian, _one_sided(self._mu, self.relation))


@dataclass(frozen=True)
class LinearModelObjective(_OfOneScore, _Perturbed):
    """Any convex generalised linear loss by objective perturbation.

    Contract: per-record gradient norm at most ``lipschitz`` and along the record's own row,
    Hessian of rank one and norm at most ``smoothness``. ADD_REMOVE only.

    Guarantee: jacobian log(1 + smoothness/lam), the vertex mu = lipschitz/noise_std twice (the
    derivative may take either sign); Redberg, Koskela and Wang 2023 with a tighter jacobian.

    Examples
    --------
    >>> from tacit.privacy import Guarantee, LinearModelObjective
    >>> event = LinearModelObjective(1.0, 0.25, regularization=10.0, noise_std=4.0)
    >>> Guarantee(event).epsilon(1e-5) < 1.0
    True
    """

    kind = "linear_model_objective"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_add_remove(self)

    def _bound(self) -> LossBound:
        return LossBound(self._jacobian, ((2.0, self._mu),))


@dataclass(frozen=True)
class SoftmaxObjective(_Perturbed):
    """Multinomial logistic regression in one joint release.

    Contract: rows of norm at most ``row_norm``, ``n_classes`` >= 2 classes, cross-entropy times a
    weight in [0, 1], noise of ``noise_std`` on every entry of the weight matrix. ADD_REMOVE only.

    Guarantee: jacobian (1 - 1/K) row_norm^2 (1/lam - 1/(2 noise_std^2))_+ and the vertex
    mu = sqrt(2) row_norm / noise_std K - 1 times.

    Examples
    --------
    >>> from tacit.privacy import Guarantee, SoftmaxObjective
    >>> event = SoftmaxObjective(1.0, n_classes=10, regularization=71.0, noise_std=5.944)
    >>> round(Guarantee(event).epsilon(1e-5), 3)
    1.0
    """

    kind = "softmax_objective"

    row_norm: float
    n_classes: int
    regularization: float
    noise_std: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        self._check(row_norm=_BOUND, regularization=_RIDGE, noise_std=_NOISE)
        checks.count("n_classes", self.n_classes, least=2)
        check_add_remove(self)

    def cost_ratios(self) -> tuple[float, ...]:
        """Return sqrt(2) R / s, R^2 / lam and the number of classes."""
        mu = math.sqrt(2) * self.row_norm / self.noise_std
        return mu, self.row_norm**2 / self.regularization, float(self.n_classes)

    def _bound(self) -> LossBound:
        curvature = 1 / self.regularization - 1 / (2 * self.noise_std**2)
        jacobian = (1 - 1 / self.n_classes) * self.row_norm**2 * max(curvature, 0.0)
        mu = math.sqrt(2) * self.row_norm / self.noise_std
        return LossBound(jacobian, ((float(self.n_classes - 1), mu),))


@dataclass(frozen=True)
class PureObjective(ObjectiveEvent):
    """Pure objective perturbation, density of b proportional to exp(-||b|| / noise_radius).

    Contract: convex losses; per-record gradient norm at most ``lipschitz``; per-record Hessian of
    rank at most ``rank`` and trace at most ``hessian_trace`` (for a generalised linear loss rank 1
    and trace = smoothness).

    Guarantee: epsilon = lipschitz / noise_radius + rank log(1 + hessian_trace / (rank lam)), the
    first term doubled under REPLACE (docs/proofs/objective_perturbation.md, section 9).

    Examples
    --------
    >>> from tacit.privacy import Guarantee, PureObjective
    >>> event = PureObjective(1.0, 0.25, regularization=10.0, noise_radius=1.0)
    >>> round(Guarantee(event).epsilon(0.0), 5)
    1.02469
    """

    kind = "pure_objective"

    lipschitz: float
    hessian_trace: float
    regularization: float
    noise_radius: float
    rank: int = 1
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        self._check(
            lipschitz=_BOUND, hessian_trace=_BOUND, regularization=_RIDGE, noise_radius=_NOISE
        )
        checks.count("rank", self.rank)

    def cost_ratios(self) -> tuple[float, ...]:
        """Return L / r, trace / lam and the rank."""
        ratio = self.lipschitz / self.noise_radius
        return ratio, self.hessian_trace / self.regularization, float(self.rank)

    def dominated_gaussian_mu(self) -> None:
        """Return None: no Gaussian release is known to be dominated."""
        return

    def pure_epsilon(self) -> float:
        """Return the noise term plus the Jacobian term."""
        n_changed = 2.0 if self.relation is Relation.REPLACE else 1.0
        jacobian = self.rank * math.log1p(self.hessian_trace / (self.rank * self.regularization))
        return n_changed * self.lipschitz / self.noise_radius + jacobian

    def _as_pure(self) -> Event:
        return PureEpsilon(self.pure_epsilon(), self.relation)

    def profile(self, epsilon: Array) -> Array | None:
        """Return the profile of a generic pure release."""
        return self._as_pure().profile(epsilon)

    def renyi(self, orders: Array) -> Array:
        """Return the curve of a generic pure release."""
        return self._as_pure().renyi(orders)


@dataclass(frozen=True)
class LogCoshObjective(_OfOneScore):
    """A linear model with a loss that is never both steep and curved, b ~ N(0, noise_std^2 I).

    Contract: a record's gradient is parallel to its row and has norm t ``lipschitz`` for a t in
    [-1, 1], and its Hessian has rank one and norm at most (1 - t^2) ``smoothness``.
    ``regularization`` is lam of the SUM form. ADD_REMOVE only.

    Guarantee (docs/proofs/objective_perturbation.md, section 12): with mu = lipschitz / noise_std
    and k = smoothness / lam, the privacy loss is at most

        X = max over t in [-1, 1] of t mu Z + t^2 mu^2 / 2 + (1 - t^2) k,   Z ~ N(0, 1)

    So delta(epsilon) is twice the Gaussian mechanism's for epsilon >= 2 k - mu^2 / 2: at these
    epsilons the effect of a record on the Hessian costs nothing.

    Examples
    --------
    >>> from tacit.privacy import Guarantee, LogCoshObjective
    >>> event = LogCoshObjective(1.0, 1.0, regularization=2.0, noise_std=3.88415)
    >>> round(Guarantee(event).epsilon(1e-5), 4)
    1.0
    """

    kind = "log_cosh_objective"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_add_remove(self)

    @property
    def _stretch(self) -> float:
        # k: one record changes the Jacobian's determinant by a factor of at most 1 + k
        return self.smoothness / self.regularization

    @property
    def _excess(self) -> float:
        # k - mu^2 / 2: the part of k that the quadratic term of the noise does not offset
        return self._stretch - self._mu**2 / 2

    def profile(self, epsilon: Array) -> Array:
        """Return E(1 - exp(epsilon - X))_+.

        X increases in |Z| and has up to three pieces. The first uses the logarithm of the Jacobian,
        c = log(1 + k); e = k - mu^2 / 2:

            c + mu |Z| + mu^2 / 2     for mu |Z| < 2 (e - sqrt(c e))
            k + (mu Z)^2 / (4 e)      for mu |Z| < 2 e
            mu |Z| + mu^2 / 2         beyond
        """
        mu, k, e = self._mu, self._stretch, max(self._excess, 0.0)
        c, half = math.log1p(k), mu**2 / 2
        first, corner = self._first, 2 * e / mu
        # the least |Z| at which X is epsilon, 0 if X always exceeds it
        inner = np.sqrt(4 * e * np.maximum(epsilon - k, 0.0)) / mu
        z = np.maximum((epsilon - c - half) / mu, 0.0)
        z = np.where(z < first, z, np.maximum(inner, first))
        z = np.where(z < corner, z, np.maximum((epsilon - half) / mu, corner))
        # E[exp(-X); |Z| > z], piece by piece
        a, b, d = (np.maximum(z, start) for start in (0.0, first, corner))
        mass = 2 * math.exp(-c) * (ndtr(-np.minimum(a, first) - mu) - ndtr(-first - mu))
        if e > 0:
            root = math.sqrt(1 + mu**2 / (2 * e))
            middle = ndtr(-np.minimum(b, corner) * root) - ndtr(-corner * root)
            mass = mass + 2 * math.exp(-k) / root * middle
        mass = mass + 2 * ndtr(-d - mu)
        with np.errstate(divide="ignore"):
            subtracted = np.exp(np.minimum(epsilon + np.log(mass), 0.0))
        reached = 2 * ndtr(-z)
        lost = lost_digits(mu, z, np.abs(epsilon) + k) * (reached + subtracted)
        below = np.clip(reached - subtracted + lost, 0.0, 1.0)
        # Where X is linear, delta is twice the Gaussian mechanism's, which is computed precisely.
        free = max(mu * corner + half, half)
        above = np.minimum(2 * gaussian_delta(mu, np.maximum(epsilon, free)), 1.0)
        result: Array = np.where(epsilon >= free, above, below)
        return result

    def _without_jacobian(self) -> LossBound:
        """Return the law of mu |Z| + mu^2 / 2."""
        return LossBound(0.0, ((2.0, self._mu),))

    @property
    def _first(self) -> float:
        # |Z| below which the logarithm of the Jacobian is the better bound
        e = max(self._excess, 0.0)
        return max(2 * (e - math.sqrt(e * math.log1p(self._stretch))) / self._mu, 0.0)

    def renyi(self, orders: Array) -> Array:
        """Return a bound on log E exp((a-1) X) / (a-1), with X at its value where a piece ends."""
        mu, e = self._mu, max(self._excess, 0.0)
        b, first, corner = orders - 1.0, self._first, 2 * e / mu
        # E[exp(b (mu |Z| + mu^2/2)); |Z| > c] = 2 exp(b (b+1) mu^2 / 2) Phi(b mu - c)
        log_linear = math.log(2) + b * (b + 1) * mu**2 / 2
        parts = [log_linear + log_ndtr(b * mu - corner)]
        middle = math.log(2) + _log_between(-corner, -first)
        parts.append(b * (self._stretch + e) + middle)
        # Phi(b mu) - Phi(b mu - first), by symmetry in the other tail
        inside = _log_between(-b * mu, first - b * mu)
        parts.append(b * math.log1p(self._stretch) + log_linear + inside)
        total = np.logaddexp.reduce(parts)
        # The expectation is nearly 1 for small mu: add the rounding error of its logarithm.
        result: Array = (total + lost_digits(mu, 0.0, total)) / b
        return result


def _log_between(low: npt.ArrayLike, high: npt.ArrayLike) -> Array:
    """Return log(Phi(high) - Phi(low)) for low <= 0, so that a tail beyond 38 does not vanish."""
    top = log_ndtr(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.where(np.isneginf(top), 0.0, np.minimum(log_ndtr(low) - top, 0.0))
        result: Array = top + np.log(-np.expm1(below))
    return result
