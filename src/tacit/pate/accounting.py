"""Release the data-dependent PATE cost privately: a noisy figure with a margin, never a charge."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from tacit import checks
from tacit.privacy import Budget
from tacit.queries import Facts
from tacit.queries.votes import Votes
from tacit.queries.votes_cost import (
    SeveralClasses,
    SmoothValue,
    Table,
    TwoClasses,
    VotesCost,
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
    """Report only the worst-case cost, which is charged.

    Examples
    --------
    >>> from tacit.pate import WorstCase
    >>> WorstCase()
    WorstCase()
    """


@dataclass(frozen=True)
class Sanitised:
    """Report a data-dependent cost beside the charge: by Theorem 6, or exactly for two classes.

    Parameters left out follow from the budget. All are fixed before any vote is counted.

    Parameters
    ----------
    order
        The Renyi order of the cost.
    smoothness
        The rate at which its sensitivity may change between neighbours, in logarithms.
    noise_multiplier
        The noise on it, in units of the smooth sensitivity.
    failure
        The probability with which the estimate may be too low.

    Notes
    -----
    **Guarantee**. The cost is released with a `SmoothGaussian`, which is charged in addition to the
    votes' worst case: it never lowers a charge. It is an estimate, too low with
    probability ``failure``, and not a bound.

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
                "with which the estimate may be too low; 0.05 is one in twenty."
            )

    def fixed_for(self, budget: Budget) -> Sanitised:
        """Return a copy with every parameter fixed, from the budget alone.

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
            raise ValueError("the parameters are not fixed; call fixed_for(budget) first.")
        return self.order, self.smoothness, self.noise_multiplier

    def query(self, votes: Votes, table: Table) -> SmoothValue:
        """Return the query for the cost, once all parameters are fixed."""
        _, smoothness, multiplier = self.fixed
        margin = -float(ndtri(self.failure))
        return SmoothValue(VotesCost(votes, table), multiplier, smoothness, margin)

    def figure(self, noisy: float, query: SmoothValue, facts: Facts, delta: float) -> SanitisedCost:
        """Convert a noisy answer to epsilon at delta, including the cost of its release."""
        table = query.statistic.table
        a = table.order
        divergence = max(noisy, 0.0) + float(query.event(facts).renyi(np.array([a]))[0])
        epsilon = divergence + math.log1p(-1 / a) - math.log(delta * a) / (a - 1)
        # The conditions of the proof depend on public numbers alone.
        known = max(epsilon, 0.0) if table.conditions_hold() else None
        return SanitisedCost(known, delta, a, self.failure)


@dataclass(frozen=True)
class SanitisedCost:
    """The data-dependent cost of votes: an epsilon that is too low with probability ``failure``.

    ``epsilon`` is None if the conditions of its proof (C5, C6) do not hold: then only the worst
    case is known. Never charge it: it is a noisy estimate.
    """

    epsilon: float | None
    delta: float
    order: float
    failure: float

    def __str__(self) -> str:
        if self.epsilon is None:
            return "the conditions of the data-dependent bound do not hold: see the worst case"
        return (
            f"epsilon {self.epsilon:.3g} at delta {self.delta:g}, from the votes, sanitised; "
            f"an estimate, too low with probability {self.failure:g}; the worst case is charged"
        )
