"""Which of two classes has the majority; only the winner leaves, which makes it cheaper."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from tacit import checks
from tacit.noise import Release, Source, gaussian_majorities
from tacit.pate.aggregators.base import Answers, Array, decided
from tacit.privacy import Budget, Event, NoisyMajority, Relation, Repeated
from tacit.privacy.gaussian_profile import gaussian_mu
from tacit.privacy.majority import majority_renyi
from tacit.privacy.roots import decreasing_root
from tacit.privacy.routes import ORDERS

_ROOT_TWO = math.sqrt(2.0)


@dataclass(frozen=True)
class Majority:
    """Which of two classes has more votes than a public cut, Gaussian noise on both counts.

    Parameters
    ----------
    noise_std
        The noise on each count; left out, the least within the budget.
    cut
        The share of votes above which the second class wins; where classes are of very different
        sizes, about the share that the second one is known to have.

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

    def __post_init__(self) -> None:
        if self.noise_std is not None:
            checks.positive("noise_std", self.noise_std)
        if not 0.0 < checks.real("cut", self.cut) < 1.0:
            raise ValueError(f"cut must be between 0 and 1, got {self.cut!r}: a share of votes.")

    @property
    def settings(self) -> dict[str, float]:
        """Return the noise and the cut."""
        return {"noise_std": decided(self.noise_std, "noise_std"), "cut": self.cut}

    def planned(self, budget: Budget, n_queries: int) -> Majority:
        """Return the same with its noise decided."""
        if self.noise_std is not None:
            return self
        if budget.is_pure:
            raise ValueError(
                "Majority needs a delta above 0; pass one, such as 1e-6, or aggregator=LNMax()."
            )

        return replace(self, noise_std=_least_noise(budget, n_queries))

    def event(self, n_queries: int, relation: Relation) -> Event:
        """Return n_queries noisy majorities."""
        std = decided(self.noise_std, "noise_std")
        return Repeated(NoisyMajority(std, relation), n_queries)

    def answers(self, votes: Array, relation: Relation, source: Source | None) -> Release[Answers]:
        """Return the noisy winner of each query."""
        lead = 2.0 * votes[:, 1] - self.lead_needed(float(votes[0].sum()))
        std = decided(self.noise_std, "noise_std")
        won = gaussian_majorities(lead, std, relation, source)
        return Release(won.value.astype(np.int64), won.event)

    def lead_needed(self, n_teachers: float) -> float:
        """Return what twice the votes for the second class must exceed: 2 cut n."""
        return 2.0 * self.cut * n_teachers

    def right(self, consensus: float, n_teachers: int) -> float:
        """Return Phi(lead / (sqrt(2) noise_std)), of the first class if the cut is not a half."""
        lead = (2.0 * consensus - 1.0) * n_teachers
        moved = abs(1.0 - 2.0 * self.cut) * n_teachers
        return float(ndtr((lead - moved) / (_ROOT_TWO * decided(self.noise_std, "noise_std"))))


# Orders to either side of a Gaussian's best one that a calibration looks at.
_AROUND = 8


def _least_noise(budget: Budget, n_queries: int) -> float:
    """Return the least noise within the budget, by the divergence at a few orders.

    A Gaussian of that mu has its best order near 1 + sqrt(2 log(1/delta)) / mu. Whatever orders are
    looked at, the guarantee takes the best of all and can only be lower.
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
    return decreasing_root(excess, guess, 1e-6, spread=0.1)
