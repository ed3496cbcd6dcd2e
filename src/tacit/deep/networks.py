"""Build networks by name: architectures that do well under noise, and a private PCA layer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from tacit import checks
from tacit.preprocessing import PrivatePCA
from tacit.privacy import AnyAccountant, Guarantee


class PCALayer(nn.Module):
    """Project on the leading directions of private rows, as the first layer of a network.

    Analyze Gauss: noise on the second moment of rows scaled down to ``row_norm``; the directions
    are post-processing. They are fixed afterwards: a buffer, not trained.

    Parameters
    ----------
    n_components : int
        The number of directions.
    epsilon, delta : float
        The budget of the directions, in addition to that of the training.
    row_norm : float
        Longer rows are scaled down to it, in the moment and in the layer.
    accountant
        A budget shared with the training.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from tacit.deep import PCALayer
    >>> X = np.random.default_rng(0).normal(0, 0.2, (20_000, 20))
    >>> layer = PCALayer(5, epsilon=1.0, delta=1e-6, row_norm=1.0).fit(X)
    >>> layer(torch.zeros(2, 20)).shape
    torch.Size([2, 5])
    """

    directions: Tensor

    def __init__(
        self,
        n_components: int,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        row_norm: float = 1.0,
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__()
        self.row_norm = row_norm
        self._pca = PrivatePCA(
            n_components,
            epsilon,
            delta,
            row_norm=row_norm,
            accountant=accountant,
            random_state=random_state,
        )
        self.register_buffer("directions", torch.zeros(n_components, 0))
        self.privacy_: Guarantee | None = None

    def fit(self, X: Any) -> PCALayer:
        """Find the directions of rows; charged before they are read."""
        self._pca.fit(X)
        self.privacy_ = self._pca.privacy_
        self.directions = torch.from_numpy(self._pca.components_).float()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Return the coordinates of rows along the directions; longer rows are scaled down."""
        if self.directions.shape[1] == 0:
            raise RuntimeError("the layer has no directions yet; call fit(X) first.")
        rows = x.flatten(1)
        length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        return rows * (self.row_norm / length.clamp(min=self.row_norm)) @ self.directions.T


# From the shape of a record and the number of outputs to a new module at each call.
Factory = Callable[[tuple[int, ...], int], nn.Module]
WORDS = ("linear", "mlp", "cnn")
_CHANNELS = (16, 32)
_GROUPS = 4


def network_of(
    network: str | Factory,
    shape: tuple[int, ...],
    hidden: Sequence[int],
    n_outputs: int,
    *,
    to_train: bool = False,
) -> nn.Module:
    """Return a new network with fresh weights, which shares nothing with any other.

    If ``network`` is a function, its result is copied: training changes only the copy, so that no
    network begins with the weights of another. ``to_train`` also refuses a function that returns
    one module twice, because its author may expect training to change that module, or two fits to
    share it. Layers that two modules have in common are copied, and no reason to refuse.

    ``"linear"`` is one layer, ``"mlp"`` hidden layers with tanh, ``"cnn"`` two convolutions with
    tanh and group normalisation before a small layer: bounded activations keep gradients short,
    and few weights keep noise small.

    Examples
    --------
    >>> from tacit.deep.networks import network_of
    >>> sum(p.numel() for p in network_of("mlp", (10,), (8,), 2).parameters())
    106
    """
    if callable(network):
        made = _made(network, shape, n_outputs)
        if to_train:
            _refuse_the_same(made, _made(network, shape, n_outputs))
        return _copied(made)
    if network == "linear":
        return _stack(shape, (), n_outputs)
    if network == "mlp":
        return _stack(shape, hidden, n_outputs)
    if network == "cnn":
        return _convolutions(shape, n_outputs)
    raise ValueError(
        f"network must be one of {', '.join(map(repr, WORDS))} or a function that returns a "
        f"module, got {network!r}."
    )


def _refuse_the_same(first: nn.Module, second: nn.Module) -> None:
    """Refuse a function that returns one module twice, or modules with different buffers."""
    if second is first:
        raise ValueError(
            "network returned the same module twice, but each fit, and each trial of a search, "
            "needs its own network. Build a new one at every call, as lambda shape, "
            "n_outputs: nn.Linear(*shape, n_outputs) does, or return copy.deepcopy(module)."
        )
    others = dict(second.named_buffers())
    for name, buffer in first.named_buffers():
        same = name in others and buffer.shape == others[name].shape
        if not same or not torch.equal(buffer, others[name]):
            raise ValueError(
                f"network draws buffer {name!r} anew at each call, and a fitted model keeps "
                "parameters alone: it would predict with other numbers than it was trained with. "
                "Make it a parameter with requires_grad=False, or draw it from a seed of its own."
            )


def _made(network: Factory, shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    made = network(shape, n_outputs)
    if not isinstance(made, nn.Module):
        raise TypeError(
            f"network returned a {type(made).__name__}; it is called with the shape of a "
            "record and the number of outputs, and returns a torch Module."
        )
    return made


def _copied(module: nn.Module) -> nn.Module:
    """Return a copy that shares no memory with the module, or refuse the module."""
    try:
        made = copy.deepcopy(module)
    except Exception as why:
        raise TypeError(
            f"network returned a {type(module).__name__} that cannot be copied "
            f"({type(why).__name__}: {why}), and each fit begins with a copy. Build it of "
            "parameters and buffers alone: torch.nn.utils.parametrizations.weight_norm can be "
            "copied, where torch.nn.utils.weight_norm cannot."
        ) from why
    if not isinstance(made, nn.Module) or set(_places(made)) & set(_places(module)):
        raise TypeError(
            f"a copy of the {type(module).__name__} that network returned shares its numbers, so "
            "that one fit would begin where another ended. Let copy.deepcopy copy its parameters "
            "and buffers: leave __deepcopy__ out."
        )
    return made


def _places(module: nn.Module) -> Iterator[int]:
    """Yield the addresses of the tensors of a module."""
    for tensor in (*module.parameters(), *module.buffers()):
        if not is_lazy(tensor):
            place = tensor.untyped_storage().data_ptr()
            if place:  # empty tensors have no address
                yield place


def _stack(shape: tuple[int, ...], hidden: Sequence[int], n_outputs: int) -> nn.Module:
    width = 1
    for size in shape:
        width *= size
    layers: list[nn.Module] = [nn.Flatten()]
    if not hasattr(hidden, "__iter__"):
        raise TypeError(f"hidden must be a sequence of widths, got {hidden!r}; pass (64,), say.")
    for size in hidden:
        layers += [nn.Linear(width, checks.count("hidden", size)), nn.Tanh()]
        width = size
    return nn.Sequential(*layers, nn.Linear(width, n_outputs))


def _convolutions(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    if len(shape) != 3 or min(shape[1:]) < 16:
        raise ValueError(
            "network='cnn' takes images of at least 16 by 16: pass image_shape=(channels, height, "
            f"width), got records of shape {shape}."
        )
    channels, height, width = shape
    layers = [
        nn.Conv2d(channels, _CHANNELS[0], 8, stride=2, padding=3),
        nn.GroupNorm(_GROUPS, _CHANNELS[0]),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(*_CHANNELS, 4, stride=2),
        nn.GroupNorm(_GROUPS, _CHANNELS[1]),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
    ]
    left = _CHANNELS[1] * _side(height) * _side(width)
    return nn.Sequential(*layers, nn.Linear(left, 32), nn.Tanh(), nn.Linear(32, n_outputs))


def _side(size: int) -> int:
    """Return the side length after the convolutions and the pooling."""
    first = (size + 6 - 8) // 2 + 1 - 1
    return (first - 4) // 2 + 1 - 1


def parameter_count(module: Any) -> int:
    """Return the number of trained values of a module."""
    return sum(p.numel() for p in module.parameters())
