"""The best of K private runs; only the best is released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tacit.privacy.accounting.number_of_trials import TriesLaw
from tacit.privacy.budget import Relation
from tacit.privacy.events.base import Array, Event

if TYPE_CHECKING:
    from tacit.privacy.accounting.best_of import Mixture, Points
    from tacit.privacy.accounting.tradeoff import Power, TabulatedPower

_FEW = 64  # up to this many epsilons are computed one by one; more are read from a table
_TABLE_POINTS = 3001
_TAIL = 1e-21  # the table ends where delta is below this


@dataclass(frozen=True)
class BestOf(Event):
    """The best of K runs that each cost ``base``, by any score, with K of a public law.

    Contract: K is drawn independently of the records and never shown, nor is any run but the
    best. ``base`` also pays for a run's score, unless public data give the score. Ties are broken
    by randomness that is independent of everything. If K = 0, the released result does not depend
    on the records.

    Guarantee (docs/proofs/best_of.md): with h the profile of ``base``,

        delta(e) <= sum_j w_j h(e + u_j),   sum_j w_j = E K

    Weights w and shifts u follow from the law and from the power F of tests against ``base``. A
    Gaussian base has F in closed form. The Renyi divergence and the greatest loss are bounded
    likewise.

    Examples
    --------
    >>> from tacit.privacy import BestOf, Gaussian, Guarantee
    >>> from tacit.privacy.accounting.number_of_trials import FixedTries, TruncatedNegativeBinomial
    >>> geometric = BestOf(Gaussian(2.0), TruncatedNegativeBinomial(1.0, 0.1))
    >>> round(Guarantee(geometric).epsilon(1e-5), 3)
    3.01
    >>> round(Guarantee(BestOf(Gaussian(2.0), FixedTries(10))).epsilon(1e-5), 3)
    6.798
    """

    kind = "best_of"

    base: Event
    law: TriesLaw
    relation: Relation = field(init=False)

    def __init__(self, base: Event, law: TriesLaw, relation: Relation | None = None) -> None:
        if not isinstance(base, Event):
            raise TypeError(f"BestOf takes the event of one run, got {base!r}.")
        if not isinstance(law, TriesLaw):
            raise TypeError(
                f"law must be a law of the number of tries, got {law!r}; pass for instance "
                "TruncatedNegativeBinomial.of_mean(20)."
            )
        if relation is not None and relation is not base.relation:
            raise ValueError(f"relation {relation} contradicts the event's own {base.relation}.")
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "law", law)
        object.__setattr__(self, "relation", base.relation)

    def profile(self, epsilon: Array) -> Array | None:
        """Return the bound of docs/proofs/best_of.md, sections 2 and 4."""
        if not self._mixtures:
            return None
        size = np.abs(epsilon)
        few = size.size <= _FEW
        at = self._direct(size.ravel()) if few else self._table.delta(size.ravel())
        at = np.where(size >= self.pure_epsilon(), 0.0, at.reshape(size.shape))
        # H(e) = 1 - exp(e) + exp(e) H'(-e), with H' of the opposite order
        below = -np.expm1(-size) + np.exp(-size) * at
        result: Array = np.where(epsilon < 0.0, below, at)
        return result

    def renyi(self, orders: Array) -> Array:
        """Return the bound of docs/proofs/best_of.md, section 5."""
        from tacit.privacy.accounting.best_of import renyi

        one_run = self.base.renyi(orders)
        of_each = [renyi(at, self.law.at_zero, one_run, orders) for at in self._points]
        greatest: Array = np.minimum(np.max(of_each, axis=0), self.pure_epsilon())
        return greatest

    def pure_epsilon(self) -> float:
        """Return e + max_p log phi'(1-p) / phi'(1-F(p)), with F of randomised response."""
        return self._pure

    @cached_property
    def _pure(self) -> float:
        from tacit.privacy.accounting.best_of import greatest_ratio, points
        from tacit.privacy.accounting.tradeoff import pure_power

        alone = math.fsum(n * leaf.pure_epsilon() for leaf, n in self.base.leaves())
        if math.isinf(alone):
            return math.inf
        kink = 1.0 / (1.0 + math.exp(min(alone, 700.0)))
        return alone + greatest_ratio(points(pure_power(alone), self.law, kink))

    def reasons_void(self) -> tuple[str, ...]:
        """Return the reasons that make the guarantee of a run void."""
        return tuple(why for leaf, _ in self.base.leaves() for why in leaf.reasons_void())

    @cached_property
    def _powers(self) -> Sequence[Power]:
        from tacit.privacy.accounting.tradeoff import powers_of

        return powers_of(self.base) or ()

    @cached_property
    def _points(self) -> Sequence[Points]:
        from tacit.privacy.accounting.best_of import points
        from tacit.privacy.accounting.composition import ORDERS
        from tacit.privacy.accounting.tradeoff import RenyiPower

        if self._powers:
            return [points(power, self.law) for power in self._powers]
        return [points(RenyiPower(ORDERS, self.base.renyi(ORDERS)), self.law)]

    @cached_property
    def _mixtures(self) -> Sequence[Mixture]:
        from tacit.privacy.accounting.best_of import mixture

        return [mixture(at) for at in self._points] if self._powers else ()

    def _raw(self, epsilon: Array) -> Array:
        """Return the sum over knots at each epsilon >= 0, the larger of both orders."""
        each = [
            mixture.delta(power, epsilon)
            for mixture, power in zip(self._mixtures, self._powers, strict=True)
        ]
        greatest: Array = np.max(each, axis=0)
        return greatest

    def _direct(self, epsilon: Array) -> Array:
        """Return the raw bound from its tangent point on, and the tangent before."""
        touching, share = self._tangent
        line = 1.0 - share * (1.0 + np.exp(np.minimum(epsilon, touching)))
        result: Array = np.where(epsilon < touching, line, self._raw(epsilon))
        return result

    @cached_property
    def _tangent(self) -> tuple[float, float]:
        """Return the point where the line 1 - b (1 + exp(e)) touches the raw bound, and b.

        b = max (1 - B(e)) / (1 + exp(e)), which rises and then falls: refine a grid around it.
        """
        grid = np.concatenate([[0.0], np.geomspace(1e-9, 600.0, 60)])
        for _ in range(14):
            share = (1.0 - self._raw(grid)) / (1.0 + np.exp(grid))
            best = int(np.argmax(share))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
            if high - low < 1e-7 * (1.0 + high):
                break
            grid = np.linspace(low, high, 11)
        return float(grid[best]), max(float(share[best]), 0.0)

    @cached_property
    def _table(self) -> TabulatedPower:
        """The profile at many epsilons; its chords in between are an upper bound."""
        from tacit.privacy.accounting.tradeoff import TabulatedPower

        probes = np.geomspace(1e-9, 1e6, 300)
        found = self._raw(probes)
        cutoff = probes[np.flatnonzero(found <= max(_TAIL, 1.001 * found[-1]))[0]]
        grid = np.linspace(0.0, cutoff, _TABLE_POINTS)
        deltas = np.maximum.accumulate(self._direct(grid)[::-1])[::-1]
        return TabulatedPower(grid, deltas, deltas)
