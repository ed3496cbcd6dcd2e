"""Every number of the design's sections 1 and 3 that concerns accounting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit.privacy import (
    Budget,
    Event,
    Gaussian,
    Guarantee,
    LinearModelObjective,
    LogisticObjective,
    MonotoneObjective,
    PureObjective,
    Relation,
    Repeated,
    SampledGaussian,
    SoftmaxObjective,
    calibrate,
)
from tacit.privacy.accounting.composition import GaussianRoute, LossDistributionRoute, RenyiRoute

REPLACE = Relation.REPLACE


@pytest.mark.parametrize(
    ("epsilon", "delta", "multiplier"),
    [
        (1, 1e-5, 3.730632),
        (0.1, 1e-5, 30.749566),
        (3, 1e-5, 1.390593),
        (8, 1e-5, 0.600229),
        (1, 1e-6, 4.224679),
    ],
)
def test_gaussian_multipliers(epsilon: float, delta: float, multiplier: float) -> None:
    event: Any = calibrate(Gaussian, Budget(epsilon, delta))
    assert event.noise_multiplier == pytest.approx(multiplier, abs=6e-7)
    assert Guarantee(event).epsilon(delta) == pytest.approx(epsilon, rel=1e-9)


def test_full_batch_gradient_descent() -> None:
    # 4.1: T = 100 at (1, 1e-5) under REPLACE: 74.61 L / n with sensitivity 2 L / n
    event: Any = calibrate(lambda z: Repeated(Gaussian(z, REPLACE), 100), Budget(1, 1e-5, REPLACE))
    assert 2 * event.event.noise_multiplier == pytest.approx(74.61, abs=5e-3)


@pytest.mark.parametrize(
    ("family", "relation", "noise"),
    [
        (lambda s: LogisticObjective(1, 10, s), Relation.ADD_REMOVE, 3.73063),
        (lambda s: MonotoneObjective(1, 0.25, 10, s), Relation.ADD_REMOVE, 3.81656),
        (lambda s: LogisticObjective(1, 10, s, REPLACE), REPLACE, 7.61999),
        (lambda s: LogisticObjective(1, 1000, s, REPLACE), REPLACE, 7.46126),
        # Redberg et al. as published: their Jacobian -log(1 - beta/lam) is that of a smoothness
        # beta / (1 - beta/lam) in ours
        (
            lambda s: LinearModelObjective(1, 0.25 / (1 - 0.025), 10, s),
            Relation.ADD_REMOVE,
            3.97653,
        ),
    ],
)
def test_objective_perturbation(family, relation: Relation, noise: float) -> None:  # type: ignore[no-untyped-def]
    event: Any = calibrate(family, Budget(1, 1e-5, relation))
    assert event.noise_std == pytest.approx(noise, abs=6e-6)


def test_softmax() -> None:
    event: Any = calibrate(lambda s: SoftmaxObjective(1, 10, 71, s), Budget(1, 1e-5))
    assert event.noise_std == pytest.approx(5.944, abs=6e-4)


def test_units_of_the_row_norm() -> None:
    # R times a, noise times a, lam times a^2: the same law (catches R for R^2)
    for scale in (0.1, 12.0, 100.0):
        for event, scaled in [
            (LogisticObjective(1, 0.5, 2), LogisticObjective(scale, 0.5 * scale**2, 2 * scale)),
            (
                SoftmaxObjective(1, 4, 0.5, 2),
                SoftmaxObjective(scale, 4, 0.5 * scale**2, 2 * scale),
            ),
        ]:
            a, b = Guarantee(event), Guarantee(scaled)
            assert b.epsilon(1e-5) == pytest.approx(a.epsilon(1e-5), rel=1e-9)


def test_pure_objective_perturbation() -> None:
    # CMS11, n = 1000, Lam = 0.01 (lam = 10), c = 1/4: epsilon 0.1 leaves 0.0753074 to the noise
    event = PureObjective(1.0, 0.25, 10.0, noise_radius=2 / 0.0753074, relation=REPLACE)
    assert Guarantee(event).epsilon(0.0) == pytest.approx(0.1, abs=1e-7)
    # epsilon = 0.04: lam = 10 + 1000 * 0.0023754 leaves half of epsilon
    event = PureObjective(1.0, 0.25, 10 + 2.3754, noise_radius=2 / 0.02, relation=REPLACE)
    assert Guarantee(event).epsilon(0.0) == pytest.approx(0.04, abs=1e-6)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "pld", "renyi"),
    [
        (1.0, 0.01, 10_000, 6.188, (6.7125, 6.7200)),
        (4.0, 0.01, 10_000, 0.947, (1.0350, 1.0360)),
        (1.1, 256 / 60_000, 14_062, 2.38, (2.5900, 2.5975)),
    ],
)
def test_noisy_sgd(
    sigma: float, rate: float, steps: int, pld: float, renyi: tuple[float, float]
) -> None:
    promise = Guarantee(Repeated(SampledGaussian(sigma, rate), steps))
    assert promise.route(1e-5) == "privacy-loss distribution"
    assert promise.epsilon(1e-5) == pytest.approx(pld, abs=6e-4 if pld != 2.38 else 5e-3)
    assert renyi[0] <= RenyiRoute(promise._leaves).epsilon(1e-5) <= renyi[1]


def test_renyi_of_the_sampled_gaussian_against_quadrature() -> None:
    # E_{x ~ N(0, z^2)} [ (1 - q + q exp((2x - 1) / (2 z^2)))^a ], by quadrature
    x = np.linspace(-60, 80, 400_001)
    for z, q, a in [(1.0, 0.01, 4), (2.0, 0.3, 17), (0.7, 0.05, 2)]:
        log_base = -(x**2) / (2 * z * z) - math.log(z * math.sqrt(2 * math.pi))
        ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * z * z))
        moment = np.trapezoid(np.exp(log_base + a * ratio), x)
        got = SampledGaussian(z, q).renyi(np.array([float(a)]))[0]
        assert got == pytest.approx(math.log(moment) / (a - 1), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "route"),
    [
        (Gaussian, GaussianRoute),
        (lambda z: Repeated(SampledGaussian(z, 0.01), 10_000), LossDistributionRoute),
    ],
    ids=["gaussian", "noisy sgd"],
)
def test_calibration_looks_seldom(
    family: Callable[[float], Event], route: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A look at a loss distribution costs a convolution. 7 to 9 are needed from a good start; twice
    # as many without one.
    honest, looks = route.delta, []

    def counted(self: Any, epsilon: float) -> Any:
        looks.append(epsilon)
        return honest(self, epsilon)

    monkeypatch.setattr(route, "delta", counted)
    for epsilon, delta in [(0.7, 1e-5), (5.0, 1e-5)]:
        looks.clear()
        calibrate(family, Budget(epsilon, delta))
        assert 2 <= len(looks) <= 10, (epsilon, delta)


@pytest.mark.slow
def test_calibration_agrees_with_dp_accounting() -> None:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    def theirs() -> float:
        sigma: float = dp_accounting.calibrate_dp_mechanism(
            PLDAccountant,
            lambda s: dp_accounting.SelfComposedDpEvent(
                dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(s)), 10_000
            ),
            1.0,
            1e-5,
        )
        return sigma

    def ours() -> float:
        event: Any = calibrate(
            lambda s: Repeated(SampledGaussian(s, 0.01), 10_000), Budget(1, 1e-5)
        )
        multiplier: float = event.event.noise_multiplier
        return multiplier

    assert ours() == pytest.approx(theirs(), rel=1e-3)
