"""A release that reveals nothing, except that with a small probability it may reveal anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit import checks
from tacit.privacy.events.base import Array, Event
from tacit.privacy.relation import Relation, checked_relation

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


@dataclass(frozen=True)
class RareLeak(Event):
    """With ``probability`` anything may be revealed, and otherwise nothing.

    Contract: on each of two neighbours the output has the law (1 - p) B + p A with the same B and
    any A, and p is at most ``probability``. Beside another event, B is the output that the other
    event accounts for, given all that this event adds. Example: a value that one record alone has,
    and the noise on the common values (`tacit.preprocessing.private.PrivateVocabulary`).

    Guarantee (docs/proofs/events.md, section 13), with p the probability:

        delta(e) = p + (1 - p) (1 - exp(e))_+

    Together with events of profile d(e), delta(e) = p + (1 - p) d(e).

    Examples
    --------
    >>> from tacit.privacy import Composed, Gaussian, Guarantee, RareLeak
    >>> noisy = Gaussian(4.0)
    >>> both = Guarantee(Composed((noisy, RareLeak(1e-7))))
    >>> round(both.delta(1.0) - Guarantee(noisy).delta(1.0), 10)
    1e-07
    """

    kind = "rare_leak"

    probability: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        checks.keep_plain_numbers(self)
        checks.positive(
            "probability", self.probability, remedy="leave the event out where nothing can leak."
        )
        if not self.probability < 1.0:
            raise ValueError(
                f"probability must be below 1, got {self.probability!r}; what always leaks is "
                "NonPrivate(reason=...)."
            )
        checked_relation(self.relation)

    def leak(self) -> float:
        """Return the probability."""
        return self.probability

    def profile(self, epsilon: Array) -> Array:
        """Return p + (1 - p) (1 - exp(e))_+."""
        p = self.probability
        return p - (1.0 - p) * np.expm1(np.minimum(epsilon, 0.0))

    def renyi(self, orders: Array) -> Array:
        """Return infinity: the loss is infinite with positive probability."""
        return np.full_like(orders, np.inf)

    def loss_distribution(self, interval: float) -> PrivacyLossDistribution:
        """Return the distribution of a loss that is 0 or infinite."""
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution

        p = self.probability
        pmf = pld_pmf.create_pmf({0: 1.0 - p}, interval, infinity_mass=p, pessimistic_estimate=True)
        return privacy_loss_distribution.PrivacyLossDistribution(pmf)
