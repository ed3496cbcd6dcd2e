"""Record releases, and replay them on a neighbouring data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.noise.bounded import Bounded
from tacit.privacy.events import Event

# Tolerance for the float error of the audit's own subtraction, not for the mechanism.
_AUDIT_SLACK = 1e-9


class ReplayMismatch(AssertionError):
    """The run on the neighbour made other releases or decisions than the recorded run."""


class SensitivityViolation(ReplayMismatch):
    """A value moved further than its declared sensitivity."""


@dataclass(frozen=True, eq=False)
class Entry:
    """One release: the value before noise, its event, and the released value."""

    kind: str
    bounded: Bounded
    event: Event
    value: Any
    public: Mapping[str, object]


@dataclass(frozen=True)
class Decision:
    """One public decision, such as a number of steps."""

    name: str
    value: object


@dataclass
class Tape:
    """Recorded releases and decisions, in order. It holds private values: never store or send one.

    Examples
    --------
    >>> from tacit.noise import Norm, recording, replaying
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.gaussian import gaussian
    >>> from tacit.privacy import Relation
    >>> def count(n):
    ...     bounded = Bounded(float(n), 1.0, Norm.L2, Relation.ADD_REMOVE)
    ...     return gaussian(bounded, noise_multiplier=2.0).value
    >>> with recording() as tape:
    ...     first = count(100)
    >>> with replaying(tape):
    ...     second = count(101)
    >>> first == second
    True
    """

    entries: list[Entry | Decision] = field(default_factory=list)


@dataclass
class Recorder:
    """Writes releases and decisions to a tape."""

    tape: Tape

    def release(self, entry: Entry) -> None:
        """Record a release."""
        self.tape.entries.append(entry)

    def decide(self, decision: Decision) -> None:
        """Record a decision."""
        self.tape.entries.append(decision)


@dataclass
class Player:
    """Replays a tape, and compares each release and decision with the recorded one."""

    tape: Tape
    position: int = 0

    def release(self, kind: str, bounded: Bounded, event: Event, public: Any) -> Any:
        """Compare a release with the recorded one and return the recorded output."""
        number, entry = self._next(f"a release of kind {kind!r}")
        if not isinstance(entry, Entry):
            raise ReplayMismatch(
                f"entry {number}: the recorded run decided {entry.name!r}, the replayed run "
                f"released a {kind!r}; the sequence of releases must not depend on the data."
            )
        _compare(number, entry, Entry(kind, bounded, event, None, public))
        _compare_values(number, entry, bounded)
        return np.copy(entry.value) if isinstance(entry.value, np.ndarray) else entry.value

    def peek(self, kind: str) -> Any:
        """Return the recorded output of the next release."""
        if self.position < len(self.tape.entries):
            entry = self.tape.entries[self.position]
            if isinstance(entry, Entry) and entry.kind == kind:
                return np.copy(entry.value) if isinstance(entry.value, np.ndarray) else entry.value
        raise ReplayMismatch(
            f"entry {self.position}: the replayed run made a release of kind {kind!r}, the "
            "recorded run did not; the sequence of releases must not depend on the data."
        )

    def decide(self, decision: Decision) -> None:
        """Compare a decision with the recorded one."""
        number, entry = self._next(f"the decision {decision.name!r}")
        if entry != decision:
            raise ReplayMismatch(
                f"entry {number}: recorded {entry!r}, replayed {decision!r}; a public decision "
                "must be a function of releases and public facts."
            )

    def _next(self, what: str) -> tuple[int, Entry | Decision]:
        if self.position >= len(self.tape.entries):
            raise ReplayMismatch(
                f"entry {self.position}: the replayed run made {what}, but the recorded run had "
                "ended; the number of releases must not depend on the data."
            )
        self.position += 1
        return self.position - 1, self.tape.entries[self.position - 1]

    def finish(self) -> None:
        """Raise if recorded entries are left."""
        left = len(self.tape.entries) - self.position
        if left:
            raise ReplayMismatch(
                f"entry {self.position}: the replayed run ended with {left} recorded entries "
                "left; the number of releases must not depend on the data."
            )


_CURRENT: ContextVar[Recorder | Player | None] = ContextVar("tacit_tape", default=None)


def current() -> Recorder | Player | None:
    """Return the recorder or player in use, or None."""
    return _CURRENT.get()


@contextmanager
def recording() -> Iterator[Tape]:
    """Record every release and decision made inside the ``with`` block on a new tape."""
    tape = Tape()
    token = _CURRENT.set(Recorder(tape))
    try:
        yield tape
    finally:
        _CURRENT.reset(token)


@contextmanager
def replaying(tape: Tape) -> Iterator[None]:
    """Replay ``tape``: releases return the recorded values and draw nothing.

    Notes
    -----
    **Guarantee**. Inside the block, `ReplayMismatch` is raised if a release differs from the
    recorded one in kind, event, relation, sensitivity, norm, shape or public parameters, if a
    decision differs, or if there are more or fewer of them. `SensitivityViolation` is raised if a
    value moved further than its sensitivity.

    **Assumes** that every release and every public decision of the code under audit is made
    through this package.
    """
    player = Player(tape)
    token = _CURRENT.set(player)
    try:
        yield
    finally:
        _CURRENT.reset(token)
    player.finish()


def decide(name: str, value: object) -> None:
    """State a public decision, so that a replay can check that it is public.

    Examples
    --------
    >>> from tacit.noise.replay import decide
    >>> decide("n_steps", 100)
    """
    tape = current()
    if tape is not None:
        tape.decide(Decision(name, value))


def _compare(number: int, recorded: Entry, replayed: Entry) -> None:
    for what in ("kind", "event", "public"):
        _same(number, what, getattr(recorded, what), getattr(replayed, what))
    for what in ("relation", "sensitivity", "norm"):
        _same(number, what, getattr(recorded.bounded, what), getattr(replayed.bounded, what))
    _same(number, "shape", np.shape(recorded.bounded.value), np.shape(replayed.bounded.value))


def _same(number: int, what: str, recorded: object, replayed: object) -> None:
    if recorded != replayed:
        raise ReplayMismatch(
            f"entry {number}: {what} differs: recorded {recorded!r}, replayed {replayed!r}; it "
            "must be a function of releases and public facts."
        )


def _compare_values(number: int, recorded: Entry, replayed: Bounded) -> None:
    difference = np.subtract(replayed.value, recorded.bounded.value)
    distance = replayed.norm.length(difference)
    if distance > replayed.sensitivity * (1.0 + _AUDIT_SLACK):
        raise SensitivityViolation(
            f"entry {number} ({recorded.kind}): the value moved by {distance:.9g} in "
            f"{replayed.norm.name}, declared sensitivity {replayed.sensitivity:.9g}; the declared "
            "sensitivity is too small, or the records were not clipped."
        )
    both_ways = difference.min() < -_AUDIT_SLACK * replayed.sensitivity and (
        difference.max() > _AUDIT_SLACK * replayed.sensitivity
    )
    if recorded.public.get("monotone") and both_ways:
        raise SensitivityViolation(
            f"entry {number} ({recorded.kind}): declared monotone, but some utilities rose (by "
            f"{difference.max():.9g}) while others fell (by {-difference.min():.9g}); pass "
            "monotone=False."
        )
