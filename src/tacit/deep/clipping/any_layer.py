"""Gradients of a layer without a rule: one record at a time, all of them at once by vmap."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from tacit.deep.clipping.gradients import Written
from tacit.deep.clipping.rules import Call
from tacit.deep.clipping.tensors import floats_of, replaced, tensors_of

# For each tensor a layer is given and returns: which of its dimensions is that of records.
Dimensions = tuple[int | None, ...]


def any_layer(
    module: nn.Module,
    calls: Sequence[Call],
    names: frozenset[str],
    dimensions: Sequence[tuple[Dimensions, Dimensions]],
) -> Written:
    """Return the gradients of all parameters of a module, written down.

    ``dimensions`` tells, for each call, where records are in what it was given and in what it
    returned.
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
    """Return the call of a recurrent cell with the zeros that it starts from, one row a record.

    Made inside, they are the same for all records, and vmap cannot add to them.
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

    # Fused attention and some others have no batching rule: what is slow is not worth a warning.
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        result: dict[str, Tensor] = vmap(
            of_one, in_dims=(list(given), list(returned)), randomness="different"
        )(met, call.gradients)
    return result
