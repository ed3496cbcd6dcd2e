"""Canaries: what an attacker finds out stays below the claim, and noise cut by 3 is found.

One training with many canaries, each along a feature of its own and in or out by a coin (as in an
audit in one run): what the released gradients say of each is independent of the others.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from torch import nn

import tacit.queries.noise as noisy_sum_module
from tacit.deep import FlatClip, PrivateTrainer
from tacit.noise.gaussian import gaussian
from tacit.privacy import Budget
from tests.deep.helpers import Gradients, trainer

CANARIES = 3000
STEPS = 3
# Of the difference of two means of half the canaries each, in units of their spread.
ERROR = math.sqrt(4 / CANARIES)


def audited(epsilon: float) -> tuple[float, float]:
    """Return mu of mu-GDP as an attacker measures it, and as it is claimed."""
    model = nn.Linear(CANARIES, 2, bias=False)
    nn.init.zeros_(model.weight)
    seen = Gradients(model)
    inside = np.random.default_rng().permutation(CANARIES) < CANARIES // 2
    rows = 100.0 * np.eye(CANARIES, dtype=np.float32)[inside]
    made = watched(model, seen, epsilon).fit(rows, np.zeros(len(rows), np.int64))
    # of class 0, the canary of a feature has its gradient along (-1, 1) there
    released = np.sum(seen.seen, axis=0).reshape(2, CANARIES)
    towards = released[1] - released[0]
    spread = math.sqrt((towards[inside].var() + towards[~inside].var()) / 2)
    measured = (towards[inside].mean() - towards[~inside].mean()) / spread
    return float(measured), math.sqrt(STEPS) / made.plan_.settings["noise_multiplier"]


def watched(model: nn.Module, seen: Gradients, epsilon: float) -> PrivateTrainer:
    """Every record is in every batch, so that the claim is mu = sqrt(steps) / noise_multiplier."""
    whole = {"n_records": CANARIES, "batch_size": CANARIES, "n_steps": STEPS}
    return trainer(model, optimizer=seen, budget=Budget(epsilon, 1e-5), clip=FlatClip(1.0), **whole)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_an_attack_finds_what_is_claimed_and_no_more(epsilon: float) -> None:
    measured, claimed = audited(epsilon)
    assert measured - 6.5 * ERROR * (1 + claimed) <= claimed
    assert measured > 0.05 * claimed  # the attack is one


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_noise_cut_by_three_is_found(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(bounded: object, multiplier: float, ahead: object) -> object:
        noisy = gaussian(bounded, multiplier, ahead=ahead)
        value = bounded.value + (noisy.value - bounded.value) / 3  # type: ignore[attr-defined]
        return type(noisy)(value, noisy.event)

    monkeypatch.setattr(noisy_sum_module, "gaussian", cut)
    measured, claimed = audited(epsilon)
    assert measured - 6.5 * ERROR * (1 + claimed) > claimed
