"""What is left of comparing events after the fact: goes with the last caller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tacit.privacy import Composed, Event, Gaussian, NonPrivate, Relation


def receipt(released: Sequence[Event], planned: Event) -> Event:
    """Return the event of several releases together, which must be the planned ones.

    Raises
    ------
    RuntimeError
        If what was released is not, leaf by leaf, what was planned and charged.
    """
    void = [why for event in released for why in event.reasons_void()]
    bare = [
        event.would_be if isinstance(event, NonPrivate) and event.would_be else event
        for event in released
    ]
    if _leaf_counts(*bare) != _leaf_counts(planned):
        raise RuntimeError(
            f"released {Composed(tuple(bare))} but planned {planned}: the release is withheld. "
            "This is a bug in the mechanism; please report it as SECURITY.md says."
        )
    return NonPrivate(void[0], would_be=planned, relation=planned.relation) if void else planned


def _leaf_counts(*events: Event) -> Counter[Event]:
    counts: Counter[Event] = Counter()
    for event in events:
        for leaf, n in event.leaves():
            counts[leaf] += n
    return counts


def on_a_sample(event: Event, sampled: Callable[[float, Relation], Event]) -> Event:
    """Return the event of a Gaussian release whose records were a Poisson sample."""
    bare = event.would_be if isinstance(event, NonPrivate) else event
    if not isinstance(bare, Gaussian):
        raise TypeError(f"expected a Gaussian release, got {event!r}.")
    found = sampled(bare.noise_multiplier, bare.relation)
    if isinstance(event, NonPrivate):
        return NonPrivate(event.reason, would_be=found, relation=found.relation)
    return found
