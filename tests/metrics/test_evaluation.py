"""Forms of noisy sums: no bias, the variance they say, and intervals where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.metrics.evaluation import Form, counted, covariance, ratio

RNG = np.random.default_rng(0)
TRUE = np.array([40.0, 25.0, 60.0, 10.0])
NOISE = np.array([3.0, 3.0, 6.0, 6.0])


def some_form(seed: int) -> Form:
    rng = np.random.default_rng(seed)
    square = rng.normal(size=(4, 4)) / 30
    return Form(rng.normal(size=4), square + square.T)


def test_forms_have_no_bias_and_the_covariance_they_say() -> None:
    one, other = some_form(1), some_form(2)
    runs = TRUE + RNG.normal(0, NOISE, (16_000, 4))
    values = np.array([[form.value(x, NOISE) for form in (one, other)] for x in runs])
    quiet = [form.value(TRUE, np.zeros(4)) for form in (one, other)]
    spread = values.std(axis=0)
    assert np.all(np.abs(values.mean(axis=0) - quiet) < 5 * spread / np.sqrt(16_000))
    said = np.mean([covariance(one, other, x, NOISE) for x in runs[:4_000]])
    assert said == pytest.approx(np.cov(values.T)[0, 1], abs=0.07 * spread.prod())
    own = np.mean([covariance(one, one, x, NOISE) for x in runs[:4_000]])
    assert own == pytest.approx(spread[0] ** 2, rel=0.07)


def test_where_the_bottom_is_noise_the_interval_is_everything() -> None:
    x = np.array([0.5, 0.1])
    found = ratio(Form(np.array([1.0, 0])), Form(np.ones(2)), x, np.ones(2), 0.0, 1.0)
    assert (found.low, found.high) == (0.0, 1.0)
    below = ratio(Form(np.array([1.0, 0])), Form(np.ones(2)), -x, np.ones(2), 0.0, 1.0)
    assert (below.low, below.high) == (0.0, 1.0)


def test_without_noise_there_is_no_interval() -> None:
    found = ratio(
        Form(np.array([1.0, 0])), Form(np.ones(2)), np.array([3.0, 1.0]), np.zeros(2), 0.0, 1.0
    )
    assert (found.value, found.low, found.high) == (0.75, 0.75, 0.75)


def test_counts_are_not_negative() -> None:
    found = counted(np.ones(2), np.array([-30.0, 1.0]), np.ones(2))
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
