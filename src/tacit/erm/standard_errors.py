"""From noisy matrices to standard errors: post-processing, which costs nothing.

The Hessian was released with noise of a known law. Given that, and with nothing else known of it,
it is the released one minus such noise: many such Hessians are drawn, each gives an estimate and a
variance by the law of the weights, and the interval is that of all of them together. Where the
noise is small they agree; where it is not the interval is wide (docs/proofs/inference.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from tacit.erm.laws import Errors, Law

Array = npt.NDArray[np.float64]

# A normal variable is within this many standard deviations 95 times in 100.
WITHIN = 1.959963984540054
_MOST_DRAWS, _LEAST_DRAWS = 400, 20
_MOST_ENTRIES = 2e7
# An eigenvalue below this share of the noise is noise; what hangs on it is not known.
_KNOWN = 1e-3


class Noisy(NamedTuple):
    """A symmetric matrix with noise of this standard deviation on its diagonal, isotropic."""

    matrix: Array
    std: float


def errors_of(weights: Array, law: Law, hessian: Noisy, middle: Noisy | None) -> Errors:
    """Return estimates without the ridge's pull, and standard errors whose intervals cover.

    Parameters
    ----------
    weights
        As released.
    law
        How they came about.
    hessian
        H, the sum of the records' second derivatives.
    middle
        The sum of the records' squared gradients, g g'; None where it equals H.
    """
    d = weights.size
    # The same draws for the same release, so that it always says the same.
    rng = np.random.default_rng(d)
    spread = hessian.std + (middle.std if middle is not None else 0.0)
    draws = int(np.clip(_MOST_ENTRIES / d**2, _LEAST_DRAWS, _MOST_DRAWS)) if spread else 1
    curvature, axes = np.linalg.eigh(_plausible(hessian, draws, rng))
    curvature = _away_from_zero(curvature, hessian, is_exact=law.gram is not None)
    inner = np.swapaxes(axes, -1, -2)
    truth = (inner @ weights) / law.share(curvature)
    noise = law.noise(curvature, truth)
    if middle is None:
        between = noise + curvature[..., :, None] * np.eye(d)
    else:
        between = noise + inner @ _positive(_plausible(middle, draws, rng)) @ axes
    # variance of axis' truth:  U B U',  U = axes / h
    reach = axes / curvature[..., None, :]
    variance = np.sum((reach @ between) * reach, axis=-1)
    centres = (axes @ truth[..., None])[..., 0]
    return _pooled(centres, np.sqrt(np.maximum(variance, 0.0)))


def _plausible(noisy: Noisy, draws: int, rng: np.random.Generator) -> Array:
    """Return matrices that may be the one that noise was added to."""
    d = noisy.matrix.shape[0]
    if not noisy.std:
        return np.broadcast_to(noisy.matrix, (draws, d, d))
    noise = rng.standard_normal((draws, d, d))
    # variance 1 on the diagonal, 1/2 off it
    symmetric = (noise + np.swapaxes(noise, -1, -2)) / 2
    symmetric[:, np.arange(d), np.arange(d)] = noise[:, np.arange(d), np.arange(d)]
    result: Array = noisy.matrix - noisy.std * symmetric
    return result


def _positive(matrices: Array) -> Array:
    values, axes = np.linalg.eigh(matrices)
    result: Array = (axes * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(axes, -1, -2)
    return result


def _away_from_zero(curvature: Array, hessian: Noisy, is_exact: bool) -> Array:
    """Return eigenvalues that can be divided by: where nothing is known, next to none.

    A Hessian is not negative; the noisy Gram matrix that weights were solved with may be.
    """
    least = max(_KNOWN * hessian.std, 1e-12 * float(np.abs(hessian.matrix).max()), 1e-300)
    if is_exact:
        result: Array = np.copysign(np.maximum(np.abs(curvature), least), curvature)
        return result
    return np.maximum(curvature, least)


def _pooled(centres: Array, stds: Array) -> Errors:
    """Return the middle, and the half-width in units of 1.96 that holds 95 % of the mixture."""
    middle = np.median(centres, axis=0)
    away = centres - middle
    low, high = np.zeros_like(middle), np.max(np.abs(away) + 3 * stds, axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(60):
            half = (low + high) / 2
            inside = np.mean(ndtr((half - away) / stds) - ndtr((-half - away) / stds), axis=0)
            short = inside < 2 * ndtr(WITHIN) - 1
            low, high = np.where(short, half, low), np.where(short, high, half)
    return Errors(middle, np.where(math.inf > high, high, math.inf) / WITHIN)
