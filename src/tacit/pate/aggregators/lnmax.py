"""The class with the most votes, Laplace noise on every count."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tacit import checks
from tacit.noise import Release, Source, laplace_winners
from tacit.pate.aggregators.base import Answers, Array, decided
from tacit.privacy import Budget, Event, PureEpsilon, Relation, Repeated
from tacit.privacy.calibration import least_noise


@dataclass(frozen=True)
class LNMax:
    """The class with the most votes, Laplace(1 / gamma) added to every count; for comparison.

    Parameters
    ----------
    gamma
        One over the noise's mean absolute value; left out, the greatest within the budget.

    Notes
    -----
    **Guarantee** (docs/proofs/pate.md, section 2). Each query costs 2 gamma, with delta 0: one
    teacher moves two counts.

    Examples
    --------
    >>> from tacit.pate import LNMax
    >>> from tacit.privacy import Budget
    >>> round(LNMax().planned(Budget(1.0, 0.0), n_queries=10).gamma, 9)
    0.05
    """

    gamma: float | None = None

    name = "lnmax"
    reason = "the class with most votes, Laplace noise on every count"

    def __post_init__(self) -> None:
        if self.gamma is not None:
            checks.positive("gamma", self.gamma)

    @property
    def settings(self) -> dict[str, float]:
        """Return the noise's rate."""
        return {"gamma": decided(self.gamma, "gamma")}

    def planned(self, budget: Budget, n_queries: int) -> LNMax:
        """Return the same with its noise decided."""
        if self.gamma is not None:
            return self

        def family(noise: float) -> Event:
            return Repeated(PureEpsilon(2.0 / noise, budget.relation), n_queries)

        return replace(self, gamma=1.0 / least_noise(family, budget))

    def event(self, n_queries: int, relation: Relation) -> Event:
        """Return n_queries releases of 2 gamma."""
        return Repeated(PureEpsilon(2.0 * decided(self.gamma, "gamma"), relation), n_queries)

    def answers(self, votes: Array, relation: Relation, source: Source | None) -> Release[Answers]:
        """Return the noisy winner of each query."""
        return laplace_winners(votes, decided(self.gamma, "gamma"), relation, source)

    def right(self, consensus: float, n_teachers: int) -> float:
        """Return P(Laplace - Laplace < lead) = 1 - (1 + x / 2) exp(-x) / 2, x = gamma |lead|."""
        x = decided(self.gamma, "gamma") * abs(2.0 * consensus - 1.0) * n_teachers
        upset = (1.0 + x / 2.0) * math.exp(-x) / 2.0
        return 1.0 - upset if consensus >= 0.5 else upset
