"""How heavy the tail of a sanitised report is, in one direction."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit import checks


@dataclass(frozen=True)
class Tail:
    """How far a report strays: E exp(v <xi, u>) <= exp(v^2 variance / 2) for |v| <= reach.

    Here xi = report - E report and u is any unit vector; the bound holds for every gradient within
    the norm. ``reach`` is infinite for bounded and for Gaussian noise, and finite for noise with
    an exponential tail.

    Examples
    --------
    >>> from tacit.local import Tail
    >>> Tail(variance=4.0).reach
    inf
    """

    variance: float
    reach: float = math.inf

    def __post_init__(self) -> None:
        checks.at_least("variance", self.variance, 0.0)
        checks.above_zero("reach", self.reach)

    def plus_rounding(self, size: float) -> Tail:
        """Return the tail of xi + e with e a function of the report, |<e, u>| <= ``size``.

        sigma -> sigma + size and reach -> reach / (1 + size / sigma): Holder's inequality with
        exponents 1 + size/sigma and 1 + sigma/size, and Hoeffding's for e.
        """
        sigma = math.sqrt(self.variance)
        return Tail((sigma + size) ** 2, self.reach / (1.0 + size / sigma))
