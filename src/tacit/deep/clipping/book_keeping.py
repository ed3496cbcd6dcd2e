"""Sum clipped gradients for the cost of an ordinary step, by book-keeping.

One forward pass and one backward pass to the outputs of the layers give the norm of every
record's gradient; one weighted product per layer gives the sum (docs/proofs/networks.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from tacit.deep.clipping.clip import Clip, lengths_of
from tacit.deep.clipping.layer_rules import (
    Call,
    Dimensions,
    Gradients,
    Written,
    any_layer,
    floats_of,
    forward_of,
    replaced,
    tensors_of,
)
from tacit.deep.clipping.layers import CannotClip, DependsOnRecords, Layer, layers_of, parts_of
from tacit.deep.clipping.model_state import ModelState
from tacit.deep.clipping.randomness import (
    Keys,
    RecordMasks,
    blank_keys,
    no_other_draws,
    record_keys,
)


@dataclass
class Use:
    """One recorded use of a layer."""

    layer: Layer
    call: Call  # its gradients are set after the backward pass
    edges: list[GradientEdge]  # of the floating-point outputs
    given: list[Tensor]
    versions: list[int]

    def check_untouched(self) -> None:
        """Refuse inputs that were changed in place after the layer had read them."""
        if [tensor._version for tensor in self.given] != self.versions:
            raise CannotClip(
                f"the input of layer {self.layer.name!r} is changed in place later, so "
                "its gradient is lost; write x = x + y instead of x += y, and inplace=False."
            )


@dataclass
class Watch:
    """The uses of all layers in one forward pass."""

    uses: list[Use] = field(default_factory=list)
    copies: bool = False  # whether in-place changes are possible

    def see(self, layer: Layer, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> Any:
        """Record one use, and return its outputs as starts of gradients."""
        if isinstance(outputs, Tensor) and outputs.is_floating_point() and not self.copies:
            outputs = self._starting(outputs)
            self._note(layer, args, kwargs, outputs, [get_gradient_edge(outputs)])
            return outputs
        made = tensors_of(outputs)
        if len(made) > 1:
            # One output may be computed from another; views separate their gradients.
            made = [tensor.view_as(tensor) for tensor in made]
        seen = [self._starting(tensor) for tensor in made]
        edges = [get_gradient_edge(tensor) for tensor in seen if tensor.is_floating_point()]
        outputs = replaced(outputs, seen)
        self._note(layer, args, kwargs, outputs, edges)
        if not self.copies:
            return outputs
        return replaced(outputs, [tensor.clone() for tensor in seen])

    def _note(
        self,
        layer: Layer,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        outputs: Any,
        edges: list[GradientEdge],
    ) -> None:
        given = tensors_of((args, kwargs) if kwargs else args)
        versions = [tensor._version for tensor in given]
        call = Call(args, kwargs, outputs, ())
        self.uses.append(Use(layer, call, edges, given, versions))

    def _starting(self, tensor: Tensor) -> Tensor:
        if tensor.requires_grad or not tensor.is_floating_point():
            return tensor
        return tensor.detach().requires_grad_()


class Watcher:
    """Record the layers of a model, one forward pass at a time.

    A layer's ``forward`` is replaced during the pass and restored afterwards.
    """

    def __init__(self, model: nn.Module, layers: Sequence[Layer]) -> None:
        self._trained = [p for p in model.parameters() if p.requires_grad]
        self._copies = any(getattr(module, "inplace", False) for module in model.modules())
        self._watch = Watch()
        self._watched = [(vars(layer.module), self._noting(layer)) for layer in layers]

    @contextmanager
    def watching(self) -> Iterator[Watch]:
        """Record one pass; the model's parameters are frozen meanwhile."""
        self._watch = watch = Watch(copies=self._copies)
        own = [names.get("forward") for names, _ in self._watched]
        try:
            for names, noting in self._watched:
                names["forward"] = noting
            for parameter in self._trained:
                parameter.requires_grad = False
            with torch.enable_grad():
                yield watch
        finally:
            for (names, _), forward in zip(self._watched, own, strict=True):
                if forward is None:
                    del names["forward"]
                else:
                    names["forward"] = forward
            for parameter in self._trained:
                parameter.requires_grad = True

    def _noting(self, layer: Layer) -> Callable[..., Any]:
        forward = forward_of(layer.module, layer.rule)

        def noting(*args: Any, **kwargs: Any) -> Any:
            return self._watch.see(layer, args, kwargs, forward(*args, **kwargs))

        return noting


Loss = Callable[[Any, Tensor], Tensor]
# The dimension of records in the inputs and in the outputs of a layer.
Where = tuple[Dimensions, Dimensions]
_IN_ROWS: Where = ((0,), (0,))
# A longer gradient counts as not finite: its clipping factor would be rounded.
_LONGEST = 2.0**63
# A C library returns large freed blocks to the system, and new pages cost more than the
# computation on them. The usual one caches blocks up to the size of one that has been freed.
_CACHED_BYTES = 31 << 20


@dataclass(frozen=True)
class Sums:
    """A sum of clipped gradients over some records, and the norm of each."""

    value: Tensor  # one number for each trained parameter, float64
    norms: Tensor  # of each part and valid record

    def total(self) -> npt.NDArray[np.float64]:
        """Return the sum."""
        return np.asarray(self.value.numpy())

    def lengths(self) -> npt.NDArray[np.float64]:
        """Return the gradient norm of each record."""
        return np.asarray(lengths_of(self.norms).double().numpy())


def added(parts: list[Sums]) -> Sums:
    """Add several sums, without a copy of each."""
    first, *others = parts
    if not others:
        return first
    for other in others:
        first.value.add_(other.value)
    return Sums(first.value, torch.cat([part.norms for part in parts], 1))


class BookKeeper:
    """Compute sums of clipped gradients of one model.

    Parameters
    ----------
    model
        The network. Records are its inputs' first dimension.
    loss
        Returns one loss per record, from outputs and targets.
    dimensions
        The dimension of records in the inputs and outputs of each use of a layer without a rule, as
        `tacit.deep.clipping.mixing_check` finds it; by default the first dimension of every tensor.
    micro_batch
        The default number of records per pass.
    dropouts
        The dimension of records in the input of each dropout of a forward pass, from the probe.

    Notes
    -----
    **Guarantee**. The sum is of one vector a record, a function of that record, its key and the
    weights alone and no longer than ``clip.max_grad_norm``; a record whose gradient is not finite
    adds zeros, and so does one with which the model or the loss raises any exception. Random
    numbers from torch's generator that do not follow from keys raise `CannotClip`, and so does,
    inside of `unchanged`, a buffer or a parameter that changes.

    **Assumes** that the model treats records apart, which `probe` tries; that whether it raises
    depends on a record alone, and not on the rest of its batch; and that float32 sums are within
    2^-10 of ``clip.max_grad_norm`` of the truth.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        dimensions: tuple[Where, ...] | None = None,
        micro_batch: int = 256,
        dropouts: tuple[int, ...] = (),
    ) -> None:
        self.micro_batch = micro_batch
        self._dropouts = dropouts
        self.state = ModelState(model)
        self.model, self.loss = model, loss
        self._layers = layers_of(model)
        self._parts = parts_of(self._layers)
        self._watcher = Watcher(model, self._layers)
        self._dimensions = dimensions
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        sizes = [p.numel() for p in self.parameters]
        starts = [0, *accumulate(sizes)]
        self._places = {
            id(p): slice(a, b)
            for p, a, b in zip(self.parameters, starts[:-1], starts[1:], strict=True)
        }
        self.n_parameters = starts[-1]
        # The sum of every micro-batch, and the views of each part's parameters.
        self._buffer = torch.zeros(self.n_parameters)
        self._views = [self._views_of(layers) for layers in self._parts]
        torch.empty(_CACHED_BYTES, dtype=torch.uint8)

    @property
    def n_parts(self) -> int:
        """The number of parts that a per-layer rule clips separately."""
        return len(self._parts)

    def empty(self) -> Sums:
        """Return the sum over no records."""
        zeros = torch.zeros(self.n_parameters, dtype=torch.float64)
        return Sums(zeros, torch.zeros(self.n_parts, 0))

    def sums(
        self,
        x: Tensor,
        y: Tensor,
        clip: Clip,
        micro_batch: int | None = None,
        keys: Keys | None = None,
    ) -> Sums:
        """Return the sum of clipped gradients, one micro-batch at a time.

        Dropout masks are derived from the records' ``keys``; fresh ones by default.
        """
        some, n = micro_batch or self.micro_batch, x.shape[0]
        keys = self._fresh_keys(n) if keys is None else keys
        parts = [slice(start, start + some) for start in range(0, max(n, 1), some)]
        return added([self._tried(x[part], y[part], clip, keys[part]) for part in parts])

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Process the records of a step, and raise if the model stored anything of them."""
        self.state.begin()
        yield
        self.state.check()

    @property
    def has_dropout(self) -> bool:
        """Whether dropout masks are drawn for records."""
        return bool(self._dropouts)

    def _fresh_keys(self, n: int) -> Keys:
        return record_keys(n) if self._dropouts else blank_keys(n)

    def _tried(self, x: Tensor, y: Tensor, clip: Clip, keys: Keys) -> Sums:
        """Return the sum over the records that model and loss accept.

        An exception of the model or the loss is attributed to a record: its message may quote it.
        Keys stay with their records, so that a record's vector is the same in every attempt.
        """
        try:
            return self.strict_sums(x, y, clip, keys)
        except Exception as why:
            if isinstance(why, CannotClip) and not isinstance(why, DependsOnRecords):
                raise
            if len(x) == 1:
                return self.empty()
        half = len(x) // 2
        parts = slice(half), slice(half, None)
        return added([self._tried(x[part], y[part], clip, keys[part]) for part in parts])

    def strict_sums(self, x: Tensor, y: Tensor, clip: Clip, keys: Keys | None = None) -> Sums:
        """Return the sum in one pass, and let exceptions of the model or the loss through."""
        if x.shape[0] == 0:
            return self.empty()
        keys = self._fresh_keys(len(x)) if keys is None else keys
        with no_other_draws():
            uses, found = self._passed(x, y, keys)
            with torch.no_grad():
                gradients = self._gathered(uses, found, x.shape[0])
        with torch.no_grad():
            return self._weighted(x, y, gradients, clip, keys)

    def _weighted(
        self, x: Tensor, y: Tensor, gradients: list[Gradients], clip: Clip, keys: Keys
    ) -> Sums:
        norms = torch.stack([part.lengths() for part in gradients])
        if not float(norms.max()) <= _LONGEST:
            counts = (norms <= _LONGEST).all(0)
            return self.strict_sums(x[counts], y[counts], clip, keys[counts.numpy()])
        factors = clip.factors(norms).unbind()
        for part, weights, into in zip(gradients, factors, self._views, strict=True):
            part.put_weighted(weights, into)
        return Sums(self._buffer.double(), norms)

    def _views_of(self, layers: list[Layer]) -> dict[str, Tensor]:
        """Return, by name, the view for the gradient of each parameter of a part."""
        return {
            _name(layers, layer, name): self._buffer[self._places[id(p)]].view_as(p)
            for layer in layers
            for name, p in layer.trained
        }

    def gradients(self, x: Tensor, y: Tensor) -> list[Gradients]:
        """Return the gradients of all records, part by part."""
        uses, found = self._passed(x, y, self._fresh_keys(len(x)))
        with torch.no_grad():
            return self._gathered(uses, found, len(x))

    def answers(self, x: Tensor, y: Tensor, keys: Keys) -> tuple[Tensor, Tensor]:
        """Return the first output of the model and one loss per record.

        Dropout masks are derived from the records' keys.
        """
        if not self._dropouts:
            outputs = self.model(x)
            return floats_of(outputs)[0], losses_of(self.loss, outputs, y)
        with RecordMasks(keys, self._dropouts) as masks:
            outputs = self.model(x)
            losses = losses_of(self.loss, outputs, y)
        masks.check_all_used()
        return floats_of(outputs)[0], losses

    def _passed(
        self, x: Tensor, y: Tensor, keys: Keys
    ) -> tuple[list[Use], Sequence[Tensor | None]]:
        """Run forward and backward; return the uses of layers, and their output gradients."""
        with self._watcher.watching() as watch:
            _, losses = self.answers(x, y, keys)
            edges = [edge for use in watch.uses for edge in use.edges]
            each = torch.ones_like(losses)
            return watch.uses, torch.autograd.grad(losses, edges, each, allow_unused=True)

    def _gathered(self, uses: list[Use], found: Sequence[Tensor | None], n: int) -> list[Gradients]:
        if self._dimensions is not None and len(uses) != len(self._dimensions):
            raise DependsOnRecords(
                "the layers that the model uses, or how often, depend on the records; let it use "
                "the same ones for every batch."
            )
        met: dict[int, list[tuple[Call, Where]]] = {id(layer): [] for layer in self._layers}
        back = iter(found)
        for number, use in enumerate(uses):
            use.check_untouched()
            use.call.gradients = _known(use, [next(back) for _ in use.edges])
            met[id(use.layer)].append((use.call, self._where(use.call, number)))
        return [self._of_part(layers, met, n) for layers in self._parts]

    def _of_part(
        self, layers: list[Layer], met: dict[int, list[tuple[Call, Where]]], n: int
    ) -> Gradients:
        first = layers[0]
        own = met[id(first)]
        by_rule = len(layers) == 1 and first.rule is not None and len(own) > 0
        if by_rule and all(where == _IN_ROWS for _, where in own):
            assert first.rule is not None
            return first.rule(first.module, [call for call, _ in own], first.names, first.room)
        each: dict[int, Tensor] = {}
        for layer in layers:
            calls, where = zip(*met[id(layer)], strict=True) if met[id(layer)] else ((), ())
            written = any_layer(layer.module, calls, layer.names, where).each
            for name, parameter in layer.trained:
                gradient = written.get(name, parameter.new_zeros(n, *parameter.shape))
                held = each.get(id(parameter))
                each[id(parameter)] = gradient if held is None else held + gradient
        named = (
            (_name(layers, layer, name), id(p)) for layer in layers for name, p in layer.trained
        )
        return Written({name: each.pop(key) for name, key in named if key in each})

    def _where(self, call: Call, number: int) -> Where:
        if self._dimensions is not None:
            return self._dimensions[number]
        given = tuple(0 for _ in tensors_of((call.args, call.kwargs)))
        return given, tuple(0 for _ in call.gradients)


def _known(use: Use, found: list[Tensor | None]) -> list[Tensor]:
    """Return the gradient of each output of a layer: zeros if it was not used."""
    return [
        torch.zeros_like(floats_of(use.call.outputs)[number]) if gradient is None else gradient
        for number, gradient in enumerate(found)
    ]


def losses_of(loss: Loss, outputs: Any, y: Tensor) -> Tensor:
    """Return one loss per record: the mean over its other dimensions."""
    losses = loss(outputs, y)
    if losses.ndim == 0 or losses.shape[0] != y.shape[0]:
        raise DependsOnRecords(
            "the loss must return one number for each record, and it returned one for all of them "
            "or another number of them; pass one with reduction='none'."
        )
    return losses if losses.ndim == 1 else losses.flatten(1).mean(1)


def _name(layers: list[Layer], layer: Layer, name: str) -> str:
    """Return the name of a parameter among those of its part."""
    return name if len(layers) == 1 else f"{layer.name}.{name}"
