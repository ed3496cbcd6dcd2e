"""A release known only through zero-concentrated differential privacy."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.privacy import _check
from tacit.privacy.events.base import Array, Event
from tacit.privacy.relation import Relation


@dataclass(frozen=True)
class ZeroConcentrated(Event):
    """A release that is rho-zCDP, for instance a discrete Gaussian of another library.

    Contract: Renyi divergence at every order a > 1 at most ``rho`` * a, in both directions
    (Bun and Steinke 2016, Definition 1.1).

    Examples
    --------
    >>> from tacit.privacy import Guarantee, ZeroConcentrated
    >>> Guarantee(ZeroConcentrated(0.1)).route(1e-5)
    'Renyi'
    """

    kind = "zero_concentrated"

    rho: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        _check.positive("rho", self.rho, remedy="pass the zCDP parameter of the release.")
        _check.relation(self.relation)

    def renyi(self, orders: Array) -> Array:
        """Return rho * order."""
        return self.rho * orders
