"""Privacy-loss distributions through dp-accounting, and the Gaussian's on atoms.

Under P the loss is L = mu^2/2 + mu Z, Z ~ N(0, 1). An event with profile h, composed with Gaussians
of total mu, has the profile (docs/proofs/events.md, section 11)

    delta(e) = E h(e - L) <= sum over atoms of mass * h(e - loss)

The bound holds since h is convex in exp(e): on a cell [a, b] of losses h lies below its chord in
exp(-L), which splits the mass of the cell between a and b. For a given event the bound is a fixed
sum, which decreases in e.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erfcx, ndtr

from tacit.arrays import Integers
from tacit.privacy.events.base import Array, Event

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import DensePLDPmf, PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


# Mass with Z below LOW is moved up to LOW; it changes delta by at most 1e-19, as h grows with L.
# Beyond FINE a delta above 1e-18 has no mass left, so cells are wide. The mass beyond HIGH, 6e-300,
# counts as an infinite loss.
_LOW, _FINE, _HIGH, _WIDE = -9.0, 9.0, 37.0, 0.25
# Cell width times the slope of log h: chords overstate delta by about FINENESS^2 / 12.
_FINENESS = 0.015
# Cells are wider than 1e-3, so rounding loses less than 3e-9 of a mass and 1e-9 of a profile.
_ROUND_UP = 1.0 + 1e-8
_VAST = 50.0  # wider cells put all mass on the upper end
_LEAST_MU = 1e-100  # a smaller mu is rounded up to it, so that widths do not vanish


@dataclass(frozen=True)
class GaussianAtoms:
    """Losses, the mass of each, and the mass of an infinite loss."""

    losses: Array
    masses: Array
    at_infinity: float


def gaussian_atoms(mu: float, beside: float) -> GaussianAtoms:
    """Return atoms that dominate the Gaussian mechanism's loss.

    Parameters
    ----------
    mu
        Total mu of all Gaussian mechanisms.
    beside
        Approximate mu of the other event; it affects accuracy, not soundness.

    Examples
    --------
    >>> from tacit.privacy.accounting.loss_distribution import gaussian_atoms
    >>> atoms = gaussian_atoms(0.5, 2.0)
    >>> round(float(atoms.masses.sum()), 6)
    1.0
    """
    mu = max(mu, _LEAST_MU)
    z = _cells(mu, mu / math.hypot(mu, beside))
    mass, moment = _moments(z)
    width = np.minimum(mu * np.diff(z), _VAST)
    # With y = L - a in [0, d] and m = d/2, the chord puts a share of
    # (1 - exp(-y)) / (1 - exp(-d)) <= (m^2/2 + exp(-m) y) / (1 - exp(-d)) on b (tangent at m).
    share = (width**2 / 8 * mass + np.exp(-width / 2) * mu * moment) / -np.expm1(-width)
    upper_share = np.minimum(share, mass)
    masses = np.zeros_like(z)
    masses[:-1] += mass - upper_share
    masses[1:] += upper_share
    masses[0] += ndtr(z[0])
    return GaussianAtoms(mu * mu / 2 + mu * z, masses * _ROUND_UP, float(ndtr(-z[-1])))


def _cells(mu: float, share: float) -> Array:
    """Return cell edges in units of Z, fine enough for a delta down to about 1e-16.

    At the Z that determine delta, log h has slope Z in these units, but at most 9 times ``share``.
    """
    wide = np.arange(_LOW, _HIGH, _WIDE)
    steepest = -_LOW * share
    slope = np.clip(wide + _WIDE, min(1.0, steepest), steepest) + min(mu, 2.0)
    pieces = np.where(wide < _FINE, np.ceil(_WIDE * slope / _FINENESS), 1.0)
    ends = np.concatenate([[0.0], np.cumsum(pieces)])
    edges: Array = np.interp(np.arange(ends[-1] + 1), ends, np.append(wide, _HIGH))
    return edges


def _moments(z: Array) -> tuple[Array, Array]:
    """Return E[1; a < Z < b] and E[Z - a; a < Z < b] of every cell, to nearly full precision.

    With phi the density, R Mills' ratio and r = phi(b) / phi(a), for 0 <= a < b

        E[1] = phi(a) (R(a) - r R(b))       E[Z - a] = phi(a) (1 - r) - a E[1]

    A cell below 0 is the mirror image of one above.
    """
    below = z[:-1] < 0.0
    a, b = np.where(below, -z[1:], z[:-1]), np.where(below, -z[:-1], z[1:])
    log_ratio = -(b - a) * (a + b) / 2
    density = np.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    mass = _mills(a) - np.exp(log_ratio) * _mills(b)
    moment = -np.expm1(log_ratio) - a * mass
    moment = np.where(below, (b - a) * mass - moment, moment)
    return density * mass, density * moment


def _mills(t: Array) -> Array:
    ratio: Array = math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2.0))
    return ratio


Leaves = Sequence[tuple[Event, int]]

_TAIL = 1e-19  # loss mass beyond the grid, moved to infinity (never dropped)
_LEAST_PROBED = 1e-12
_MOST_POINTS = 2**20  # of one event's grid: a few seconds
_LEAST = 1e-290  # a smaller delta is taken for it: dp-accounting divides by masses
_PROFILE_DIGITS = 1.0 + 1e-8  # profiles keep nine digits


def from_profile(event: Event, interval: float) -> PrivacyLossDistribution:
    """Return the pessimistic distributions through the points of an event's profiles.

    Connecting the dots of delta(epsilon) by lines in exp(epsilon) gives a pair that dominates
    the event's (docs/proofs/events.md, section 9), since the profile is convex there. Where the
    two orders of neighbours have one profile, one distribution serves for both. Otherwise each
    order has its own: above epsilon = 0 its own profile, below 0 the reflection of the other
    order's, and of all these points the lower convex hull (section 14).
    """

    def profile(epsilon: Array) -> Array:
        deltas = event.profile(epsilon)
        if deltas is None:
            raise ValueError(f"{event} has no profile; account for it by the Renyi route.")
        return deltas

    pure = event.pure_epsilon()
    high = pure if math.isfinite(pure) else _high(profile)
    grid = np.arange(math.ceil(high / interval) + 1)
    each = _two_orders(event, np.asarray(grid * interval, dtype=np.float64))
    if each is None:
        return _through_dots(profile, high, interval)
    from dp_accounting.pld import privacy_loss_distribution

    # Inflated before they are reflected: 1 - exp(epsilon) is exact, and must stay so.
    with_record, without = (np.clip(deltas * _PROFILE_DIGITS, _LEAST, 1.0) for deltas in each)
    return privacy_loss_distribution.PrivacyLossDistribution(
        _hull(with_record, without, interval), _hull(without, with_record, interval)
    )


def _two_orders(event: Event, epsilon: Array) -> tuple[Array, Array] | None:
    """Return an event's profiles in the two orders of neighbours, None if one serves for both."""
    each = event.profiles_by_order(epsilon)
    return None if each is None or each[0] is each[1] else each


def _hull(own: Array, other: Array, interval: float) -> PLDPmf:
    """Return the distribution of one order from both orders' deltas at 0, interval, 2 interval ...

    The true profile is convex in alpha = exp(epsilon) and below every point

        (alpha, own delta(alpha))   and   (1/alpha, 1 - 1/alpha + other delta(alpha) / alpha)

    so it is below their lower convex hull, whose corners carry the mass.
    """
    from dp_accounting.pld import pld_pmf

    n = len(own) - 1
    epsilon: Array = np.arange(-n, n + 1, dtype=np.float64) * interval
    deltas = np.empty(2 * n + 1)
    deltas[n:] = own
    deltas[n] = min(own[0], other[0])  # both bound the same total variation
    deltas[:n] = (-np.expm1(epsilon[:n])) + np.exp(epsilon[:n]) * other[:0:-1]
    corners = lower_hull(epsilon, deltas)
    # Rounding may break monotony by an ulp: mend it upwards.
    at_corners = np.clip(np.maximum.accumulate(deltas[corners][::-1])[::-1], 0.0, 1.0)
    return pld_pmf.create_pmf_pessimistic_connect_dots(interval, corners - n, at_corners)


def lower_hull(epsilon: Array, deltas: Array) -> Integers:
    """Return the places of the corners of the lower convex hull of (exp(epsilon), delta)."""
    hull: list[int] = []
    for place in range(len(epsilon)):
        while len(hull) > 1 and not _turns_up(epsilon, deltas, hull[-2], hull[-1], place):
            hull.pop()
        hull.append(place)
    return np.array(hull)


def _turns_up(epsilon: Array, deltas: Array, a: int, b: int, c: int) -> bool:
    """Return whether the slope from b to c is above that from a to b, in exp(epsilon)."""
    # Divided by exp(epsilon_b), so that nothing overflows.
    before, after = -math.expm1(epsilon[a] - epsilon[b]), math.expm1(epsilon[c] - epsilon[b])
    return bool((deltas[b] - deltas[a]) * after < (deltas[c] - deltas[b]) * before)


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
    return _composed(tuple(leaves), interval)


# A guarantee and a price ask for the same distribution one after the other. Few are kept: one may
# take 16 MB. Nothing changes a distribution once it is made.
_REMEMBERED = 4


@lru_cache(maxsize=_REMEMBERED)
def _one(event: Event, interval: float) -> PrivacyLossDistribution | None:
    return event.loss_distribution(interval)


@lru_cache(maxsize=_REMEMBERED)
def _composed(leaves: tuple[tuple[Event, int], ...], interval: float) -> PrivacyLossDistribution:
    from dp_accounting.pld import privacy_loss_distribution

    total: PrivacyLossDistribution | None = None
    for event, count in leaves:
        part = _one(event, interval)
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
    # What is infinite (a leak) is so on any grid.
    spread = [(_variance(event, order), n) for event, n in leaves]
    finite = [(size, n) for size, n in spread if math.isfinite(size)]
    variance = sum(n * size for size, n in finite)
    n_compositions = max(sum(n for _, n in finite), 1)
    return min(max(0.03 * math.sqrt(variance / n_compositions), 1e-7), 0.5)


def _variance(event: Event, order: Array) -> float:
    """Return about the variance of an event's loss.

    A Renyi bound of objective perturbation counts the Jacobian in full and is far above it. There
    the total variation tells: that of a Gaussian mechanism is about mu / 2.5.
    """
    each = _two_orders(event, np.zeros(1))
    if each is None:
        return float(event.renyi(order)[0])
    return (2.5 * float(min(each[0][0], each[1][0]))) ** 2


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
    share, deltas = 0.0, []
    ratio, at = math.exp(-pmf._discretization), float(pmf._infinity_mass)
    grow = math.expm1(pmf._discretization)
    for mass in masses[::-1].tolist():  # floats of Python: numpy's take four times as long
        at += grow * share
        deltas.append(at)
        share = ratio * (share + mass)
    return losses, np.minimum(deltas[::-1], 1.0)
