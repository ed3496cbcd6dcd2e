"""Smooth noisy sums of a column's bins by their known noise (a Wiener filter).

The sum of residuals in a bin is

    g = info * curve + N(0, info) + N(0, noise_std^2),   info = count * curvature

in units in which a residual's variance equals the curvature: p (1 - p) for classes. The curve has
the prior N(0, tau^2 C), with C = 0.6 exp(-|k - l| / (K / 2)) + 0.4 I over a number's bins and C = I
for words and missing values. tau maximises the marginal likelihood: a curve that is noise gets
tau = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.additive.bins import Bins
from tacit.arrays import Array

# The prior correlation of neighbouring bins, and how far it reaches in shares of the bins.
_SMOOTH = 0.6
_RANGE = 0.5
# Candidate values of tau: 0, and 24 from 0.005 to 5 units of the score (log-odds for classes).
_TAUS = np.append(0.0, np.geomspace(0.005, 5.0, 24))
# A column is kept if its likelihood gains so many nats over tau = 0.
LEAST_GAIN = 0.5


@dataclass(frozen=True, eq=False)
class Smoothed:
    """A smoothed curve, the gain of its log likelihood over no curve, and tau."""

    curve: Array
    gain: float
    tau: float


def prior_correlation(bins: Bins) -> Array:
    """Return C, the prior correlation of a column's bins.

    Only neighbours in order are correlated: words and missing values are not.
    """
    matrix = np.eye(bins.n_bins)
    k = bins.n_ordered
    if k > 1:
        place = np.arange(k)
        distance = np.abs(place[:, None] - place) / (_RANGE * k)
        matrix[:k, :k] = _SMOOTH * np.exp(-distance) + (1 - _SMOOTH) * np.eye(k)
    return matrix


def smooth(observed: Array, variance: Array, correlation: Array, unit: float = 1.0) -> Smoothed:
    """Return the posterior mean of a curve that was observed with independent noise.

    Parameters
    ----------
    observed
        The curve in each bin, plus noise.
    variance
        The variance of the noise in each bin.
    correlation
        C of the prior N(0, tau^2 C).
    unit
        The unit of the candidates for tau.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.additive.smoothing import smooth
    >>> step = np.repeat([-1.0, 1.0], 8)
    >>> smooth(step, np.full(16, 0.01), np.eye(16)).curve.round(2)[[0, 15]]
    array([-0.99,  0.99])
    >>> smooth(0.01 * step, np.full(16, 1.0), np.eye(16)).tau
    0.0
    """
    # With w = D^-1/2 observed and D^-1/2 C D^-1/2 = U L U', the coordinates of U' w are independent
    # with variances 1 + tau^2 L: one eigendecomposition serves all tau.
    root = np.sqrt(variance)
    values, vectors = np.linalg.eigh(correlation / root[:, None] / root)
    values = np.maximum(values, 0.0)
    coordinates = vectors.T @ (observed / root)
    taus = unit * _TAUS
    total = 1.0 + taus[:, None] ** 2 * values
    likelihood = -0.5 * (np.log(total) + coordinates**2 / total).sum(axis=1)
    best = int(np.argmax(likelihood))
    tau = float(taus[best])
    # Posterior mean: tau^2 C D^-1/2 U (1 + tau^2 L)^-1 U' w = D^1/2 U (tau^2 L / total) U' w.
    shares = tau**2 * values / total[best]
    curve = root * (vectors @ (shares * coordinates))
    return Smoothed(curve, float(likelihood[best] - likelihood[0]), tau)
