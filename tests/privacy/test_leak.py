"""A small probability that anything is revealed: beside other events, exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.privacy import (
    Accountant,
    Budget,
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    Guarantee,
    PureEpsilon,
    RareLeak,
    Relation,
    Repeated,
    calibrate,
)
from tacit.privacy.accounting.composition import LeakyRoute
from tacit.privacy.accounting.loss_distribution import composed

EPSILONS = (0.0, 0.3, 1.0, 3.0)


@pytest.mark.parametrize("other", [Gaussian(2.0), PureEpsilon(0.7), Repeated(Gaussian(5.0), 7)])
def test_a_leak_adds_its_probability(other: Event) -> None:
    alone, both = Guarantee(other), Guarantee(Composed((other, RareLeak(1e-3))))
    for epsilon in EPSILONS:
        expected = 1e-3 + (1 - 1e-3) * alone.delta(epsilon)
        assert expected <= both.delta(epsilon) <= expected * (1 + 1e-12)
    left = alone.epsilon((2e-3 - 1e-3) / (1 - 1e-3))
    assert both.epsilon(2e-3) == pytest.approx(left, rel=1e-12, abs=0.0)
    assert both.epsilon(0.999e-3) == math.inf
    assert "leak" in both.route(2e-3)


def test_leaks_add_up() -> None:
    leaks = Guarantee(Composed((RareLeak(0.1), Repeated(RareLeak(0.2), 2))))
    for epsilon in EPSILONS:
        assert leaks.delta(epsilon) == pytest.approx(1 - 0.9 * 0.8**2, rel=1e-12, abs=0.0)
    assert leaks.epsilon(0.5) == 0.0
    assert leaks.epsilon(0.4) == math.inf
    assert leaks.epsilon(0.0) == math.inf


def test_the_loss_distribution_is_the_profile() -> None:
    event = RareLeak(1e-4)
    distribution = event.loss_distribution(1e-3)
    for epsilon in (-2.0, -0.5, 0.0, 1.0):
        expected = event.profile(np.array([epsilon]))[0]
        assert distribution.get_delta_for_epsilon(epsilon) == pytest.approx(
            expected, rel=1e-9, abs=0.0
        )


def test_beside_events_that_are_convolved() -> None:
    others = (Repeated(ExponentialMechanism(0.3), 4), Gaussian(3.0), RareLeak(1e-7))
    both, alone = Guarantee(Composed(others)), Guarantee(Composed(others[:2]))
    # the grid is as fine as without the leak
    assert both.epsilon(1.1e-6 + 1e-7) == pytest.approx(alone.epsilon(1.1e-6), rel=1e-3)


@pytest.mark.parametrize("relation", list(Relation))
def test_it_is_calibrated_and_charged(relation: Relation) -> None:
    def family(z: float) -> Event:
        return Composed((Gaussian(z, relation), RareLeak(5e-7, relation)))

    budget = Budget(1.0, 1e-6, relation)
    event = calibrate(family, budget)
    assert 0.999 < Guarantee(event).epsilon(1e-6) <= 1.0
    accountant = Accountant(budget)
    assert accountant.charge(event, 1e-6) <= 1.0


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, math.nan, 2.0])
def test_it_is_a_probability(probability: float) -> None:
    with pytest.raises(ValueError, match="probability"):
        RareLeak(probability)


def test_it_is_convolved_with_others() -> None:
    """As a part of a search or of a split its losses are rounded up as those of all others are."""
    pure = PureEpsilon(0.5)
    both = composed(((RareLeak(1e-3), 2), (pure, 1)), 0.1)
    leak = 1 - (1 - 1e-3) ** 2
    at = float(pure.profile(np.array([0.2]))[0])
    assert both.get_delta_for_epsilon(0.2) == pytest.approx(leak + (1 - leak) * at, rel=1e-9)


def test_what_leaks_leave_of_delta_is_rounded_down() -> None:
    class TeacherQueries:
        name = "asked"

        def epsilon(self, delta: float) -> float:
            return delta

        def delta(self, epsilon: float) -> float:
            return epsilon

    rng = np.random.default_rng(4)
    for leak, more in (10.0 ** rng.uniform(-9, -1, (300, 2))).tolist():
        route, delta = LeakyRoute(TeacherQueries(), leak), leak + more
        exact = (Fraction(delta) - Fraction(leak)) / (1 - Fraction(leak))
        assert exact * (1 - Fraction(1, 2**47)) <= Fraction(route.epsilon(delta)) <= exact
        exact = Fraction(leak) + (1 - Fraction(leak)) * Fraction(more)
        assert exact <= Fraction(route.delta(more)) <= exact * (1 + Fraction(1, 2**47))
