"""Privacy-loss distributions through dp-accounting: one for each event, composed by its count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.privacy.events.base import Event

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_TAIL = 1e-19  # loss mass beyond the grid, moved to infinity (never dropped)
_LEAST_PROBED = 1e-12
_MOST_POINTS = 2**20  # of one event's grid: a few seconds


def from_profile(event: Event, interval: float) -> PrivacyLossDistribution:
    """Return the pessimistic distribution through the points of an event's profile.

    Connecting the dots of delta(epsilon) by lines in exp(epsilon) gives a pair that dominates
    the event's (docs/proofs/events.md, section 9), since the profile is convex there. The
    profile bounds both directions, so one distribution serves for both.
    """
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    low, high = _support(event)
    grid = np.arange(math.floor(low / interval), math.ceil(high / interval) + 1)
    deltas = event.profile(np.asarray(grid * interval, dtype=np.float64))
    if deltas is None:
        raise ValueError(f"{event} has no profile; account for it by the Renyi route.")
    # rounding may break monotony by an ulp: mend it upwards
    deltas = np.clip(np.maximum.accumulate(deltas[::-1])[::-1], 0.0, 1.0)
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(interval, grid, deltas)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)


def _support(event: Event) -> tuple[float, float]:
    """Return losses between which all but ``_TAIL`` of the mass lies (or the pure bounds)."""
    pure = event.pure_epsilon()
    if math.isfinite(pure):
        return -pure, pure
    probes = np.geomspace(_LEAST_PROBED, 1e6, 600)
    above = event.profile(probes)
    if above is None:
        raise ValueError(f"{event} has no profile; account for it by the Renyi route.")
    # What the grid leaves out above is delta(high), which becomes mass at infinity; losses below
    # -high are moved up to it. Both are pessimistic, so the choice is about size alone.
    if above[-1] >= 1.0:
        return -1.0, 1.0  # all mass is infinite on any grid
    tiny = np.flatnonzero(above <= _TAIL)
    high = float(probes[tiny[0]] if tiny.size else probes[-1])
    return -high, high


def fits_a_grid(event: Event, interval: float) -> bool:
    """Return whether a grid over the losses of an event, if it is pure, can be convolved."""
    pure = event.pure_epsilon()
    return math.isinf(pure) or 2 * pure <= _MOST_POINTS * interval


def composed(leaves: Sequence[tuple[Event, int]], interval: float) -> PrivacyLossDistribution:
    """Return the distribution of all leaves together, each composed ``count`` times."""
    from dp_accounting.pld import privacy_loss_distribution

    total: PrivacyLossDistribution | None = None
    for event, count in leaves:
        part = event.loss_distribution(interval)
        if part is None:
            raise ValueError(f"{event} has no loss distribution; use the Renyi route.")
        if count > 1 and not _all_infinite(part):
            part = part.self_compose(count, tail_mass_truncation=1e-17)
        # An infinite loss stays so whatever is added; dp-accounting cannot convolve it.
        if total is None or _all_infinite(part):
            total = part
        else:
            total = total.compose(part, tail_mass_truncation=1e-17)
        if _all_infinite(total):
            return total
    return total if total is not None else privacy_loss_distribution.identity()


def _all_infinite(distribution: PrivacyLossDistribution) -> bool:
    return bool(distribution.get_delta_for_epsilon(math.inf) >= 1.0)


def good_interval(leaves: Sequence[tuple[Event, int]]) -> float:
    """Return a grid spacing whose error in the composed epsilon is about 1e-4 relative.

    Each composition adds up to interval^2 / 6 to the variance of the loss, against a total
    variance V of about the Renyi divergence of order 2 summed: interval = 0.03 sqrt(V / count).
    """
    order = np.array([2.0])
    variance = sum(n * float(event.renyi(order)[0]) for event, n in leaves)
    n_compositions = sum(n for _, n in leaves)
    return min(max(0.03 * math.sqrt(variance / n_compositions), 1e-7), 0.5)
