"""Networks of a function of one's own: each fit, and each try of a search, has a new one."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tacit.deep import NeuralClassifier
from tacit.deep.networks import network_of
from tacit.privacy import Accountant, Budget
from tacit.tuning import FixedTries, PrivateSearch, PublicScore

ROWS = np.random.default_rng(0).standard_normal((300, 3))
LABELS = (ROWS[:, 0] > 0.0).astype(int)


def classifier(network: Any, **more: Any) -> NeuralClassifier:
    told = {"classes": [0, 1], "n_records": 300, "n_steps": 3, "batch_size": 300, **more}
    return NeuralClassifier(5.0, 1e-6, network=network, **told)


def search(model: Any) -> PrivateSearch:
    public = PublicScore(ROWS[:50], LABELS[:50])
    space = {"learning_rate": [1.0, 2.0]}
    return PrivateSearch(model, space, law=FixedTries(3), scoring=public, epsilon=5.0)


def test_a_function_that_returns_one_module_is_refused_before_anything_is_paid() -> None:
    module = nn.Linear(3, 2)
    before = module.weight.detach().clone()

    @functools.lru_cache
    def cached(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        return nn.Linear(*shape, n_outputs)

    purse = Accountant(Budget(50.0, 1e-3))
    for network in (lambda shape, n: module, cached):
        for one in (classifier(network), search(classifier(network))):
            with pytest.raises(ValueError, match=r"same module twice.*new one at every call"):
                one.set_params(accountant=purse).fit(ROWS, LABELS)
    assert purse.events == ()
    assert torch.equal(module.weight, before)


class Shifted(nn.Module):
    """A layer with a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        shift: Any = self.shift
        result: torch.Tensor = torch.tanh(self.linear(rows) + shift)
        return result


def test_no_try_begins_where_another_ended() -> None:
    """All modules have a layer in common: what one try learned, the next must not start with."""
    shared, head = Shifted(), nn.Linear(4, 2)
    starts = list[float]()

    def network(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        starts.append(float(shared.linear.weight.detach().norm()))
        starts.append(float(head.weight.detach().norm()))
        return nn.Sequential(shared, head)

    before = {name: value.clone() for name, value in shared.state_dict().items()}
    found = search(classifier(network)).fit(ROWS, LABELS)
    assert len(starts) >= 2 * 2 * 4  # the fit to no records, and three tries, each asks twice
    assert len(set(starts)) == 2
    assert all(torch.equal(value, before[name]) for name, value in shared.state_dict().items())
    # and what was learned is in the winner
    assert not torch.equal(found.best_estimator_.module()[0].linear.weight, before["linear.weight"])


def test_two_modules_of_a_fit_share_nothing() -> None:
    module = Shifted()
    made = [network_of(lambda *_: module, (3,), (), 4) for _ in range(2)]
    for one in made:
        for value in one.state_dict().values():
            value.zero_()
    assert torch.equal(module.shift, torch.ones(4))  # type: ignore[arg-type]
    assert module.linear.weight.detach().any()
    with torch.no_grad():
        made[0].state_dict()["shift"].add_(1.0)
    assert not made[1].state_dict()["shift"].any()


class Itself(nn.Linear):
    """Is its own copy."""

    def __deepcopy__(self, memo: object) -> Itself:
        return self


class SameNumbers(nn.Linear):
    """Has copies of the same numbers: those of a buffer alone."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__(n_in, n_out)
        self.register_buffer("kept", torch.zeros(3))

    def __deepcopy__(self, memo: object) -> SameNumbers:
        made = SameNumbers(self.in_features, self.out_features)
        made.register_buffer("kept", self.kept)
        return made


def test_what_cannot_be_copied_is_refused_before_anything_is_paid() -> None:
    purse = Accountant(Budget(50.0, 1e-3))
    for network, why in (
        (lambda shape, n: Itself(*shape, n), "Itself that network returned shares"),
        (lambda shape, n: SameNumbers(shape[0], n), "SameNumbers that network returned shares"),
        (lambda shape, n: _of_a_product(nn.Linear(*shape, n)), "Linear that cannot be copied"),
    ):
        with pytest.raises(TypeError, match=why):
            classifier(network, accountant=purse).fit(ROWS, LABELS)
    assert purse.events == ()


def _of_a_product(layer: nn.Linear) -> nn.Linear:
    """Return a layer with a tensor that is no leaf, as old ways to normalise weights make."""
    layer.product = 2 * layer.weight  # type: ignore[assignment]
    return layer


def test_a_seeded_network_of_ones_own_begins_as_one_by_its_word_does() -> None:
    """The second module that a function is asked for takes no number from the first."""

    def own(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(*shape, n_outputs))

    one, other = (classifier(n, random_state=3).fit(ROWS, LABELS) for n in (own, "linear"))
    np.testing.assert_array_equal(one.weights_, other.weights_)


def test_a_buffer_that_is_drawn_anew_is_refused() -> None:
    """A fitted model keeps parameters alone, and predicted with other random features each time."""

    def features(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        class Waves(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("frequencies", torch.randn(shape[0], 4))
                self.last = nn.Linear(4, n_outputs)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                out: torch.Tensor = self.last(torch.cos(x @ self.frequencies))
                return out

        return Waves()

    with pytest.raises(ValueError, match="'frequencies' anew"):
        network_of(features, (3,), (), 2, to_train=True)
