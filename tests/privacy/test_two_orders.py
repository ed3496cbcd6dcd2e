"""Each order of neighbours has its own loss distribution, never below the exact one.

Exact densities of one-dimensional fits (`tests/privacy/test_appendix_a.py`) are compared with the
distributions of `loss_distribution.from_profile`, in each order and for epsilon of either sign, and
two or three fits together with what a guarantee says of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.privacy import (
    Composed,
    Event,
    Gaussian,
    Guarantee,
    LinearModelObjective,
    LogCoshObjective,
    LogisticObjective,
    MonotoneObjective,
    PureEpsilon,
    Relation,
    Repeated,
    SampledGaussian,
    SoftmaxObjective,
)
from tacit.privacy.accounting import loss_distribution
from tacit.privacy.accounting.loss_distribution import from_profile, good_interval, points_of
from tests.privacy.test_appendix_a import Fit, exact_delta

Array = npt.NDArray[np.float64]

OBJECTIVES: list[Event] = [
    LogisticObjective(1.0, 2.0, 4.5),
    LogisticObjective(1.0, 0.2, 4.5),
    LogisticObjective(0.65, 55.0, 170.0),
    MonotoneObjective(1.0, 0.25, 10.0, 3.81656),
    LinearModelObjective(1.0, 0.25, 10.0, 4.0),
    LogCoshObjective(1.0, 1.0, 2.0, 3.88415),
    SoftmaxObjective(1.0, 10, 71.0, 5.944),
]
ROW_NORM, RIDGE, NOISE = 1.0, 0.3, 1.5


def distribution_at(event: Event, epsilon: Array) -> tuple[Array, Array]:
    """Return the deltas of an event's two distributions, linear in exp(epsilon) between dots."""
    losses, first, second = points_of(from_profile(event, good_interval([(event, 1)])))
    alpha = np.exp(np.concatenate([[-np.inf], losses]))
    values = [np.concatenate([[1.0], deltas]) for deltas in (first, second)]
    return tuple(np.interp(np.exp(epsilon), alpha, each) for each in values)  # type: ignore[return-value]


def fits(label: float = 1.0, n_others: int = 2) -> tuple[Fit, Fit]:
    """Return a fit with one more record and the fit without it."""
    x, y = np.full(n_others, 0.4), np.ones(n_others)
    without = Fit(x, y, RIDGE, NOISE)
    return Fit(np.append(x, ROW_NORM), np.append(y, label), RIDGE, NOISE), without


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("n_others", [0, 3])
def test_no_exact_delta_is_above_its_orders_distribution(label: float, n_others: int) -> None:
    event = LogisticObjective(ROW_NORM, RIDGE, NOISE)
    longer, shorter = fits(label, n_others)
    epsilon = np.array([-1.5, -0.7, -0.2, -0.01, 0.0, 0.05, 0.3, 0.9, 1.6])
    with_record, without = distribution_at(event, epsilon)
    for e, first, second in zip(epsilon.tolist(), with_record, without, strict=True):
        assert exact_delta(longer, shorter, e) <= first * (1 + 1e-9)
        assert exact_delta(shorter, longer, e) <= second * (1 + 1e-9)


def test_the_order_without_the_jacobian_does_not_serve_for_the_other() -> None:
    """One row where a record moves the Hessian by much: the cheaper profile is exceeded."""
    event = LogisticObjective(ROW_NORM, 0.02, 30.0)
    longer = Fit(np.array([ROW_NORM]), np.ones(1), 0.02, 30.0)
    shorter = Fit(np.zeros(0), np.zeros(0), 0.02, 30.0)
    with_record, without = distribution_at(event, np.array([0.05]))
    exact = exact_delta(longer, shorter, 0.05)
    assert without[0] < exact <= with_record[0]


def losses_of(fit: Fit, other: Fit) -> tuple[Array, Array]:
    """Return the privacy loss at quadrature nodes of the fit's own noise, and their masses."""
    nodes, weights = np.polynomial.legendre.leggauss(10)
    edges = np.linspace(-8, 8, 41)
    half = np.diff(edges)[:, None] / 2
    z = ((edges[:-1] + edges[1:])[:, None] / 2 + half * nodes).ravel()
    mass = (half * weights).ravel() * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    w = fit.minimiser(z * fit.noise_std)
    return fit.log_density(w) - other.log_density(w), mass


def together(first: tuple[Array, Array], second: tuple[Array, Array], epsilon: float) -> float:
    """Return E(1 - exp(epsilon - L1 - L2))_+ of independent losses."""
    losses = first[0][:, None] + second[0][None, :]
    masses = first[1][:, None] * second[1][None, :]
    return float(np.sum(masses * -np.expm1(np.minimum(epsilon - losses, 0.0))))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.2])
def test_two_fits_cost_no_more_than_their_guarantee(epsilon: float) -> None:
    event = Repeated(LogisticObjective(ROW_NORM, RIDGE, NOISE), 2)
    longer, shorter = fits()
    claim = Guarantee(event).delta(epsilon)
    for a, b in ((longer, shorter), (shorter, longer)):
        loss = losses_of(a, b)
        assert together(loss, loss, epsilon) <= claim


@pytest.mark.parametrize("epsilon", [0.3, 0.8])
def test_orders_are_those_of_sampled_releases(epsilon: float) -> None:
    """With the record first everywhere: composing one order with the other would claim less."""
    z, q = 1.0, 0.3
    objective, sampled = LogisticObjective(ROW_NORM, RIDGE, NOISE), SampledGaussian(z, q)
    claim = Guarantee(Composed((objective, sampled))).delta(epsilon)
    longer, shorter = fits()

    def sampled_losses(with_record: bool) -> tuple[Array, Array]:
        x = np.linspace(-9, 10, 1200)
        log_q = -(x**2) / (2 * z * z) - math.log(z * math.sqrt(2 * math.pi))
        log_p = log_q + np.log1p(q * np.expm1((2 * x - 1) / (2 * z * z)))
        top, bottom = (log_p, log_q) if with_record else (log_q, log_p)
        return top - bottom, np.exp(top) * (x[1] - x[0])

    exact = [
        together(losses_of(a, b), sampled_losses(order), epsilon)
        for a, b, order in ((longer, shorter, True), (shorter, longer, False))
    ]
    assert max(exact) <= claim
    first, second = distribution_at(objective, np.array([epsilon]))
    assert first[0] > second[0]  # the Jacobian is paid where the record is in the first law
    interval = good_interval([(sampled, 1)])
    losses, remove, add = points_of(sampled.loss_distribution(interval))
    at = int(np.searchsorted(losses, epsilon))
    assert remove[at] > add[at]


@pytest.mark.parametrize("event", OBJECTIVES, ids=lambda e: type(e).__name__)
def test_distributions_keep_to_the_profiles(event: Event) -> None:
    """Above 0 a distribution is at most its order's profile, but for the spacing; never below."""
    epsilon = np.linspace(0.0, 1.0, 41)
    profiles = event.profiles_by_order(epsilon)
    assert profiles is not None
    assert np.all(profiles[1] <= profiles[0] * (1 + 1e-12))
    for deltas, bound in zip(distribution_at(event, epsilon), profiles, strict=True):
        assert np.all(deltas <= np.maximum(bound * (1 + 4e-2), 1e-15))


@pytest.mark.parametrize("event", OBJECTIVES, ids=lambda e: type(e).__name__)
def test_an_order_is_the_reflection_of_the_other(event: Event) -> None:
    """H_alpha(P||Q) = 1 - alpha + alpha H_(1/alpha)(Q||P): the two hulls say the same."""
    losses, first, second = points_of(from_profile(event, good_interval([(event, 1)])))
    inside = np.abs(losses) < 0.9 * np.max(losses)
    reflected = -np.expm1(losses) + np.exp(losses) * np.interp(-losses, losses, second)
    np.testing.assert_allclose(first[inside], reflected[inside], atol=1e-6)


def test_under_replacement_one_profile_serves_for_both() -> None:
    for event in (
        LogisticObjective(1.0, 2.0, 4.5, Relation.REPLACE),
        MonotoneObjective(1.0, 0.25, 10.0, 3.8, Relation.REPLACE),
    ):
        profiles = event.profiles_by_order(np.linspace(0.0, 2.0, 9))
        assert profiles is not None
        np.testing.assert_array_equal(*profiles)


def test_people_have_two_orders() -> None:
    event = LogisticObjective(1.0, 0.2, 4.5, Relation.ADD_REMOVE_PERSON)
    with_record, without = event.profiles_by_order(np.array([0.05]))
    assert without[0] < with_record[0]


def test_pure_objective_perturbation_has_one_profile() -> None:
    from tacit.privacy import PureObjective

    event = PureObjective(1.0, 0.25, regularization=10.0, noise_radius=1.0)
    np.testing.assert_array_equal(*event.profiles_by_order(np.linspace(0.0, 1.0, 5)))
    twice = Guarantee(Repeated(event, 2)).epsilon(1e-9)
    assert twice == pytest.approx(
        Guarantee(Repeated(PureEpsilon(event.pure_epsilon()), 2)).epsilon(1e-9), rel=1e-3
    )


# Fits of (1/64, 1e-6/64) on 20,000 records of 20 features, and of (1/8, 1e-6/8).
@pytest.mark.parametrize(
    ("make", "n", "most"),
    [
        ("logistic", 500, 0.3445),
        ("linear", 500, 0.590),
        ("svc", 500, 0.3430),
        ("linear8", 8, 0.6025),
    ],
)
def test_many_fits_cost_what_their_noise_does(make: str, n: int, most: float) -> None:
    epsilon = Guarantee(Repeated(planned(make), n)).epsilon(1e-6)
    assert 0.99 * most < epsilon <= most


def planned(make: str) -> Event:
    """Return the event of a fit's plan."""
    from tacit.linear_model import LinearRegression, LinearSVC, LogisticRegression

    k = 8 if make == "linear8" else 64
    budget = {"epsilon": 1 / k, "delta": 1e-6 / k, "row_norm": 1.0, "n_records": 20_000}
    models: dict[str, Callable[[], Event]] = {
        "logistic": lambda: LogisticRegression(**budget, classes=[0, 1]).plan(20).event,
        "svc": lambda: LinearSVC(**budget, classes=[0, 1]).plan(20).event,
        "linear": lambda: LinearRegression(**budget, label_range=(-1.0, 1.0)).plan(20).event,
    }
    return models["linear" if make == "linear8" else make]()


@pytest.mark.parametrize("event", OBJECTIVES[:-1], ids=lambda e: type(e).__name__)
def test_many_fits_cost_at_least_their_gaussian_part(event: Event) -> None:
    """L / s is a loss that objective perturbation has (section 15): 200 fits have at least it."""
    mu = event.dominated_gaussian_mu()
    assert mu is not None
    least = Guarantee(Repeated(Gaussian(1 / mu), 200)).epsilon(1e-6)
    assert Guarantee(Repeated(event, 200)).epsilon(1e-6) >= least * (1 - 1e-6)


def test_profiles_are_rounded_up_before_they_are_reflected(monkeypatch: pytest.MonkeyPatch) -> None:
    event, seen = LogisticObjective(1.0, 10.0, 3.730632), []
    plain = loss_distribution._hull

    def noted(own: Any, other: Any, interval: float) -> Any:
        seen.append((own, other))
        return plain(own, other, interval)

    monkeypatch.setattr(loss_distribution, "_hull", noted)
    loss_distribution.from_profile(event, 1e-2)
    (with_record, without), (second, first) = seen
    assert first is with_record
    assert second is without
    both = event.profiles_by_order(np.arange(len(with_record)) * 1e-2)
    assert both is not None
    for found, exact in zip((with_record, without), both, strict=True):
        assert np.all(found >= np.minimum(exact * (1 + 0.9e-8), 1.0))
        np.testing.assert_allclose(found, exact, rtol=1.1e-8, atol=1e-200)


def test_a_bound_that_rises_is_mended_upwards() -> None:
    """The hull of points that rise at the end is no profile: it follows the last value instead."""
    own = np.array([0.30, 0.10, 0.02, 0.05])
    other = np.array([0.25, 0.12, 0.08, 0.01])
    pmf = loss_distribution._hull(own, other, 0.5)
    found = np.array([pmf.get_delta_for_epsilon(e) for e in np.arange(-1.5, 4.0, 0.25)])
    assert np.all(np.diff(found) <= 1e-12)
    assert np.all(
        np.diff(np.diff(found[::2]) / np.diff(np.exp(np.arange(-1.5, 4.0, 0.5)))) >= -1e-12
    )
    at = dict(zip(np.arange(-1.5, 4.0, 0.25).tolist(), found.tolist(), strict=True))
    assert at[1.5] == pytest.approx(0.05)
    assert at[1.0] == pytest.approx(0.05)
    assert at[0.0] == pytest.approx(0.25)
