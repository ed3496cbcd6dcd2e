"""Represent the gradients of many records with respect to one layer, as products if possible.

The forward pass gives the inputs of a layer (``a``), one backward pass the gradients of its
outputs (``g``). A record's gradient is a product of the two; its norm and the weighted sum over
records are computed without materialising most gradients.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

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
    >>> from tacit.deep.clipping.gradients import Room
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
