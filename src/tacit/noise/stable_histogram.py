"""Release the values whose noisy count passes a threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from tacit import checks
from tacit.noise.bounded import Bounded, Norm, round_up
from tacit.noise.exact.lattice import add_rounded, lattice_spacing
from tacit.noise.gaussian import GaussianLaw
from tacit.noise.release import Release, emit_implied
from tacit.noise.source import Source
from tacit.privacy.budget import Relation
from tacit.privacy.events import Composed, Event, Gaussian, RareLeak

Key = TypeVar("Key", bound=Any)

# Exceeds the rounding of a few operations.
_DOWN = 1.0 - 2.0**-40


def frequent_event(noise_multiplier: float, leak: float, relation: Relation) -> Event:
    """Return the event of `frequent`."""
    return Composed((Gaussian(noise_multiplier, relation), RareLeak(leak, relation)))


def count_std(noise_multiplier: float, values_each: int, relation: Relation) -> float:
    """Return the standard deviation of the noise on a count.

    A record adds 1 to ``values_each`` counts; a replacement also subtracts 1 from as many.
    """
    n_changed = values_each * (2 if relation is Relation.REPLACE else 1)
    return round_up(noise_multiplier * round_up(math.sqrt(n_changed)))


def threshold(noise_multiplier: float, values_each: int, leak: float, relation: Relation) -> float:
    """Return the threshold that counts of 1 exceed with probability at most ``leak``.

        1 - (1 - q)^k = leak,   1 + s z(q) with z the normal quantile, on the lattice above

    One record can be the only one to have at most k = ``values_each`` values. A number that rounds
    to a multiple of h above the threshold was h / 2 above it, which exceeds the rounding of these
    operations by far.

    Examples
    --------
    >>> from tacit.noise.stable_histogram import threshold
    >>> from tacit.privacy import Relation
    >>> round(threshold(4.0, 1, 1e-6, Relation.ADD_REMOVE), 1)
    20.0
    """
    from scipy.special import ndtri

    std = count_std(noise_multiplier, values_each, relation)
    each = -math.expm1(math.log1p(-leak) / values_each) * _DOWN
    spacing = lattice_spacing(std)
    return math.ceil((1.0 - std * float(ndtri(each))) / spacing) * spacing


def frequent(
    counts: Mapping[Key, int],
    values_each: int,
    noise_multiplier: float,
    leak: float,
    relation: Relation,
    source: Source | None = None,
) -> Release[dict[Key, float]]:
    """Release the values whose noisy count exceeds a threshold, with their noisy counts.

    Parameters
    ----------
    counts : mapping
        Number of records with each value, for the values that any record has.
    values_each : int
        The most values that a record has, each once.
    noise_multiplier : float
        Standard deviation of the noise over the sensitivity of all counts together, which is
        sqrt(values_each), or sqrt(2 values_each) under REPLACE.
    leak : float
        Probability with which a value of one record alone may appear.
    relation : Relation
        Relation of the neighbours.
    source : Source, optional
        Source of random bits. By default a new `secure_source` for this release.

    Notes
    -----
    **Guarantee** (docs/proofs/preprocessing.md, section 2)

    1. The event is Gaussian noise on the counts of both neighbours' common values, and a
    `RareLeak`.
    2. Counts are released on a lattice that depends on ``noise_multiplier`` alone.

    **Assumes** that no record counts for more than ``values_each`` values, nor twice for one, and
    the assumptions of `gaussian`.

    Examples
    --------
    >>> from tacit.noise.stable_histogram import frequent
    >>> from tacit.privacy import Relation
    >>> towns = {"Oslo": 500, "Bergen": 300, "Utsira": 1}
    >>> sorted(frequent(towns, 1, 4.0, 1e-7, Relation.ADD_REMOVE).value)
    ['Bergen', 'Oslo']
    """
    checks.count("values_each", values_each)
    event = frequent_event(noise_multiplier, leak, relation)
    std = count_std(noise_multiplier, values_each, relation)
    least = threshold(noise_multiplier, values_each, leak, relation)
    keys = sorted(counts)

    def draw(words: Source) -> dict[Key, float]:
        exact = np.array([counts[key] for key in keys], dtype=np.float64)
        noisy = np.asarray(add_rounded(exact, std, lattice_spacing(std), GaussianLaw(), words))
        return {key: float(n) for key, n in zip(keys, noisy, strict=True) if n > least}

    def implied(released: dict[Key, float]) -> Bounded:
        # The counts of the kept values, and the norm of all others: together they move at most as
        # far as all counts.
        here = [float(counts.get(key, 0)) for key in released]
        rest = math.sqrt(sum(n * n for key, n in counts.items() if key not in released))
        sensitivity = std / noise_multiplier
        return Bounded(np.array([*here, rest]), sensitivity, Norm.L2, relation)

    return emit_implied("frequent", implied, event, source, draw)
