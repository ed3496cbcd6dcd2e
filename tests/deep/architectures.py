"""Small models of many kinds, and records for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

CROSS_ENTROPY = nn.CrossEntropyLoss(reduction="none")


@dataclass(frozen=True)
class Architecture:
    """A model, the shape of a record, and whether records are whole numbers below ``tokens``."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    tokens: int = 0

    def records(self, n: int = 5) -> Tensor:
        if self.tokens:
            return torch.randint(0, self.tokens, (n, *self.shape))
        return torch.randn(n, *self.shape)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.norm(self.conv(x)))


class Twice(nn.Module):
    """The same layers met three times."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm, self.last = nn.Linear(5, 5), nn.LayerNorm(5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.norm(torch.tanh(self.inner(x)))
        out: Tensor = self.last(x)
        return out


class Scales(nn.Module):
    """One convolution that two others share, and that meets images of two sizes."""

    def __init__(self) -> None:
        super().__init__()
        conv = nn.Conv2d(2, 2, 3, padding=1)
        self.near = nn.Sequential(conv, nn.Tanh(), nn.Flatten())
        self.far = nn.Sequential(nn.AvgPool2d(2), conv, nn.Flatten())
        self.last = nn.Linear(2 * 36 + 2 * 9, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(torch.cat([self.near(x), self.far(x)], 1))
        return out


class Tied(nn.Module):
    """Words in and words out by one table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4)
        self.out = nn.Linear(4, 7, bias=False)
        self.out.weight = self.table.weight

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(torch.tanh(self.table(x).mean(1)))
        return out


class Attention(nn.Module):
    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        self.batch_first = batch_first
        self.table = nn.Embedding(9, 8, padding_idx=0)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=batch_first)
        self.norm, self.last = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.table(x)
        h = h if self.batch_first else h.transpose(0, 1)
        h = self.norm(h + self.attention(h, h, h, need_weights=False)[0])
        out: Tensor = self.last(h.mean(1 if self.batch_first else 0))
        return out


class Positions(nn.Module):
    """A token of its own, and a parameter of the whole model."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 6))
        self.inner, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.cat([self.token.expand(len(x), -1, -1), x], 1)
        out: Tensor = self.last(torch.tanh(self.inner(h))[:, 0] + h.mean(1))
        return out


class Cells(nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.cell, self.last = kind(4, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        state: Any = None
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        out: Tensor = self.last(state[0] if isinstance(state, tuple) else state)
        return out


def frozen() -> nn.Module:
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
    for p in model[2].parameters():
        p.requires_grad_(False)
    model[0].bias.requires_grad_(False)
    return model


def tutorial() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 8, 2, padding=3),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(4, 6, 4, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(6, 8),
        nn.Tanh(),
        nn.Linear(8, 3),
    )


def normed() -> nn.Module:
    linear = nn.utils.parametrizations.weight_norm(nn.Linear(6, 4))
    return nn.Sequential(linear, nn.Tanh(), nn.Linear(4, 3))


def sequential(*layers: nn.Module) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(*layers)


ARCHITECTURES: dict[str, Architecture] = {
    "linear": Architecture(lambda: nn.Linear(6, 3), (6,)),
    "no_bias": Architecture(lambda: nn.Linear(6, 3, bias=False), (6,)),
    "mlp": Architecture(sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), (6,)),
    "in_place": Architecture(
        sequential(nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Linear(5, 3)), (6,)
    ),
    "frozen": Architecture(frozen, (6,)),
    "layer_norm": Architecture(sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 3)), (6,)),
    "tutorial": Architecture(tutorial, (1, 16, 16)),
    "residual": Architecture(
        sequential(nn.Conv2d(3, 4, 3), Residual(), Residual(), nn.Flatten(), nn.Linear(144, 3)),
        (3, 8, 8),
    ),
    "strided_groups": Architecture(
        sequential(
            nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2),
            nn.InstanceNorm2d(8, affine=True),
            nn.ReLU(),
            nn.Conv2d(8, 4, 2, dilation=2, groups=4, bias=False),
            nn.Flatten(),
            nn.Linear(16, 3),
        ),
        (4, 8, 8),
    ),
    "conv1d": Architecture(
        sequential(
            nn.Conv1d(2, 4, 3, padding=1, stride=2),
            nn.GroupNorm(2, 4),
            nn.Tanh(),
            nn.Conv1d(4, 3, 2, dilation=2),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        ),
        (2, 12),
    ),
    "other_padding": Architecture(
        sequential(
            nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"),
            nn.Conv2d(2, 2, 3, padding="same"),
            nn.Flatten(),
            nn.Linear(32, 3),
        ),
        (1, 4, 4),
    ),
    "conv3d": Architecture(
        sequential(nn.Conv3d(1, 2, 2), nn.Tanh(), nn.Flatten(), nn.Linear(16, 3)), (1, 3, 3, 3)
    ),
    "transposed": Architecture(
        sequential(nn.ConvTranspose2d(1, 2, 2), nn.Tanh(), nn.Flatten(), nn.Linear(32, 3)),
        (1, 3, 3),
    ),
    "bag_of_words": Architecture(
        sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(20, 3)), (5,), 9
    ),
    "one_word": Architecture(sequential(nn.Embedding(9, 4), nn.Linear(4, 3)), (), 9),
    "sequence_norm": Architecture(
        sequential(nn.Linear(4, 6), nn.LayerNorm((5, 6)), nn.Linear(6, 2), nn.Flatten()), (5, 4)
    ),
    "long_sequence": Architecture(
        sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1), nn.Flatten(), nn.Linear(40, 3)),
        (40, 2),
    ),
    "attention": Architecture(Attention, (5,), 9),
    "attention_time_first": Architecture(lambda: Attention(batch_first=False), (5,), 9),
    "encoder": Architecture(
        sequential(
            nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True),
            nn.Flatten(),
            nn.Linear(32, 3),
        ),
        (4, 8),
    ),
    "rnn_cell": Architecture(lambda: Cells(nn.RNNCell), (4, 4)),
    "lstm_cell": Architecture(lambda: Cells(nn.LSTMCell), (4, 4)),
    "gru_cell": Architecture(lambda: Cells(nn.GRUCell), (4, 4)),
    "used_thrice": Architecture(Twice, (5,)),
    "two_scales": Architecture(Scales, (2, 6, 6)),
    "tied": Architecture(Tied, (5,), 7),
    "token": Architecture(Positions, (4, 6)),
    "weight_norm": Architecture(normed, (6,)),
    "bilinear_prelu": Architecture(sequential(nn.Linear(6, 5), nn.PReLU(5), nn.Linear(5, 3)), (6,)),
}
