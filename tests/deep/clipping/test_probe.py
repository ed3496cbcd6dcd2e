"""Models that mix records are refused by name, on random records, before anything is charged."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tacit.deep import CannotClip, without_batch_norm
from tacit.deep.clipping import Like, book_keeper
from tests.deep.architectures import CROSS_ENTROPY

FLOATS = Like((4,), torch.float32)
TARGET = Like((), torch.int64)


class Given(nn.Module):
    """A model made of a function of a linear layer and of what it is given."""

    def __init__(self, forward: object, **layers: nn.Module) -> None:
        super().__init__()
        self.l = nn.Linear(4, 3)
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.function = forward

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.function(self, x)  # type: ignore[operator]
        return out


def shared_positions(model: Given, x: Tensor) -> Tensor:
    # three records of three places each: shapes alone would not tell
    return model.l((x[:, None, :] + model.table(torch.arange(3))).mean(1))


def changed_in_place(model: Given, x: Tensor) -> Tensor:
    h = model.first(x) + 1.0
    out = model.l(h)
    h.mul_(2.0)
    return out + h[:, :3]


MIXING = {
    "looks across the first dimension": Given(lambda m, x: m.l(x - x.mean(0))),
    "layer 'table'": Given(shared_positions, table=nn.Embedding(3, 4)),
    "parameter 'l.weight'": Given(lambda m, x: m.l(functional.linear(m.l(x), m.l.weight.T))),
    "without_batch_norm": nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)),
    "track_running_stats": nn.Sequential(
        nn.Linear(4, 3), nn.InstanceNorm1d(3, track_running_stats=True)
    ),
    "in place": Given(changed_in_place, first=nn.Linear(4, 4)),
    "nothing to train": nn.Sequential(nn.Linear(4, 3).requires_grad_(False)),
    "dropout to 0": nn.Sequential(nn.TransformerEncoderLayer(4, 2, batch_first=True)),
    "Check the shapes": nn.Linear(5, 3),
    r"float\(\).cpu\(\)": nn.Linear(4, 3).double(),
}


@pytest.mark.parametrize("words", MIXING)
def test_what_cannot_be_told_apart_is_refused(words: str) -> None:
    with pytest.raises(CannotClip, match=words):
        book_keeper(MIXING[words], CROSS_ENTROPY, FLOATS, TARGET)


def test_embeddings_that_look_across_records() -> None:
    for bad, word in (({"max_norm": 1.0}, "max_norm"), ({"scale_grad_by_freq": True}, "by_freq")):
        model = nn.Sequential(nn.Embedding(5, 3, **bad), nn.Flatten())
        with pytest.raises(CannotClip, match=word):
            book_keeper(model, CROSS_ENTROPY, Like((1,), torch.int64), TARGET)


def test_dropout_between_layers_is_fine() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    state = torch.get_rng_state()
    book_keeper(model, CROSS_ENTROPY, FLOATS, TARGET)
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)


def test_one_call_takes_batch_normalisation_out() -> None:
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(32, 3))
    model[1].weight.data.fill_(2.0)
    converted = without_batch_norm(model)
    assert isinstance(model[1], nn.BatchNorm2d)
    assert isinstance(converted[1], nn.GroupNorm)
    assert bool((converted[1].weight == 2.0).all())
    book_keeper(converted, CROSS_ENTROPY, Like((1, 4, 4), torch.float32), TARGET)
    assert isinstance(without_batch_norm(nn.BatchNorm1d(6)), nn.GroupNorm)
