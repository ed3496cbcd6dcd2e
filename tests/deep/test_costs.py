"""The figure of the moments accountant."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from reproduce.moments import cost, moments_epsilon

from tacit.deep import FlatClip
from tacit.deep.planning import Sampling, epsilon_by_epoch, plan_training
from tacit.privacy import Budget, Guarantee, Repeated, SampledGaussian


def test_the_published_figure() -> None:
    """q = 0.01, sigma = 4, delta = 1e-5, 100 epochs."""
    found = cost(epoch=100)
    assert found["epsilon"] == pytest.approx(0.947, abs=1e-3)
    assert found["moments"] == pytest.approx(1.26, abs=2e-3)
    assert found["strong_composition"] == pytest.approx(9.34, abs=5e-3)


def test_every_epoch_costs_more_and_never_less_than_what_is_promised() -> None:
    plan = plan_training(
        Sampling(60_000, 600), Budget(1.0, 1e-5), FlatClip(), n_steps=450, noise_multiplier=4.0
    )
    costs = epsilon_by_epoch(plan)
    assert [cost.n_steps for cost in costs] == [100, 200, 300, 400, 450]
    for earlier, later in pairwise(costs):
        assert earlier.epsilon < later.epsilon
    assert costs[-1].epsilon == Guarantee(plan.event).epsilon(1e-5)
    assert epsilon_by_epoch(plan, [2]) == [costs[1]]


def test_the_moments_accountant_is_a_bound() -> None:
    for z in (0.8, 2.0):
        step = SampledGaussian(z, 0.05)
        assert moments_epsilon(step, 40, 1e-5) >= Guarantee(Repeated(step, 40)).epsilon(1e-5)


def test_until_the_budget_is_spent() -> None:
    plan = plan_training(Sampling(1000, 100), Budget(1.0, 1e-5), FlatClip(), noise_multiplier=3.0)
    n = int(plan.settings["n_steps"])
    step = SampledGaussian(3.0, 0.1)
    assert (
        Guarantee(Repeated(step, n)).epsilon(1e-5)
        <= 1.0
        < Guarantee(Repeated(step, n + 1)).epsilon(1e-5)
    )


@pytest.mark.parametrize(("epochs", "error"), [([0], ValueError), ("all", TypeError)])
def test_epochs_that_are_none_are_refused_by_name(epochs: Any, error: type[Exception]) -> None:
    plan = plan_training(Sampling(1000, 100), Budget(2, 1e-5), FlatClip(), n_steps=20)
    with pytest.raises(error, match="epochs must be"):
        epsilon_by_epoch(plan, epochs)
