"""Compute per-record gradients of a layer: products for common layers, vmap for any other.

The forward pass gives the inputs of a layer (``a``), one backward pass the gradients of its
outputs (``g``). A record's gradient is a product of the two; its norm and the weighted sum over
records are computed without materialising most gradients.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

# If terms cancel, float32 may compute too small a norm. A materialised gradient errs by less than
# 2^-21 of ||a|| ||g||, its square from products of places by about 2^-23 of ||a||^2 ||g||^2. With
# these shares of the latter as a floor, a square gives the norm within 2^-10.
_LEAST_WRITTEN = 2.0**-22
_LEAST_PRODUCT = 2.0**-13
# A square below 2^-149 underflows, and with it a number that another factor makes large again.
# These are floors per number of a norm and of a square: the loss is less than 2^-26 of either.
_LEAST_LENGTH, _LEAST_SQUARE = 2.0**-60, 2.0**-110
# Numbers per block if records are processed in blocks.
_CACHED = 1 << 19
# Materialising a gradient costs a pass over memory, which is worth this many products.
_PASS = 8
_ONE = torch.ones(())  # the factor of a bias


class Room:
    """Memory of a layer that is reused between steps, because new pages are slow.

    Examples
    --------
    >>> from tacit.deep.clipping.layer_rules import Room
    >>> room = Room()
    >>> room.of("patches", 2, 3).data_ptr() == room.of("patches", 5).data_ptr()
    True
    """

    def __init__(self) -> None:
        self._cached: dict[str, Tensor] = {}

    def of(self, name: str, *shape: int) -> Tensor:
        """Return uninitialised memory of a shape; equal names share memory."""
        size = math.prod(shape)
        if name not in self._cached or self._cached[name].numel() < size:
            self._cached[name] = torch.empty(size)
        return self._cached[name][:size].view(shape)


class Factor(Protocol):
    """The inputs of a layer: (records, groups, places, inputs), in blocks of records."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    def rows(self, some: slice) -> Tensor:
        """Return the block of some records; valid until the next call."""

    def most(self) -> Tensor:
        """Return, for each record and group, an upper bound on the sum of squares."""

    def as_weight(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Return a gradient of shape (groups, outputs, inputs) in the order of a weight."""


@dataclass(frozen=True)
class Whole:
    """A factor that is in memory."""

    tensor: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.tensor.shape)

    def rows(self, some: slice) -> Tensor:
        """Return a block of it."""
        return self.tensor[some]

    def most(self) -> Tensor:
        """Return the sum of all squares."""
        return _squares(self.tensor)

    def as_weight(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Return the gradient in the weight's shape; the order is unchanged."""
        return gradient.view_as(weight)


@dataclass(frozen=True)
class Several:
    """The inputs of a layer that was used several times: the places of all uses."""

    uses: Sequence[Factor]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape, with the places of all uses."""
        n, groups, _, inputs = self.uses[0].shape
        return (n, groups, sum(use.shape[2] for use in self.uses), inputs)

    def rows(self, some: slice) -> Tensor:
        """Return a block of every use."""
        # Cloned, because all uses share memory.
        return torch.cat([use.rows(some).clone() for use in self.uses], 2)

    def most(self) -> Tensor:
        """Return the sum over uses."""
        return torch.stack([use.most() for use in self.uses]).sum(0)

    def as_weight(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Return the gradient in the order of every use."""
        return self.uses[0].as_weight(gradient, weight)


class Gradients(Protocol):
    """One gradient for each record of a batch."""

    def lengths(self) -> Tensor:
        """Return the norm of each gradient."""

    def put_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Write the weighted sum into its views, parameter by parameter."""


@dataclass
class OuterProducts:
    """Gradients of a linear layer used once: g a' for a weight, g for a bias.

    ||g a'|| = ||g|| ||a||
    """

    a: Tensor  # (records, inputs)
    g: Tensor  # (records, outputs)
    names: frozenset[str]

    def lengths(self) -> Tensor:
        """Return ||g|| (||a||^2 + 1)^(1/2); each term only if its parameter is trained."""
        of_outputs = _row_lengths(self.g)
        if "weight" not in self.names:
            return of_outputs
        of_inputs = _row_lengths(self.a)
        if "bias" in self.names:
            of_inputs = torch.hypot(of_inputs, _ONE)
        return of_inputs.mul_(of_outputs)

    def put_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Write (w g)' a, one product for all records."""
        g = self.g.T
        if "weight" in self.names:
            torch.mm(g * weights, self.a, out=into["weight"])
        if "bias" in self.names:
            torch.mv(g, weights, out=into["bias"])


@dataclass
class SummedProducts:
    """Gradients that are sums of g_t a_t' over places t: convolutions, sequences.

    Groups of channels are a separate dimension. Either the gradients are materialised, or their
    squares are computed from products of places, whichever is cheaper:

        ||sum_t g_t a_t'||^2 = sum_{s,t} <a_s, a_t> <g_s, g_t>
    """

    a: Factor  # (records, groups, places, inputs)
    g: Tensor  # (records, groups, outputs, places)
    names: frozenset[str]
    room: Room
    _written: Tensor | None = field(default=None, init=False)

    @property
    def writes(self) -> bool:
        """Whether gradients are materialised."""
        _, _, places, inputs = self.a.shape
        outputs = self.g.shape[2]
        cheaper: bool = 2 * _PASS * inputs * outputs < places**2 * (inputs + outputs)
        return cheaper

    def lengths(self) -> Tensor:
        """Return the norms, with a floor for cancellation."""
        square = self.g.new_zeros(len(self.g))
        if "weight" in self.names:
            square = square + (self._of_written() if self.writes else self._of_products())
        if "bias" in self.names:
            square = square + torch.linalg.vector_norm(self._of_bias, dim=1).square_()
        return square.sqrt_()

    @cached_property
    def _of_bias(self) -> Tensor:
        """Every record's gradient of the bias: g summed over places."""
        return self.g.sum(3).flatten(1)

    def _of_written(self) -> Tensor:
        """Materialise gradients in blocks of records that fit in the cache."""
        n, groups, places, inputs = self.a.shape
        self._written = self.room.of("written", n, groups, self.g.shape[2], inputs)
        lengths, some = self.g.new_empty(n), max(1, _CACHED // (groups * inputs * places))
        for start in range(0, n, some):
            rows = slice(start, start + some)
            written = self._written[rows]
            torch.matmul(self.g[rows], self.a.rows(rows), out=written)
            torch.linalg.vector_norm(written.flatten(1), dim=1, out=lengths[rows])
        return torch.maximum(lengths.square_(), self._greatest().mul_(_LEAST_WRITTEN))

    def _of_products(self) -> Tensor:
        a, g = self.a.rows(slice(None)), self.g
        products = torch.matmul(a, a.transpose(2, 3)) * torch.matmul(g.transpose(2, 3), g)
        return torch.maximum(products.sum((1, 2, 3)), self._greatest().mul_(_LEAST_PRODUCT))

    def _greatest(self) -> Tensor:
        """Return ||a||^2 ||g||^2 of every record and group, an upper bound on each square."""
        _, _, places, inputs = self.a.shape
        of_inputs = self.a.most().clamp_(min=_LEAST_SQUARE * places * inputs)
        of_outputs = _squares(self.g).clamp_(min=_LEAST_SQUARE * places * self.g.shape[2])
        return of_inputs.mul_(of_outputs).sum(1)

    def put_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Write the weighted sum of materialised gradients, or one product per group."""
        if "weight" in self.names:
            summed = self._weighted(weights)
            into["weight"].copy_(self.a.as_weight(summed, into["weight"]))
        if "bias" in self.names:
            torch.mv(self._of_bias.T, weights, out=into["bias"])

    def _weighted(self, weights: Tensor) -> Tensor:
        """Return the weighted sum of a weight's gradients: (groups, outputs, inputs)."""
        if self._written is not None:
            summed = torch.mv(self._written.flatten(1).T, weights)
            return summed.view(self._written.shape[1:])
        weighted = (self.g * weights[:, None, None, None]).permute(1, 2, 0, 3).flatten(2)
        a = self.a.rows(slice(None)).transpose(0, 1).flatten(1, 2)
        return torch.bmm(weighted, a)


def _row_lengths(rows: Tensor) -> Tensor:
    """Return the norm of each row, with a floor for underflow."""
    least = _LEAST_LENGTH * math.sqrt(rows.shape[1])
    return torch.linalg.vector_norm(rows, dim=1).clamp_(min=least)


def _squares(of_groups: Tensor) -> Tensor:
    return torch.linalg.vector_norm(of_groups, dim=(2, 3)).square_()


@dataclass
class Rows:
    """Gradients of an embedding: g_t is added to the row that place t names.

    ||.||^2 = sum over places s, t that name the same row of <g_s, g_t>
    """

    ids: Tensor  # (records, places)
    g: Tensor  # (records, places, width); zero for ignored places

    def lengths(self) -> Tensor:
        """Return the norms, with a floor for cancellation."""
        same = self.ids[:, :, None] == self.ids[:, None, :]
        square = (torch.matmul(self.g, self.g.transpose(1, 2)) * same).sum((1, 2))
        whole = torch.linalg.vector_norm(self.g, dim=(1, 2)).square()
        return torch.maximum(square, _LEAST_PRODUCT * self.ids.shape[1] * whole).sqrt_()

    def put_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Add w g_t to the named rows."""
        weighted = (self.g * weights[:, None, None]).flatten(0, 1)
        into["weight"].zero_().index_add_(0, self.ids.flatten(), weighted)


@dataclass
class Written:
    """Materialised gradients, one tensor for each parameter."""

    each: dict[str, Tensor]

    def lengths(self) -> Tensor:
        """Return the norms over all parameters together."""
        parts = [torch.linalg.vector_norm(g.flatten(1), dim=1).square() for g in self.each.values()]
        return torch.stack(parts).sum(0).sqrt_()

    def put_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Write the weighted sums."""
        for name, gradient in self.each.items():
            torch.mv(gradient.flatten(1).T, weights, out=into[name].view(-1))


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
