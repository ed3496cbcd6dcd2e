"""Make releases: a value together with the event that states its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from tacit.noise import replay as tapes
from tacit.noise.bounded import Bounded
from tacit.noise.source import Source, secure_source
from tacit.privacy.events import Event, NonPrivate

T = TypeVar("T")

SEEDED = "drawn from a seeded generator, for tests only"


@dataclass(frozen=True, eq=False)
class Release(Generic[T]):
    """A value with noise, and the event that states its cost.

    Notes
    -----
    **Guarantee**. ``value`` has the law stated by the function that returned it, and its cost is
    ``event``. The event is `NonPrivate` if the noise came from a seeded generator.

    Examples
    --------
    >>> from tacit.noise import Norm
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.laplace import laplace
    >>> from tacit.privacy import Relation
    >>> count = Bounded(120.0, 1.0, Norm.L1, Relation.ADD_REMOVE)
    >>> laplace(count, epsilon=0.5).event.epsilon
    0.5
    """

    value: T
    event: Event


def emit(
    kind: str,
    bounded: Bounded | Callable[[], Bounded],
    event: Event,
    source: Source | None,
    draw: Callable[[Source], T],
    public: Mapping[str, object] | None = None,
) -> Release[T]:
    """Make one release. Every mechanism ends here, and only here noise is drawn.

    ``bounded`` may be a function if the value that an audit compares is costly to compute.
    """
    source = _checked(source)
    tape = tapes.current()
    if tape is None:
        return Release(draw(source), priced(event, source))
    seen = bounded() if callable(bounded) else bounded
    if isinstance(tape, tapes.Player):
        return Release(tape.release(kind, seen, event, public or {}), priced(event, source))
    value = draw(source)
    tape.release(tapes.Entry(kind, _copy(seen), event, _copied(value), public or {}))
    return Release(value, priced(event, source))


def emit_implied(
    kind: str,
    implied: Callable[[T], Bounded],
    event: Event,
    source: Source | None,
    draw: Callable[[Source], T],
) -> Release[T]:
    """Make one release whose noise enters before the output is computed.

    An audit then compares the value that ``implied`` computes from the records at the released
    output. The noise that explains the output moves as far as that value does.
    """
    source = _checked(source)
    tape = tapes.current()
    if tape is None:
        return Release(draw(source), priced(event, source))
    if isinstance(tape, tapes.Player):
        seen: T = tape.peek(kind)
        return Release(tape.release(kind, implied(seen), event, {}), priced(event, source))
    value = draw(source)
    tape.release(tapes.Entry(kind, _copy(implied(value)), event, _copied(value), {}))
    return Release(value, priced(event, source))


def _checked(source: Source | None) -> Source:
    if source is None:
        return secure_source()
    if not (hasattr(source, "words") and hasattr(source, "is_secure")):
        raise TypeError(
            f"source must be a Source, got {source!r}; leave it out for a secure one, or pass "
            "seeded_source(seed) in tests."
        )
    return source


def priced(event: Event, source: Source) -> Event:
    """Return the event, or `NonPrivate` if the source is seeded."""
    if source.is_secure or event.reasons_void():
        return event
    return NonPrivate(reason=SEEDED, would_be=event, relation=event.relation)


def _copied(value: T) -> T:
    return value.copy() if isinstance(value, np.ndarray) else value


def _copy(bounded: Bounded) -> Bounded:
    # The caller may reuse its buffer before the replay.
    return Bounded(_copied(bounded.value), bounded.sensitivity, bounded.norm, bounded.relation)
