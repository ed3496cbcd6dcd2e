"""Release the data-dependent PATE cost privately: a noisy figure with a margin, never a charge."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from tacit import checks
from tacit.privacy import Budget
from tacit.queries import Facts, SmoothValue, Votes, VotesCost
from tacit.queries.votes_cost import (
    SeveralClasses,
    Table,
    TwoClasses,
    log_chance_of_upset,
    query_renyi,
    smooth_sensitivity,
    votes_renyi,
)

__all__ = [
    "Sanitised",
    "SanitisedCost",
    "SeveralClasses",
    "TwoClasses",
    "WorstCase",
    "log_chance_of_upset",
    "query_renyi",
    "smooth_sensitivity",
    "votes_renyi",
]


@dataclass(frozen=True)
class WorstCase:
    """The cost whatever the votes: what is charged, and all that is said.

    Examples
    --------
    >>> from tacit.pate import WorstCase
    >>> WorstCase()
    WorstCase()
    """


@dataclass(frozen=True)
class Sanitised:
    """A figure beside the charge: what the votes cost by Theorem 6, or exactly for two classes.

    What is left out follows from the budget. All is fixed before any vote is counted.

    Parameters
    ----------
    order
        The Renyi order at which it is told.
    smoothness
        How fast its sensitivity may change between neighbours, in logarithms.
    noise_multiplier
        The noise on it, in smooth sensitivities.
    failure
        With which probability it may be too low.

    Notes
    -----
    **Guarantee**. The figure is released with a `SmoothGaussian`, whose cost is charged with the
    votes' worst case: no charge is ever lower for it. It is an estimate, and too low with
    probability ``failure``; it is no bound.

    Examples
    --------
    >>> from tacit.pate import Sanitised
    >>> from tacit.privacy import Budget
    >>> Sanitised(failure=0.01).fixed_for(Budget(1.0, 1e-5)).order
    24.0
    """

    order: float | None = None
    smoothness: float | None = None
    noise_multiplier: float | None = None
    failure: float = 0.05

    def __post_init__(self) -> None:
        for name in ("order", "smoothness", "noise_multiplier"):
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name), least=1.0 if name == "order" else 0.0)
        if not 0.0 < checks.real("failure", self.failure) < 0.5:
            raise ValueError(
                f"failure must be between 0 and 0.5, got {self.failure!r}: it is the probability "
                "with which the figure may be too low; 0.05 is one in twenty."
            )

    def fixed_for(self, budget: Budget) -> Sanitised:
        """Return the same with every number decided, from the budget alone.

        Half of epsilon goes to the conversion at the order, log(1/delta) / (a - 1); the
        noise takes a twentieth of it, a / (2 z^2); smoothness is a third of what the order allows.
        """
        order = self.order
        if order is None:
            order = 1.0 + round(math.log(1.0 / budget.delta) / (0.5 * budget.epsilon))
            order = max(order, 2.0)
        smoothness = self.smoothness or math.log1p(1 / (order - 1)) / 6
        multiplier = self.noise_multiplier or math.sqrt(order / (0.1 * budget.epsilon))
        return Sanitised(order, smoothness, multiplier, self.failure)

    @property
    def fixed(self) -> tuple[float, float, float]:
        """The order, smoothness and noise multiplier, once they are fixed."""
        if self.order is None or self.smoothness is None or self.noise_multiplier is None:
            raise ValueError("the numbers are not fixed; call fixed_for(budget) first.")
        return self.order, self.smoothness, self.noise_multiplier

    def query(self, votes: Votes, table: Table) -> SmoothValue:
        """Return how the figure is asked for, once all numbers are fixed."""
        _, smoothness, multiplier = self.fixed
        margin = -float(ndtri(self.failure))
        return SmoothValue(VotesCost(votes, table), multiplier, smoothness, margin)

    def figure(self, noisy: float, query: SmoothValue, facts: Facts, delta: float) -> SanitisedCost:
        """Return the epsilon at a delta of what was answered, the cost of telling it included."""
        table = query.statistic.table
        a = table.order
        divergence = max(noisy, 0.0) + float(query.event(facts).renyi(np.array([a]))[0])
        epsilon = divergence + math.log1p(-1 / a) - math.log(delta * a) / (a - 1)
        # Whether the conditions of the proof hold depends on public numbers alone.
        known = max(epsilon, 0.0) if table.conditions_hold() else None
        return SanitisedCost(known, delta, a, self.failure)


@dataclass(frozen=True)
class SanitisedCost:
    """What the votes say of their cost: an epsilon that is too low with probability ``failure``.

    ``epsilon`` is None where the conditions of its proof (C5, C6) do not hold: then the worst case
    is all there is. Never charge it: it is a noisy estimate.
    """

    epsilon: float | None
    delta: float
    order: float
    failure: float

    def __str__(self) -> str:
        if self.epsilon is None:
            return "the conditions of the data-dependent bound do not hold: see the worst case"
        return (
            f"epsilon {self.epsilon:.3g} at delta {self.delta:g}: what the votes say, sanitised; "
            f"an estimate, too low with probability {self.failure:g}, and never what is charged"
        )
