"""The class with the most votes, Gaussian noise on every count."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy.special import ndtr

from tacit.pate.aggregators.base import Aggregator
from tacit.privacy import Budget
from tacit.privacy.gaussian_profile import gaussian_mu
from tacit.queries import GaussianWinners, Votes
from tacit.queries.votes_cost import SeveralClasses

_ROOT_TWO = math.sqrt(2.0)


@dataclass(frozen=True)
class GNMax(Aggregator):
    """The class with the most votes, N(0, noise_std^2) added to every count.

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
    by_default = True

    def planned(self, budget: Budget, n_queries: int) -> GNMax:
        """Return the same with its noise decided."""
        if self.noise_std is not None:
            return self
        if budget.is_pure:
            raise ValueError(
                "GNMax needs a delta above 0; pass one, such as delta=1e-6, or aggregator=LNMax()."
            )
        mu = gaussian_mu(budget.epsilon, budget.delta) * (1 - 1e-12)
        return replace(self, noise_std=_ROOT_TWO * math.sqrt(n_queries) / mu)

    def queries(self, votes: Votes) -> dict[str, GaussianWinners]:
        """Return one question: the noisy winner of each query."""
        return {"winners": GaussianWinners(votes, self.decided("noise_std"))}

    def cost_table(self, votes: Votes, order: float) -> SeveralClasses:
        """Return what Theorem 6 says of these votes."""
        return SeveralClasses(self.decided("noise_std"), votes.n_classes, order)

    def right(self, consensus: float, n_teachers: int) -> float:
        """Return Phi(lead / (sqrt(2) noise_std))."""
        lead = (2.0 * consensus - 1.0) * n_teachers
        return float(ndtr(lead / (_ROOT_TWO * self.decided("noise_std"))))
