"""Answer only if teachers agree: a noisy threshold first, then the noisy winner."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from tacit import checks
from tacit.pate.aggregators.base import UNANSWERED, Aggregator, Answers
from tacit.privacy import Budget
from tacit.privacy.accounting.gaussian_profile import gaussian_mu
from tacit.queries import AtMost, Facts, Held, Query, Session, Slot
from tacit.queries.votes import GaussianWinners, GreatestCounts, Thresholds, Votes

_ROOT_TWO = math.sqrt(2.0)


@dataclass(frozen=True)
class Confident(Aggregator):
    """Answer the first ``n_answers`` queries whose greatest count passes a noisy threshold.

    Parameters
    ----------
    n_answers
        The largest number of answers; all are charged in advance.
    threshold
        The share of teachers who must agree, before noise.
    threshold_share
        The share of mu^2 for the thresholds.
    threshold_noise_std, noise_std
        The noise on the greatest count and on every count; left out, they follow from the budget.

    Notes
    -----
    **Guarantee** (docs/proofs/pate.md, section 2).

        mu^2 = n_queries / threshold_noise_std^2 + 2 n_answers / noise_std^2

    An abstention costs as much as the threshold of an answer. It stops at ``n_answers``, and never
    because of a cost that depends on the votes.

    Examples
    --------
    >>> from tacit.pate import Confident
    >>> from tacit.privacy import Budget, Guarantee, Relation
    >>> plan = Confident(n_answers=100).planned(Budget(1.0, 1e-5), n_queries=1000)
    >>> round(Guarantee(plan.event(1000, Relation.ADD_REMOVE)).epsilon(1e-5), 6)
    1.0
    """

    n_answers: int = 100
    threshold: float = 0.6
    threshold_share: float = 0.3
    threshold_noise_std: float | None = None
    noise_std: float | None = None

    name = "confident"
    reason = "the noisy winner where the greatest count passes a noisy threshold"
    use = "pools with unclear rows"
    cost = "every threshold, and the largest number of answers allowed"
    proof = "pate.md#2-winners-with-noise-on-each-count"
    noise = ("noise_std", "threshold_noise_std")

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.count("n_answers", self.n_answers)
        for name in ("threshold", "threshold_share"):
            if not 0.0 < checks.real(name, getattr(self, name)) < 1.0:
                raise ValueError(f"{name} must be a share between 0 and 1.")

    @property
    def settings(self) -> dict[str, float]:
        """Return both noises, the threshold and the number of answers."""
        return {
            **super().settings,
            "threshold": self.threshold,
            "n_answers": float(self.n_answers),
        }

    @classmethod
    def examples(cls) -> tuple[Confident, ...]:
        """Return one of few answers."""
        return (cls(n_answers=5, threshold=0.3),)

    def planned(self, budget: Budget, n_queries: int) -> Confident:
        """Return a copy with both noises fixed, and no more answers than queries."""
        if self.noise_std is None:
            self = replace(self, n_answers=min(self.n_answers, n_queries))
        return super().planned(budget, n_queries)

    def least_noise(self, budget: Budget, n_queries: int) -> dict[str, float]:
        """Return the noise of both shares of mu^2."""
        squared = (gaussian_mu(budget.epsilon, budget.delta) * (1 - 1e-12)) ** 2
        answers = 2.0 * self.n_answers / ((1.0 - self.threshold_share) * squared)
        thresholds = n_queries / (self.threshold_share * squared)
        return {"noise_std": math.sqrt(answers), "threshold_noise_std": math.sqrt(thresholds)}

    def queries(self, votes: Votes) -> dict[str, Query[Any]]:
        """Return a threshold for every query, and a winner for every charged answer."""
        return {"thresholds": self._thresholds(votes), "winners": self._winners(votes)}

    def _thresholds(self, votes: Votes) -> Thresholds:
        counts = GreatestCounts(votes.n_queries, votes.n_teachers, votes.n_classes)
        return Thresholds(counts, self.threshold, self.decided("threshold_noise_std"))

    def _winners(self, votes: Votes) -> GaussianWinners:
        return GaussianWinners(votes, self.decided("noise_std"), self.n_answers)

    def slots(self, votes: Votes, facts: Facts) -> dict[str, Slot]:
        """Return the slots; if no query passes, the winners stay unused."""
        paid = super().slots(votes, facts)
        return {**paid, "winners": replace(paid["winners"], rule=AtMost())}

    def answers(self, session: Session, votes: Votes, held: Held) -> Answers:
        """Ask for the winners of the first queries that pass; the others are not answered."""
        passed = session.ask(self._thresholds(votes), "thresholds", of=held)
        places = np.flatnonzero(passed)[: self.n_answers]
        result = np.full(votes.n_queries, UNANSWERED, dtype=np.int64)
        if places.size:
            winners = replace(self._winners(votes), places=tuple(places.tolist()))
            result[places] = session.ask(winners, "winners", of=held)
        return result

    def right(self, consensus: float, n_teachers: int) -> float:
        """Return the probability to pass the threshold, times that of the correct winner."""
        lead = (2.0 * consensus - 1.0) * n_teachers
        first = self.decided("threshold_noise_std")
        passed = float(ndtr((consensus - self.threshold) * n_teachers / first))
        std = self.decided("noise_std")
        return passed * float(ndtr(lead / (_ROOT_TWO * std)))
