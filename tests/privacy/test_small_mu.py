"""No delta is stated below the truth where mu is so small that the terms of delta cancel.

The truth is E(1 - exp(epsilon - X))_+ in sixty digits, X as docs/proofs/objective_perturbation.md
has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mpf

from tacit.privacy import (
    Event,
    LinearModelObjective,
    LogCoshObjective,
    LogisticObjective,
    MonotoneObjective,
    Relation,
    SoftmaxObjective,
)
from tacit.privacy.accounting.gaussian_profile import gaussian_delta, lost_digits
from tacit.privacy.events import objective
from tacit.privacy.events import objective as log_cosh

Array = npt.NDArray[np.float64]

MUS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2)
# epsilon / mu, and k / epsilon: in every piece of X.
QUOTIENTS, SHARES = (-1.0, 0.5, 2.0, 5.0, 8.0), (0.3, 4 / 7, 0.9, 1.5, 30.0)

Profile = Callable[[mpf, mpf, mpf], mpf]


def below(z: mpf) -> mpf:
    return mpmath.ncdf(-z)


def of_log_cosh(mu: mpf, k: mpf, epsilon: mpf) -> mpf:
    c, e, half = mpmath.log1p(k), k - mu**2 / 2, mu**2 / 2
    corner, first = 2 * e / mu, max(2 * (e - mpmath.sqrt(c * e)) / mu, 0)
    z = max((epsilon - c - half) / mu, 0)
    if z >= first:
        z = max(mpmath.sqrt(4 * e * max(epsilon - k, 0)) / mu, first)
    if z >= corner:
        z = max((epsilon - half) / mu, corner)
    root = mpmath.sqrt(1 + mu**2 / (2 * e))
    mass = mpmath.exp(-c) * (below(min(z, first) + mu) - below(first + mu))
    start = min(max(z, first), corner)
    mass += mpmath.exp(-k) / root * (below(start * root) - below(corner * root))
    mass += below(max(z, corner) + mu)
    return 2 * below(z) - 2 * mpmath.exp(epsilon) * mass


def of_logistic(mu: mpf, k: mpf, epsilon: mpf) -> mpf:
    if epsilon >= k:
        return gaussian(mu, epsilon)
    g = 2 * mpmath.sqrt(k * max(epsilon, 0)) - k
    root = mpmath.sqrt(1 / mu**2 + 1 / (2 * k))
    mass = mpmath.exp(-(mu**2) / 8 - k / 4) / (mu * root) * (below(g * root) - below(k * root))
    end = below(mu / 2 + k / mu)
    if epsilon < 0:
        return 1 - mpmath.exp(epsilon) * (mass + 2 * end)
    return below(g / mu - mu / 2) - mpmath.exp(epsilon) * (mass + end)


def integral(kind: type[Event], mu: mpf, k: mpf, epsilon: mpf) -> mpf:
    """Return the same from X itself."""

    def loss(z: mpf) -> mpf:
        g = mu * z + mu**2 / 2
        if kind is LogCoshObjective:
            e = k - mu**2 / 2
            return min(k + (mu * z) ** 2 / (4 * e) if mu * z < 2 * e else g, mpmath.log1p(k) + g)
        return g if g >= k else (mpf(0) if g <= -k else (g + k) ** 2 / (4 * k))

    low, high = mpf(0 if kind is LogCoshObjective else -60), mpf(60)
    for _ in range(110):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle) < epsilon else (low, middle)
    ends = [low + step for step in (0, mpf(1) / 2, 1, 2, 4, 8, 14)]
    total = mpmath.quad(lambda z: mpmath.npdf(z) * -mpmath.expm1(epsilon - loss(z)), ends)
    return 2 * total if kind is LogCoshObjective else total


def case(kind: type[Event], mu: float, k: float) -> tuple[Event, Profile, mpf, mpf]:
    """Return an event, its profile, and mu and k as the event's own parameters give them."""
    std, ridge = 1 / mu, 1 / k
    m, stretch = 1 / mpf(std), 1 / mpf(ridge)
    if kind is LogCoshObjective:
        return LogCoshObjective(1.0, 1.0, ridge, std), of_log_cosh, m, stretch
    return LogisticObjective(1.0, ridge, std), of_logistic, m, stretch - m**2 / 2


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("kind", [LogCoshObjective, LogisticObjective])
def test_losses_that_flatten_understate_no_delta(kind: type[Event], mu: float) -> None:
    with mpmath.workdps(60):
        for quotient, share in itertools.product(QUOTIENTS, SHARES):
            epsilon = mu * quotient
            event, profile, m, k = case(kind, mu, min(abs(epsilon) * share, 2.0))
            truth, found = profile(m, k, mpf(epsilon)), event.profile(np.array([epsilon]))
            assert found is not None
            excess = float(mpf(float(found[0])) / truth - 1)
            assert 0.0 <= excess <= 1e-9 + 4e-12 / mu, (quotient, share, excess)


@pytest.mark.parametrize("kind", [LogCoshObjective, LogisticObjective])
def test_roundings_that_add_up_understate_no_delta(kind: type[Event]) -> None:
    """Random cases: a quarter of what is added for rounding would not do."""
    rng = np.random.default_rng(1)
    with mpmath.workdps(60):
        for mu in 1e-12 * 10 ** rng.uniform(-0.5, 0.5, 250):
            event, profile, m, k = case(kind, float(mu), float(mu * rng.uniform(0.3, 3.0)))
            epsilon = float(mu * rng.uniform(0.0, 3.0))
            truth, found = profile(m, k, mpf(epsilon)), event.profile(np.array([epsilon]))
            assert found is not None
            assert mpf(float(found[0])) >= truth


@pytest.mark.parametrize("kind", [LogCoshObjective, LogisticObjective])
@pytest.mark.parametrize("share", [4 / 7, 1.5])
def test_the_closed_form_is_the_integral(kind: type[Event], share: float) -> None:
    with mpmath.workdps(30):
        _, profile, m, k = case(kind, 1e-6, 5e-6 * share)
        exact = integral(kind, m, k, mpf(5e-6))
        assert abs(profile(m, k, mpf(5e-6)) / exact - 1) < 1e-9


def gaussian(mu: mpf, y: mpf) -> mpf:
    return mpmath.ncdf(mu / 2 - y / mu) - mpmath.exp(y) * mpmath.ncdf(-mu / 2 - y / mu)


def of_vertices(jacobian: mpf, vertices: tuple[tuple[int, mpf], ...], epsilon: mpf) -> mpf:
    """Return delta for the jacobian plus the greatest of Gaussians, by a union bound."""

    def tail(y: mpf) -> mpf:
        return sum(n * mpmath.ncdf(mu / 2 - y / mu) for n, mu in vertices)

    low, high = mpf(0), 30 * max(mu for _, mu in vertices)
    if tail(low) > 1:
        for _ in range(150):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(middle) > 1 else (low, middle)
    y = epsilon - jacobian
    short = min(y - low, mpf(0))
    above = sum(n * gaussian(mu, max(y, low)) for n, mu in vertices)
    return above * mpmath.exp(short) - mpmath.expm1(short)


@pytest.mark.parametrize("mu", MUS[:-1])
@pytest.mark.parametrize("ridge", [0.5, 3.0, 1e3])
def test_bounds_by_vertices_understate_no_delta(mu: float, ridge: float) -> None:
    std = 1 / mu
    with mpmath.workdps(50):
        m, lam = 1 / mpf(std), mpf(ridge)
        log, root = mpmath.log1p(1 / lam), mpmath.sqrt(2) * m
        curved = mpf(9) / 10 * (1 / lam - m**2 / 2)
        cases = [
            (MonotoneObjective(1.0, 1.0, ridge, std), log, ((1, m),)),
            (LinearModelObjective(1.0, 1.0, ridge, std), log, ((2, m),)),
            (SoftmaxObjective(1.0, 10, ridge, std), curved, ((9, root),)),
            (
                MonotoneObjective(1.0, 1.0, ridge, std, Relation.REPLACE),
                log,
                ((1, 2 * m), (2, m)),
            ),
        ]
        for event, jacobian, vertices in cases:
            for quotient in (-3.0, 0.0, 0.3, 1.0, 4.0):
                epsilon = float(jacobian) + quotient * mu
                truth = of_vertices(jacobian, vertices, mpf(epsilon))
                found = event.profile(np.array([epsilon]))
                assert found is not None
                excess = float(mpf(float(found[0])) / truth - 1)
                assert 0.0 <= excess <= 1e-9 + 2e-14 / mu, (event, quotient, excess)


@pytest.mark.parametrize("mu", MUS)
def test_the_gaussian_profile_is_not_understated(mu: float) -> None:
    with mpmath.workdps(120):
        for quotient in (0.0, 1e-3, 0.3, 1.0, 2.5, 5.0, 9.0, 15.0):
            truth = gaussian(mpf(mu), mpf(mu * quotient))
            excess = float(mpf(float(gaussian_delta(mu, mu * quotient))) / truth - 1)
            assert 0.0 <= excess <= 3e-12, quotient


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("order", [1.01, 2.0, 20.0])
def test_renyi_divergences_are_not_understated(mu: float, order: float) -> None:
    """A bound of one vertex: E exp(bX) = exp(bc) (P[G < 0] + exp(b (b+1) mu^2/2) P[G' > 0])."""
    std, ridge = 1 / mu, 3.0
    event = MonotoneObjective(1.0, 1.0, ridge, std)
    with mpmath.workdps(50):
        m, b = 1 / mpf(std), mpf(order) - 1
        moved = mpmath.exp(b * (b + 1) * m**2 / 2) * mpmath.ncdf(m / 2 + b * m)
        truth = mpmath.log1p(1 / mpf(ridge)) + mpmath.log(mpmath.ncdf(-m / 2) + moved) / b
        found = float(event.renyi(np.array([order]))[0])
        assert 0.0 <= float(mpf(found) - truth) <= 2e-15 * (1 + 1 / float(b))


def test_lost_digits_are_those_of_the_proof() -> None:
    """8 (1 + z^2 + x) 2^-53, docs/proofs/objective_perturbation.md, section 2."""
    unit = 8 * 2.0**-53
    assert float(lost_digits(1e-3, 0.0)) == unit
    assert float(lost_digits(1e-3, 30.0)) == unit * 901
    assert float(lost_digits(1e-3, -2.0, -3.0)) == unit * 4
    assert float(lost_digits(1e-3, 1.0, 1e6)) == unit * (1e6 + 2)


@pytest.mark.parametrize("epsilon", [-1.0, 0.376, 0.92])
@pytest.mark.parametrize("kind", [LogCoshObjective, LogisticObjective])
def test_what_is_added_for_rounding_is_what_is_proved(
    kind: type[Event], epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 + z^2 + |e| + k times both terms, in a unit that is large enough to be seen."""
    event, profile, m, k = case(kind, 0.004, 1.5)
    module = log_cosh if kind is LogCoshObjective else objective

    def found(unit: float) -> float:
        def lost(mu: float, z: Array, size: Array) -> Array:
            return np.asarray(unit * (1.0 + np.clip(z, 0.0, 40.0) ** 2 + np.abs(size)))

        monkeypatch.setattr(module, "lost_digits", lost)
        at = event.profile(np.array([epsilon]))
        assert at is not None
        return float(at[0])

    added = (found(2.0**-20) - found(0.0)) * 2.0**20
    with mpmath.workdps(60):
        e = mpf(epsilon)
        if kind is LogCoshObjective:
            z = max((e - mpmath.log1p(k) - m**2 / 2) / m, 0)
            reached = 2 * below(z)
        else:
            g = 2 * mpmath.sqrt(k * max(e, 0)) - k
            z, reached = max(g / m, 0), mpf(1) if e < 0 else below(g / m - m / 2)
        both = 2 * reached - profile(m, k, e)
        assert added == pytest.approx(float((1 + z**2 + abs(e) + k) * both), rel=1e-6)


def test_one_delta_is_that_of_an_array_to_the_last_bit() -> None:
    """Ledgers find their epsilon by one delta at a time: stored totals must not change."""
    from tacit.privacy.accounting.gaussian_profile import _log_delta_at, _log_delta_of_small_mu

    for mu, x in itertools.product(MUS, (0.0, 1e-3, 0.5, 2.0, 5.0, 8.0, 49.9, 51.0, 1e6, 1e200)):
        assert _log_delta_at(mu, x) == float(_log_delta_of_small_mu(mu, np.asarray(x)))
