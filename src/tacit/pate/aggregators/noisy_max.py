"""Release the class with the most votes after Gaussian (GNMax) or Laplace (LNMax) noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy.special import ndtr

from tacit.noise import Norm
from tacit.pate.aggregators.base import Aggregator
from tacit.privacy import Budget, Event
from tacit.privacy.accounting.calibration import least_noise
from tacit.privacy.accounting.gaussian_profile import gaussian_mu
from tacit.queries.votes import GaussianWinners, LaplaceWinners, Votes
from tacit.queries.votes_cost import SeveralClasses

_ROOT_TWO = math.sqrt(2.0)


@dataclass(frozen=True)
class GNMax(Aggregator):
    """Release the class with the most votes, with N(0, noise_std^2) added to every count.

    Parameters
    ----------
    noise_std
        The noise on each count; left out, the least within the budget:
        noise_std = sqrt(2 n_queries) / mu(epsilon, delta).

    Notes
    -----
    **Guarantee** (docs/proofs/pate.md, section 2). mu = sqrt(2 n_queries) / noise_std exactly.

    Examples
    --------
    >>> from tacit.pate import GNMax
    >>> from tacit.privacy import Budget
    >>> round(GNMax().planned(Budget(1.0, 1e-5), n_queries=100).noise_std, 1)
    52.8
    """

    noise_std: float | None = None

    name = "gnmax"
    reason = "the class with most votes, Gaussian noise on every count"
    use = "several classes, the default"
    cost = "mu = sqrt(2 queries) / noise_std, exactly"
    proof = "pate.md#2-winners-with-noise-on-each-count"
    by_default = True

    def least_noise(self, budget: Budget, n_queries: int) -> dict[str, float]:
        """Return sqrt(2 n_queries) / mu."""
        mu = gaussian_mu(budget.epsilon, budget.delta) * (1 - 1e-12)
        return {"noise_std": _ROOT_TWO * math.sqrt(n_queries) / mu}

    def queries(self, votes: Votes) -> dict[str, GaussianWinners]:
        """Return one query: the noisy winner of each row."""
        return {"winners": GaussianWinners(votes, self.decided("noise_std"))}

    def cost_table(self, votes: Votes, order: float) -> SeveralClasses:
        """Return the bound of Theorem 6 for these votes."""
        return SeveralClasses(self.decided("noise_std"), votes.n_classes, order)

    def right(self, consensus: float, n_teachers: int) -> float:
        """Return Phi(lead / (sqrt(2) noise_std))."""
        lead = (2.0 * consensus - 1.0) * n_teachers
        return float(ndtr(lead / (_ROOT_TWO * self.decided("noise_std"))))


@dataclass(frozen=True)
class LNMax(Aggregator):
    """Release the class with the most votes, with Laplace(1 / gamma) noise; for comparison.

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
    use = "delta = 0, comparisons"
    cost = "2 gamma a query"
    proof = "pate.md#2-winners-with-noise-on-each-count"
    noise = ("gamma",)
    is_pure = True

    def least_noise(self, budget: Budget, n_queries: int) -> dict[str, float]:
        """Return the greatest gamma within the budget."""

        def family(noise: float) -> Event:
            return LNMax(1.0 / noise).event(n_queries, budget.relation)

        return {"gamma": 1.0 / least_noise(family, budget)}

    def queries(self, votes: Votes) -> dict[str, LaplaceWinners]:
        """Return one query: the noisy winner of each row."""
        return {"winners": LaplaceWinners(replace(votes, norm=Norm.L1), self.decided("gamma"))}

    def right(self, consensus: float, n_teachers: int) -> float:
        """Return P(Laplace - Laplace < lead) = 1 - (1 + x / 2) exp(-x) / 2, x = gamma |lead|."""
        x = self.decided("gamma") * abs(2.0 * consensus - 1.0) * n_teachers
        upset = (1.0 + x / 2.0) * math.exp(-x) / 2.0
        return 1.0 - upset if consensus >= 0.5 else upset
