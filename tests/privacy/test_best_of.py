"""The best of K runs: what its profile is at the ends, and that counts within a run count."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from tacit.privacy import (
    BestOf,
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    Parallel,
    PureEpsilon,
    Repeated,
)
from tacit.privacy.accounting.composition import LossDistributionRoute
from tacit.privacy.accounting.number_of_trials import TruncatedNegativeBinomial

Array = npt.NDArray[np.float64]

LAW = TruncatedNegativeBinomial.of_mean(5)


def test_a_run_of_several_releases_costs_all_of_them() -> None:
    several, one = BestOf(Repeated(PureEpsilon(0.1), 3), LAW), BestOf(PureEpsilon(0.3), LAW)
    assert several.pure_epsilon() == pytest.approx(one.pure_epsilon(), rel=1e-12, abs=0.0)
    assert one.pure_epsilon() > 0.3


@pytest.mark.parametrize("base", [PureEpsilon(0.5), Gaussian(1.5)])
def test_the_profile_of_both_signs(base: PureEpsilon | Gaussian) -> None:
    event = BestOf(base, LAW)
    at = np.array([0.02, 0.2, 0.7, 1.1])
    above, below = event.profile(at), event.profile(-at)
    assert above is not None
    assert below is not None
    # H(-e) = 1 - exp(-e) + exp(-e) H(e)
    np.testing.assert_allclose(below, -np.expm1(-at) + np.exp(-at) * above, rtol=1e-12)
    assert np.all(np.diff(above) <= 0.0)
    assert above[0] > 0.01
    # one by one and from a table
    many = event.profile(np.linspace(0.0, 2.0, 201))
    few = event.profile(np.array([0.0, 1.0, 2.0]))
    assert many is not None
    assert few is not None
    np.testing.assert_allclose(many[[0, 100, 200]], few, rtol=1e-2, atol=1e-9)
    assert np.all(many[[0, 100, 200]] >= few * (1 - 1e-9))


def test_beyond_the_greatest_loss_nothing_is_left() -> None:
    event = BestOf(PureEpsilon(0.5), LAW)
    greatest = event.pure_epsilon()
    assert math.isfinite(greatest)
    for n in (1, 100):  # one by one and from a table
        profile = event.profile(np.full(n, greatest))
        assert profile is not None
        assert np.all(profile == 0.0)
    before = event.profile(np.array([0.9 * greatest]))
    assert before is not None
    assert before[0] > 0.0
    orders = np.array([1.5, 4.0, 1e4])
    assert np.all(event.renyi(orders) <= greatest)


def test_no_release_of_a_run_is_left_out() -> None:
    at = np.array([0.1, 0.5, 1.0])

    def profile(base: Event) -> Array:
        found = BestOf(base, LAW).profile(at)
        assert found is not None
        return found

    gaussian, pure, choice = Gaussian(2.0), PureEpsilon(0.5), ExponentialMechanism(0.4)
    both = profile(Composed((gaussian, pure)))
    assert np.all(both > 1.05 * profile(gaussian))
    assert np.all(both > 1.05 * profile(pure))
    assert np.all(profile(Repeated(choice, 3)) > 1.05 * profile(choice))
    assert np.all(profile(Composed((pure, choice))) > 1.05 * profile(pure))
    # Of parts the worst counts, whichever comes first and however far its losses go.
    for parts in ((gaussian, pure), (pure, gaussian)):
        found = profile(Parallel(parts))
        worst = np.maximum(profile(gaussian), profile(pure))
        assert np.all(found >= worst * (1 - 1e-9))
        assert np.all(found <= worst * 1.3 + 1e-6)


def test_float_convolution_is_charged() -> None:
    events = [(ExponentialMechanism(0.1), 1000), (Gaussian(9.0), 24)]
    route = LossDistributionRoute(tuple(events), 1e-3)
    assert route.charge == 1024 * 2.0**-51
    asked: list[float] = []

    class Noticed:
        def get_epsilon_for_delta(self, delta: float) -> float:
            asked.append(delta)
            return 0.5

        def get_delta_for_epsilon(self, epsilon: float) -> float:
            return 1e-11

    vars(route)["distribution"] = Noticed()
    assert route.epsilon(1e-10) == 0.5
    assert asked == [1e-10 - 2.0**-41]
    assert route.epsilon(2.0**-41) == math.inf
    assert route.delta(1.0) == 1e-11 + 2.0**-41
