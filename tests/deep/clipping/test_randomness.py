"""Dropout masks follow from a record's own key, wherever it stands in its batch."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import tacit.deep.records as records_module
from tacit.deep import CannotClip, FlatClip, PrivateTrainer
from tacit.deep.clipping.mixing_check import Like, book_keeper
from tacit.deep.clipping.randomness import RecordMasks, global_randomness, record_keys
from tacit.deep.records import DatasetRecords
from tacit.noise import SensitivityViolation
from tacit.privacy import Accountant, Budget
from tacit.queries.clipped_sum import FLOAT_SLACK
from tacit.testing import replay
from tests.deep.helpers import CROSS_ENTROPY, table, trainer

WIDTH, N = 64, 120
DROPOUTS: dict[str, Callable[..., Tensor]] = {
    "dropout": functional.dropout,
    "torch": torch.dropout,
    "channels": functional.dropout2d,
    "alpha": functional.alpha_dropout,
    "alpha_channels": functional.feature_alpha_dropout,
}


def dropped(name: str, x: Tensor, keys: Any, p: float = 0.5) -> Tensor:
    with RecordMasks(keys, (0,)):
        return DROPOUTS[name](x, p, True)


@pytest.mark.parametrize("name", DROPOUTS)
def test_a_mask_is_a_function_of_the_key(name: str) -> None:
    x, keys = torch.randn(7, 6, 4, 4), record_keys(7)
    whole = dropped(name, x, keys)
    assert not torch.equal(whole[0] == 0, whole[1] == 0) or "alpha" in name
    order = [4, 2, 6]
    assert torch.equal(dropped(name, x[order], keys[order]), whole[order])
    assert torch.equal(dropped(name, x[3:4], keys[3:4]), whole[3:4])
    other = dropped(name, x, record_keys(7))
    assert not torch.equal(other, whole)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", DROPOUTS)
def test_as_many_are_dropped_as_torch_drops(name: str, p: float) -> None:
    """By six standard errors; means and variances as torch has them."""
    x = torch.ones(2000, 25, 2, 2)
    ours = dropped(name, x, record_keys(2000), p)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        torch_s = DROPOUTS[name](x, p, True)
    kept = ours[:, :, 0, 0] > (0.0 if "alpha" not in name else ours.min() + 1e-6)
    assert abs(float(kept.double().mean()) - (1 - p)) < 6 * math.sqrt(p * (1 - p) / 50_000)
    # a share of 2^-16 is all that probabilities differ by
    assert torch.allclose(ours.max(), torch_s.max(), rtol=1e-3)
    assert torch.allclose(ours.min(), torch_s.min(), rtol=1e-3, atol=1e-6)
    same = (ours == ours[:, :, :1, :1]).all()
    assert bool(same) == ("channels" in name)


def test_no_two_values_share_their_bits() -> None:
    ones = torch.ones(400, 50)
    kept = (dropped("dropout", ones, record_keys(400)) > 0).double()
    correlations = torch.corrcoef(kept.T) - torch.eye(50, dtype=torch.float64)
    assert float(correlations.abs().max()) < 7 / math.sqrt(400)
    keys = record_keys(400)
    with RecordMasks(keys, (0, 0)):
        first, second = (functional.dropout(ones, 0.5, True) > 0 for _ in range(2))
    assert 0.45 < float((first == second).double().mean()) < 0.55


def test_probabilities_of_zero_and_one_and_evaluation() -> None:
    x, keys = torch.ones(3, 4), record_keys(3)
    assert torch.equal(dropped("dropout", x, keys, 1.0), torch.zeros(3, 4))
    assert torch.equal(dropped("alpha", x, keys, 1.0), torch.zeros(3, 4))
    assert torch.equal(dropped("dropout", x, keys, 0.0), x)
    with RecordMasks(keys, ()):
        assert torch.equal(functional.dropout(x, 0.5, False), x)
    inplace = x.clone()
    with RecordMasks(keys, (0,)):
        functional.dropout(inplace, 0.5, True, True)
    assert torch.equal(inplace, dropped("dropout", x, keys))


class Dropped(nn.Module):
    """A weight whose gradient is a record as dropout left it."""

    def __init__(self, dropout: nn.Module | None = None) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5) if dropout is None else dropout
        self.linear = nn.Linear(WIDTH, 1, bias=False)
        nn.init.constant_(self.linear.weight, 0.01)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(self.dropout(x))
        return out


def output(outputs: Tensor, _: Tensor) -> Tensor:
    return -outputs[:, 0]


def spikes(n: int = N) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Records of one large value each: whether it is dropped is all there is to their gradient."""
    rows = np.zeros((n, WIDTH), np.float32)
    rows[np.arange(n), np.arange(n) % WIDTH] = 1.0
    return rows


FRONT: dict[str, list[float]] = {
    "zeros": [0.0] * WIDTH,
    "spike": [1.0] * WIDTH,
    "nan": [np.nan] * WIDTH,
    "overflow": [3e38] * WIDTH,
}


@pytest.mark.parametrize("front", FRONT)
@pytest.mark.parametrize("micro_batch", [None, 16])
def test_a_record_in_front_moves_the_sum_by_one_clip(front: str, micro_batch: int | None) -> None:
    """Drawn by place, 120 spikes move by about eight clips; 400 by fourteen."""
    model = Dropped().train()
    keeper = book_keeper(model, output, Like((WIDTH,), torch.float32), Like((), torch.int64))
    rows, keys = torch.from_numpy(spikes()), record_keys(N + 1)
    more = torch.cat([torch.tensor([FRONT[front]]), rows])
    y, clip = torch.zeros(N + 1, dtype=torch.int64), FlatClip(1.0)
    fewer_sum = keeper.sums(rows, y[1:], clip, micro_batch, keys[1:]).value
    more_sum = keeper.sums(more, y, clip, micro_batch, keys).value
    moved = float(torch.linalg.vector_norm(more_sum - fewer_sum))
    assert moved <= 1 + FLOAT_SLACK
    by_place = keeper.sums(rows, y[1:], clip, micro_batch, keys[:-1]).value
    assert float(torch.linalg.vector_norm(more_sum - by_place)) > 4


class Raises(Dropped):
    def forward(self, x: Tensor) -> Tensor:
        if bool((x > 40).any()):
            raise KeyError(f"{x.max()}")
        return super().forward(x)


def test_a_record_that_raises_changes_nobody_s_mask() -> None:
    keeper = book_keeper(
        Raises().train(), output, Like((WIDTH,), torch.float32), Like((), torch.int64)
    )
    rows, keys = torch.from_numpy(spikes()), record_keys(N)
    y, clip = torch.zeros(N, dtype=torch.int64), FlatClip(1.0)
    whole = keeper.sums(rows, y, clip, keys=keys).value
    rows[37, 0] = 50.0
    without = keeper.sums(rows, y, clip, keys=keys).value
    assert float(torch.linalg.vector_norm(whole - without)) <= 1 + FLOAT_SLACK


def sums_without_noise(rows: Any) -> Any:
    torch.manual_seed(0)
    model = Dropped()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    settings: Any = {"n_records": N, "batch_size": N, "n_steps": 1, "clip": FlatClip(1.0)}
    made = PrivateTrainer(model, output, optimizer, Budget(math.inf, 1e-5), **settings)
    made.fit(rows, np.zeros(len(rows), np.int64))
    return model.linear.weight.detach().numpy()[0]


def test_a_seed_of_torch_is_no_seed_of_masks() -> None:
    first, second = sums_without_noise(spikes()), sums_without_noise(spikes())
    assert not np.array_equal(first, second)


def test_training_leaves_torch_s_generator_alone() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    before = torch.get_rng_state()
    trainer(model).fit(*table())
    assert torch.equal(torch.get_rng_state(), before)


def fit_with_dropout(data: Any) -> None:
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Tanh(), nn.Dropout(0.2))
    trainer(nn.Sequential(*inner, nn.Linear(4, 2)), clip=FlatClip(0.1)).fit(*data)


@pytest.mark.parametrize("by_place", [False, True])
def test_a_whole_training_replayed(by_place: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same keys for the same records nothing moves further than declared."""
    rows, labels = table()
    more = np.vstack([np.full((1, 3), 50.0, np.float32), rows]), np.append([1], labels)
    every = np.random.default_rng(3).integers(0, 256, (100, 61, 16), np.uint8)
    step = iter(range(10**6))

    def keys(keeper: Any, records: Any, n: int, source: Any) -> Any:
        shared = every[next(step) % 6]
        return shared[:n] if by_place else shared[-n:]

    monkeypatch.setattr(records_module, "keys_for", keys)
    monkeypatch.setattr(records_module, "poisson_choice", lambda rate, n, words: np.ones(n, bool))
    if by_place:
        with pytest.raises(SensitivityViolation):
            replay(fit_with_dropout, (rows, labels), more)
    else:
        assert replay(fit_with_dropout, (rows, labels), more) == 6


class TimeFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.dropout, self.last = nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.dropout(self.inner(x).transpose(0, 1))
        out: Tensor = self.last(h.mean(0))
        return out


def test_records_need_not_be_first() -> None:
    model = TimeFirst().train()
    keeper = book_keeper(model, CROSS_ENTROPY, Like((6, 4), torch.float32), Like((), torch.int64))
    x, y, keys = torch.randn(9, 6, 4), torch.zeros(9, dtype=torch.int64), record_keys(9)
    wide = FlatClip(1e6)
    whole = keeper.sums(x, y, wide, keys=keys).value
    parts = [keeper.sums(x[i : i + 1], y[:1], wide, keys=keys[i : i + 1]).value for i in range(9)]
    assert torch.allclose(whole, sum(parts), rtol=1e-3, atol=1e-4)


class Function(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.linear, self.function = nn.Linear(3, 2), function

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(self.function(x))
        return out


OTHER_DRAWS: dict[str, Any] = {
    "noise": lambda x: x + torch.randn_like(x),
    "bernoulli": lambda x: x * torch.bernoulli(torch.full_like(x, 0.5)),
    "path": lambda x: x * torch.rand(len(x), 1).round(),
    "attention": lambda x: functional.scaled_dot_product_attention(
        x[:, None], x[:, None], x[:, None], dropout_p=0.5
    )[:, 0],
}


@pytest.mark.parametrize("name", OTHER_DRAWS)
def test_other_random_numbers_are_refused(name: str) -> None:
    with pytest.raises(CannotClip, match="torch's generator"):
        trainer(Function(OTHER_DRAWS[name])).fit(*table())


def test_random_numbers_of_others_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(CannotClip, match="from one call to the next"):
        trainer(Function(lambda x: x * rng.random())).fit(*table())


RARELY: dict[str, Any] = {
    "python": lambda x: x * 0.0 if random.random() < 1e-6 else x,
    "numpy": lambda x: x * 0.0 if np.random.rand() < 1e-6 else x,  # noqa: NPY002
}


@pytest.mark.parametrize("name", RARELY)
def test_a_draw_that_hardly_ever_matters_is_refused(name: str) -> None:
    """As LayerDrop does it: which layer is left out would follow from how often one drew."""
    with pytest.raises(CannotClip, match="NumPy's or Python's"):
        trainer(Function(RARELY[name])).fit(*table())


def test_the_generator_is_put_back_where_a_record_draws_and_raises() -> None:
    def odd(x: Tensor) -> Tensor:
        if bool((x > 500).any()):
            torch.rand(3)
            raise ValueError("too large")
        return x

    rows, labels = table()
    rows[5] = 1000.0
    model = Function(odd)
    before = torch.get_rng_state()
    trainer(model).fit(rows, labels)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_mask_for_all_records_is_refused() -> None:
    with pytest.raises(CannotClip, match="no row for each record"):
        trainer(Function(lambda x: x * functional.dropout(torch.ones(3), 0.5))).fit(*table())


def test_draws_that_only_some_records_cause_stop_the_training() -> None:
    def rarely(x: Tensor) -> Tensor:
        return x + torch.randn_like(x) if bool((x > 500).any()) else x

    rows, labels = table()
    rows[5] = 1000.0
    with pytest.raises(CannotClip, match="torch's generator"):
        trainer(Function(rarely)).fit(rows, labels)


class Augmented:
    """Items that are turned at random, by whichever generator."""

    def __init__(self, draw: Callable[[], float], n: int) -> None:
        self.draw, self.n = draw, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        return torch.tensor([float(i), self.draw()]), 0


DRAWS: dict[str, Callable[[], float]] = {
    "torch": lambda: float(torch.rand(())),
    "numpy": lambda: float(np.random.rand()),  # noqa: NPY002
    "python": random.random,
}


@pytest.mark.parametrize("generator", DRAWS)
def test_an_item_draws_by_its_key(generator: str) -> None:
    records = DatasetRecords(Augmented(DRAWS[generator], 6))
    keys = record_keys(6)
    whole, _, own = records.take(np.arange(6), keys)
    assert np.array_equal(own, keys)
    before = global_randomness()
    alone, _, _ = records.take(np.array([4, 2]), keys[[4, 2]])
    assert global_randomness() == before
    assert torch.equal(alone, whole[[4, 2]])
    assert len(set(whole[:, 1].tolist())) == 6
    again, _, _ = records.take(np.arange(6), record_keys(6))
    assert not torch.equal(again[:, 1], whole[:, 1])


def test_keys_stay_with_items_that_can_be_read() -> None:
    class Some(Augmented):
        def __getitem__(self, i: int) -> tuple[Tensor, int]:
            if i == 2:
                raise OSError("unreadable")
            return super().__getitem__(i)

    keys = record_keys(4)
    x, _, own = DatasetRecords(Some(lambda: 0.0, 4)).take(np.arange(4), keys)
    assert x[:, 0].tolist() == [0.0, 1.0, 3.0]
    assert np.array_equal(own, keys[[0, 1, 3]])


OWN: dict[str, Callable[[], Callable[[], float]]] = {
    "numpy": lambda: np.random.default_rng(0).random,
    "torch": lambda: partial(_drawn, torch.Generator().manual_seed(0)),
    "python": lambda: random.Random(0).random,
}


def _drawn(generator: torch.Generator) -> float:
    return float(torch.rand((), generator=generator))


@pytest.mark.parametrize("generator", OWN)
def test_a_generator_of_the_dataset_s_own_is_refused_before_the_charge(generator: str) -> None:
    """Drawn in order, one record more would shift the crops of all behind it."""
    accountant = Accountant(Budget(10.0, 1e-4))
    model = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="generator of its own"):
        trainer(model, accountant=accountant).fit(Augmented(OWN[generator](), 60))
    assert not accountant.events


def test_the_guarantee_says_what_items_may_follow_from() -> None:
    made = trainer(nn.Linear(2, 2)).fit(Augmented(lambda: float(torch.rand(())), 60))
    assert any("not from its place" in line for line in made.privacy_.assumptions)
