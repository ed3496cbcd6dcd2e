"""A sample knows what it costs, so that a rate is stated once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit.erm import NoisySGD, Objective, Problem
from tacit.erm.losses import LogisticLoss
from tacit.erm.minimization import run_plan
from tacit.noise import secure_source, seeded_source
from tacit.privacy import Budget, Repeated, SampledGaussian
from tacit.records import Bounds, MemoryRecords, Sample
from tacit.records.splits import poisson_choice


def test_a_sample_says_its_rate() -> None:
    records = MemoryRecords(np.ones((10, 2)), None, Bounds())
    sample = records.poisson_sample(0.25, secure_source().words)
    assert sample.rate == 0.25


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_is_a_probability(rate: float) -> None:
    with pytest.raises(ValueError, match="it is a probability"):
        poisson_choice(rate, 3, secure_source().words)


def test_the_threshold_is_exact_and_rounded_down() -> None:
    for rate in (0.5, 0.1, 1 / 3, 2.0**-64, 0.0, 1.0):
        limit = min(int(Fraction(rate) * 2**64), 2**64 - 1)
        words = np.array([0, max(limit - 1, 0), limit, 2**64 - 1], dtype=np.uint64)
        chosen = poisson_choice(rate, 4, lambda n, words=words: words)
        assert chosen.tolist() == [int(word) < limit for word in words]


BOUNDS = Bounds(n_records=200)


def descent() -> tuple[NoisySGD, Problem]:
    return NoisySGD(0.2, 7), Problem(Objective(LogisticLoss(), BOUNDS), 3)


class HalfAsOften(MemoryRecords):
    """Samples at half the rate it is asked for, and says so."""

    def poisson_sample(self, rate: float, words: object) -> Sample:
        return super().poisson_sample(rate / 2, words)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [None, 3])
def test_a_descent_is_charged_what_its_samples_say(seed: int | None) -> None:
    mechanism, problem = descent()
    plan = mechanism.plan(problem, Budget(1.0, 1e-6))
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((200, 3)), rng.choice([-1.0, 1.0], 200)
    source = None if seed is None else seeded_source(seed)
    released = run_plan(plan, MemoryRecords(rows, labels, BOUNDS), source)
    event = released.event if seed is None else released.event.would_be  # type: ignore[attr-defined]
    assert event == plan.event
    assert isinstance(event, Repeated)
    assert event.event == SampledGaussian(plan.settings["noise_multiplier"], 0.2)
    # What was drawn counts, not what was asked for.
    with pytest.raises(RuntimeError, match=r"sampling_rate=0.1.* but what was paid for it"):
        run_plan(plan, HalfAsOften(rows, labels, BOUNDS), source)
