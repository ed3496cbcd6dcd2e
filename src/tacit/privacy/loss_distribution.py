"""Compose privacy-loss distributions through dp-accounting: one per event, composed by count."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.privacy.events.base import Array, Event

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import DensePLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

Leaves = Sequence[tuple[Event, int]]

_TAIL = 1e-19  # loss mass beyond the grid, moved to infinity (never dropped)
_LEAST_PROBED = 1e-12  # least epsilon at which a profile is probed for its range
_MOST_POINTS = 2**20  # of one event's grid; takes a few seconds


def from_profile(event: Event, interval: float) -> PrivacyLossDistribution:
    """Return the pessimistic distribution through the points of an event's profile.

    Lines in exp(epsilon) between points of delta(epsilon) give a pair that dominates the event's
    pair (docs/proofs/events.md, section 9), since the profile is convex in exp(epsilon). The
    profile bounds both directions, so one distribution serves for both.
    """

    def profile(epsilon: Array) -> Array:
        deltas = event.profile(epsilon)
        if deltas is None:
            raise ValueError(f"{event} has no profile; account for it by the Renyi route.")
        return deltas

    pure = event.pure_epsilon()
    return _through_dots(profile, pure if math.isfinite(pure) else _high(profile), interval)


def from_greatest_profile(parts: Sequence[Leaves], interval: float) -> PrivacyLossDistribution:
    """Return the pessimistic distribution through the greatest of the profiles of ``parts``.

    Each part is composed on its own grid. The possible error of its convolutions, 2^-51 each, is
    added to its delta, as in `LossDistributionRoute`.
    """
    each = [composed(leaves, good_interval(leaves)) for leaves in parts]
    hidden = [sum(n for _, n in leaves) * 2.0**-51 for leaves in parts]

    def at(epsilon: float) -> float:
        deltas = [
            float(part.get_delta_for_epsilon(epsilon)) + more
            for part, more in zip(each, hidden, strict=True)
        ]
        return min(max(deltas), 1.0)

    def profile(epsilon: Array) -> Array:
        # Evaluate one epsilon at a time: dp-accounting's vectorised sums cancel and overflow.
        return np.array([at(e) for e in epsilon.tolist()])

    return _through_dots(profile, _high(profile), interval)


def _through_dots(
    profile: Callable[[Array], Array], high: float, interval: float
) -> PrivacyLossDistribution:
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    grid = np.arange(math.floor(-high / interval), math.ceil(high / interval) + 1)
    deltas = profile(np.asarray(grid * interval, dtype=np.float64))
    # Rounding may break monotonicity by an ulp: restore it upwards.
    deltas = np.clip(np.maximum.accumulate(deltas[::-1])[::-1], 0.0, 1.0)
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(interval, grid, deltas)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)


def _high(profile: Callable[[Array], Array]) -> float:
    """Return a loss above which the mass exceeds that at infinity by about `_TAIL` at most."""
    probes = np.geomspace(_LEAST_PROBED, 1e6, 600)
    above = profile(probes)
    # delta(high), the mass above the grid, becomes mass at infinity; losses below -high are moved
    # up to -high. Both are pessimistic, so the choice only affects the size of the grid.
    if above[-1] >= 1.0:
        return 1.0  # all mass is infinite on any grid
    tiny = np.flatnonzero(above <= max(_TAIL, 1.001 * above[-1]))
    return float(probes[tiny[0]])


def fits_a_grid(event: Event, interval: float) -> bool:
    """Return whether the losses of an event, if it is pure, fit a grid that can be convolved."""
    pure = event.pure_epsilon()
    inside = [leaf for part in event.parts() for leaf, _ in part.leaves()]
    return (math.isinf(pure) or 2 * pure <= _MOST_POINTS * interval) and all(
        fits_a_grid(leaf, interval) for leaf in inside
    )


def composed(leaves: Leaves, interval: float) -> PrivacyLossDistribution:
    """Return the distribution of all leaves together, each composed ``count`` times."""
    from dp_accounting.pld import privacy_loss_distribution

    total: PrivacyLossDistribution | None = None
    for event, count in leaves:
        part = event.loss_distribution(interval)
        if part is None:
            raise ValueError(f"{event} has no loss distribution; use the Renyi route.")
        if count > 1 and not _all_infinite(part):
            part = part.self_compose(count, tail_mass_truncation=1e-17)
        # Infinite loss stays infinite in any composition; dp-accounting cannot convolve it.
        if total is None or _all_infinite(part):
            total = part
        else:
            total = total.compose(part, tail_mass_truncation=1e-17)
        if _all_infinite(total):
            return total
    return total if total is not None else privacy_loss_distribution.identity()


def _all_infinite(distribution: PrivacyLossDistribution) -> bool:
    return bool(distribution.get_delta_for_epsilon(math.inf) >= 1.0)


def good_interval(leaves: Leaves) -> float:
    """Return a grid spacing whose error in the composed epsilon is about 1e-4 relative.

    Each composition adds up to interval^2 / 6 to the variance of the loss, against a total
    variance V of about the Renyi divergence of order 2 summed: interval = 0.03 sqrt(V / count).
    """
    order = np.array([2.0])
    # An infinite divergence (a leak) is infinite on any grid, so leave it out.
    spread = [(float(event.renyi(order)[0]), n) for event, n in leaves]
    finite = [(size, n) for size, n in spread if math.isfinite(size)]
    variance = sum(n * size for size, n in finite)
    n_compositions = max(sum(n for _, n in finite), 1)
    return min(max(0.03 * math.sqrt(variance / n_compositions), 1e-7), 0.5)


def points_of(distribution: PrivacyLossDistribution) -> tuple[Array, Array, Array]:
    """Return epsilons and delta at each, per direction; delta is linear in exp(epsilon) between.

    The points are all losses of either direction. For a symmetric pair both arrays are one object.
    """
    one = distribution._pmf_remove.to_dense_pmf()
    if distribution._symmetric:
        losses, deltas = _hockey_sticks(one, one._lower_loss, one.size)
        return losses, deltas, deltas
    two = distribution._pmf_add.to_dense_pmf()
    lower = min(one._lower_loss, two._lower_loss)
    size = max(one._lower_loss + one.size, two._lower_loss + two.size) - lower
    losses, deltas = _hockey_sticks(one, lower, size)
    return losses, deltas, _hockey_sticks(two, lower, size)[1]


def _hockey_sticks(pmf: DensePLDPmf, lower: int, size: int) -> tuple[Array, Array]:
    """Return losses from ``lower`` on, and delta at each.

    With t_k = exp(loss_k), delta(t_k) = delta(t_(k+1)) + (t_(k+1) - t_k) sum_(l > k) p_l / t_l.
    All terms are positive, so no digits cancel.
    """
    losses = (np.arange(size) + lower) * pmf._discretization
    masses = np.zeros(size)
    start = pmf._lower_loss - lower
    masses[start : start + pmf.size] = np.maximum(pmf._probs, 0.0)
    # sum_(l > k) p_l / t_l, times t_k
    share, deltas = 0.0, np.empty(size)
    ratio, at = math.exp(-pmf._discretization), float(pmf._infinity_mass)
    grow = math.expm1(pmf._discretization)
    for k in range(size - 1, -1, -1):
        at += grow * share
        deltas[k] = at
        share = ratio * (share + masses[k])
    return losses, np.minimum(deltas, 1.0)
