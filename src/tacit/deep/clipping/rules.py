"""Layers whose gradients are known products of what they met and what came back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tacit.deep.clipping.gradients import (
    Gradients,
    OuterProducts,
    Rows,
    SummedProducts,
    Whole,
    Written,
)


@dataclass
class Call:
    """One use of a layer: what it was given, and what its outputs do to the loss."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: Any
    gradients: list[Tensor]

    @property
    def met(self) -> Tensor:
        """The one tensor that a layer with a rule is given."""
        given = [*self.args, *self.kwargs.values()]
        met: Tensor = given[0]
        return met


Rule = Callable[[Any, Sequence[Call], frozenset[str]], Gradients]


def linear(_: nn.Linear, calls: Sequence[Call], names: frozenset[str]) -> Gradients:
    """Return the gradients of a linear layer, of any number of places and uses."""
    if len(calls) == 1 and calls[0].met.ndim == 2:
        return OuterProducts(calls[0].met, calls[0].gradients[0], names)
    # (records, places, width) -> (records, one group, width, places)
    a = torch.cat([_places(call.met) for call in calls], 1).transpose(1, 2)[:, None]
    g = torch.cat([_places(call.gradients[0]) for call in calls], 1).transpose(1, 2)[:, None]
    return SummedProducts(Whole(a), g, names)


def _places(rows: Tensor) -> Tensor:
    return rows[:, None] if rows.ndim == 2 else rows.flatten(1, -2)


def convolution(module: Any, calls: Sequence[Call], names: frozenset[str]) -> Gradients:
    """Return the gradients of a convolution in one or two dimensions: patches, each a place."""
    patches = [Patches.of(module, call.met, call.gradients[0].shape) for call in calls]
    back = [call.gradients[0].flatten(2).unflatten(1, (module.groups, -1)) for call in calls]
    if len(calls) == 1:
        return SummedProducts(patches[0], back[0], names)
    a = torch.cat([patch.rows(slice(None)) for patch in patches], 3)
    return SummedProducts(Whole(a), torch.cat(back, 3), names)


@dataclass(frozen=True)
class Patches:
    """What a convolution's kernel meets at every place, made of images when it is asked for."""

    images: Tensor  # padded
    groups: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    places: tuple[int, int]

    @classmethod
    def of(cls, module: Any, images: Tensor, returned: Sequence[int]) -> Patches:
        """Return the patches of a layer that returned a tensor of this shape."""
        settings = [module.kernel_size, module.stride, module.dilation, module.padding]
        places: Any = tuple(returned[2:])
        if images.ndim == 3:  # one dimension is two of which one is flat
            images, places = images[:, :, None], (1, *places)
            flat = (1, 1, 1, 0)
            settings = [(one, *of) for one, of in zip(flat, settings, strict=True)]
        kernel, stride, dilation, (high, wide) = settings
        padded = functional.pad(images, (wide, wide, high, high)) if high or wide else images
        return cls(padded.contiguous(), module.groups, kernel, stride, dilation, places)

    @property
    def shape(self) -> tuple[int, ...]:
        """Records, groups, channels times kernel, places."""
        inputs = self.images.shape[1] // self.groups * self.kernel[0] * self.kernel[1]
        return (len(self.images), self.groups, inputs, self.places[0] * self.places[1])

    def rows(self, some: slice) -> Tensor:
        """Return the patches of some images, copied once."""
        images = self.images[some]
        of_record, of_channel, of_row, of_column = images.stride()
        steps = (of_row * self.dilation[0], of_column * self.dilation[1])
        strides = (of_row * self.stride[0], of_column * self.stride[1])
        windows = images.as_strided(
            (*images.shape[:2], *self.kernel, *self.places),
            (of_record, of_channel, *steps, *strides),
        )
        return windows.reshape(len(images), *self.shape[1:])

    def most(self) -> Tensor:
        """Return the squares of all pixels, each as often as it can be met.

        Along a side by min(kernel, places) patches, by kernel / stride where no pixel is skipped.
        """
        times = 1
        for kernel, stride, dilation, places in zip(
            self.kernel, self.stride, self.dilation, self.places, strict=True
        ):
            times *= min(places, -(-kernel // stride) if dilation == 1 else kernel)
        grouped = self.images.unflatten(1, (self.groups, -1)).flatten(3)
        return torch.linalg.vector_norm(grouped, dim=(2, 3)).square_().mul_(times)


def _scales(
    normal: Callable[[Any, Tensor], Tensor], over: Callable[[Any, Tensor], tuple[int, ...]]
) -> Rule:
    """Return the rule of a layer that scales and shifts what it has normalised."""

    def rule(module: Any, calls: Sequence[Call], names: frozenset[str]) -> Gradients:
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


def embedding(module: nn.Embedding, calls: Sequence[Call], _: frozenset[str]) -> Gradients:
    """Return the gradients of an embedding, rows of padding left out."""
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
    """Return the rule of a layer; None where its gradients are found by `any_layer`.

    A subclass goes by the rule of the class whose ``forward`` it has.
    """
    names = {name for name, _ in module.named_parameters(recurse=False)}
    if not names <= {"weight", "bias"} or any(True for _ in module.children()):
        return None  # weights that are made of others, say by weight_norm
    if getattr(module, "padding_mode", "zeros") != "zeros" or isinstance(
        getattr(module, "padding", 0), str
    ):
        return None
    found = (rule for cls, rule in RULES.items() if isinstance(module, cls))
    same = (cls for cls in RULES if isinstance(module, cls) and type(module).forward is cls.forward)
    return next(found, None) if next(same, None) is not None else None
