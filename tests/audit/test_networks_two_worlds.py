"""Networks of several steps: what whoever sees the weights after every step finds out.

The attacker knows all records but the canary, whose gradient alone has a part along the first
column, always as long as the clip. From the weights before and after a step the noisy sum along
that column follows; the likelihood ratio of all steps together is the best that anybody can do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

import tacit.queries.noise as noisy_sum_module
from tacit.audit import Audit
from tacit.deep import FlatClip, Moment, PrivateTrainer
from tacit.engine import Plan
from tacit.noise.gaussian import gaussian
from tacit.privacy import Budget, Event
from tests.audit.worlds import (
    Array,
    audited,
    by_errors,
    by_means,
    by_promise,
    one_thread,
    with_less,
    without_one,
)

pytestmark = pytest.mark.usefixtures("one_thread")
__all__ = ["one_thread"]

Table = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]

N, STEPS, RATE, CLIP = 24, 5, 0.05, 0.5
# The greater delta is, the less noise there is at the same epsilon, and the more an audit sees.
CLAIM = Budget(2.0, 1e-3)
FAR = 1000.0  # of the canary's row: its gradient is clipped, whatever the weights


def worlds() -> tuple[Table, Table]:
    """Return a table without and with the canary, of two columns."""
    rows = np.zeros((N + 1, 2), np.float32)
    rows[:N, 1] = np.linspace(-2.0, 2.0, N)
    rows[N, 0] = FAR
    labels = (np.arange(N + 1) % 2).astype(np.int64)
    return (rows[:N], labels[:N]), (rows, labels)


class Planned(PrivateTrainer):
    """A trainer whose plan is made once: it is the same for every fit, and costs more than one."""

    def plan(self) -> Plan:
        """Return what was planned for a trainer like this one."""
        return plan_of(self.sampling.batch_size, self.budget.epsilon)


def trainer(
    kind: type[PrivateTrainer], batch_size: int, epsilon: float, seen: Callable[[Moment], None]
) -> PrivateTrainer:
    model = nn.Linear(2, 2, bias=False)
    nn.init.zeros_(model.weight)
    return kind(
        model,
        nn.CrossEntropyLoss(reduction="none"),
        torch.optim.SGD(model.parameters(), lr=RATE / FAR),
        Budget(epsilon, CLAIM.delta),
        n_records=N,
        batch_size=batch_size,
        n_steps=STEPS,
        clip=FlatClip(CLIP),
        callbacks=[seen],
    )


@cache
def plan_of(batch_size: int, epsilon: float) -> Plan:
    return trainer(PrivateTrainer, batch_size, epsilon, lambda moment: None).plan()


@dataclass(frozen=True)
class Attack:
    """A training with batches of so many records, and what is made of its weights."""

    batch_size: int

    def fit(self, table: Table) -> Array:
        """Return the weights after every step, and those that are released at last."""
        seen: list[npt.NDArray[np.float32]] = []

        def note(moment: Moment) -> None:
            seen.append(moment.model.weight.detach().numpy().copy().ravel())

        made = trainer(Planned, self.batch_size, CLAIM.epsilon, note).fit(*table)
        final = made.model.weight.detach().numpy().ravel()
        return np.stack([*seen, final]).astype(np.float64)

    def along(self, released: Array) -> Array:
        """Return what each step's noisy sum has along the canary's gradient, in units of clips."""
        weights = released.reshape(STEPS + 1, 4)
        np.testing.assert_array_equal(weights[-1], weights[-2])  # the final ones tell nothing more
        steps = -np.diff(weights[:-1], axis=0, prepend=np.zeros((1, 4))) * FAR / RATE
        # of class 0, as N is even, its gradient is along (-1, 1) of the two outputs
        towards = np.array([-1.0, 0.0, 1.0, 0.0]) / math.sqrt(2)
        return steps @ towards * self.batch_size / CLIP

    def score(self, released: Array) -> float:
        """Return the logarithm of the likelihood ratio of all steps."""
        settings = plan_of(self.batch_size, CLAIM.epsilon).settings
        z, rate = settings["noise_multiplier"], settings["sampling_rate"]
        ratios = np.exp((self.along(released) - 0.5) / z**2)
        return float(np.log1p(rate * (ratios - 1)).sum())

    def nearness(self, released: Array) -> float:
        """Return how near a step's sum comes to what the canary adds; exactly, without noise."""
        return -float(np.abs(self.along(released) - 1).min())

    def audit(self, runs: int, score: Callable[[Array], float] | None = None) -> Audit:
        """Return what is found by the likelihood ratio, or by another score."""

        def promised(epsilon: float) -> Event:
            return plan_of(self.batch_size, epsilon).event

        return audited(self.fit, worlds(), CLAIM, runs, score or self.score, promised)


WHOLE, HALF = Attack(N), Attack(N // 2)


# How much an audit finds in the middle, and its spread over audits, were simulated: each limit
# below is five of these away.


@pytest.mark.slow
def test_several_steps_on_all_records_tell_what_is_promised_and_no_more() -> None:
    found = WHOLE.audit(1500)
    assert not found.above_claim, str(found)
    # Along the one direction of the gradient scores are Gaussian; two thirds in the middle.
    assert by_means(found).epsilon >= 0.3 * CLAIM.epsilon, str(found)


@pytest.mark.slow
def test_several_steps_on_batches_tell_what_is_promised_and_no_more() -> None:
    found = HALF.audit(3000)
    for finding in (by_errors(found), by_promise(found)):  # scores are no Gaussians
        assert finding.epsilon <= CLAIM.epsilon, str(found)
    assert by_promise(found).epsilon >= 0.1 * CLAIM.epsilon, str(found)  # 0.43 in the middle


@pytest.mark.slow
def test_half_the_noise_of_whole_batches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_sum_module, "gaussian", with_less(gaussian, 0.5))
    found = WHOLE.audit(800)
    assert by_means(found).epsilon > CLAIM.epsilon, str(found)


@pytest.mark.slow
def test_a_third_of_the_noise_of_batches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_sum_module, "gaussian", with_less(gaussian, 1 / 3))
    found = HALF.audit(1000)
    assert by_promise(found).epsilon > CLAIM.epsilon, str(found)


@pytest.mark.slow
def test_one_step_without_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_sum_module, "gaussian", without_one(gaussian, STEPS, 2))
    found = HALF.audit(500, HALF.nearness)
    assert by_promise(found).epsilon > CLAIM.epsilon, str(found)


@pytest.mark.slow
def test_a_clip_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = FlatClip.factors

    def wide(clip: FlatClip, norms: torch.Tensor) -> torch.Tensor:
        # the model is probed with other clips, which are as they should be
        return (3.0 if clip.max_grad_norm == CLIP else 1.0) * factors(clip, norms)

    monkeypatch.setattr(FlatClip, "factors", wide)
    found = HALF.audit(1000)
    assert by_promise(found).epsilon > CLAIM.epsilon, str(found)
