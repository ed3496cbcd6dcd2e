"""Find the layers of a model for per-record gradients; replace batch normalisation."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from tacit.deep.clipping.layer_rules import Room, Rule, rule_of

_DROPOUT = (
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
)


class CannotClip(ValueError):
    """A model has a layer that mixes the contributions of records."""


class DependsOnRecords(CannotClip):
    """The model treats a batch differently from made-up records.

    The probe accepted the model, so some record is the cause: it adds zeros.
    """


@dataclass(frozen=True, eq=False)
class Layer:
    """A module whose forward pass is recorded, and its trained parameters."""

    name: str
    module: nn.Module
    trained: tuple[tuple[str, nn.Parameter], ...]
    rule: Rule | None
    room: Room

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the trained parameters in the module."""
        return frozenset(name for name, _ in self.trained)


def layers_of(model: nn.Module) -> list[Layer]:
    """Return every layer with trained parameters; refuse layers that mix records.

    Examples
    --------
    >>> from torch import nn
    >>> from tacit.deep.clipping.layers import layers_of
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    >>> [layer.name for layer in layers_of(model)]
    ['0', '2']
    """
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if is_lazy(tensor):
            raise CannotClip(
                f"{name!r} has no shape yet: the model makes it on its first records. "
                "Call the model once on made-up records before."
            )
    for name, module in model.named_modules():
        _refuse_mixing(name, module)
    for name, parameter in model.named_parameters():
        if parameter.device.type != "cpu" or parameter.dtype is not torch.float32:
            raise CannotClip(
                f"parameter {name!r} is of type {parameter.dtype} on {parameter.device}; noise is "
                "drawn and sums are kept on the CPU: use model.float().cpu()."
            )
    # A shared module is one layer, used several times.
    layers = list({id(layer.module): layer for layer in _found("", model)}.values())
    if not layers:
        raise CannotClip(
            "the model has no parameter with requires_grad=True, so there is nothing to train; "
            "thaw some with parameter.requires_grad_(True)."
        )
    return layers


def parts_of(layers: list[Layer]) -> list[list[Layer]]:
    """Group layers that share a parameter; others are alone."""
    groups: list[list[Layer]] = []
    for layer in layers:
        own = {id(parameter) for _, parameter in layer.trained}
        meeting = [
            group
            for group in groups
            if any(id(p) in own for other in group for _, p in other.trained)
        ]
        groups = [group for group in groups if group not in meeting]
        groups.append([*(other for group in meeting for other in group), layer])
    return groups


def _found(name: str, module: nn.Module) -> Iterator[Layer]:
    own = [p for p in module.parameters(recurse=False) if p.requires_grad]
    if not own:
        for child, sub in module.named_children():
            yield from _found(f"{name}.{child}" if name else child, sub)
        return
    rule = rule_of(module)
    trained = tuple((n, p) for n, p in module.named_parameters() if p.requires_grad)
    if rule is None and _draws(module):
        raise CannotClip(
            f"layer {name or type(module).__name__!r} ({type(module).__name__}) drops values at "
            "random inside, and its gradients are computed in a second pass that would drop "
            "others; set its dropout to 0 and put nn.Dropout before or after it."
        )
    yield Layer(name, module, trained, rule, Room())


def _draws(module: nn.Module) -> bool:
    if any(isinstance(sub, _DROPOUT) and sub.p > 0 for sub in module.modules()):
        return True
    return any(
        isinstance(sub, nn.MultiheadAttention | nn.RNNBase) and sub.dropout > 0
        for sub in module.modules()
    )


def _refuse_mixing(name: str, module: nn.Module) -> None:
    where = f"layer {name or type(module).__name__!r} ({type(module).__name__})"
    if isinstance(module, BATCH_NORM):
        raise CannotClip(
            f"{where} normalises each record by the others of its batch, so records have no "
            "gradients of their own; convert the model with tacit.deep.without_batch_norm(model), "
            "which replaces it by GroupNorm."
        )
    if getattr(module, "track_running_stats", False):
        raise CannotClip(
            f"{where} stores averages of records, which would be released without noise; make "
            "it with track_running_stats=False."
        )
    if isinstance(module, nn.Embedding | nn.EmbeddingBag):
        if module.max_norm is not None:
            raise CannotClip(f"{where} changes weights that records name; leave max_norm out.")
        if module.scale_grad_by_freq:
            raise CannotClip(
                f"{where} divides gradients by how often a batch names a row; leave "
                "scale_grad_by_freq out."
            )


BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_MOST_GROUPS = 32
_LEAST_CHANNELS = 4  # per group: a single value would be normalised to zero


def without_batch_norm(model: nn.Module, *, most_groups: int = _MOST_GROUPS) -> nn.Module:
    """Return a copy of a model with GroupNorm in place of batch normalisation.

    Batch normalisation ties every record to the others of its batch; group normalisation uses
    one record alone. The copy has the scales and shifts, but not the running averages.

    Parameters
    ----------
    model
        Any module; it is unchanged.
    most_groups
        The largest number of groups of channels; their number divides the channels.

    Examples
    --------
    >>> from torch import nn
    >>> from tacit.deep import without_batch_norm
    >>> without_batch_norm(nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8)))[1].num_groups
    2
    """
    if isinstance(model, BATCH_NORM):
        return _group_norm(model, most_groups)
    copied = copy.deepcopy(model)
    for module in list(copied.modules()):
        for name, child in module.named_children():
            if isinstance(child, BATCH_NORM):
                setattr(module, name, _group_norm(child, most_groups))
    return copied


def _group_norm(norm: Any, most_groups: int) -> nn.GroupNorm:
    channels = norm.num_features
    most = max(1, min(most_groups, channels // _LEAST_CHANNELS))
    groups = max(d for d in range(1, most + 1) if channels % d == 0)
    made = nn.GroupNorm(groups, norm.num_features, eps=norm.eps, affine=norm.affine)
    if norm.affine:
        made.load_state_dict({"weight": norm.weight.detach(), "bias": norm.bias.detach()})
    return made
