"""Clipped sums of networks without a network: runs in order, noise drawn ahead, and mutants."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit.queries.noise as noisy_sum_module
from tacit.noise import SensitivityViolation, draw_ahead, seeded_source
from tacit.noise.gaussian import gaussian
from tacit.privacy import Gaussian, Relation, Repeated, SampledGaussian
from tacit.queries import AtMost, Facts, GaussianNoise, NoisySum, PoissonSample, Session, Slot
from tacit.queries.clipped_sum import (
    BandedNoise,
    ClippedSum,
    ClippedSumAndCount,
    CorrelatedNoise,
    CorrelatedStep,
    OrderedRun,
    OrderedSum,
    TreeNoise,
    _Gradients,
)
from tacit.records import Bounds
from tacit.records.splits import Sample, poisson_choice
from tacit.testing import replay

FACTS = Facts(Bounds(), 0, Relation.ADD_REMOVE)
IN_PLACE = Facts(Bounds(), 0, Relation.REPLACE)
(CLIPPED,) = ClippedSum.tried()
CLIP = CLIPPED.clip.max_grad_norm
COUNTED, _ = ClippedSumAndCount.tried()
NOISES: list[CorrelatedNoise] = [TreeNoise(), BandedNoise(1), BandedNoise(3)]
N, SIZE, EPOCHS = 20, 4, 3


class Rows(_Gradients):
    """Gradients in batches, as `tacit.deep` has them."""

    def poisson_sample(self, rate: float, words: Any) -> Sample:
        return Sample(self.batch(poisson_choice(rate, len(self), words)), rate)


def rows(first: float = 0.0, place: int = 5) -> Any:
    made = np.random.default_rng(0).standard_normal((N, 3))
    made[place] = [first, 0.0, 0.0]
    return made


def ordered(noise: CorrelatedNoise, **told: Any) -> OrderedSum:
    return replace(OrderedSum(CLIPPED.clip, noise, N, SIZE, EPOCHS), **told)


def in_order(data: Any, step: CorrelatedStep, n_steps: int = EPOCHS * N // SIZE) -> Session:
    slot = step.slot(IN_PLACE)
    run = OrderedRun(step.statistic, Rows(data))
    session = Session(run, IN_PLACE, slot.event, {"steps": slot})
    for _ in range(n_steps):
        session.ask(step, "steps")
    return session


def moves(statistic: OrderedSum, place: int) -> Any:
    """Return how far a record at a place, turned about, moves each step of a run."""
    runs = [OrderedRun(statistic, Rows(rows(first, place))) for first in (1e6, -1e6)]
    steps = statistic.epochs * statistic.steps_per_epoch
    one, other = ([run.mixed(statistic) for _ in range(steps)] for run in runs)
    return np.linalg.norm(np.subtract(one, other), axis=1)


@pytest.mark.parametrize("place", [0, 5, 19])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_record_moves_a_whole_run_by_what_is_charged(noise: CorrelatedNoise, place: int) -> None:
    statistic = ordered(noise)
    moved, stated = moves(statistic, place), statistic.sensitivity(IN_PLACE).value
    if isinstance(noise, TreeNoise):
        event = CorrelatedStep(statistic, 1.0).event(IN_PLACE)
        assert isinstance(event, Repeated)
        assert np.sum(moved > 1e-9) <= event.count
        assert 0.99 * stated < max(moved) <= stated
    else:
        assert 0.8 * stated < math.hypot(*moved) <= stated


@pytest.mark.parametrize("noise", [BandedNoise(1), TreeNoise()], ids=str)
def test_a_run_goes_through_the_records_in_their_order(noise: CorrelatedNoise) -> None:
    statistic, data = ordered(noise), rows(1.0)
    run = OrderedRun(statistic, Rows(data))
    for i in range(7):  # the fifth batch is the last of a pass
        own = data[SIZE * (i % 5) : SIZE * (i % 5 + 1)]
        own = own * np.minimum(1.0, CLIP / np.linalg.norm(own, axis=1))[:, None]
        found = run.estimate(run.mixed(statistic))
        np.testing.assert_allclose(found, own.sum(axis=0), atol=1e-12)


def test_levels_of_a_tree() -> None:
    for n_steps, levels in ((1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (255, 8), (256, 9)):
        assert TreeNoise().event(1.0, n_steps, 3).count == 3 * levels


def test_the_spread_of_bands_is_no_less_than_the_norm_of_what_is_mixed() -> None:
    """In exact arithmetic: of the doubles that sums are multiplied by."""
    for bands, epochs in itertools.product(range(1, 40), (1, 2, 3, 5, 7)):
        noise = BandedNoise(bands)
        exact = epochs * sum(Fraction(c) ** 2 for c in noise.coefficients)
        spread = Fraction(noise.spread(bands, epochs))
        assert exact <= spread**2 < exact * (1 + Fraction(1, 10**11))


@pytest.mark.parametrize("statistic", ClippedSumAndCount.tried(), ids=str)
def test_the_count_moves_by_what_is_stated(statistic: ClippedSumAndCount) -> None:
    """By half of a record, and by what rounding does to the lengths of a full batch."""
    pairs = list(statistic.neighbours(FACTS))
    assert any(len(one) == 0 for one, _ in pairs)  # type: ignore[arg-type]
    totals = [[statistic.total(batch, FACTS)[-1] for batch in pair] for pair in pairs]
    moved = max(abs(one - other) for one, other in totals)
    most = 0.5 + (2 * statistic.batch_size + 64) * 2.0**-12 * 1.25 / 0.5
    stated = CLIP * statistic.share * most
    assert 0.998 * stated < moved <= stated
    whole = statistic.sensitivity(FACTS).value
    assert whole == pytest.approx(math.hypot(CLIP * (1 + 2.0**-10), stated), rel=1e-15)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_run_replayed(noise: CorrelatedNoise) -> None:
    step = CorrelatedStep(ordered(noise), 2.0)
    n = replay(lambda data: in_order(data, step).close(), rows(1e6), rows(-1e6))
    assert n == EPOCHS * N // SIZE


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_a_smaller_sensitivity_is_caught(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    stated = OrderedSum.sensitivity

    def less(self: OrderedSum, facts: Facts) -> Any:
        whole = stated(self, facts)
        return replace(whole, value=share * whole.value)

    monkeypatch.setattr(OrderedSum, "sensitivity", less)
    step = CorrelatedStep(ordered(TreeNoise()), 2.0)
    with pytest.raises(SensitivityViolation):
        replay(lambda data: in_order(data, step), rows(1e6), rows(-1e6))


def test_a_run_ends() -> None:
    step = CorrelatedStep(ordered(BandedNoise(2)), 2.0)
    session = in_order(rows(), step)
    with pytest.raises(RuntimeError, match="in up to 15 steps; asked before: 15"):
        session.ask(step, "steps")
    assert in_order(rows(), step, 3).close() == Gaussian(2.0, Relation.REPLACE)


def test_a_run_is_of_one_sum() -> None:
    """Sums of another clip would be mixed with noise that is not theirs."""
    step = CorrelatedStep(ordered(BandedNoise(2)), 2.0)
    session = in_order(rows(), step, 2)
    wide = type(CLIPPED.clip)(9.0)  # type: ignore[call-arg]
    with pytest.raises(RuntimeError, match="another sum"):
        session.ask(replace(step, statistic=ordered(BandedNoise(2), clip=wide)), "steps")


def test_records_that_move_up_are_refused() -> None:
    with pytest.raises(ValueError, match="must be REPLACE"):
        ordered(TreeNoise()).sensitivity(FACTS)


def test_records_beyond_the_announced_number_do_not_count() -> None:
    statistic = ordered(TreeNoise(), n_records=18)
    assert not moves(statistic, 19).any()
    assert moves(statistic, 17).any()


def test_less_noise_than_a_run_has_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_sum_module, "gaussian", lambda b, z, s: gaussian(b, 0.9 * z, s))
    for noise in NOISES:
        with pytest.raises(RuntimeError, match="withheld"):
            in_order(rows(), CorrelatedStep(ordered(noise), 2.0), 1)


RATE, STEP = 0.5, NoisySum(CLIPPED, GaussianNoise(2.0))


def sampled(n_steps: int = 3, rate: float = RATE, source: Any = None) -> Session:
    event = SampledGaussian(2.0, rate)
    slots = {"steps": Slot(event, AtMost(n_steps))}
    return Session(Rows(rows()), FACTS, Repeated(event, n_steps), slots, source)


def test_steps_on_samples() -> None:
    session = sampled()
    for _ in range(2):
        noise = draw_ahead(3)
        answer = session.on(PoissonSample(RATE)).ask(STEP, "steps", noise=noise)
        assert np.shape(answer) == (3,)
    assert session.close() == Repeated(SampledGaussian(2.0, RATE), 3)


def test_one_step_too_many_is_refused() -> None:
    session = sampled(1)
    session.on(PoissonSample(RATE)).ask(STEP, "steps")
    with pytest.raises(RuntimeError, match="at most 1 times; asked before: 1"):
        session.on(PoissonSample(RATE)).ask(STEP, "steps")


@pytest.mark.parametrize("charged", [RATE / 2, 1.0])
def test_a_sample_of_another_rate_than_was_charged_is_refused(charged: float) -> None:
    with pytest.raises(RuntimeError, match=r"sampling_rate=0\.5"):
        sampled(rate=charged).on(PoissonSample(RATE)).ask(STEP, "steps")


def test_the_event_is_that_of_the_noise_that_was_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_sum_module, "gaussian", lambda b, z, s: gaussian(b, 0.9 * z, s))
    with pytest.raises(RuntimeError, match="withheld"):
        sampled().on(PoissonSample(RATE)).ask(STEP, "steps")


def test_noise_that_was_drawn_ahead_hides_one_value() -> None:
    session, noise = sampled(), draw_ahead(3)
    session.on(PoissonSample(RATE)).ask(STEP, "steps", noise=noise)
    with pytest.raises(ValueError, match="hidden a value already"):
        session.on(PoissonSample(RATE)).ask(STEP, "steps", noise=noise)
    for_more = NoisySum(COUNTED, GaussianNoise(2.0))
    with pytest.raises(ValueError, match="drawn ahead"):
        session.on(PoissonSample(RATE)).ask(for_more, "steps", noise=draw_ahead(3))


def test_noise_that_can_be_repeated_is_withheld_where_privacy_is_promised() -> None:
    noise = draw_ahead(3, seeded_source(1))
    with pytest.raises(RuntimeError, match="withheld"):
        sampled().on(PoissonSample(RATE)).ask(STEP, "steps", noise=noise)
    seeded = sampled(source=seeded_source(1)).on(PoissonSample(RATE))
    with pytest.raises(RuntimeError, match="withheld"):  # the run says that it promises nothing
        seeded.ask(STEP, "steps", noise=draw_ahead(3))


def test_other_questions_take_no_such_noise() -> None:
    step = CorrelatedStep(ordered(BandedNoise(2)), 2.0)
    with pytest.raises(TypeError, match="noise"):
        in_order(rows(), step, 1).ask(step, "steps", noise=draw_ahead(3))
