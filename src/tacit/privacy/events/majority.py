"""A majority of two classes decided with Gaussian noise; only the winner is released."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit import checks
from tacit.privacy.events.base import Array, Event
from tacit.privacy.majority import majority_renyi
from tacit.privacy.relation import Relation, checked_relation


@dataclass(frozen=True)
class NoisyMajority(Event):
    """The class with more votes, after noise on both counts; only the winner is released.

    Contract: neighbours differ in one vote, which moves one count up and the other down by one;
    the second class wins if n_2 - n_1 + N(0, 2 noise_std^2) is above a public number.

    Guarantee (docs/proofs/pate.md, section 3): the winner is Bernoulli(Phi(t)) on one neighbour and
    Bernoulli(Phi(t +- h)) on the other, h = sqrt(2) / noise_std, for some t, so

        renyi(a) = sup over t of D_a(Bernoulli(Phi(t)) || Bernoulli(Phi(t + h))), rounded up

    Many winners together cost as little as 2 / pi of what Gaussian counts cost. A single winner
    costs as much as a Gaussian of mu = h, since each epsilon has its own worst t. State a few
    winners as ``Gaussian(noise_std / sqrt(2))``, which is also true, and cheaper.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, Guarantee, NoisyMajority, Repeated
    >>> winners = Guarantee(Repeated(NoisyMajority(100.0), 500)).epsilon(1e-5)
    >>> counts = Guarantee(Repeated(Gaussian(100.0 / 2**0.5), 500)).epsilon(1e-5)
    >>> round(winners, 2), round(counts, 2)
    (1.02, 1.2)
    """

    kind = "noisy_majority"

    noise_std: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        checks.keep_plain_numbers(self)
        checks.positive(
            "noise_std", self.noise_std, remedy="votes without noise are NonPrivate(reason=...)."
        )
        checked_relation(self.relation)

    @property
    def _shift(self) -> float:
        return math.sqrt(2.0) / self.noise_std

    def gaussian_bound(self) -> float:
        """Return the mu of the noisy margin, whose sign is the winner.

        A vote moves n_2 - n_1 by 2, the noise has std sqrt(2) noise_std: mu = sqrt(2) / noise_std.
        """
        return self._shift

    def renyi(self, orders: Array) -> Array:
        """Return the divergence at the worst margin."""
        return majority_renyi(self._shift, orders)
