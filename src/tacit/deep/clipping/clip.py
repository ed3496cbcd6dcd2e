"""Define clipping rules: bounds on what one record adds to a sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch

from tacit import checks

# Squares of numbers below 2^-74 underflow in float32: with 2^40 parameters, norms of 2^-54. Clips
# are far larger, so no gradient escapes clipping because its norm underflowed.
LEAST_NORM = 2.0**-40
_REMEDY = "pass the greatest length of one record's gradient; the noise is proportional to it."


@runtime_checkable
class Clip(Protocol):
    """A rule that turns the norms of a record's gradients into factors."""

    @property
    def max_grad_norm(self) -> float:
        """How far one record can move the sum of what the rule leaves."""

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return a factor for each part of a model and each record, from norms of that shape."""


def lengths_of(norms: torch.Tensor) -> torch.Tensor:
    """Return the gradient norm of each record, from the norms of its parts.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep.clipping.clip import lengths_of
    >>> lengths_of(torch.tensor([[3.0, 0.0], [4.0, 1.0]]))
    tensor([5., 1.])
    """
    # torch.norm along the first dimension gives the same, several times slower.
    return norms[0] if norms.shape[0] == 1 else (norms * norms).sum(0).sqrt_()


@dataclass(frozen=True)
class FlatClip:
    """A gradient longer than ``max_grad_norm`` is scaled down to it, all layers together.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep import FlatClip
    >>> FlatClip(1.0).factors(torch.tensor([[3.0, 0.3], [4.0, 0.4]]))
    tensor([[0.2000, 1.0000],
            [0.2000, 1.0000]])
    """

    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("max_grad_norm", self.max_grad_norm, least=LEAST_NORM, remedy=_REMEDY)

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return min(1, max_grad_norm / length)."""
        length = lengths_of(norms)
        return torch.div(self._norm, length.clamp(min=self.max_grad_norm)).expand_as(norms)

    @cached_property
    def _norm(self) -> torch.Tensor:
        return torch.tensor(self.max_grad_norm, dtype=torch.float32)


@dataclass(frozen=True)
class PerLayerClip:
    """Each of k parts of a model is scaled down to C / sqrt(k), so that all together are within C.

    C is ``max_grad_norm``.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep import PerLayerClip
    >>> PerLayerClip(5.0).factors(torch.tensor([[3.0], [10.0], [0.1], [0.2]]))[:, 0]
    tensor([0.8333, 0.2500, 1.0000, 1.0000])
    """

    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("max_grad_norm", self.max_grad_norm, least=LEAST_NORM, remedy=_REMEDY)

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return min(1, C / sqrt(k) / length) for each part by itself."""
        share = self.max_grad_norm / math.sqrt(norms.shape[0])
        return share / norms.clamp(min=share)


@dataclass(frozen=True)
class AutomaticClip:
    """Every gradient is brought to nearly the same length: C g / (||g|| + stability).

    There is no threshold to choose (Bu, Wang, Zha and Karypis 2023): C, which is
    ``max_grad_norm``, only goes with the learning rate.

    Examples
    --------
    >>> import torch
    >>> from tacit.deep import AutomaticClip
    >>> AutomaticClip().factors(torch.tensor([[0.99, 9.99]]))
    tensor([[1.0000, 0.1000]])
    """

    max_grad_norm: float = 1.0
    stability: float = 0.01

    def __post_init__(self) -> None:
        checks.positive("max_grad_norm", self.max_grad_norm, least=LEAST_NORM, remedy=_REMEDY)
        usual = "a hundredth is usual."
        checks.positive("stability", self.stability, least=LEAST_NORM, remedy=usual)

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return C / (length + stability), below C / length."""
        length = lengths_of(norms)
        return (self.max_grad_norm / (length + self.stability)).expand_as(norms)
