"""A loss beyond every grid is infinite, and said to be."""

from __future__ import annotations

import math

import pytest

from tacit.privacy import (
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    Guarantee,
    Repeated,
    SoftmaxObjective,
)
from tacit.privacy.accounting.composition import LossDistributionRoute
from tacit.privacy.accounting.loss_distribution import (
    composed,
    from_greatest_profile,
    good_interval,
)

# A ridge so weak that what one record does to the curvature costs 6.7 million.
WEAK = SoftmaxObjective(1.0, 3, 1e-7, 1.0)


@pytest.mark.parametrize(
    "event",
    [Repeated(WEAK, 2), Composed((WEAK, Gaussian(9.0))), Composed((Gaussian(9.0), WEAK))],
    ids=["twice", "first", "last"],
)
def test_all_mass_at_infinity_is_delta_one(event: Event) -> None:
    leaves = tuple(event.leaves())
    route = LossDistributionRoute(leaves, good_interval(leaves))
    assert composed(leaves, 0.5).get_delta_for_epsilon(1e9) == 1.0
    assert route.delta(1.0) == 1.0
    assert route.epsilon(1e-6) == math.inf
    assert route.epsilon(0.999) == math.inf
    promise = Guarantee(event)
    assert promise.delta(1.0) == 1.0
    assert 6e6 < promise.epsilon(1e-6) < 2e7  # Renyi, or the closed form


def test_what_convolutions_of_a_part_may_hide_is_charged() -> None:
    parts = [((Gaussian(2.0), 1), (ExponentialMechanism(0.3), 999))]
    alone = composed(parts[0], good_interval(parts[0]))
    worst = from_greatest_profile(parts, 0.05)
    for epsilon in (0.0, 1.0, 2.0):
        at = float(alone.get_delta_for_epsilon(epsilon))
        charged = float(worst.get_delta_for_epsilon(epsilon)) - at
        assert charged >= 1000 * 2.0**-51 * (1 - 1e-2)
