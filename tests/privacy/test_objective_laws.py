"""Profiles and Renyi bounds of objective perturbation against integrals over the law of the loss.

What is integrated is the law that docs/proofs/objective_perturbation.md proves: the Jacobian of
each event and its vertices are written down here again, on their own.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtr

from tacit.privacy import (
    Event,
    LinearModelObjective,
    LogisticObjective,
    MonotoneObjective,
    PureEpsilon,
    PureObjective,
    Relation,
    SoftmaxObjective,
)
from tacit.privacy.accounting.gaussian_profile import gaussian_delta

Array = npt.NDArray[np.float64]
Vertices = tuple[tuple[float, float], ...]  # weight and mu


def logistic_jacobian(row_norm: float, ridge: float, std: float) -> float:
    """Return the greatest log(1 + u R^2/lam) - u R^2/(2 s^2), or k/4 for a strong ridge."""
    stretch, relief = row_norm**2 / ridge, row_norm**2 / (2 * std**2)
    if stretch - relief <= 2.0:
        return max(stretch - relief, 0.0) / 4
    u = np.linspace(0.0, 0.25, 100_001)
    return float(np.max(np.log1p(u * stretch) - u * relief))


def cases() -> list[tuple[Event, float, Vertices]]:
    """Return events with their Jacobian and vertices."""
    replace, found = Relation.REPLACE, list[tuple[Event, float, Vertices]]()
    for row_norm, ridge, std in ((2.0, 1.7, 3.0), (2.0, 5.0, 1.2), (1.5, 0.2, 4.0)):
        jacobian, mu = logistic_jacobian(row_norm, ridge, std), row_norm / std
        both = ((1.0, 2 * mu), (2.0, mu))
        found.append((LogisticObjective(row_norm, ridge, std, replace), jacobian, both))
    # weak ridges: the greatest u is inside, or at its end
    for row_norm, ridge, std in ((2.0, 0.3, 0.9), (2.0, 0.05, 8.0), (1.0, 0.3, 1.1)):
        jacobian, mu = logistic_jacobian(row_norm, ridge, std), row_norm / std
        found.append((LogisticObjective(row_norm, ridge, std), jacobian, ((1.0, mu),)))
    for lipschitz, smoothness, ridge, std in ((2.0, 3.0, 5.0, 1.6), (0.5, 0.7, 4.0, 2.0)):
        jacobian, mu = math.log(1 + smoothness / ridge), lipschitz / std
        numbers = lipschitz, smoothness, ridge, std
        both = ((1.0, 2 * mu), (2.0, mu))
        found.append((MonotoneObjective(*numbers), jacobian, ((1.0, mu),)))
        found.append((MonotoneObjective(*numbers, replace), jacobian, both))
        found.append((LinearModelObjective(*numbers), jacobian, ((2.0, mu),)))
    for n_classes, ridge, std in ((2, 3.0, 2.0), (5, 3.0, 2.0), (4, 8.0, 1.5)):
        jacobian = (1 - 1 / n_classes) * 1.5**2 * max(1 / ridge - 1 / (2 * std**2), 0.0)
        vertex = float(n_classes - 1), math.sqrt(2) * 1.5 / std
        found.append((SoftmaxObjective(1.5, n_classes, ridge, std), jacobian, (vertex,)))
    return found


def survival(vertices: Vertices, y: Array) -> Array:
    """Return the union bound on P[G > y], at most 1."""
    total = sum(weight * ndtr(mu / 2 - y / mu) for weight, mu in vertices)
    return np.minimum(np.asarray(total), 1.0)


def integral(values: Array, spacing: float) -> float:
    return float(spacing * (values.sum() - (values[0] + values[-1]) / 2))


@pytest.mark.parametrize("case", cases(), ids=lambda case: type(case[0]).__name__)
def test_the_profile_is_an_integral_over_the_union_bound(
    case: tuple[Event, float, Vertices],
) -> None:
    event, jacobian, vertices = case
    mu = max(mu for _, mu in vertices)
    ahead = np.linspace(0.0, 30.0 + 20 * mu, 200_001)
    epsilons = np.array([-1.0, 0.0, 0.3 * jacobian, jacobian, jacobian + 0.2 * mu, 1.0, 2.0, 3.0])
    expected = []
    for epsilon in epsilons:
        # E(1 - exp(epsilon - X))_+ is the integral of exp(epsilon - x) P[X > x] from epsilon on
        x = epsilon + ahead
        above = np.where(x < jacobian, 1.0, survival(vertices, np.maximum(x - jacobian, 0.0)))
        expected.append(integral(np.exp(-ahead) * above, ahead[1]))
    found = event.profile(epsilons)
    assert found is not None
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-8)


@pytest.mark.parametrize("case", cases(), ids=lambda case: type(case[0]).__name__)
def test_renyi_is_an_integral_over_the_union_bound(case: tuple[Event, float, Vertices]) -> None:
    event, jacobian, vertices = case
    mu = max(mu for _, mu in vertices)
    for order in (1.2, 2.0, 5.0):
        b = order - 1.0
        y = np.linspace(0.0, 12 * mu + order * mu**2, 200_001)
        # E exp(b Y) = 1 + the integral of b exp(b y) P[Y > y], Y = X - jacobian >= 0
        moment = 1.0 + integral(b * np.exp(b * y) * survival(vertices, y), y[1])
        expected = jacobian + math.log(moment) / b
        assert event.renyi(np.array([order]))[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("row_norm", "ridge", "std"), [(2.0, 2.2, 4.0), (2.0, 3.0, 1.5), (0.5, 0.4, 1.0)]
)
def test_the_logistic_profile_is_an_integral_over_its_loss(
    row_norm: float, ridge: float, std: float
) -> None:
    mu, k = row_norm / std, row_norm**2 * (1 / ridge - 1 / (2 * std**2))
    assert 0 < k <= 2
    z = np.linspace(-12.0, 12.0, 200_001)
    weight = np.exp(-(z**2) / 2) * (z[1] - z[0]) / math.sqrt(2 * math.pi)
    gaussian = mu**2 / 2 + mu * z
    # max over t in [0, 1] of t G + k t (1 - t)
    t = np.clip((gaussian + k) / (2 * k), 0.0, 1.0)
    x = t * gaussian + k * t * (1 - t)
    epsilons = np.array([-0.7, -0.1, 0.0, 0.2 * k, 0.6 * k, 0.99 * k, k, 1.3 * k, 2.0, 4.0])
    expected = [(weight * -np.expm1(np.minimum(e - x, 0.0))).sum() for e in epsilons]
    event = LogisticObjective(row_norm, ridge, std)
    np.testing.assert_allclose(event.profile(epsilons), expected, rtol=1e-5, atol=1e-9)
    assert event.gaussian_mu() is None
    # from lam = 2 s^2 on the Jacobian is free
    free = LogisticObjective(row_norm, 2 * std**2, std)
    assert free.gaussian_mu() == mu
    np.testing.assert_allclose(free.renyi(np.array([3.0])), 3.0 * mu**2 / 2, rtol=1e-12)
    assert LogisticObjective(row_norm, 2 * std**2, std, Relation.REPLACE).gaussian_mu() is None


@pytest.mark.parametrize("rank", [1, 3])
def test_the_pure_loss_is_that_of_noise_and_jacobian(rank: int) -> None:
    jacobian = rank * math.log(1 + 0.7 / (rank * 2.5))
    for relation, moved in ((Relation.ADD_REMOVE, 1.0), (Relation.REPLACE, 2.0)):
        event = PureObjective(1.3, 0.7, 2.5, 4.0, rank, relation)
        assert event.pure_epsilon() == pytest.approx(
            moved * 1.3 / 4.0 + jacobian, rel=1e-14, abs=0.0
        )
        generic = PureEpsilon(event.pure_epsilon(), relation)
        at = np.array([0.1, 0.2])
        assert np.array_equal(np.asarray(event.profile(at)), generic.profile(at))
        assert np.array_equal(event.renyi(at + 2.0), generic.renyi(at + 2.0))


def test_where_the_curvature_is_just_free_the_profile_is_the_gaussian() -> None:
    event = LogisticObjective(row_norm=1.0, regularization=2.0, noise_std=1.0)  # lam = 2 s^2
    at = np.array([-0.5, 0.0, 0.5, 2.0])
    assert event.gaussian_mu() == 1.0
    np.testing.assert_array_equal(event.profile(at), gaussian_delta(1.0, at))


def law_before_bounds(mu: float, stretch: float, epsilon: Array) -> Array:
    """Return E(1 - exp(epsilon - Y))_+ by quadrature, Y that of the noise lemma, logistic loss."""
    z, step = np.linspace(-9.0, 9.0, 2001, retstep=True)
    t = np.linspace(0.0, 1.0, 201)
    chord, jacobian = t * (1 - t) * mu**2 / 2, np.log1p(stretch * t * (1 - t))
    y = np.max(np.outer(mu * z + mu**2 / 2, t) - chord + jacobian, axis=1)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    inside = np.maximum(-np.expm1(epsilon[:, None] - y), 0.0)
    result: Array = inside @ density * step
    return result


@pytest.mark.parametrize("stretch", [0.1, 0.6, 2.2, 9.0])
def test_more_noise_costs_no_more_though_its_relief_is_smaller(stretch: float) -> None:
    """The noise lemma (docs/proofs/objective_perturbation.md, section 13), and what it is for."""
    epsilon = np.linspace(0.0, 6.0, 25)
    less_noise = np.ones_like(epsilon)
    for mu in (3.0, 1.8, 1.0, 0.5, 0.2):
        profile = law_before_bounds(mu, stretch, epsilon)
        event = LogisticObjective(1.0, 1 / stretch, 1 / mu)
        assert np.all(profile <= event.profile(epsilon) + 1e-5)  # the error of the quadrature
        assert np.all(profile <= less_noise + 1e-12)
        less_noise = profile
