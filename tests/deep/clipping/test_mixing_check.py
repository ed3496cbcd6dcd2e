"""Models that mix records are refused by name, on random records, before anything is charged."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tacit.deep import CannotClip, without_batch_norm
from tacit.deep.clipping.mixing_check import Like, book_keeper
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


class Gated(nn.Module):
    """Attention between records behind a gate that starts at zero, as ReZero has it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.last = nn.Parameter(torch.zeros(1)), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(x + self.gate * (torch.softmax(x @ x.T, -1) @ x))
        return out


class ZeroStart(nn.Module):
    """A projection that starts at zero, times a mean over records."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.zero, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        nn.init.zeros_(self.zero.weight)
        nn.init.zeros_(self.zero.bias)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        out: Tensor = self.last(h + self.zero(h) * h.mean(0, keepdim=True))
        return out


class Averages(nn.Module):
    """A batch normalisation as many write it themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), 0.1)
            return x - x.mean(0)
        return x - self.mean


class Centred(nn.Module):
    """The same without a buffer: only its mode tells."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0) if self.training else x


class Counts(nn.Module):
    """Nothing that is said changes with the buffer."""

    def __init__(self, least: int = 0) -> None:
        super().__init__()
        self.least = least
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        if len(x) > self.least:
            self.n += len(x)
        return x


def shrinking(model: Given, x: Tensor) -> Tensor:
    """Weights that change when they are used, without torch's knowledge."""
    weights = model.l.weight.detach().numpy()
    weights.clip(-0.1, 0.1, out=weights)
    out: Tensor = model.l(x)
    return out


HIDDEN = {
    "gate": (Gated, "one record changes"),
    "zero start": (ZeroStart, "one record changes"),
    "many": (lambda: Given(lambda m, x: m.l(x - x.mean(0) if len(x) > 7 else x)), "one record"),
    "large": (lambda: Given(lambda m, x: m.l(x / x.abs().amax().clamp(min=3.1))), "one record"),
    "averages": (lambda: nn.Sequential(Averages(), nn.Linear(4, 3)), "buffer '0.mean'"),
    "centred": (lambda: nn.Sequential(Centred(), nn.Linear(4, 3)), "one record changes"),
    "dropout": (
        lambda: nn.Sequential(Centred(), nn.Dropout(0.1), nn.Linear(4, 3)),
        "one record changes",
    ),
    "counts": (lambda: nn.Sequential(Counts(), nn.Linear(4, 3)), "buffer '0.n'"),
    "counts many": (lambda: nn.Sequential(Counts(9), nn.Linear(4, 3)), "buffer '0.n'"),
    "weights": (lambda: Given(shrinking), "parameter 'l.weight' changes"),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(3)), "no shape yet"),
}


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("name", HIDDEN)
def test_mixing_that_hides_is_found(name: str, mode: str) -> None:
    """Behind a gate, in large batches, for large values, or in the mode that is not in force."""
    make, words = HIDDEN[name]
    torch.manual_seed(0)
    model = make().train(mode == "train")
    before = {key: value.clone() for key, value in model.state_dict().items() if name != "lazy"}
    with pytest.raises(CannotClip, match=words):
        book_keeper(model, CROSS_ENTROPY, FLOATS, TARGET)
    assert model.training == (mode == "train")
    if name != "weights":
        assert all(torch.equal(model.state_dict()[key], value) for key, value in before.items())


def hardest(outputs: Tensor, targets: Tensor) -> Tensor:
    losses: Tensor = CROSS_ENTROPY(outputs, targets)
    least = losses.detach().topk(min(64, len(losses))).values[-1]
    return losses * (losses.detach() >= least)


def test_a_loss_of_the_hardest_records_is_refused() -> None:
    with pytest.raises(CannotClip, match="hardest"):
        book_keeper(nn.Linear(4, 3), hardest, FLOATS, TARGET)


def test_what_is_neither_a_parameter_nor_a_buffer_is_refused() -> None:
    class Keeps(nn.Linear):
        def get_extra_state(self) -> object:
            return {"seen": 0}

    with pytest.raises(CannotClip, match="_extra_state"):
        book_keeper(Keeps(4, 3), CROSS_ENTROPY, FLOATS, TARGET)


def test_a_model_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.GroupNorm(2, 8), nn.Dropout(0.3), nn.Linear(8, 3))
    model[2].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    book_keeper(model, CROSS_ENTROPY, FLOATS, TARGET)
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
    assert [module.training for module in model] == [True, True, False, True]
    assert torch.equal(torch.get_rng_state(), state)


class Positive(nn.Module):
    """A scale that must stay positive: noise on it would break the model."""

    def __init__(self, mixes: bool) -> None:
        super().__init__()
        self.l, self.scale = nn.Linear(4, 3), nn.Parameter(torch.full((4,), 0.1))
        self.mixes = mixes

    def forward(self, x: Tensor) -> Tensor:
        if bool((self.scale <= 0).any()):
            raise ValueError("scale must be positive")
        h = x / self.scale.sqrt()
        out: Tensor = self.l(h - h.mean(0) if self.mixes and len(x) > 7 else h)
        return out


def test_parameters_that_must_stay_positive_are_scaled() -> None:
    torch.manual_seed(0)
    book_keeper(Positive(mixes=False), CROSS_ENTROPY, FLOATS, TARGET)
    with pytest.raises(CannotClip, match="one record"):
        book_keeper(Positive(mixes=True), CROSS_ENTROPY, FLOATS, TARGET)


def test_no_more_records_are_tried_than_are_worked_on_at_once() -> None:
    seen: list[int] = []

    def noted(model: Given, x: Tensor) -> Tensor:
        seen.append(len(x))
        out: Tensor = model.l(x)
        return out

    book_keeper(Given(noted), CROSS_ENTROPY, FLOATS, TARGET, micro_batch=20)
    assert max(seen) == 20
    seen.clear()
    book_keeper(Given(noted), CROSS_ENTROPY, FLOATS, TARGET)
    assert max(seen) == 100


def test_values_outside_of_what_a_model_takes_are_no_reason_to_refuse_it() -> None:
    def within(model: Given, x: Tensor) -> Tensor:
        assert bool(((x >= 0) & (x <= 1)).all())
        out: Tensor = model.l(x)
        return out

    book_keeper(Given(within), CROSS_ENTROPY, FLOATS, TARGET)


def test_a_dropout_over_records_and_heads_is_named() -> None:
    def flattened(model: Given, x: Tensor) -> Tensor:
        h = functional.dropout(x.repeat_interleave(2, 0), 0.5, model.training)
        out: Tensor = model.l(h.view(len(x), 2, 4).mean(1))
        return out

    with pytest.raises(CannotClip, match=r"a dropout is given.*reshape it"):
        book_keeper(Given(flattened), CROSS_ENTROPY, FLOATS, TARGET)
