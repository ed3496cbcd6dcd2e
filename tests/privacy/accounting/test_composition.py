"""One closed form beside Gaussians: E h(e - L), from above and closely; costs that are NaN."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest

from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    GaussianSum,
    Guarantee,
    LinearModelObjective,
    LogisticObjective,
    MonotoneObjective,
    NonPrivate,
    Parallel,
    PureEpsilon,
    PureObjective,
    Relation,
    RenyiSum,
    Repeated,
    SampledGaussian,
    SoftmaxObjective,
    SumOfEpsilons,
    ZeroConcentrated,
    calibrate,
)
from tacit.privacy.accounting.composition import LossDistributionRoute, ProfileAndGaussiansRoute
from tacit.privacy.accounting.loss_distribution import good_interval
from tacit.privacy.filters import Charge, Filter

REPLACE = Relation.REPLACE
DELTAS = (1e-2, 1e-4, 1e-6, 1e-10, 1e-14)
MUS = (0.005, 0.1, 0.5, 2.0)
EVENTS: dict[str, Event] = {
    "logistic": LogisticObjective(1.0, 2.0, 4.3),
    "logistic, strong curvature": LogisticObjective(1.0, 0.6, 8.0),
    "logistic, weak ridge": LogisticObjective(1.0, 0.1, 3.0),
    "logistic, replace": LogisticObjective(1.0, 10.0, 7.6, REPLACE),
    "monotone": MonotoneObjective(1.0, 0.25, 10.0, 3.8),
    "monotone, replace": MonotoneObjective(1.0, 0.25, 10.0, 7.7, REPLACE),
    "linear": LinearModelObjective(1.0, 0.25, 10.0, 4.0),
    "softmax": SoftmaxObjective(1.0, 10, 71.0, 5.9),
    "softmax, weak ridge": SoftmaxObjective(1.0, 3, 0.5, 20.0),
    "pure": PureEpsilon(0.7),
    "large pure": PureEpsilon(6.0),
    "pure objective": PureObjective(1.0, 0.25, 10.0, 2.0),
    "exponential": ExponentialMechanism(1.3),
}


def kinks(event: Event) -> list[float]:
    """Return where the profile is not smooth."""
    if math.isfinite(event.pure_epsilon()):
        return [-event.pure_epsilon(), event.pure_epsilon()]
    bound = event._bound()  # type: ignore[attr-defined]
    found = [bound.jacobian + bound._floor()]
    return [*found, 0.0, event._curvature] if isinstance(event, LogisticObjective) else found


def by_quadrature(event: Event, mu: float, epsilon: float) -> float:
    """Return E h(e - L) by Gauss-Legendre panels, none of which holds a kink."""
    corners = (epsilon - np.array(kinks(event)) - mu * mu / 2) / mu
    edges = np.concatenate([np.linspace(-12.0, 30.0, 1400), corners])
    edges = np.unique(np.clip(edges, -12.0, 30.0))
    points, weights = np.polynomial.legendre.leggauss(16)
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    z = (middle[:, None] + half[:, None] * points).ravel()
    h = event.profile(epsilon - mu * mu / 2 - mu * z)
    assert h is not None
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return math.fsum((half[:, None] * weights).ravel() * density * h)


def beside(event: Event, mu: float) -> Composed:
    """Return the event among Gaussians of total mu: 2 mu^2/4 + 2 mu^2/4."""
    small = Repeated(Gaussian(2.0 / mu, event.relation), 2)
    return Composed((small, event, Gaussian(math.sqrt(2.0) / mu, event.relation)))


def route_of(composed: Event) -> ProfileAndGaussiansRoute:
    route = Guarantee(composed)._routes[0]
    assert isinstance(route, ProfileAndGaussiansRoute)
    return route


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("mu", MUS)
def test_delta_is_the_convolution_from_above(name: str, mu: float) -> None:
    event = EVENTS[name]
    route = route_of(beside(event, mu))
    assert route.mu == pytest.approx(mu, rel=1e-14, abs=0.0)
    for delta in DELTAS:
        epsilon = route.epsilon(delta)
        assert route.delta(epsilon) <= delta
        exact = by_quadrature(event, mu, epsilon)
        assert exact * (1 - 1e-12) <= route.delta(epsilon) <= exact * (1 + 1e-4), delta


@pytest.mark.parametrize("mu", MUS)
def test_beside_a_small_gaussian_it_is_closer_still(mu: float) -> None:
    # as a plan of objective perturbation has it: a fiftieth of the whole
    event = LogisticObjective(1.0, 0.1 / mu**2, 1 / mu)
    route = route_of(Composed((event, Gaussian(50 / mu))))
    for delta in DELTAS:
        epsilon = route.epsilon(delta)
        assert route.delta(epsilon) <= by_quadrature(event, mu / 50, epsilon) * (1 + 1.5e-5)


@pytest.mark.parametrize("epsilon0", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("mu", MUS)
def test_pure_beside_gaussians_in_closed_form(epsilon0: float, mu: float) -> None:
    # Randomised response has two losses: p dG(mu, e - e0) + (1 - p) dG(mu, e + e0).
    route = route_of(Composed((PureEpsilon(epsilon0), Gaussian(1 / mu))))
    for delta in DELTAS:
        e = route.epsilon(delta)
        with mpmath.workdps(60):
            p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon0)))
            exact = p * _gaussian(mu, mpmath.mpf(e) - epsilon0)
            exact += (1 - p) * _gaussian(mu, mpmath.mpf(e) + epsilon0)
        assert exact <= route.delta(e) <= exact * (1 + 1e-4)


def _gaussian(mu: float, e: mpmath.mpf) -> mpmath.mpf:
    m = 1 / (1 / mpmath.mpf(mu))
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


class HidesItsMu(Gaussian):
    """A Gaussian known by its profile alone."""

    def gaussian_mu(self) -> None:  # type: ignore[override]
        return None

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return Gaussian(self.noise_multiplier).profile(epsilon)

    def renyi(self, orders: np.ndarray) -> np.ndarray:
        return Gaussian(self.noise_multiplier).renyi(orders)


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("other", [1e-3, 0.1, 1.0, 5.0])
def test_gaussians_by_their_profiles_compose_as_gaussians_do(mu: float, other: float) -> None:
    route = route_of(Composed((HidesItsMu(1 / other), Gaussian(1 / mu))))
    exact = Guarantee(Composed((Gaussian(1 / other), Gaussian(1 / mu))))
    for delta in DELTAS:
        epsilon = exact.epsilon(delta)
        true = exact.delta(epsilon)
        assert true <= route.delta(epsilon) <= true * (1 + 1e-4)
        assert epsilon * (1 - 1e-12) <= route.epsilon(delta) <= epsilon * (1 + 1e-4)


@pytest.mark.parametrize("name", EVENTS)
def test_loss_distributions_of_one_profile_are_never_tighter(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(EVENTS[name]), "profiles_by_order", Event.profiles_by_order)
    composed = beside(EVENTS[name], 0.3)
    route, leaves = route_of(composed), Guarantee(composed)._leaves
    coarse = LossDistributionRoute(leaves, good_interval(leaves))
    for delta in (1e-2, 1e-6, 1e-10):
        epsilon = route.epsilon(delta)
        assert route.delta(epsilon) <= coarse.delta(epsilon) * (1 + 1e-6)
        assert epsilon <= coarse.epsilon(delta) * (1 + 1e-6)


def wrong_sign(epsilon: float, route: ProfileAndGaussiansRoute) -> float:
    losses, masses = route.atoms.losses - route.mu**2, route.atoms.masses
    return float(masses @ np.asarray(route.event.profile(epsilon - losses)))


def lower_edges(epsilon: float, route: ProfileAndGaussiansRoute) -> float:
    losses = np.concatenate([route.atoms.losses[:1], route.atoms.losses[:-1]])
    return float(route.atoms.masses @ np.asarray(route.event.profile(epsilon - losses)))


@pytest.mark.parametrize("mutant", [wrong_sign, lower_edges])
@pytest.mark.parametrize("name", ["logistic", "softmax", "pure"])
def test_mutants_fall_below_the_convolution(
    mutant: Callable[[float, ProfileAndGaussiansRoute], float], name: str
) -> None:
    event = EVENTS[name]
    route = route_of(beside(event, 0.1))
    epsilon = route.epsilon(1e-6)
    assert mutant(epsilon, route) < by_quadrature(event, 0.1, epsilon) * (1 - 1e-3)


@pytest.mark.parametrize("name", EVENTS)
def test_delta_falls_with_epsilon(name: str) -> None:
    route = route_of(beside(EVENTS[name], 0.2))
    deltas = [route.delta(float(e)) for e in np.linspace(0.0, 12.0, 400)]
    assert np.all(np.diff(deltas) <= 0.0)
    assert route.epsilon(0.0) == math.inf
    assert Guarantee(beside(EVENTS[name], 0.2)).epsilon(0.0) == math.inf


def test_what_it_is_not_for() -> None:
    small = Gaussian(50.0)
    for event in (
        Composed((Repeated(PureEpsilon(0.1), 2), small)),
        Composed((PureEpsilon(0.1), PureEpsilon(0.2), small)),
        Composed((SampledGaussian(1.0, 0.1), small)),  # its two orders differ
    ):
        assert isinstance(Guarantee(event)._routes[0], LossDistributionRoute)


@pytest.mark.parametrize("multiplier", [1e-9, 1e-3, 1e9, 1e160, 1e300])
def test_extreme_gaussians_beside_an_event(multiplier: float) -> None:
    event = LogisticObjective(1.0, 2.0, 4.3)
    alone, both = Guarantee(event), Guarantee(Composed((event, Gaussian(multiplier))))
    assert both.delta(1.0) >= alone.delta(1.0)
    assert both.delta(1.0) == pytest.approx(
        alone.delta(1.0) if multiplier > 1 else 1.0, rel=1e-7, abs=0.0
    )


def test_a_plan_of_logistic_regression_needs_no_loss_distribution() -> None:
    code = (
        "import sys\n"
        "from tacit.linear_model import LogisticRegression\n"
        "LogisticRegression(1.0, 1e-6, classes=[0, 1]).plan(20)\n"
        "print('dp_accounting' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@dataclass(frozen=True)
class Nameless(Event):
    """An event whose Renyi divergence is NaN from some order on."""

    relation: Relation = Relation.ADD_REMOVE

    def renyi(self, orders: Any) -> Any:
        return np.where(orders < 12.0, orders, math.nan)


@pytest.mark.parametrize("event", [Nameless(), Composed((Gaussian(9.0), Nameless()))])
@pytest.mark.parametrize("rule", [SumOfEpsilons(), RenyiSum(), GaussianSum()])
def test_a_divergence_that_is_nan_is_refused(event: Event, rule: Filter) -> None:
    said = r"Renyi divergence of Nameless is NaN at order 1[26], .*refused.*math\.inf"
    for ask in (lambda: Guarantee(event).epsilon(1e-6), lambda: Guarantee(event).delta(1.0)):
        with pytest.raises(ArithmeticError, match=said):
            ask()
    accountant = Accountant(Budget(1e9, 0.5), rule)
    with pytest.raises((ArithmeticError, BudgetExceeded)):
        accountant.charge(event, 1e-6)
    assert accountant.spent() == 0.0
    with pytest.raises(ArithmeticError, match=said):
        RenyiSum().spent((Charge(event, 1e-6),), 1e-6)
    with pytest.raises(ArithmeticError, match=said):
        calibrate(lambda noise: event, Budget(1.0, 1e-6))


def test_one_release_without_a_promise_voids_all() -> None:
    for events in ((Gaussian(2.0), NonPrivate("no")), (NonPrivate("no"), PureEpsilon(0.5))):
        promise = Guarantee(Composed(events))
        assert promise.route(1e-5) == "none: the release is not private"
        assert promise.epsilon(1e-5) == math.inf


def test_parts_of_which_one_has_no_loss_distribution_go_by_divergences() -> None:
    parts = Parallel((PureEpsilon(0.2), ZeroConcentrated(0.01)))
    promise = Guarantee(Repeated(parts, 3))
    assert promise.route(1e-5) == "Renyi"
    assert promise.epsilon(1e-5) < 2.0
