"""Correlated noise: what it releases, what one record moves of all of it, what is solved for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tacit.queries.noise as module
from tacit.deep import AdaptiveClip, BandedNoise, FlatClip, OrderedTrainer, PCALayer, TreeNoise
from tacit.noise import Entry, recording, replaying
from tacit.noise.gaussian import gaussian
from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Gaussian,
    Guarantee,
    Relation,
    Repeated,
)
from tacit.queries.clipped_sum import CorrelatedNoise
from tacit.testing import replay
from tests.deep.helpers import CROSS_ENTROPY, Gradients, network, table, trainer

BUDGET = Budget(3.0, 1e-5, Relation.REPLACE)
NOISES: list[CorrelatedNoise] = [TreeNoise(), BandedNoise(1), BandedNoise(4)]


def ordered(model: nn.Module | None = None, **told: Any) -> OrderedTrainer:
    model = network() if model is None else model
    optimizer = told.pop("optimizer", None) or torch.optim.SGD(model.parameters(), lr=0.2)
    known: dict[str, Any] = {"n_records": 60, "batch_size": 10, "epochs": 2, "clip": FlatClip(0.1)}
    budget = told.pop("budget", BUDGET)
    return OrderedTrainer(model, CROSS_ENTROPY, optimizer, budget, **{**known, **told})


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_one_record_moves_all_releases_together_by_what_is_charged(
    noise: CorrelatedNoise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sequence is one release: its parts' movements add up in squares."""
    rows, labels = table()
    other = rows.copy(), labels.copy()
    other[0][17], other[1][17] = [1e4, -1e4, 1e4], 1 - labels[17]
    with recording() as tape:
        made = ordered(noise=noise).fit(rows, labels)
    values: list[Any] = []

    def noted(bounded: Any, *args: Any) -> Any:
        values.append(np.array(bounded.value))
        return gaussian(bounded, *args)

    monkeypatch.setattr(module, "gaussian", noted)
    with replaying(tape):
        ordered(noise=noise).fit(*other)
    entries = [entry for entry in tape.entries if isinstance(entry, Entry)]
    assert len(entries) == len(values) == 12
    moved = [
        float(np.linalg.norm(value - entry.bounded.value))
        for value, entry in zip(values, entries, strict=True)
    ]
    one = 2 * 0.1 * (1 + 2**-10)
    spread = 1.0 if isinstance(noise, TreeNoise) else noise.spread(6, 2)
    for entry in entries:
        assert entry.bounded.sensitivity == pytest.approx(one * spread, rel=1e-12)
    if isinstance(noise, TreeNoise):
        # no more sums than levels, each by no more than a record
        assert sum(m > 1e-9 for m in moved) <= made.plan_.event.count  # type: ignore[attr-defined]
        assert max(moved) <= one
    else:
        assert math.hypot(*moved) <= one * noise.spread(6, 2)
        assert math.hypot(*moved) > 0.3 * one * noise.spread(6, 2)  # the bound is about right


@pytest.mark.parametrize("batch_size", [60, 30, 20])
def test_every_pass_has_a_tree_of_its_own(batch_size: int) -> None:
    """Also one of a single step: in a tree of two passes a record would be in one sum twice."""
    rows, labels = table()
    other = rows.copy(), labels.copy()
    other[0][17], other[1][17] = [1e4, -1e4, 1e4], 1 - labels[17]

    def run(data: Any) -> None:
        ordered(noise=TreeNoise(), batch_size=batch_size, epochs=4).fit(*data)

    assert replay(run, (rows, labels), other) == 4 * 60 // batch_size


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("n_steps", [1, 5, 8, 13])
def test_without_noise_the_sums_are_found(noise: CorrelatedNoise, n_steps: int) -> None:
    rng, state = np.random.default_rng(n_steps), noise.start()
    for _ in range(n_steps):
        x = rng.standard_normal(3)
        np.testing.assert_allclose(state.estimate(state.to_release(x)), x, atol=1e-12)


def test_totals_have_less_noise_than_steps_by_themselves() -> None:
    """That is what correlated noise is for; the cost is in the spread."""
    rng, n_steps, runs = np.random.default_rng(0), 64, 400
    errors = {}
    for noise in (BandedNoise(1), BandedNoise(32), TreeNoise()):
        state = noise.start()
        levels = 7 if isinstance(noise, TreeNoise) else 1
        scale = noise.spread(n_steps, 1) * math.sqrt(levels)  # the same mu for all
        estimates = [
            state.estimate(state.to_release(np.zeros(runs)) + scale * rng.standard_normal(runs))
            for _ in range(n_steps)
        ]
        errors[str(noise)] = float(np.cumsum(estimates, 0).std())
    alone, banded, tree = errors.values()
    assert banded < 0.6 * alone
    assert tree < 1.1 * alone


def test_a_record_is_in_as_many_sums_as_there_are_levels() -> None:
    for n_steps in (1, 2, 3, 7, 8, 100):
        levels = TreeNoise().event(1.0, n_steps, 1).count
        for place in range(n_steps):
            state = TreeNoise().start()
            sums = [state.to_release(np.array([float(t == place)])) for t in range(n_steps)]
            assert sum(bool(total[0]) for total in sums) <= levels
            assert all(total[0] <= 1.0 for total in sums)


def test_plans() -> None:
    tree, banded = ordered(noise=TreeNoise()).plan(), ordered(noise=BandedNoise(4)).plan()
    assert isinstance(tree.event, Repeated)
    assert tree.event.count == 2 * 3
    assert isinstance(banded.event, Gaussian)
    for plan in (tree, banded):
        assert Guarantee(plan.event).epsilon(1e-5) == pytest.approx(3.0)
    accountant = Accountant(Budget(1.0, 1e-4, Relation.REPLACE))
    with pytest.raises(BudgetExceeded):
        ordered(accountant=accountant).fit(*table())


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_noise_is_of_the_planned_size(noise: CorrelatedNoise) -> None:
    """Of no records: the first estimate is nothing but noise."""
    model = nn.Linear(3, 4000)
    seen = Gradients(model)
    made = ordered(model, optimizer=seen, noise=noise)
    made.fit(np.zeros((0, 3), np.float32), np.zeros(0, np.int64))
    settings = made.plan_.settings
    scale = settings["noise_multiplier"] * settings["spread"] * 2 * 0.1 / 10
    assert seen.seen[0].std() / scale == pytest.approx(1.0, abs=0.04)  # seven standard errors


def test_less_noise_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "gaussian", lambda b, z, source: gaussian(b, 0.9 * z, source))
    with pytest.raises(RuntimeError, match="withheld"):
        ordered().fit(*table())


def test_refusals() -> None:
    for words, told in {
        "must be REPLACE": {"budget": Budget(1.0, 1e-5)},
        "finite epsilon": {"budget": Budget(1.0, 0.0, Relation.REPLACE)},
        "twice in one band": {"noise": BandedNoise(7)},
    }.items():
        with pytest.raises(ValueError, match=words):
            ordered(**told).plan()
    with pytest.raises(TypeError, match="fixed clip"):
        ordered(clip=AdaptiveClip())


def test_a_second_fit_is_refused_and_not_charged() -> None:
    accountant = Accountant(Budget(10.0, 1e-4, Relation.REPLACE))
    made = ordered(accountant=accountant).fit(*table())
    with pytest.raises(RuntimeError, match="has trained its model"):
        made.fit(*table())
    assert len(accountant.events) == 1


def test_it_trains_in_training_mode() -> None:
    """Dropout is on, by the records' keys, and the model is in its own mode afterwards."""
    modes: list[bool] = []
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)).eval()
    ordered(model, callbacks=[lambda moment: modes.append(moment.model.training)]).fit(*table())
    assert set(modes) == {True}
    assert not model.training


class TestPCALayer:
    def test_it_is_charged_and_fixed(self) -> None:
        X = np.random.default_rng(0).normal(0, 0.2, (3000, 6)).astype(np.float32)
        accountant = Accountant(Budget(1.0, 1e-5))
        layer = PCALayer(2, 0.5, 1e-6, row_norm=1.0, accountant=accountant).fit(X)
        assert len(accountant.events) == 1
        assert layer.privacy_ is not None
        assert layer.privacy_.epsilon(1e-6) <= 0.5
        assert not list(layer.parameters())
        assert torch.linalg.vector_norm(layer(torch.full((1, 6), 1e6))) <= 1.0001
        model = nn.Sequential(layer, nn.Linear(2, 2))
        made = trainer(model, n_records=3000).fit(X, (X[:, 0] > 0).astype(np.int64))
        assert made.privacy_.epsilon(1e-5) <= 2.0
        np.testing.assert_allclose(layer.directions.numpy(), layer._pca.components_, rtol=1e-6)

    def test_it_must_be_fitted(self) -> None:
        with pytest.raises(RuntimeError, match=r"fit\(X\) first"):
            PCALayer(2)(torch.zeros(1, 4))
