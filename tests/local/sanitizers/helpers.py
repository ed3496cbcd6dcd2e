"""What several tests of sanitizers share."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import hyp0f1

from tacit.local import GaussianNoise, HalfSphere, PrivUnit, SphereNoise

ACCEPT, REJECT = 1e-9, 1e-12


def sanitizers(d, epsilon=1.0, norm=1.0):
    """Return one of each kind."""
    return [
        SphereNoise(epsilon, d, norm),
        HalfSphere(epsilon, d, norm),
        PrivUnit(epsilon, d, norm),
        GaussianNoise(epsilon, 1e-6, d, norm),
    ]


def gradient(d, length=1.0):
    """Return a vector of the given length in a random direction."""
    vector = np.random.default_rng().standard_normal(d)
    # Just inside, so that rounding never puts it outside.
    return vector * (length * (1.0 - 1e-15) / np.linalg.norm(vector))


def reports(sanitizer, vector, n):
    """Return n reports of people who all have this gradient."""
    batch = np.broadcast_to(vector, (n, vector.size)).copy()
    return sanitizer.sanitize_batch(batch).value


def worst_z(sample, truth):
    """Return by how many standard errors the mean is off, the worst coordinate."""
    error = sample.std(axis=0) / math.sqrt(len(sample))
    return float(np.max(np.abs(sample.mean(axis=0) - truth) / error))


def is_unbiased(draw, truth):
    """Say whether the mean of draw() is within 4 standard errors of the truth on every coordinate.

    A second sample is drawn if the first says no: chance alone fails both about once in 10^7 runs.
    """
    return any(worst_z(draw(), truth) < 4.0 for _ in range(2))


def log_phi(k, x):
    """Return log E exp(x W_1), W uniform on the sphere of R^k."""
    return np.log(hyp0f1(k / 2, np.square(x) / 4))


def exact_logarithm(cap, mean, r, angle, z):
    """Return log E exp(z X) of X = <V, a> - E<V, a> for each r, by Bessel functions.

    V of the law of ``cap`` about u with probability (1 + r) / 2, about -u otherwise; a at ``angle``
    to u. Nodes and special functions are not those of the code under test.
    """
    nodes, weights = np.polynomial.legendre.leggauss(300)
    up = down = 0.0
    edge = math.acos(cap.gamma)
    for low, high, probability in ((0.0, edge, cap.p), (edge, math.pi, 1.0 - cap.p)):
        theta = (low + high) / 2 + (high - low) / 2 * nodes
        # In the angle the density is proportional to sin^(d-2).
        share = weights * np.exp((cap.d - 2) * np.log(np.sin(theta) / np.sin(theta).max()))
        share *= probability / share.sum()
        share *= np.exp(log_phi(cap.d - 1, z * math.sin(angle) * np.sin(theta)))
        along = z * math.cos(angle) * np.cos(theta)
        up, down = up + share @ np.exp(along), down + share @ np.exp(-along)
    return np.log((1 + r) / 2 * up + (1 - r) / 2 * down) - z * r * mean * math.cos(angle)
