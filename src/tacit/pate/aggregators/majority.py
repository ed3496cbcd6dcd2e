"""Release the noisy majority of two classes; releasing only the winner is cheaper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from tacit import checks
from tacit.pate.aggregators.base import Aggregator
from tacit.privacy import Budget
from tacit.privacy.accounting.composition import ORDERS
from tacit.privacy.accounting.gaussian_profile import gaussian_mu
from tacit.privacy.accounting.root_finding import decreasing_root
from tacit.privacy.events.majority import majority_renyi
from tacit.queries.votes import Leads, Majorities, Votes
from tacit.queries.votes_cost import TwoClasses

_ROOT_TWO = math.sqrt(2.0)
# The number of orders on each side of a Gaussian's best one that calibration tries.
_AROUND = 8


@dataclass(frozen=True)
class Majority(Aggregator):
    """Release which of two classes has more votes than a public cut, with Gaussian noise.

    Parameters
    ----------
    noise_std
        The noise on each count; left out, the least within the budget.
    cut
        The share of votes above which the second class wins; for very unbalanced classes, about
        the known share of the second one.

    Notes
    -----
    **Guarantee** (docs/proofs/pate.md, section 3). Each winner is Bernoulli(Phi(t)), and a teacher
    moves t by sqrt(2) / noise_std: many queries cost about a sixth less epsilon than `GNMax`.

    Examples
    --------
    >>> from tacit.pate import GNMax, Majority
    >>> from tacit.privacy import Budget
    >>> budget = Budget(1.31, 1e-5)
    >>> winner_only = Majority().planned(budget, n_queries=500).noise_std
    >>> counts = GNMax().planned(budget, n_queries=500).noise_std
    >>> round(winner_only), round(counts)
    (80, 92)
    """

    noise_std: float | None = None
    cut: float = 0.5

    name = "majority"
    reason = "the majority of two classes, Gaussian noise on both counts, only the winner leaves"
    use = "two classes, the default"
    cost = "a sixth less epsilon than `GNMax`"
    proof = "pate.md#3-two-classes-only-the-winner-leaves"
    most_classes = 2
    by_default = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < checks.real("cut", self.cut) < 1.0:
            raise ValueError(f"cut must be between 0 and 1, got {self.cut!r}: a share of votes.")

    @property
    def settings(self) -> dict[str, float]:
        """Return the noise and the cut."""
        return {**super().settings, "cut": self.cut}

    @classmethod
    def examples(cls) -> tuple[Majority, ...]:
        """Return one of a half, and one of another cut."""
        return cls(), cls(cut=0.3)

    def least_noise(self, budget: Budget, n_queries: int) -> dict[str, float]:
        """Return the least noise within the budget, by the divergence at a few orders.

        A Gaussian of that mu has its best order near 1 + sqrt(2 log(1/delta)) / mu. The guarantee
        takes the best of all orders, so it can only be lower.
        """
        mu = gaussian_mu(budget.epsilon, budget.delta)
        best = 1.0 + math.sqrt(2.0 * math.log(1.0 / budget.delta)) / mu
        at = int(np.searchsorted(ORDERS, best))
        orders = ORDERS[max(at - _AROUND, 0) : at + _AROUND]
        conversion = np.log1p(-1 / orders) - np.log(budget.delta * orders) / (orders - 1)

        def excess(noise_std: float) -> float:
            spent = n_queries * majority_renyi(_ROOT_TWO / noise_std, orders) + conversion
            return math.log(max(float(np.min(spent)), 1e-300) / (budget.epsilon * (1 - 1e-10)))

        guess = 0.85 * _ROOT_TWO * math.sqrt(n_queries) / mu
        return {"noise_std": decreasing_root(excess, guess, 1e-6, spread=0.1)}

    def queries(self, votes: Votes) -> dict[str, Majorities]:
        """Return one query: the noisy winner of each row."""
        leads = Leads(votes.n_queries, votes.n_teachers, self.cut)
        return {"winners": Majorities(leads, self.decided("noise_std"))}

    def cost_table(self, votes: Votes, order: float) -> TwoClasses:
        """Return the exact divergences of these votes."""
        n, std = votes.n_teachers, self.decided("noise_std")
        return TwoClasses(std, n, order, Leads(votes.n_queries, n, self.cut).needed - n)

    def right(self, consensus: float, n_teachers: int) -> float:
        """Return Phi(lead / (sqrt(2) noise_std)), of the first class if the cut is not a half."""
        lead = (2.0 * consensus - 1.0) * n_teachers
        shift = abs(1.0 - 2.0 * self.cut) * n_teachers
        return float(ndtr((lead - shift) / (_ROOT_TWO * self.decided("noise_std"))))
