"""A whole training replayed on neighbours, and mutants of it that must be caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

import tacit.deep.records as records_module
import tacit.queries.noise as noisy_sum_module
from tacit.deep import AdaptiveClip, AutomaticClip, FlatClip, PerLayerClip
from tacit.deep.clipping import layer_rules
from tacit.deep.clipping.book_keeping import BookKeeper
from tacit.deep.clipping.randomness import blank_keys
from tacit.deep.records import TensorRecords
from tacit.noise import SensitivityViolation
from tacit.noise.gaussian import gaussian
from tacit.queries.clipped_sum import ClippedSumAndCount
from tacit.testing import replay
from tests.deep.helpers import network, table, trainer

Data = tuple[Any, Any]
# The record that is added: far out, of nothing but a bias, not finite, of a class there is not.
ODD: dict[str, tuple[list[float], int]] = {
    "far": ([1e4, -1e4, 3e3], 1),
    "bias": ([0.0, 0.0, 0.0], 1),
    "nan": ([np.nan, 1.0, 1.0], 0),
    "overflow": ([3e38, -3e38, 3e38], 0),
    "class": ([1.0, 1.0, 1.0], 77),
}
CLIPS = {
    "flat": FlatClip(0.1),
    "per_layer": PerLayerClip(0.1),
    "automatic": AutomaticClip(0.1),
    "adaptive": AdaptiveClip(0.1, count_noise=0.5),
}


def neighbours(odd: str) -> tuple[Data, Data]:
    rows, labels = table()
    row, label = ODD[odd]
    more = np.vstack([rows, np.array([row], np.float32)]), np.append(labels, label)
    return (rows, labels), more


@pytest.fixture(autouse=True)
def _the_same_choice_for_records_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record i is in batch t or not, whoever else is there; the one that is added always is."""
    patterns = np.random.default_rng(1).random((100, 61)) < 0.5
    patterns[:, 60] = True
    steps = iter(range(10**6))

    def choice(rate: float, n_records: int, words: Any) -> Any:
        return patterns[next(steps) % 6, :n_records]  # six steps a training

    monkeypatch.setattr(records_module, "poisson_choice", choice)


def fit(data: Data, **told: Any) -> None:
    trainer(network(), **told).fit(*data)


def replayed(odd: str, **told: Any) -> None:
    fewer, more = neighbours(odd)
    assert replay(lambda data: fit(data, **told), fewer, more) == 6
    assert replay(lambda data: fit(data, **told), more, fewer) == 6


def cases() -> list[Any]:
    """Every clip with every odd record; quick are the flat one, and the far record."""
    return [
        pytest.param(clip, odd, marks=() if "flat" in clip or odd == "far" else pytest.mark.slow)
        for clip in CLIPS
        for odd in ODD
    ]


@pytest.mark.parametrize(("clip", "odd"), cases())
def test_one_record_moves_no_sum_further_than_the_clip(odd: str, clip: str) -> None:
    replayed(odd, clip=CLIPS[clip])


def caught(odd: str, **told: Any) -> None:
    with pytest.raises(SensitivityViolation):
        replayed(odd, **told)


def test_a_layer_that_is_not_clipped_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = FlatClip.factors

    def all_but_the_last(self: FlatClip, norms: Any) -> Any:
        return torch.cat([factors(self, norms)[:-1], torch.ones_like(norms[-1:])])

    monkeypatch.setattr(FlatClip, "factors", all_but_the_last)
    caught("far", clip=FlatClip(0.1))


def test_a_bias_that_is_not_counted_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_weights(self: layer_rules.OuterProducts) -> Any:
        return (self.a.square().sum(1) * self.g.square().sum(1)).sqrt().clamp(min=1e-6)

    monkeypatch.setattr(layer_rules.OuterProducts, "lengths", of_weights)
    caught("bias", clip=FlatClip(0.01))


def test_a_sum_that_is_not_clipped_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AutomaticClip, "factors", lambda self, norms: torch.ones_like(norms))
    caught("far", clip=AutomaticClip(0.1))


def test_a_count_of_twice_the_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    total = ClippedSumAndCount.total

    def heavier(self: Any, records: Any, facts: Any) -> Any:
        made = total(self, records, facts)
        made[-1] *= 200.0
        return made

    monkeypatch.setattr(ClippedSumAndCount, "total", heavier)
    caught("far", clip=CLIPS["adaptive"])


def test_less_noise_than_planned_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    release = gaussian

    def less(bounded: Any, multiplier: float, ahead: Any) -> Any:
        return release(bounded, 0.9 * multiplier, ahead=ahead)

    monkeypatch.setattr(noisy_sum_module, "gaussian", less)
    with pytest.raises(RuntimeError, match="withheld"):
        fit(table())


def test_another_rate_than_planned_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer()
    monkeypatch.setattr(type(made.sampling), "rate", property(lambda self: 0.6))
    plan = trainer().plan()
    monkeypatch.setattr(made, "plan", lambda: plan)
    monkeypatch.setattr(type(made.sampling), "rate", property(lambda self: 0.5))

    def read(self: Any, *args: Any) -> Any:
        pytest.fail("a record was read")

    monkeypatch.setattr(TensorRecords, "take", read)
    with pytest.raises(RuntimeError, match=r"would release .*sampling_rate=0\.5"):
        made.fit(*table())


def test_fewer_steps_on_the_tape_are_seen() -> None:
    fewer, more = neighbours("far")
    lengths = iter([6, 5])
    with pytest.raises(AssertionError, match="number of"):
        replay(lambda data: fit(data, n_steps=next(lengths)), fewer, more)


class TestSampling:
    """Without the fixture's choice: batches as they are drawn."""

    @pytest.fixture(autouse=True)
    def _drawn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from tacit.records.splits import poisson_choice

        monkeypatch.setattr(records_module, "poisson_choice", poisson_choice)

    def looks(self, monkeypatch: pytest.MonkeyPatch, n_steps: int) -> list[Any]:
        """Return which records were read at every look."""
        seen: list[Any] = []
        take = TensorRecords.take

        def noted(self: TensorRecords, indices: Any, keys: Any) -> Any:
            seen.append(indices)
            return take(self, indices, keys)

        monkeypatch.setattr(TensorRecords, "take", noted)
        fit(table(), n_steps=n_steps)
        return seen

    def test_records_are_drawn_by_themselves(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Poisson batches: their sizes vary, and pairs meet as often as chance has it."""
        batches = self.looks(monkeypatch, 300)
        assert len(batches) == 300  # one look a step: nothing is evaluated in between
        member = np.zeros((300, 60), bool)
        for step, batch in enumerate(batches):
            member[step, batch] = True
        assert binomtest(int(member.sum()), member.size, 0.5).pvalue > 1e-9
        sizes = member.sum(1)
        spread = sizes.var() / (60 * 0.25)
        assert 0.5 < spread < 1.7  # 0 for batches of a fixed size; six standard errors
        # dealt out in turns, a record that was in is never in again before all others were
        again = (member[1:] & member[:-1]).mean()
        assert 0.2 < again < 0.3

    def test_a_shuffle_would_be_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(0)

        def dealt(rate: float, n: int, words: Any) -> Any:
            chosen = np.zeros(n, bool)
            chosen[rng.permutation(n)[: int(rate * n)]] = True
            return chosen

        monkeypatch.setattr(records_module, "poisson_choice", dealt)
        with pytest.raises(AssertionError):
            self.test_records_are_drawn_by_themselves(monkeypatch)

    @pytest.mark.slow
    def test_a_look_beside_the_batches_would_be_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sums = BookKeeper.sums

        def nosy(self: BookKeeper, *args: Any) -> Any:
            TensorRecords(*table()).take(np.arange(5), blank_keys(5))
            return sums(self, *args)

        monkeypatch.setattr(BookKeeper, "sums", nosy)
        with pytest.raises(AssertionError):
            self.test_records_are_drawn_by_themselves(monkeypatch)
