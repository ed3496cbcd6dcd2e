"""A mean divides by a noisy number of records: what that costs, and the share that costs least."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.location import Mean
from tacit.location.mean import count_share
from tacit.privacy import Budget, Composed, Gaussian, Guarantee, PureEpsilon


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("d", [1, 2, 30])
def test_the_share_of_the_count_is_the_best(delta: float, d: int) -> None:
    best = count_share(Budget(1.0, delta), d)
    t = np.append(best * np.array([0.1, 0.5, 0.9, 1.1, 1.5]), best)
    error = d / (1 - t) + 0.25 / t
    if not delta:
        error = d * (d + 1) / (1 - t) ** 2 + 2 * 0.25 / t**2
    assert np.argmin(error) == len(t) - 1


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_both_shares_are_the_budget(delta: float) -> None:
    model = Mean(1.0, delta, row_norm=1.0).fit(np.full((50, 3), 0.5))
    event = model.privacy_.event
    assert isinstance(event, Composed)
    assert all(isinstance(part, PureEpsilon if not delta else Gaussian) for part in event.events)
    assert 0.999 < Guarantee(event).epsilon(delta) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_error_is_what_the_share_is_chosen_for(delta: float) -> None:
    n, epsilon, runs = 500, 4.0, 1200 if delta else 2500
    rows = np.full((n, 1), 0.5)
    model = Mean(epsilon, delta, row_norm=1.0)
    share, settings = count_share(Budget(epsilon, delta), 1), model.plan(1).settings
    if delta:
        both = settings["noise_multiplier"], 0.5 * settings["count_noise_multiplier"]
    else:  # Laplace noise of scale b has standard deviation sqrt(2) b
        both = math.sqrt(2) / (1 - share) / epsilon, 0.5 * math.sqrt(2) / share / epsilon
    errors = [model.fit(rows).location_[0] - 0.5 for _ in range(runs)]
    assert np.std(errors) == pytest.approx(math.hypot(*both) / n, rel=0.15)
