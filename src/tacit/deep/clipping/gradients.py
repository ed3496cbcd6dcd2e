"""The gradients of many records with respect to one layer, kept as products where they are.

What a layer's parameters are multiplied with is known from the forward pass (``a``), what its
outputs do to the loss from one backward pass (``g``). A record's gradient is a product of the two;
its length and the weighted sum over records follow without ever writing most gradients down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

# Where terms cancel, floats may read a gradient too short. Written down it errs by less than 2^-21
# of ||a|| ||g||, its square from products of places by about 2^-23 of ||a||^2 ||g||^2. A square
# that counts as no less than these shares of the latter is the length's within 2^-10.
_LEAST_WRITTEN = 2.0**-22
_LEAST_PRODUCT = 2.0**-13
# A square below 2^-149 is lost, and with it a number that another factor makes large again. Per
# number a length counts as no less than this, and a square as no less than that: what is lost is
# less than 2^-26 of either.
_LEAST_LENGTH, _LEAST_SQUARE = 2.0**-60, 2.0**-110
# How many numbers are worked on at once where records are taken some at a time.
_CACHED = 1 << 19
# Writing a gradient down costs a pass over memory, which is worth some products.
_PASS = 8
_ONE = torch.ones(())  # what a bias is multiplied with


class Room:
    """Memory of a layer that is kept between steps: new pages cost more than what fills them.

    Examples
    --------
    >>> from tacit.deep.clipping.gradients import Room
    >>> room = Room()
    >>> room.of("patches", 2, 3).data_ptr() == room.of("patches", 5).data_ptr()
    True
    """

    def __init__(self) -> None:
        self._cached: dict[str, Tensor] = {}

    def of(self, name: str, *shape: int) -> Tensor:
        """Return memory of a shape, with whatever was left in it; the same for the same name."""
        size = math.prod(shape)
        if name not in self._cached or self._cached[name].numel() < size:
            self._cached[name] = torch.empty(size)
        return self._cached[name][:size].view(shape)


class Factor(Protocol):
    """What a layer met: (records, groups, places, inputs), of some records at a time."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    def rows(self, some: slice) -> Tensor:
        """Return what it is for some records, until it is asked for others."""

    def most(self) -> Tensor:
        """Return, for each record and group, no less than the sum of all squares."""

    def as_weight(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Return a gradient of shape (groups, outputs, inputs) in the order of a weight."""


@dataclass(frozen=True)
class Whole:
    """A factor that is there already."""

    tensor: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.tensor.shape)

    def rows(self, some: slice) -> Tensor:
        """Return some of it."""
        return self.tensor[some]

    def most(self) -> Tensor:
        """Return the sum of all squares."""
        return _squares(self.tensor)

    def as_weight(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Return the gradient in the weight's shape; the order is the same."""
        return gradient.view_as(weight)


@dataclass(frozen=True)
class Several:
    """What a layer met that was used several times: all places, one use after another."""

    uses: Sequence[Factor]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape, with the places of all uses."""
        n, groups, _, inputs = self.uses[0].shape
        return (n, groups, sum(use.shape[2] for use in self.uses), inputs)

    def rows(self, some: slice) -> Tensor:
        """Return some of every use."""
        # Cloned: all uses have the same memory.
        return torch.cat([use.rows(some).clone() for use in self.uses], 2)

    def most(self) -> Tensor:
        """Return the sum over uses."""
        return torch.stack([use.most() for use in self.uses]).sum(0)

    def as_weight(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Return the gradient in the order that every use has."""
        return self.uses[0].as_weight(gradient, weight)


class Gradients(Protocol):
    """One gradient for each record of a batch."""

    def lengths(self) -> Tensor:
        """Return how long each one is."""

    def put_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Put the weighted sum in its place, parameter by parameter."""


@dataclass
class OuterProducts:
    """A weight's gradient is g a', a bias's is g: a linear layer met once.

    ||g a'|| = ||g|| ||a||
    """

    a: Tensor  # (records, inputs)
    g: Tensor  # (records, outputs)
    names: frozenset[str]

    def lengths(self) -> Tensor:
        """Return ||g|| (||a||^2 + 1)^(1/2), each term where its parameter is trained."""
        of_outputs = _row_lengths(self.g)
        if "weight" not in self.names:
            return of_outputs
        of_inputs = _row_lengths(self.a)
        if "bias" in self.names:
            of_inputs = torch.hypot(of_inputs, _ONE)
        return of_inputs.mul_(of_outputs)

    def put_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Put (w g)' a, one product for all records."""
        g = self.g.T
        if "weight" in self.names:
            torch.mm(g * weights, self.a, out=into["weight"])
        if "bias" in self.names:
            torch.mv(g, weights, out=into["bias"])


@dataclass
class SummedProducts:
    """A weight's gradient is the sum of g_t a_t' over places t: convolutions, sequences.

    Groups of channels stand beside one another. Either the gradients are written down, or their
    squares come from the products of places, whichever is cheaper:

        ||sum_t g_t a_t'||^2 = sum_{s,t} <a_s, a_t> <g_s, g_t>
    """

    a: Factor  # (records, groups, places, inputs)
    g: Tensor  # (records, groups, outputs, places)
    names: frozenset[str]
    room: Room
    _written: Tensor | None = field(default=None, init=False)

    @property
    def writes(self) -> bool:
        """Whether gradients are written down."""
        _, _, places, inputs = self.a.shape
        outputs = self.g.shape[2]
        cheaper: bool = 2 * _PASS * inputs * outputs < places**2 * (inputs + outputs)
        return cheaper

    def lengths(self) -> Tensor:
        """Return the lengths, none shorter than floats can tell."""
        square = self.g.new_zeros(len(self.g))
        if "weight" in self.names:
            square = square + (self._of_written() if self.writes else self._of_products())
        if "bias" in self.names:
            square = square + torch.linalg.vector_norm(self._of_bias, dim=1).square_()
        return square.sqrt_()

    @cached_property
    def _of_bias(self) -> Tensor:
        """Every record's gradient of the bias: g, its places added up."""
        return self.g.sum(3).flatten(1)

    def _of_written(self) -> Tensor:
        """Write gradients down, some records at a time: what they meet then stays in a cache."""
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
        """Return ||a||^2 ||g||^2 of every record, groups apart: what no square exceeds."""
        _, _, places, inputs = self.a.shape
        of_inputs = self.a.most().clamp_(min=_LEAST_SQUARE * places * inputs)
        of_outputs = _squares(self.g).clamp_(min=_LEAST_SQUARE * places * self.g.shape[2])
        return of_inputs.mul_(of_outputs).sum(1)

    def put_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Put the weighted sum of what is written down, or one product a group."""
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
    """Return how long each row is, none shorter than floats can tell."""
    least = _LEAST_LENGTH * math.sqrt(rows.shape[1])
    return torch.linalg.vector_norm(rows, dim=1).clamp_(min=least)


def _squares(of_groups: Tensor) -> Tensor:
    return torch.linalg.vector_norm(of_groups, dim=(2, 3)).square_()


@dataclass
class Rows:
    """An embedding's gradient: g_t is added to the row that place t names.

    ||.||^2 = sum over places s, t that name the same row of <g_s, g_t>
    """

    ids: Tensor  # (records, places)
    g: Tensor  # (records, places, width); zero where a place does not count

    def lengths(self) -> Tensor:
        """Return the lengths, none shorter than floats can tell."""
        same = self.ids[:, :, None] == self.ids[:, None, :]
        square = (torch.matmul(self.g, self.g.transpose(1, 2)) * same).sum((1, 2))
        whole = torch.linalg.vector_norm(self.g, dim=(1, 2)).square()
        return torch.maximum(square, _LEAST_PRODUCT * self.ids.shape[1] * whole).sqrt_()

    def put_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Put w g_t, added up, into the rows that are named."""
        weighted = (self.g * weights[:, None, None]).flatten(0, 1)
        into["weight"].zero_().index_add_(0, self.ids.flatten(), weighted)


@dataclass
class Written:
    """Gradients written down, one tensor of them for each parameter."""

    each: dict[str, Tensor]

    def lengths(self) -> Tensor:
        """Return the lengths, of all parameters together."""
        parts = [torch.linalg.vector_norm(g.flatten(1), dim=1).square() for g in self.each.values()]
        return torch.stack(parts).sum(0).sqrt_()

    def put_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Put the weighted sums."""
        for name, gradient in self.each.items():
            torch.mv(gradient.flatten(1).T, weights, out=into[name].view(-1))
