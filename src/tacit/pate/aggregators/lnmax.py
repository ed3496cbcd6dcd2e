"""The class with the most votes, Laplace noise on every count."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tacit.noise import Norm
from tacit.pate.aggregators.base import Aggregator
from tacit.privacy import Budget, Event
from tacit.privacy.calibration import least_noise
from tacit.queries import LaplaceWinners, Votes


@dataclass(frozen=True)
class LNMax(Aggregator):
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
    noise = ("gamma",)

    def planned(self, budget: Budget, n_queries: int) -> LNMax:
        """Return the same with its noise decided."""
        if self.gamma is not None:
            return self

        def family(noise: float) -> Event:
            return LNMax(1.0 / noise).event(n_queries, budget.relation)

        return replace(self, gamma=1.0 / least_noise(family, budget))

    def queries(self, votes: Votes) -> dict[str, LaplaceWinners]:
        """Return one question: the noisy winner of each query."""
        return {"winners": LaplaceWinners(replace(votes, norm=Norm.L1), self.decided("gamma"))}

    def right(self, consensus: float, n_teachers: int) -> float:
        """Return P(Laplace - Laplace < lead) = 1 - (1 + x / 2) exp(-x) / 2, x = gamma |lead|."""
        x = self.decided("gamma") * abs(2.0 * consensus - 1.0) * n_teachers
        upset = (1.0 + x / 2.0) * math.exp(-x) / 2.0
        return 1.0 - upset if consensus >= 0.5 else upset
