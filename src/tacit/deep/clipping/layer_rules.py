"""Compute per-record gradients of a layer: products for common layers, vmap for any other."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from tacit.deep.clipping.gradients import (
    Factor,
    Gradients,
    OuterProducts,
    Room,
    Rows,
    Several,
    SummedProducts,
    Whole,
    Written,
)


def tensors_of(values: Any) -> list[Tensor]:
    """Return all tensors in nested values, in order.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep.clipping.layer_rules import tensors_of
    >>> [t.item() for t in tensors_of((torch.tensor(1), {"h": [torch.tensor(2)]}, None))]
    [1, 2]
    """
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, tuple | list):
        return []
    return [tensor for value in values for tensor in tensors_of(value)]


def replaced(values: Any, tensors: list[Tensor]) -> Any:
    """Replace the tensors in nested values.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep.clipping.layer_rules import replaced
    >>> replaced((torch.tensor(1), "word"), [torch.tensor(5)])
    (tensor(5), 'word')
    """
    return _replaced(values, iter(tensors))


def _replaced(values: Any, tensors: Iterator[Tensor]) -> Any:
    if isinstance(values, Tensor):
        return next(tensors)
    if isinstance(values, dict):
        return {name: _replaced(value, tensors) for name, value in values.items()}
    if isinstance(values, tuple | list):
        made = [_replaced(value, tensors) for value in values]
        return type(values)(made) if type(values) in (tuple, list) else type(values)(*made)
    return values


def floats_of(values: Any) -> list[Tensor]:
    """Return all tensors that can have gradients."""
    return [tensor for tensor in tensors_of(values) if tensor.is_floating_point()]


# Floats per vector register, and the size from which a product costs more than some calls.
_LANES = 16
_LARGE = 1 << 17


@dataclass
class Call:
    """One use of a layer: its inputs, and the gradients of its outputs."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: Any
    gradients: Sequence[Tensor]

    @property
    def met(self) -> Tensor:
        """The single input tensor of a layer with a rule."""
        met: Tensor = self.args[0] if self.args else next(iter(self.kwargs.values()))
        return met


# From a layer, its uses, its trained parameters, and its reusable memory.
Rule = Callable[[Any, Sequence[Call], frozenset[str], Room], Gradients]


def linear(_: nn.Linear, calls: Sequence[Call], names: frozenset[str], room: Room) -> Gradients:
    """Return the gradients of a linear layer, for any number of places and uses."""
    if len(calls) == 1 and calls[0].met.ndim == 2:
        return OuterProducts(calls[0].met, calls[0].gradients[0], names)
    # (records, places, width) -> (records, one group, places, width)
    a = [Whole(_places(call.met).unsqueeze(1)) for call in calls]
    g = [_places(call.gradients[0]).transpose(1, 2).unsqueeze(1) for call in calls]
    return _summed(a, g, names, room)


def forward_of(module: Any, rule: Rule | None) -> Callable[..., Any]:
    """Return the fastest forward of a layer: a narrow product is transposed.

    The outputs of a product fill the vector registers of a processor, and fewer outputs than a
    register holds leave the rest idle. A layer whose input needs gradients would have the opposite
    layout, and small products cost less than a call: both are left unchanged.
    """
    own: Callable[..., Any] = module.forward
    if rule is not linear or module.out_features >= _LANES or "forward" in vars(module):
        return own

    def narrow(*args: Any, **kwargs: Any) -> Any:
        (met,) = (*args, *kwargs.values())
        if met.ndim != 2 or met.requires_grad or met.numel() < _LARGE or module.bias is None:
            return own(met)
        return torch.addmm(module.bias.unsqueeze(1), module.weight, met.T).T.contiguous()

    return narrow


def _places(rows: Tensor) -> Tensor:
    return rows[:, None] if rows.ndim == 2 else rows.flatten(1, -2)


def _summed(
    a: Sequence[Factor], g: Sequence[Tensor], names: frozenset[str], room: Room
) -> Gradients:
    """Return the gradients of a layer from the inputs and output gradients of each use."""
    if len(a) == 1:
        return SummedProducts(a[0], g[0], names, room)
    return SummedProducts(Several(a), torch.cat(list(g), 3), names, room)


def convolution(module: Any, calls: Sequence[Call], names: frozenset[str], room: Room) -> Gradients:
    """Return the gradients of a convolution in one or two dimensions; each patch is a place."""
    patches = [Patches.of(module, call, room) for call in calls]
    back = [call.gradients[0].flatten(2).unflatten(1, (module.groups, -1)) for call in calls]
    return _summed(patches, back, names, room)


@dataclass(frozen=True)
class Patches:
    """The inputs of a convolution's kernel at every place, extracted from images on demand.

    Channels come last, so that a patch is a few contiguous runs: copying single numbers would
    cost as much as the product of patches.
    """

    images: Tensor  # (records, channels, rows, columns)
    groups: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    places: tuple[int, int]
    room: Room

    @classmethod
    def of(cls, module: Any, call: Call, room: Room) -> Patches:
        """Return the patches of one use of a layer."""
        settings = [module.kernel_size, module.stride, module.dilation, module.padding]
        images = call.met
        places: Any = tuple(call.gradients[0].shape[2:])
        if images.ndim == 3:  # treat one dimension as two, one of length 1
            images, places = images[:, :, None], (1, *places)
            flat = (1, 1, 1, 0)
            settings = [(one, *of) for one, of in zip(flat, settings, strict=True)]
        kernel, stride, dilation, padding = settings
        return cls(images, module.groups, kernel, stride, dilation, padding, places, room)

    @property
    def shape(self) -> tuple[int, ...]:
        """Records, groups, places, kernel times channels."""
        n, channels = self.images.shape[:2]
        inputs = channels // self.groups * math.prod(self.kernel)
        return (n, self.groups, math.prod(self.places), inputs)

    def rows(self, some: slice) -> Tensor:
        """Return the patches of a block of images."""
        images = self._channels_last(self.images[some])
        of_record, of_row, of_column, _ = images.stride()
        n, channels = len(images), images.shape[3] // self.groups
        windows = images.as_strided(
            (n, self.groups, *self.places, *self.kernel, channels),
            (
                of_record,
                channels,
                of_row * self.stride[0],
                of_column * self.stride[1],
                of_row * self.dilation[0],
                of_column * self.dilation[1],
                1,
            ),
        )
        patches = self.room.of("patches", *windows.shape).copy_(windows)
        return patches.view(n, *self.shape[1:])

    def _channels_last(self, images: Tensor) -> Tensor:
        """Return a block of images, padded, with channels last."""
        n, channels, rows, columns = images.shape
        high, wide = self.padding
        made = self.room.of("images", n, rows + 2 * high, columns + 2 * wide, channels)
        if high or wide:
            made.zero_()
        made[:, high : high + rows, wide : wide + columns] = images.movedim(1, 3)
        return made

    def most(self) -> Tensor:
        """Return the squares of all pixels, each times the number of patches that can contain it.

        Along a side: min(kernel, places) patches, or kernel / stride if no pixel is skipped.
        """
        times = 1
        for kernel, stride, dilation, places in zip(
            self.kernel, self.stride, self.dilation, self.places, strict=True
        ):
            times *= min(places, -(-kernel // stride) if dilation == 1 else kernel)
        grouped = self.images.unflatten(1, (self.groups, -1)).flatten(2)
        return torch.linalg.vector_norm(grouped, dim=2).square_().mul_(times)

    def as_weight(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Return the gradient with channels before the kernel."""
        return gradient.view(len(weight), *self.kernel, -1).movedim(3, 1).reshape_as(weight)


def _scales(
    normal: Callable[[Any, Tensor], Tensor], over: Callable[[Any, Tensor], tuple[int, ...]]
) -> Rule:
    """Return the rule of a layer that scales and shifts its normalised input."""

    def rule(module: Any, calls: Sequence[Call], names: frozenset[str], _: Room) -> Gradients:
        each: dict[str, Tensor] = {}
        for call in calls:
            g = call.gradients[0]
            places = over(module, g)
            found = {"bias": g}
            if "weight" in names:
                found["weight"] = g * normal(module, call.met)
            for name in names:
                summed = found[name].sum(places) if places else found[name]
                each[name] = each[name] + summed if name in each else summed
        return Written(each)

    return rule


def _after_channels(_: Any, g: Tensor) -> tuple[int, ...]:
    return tuple(range(2, g.ndim))


def _before_shape(module: nn.LayerNorm, g: Tensor) -> tuple[int, ...]:
    return tuple(range(1, g.ndim - len(module.normalized_shape)))


def _by_layer(module: nn.LayerNorm, x: Tensor) -> Tensor:
    return functional.layer_norm(x, module.normalized_shape, eps=module.eps)


def _by_group(module: nn.GroupNorm, x: Tensor) -> Tensor:
    return functional.group_norm(x, module.num_groups, eps=module.eps)


def _by_instance(module: Any, x: Tensor) -> Tensor:
    return functional.instance_norm(x, eps=module.eps)


def embedding(
    module: nn.Embedding, calls: Sequence[Call], _names: frozenset[str], _room: Room
) -> Gradients:
    """Return the gradients of an embedding, without rows of padding."""
    ids = torch.cat(
        [call.met.flatten(1) if call.met.ndim > 1 else call.met[:, None] for call in calls], 1
    )
    g = torch.cat([_places(call.gradients[0]) for call in calls], 1)
    if module.padding_idx is not None:
        g = g.masked_fill((ids == module.padding_idx)[:, :, None], 0.0)
    return Rows(ids, g)


RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: linear,
    nn.Conv1d: convolution,
    nn.Conv2d: convolution,
    nn.GroupNorm: _scales(_by_group, _after_channels),
    nn.LayerNorm: _scales(_by_layer, _before_shape),
    nn.InstanceNorm1d: _scales(_by_instance, _after_channels),
    nn.InstanceNorm2d: _scales(_by_instance, _after_channels),
    nn.InstanceNorm3d: _scales(_by_instance, _after_channels),
    nn.Embedding: embedding,
}


def rule_of(module: nn.Module) -> Rule | None:
    """Return the rule of a layer; None if its gradients need `any_layer`.

    A subclass uses the rule of the class whose ``forward`` it has.
    """
    names = {name for name, _ in module.named_parameters(recurse=False)}
    if not names <= {"weight", "bias"} or any(True for _ in module.children()):
        return None  # weights computed from others, for instance by weight_norm
    if getattr(module, "padding_mode", "zeros") != "zeros" or isinstance(
        getattr(module, "padding", 0), str
    ):
        return None
    found = (rule for cls, rule in RULES.items() if isinstance(module, cls))
    same = (cls for cls in RULES if isinstance(module, cls) and type(module).forward is cls.forward)
    return next(found, None) if next(same, None) is not None else None


# For each input and output tensor of a layer: the dimension of records.
Dimensions = tuple[int | None, ...]


def any_layer(
    module: nn.Module,
    calls: Sequence[Call],
    names: frozenset[str],
    dimensions: Sequence[tuple[Dimensions, Dimensions]],
) -> Written:
    """Return the gradients of all parameters of a module, materialised.

    ``dimensions`` gives, for each call, the dimension of records in its inputs and
    outputs.
    """
    each: dict[str, Tensor] = {}
    own = dict(module.named_parameters())
    trained = {name: own[name].detach() for name in names}
    for met, (dims, returned) in zip(calls, dimensions, strict=True):
        call, given = _with_state(module, met, dims)
        for name, found in _of_call(module, call, trained, given, returned).items():
            each[name] = each[name] + found if name in each else found
    return Written(each)


def _with_state(module: nn.Module, call: Call, given: Dimensions) -> tuple[Call, Dimensions]:
    """Return the call of a recurrent cell with its initial zeros, one row per record.

    Zeros made inside the cell are shared by all records, and vmap cannot add to them.
    """
    if not isinstance(module, nn.RNNCellBase) or len(given) > 1:
        return call, given
    zeros = call.met.new_zeros(len(call.met), module.hidden_size)
    state = (zeros, zeros) if isinstance(module, nn.LSTMCell) else zeros
    args = (call.met, state)
    return replace(call, args=args, kwargs={}), tuple(0 for _ in tensors_of(args))


def _of_call(
    module: nn.Module,
    call: Call,
    trained: dict[str, Tensor],
    given: Dimensions,
    returned: Dimensions,
) -> dict[str, Tensor]:
    met = [tensor.detach() for tensor in tensors_of((call.args, call.kwargs))]

    def of_one(inputs: list[Tensor], gradients: list[Tensor]) -> dict[str, Tensor]:
        def outputs(parameters: dict[str, Tensor]) -> list[Tensor]:
            alone = [
                tensor if dim is None else tensor.unsqueeze(dim)
                for tensor, dim in zip(inputs, given, strict=True)
            ]
            args, kwargs = replaced((call.args, call.kwargs), alone)
            made: Any = functional_call(module, parameters, args, kwargs)
            return floats_of(made)

        back = [g.unsqueeze(dim or 0) for g, dim in zip(gradients, returned, strict=True)]
        _, pull = vjp(outputs, trained)
        (found,) = pull(back)
        return dict(found)

    # Fused attention and some others have no batching rule; their slowness needs no warning.
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        result: dict[str, Tensor] = vmap(
            of_one, in_dims=(list(given), list(returned)), randomness="different"
        )(met, call.gradients)
    return result
