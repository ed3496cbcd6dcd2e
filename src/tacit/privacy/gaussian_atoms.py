"""Approximate the Gaussian mechanism's privacy loss from above by atoms.

Under P the loss is L = mu^2/2 + mu Z, Z ~ N(0, 1). An event with profile h, composed with Gaussians
of total mu, has the profile (docs/proofs/events.md, section 11)

    delta(e) = E h(e - L) <= sum over atoms of mass * h(e - loss)

The bound holds since h is convex in exp(e): on a cell [a, b] of losses h lies below its chord in
exp(-L), which splits the mass of the cell between a and b. For a given event the bound is a fixed
sum, which decreases in e.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr

Array = npt.NDArray[np.float64]

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
    >>> from tacit.privacy.gaussian_atoms import gaussian_atoms
    >>> atoms = gaussian_atoms(0.5, 2.0)
    >>> round(float(atoms.masses.sum()), 6)
    1.0
    """
    mu = max(mu, _LEAST_MU)
    z = _cells(mu, mu / math.hypot(mu, beside))
    mass, reach = _moments(z)
    width = np.minimum(mu * np.diff(z), _VAST)
    # With y = L - a in [0, d] and m = d/2, the chord puts a share of
    # (1 - exp(-y)) / (1 - exp(-d)) <= (m^2/2 + exp(-m) y) / (1 - exp(-d)) on b (tangent at m).
    share = (width**2 / 8 * mass + np.exp(-width / 2) * mu * reach) / -np.expm1(-width)
    moved = np.minimum(share, mass)
    masses = np.zeros_like(z)
    masses[:-1] += mass - moved
    masses[1:] += moved
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
    reach = -np.expm1(log_ratio) - a * mass
    reach = np.where(below, (b - a) * mass - reach, reach)
    return density * mass, density * reach


def _mills(t: Array) -> Array:
    ratio: Array = math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2.0))
    return ratio
