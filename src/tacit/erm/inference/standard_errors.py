"""Compute standard errors from noisy matrices; this is post-processing and costs nothing.

The Hessian was released with noise of a known distribution. Many plausible Hessians are drawn
around it. Each gives an estimate and a variance by the law of the weights, and the interval is that
of their mixture. With small noise the draws agree; with large noise the interval is wide
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

# The 97.5 % quantile of a standard normal variable: 95 % lie within it.
WITHIN = 1.959963984540054
_MOST_DRAWS, _LEAST_DRAWS = 400, 20
_MOST_ENTRIES = 1e6  # of all drawn matrices together; it bounds memory and time
# Prior width without information: scores of the longest rows up to this many score units.
_ANYTHING = 30.0
_ROUNDED, _TINY = 1e-12, 1e-100  # relative rounding of eigenvalues; guard against division by 0
# Bisection finds intervals to 2^-30 of their largest possible width.
_HALVINGS = 30


class Noisy(NamedTuple):
    """A symmetric matrix with isotropic noise; ``std`` is that of a diagonal entry."""

    matrix: Array
    std: float


class Total(NamedTuple):
    """A sum with Gaussian noise of this standard deviation."""

    value: float
    std: float


class Middle(NamedTuple):
    """Squared gradients M: the matrix, and the sums of d1^2 and of d2."""

    matrix: Noisy
    squares: Total
    second_derivatives: Total


def errors_of(weights: Array, law: Law, hessian: Noisy, middle: Middle | None) -> Errors:
    """Return estimates corrected for the ridge, and standard errors with valid coverage.

    Parameters
    ----------
    weights
        The released weights.
    law
        Their asymptotic law.
    hessian
        H, the sum of the records' second derivatives.
    middle
        M, the sum of the records' squared gradients; None if it equals H.
    """
    d = weights.size
    # Seed by the dimension: the same release always gives the same standard errors.
    rng = np.random.default_rng(d)
    spread = hessian.std + (middle.matrix.std if middle is not None else 0.0)
    draws = int(np.clip(_MOST_ENTRIES / d**2, _LEAST_DRAWS, _MOST_DRAWS)) if spread else 1
    least = max(_least_curvature(law, d), _ROUNDED * float(np.abs(hessian.matrix).max()), _TINY)
    curvature, axes = _plausible(hessian, draws, rng)
    curvature = _divisible(curvature, least, law)
    inner = np.swapaxes(axes, -1, -2)
    truth = (inner @ weights) / law.share(curvature)
    between = law.noise(curvature, truth) + least * np.eye(d)  # no information is not certainty
    if middle is None:
        between += curvature[..., :, None] * np.eye(d)
    else:
        plausible = (axes * curvature[..., None, :]) @ inner
        between += inner @ _positive(_middles(middle, hessian, plausible, rng)) @ axes
    # U B U' is the covariance of the truth in the eigenbasis, with U = axes / h.
    inverse_axes = axes / curvature[..., None, :]
    variance = np.maximum(np.sum((inverse_axes @ between) * inverse_axes, axis=-1), 0.0)
    centres = (axes @ truth[..., None])[..., 0]
    # The greatest eigenvalue of the noise is near std sqrt(2 d) (semicircle law).
    stands_out = max(hessian.std * math.sqrt(2 * d), least)
    return _pooled(_estimate(weights, law, hessian, stands_out), centres, np.sqrt(variance))


def _estimate(weights: Array, law: Law, hessian: Noisy, least: float) -> Array:
    """Return the weights corrected for the ridge, as far as H exceeds its noise."""
    curvature, axes = np.linalg.eigh(hessian.matrix)
    share = law.share(_divisible(curvature, least, law))
    result: Array = axes @ ((axes.T @ weights) / share)
    return result


def _plausible(noisy: Noisy, draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of matrices that may underlie the noisy one.

    Noise spreads eigenvalues: by b in the released matrix, and by b again in draws around it. b is
    estimated from the draws and subtracted twice (docs/proofs/inference.md, section 3).
    """
    d = noisy.matrix.shape[0]
    released, axes = np.linalg.eigh(noisy.matrix)
    if not noisy.std:
        return np.broadcast_to(released, (draws, d)), np.broadcast_to(axes, (draws, d, d))
    half = rng.standard_normal(((draws + 1) // 2, d, d))
    noise = np.concatenate([half, -half])[:draws]  # antithetic: the mean is exactly 0
    # variance 1 on the diagonal, 1/2 off it
    symmetric = (noise + np.swapaxes(noise, -1, -2)) / 2
    symmetric[:, np.arange(d), np.arange(d)] = noise[:, np.arange(d), np.arange(d)]
    values, axes = np.linalg.eigh(noisy.matrix - noisy.std * symmetric)
    difference = values.mean(axis=0) - released
    return values - 2 * difference, axes


def _middles(middle: Middle, hessian: Noisy, plausible: Array, rng: np.random.Generator) -> Array:
    """Return plausible matrices of squared gradients, for plausible Hessians.

        M = phi H + k D,   D the released M less phi H,   k = 1 - (noise in D)^2 / ||D||^2

    k is at least 0. M is shrunk towards phi H, its value for homoscedastic errors, as far as D may
    be noise (James and Stein 1961). phi is the sum of d1^2 over the sum of d2.
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
    # d (d + 1) / 2 free entries, each with the noise of M and of phi H
    expected = d * (d + 1) / 2 * (matrix.std**2 + (phi * hessian.std) ** 2)
    expected += float(np.var(phis)) * float(np.sum(hessian.matrix**2))
    factor = max(1 - expected / max(float(np.sum(away**2)), _TINY), 0.0)
    result: Array = phis[:, None, None] * plausible + factor * away
    return result


def _least_curvature(law: Law, d: int) -> float:
    """Return the curvature at which noise alone gives a weight an uninformative error."""
    objective, zero = law.objective, np.zeros(d)
    std = math.sqrt(float(law.noise(zero, zero)[0, 0]))
    return std * objective.gradient_scale / (_ANYTHING * objective.score_unit)


def _least(total: Total) -> float:
    """Return the sum, raised to a positive value that noise may hide."""
    return max(total.std, _TINY)


def _positive(matrices: Array) -> Array:
    values, axes = np.linalg.eigh(matrices)
    result: Array = (axes * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(axes, -1, -2)
    return result


def _divisible(curvature: Array, least: float, law: Law) -> Array:
    """Return eigenvalues that are safe to divide by.

    A Hessian is not negative: eigenvalues that noise made negative carry no information. The noisy
    Gram matrix from which the weights were solved is left unchanged.
    """
    size = np.maximum(np.abs(curvature) if law.gram is not None else curvature, least)
    result: Array = size if law.gram is None else np.copysign(size, curvature)
    return result


def _pooled(estimate: Array, centres: Array, stds: Array) -> Errors:
    """Return the estimate, and the half-width of the mixture's 95 % interval over 1.96."""
    away = centres - estimate
    low, high = np.zeros_like(estimate), np.max(np.abs(away) + 3 * stds, axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(_HALVINGS):
            half = (low + high) / 2
            inside = np.mean(ndtr((half - away) / stds) - ndtr((-half - away) / stds), axis=0)
            short = inside < 2 * ndtr(WITHIN) - 1
            low, high = np.where(short, half, low), np.where(short, high, half)
    return Errors(estimate, high / WITHIN)
