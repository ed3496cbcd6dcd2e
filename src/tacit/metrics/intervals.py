"""Ratios of noisy sums with intervals that say what noise did (docs/proofs/evaluation.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEVEL = 0.95
_Z = 1.959963984540054  # the standard normal's 97.5 % point


@dataclass(frozen=True)
class Estimate:
    """A number and the interval in which it would be without noise, 19 times out of 20.

    Examples
    --------
    >>> from tacit.metrics import Estimate
    >>> print(Estimate(0.8123, 0.8051, 0.8195))
    0.8123 (0.8051 to 0.8195)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        value, low, high = (f"{number:.4g}" for number in (self.value, self.low, self.high))
        return f"{value} ({low} to {high})"


@dataclass(frozen=True, eq=False)
class Form:
    """A number made of sums x: <linear, x> + x' square x, ``square`` symmetric."""

    linear: Array
    square: Array | None = None

    def value(self, x: Array, noise: Array) -> float:
        """Return what it is without noise, on average: noise adds tr(square) to its mean.

        ``noise`` is the standard deviation of each sum.
        """
        flat = float(self.linear @ x)
        if self.square is None:
            return flat
        return flat + float(x @ self.square @ x) - float(np.diag(self.square) @ noise**2)


def covariance(one: Form, other: Form, x: Array, noise: Array) -> float:
    """Return how two forms of the noisy sums x vary together, estimated without bias.

    With d the diagonal matrix of noise^2, and gradients g = linear + 2 square x at the true sums,

        cov = g1' d g2 + 2 tr(S1 d S2 d)

    and the same at noisy sums has 4 tr(S1 d S2 d) too much in its mean, of which 2 are the cov's.
    """
    variances = noise**2
    gradients = [
        form.linear if form.square is None else form.linear + 2 * form.square @ x
        for form in (one, other)
    ]
    flat = float(gradients[0] @ (variances * gradients[1]))
    if one.square is None or other.square is None:
        return flat
    both = float(np.sum(one.square * other.square * np.outer(variances, variances)))
    return flat - 2 * both


def ratio(
    top: Form, bottom: Form, x: Array, noise: Array, least: float, greatest: float
) -> Estimate:
    """Return top / bottom, between its ``least`` and ``greatest`` value, with its interval.

    Fieller: top - r bottom has mean 0 at the true ratio r and a variance that is quadratic in r, so
    the interval is where (top - r bottom)^2 <= z^2 var(r). Where the bottom cannot be told from 0
    the interval is everything.
    """
    t, b = top.value(x, noise), bottom.value(x, noise)
    vtt, vtb, vbb = (
        covariance(one, other, x, noise)
        for one, other in ((top, top), (top, bottom), (bottom, bottom))
    )
    square, half, rest = b * b - _Z**2 * vbb, t * b - _Z**2 * vtb, t * t - _Z**2 * vtt
    value = t / b if b > 0.0 else math.nan
    if b <= 0.0 or square <= 0.0:
        return Estimate(_within(value, least, greatest), least, greatest)
    # half^2 - square rest is 0 without noise, and rounding may leave it below
    reach = math.sqrt(max(half * half - square * rest, 0.0))
    if not noise.any():
        reach = 0.0
    low, high = (half - reach) / square, (half + reach) / square
    ends = [_within(end, least, greatest) for end in (low, high)]
    return Estimate(_within(value, least, greatest), *ends)


def counted(linear: Array, x: Array, noise: Array) -> Estimate:
    """Return a sum of counts with its interval; no count is below 0."""
    value = float(linear @ x)
    reach = _Z * math.sqrt(float(linear**2 @ noise**2))
    return Estimate(max(value, 0.0), max(value - reach, 0.0), max(value + reach, 0.0))


def _within(value: float, least: float, greatest: float) -> float:
    return min(max(value, least), greatest) if not math.isnan(value) else value
