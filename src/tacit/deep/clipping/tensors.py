"""Tensors inside the tuples, lists and dictionaries that layers are given and return."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor


def tensors_of(values: Any) -> list[Tensor]:
    """Return every tensor, in order.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep.clipping.tensors import tensors_of
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
    """Return the same values with other tensors in their places.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep.clipping.tensors import replaced
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
    """Return every tensor that a gradient can go through."""
    return [tensor for tensor in tensors_of(values) if tensor.is_floating_point()]
