"""Networks by their names: architectures that do well under noise."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from tacit import checks

# From the shape of a record and the number of outputs to a module, a new one at each call.
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

    Of a function it is a copy of what that returns: training changes the copy alone, so that no
    network begins with what another one learned. ``to_train`` also refuses a function that returns
    one module twice: whoever wrote it expects training to change that module, or two fits to share
    it. Layers that two modules have in common are copied, and no reason to refuse.

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
    """Refuse a function that returns one module twice, or modules of different buffers."""
    if second is first:
        raise ValueError(
            "network returned the same module twice: each fit, and each try of a search, "
            "begins with a network of its own. Build a new one at every call, as lambda shape, "
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
    """Return a copy of a module that has no number in common with it, or refuse the module."""
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
    """Yield where in memory the numbers of a module begin."""
    for tensor in (*module.parameters(), *module.buffers()):
        if not is_lazy(tensor):
            place = tensor.untyped_storage().data_ptr()
            if place:  # of no numbers there is none
                yield place


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
