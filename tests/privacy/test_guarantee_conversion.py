"""From ADD_REMOVE to REPLACE: what group privacy says, neither less nor more."""

from __future__ import annotations

import math

import pytest

from tacit.privacy import (
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    Guarantee,
    PureEpsilon,
    Relation,
    Repeated,
    replace_from_add_remove,
)
from tacit.privacy.accounting.gaussian_profile import gaussian_epsilon


@pytest.mark.parametrize(
    "event",
    [
        Composed((Gaussian(4.0), PureEpsilon(0.3))),
        ExponentialMechanism(0.7),
        Repeated(ExponentialMechanism(0.2), 3),
    ],
)
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_two_steps_cost_the_sum_of_two(event: Event, delta: float) -> None:
    promise = Guarantee(event)
    converted = replace_from_add_remove(promise, delta)
    assert converted.relation is Relation.REPLACE
    assert converted.delta == delta
    # delta_replace(2 e) <= (1 + exp(e)) delta_add_remove(e)
    enough, less = converted.epsilon / 2, converted.epsilon / 2 * (1 - 1e-3)
    assert (1 + math.exp(enough)) * promise.delta(enough) <= delta * (1 + 1e-6)
    assert (1 + math.exp(less)) * promise.delta(less) > delta


def test_the_mu_of_all_gaussians_doubles() -> None:
    several = Composed((Repeated(Gaussian(5.0), 3), Gaussian(2.0)))
    mu = 2 * math.sqrt(3 / 25 + 1 / 4)
    found = replace_from_add_remove(Guarantee(several), 1e-6).epsilon
    assert found == pytest.approx(gaussian_epsilon(mu, 1e-6), rel=1e-9)
