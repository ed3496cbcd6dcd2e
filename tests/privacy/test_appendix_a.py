"""Logistic objective perturbation against its exact one-dimensional law.

In one dimension the density of the released w is nu(b(w)) b'(w) with b(w) = -(gradient), so
delta can be computed by quadrature for any data set; no claim may be exceeded.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit

from tacit.privacy import LogisticObjective, Relation

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """One data set, one ridge, one noise."""

    x: Array
    y: Array
    ridge: float
    noise_std: float

    def noise_of(self, w: Array) -> Array:
        """The perturbation b that makes w the minimiser."""
        t = expit(-self.y * self.x * w[:, None])
        return (t * self.y * self.x).sum(axis=1) - self.ridge * w

    def slope(self, w: Array) -> Array:
        t = expit(-self.y * self.x * w[:, None])
        return (t * (1 - t) * self.x**2).sum(axis=1) + self.ridge

    def log_density(self, w: Array) -> Array:
        b = self.noise_of(w) / self.noise_std
        log_slope = np.log(self.slope(w) / self.noise_std)
        return np.asarray(-(b**2) / 2 - 0.5 * np.log(2 * np.pi) + log_slope)

    def minimiser(self, b: Array) -> Array:
        """Solve noise_of(w) = b by bisection; noise_of is decreasing."""
        largest_loss = (np.abs(self.x).sum() + np.abs(b).max()) / self.ridge + 1.0
        low, high = np.full(b.shape, -largest_loss), np.full(b.shape, largest_loss)
        for _ in range(36):
            middle = (low + high) / 2
            above = self.noise_of(middle) > b
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        w = (low + high) / 2
        for _ in range(3):  # Newton from here doubles the digits
            w = w + (self.noise_of(w) - b) / self.slope(w)
        return w


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def exact_delta(a: Fit, other: Fit, epsilon: float) -> float:
    """E over a's own noise of (1 - exp(epsilon - loss))_+."""

    def loss(z: Array) -> Array:
        w = a.minimiser(z * a.noise_std)
        return a.log_density(w) - other.log_density(w)

    edges = np.linspace(-10, 10, 61)
    # Gauss-Legendre is exact to rounding where the integrand is smooth: put the kinks, where the
    # loss crosses epsilon, between panels.
    crossing = np.flatnonzero(np.diff(np.sign(loss(edges) - epsilon)))
    for low, high in [(edges[i], edges[i + 1]) for i in crossing]:
        for _ in range(4):
            fine = np.linspace(low, high, 21)
            i = np.flatnonzero(np.diff(np.sign(loss(fine) - epsilon)))[0]
            low, high = fine[i], fine[i + 1]
        edges = np.append(edges, (low + high) / 2)
    edges = np.unique(edges)
    half = np.diff(edges)[:, None] / 2
    z = ((edges[:-1] + edges[1:])[:, None] / 2 + half * _NODES).ravel()
    weight = (half * _WEIGHTS).ravel() * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return float(np.sum(weight * -np.expm1(np.minimum(epsilon - loss(z), 0.0))))


def worst_excess(event_type: type, relation: Relation, n_cases: int, cut: float = 1.0) -> float:
    """Return the greatest exact delta / claimed delta over random cases, both directions."""
    rng = np.random.default_rng(7)
    worst = 0.0
    for _ in range(n_cases):
        row_norm = 10 ** rng.uniform(-1, 2)
        epsilon = 10 ** rng.uniform(-1.5, 0.7)
        claimed_std = row_norm * 10 ** rng.uniform(-0.5, 1.0)
        ridge = row_norm**2 * 10 ** rng.uniform(-1.0, 1.5)
        claim = event_type(row_norm, ridge, claimed_std, relation).profile(np.array([epsilon]))[0]
        if claim < 1e-11:
            continue
        noise_std = claimed_std * cut
        n_others = int(rng.choice([0, 0, 1, 3, 8]))
        x = rng.uniform(-row_norm, row_norm, n_others)
        y = rng.choice([-1.0, 1.0], n_others)
        own = row_norm if rng.random() < 0.7 else rng.uniform(0, row_norm)
        label = rng.choice([-1.0, 1.0])
        extended = Fit(np.append(x, own), np.append(y, label), ridge, noise_std)
        if relation is Relation.ADD_REMOVE:
            neighbour = Fit(x, y, ridge, noise_std)
        else:
            neighbour = Fit(np.append(x, own), np.append(y, -label), ridge, noise_std)
        for a, b in [(extended, neighbour), (neighbour, extended)]:
            worst = max(worst, exact_delta(a, b, epsilon) / claim)
    return worst


class RowNormNotSquared(LogisticObjective):
    """A mutant: R where R squared belongs."""

    @property
    def _stretch(self) -> float:
        return self.row_norm / self.regularization

    @property
    def _relief(self) -> float:
        return self.row_norm / (2 * self.noise_std**2)


@pytest.mark.parametrize("n_cases", [150, pytest.param(700, marks=pytest.mark.slow)])
def test_claim_holds_in_both_directions(n_cases: int) -> None:
    worst = worst_excess(LogisticObjective, Relation.ADD_REMOVE, n_cases)
    assert worst <= 1 + 1e-6
    assert worst > 0.999  # and it is tight: the worst case nearly reaches the claim


@pytest.mark.slow
def test_claim_holds_under_replacement() -> None:
    worst = worst_excess(LogisticObjective, Relation.REPLACE, 120)
    assert worst <= 1 + 1e-6


def test_five_percent_less_noise_is_caught() -> None:
    assert worst_excess(LogisticObjective, Relation.ADD_REMOVE, 100, cut=0.95) > 1.05


@pytest.mark.slow
def test_r_for_r_squared_is_caught() -> None:
    assert worst_excess(RowNormNotSquared, Relation.ADD_REMOVE, 300) > 1.05


WEAK_RIDGES, LARGE_NOISES = (0.02, 0.05, 0.1, 0.2, 0.6, 2.0), (0.2, 0.35, 1.0, 2.0, 8.0, 300.0)
_W, _WEIGHT = np.polynomial.legendre.leggauss(8)


def weak_excess(event_type: type, relation: Relation) -> float:
    """Return the greatest exact delta / claimed delta of one record, over weak ridges.

    There what a record does to the curvature is most of its cost, and the noise is anything.
    """
    worst = 0.0
    for ridge, std in itertools.product(WEAK_RIDGES, LARGE_NOISES):
        # replaced by a row of zeros, which has no curvature either
        other = np.zeros(0 if relation is Relation.ADD_REMOVE else 1)
        one, two = Fit(np.ones(1), np.ones(1), ridge, std), Fit(other, other + 1, ridge, std)
        largest_loss = (9 * std + 1) / ridge
        # finer about 0, where slopes turn
        edges = np.unique(
            np.concatenate([np.linspace(-largest_loss, largest_loss, 401), np.linspace(-9, 9, 91)])
        )
        half = np.diff(edges)[:, None] / 2
        w = ((edges[:-1] + edges[1:])[:, None] / 2 + half * _W).ravel()
        weight = (half * _WEIGHT).ravel()
        p, q = one.log_density(w), two.log_density(w)
        epsilon = np.array([0.2, 0.25, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0])
        claimed = event_type(1.0, ridge, std, relation).profile(epsilon)
        for a, b in ((p, q), (q, p)):
            gap = np.minimum(epsilon[:, None] - (a - b), 0.0)
            exact = (weight * np.exp(a) * -np.expm1(gap)).sum(axis=1)
            worst = max(worst, float((exact / np.maximum(claimed, 1e-12)).max()))
    return worst


def test_the_jacobian_is_the_greatest_over_all_curvatures() -> None:
    u = np.linspace(0.0, 0.25, 4001)
    for ridge, std in itertools.product((0.01, 0.1, 0.4), (0.1, 0.2, 0.3, 0.5, 1.0, 20.0)):
        event = LogisticObjective(1.0, ridge, std)
        brute = float(np.max(np.log1p(u / ridge) - u / (2 * std**2)))
        assert brute <= event._jacobian() + 1e-12
        if event._curvature > 2.0:
            assert event._jacobian() == pytest.approx(brute, abs=1e-6)


class HalfTheCurvature(LogisticObjective):
    """A mutant: t (1 - t) of 1/8 at most."""

    def _jacobian(self) -> float:
        u = min(1 / self._relief - 1 / self._stretch, 0.125)
        return math.log1p(u * self._stretch) - u * self._relief


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_weak_ridges_and_any_noise(relation: Relation) -> None:
    # 1e-3 for the kinks of the integrand; where it is tight the claim is met to 4e-5
    assert 0.7 < weak_excess(LogisticObjective, relation) <= 1 + 1e-3
    assert weak_excess(HalfTheCurvature, relation) > 1.5


@pytest.mark.parametrize(
    "ridge_factor", [4.0, *(pytest.param(f, marks=pytest.mark.slow) for f in (0.6, 1.0))]
)
def test_below_the_threshold_the_closed_form_is_exact_integration(ridge_factor: float) -> None:
    # E(1 - exp(eps - X))_+ with X = max_t tG + k t(1-t), by brute force over t and G
    epsilon, noise_std = 1.0, 3.0
    event = LogisticObjective(1.0, ridge_factor / epsilon, noise_std)
    mu, k = 1 / noise_std, 1 / (ridge_factor / epsilon) - 1 / (2 * noise_std**2)
    g = np.linspace(-12, 12, 200_001) * mu + mu**2 / 2
    t = np.linspace(0, 1, 2001)
    loss = np.concatenate(
        [np.max(np.outer(part, t) + k * t * (1 - t), axis=1) for part in np.array_split(g, 200)]
    )
    density = np.exp(-((g - mu**2 / 2) ** 2) / (2 * mu**2)) / (mu * np.sqrt(2 * np.pi))
    for e in (-0.5, 0.0, 0.3, 1.0, 4.0):
        brute = np.trapezoid(density * -np.expm1(np.minimum(e - loss, 0)), g)
        assert event.profile(np.array([e]))[0] == pytest.approx(brute, rel=2e-5, abs=1e-9)
