"""Networks by their names: architectures that do well under noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from tacit import checks

# From the shape of a record and the number of outputs to a module.
Factory = Callable[[tuple[int, ...], int], nn.Module]
WORDS = ("linear", "mlp", "cnn")
_CHANNELS = (16, 32)
_GROUPS = 4


def network_of(
    network: str | Factory, shape: tuple[int, ...], hidden: Sequence[int], n_outputs: int
) -> nn.Module:
    """Return a new network with fresh weights.

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
        made = network(shape, n_outputs)
        if not isinstance(made, nn.Module):
            raise TypeError(
                f"network returned a {type(made).__name__}; it is called with the shape of a "
                "record and the number of outputs, and returns a torch Module."
            )
        return made
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


def _stack(shape: tuple[int, ...], hidden: Sequence[int], n_outputs: int) -> nn.Module:
    width = 1
    for size in shape:
        width *= size
    layers: list[nn.Module] = [nn.Flatten()]
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
    """Return what the convolutions and the pooling leave of a side."""
    first = (size + 6 - 8) // 2 + 1 - 1
    return (first - 4) // 2 + 1 - 1


def parameter_count(module: Any) -> int:
    """Return how many numbers a module has to learn."""
    return sum(p.numel() for p in module.parameters())
