"""Define the base class of events: frozen records of one release that know their own cost."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit import checks
from tacit.arrays import Array as Array
from tacit.privacy.accounting.number_of_trials import TriesLaw, law_from_dict
from tacit.privacy.budget import Relation, checked_relation

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


_KINDS: dict[str, type[Event]] = {}


class Event(ABC):
    """One release: its kind, its parameters and the relation under which its cost holds.

    An event states its cost in one or more ways, from the tightest to the loosest:

    ``gaussian_mu``
        exact: the release is at worst a Gaussian mechanism with this mu.
    ``leak``
        exact: with this probability anything may be revealed, and otherwise nothing is.
    ``profile``
        exact or an upper bound: delta as a function of epsilon, in both directions. It is convex in
        exp(epsilon), so that it is the profile of a dominating pair and composes
        (docs/proofs/events.md, section 2).
    ``profiles_by_order``
        the same for each order by itself, where one order is cheaper than the other.
    ``loss_distribution``
        the discretised privacy-loss distribution; made from the profiles unless overridden.
    ``renyi``
        Renyi divergence bound for orders above 1.
    ``pure_epsilon``
        the greatest privacy loss.

    The meaning of a kind never changes and kinds are never removed, because ledgers outlive
    code: a new meaning is a new kind or a new ``version``.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1

    relation: Relation

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    def _check(self, **positive: str) -> None:
        """Check the relation and the named positive numbers, each with a remedy for its error."""
        checks.keep_plain_numbers(self)
        for name, remedy in positive.items():
            checks.positive(name, getattr(self, name), remedy=remedy)
        checked_relation(self.relation)

    def gaussian_mu(self) -> float | None:
        """Return mu if the release is exactly a Gaussian mechanism, else None."""
        return None

    def gaussian_bound(self) -> float | None:
        """Return the mu of a Gaussian mechanism that dominates the release, or None.

        The other costs of the event are tighter, so only a rule that adds up mu uses this one.
        """
        return self.gaussian_mu()

    def dominated_gaussian_mu(self) -> float | None:
        """Return the mu of a Gaussian mechanism that the release dominates, or None.

        A charge for the release then also pays for that mechanism.
        """
        return self.gaussian_mu()

    def covers(self, other: Event) -> bool:
        """Return whether ``other`` is known to cost no more, in any composition.

        By default only an equal event; kinds with comparable parameters override it.
        """
        return self == other

    def leak(self) -> float | None:
        """Return p if anything may be revealed with probability p and else nothing, or None."""
        return None

    def profile(self, epsilon: Array) -> Array | None:
        """Return delta at each epsilon (of either sign), or None if no profile is known."""
        return None

    def profiles_by_order(self, epsilon: Array) -> tuple[Array, Array] | None:
        """Return delta at each epsilon >= 0 in each order of the neighbours, or None.

        First the law with one more record against the law without it, then the reverse. Override it
        where one order is cheaper; each array bounds its order, and need not be convex
        (docs/proofs/events.md, section 14).
        """
        both = self.profile(epsilon)
        return None if both is None else (both, both)

    @abstractmethod
    def renyi(self, orders: Array) -> Array:
        """Return a bound on the Renyi divergence at each order above 1."""

    def pure_epsilon(self) -> float:
        """Return the greatest privacy loss, infinite unless the release is pure."""
        return math.inf

    def loss_distribution(self, interval: float) -> PrivacyLossDistribution | None:
        """Return the privacy-loss distribution on multiples of ``interval``, rounded up."""
        from tacit.privacy.accounting.loss_distribution import from_profile

        if self.profile(np.zeros(1)) is None:
            return None
        return from_profile(self, interval)

    def leaves(self) -> Iterator[tuple[Event, int]]:
        """Yield the elementary events of this event, each with its count."""
        yield self, 1

    def parts(self) -> tuple[Event, ...]:
        """Return the events of disjoint parts, or of a public choice; the worst is the cost."""
        return ()

    def reasons_void(self) -> tuple[str, ...]:
        """Return the reasons that make a guarantee from this event void; empty if there is none."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary with a stable ``kind`` and ``version``."""
        # Every event is a frozen dataclass; the base is not, so each class orders its own fields.
        names = [f.name for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        fields = {name: _plain(getattr(self, name)) for name in names}
        return {"kind": self.kind, "version": self.version, **fields}


def check_add_remove(event: Event) -> None:
    """Refuse an event under REPLACE whose proof is for added or removed records."""
    if not event.relation.adds_or_removes:
        raise ValueError(
            f"{type(event).__name__} is proved for Relation.ADD_REMOVE only; account under "
            "ADD_REMOVE, then convert the guarantee with replace_from_add_remove."
        )


def event_from_dict(record: Mapping[str, Any]) -> Event:
    """Return the event of a dictionary made by ``to_dict``.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, event_from_dict
    >>> event_from_dict(Gaussian(2.0).to_dict()) == Gaussian(2.0)
    True
    """
    fields = dict(record)
    kind, version = fields.pop("kind", None), fields.pop("version", None)
    if kind not in _KINDS or version != _KINDS[kind].version:
        raise ValueError(
            f"unknown event kind {kind!r} version {version!r}: this tacit knows "
            f"{sorted(_KINDS)}; read the file with the version of tacit that wrote it, or newer."
        )
    return _KINDS[kind](**{name: _rich(name, value) for name, value in fields.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, Event | TriesLaw):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return value


def _rich(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return law_from_dict(value) if name == "law" else event_from_dict(value)
    if isinstance(value, list):
        return tuple(_rich(name, item) for item in value)
    return Relation(value) if name == "relation" else value
