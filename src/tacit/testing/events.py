"""Check that an event behaves as a privacy cost must."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence

import numpy as np

from tacit.privacy import Composed, Event, Guarantee, Repeated, event_from_dict

_DELTAS = (1e-10, 1e-6, 1e-3)


def check_event(
    family: Callable[[float], Event],
    noises: Sequence[float] = (0.5, 1.0, 2.0, 8.0),
    *,
    count: int = 3,
    cost_at_infinite_noise: float = 0.0,
) -> None:
    """Raise AssertionError unless the events of a family behave as costs must.

    Guarantee: 1. Repeated(e, n) costs as much as n copies of e composed. 2. The cost falls as
    noise grows. 3. It is unbounded without noise and ``cost_at_infinite_noise`` at infinite noise.
    4. JSON restores the same event. 5. delta(epsilon(d)) = d if the profile is continuous, and
    never more. 6. The Renyi curve, the profile and the pure bound do not contradict each other.

    Parameters
    ----------
    family
        Maps a noise parameter (more is more private) to an event.
    noises
        Increasing noise parameters to try.
    count
        Number of repetitions.
    cost_at_infinite_noise
        The epsilon that remains at any amount of noise (objective perturbation's Jacobian).

    Examples
    --------
    >>> from tacit.privacy import Gaussian
    >>> from tacit.testing import check_event
    >>> check_event(Gaussian)
    """
    for noise in noises:
        event = family(noise)
        _check_json(event)
        _check_count(event, count)
        _check_inverse(event)
        _check_faces(event)
    _check_monotone([family(noise) for noise in noises])
    _check_limits(family, cost_at_infinite_noise)


def _close(a: float, b: float, relative: float, absolute: float = 1e-9) -> bool:
    return (math.isinf(a) and math.isinf(b)) or math.isclose(
        a, b, rel_tol=relative, abs_tol=absolute
    )


def _check_json(event: Event) -> None:
    back = event_from_dict(json.loads(json.dumps(event.to_dict(), allow_nan=False)))
    assert back == event, f"JSON round trip changed {event} into {back}"


def _check_count(event: Event, count: int) -> None:
    once = Guarantee(event)
    repeated = Guarantee(Repeated(event, count))
    listed = Guarantee(Composed((event,) * count))
    nested = Guarantee(Composed((event, Repeated(Composed((event,)), count - 1))))
    for delta in _DELTAS:
        a, b, c = repeated.epsilon(delta), listed.epsilon(delta), nested.epsilon(delta)
        assert _close(a, b, 1e-9), f"Repeated costs {a}, Composed {b} for {event} at {delta}"
        assert _close(a, c, 1e-9), f"nesting changes the cost from {a} to {c} for {event}"
        alone = once.epsilon(delta)
        assert a > alone or alone == 0.0, f"{count} of {event} cost no more than one ({a})"


def _check_inverse(event: Event) -> None:
    guarantee = Guarantee(event)
    for delta in _DELTAS:
        epsilon = guarantee.epsilon(delta)
        if 0.0 < epsilon < math.inf:
            back = guarantee.delta(epsilon)
            assert back <= delta * (1 + 1e-6), f"delta(epsilon({delta})) = {back} for {event}"
            just_below = guarantee.delta(epsilon * (1 - 1e-5))
            assert just_below >= delta * (1 - 1e-6), f"epsilon({delta}) is not least for {event}"


def _check_faces(event: Event) -> None:
    from tacit.privacy.accounting.composition import RenyiRoute

    guarantee, renyi = Guarantee(event), RenyiRoute(tuple(event.leaves()))
    for delta in _DELTAS:
        tight, loose = guarantee.epsilon(delta), renyi.epsilon(delta)
        assert tight <= loose * (1 + 1e-3) + 1e-9, f"Renyi {loose} beats {tight} for {event}"
    assert guarantee.epsilon(1e-12) <= event.pure_epsilon() * (1 + 1e-9)
    grid = np.linspace(-3, 3, 61)
    profile = event.profile(grid)
    if profile is not None:
        assert np.all(np.diff(profile) <= 1e-12), f"profile of {event} increases"
        assert np.all(profile >= -np.expm1(np.minimum(grid, 0)) - 1e-12), "profile below 1 - e^eps"
        slopes = np.diff(profile) / np.diff(np.exp(grid))
        assert np.all(np.diff(slopes) >= -1e-9), f"profile of {event} is not convex in e^epsilon"


def _check_monotone(events: Sequence[Event]) -> None:
    for delta in _DELTAS:
        costs = [Guarantee(event).epsilon(delta) for event in events]
        pairs = itertools.pairwise(costs)
        assert all(b < a or a == b == 0 for a, b in pairs), f"cost does not fall: {costs}"


def _check_limits(family: Callable[[float], Event], remaining: float) -> None:
    loud, quiet = Guarantee(family(1e9)), Guarantee(family(1e-2))
    assert _close(loud.epsilon(1e-6), remaining, 1e-3, 1e-3), loud.epsilon(1e-6)
    assert quiet.epsilon(1e-6) > 90.0, quiet.epsilon(1e-6)
