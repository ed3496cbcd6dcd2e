"""Record the inputs and outputs of every layer in one forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from tacit.deep.clipping.layer_rules import Call, forward_of, replaced, tensors_of
from tacit.deep.clipping.layers import CannotClip, Layer


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
