"""Composed events seen as a promise: numbers, a sentence, a certificate, and other relations."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.arrays import Array
from tacit.privacy.accounting.composition import Route, merged, routes_for
from tacit.privacy.accounting.gaussian_profile import gaussian_epsilon
from tacit.privacy.accounting.loss_distribution import Leaves
from tacit.privacy.accounting.root_finding import decreasing_root
from tacit.privacy.budget import Budget, Relation
from tacit.privacy.events import Event, event_from_dict

_HEX = "0123456789abcdef"


@dataclass(frozen=True)
class Booking:
    """The entry of a ledger that paid for a release, and the ledger's head right after it.

    Parameters
    ----------
    ledger
        The ledger's identifier: 32 random hexadecimal digits.
    entry
        The entry's number.
    head
        The SHA-256 of that entry, which depends on all entries before it. It shows whether a
        ledger was rewritten or restored from an older copy.

    Examples
    --------
    >>> from tacit.privacy.guarantee import Booking
    >>> print(Booking("0" * 32, 7, "a" * 64))
    entry 7 of ledger 00000000000000000000000000000000 (head aaaaaaaaaaaa...)
    """

    ledger: str
    entry: int
    head: str

    def __post_init__(self) -> None:
        if type(self.entry) is not int or self.entry < 0:
            checks.count("entry", self.entry, least=0)
        for name, value, digits in (("ledger", self.ledger, 32), ("head", self.head, 64)):
            if not isinstance(value, str) or len(value) != digits or value.strip(_HEX):
                raise ValueError(f"{name} must be {digits} hexadecimal digits, got {value!r}.")

    def __str__(self) -> str:
        return f"entry {self.entry} of ledger {self.ledger} (head {self.head[:12]}...)"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        return {"ledger": self.ledger, "entry": self.entry, "head": self.head}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Booking:
        """Return the booking of a dictionary made by `to_dict`."""
        if not isinstance(record, Mapping) or set(record) != {"ledger", "entry", "head"}:
            raise ValueError("a booking states ledger, entry and head; this one does not.")
        return cls(**record)


class Booked(float):
    """The epsilon spent in all after a charge, and the entry of that charge.

    Examples
    --------
    >>> from tacit.privacy.guarantee import Booked, Booking
    >>> paid = Booked(0.5, Booking("0" * 32, 7, "a" * 64))
    >>> paid < 1.0, paid.booking.entry
    (True, 7)
    """

    __slots__ = ("booking",)
    booking: Booking

    def __new__(cls, spent: float, booking: Booking) -> Booked:
        """Return the number, with its booking."""
        made = super().__new__(cls, spent)
        made.booking = booking
        return made

    def __getnewargs__(self) -> tuple[float, Booking]:  # type: ignore[override]
        return float(self), self.booking


_FORMAT = "tacit-guarantee"


@dataclass(frozen=True)
class Curve:
    """Points of a guarantee: the least ``epsilon`` at each ``delta``.

    Examples
    --------
    >>> from tacit.privacy import Gaussian
    >>> from tacit.privacy import Guarantee
    >>> curve = Guarantee(Gaussian(2.0)).curve()
    >>> bool(curve.epsilon[0] > curve.epsilon[-1])
    True
    """

    delta: Array
    epsilon: Array


@dataclass(frozen=True)
class Guarantee:
    """The privacy guarantee of an event, computed from the event alone.

    Parameters
    ----------
    event
        The released event; `Composed` and `Repeated` for several releases.
    target_delta
        The delta the release was planned for; statements quote it.
    assumptions
        Facts that somebody vouches for and tacit cannot check, one sentence each.
    notes
        Further remarks that a reader of the guarantee needs, whole sentences.
    booking
        The entry of a ledger that paid for the event, if there is one.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, Repeated
    >>> from tacit.privacy import Guarantee
    >>> promise = Guarantee(Repeated(Gaussian(20.0), 100), target_delta=1e-6)
    >>> round(promise.epsilon(1e-6), 3)
    2.254
    >>> promise.route(1e-6)
    'exact Gaussian composition'
    """

    event: Event
    target_delta: float | None = None
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    booking: Booking | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.event, Event):
            raise TypeError(f"Guarantee takes an event, got {self.event!r}; wrap with Composed.")
        if self.target_delta is not None:
            checks.delta(self.target_delta)
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "notes", tuple(self.notes))

    @property
    def relation(self) -> Relation:
        """The relation of the neighbours that the guarantee is about."""
        return self.event.relation

    @property
    def voided_by(self) -> tuple[str, ...]:
        """Reasons for which there is no guarantee at all; empty if there is one."""
        return tuple(dict.fromkeys(why for leaf, _ in self._leaves for why in leaf.reasons_void()))

    @cached_property
    def _leaves(self) -> Leaves:
        return merged(self.event.leaves())

    @cached_property
    def _routes(self) -> tuple[Route, ...]:
        return routes_for(self._leaves)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon proved at ``delta``, infinite if there is none."""
        delta = checks.delta(delta)
        return min(route.epsilon(delta) for route in self._routes)

    def delta(self, epsilon: float) -> float:
        """Return the least delta proved at ``epsilon`` >= 0."""
        epsilon = checks.real("epsilon", epsilon)
        if epsilon < 0.0:
            raise ValueError(f"epsilon must be at least 0, got {epsilon!r}.")
        return min(route.delta(epsilon) for route in self._routes)

    def route(self, delta: float | None = None) -> str:
        """Return the name of the route that proves the least epsilon at ``delta``."""
        if delta is None:
            delta = self.target_delta or 0.0
        best = min(self._routes, key=lambda route: route.epsilon(delta))
        return best.name

    def curve(self, delta: npt.ArrayLike | None = None) -> Curve:
        """Return epsilon at each delta, by default at 1e-12, 1e-11, ... 1e-2."""
        deltas = np.logspace(-12, -2, 11) if delta is None else np.asarray(delta, dtype=float)
        return Curve(deltas, np.array([self.epsilon(float(d)) for d in deltas.ravel()]))

    def within(self, epsilon: float, delta: float) -> bool:
        """Return whether the guarantee is at least as strong as (epsilon, delta)."""
        return math.isinf(epsilon) or self.epsilon(delta) <= epsilon

    def statement(self, delta: float | None = None) -> str:
        """Return the guarantee in plain English, for a privacy officer to paste."""
        if delta is None:
            pure = math.isfinite(self.epsilon(0.0))
            default = 0.0 if pure else 1e-6
            delta = default if self.target_delta is None else self.target_delta
        return _statement(self, delta)

    def __str__(self) -> str:
        return self.statement()

    def to_json(self) -> str:
        """Return the certificate: the event, the assumptions and the curve, as JSON."""
        points = self.curve()
        return json.dumps(
            {
                "format": _FORMAT,
                "version": 1,
                "event": self.event.to_dict(),
                "relation": self.relation.value,
                "target_delta": self.target_delta,
                "assumptions": list(self.assumptions),
                "notes": list(self.notes),
                **({} if self.booking is None else {"booking": self.booking.to_dict()}),
                "curve": [
                    {"delta": float(d), "epsilon": float(e) if math.isfinite(e) else None}
                    for d, e in zip(points.delta, points.epsilon, strict=True)
                ],
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Guarantee:
        """Return the guarantee of a certificate; its curve is computed anew from the event."""
        record: Mapping[str, Any] = json.loads(text)
        if record.get("format") != _FORMAT or record.get("version") != 1:
            raise ValueError(
                f"not a {_FORMAT} version 1: {record.get('format')!r} {record.get('version')!r}; "
                "pass text written by Guarantee.to_json."
            )
        return cls(
            event_from_dict(record["event"]),
            record["target_delta"],
            tuple(record["assumptions"]),
            tuple(record.get("notes", ())),
            Booking.from_dict(record["booking"]) if "booking" in record else None,
        )


def _up(value: float, digits: int) -> str:
    """Format a number rounded up, so that a printed epsilon is never too small."""
    unit = 10.0**-digits
    rounded = math.ceil(round(value / unit, 6)) * unit
    return f"{rounded:.{digits}f}"


def _one(relation: Relation) -> str:
    return "the records of any one person say" if relation.by_person else "any one record says"


def _factor(epsilon: float) -> str:
    """Format exp(epsilon), as a decimal number unless it is too large to read."""
    return _up(math.exp(epsilon), 3) if epsilon <= 10.0 else f"exp({_up(epsilon, 4)})"


def _statement(promise: Guarantee, delta: float) -> str:
    if promise.voided_by:
        return (
            "This result carries NO privacy guarantee: "
            + "; ".join(promise.voided_by)
            + ". Do not publish it as private."
        )
    epsilon = promise.epsilon(delta)
    if math.isinf(epsilon):
        return (
            f"This result carries no guarantee at delta = {delta:g}; it has one only for larger "
            "delta. Ask for statement(delta=1e-6), for instance."
        )
    digits = 4 if epsilon >= 1e-3 else 12
    parts = [
        f"This result is differentially private with epsilon = {_up(epsilon, digits)} and "
        f"delta = {delta:g}, with respect to {promise.relation.sentence}.",
        f"In plain words: whatever {_one(promise.relation)}, and whatever else an observer knows, "
        f"the probability of any outcome changes by at most a factor of "
        f"{_factor(epsilon)}"
        + (f", except with probability at most {delta:g}." if delta > 0 else "."),
        f"Computed by: {promise.route(delta)}.",
    ]
    parts[1:1] = promise.notes
    if promise.assumptions:
        parts.append("Provided that: " + "; ".join(promise.assumptions) + ".")
    if promise.booking is not None:
        parts.append(f"Booked as {promise.booking}.")
    return " ".join(parts)


def replace_from_add_remove(guarantee: Guarantee, delta: float) -> Budget:
    """Return the guarantee under REPLACE that follows from a guarantee under ADD_REMOVE.

    A replacement is a removal and an addition, so for any epsilon

        delta_replace(2 epsilon) <= (1 + exp(epsilon)) delta_add_remove(epsilon)

    (group privacy for two steps). For a Gaussian mechanism mu doubles, which is tighter and is used
    if all events are Gaussian. No conversion exists in the other direction: REPLACE does not
    protect the number of records.

    Examples
    --------
    >>> from tacit.privacy import Gaussian
    >>> from tacit.privacy import Guarantee, replace_from_add_remove
    >>> converted = replace_from_add_remove(Guarantee(Gaussian(7.461264)), 1e-5)
    >>> round(converted.epsilon, 4)
    1.0
    """
    if guarantee.relation is not Relation.ADD_REMOVE:
        raise ValueError(
            "only an ADD_REMOVE guarantee converts to REPLACE; this one is already under "
            f"{guarantee.relation.name}. No sound conversion goes the other way."
        )
    mus = [(leaf.gaussian_mu(), n) for leaf, n in guarantee.event.leaves()]
    if all(mu is not None for mu, _ in mus):
        mu = 2 * math.sqrt(sum(n * mu**2 for mu, n in mus if mu is not None))
        # A Budget needs a positive epsilon: the least positive double stands for 0.
        return Budget(max(gaussian_epsilon(mu, delta), 5e-324), delta, Relation.REPLACE)
    if delta == 0.0:
        return Budget(2 * guarantee.epsilon(0.0), 0.0, Relation.REPLACE)

    def excess(epsilon: float) -> float:
        one_way = guarantee.delta(epsilon)
        if one_way == 0.0:
            return -math.inf
        return math.log(one_way / delta) + epsilon + math.log1p(math.exp(-epsilon))

    return Budget(2 * decreasing_root(excess, 1.0, 1e-9), delta, Relation.REPLACE)
