"""The gradients of many records with respect to one layer, kept as products where they are.

What a layer's parameters are multiplied with is known from the forward pass (``a``), what its
outputs do to the loss from one backward pass (``g``). A record's gradient is a product of the two;
its length and the weighted sum over records follow without ever writing most gradients down.
"""

from __future__ import annotations

from collections.abc import Mapping
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
# How many numbers are worked on at once where records are taken some at a time.
_CACHED = 1 << 19
# Writing a gradient down costs a pass over memory, which is worth some products.
_PASS = 8


class Factor(Protocol):
    """What a layer met: (records, groups, inputs, places), of some records at a time."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    def rows(self, some: slice) -> Tensor:
        """Return what it is for some records."""

    def most(self) -> Tensor:
        """Return, for each record and group, no less than the sum of all squares."""


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


class Gradients(Protocol):
    """One gradient for each record of a batch."""

    def squares(self) -> Tensor:
        """Return the square of each one's length."""

    def add_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Add the weighted sum, parameter by parameter."""


@dataclass
class OuterProducts:
    """A weight's gradient is g a', a bias's is g: a linear layer met once.

    ||g a'|| = ||g|| ||a||
    """

    a: Tensor  # (records, inputs)
    g: Tensor  # (records, outputs)
    names: frozenset[str]

    def squares(self) -> Tensor:
        """Return ||g||^2 (||a||^2 + 1), each term where its parameter is trained."""
        per_output = torch.linalg.vector_norm(self.g, dim=1).square_()
        if "weight" not in self.names:
            return per_output
        of_inputs = torch.linalg.vector_norm(self.a, dim=1).square_()
        if "bias" in self.names:
            of_inputs += 1.0
        return of_inputs.mul_(per_output)

    def add_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Add (w g)' a, one product for all records."""
        if "weight" in self.names:
            into["weight"].addmm_((self.g * weights[:, None]).T, self.a)
        if "bias" in self.names:
            into["bias"].addmv_(self.g.T, weights)


@dataclass
class SummedProducts:
    """A weight's gradient is the sum of g_t a_t' over places t: convolutions, sequences.

    Groups of channels stand beside one another. Either the gradients are written down, or their
    squares come from the products of places, whichever is cheaper:

        ||sum_t g_t a_t'||^2 = sum_{s,t} <a_s, a_t> <g_s, g_t>
    """

    a: Factor  # (records, groups, inputs, places)
    g: Tensor  # (records, groups, outputs, places)
    names: frozenset[str]
    _written: Tensor | None = field(default=None, init=False)

    @property
    def writes(self) -> bool:
        """Whether gradients are written down."""
        _, _, inputs, places = self.a.shape
        outputs = self.g.shape[2]
        cheaper: bool = 2 * _PASS * inputs * outputs < places**2 * (inputs + outputs)
        return cheaper

    def squares(self) -> Tensor:
        """Return the squares, no shorter than floats can tell."""
        square = self.g.new_zeros(len(self.g))
        if "weight" in self.names:
            square = square + (self._of_written() if self.writes else self._of_products())
        if "bias" in self.names:
            square = square + torch.linalg.vector_norm(self._of_bias, dim=1).square_()
        return square

    @cached_property
    def _of_bias(self) -> Tensor:
        """Every record's gradient of the bias: g, its places added up."""
        return self.g.sum(3).flatten(1)

    def _of_written(self) -> Tensor:
        """Write gradients down, some records at a time: what they meet then stays in a cache."""
        n, groups, inputs, places = self.a.shape
        self._written = self.g.new_empty(n, groups, self.g.shape[2], inputs)
        squares, some = [], max(1, _CACHED // (groups * inputs * places))
        for start in range(0, n, some):
            rows = slice(start, start + some)
            a, g, written = self.a.rows(rows), self.g[rows], self._written[rows]
            torch.matmul(g, a.transpose(2, 3), out=written)
            squares.append(torch.linalg.vector_norm(written.flatten(1), dim=1).square_())
        return torch.maximum(torch.cat(squares), self._greatest().mul_(_LEAST_WRITTEN))

    def _of_products(self) -> Tensor:
        a, g = self.a.rows(slice(None)), self.g
        products = torch.matmul(a.transpose(2, 3), a) * torch.matmul(g.transpose(2, 3), g)
        return torch.maximum(products.sum((1, 2, 3)), self._greatest().mul_(_LEAST_PRODUCT))

    def _greatest(self) -> Tensor:
        """Return ||a||^2 ||g||^2 of every record, groups apart: what no square exceeds."""
        return (self.a.most() * _squares(self.g)).sum(1)

    def add_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Add the weighted sum of what is written down, or one product a group."""
        if "weight" in self.names and self._written is not None:
            into["weight"].view(-1).addmv_(self._written.flatten(1).T, weights)
        elif "weight" in self.names:
            weighted = (self.g * weights[:, None, None, None]).permute(1, 2, 0, 3).flatten(2)
            a = self.a.rows(slice(None)).permute(1, 0, 3, 2).flatten(1, 2)
            into["weight"].add_(torch.bmm(weighted, a).view_as(into["weight"]))
        if "bias" in self.names:
            into["bias"].addmv_(self._of_bias.T, weights)


def _squares(of_groups: Tensor) -> Tensor:
    return torch.linalg.vector_norm(of_groups, dim=(2, 3)).square_()


@dataclass
class Rows:
    """An embedding's gradient: g_t is added to the row that place t names.

    ||.||^2 = sum over places s, t that name the same row of <g_s, g_t>
    """

    ids: Tensor  # (records, places)
    g: Tensor  # (records, places, width); zero where a place does not count

    def squares(self) -> Tensor:
        """Return the squares, no shorter than floats can tell."""
        same = self.ids[:, :, None] == self.ids[:, None, :]
        square = (torch.matmul(self.g, self.g.transpose(1, 2)) * same).sum((1, 2))
        whole = torch.linalg.vector_norm(self.g, dim=(1, 2)).square()
        return torch.maximum(square, _LEAST_PRODUCT * self.ids.shape[1] * whole)

    def add_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Add w g_t to the rows that are named."""
        weighted = (self.g * weights[:, None, None]).flatten(0, 1)
        into["weight"].index_add_(0, self.ids.flatten(), weighted)


@dataclass
class Written:
    """Gradients written down, one tensor of them for each parameter."""

    each: dict[str, Tensor]

    def squares(self) -> Tensor:
        """Return the sums of squares."""
        parts = [torch.linalg.vector_norm(g.flatten(1), dim=1).square() for g in self.each.values()]
        return torch.stack(parts).sum(0)

    def add_weighted(self, weights: Tensor, into: Mapping[str, Tensor]) -> None:
        """Add the weighted sums."""
        for name, gradient in self.each.items():
            into[name].view(-1).addmv_(gradient.flatten(1).T, weights)
