"""From noisy matrices to standard errors: post-processing, which costs nothing.

The Hessian was released with noise of a known law: many Hessians are drawn that may have been it,
each gives an estimate and a variance by the law of the weights, and the interval is that of all of
them together. Where the noise is small they agree; where it is not the interval is wide
(docs/proofs/inference.md, section 3).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from tacit.erm.inference.estimator_law import Errors, Law

Array = npt.NDArray[np.float64]

# A normal variable is within this many standard deviations 95 times in 100.
WITHIN = 1.959963984540054
_MOST_DRAWS, _LEAST_DRAWS = 400, 20
_MOST_ENTRIES = 1e6
# Where nothing is known, weights may be such that scores of the longest rows are so many units.
_ANYTHING = 30.0
_ROUNDED, _TINY = 1e-12, 1e-100
# Intervals are found to 2^-30 of the widest that they could be.
_HALVINGS = 30


class Noisy(NamedTuple):
    """A symmetric matrix with noise of this standard deviation on its diagonal, isotropic."""

    matrix: Array
    std: float


class Total(NamedTuple):
    """A sum with noise of this standard deviation."""

    value: float
    std: float


class Middle(NamedTuple):
    """Squared gradients: the matrix, and the sums of squared slopes and of second derivatives."""

    matrix: Noisy
    squares: Total
    second_derivatives: Total


def errors_of(weights: Array, law: Law, hessian: Noisy, middle: Middle | None) -> Errors:
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
        The sum of the records' squared gradients; None where it equals H.
    """
    d = weights.size
    # The same draws for the same release, so that it always says the same.
    rng = np.random.default_rng(d)
    spread = hessian.std + (middle.matrix.std if middle is not None else 0.0)
    draws = int(np.clip(_MOST_ENTRIES / d**2, _LEAST_DRAWS, _MOST_DRAWS)) if spread else 1
    least = max(_least_curvature(law, d), _ROUNDED * float(np.abs(hessian.matrix).max()), _TINY)
    curvature, axes = _plausible(hessian, draws, rng)
    curvature = _divisible(curvature, least, law)
    inner = np.swapaxes(axes, -1, -2)
    truth = (inner @ weights) / law.share(curvature)
    between = law.noise(curvature, truth) + least * np.eye(d)  # to know nothing is no certainty
    if middle is None:
        between += curvature[..., :, None] * np.eye(d)
    else:
        plausible = (axes * curvature[..., None, :]) @ inner
        between += inner @ _positive(_middles(middle, hessian, plausible, rng)) @ axes
    # U B U' is the covariance of axes' truth, U = axes / h
    inverse_axes = axes / curvature[..., None, :]
    variance = np.maximum(np.sum((inverse_axes @ between) * inverse_axes, axis=-1), 0.0)
    centres = (axes @ truth[..., None])[..., 0]
    # The greatest eigenvalue of the noise is near std sqrt(2 d) (semicircle law).
    stands_out = max(hessian.std * math.sqrt(2 * d), least)
    return _pooled(_estimate(weights, law, hessian, stands_out), centres, np.sqrt(variance))


def _estimate(weights: Array, law: Law, hessian: Noisy, least: float) -> Array:
    """Return the weights without the ridge's pull, as far as H stands out of its noise."""
    curvature, axes = np.linalg.eigh(hessian.matrix)
    share = law.share(_divisible(curvature, least, law))
    result: Array = axes @ ((axes.T @ weights) / share)
    return result


def _plausible(noisy: Noisy, draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return eigenvalues and axes of matrices that may be the one that noise was added to.

    Noise drives eigenvalues apart: by b in the released matrix, by b again in the draws around it.
    b is what the draws show, and is taken back twice (docs/proofs/inference.md, section 3).
    """
    d = noisy.matrix.shape[0]
    released, axes = np.linalg.eigh(noisy.matrix)
    if not noisy.std:
        return np.broadcast_to(released, (draws, d)), np.broadcast_to(axes, (draws, d, d))
    half = rng.standard_normal(((draws + 1) // 2, d, d))
    noise = np.concatenate([half, -half])[:draws]  # of mean 0: what is left of a mean is curvature
    # variance 1 on the diagonal, 1/2 off it
    symmetric = (noise + np.swapaxes(noise, -1, -2)) / 2
    symmetric[:, np.arange(d), np.arange(d)] = noise[:, np.arange(d), np.arange(d)]
    values, axes = np.linalg.eigh(noisy.matrix - noisy.std * symmetric)
    difference = values.mean(axis=0) - released
    return values - 2 * difference, axes


def _middles(middle: Middle, hessian: Noisy, plausible: Array, rng: np.random.Generator) -> Array:
    """Return matrices that the squared gradients may have, for plausible Hessians.

        M = phi H + k D,   D the released M less phi H,   k = 1 - (noise in D)^2 / ||D||^2

    or k = 0: shrunk to what errors alike everywhere would give, as far as D may be noise (James and
    Stein 1961). phi is the sum of squared slopes over that of second derivatives.
    """
    squares, second_derivatives, matrix = middle.squares, middle.second_derivatives, middle.matrix
    if not (matrix.std or squares.std):
        return np.broadcast_to(matrix.matrix, plausible.shape)
    draws, d = plausible.shape[:2]
    noise = rng.standard_normal((2, draws))
    over = np.maximum(
        second_derivatives.value - second_derivatives.std * noise[0], _least(second_derivatives)
    )
    phis = np.maximum(squares.value - squares.std * noise[1], _least(squares)) / over
    phi = float(np.median(phis))
    away = matrix.matrix - phi * hessian.matrix
    # d (d + 1) / 2 free entries, and what is wrong with phi
    expected = d * (d + 1) / 2 * (matrix.std**2 + (phi * hessian.std) ** 2)
    expected += float(np.var(phis)) * float(np.sum(hessian.matrix**2))
    factor = max(1 - expected / max(float(np.sum(away**2)), _TINY), 0.0)
    result: Array = phis[:, None, None] * plausible + factor * away
    return result


def _least_curvature(law: Law, d: int) -> float:
    """Return the curvature that gives a weight, by the noise alone, an error that says nothing."""
    objective, zero = law.objective, np.zeros(d)
    std = math.sqrt(float(law.noise(zero, zero)[0, 0]))
    return std * objective.gradient_scale / (_ANYTHING * objective.score_unit)


def _least(total: Total) -> float:
    """Return a sum that is above 0, at least as large as what noise may hide."""
    return max(total.std, _TINY)


def _positive(matrices: Array) -> Array:
    values, axes = np.linalg.eigh(matrices)
    result: Array = (axes * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(axes, -1, -2)
    return result


def _divisible(curvature: Array, least: float, law: Law) -> Array:
    """Return eigenvalues that can be divided by.

    A Hessian is not negative: where noise made it so, nothing is known. The noisy Gram matrix that
    weights were solved with stays as it is.
    """
    size = np.maximum(np.abs(curvature) if law.gram is not None else curvature, least)
    result: Array = size if law.gram is None else np.copysign(size, curvature)
    return result


def _pooled(estimate: Array, centres: Array, stds: Array) -> Errors:
    """Return the estimate, and in units of 1.96 how far around it 95 % of the mixture lies."""
    away = centres - estimate
    low, high = np.zeros_like(estimate), np.max(np.abs(away) + 3 * stds, axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(_HALVINGS):
            half = (low + high) / 2
            inside = np.mean(ndtr((half - away) / stds) - ndtr((-half - away) / stds), axis=0)
            short = inside < 2 * ndtr(WITHIN) - 1
            low, high = np.where(short, half, low), np.where(short, high, half)
    return Errors(estimate, high / WITHIN)
