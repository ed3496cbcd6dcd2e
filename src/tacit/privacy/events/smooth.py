"""A number with Gaussian noise scaled to its smooth sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit import checks
from tacit.privacy.events.base import Array, Event
from tacit.privacy.relation import Relation, checked_relation


@dataclass(frozen=True)
class SmoothGaussian(Event):
    """A number f plus (margin + N(0, 1)) * noise_multiplier * S, S its smooth sensitivity.

    Contract: between neighbours f moves by at most min(S, S'), and S by a factor within
    exp(+-smoothness). ``margin``, in standard deviations of the noise, is added so that the
    released number is below f with probability Phi(-margin) only.

    Guarantee (docs/proofs/pate.md, section 5), z the multiplier, b the smoothness, m the margin:

        renyi(a) = a (1 + m z (e^b - 1))^2 / (2 z^2 (a - (a-1) e^2b))
                   - (log(1 - a + a e^-2b) / 2 + a b) / (a - 1)      where (a-1) e^2b < a

    and no bound at other orders.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import SmoothGaussian
    >>> SmoothGaussian(20.0, 0.01).renyi(np.array([10.0, 100.0])).round(4)
    array([0.0164,    inf])
    """

    kind = "smooth_gaussian"

    noise_multiplier: float
    smoothness: float
    margin: float = 0.0
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        checks.keep_plain_numbers(self)
        checks.positive("noise_multiplier", self.noise_multiplier)
        checks.positive("smoothness", self.smoothness)
        checks.at_least("margin", self.margin, 0.0)
        checked_relation(self.relation)

    def renyi(self, orders: Array) -> Array:
        """Return the divergence of two Gaussians of different width, at their most different."""
        a, z, b = orders, self.noise_multiplier, self.smoothness
        room = 1.0 - (a - 1) * math.expm1(2 * b)  # a - (a-1) e^2b
        inside = np.maximum(room, 1e-300)
        moved = 1.0 + self.margin * z * math.expm1(b)
        means = a * moved**2 / (2 * z**2 * inside)
        # 1 - a + a e^-2b = e^-2b (a - (a-1) e^2b)
        widths = ((1 - a) * b - np.log(inside) / 2) / (a - 1)
        result: Array = np.where(room > 1e-12, means + widths, np.inf)
        return result
