"""Hold the results of an evaluation: metrics with intervals, and refused metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.privacy import Guarantee

Array = npt.NDArray[np.float64]

LEVEL = 0.95
_Z = 1.959963984540054  # the 97.5 % quantile of the standard normal


@dataclass(frozen=True)
class Estimate:
    """A number with a 95 % interval for its value without noise.

    Examples
    --------
    >>> from tacit.metrics.evaluation import Estimate
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
    """A quadratic form of sums x: <linear, x> + x' square x, ``square`` symmetric."""

    linear: Array
    square: Array | None = None

    def value(self, x: Array, noise: Array) -> float:
        """Return an unbiased estimate: noise adds tr(square d), d = noise^2, to the mean.

        ``noise`` is the standard deviation of each sum.
        """
        flat = float(self.linear @ x)
        if self.square is None:
            return flat
        return flat + float(x @ self.square @ x) - float(np.diag(self.square) @ noise**2)


def covariance(one: Form, other: Form, x: Array, noise: Array) -> float:
    """Return an unbiased estimate of the covariance of two forms of the noisy sums x.

    With d the diagonal matrix of noise^2, and gradients g = linear + 2 square x at the true sums,

        cov = g1' d g2 + 2 tr(S1 d S2 d)

    and the same expression at noisy sums has 4 tr(S1 d S2 d) too much in its mean, of which
    2 belong to the covariance.
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
    """Return top / bottom, clipped to [least, greatest], with its interval.

    Fieller: top - r bottom has mean 0 at the true ratio r and a variance that is quadratic in r, so
    the interval is where (top - r bottom)^2 <= z^2 var(r). If the bottom is not significantly
    different from 0, the interval is everything.
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
    # half^2 - square rest is 0 without noise, but rounding may make it negative.
    half_width = math.sqrt(max(half * half - square * rest, 0.0))
    if not noise.any():
        half_width = 0.0
    low, high = (half - half_width) / square, (half + half_width) / square
    ends = [_within(end, least, greatest) for end in (low, high)]
    return Estimate(_within(value, least, greatest), *ends)


def counted(linear: Array, x: Array, noise: Array) -> Estimate:
    """Return a sum of counts, at least 0, with its interval."""
    value = float(linear @ x)
    half_width = _Z * math.sqrt(float(linear**2 @ noise**2))
    return Estimate(max(value, 0.0), max(value - half_width, 0.0), max(value + half_width, 0.0))


def _within(value: float, least: float, greatest: float) -> float:
    return min(max(value, least), greatest) if not math.isnan(value) else value


class TooFewRecords(ValueError):
    """The result would be mostly noise."""


class NoEvaluationWarning(UserWarning):
    """The model was fitted, but too few records were held out to evaluate it."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of a curve, with an interval for each ``y`` without noise."""

    name: str
    x_name: str
    y_name: str
    x: Array
    y: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """The number of records of each class (rows) by predicted class (columns)."""

    classes: tuple[Any, ...]
    cells: tuple[tuple[Estimate, ...], ...]

    @property
    def counts(self) -> Array:
        """The counts without intervals."""
        return np.array([[cell.value for cell in row] for row in self.cells])


@dataclass(frozen=True)
class Draws:
    """Make several curves; a class rather than a function, so that it can be pickled."""

    each: Mapping[str, Callable[[], Curve]]

    def __call__(self) -> Mapping[str, Curve]:
        """Return the curves by name."""
        return {name: draw() for name, draw in self.each.items()}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The results of a private evaluation.

    Intervals are about noise: in 95 % of evaluations they cover the value without noise on
    the same records. They do not cover the error of sampling other records.

    Parameters
    ----------
    privacy_
        The guarantee for the records it was made from.
    metrics
        By name: accuracy, auc, brier, log_loss; mse, rmse, mae, r2.
    refused
        Metrics that would be mostly noise, with the number of records that would be enough.
    confusion
        The confusion matrix of a classifier.
    draw
        Makes the ``curves``, by name: roc, precision_recall, calibration.
    n_records
        The noisy number of records, or people, that counted.
    noise_std
        The standard deviation of the noise on a count, or on a sum.
    sums
        The released sums, from which all else is computed.
    positive
        The class that curves and calibration_bias of two classes are told for: the last declared.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.metrics import evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (30_000, 2))
    >>> y = X[:, 0] + rng.normal(0, 0.5, 30_000) > 0
    >>> model = LogisticRegression(1.0, row_norm=1.5).fit(X[:20_000], y[:20_000])
    >>> found = evaluate(model, X[20_000:], y[20_000:], epsilon=1.0, delta=1e-6)
    >>> bool(0.7 < found["accuracy"].value < 0.9)
    True
    """

    privacy_: Guarantee
    metrics: Mapping[str, Estimate]
    n_records: Estimate
    noise_std: float
    refused: Mapping[str, str] = field(default_factory=dict)
    confusion: ConfusionMatrix | None = None
    draw: Callable[[], Mapping[str, Curve]] = dict
    sums: Array | None = None
    positive: Any = None

    @cached_property
    def curves(self) -> Mapping[str, Curve]:
        """Curves by name, computed on demand."""
        return self.draw()

    def __getitem__(self, name: str) -> Estimate:
        """Return a metric; raise for one that would be mostly noise."""
        if name in self.refused:
            raise TooFewRecords(self.refused[name])
        if name not in self.metrics:
            known = ", ".join([*self.metrics, *self.refused])
            raise KeyError(f"there is no metric {name!r}; there are {known}.")
        return self.metrics[name]

    def to_dict(self) -> dict[str, Any]:
        """Return the results, ready for JSON."""
        found = {**self.metrics, "records": self.n_records}
        confusion = None
        if self.confusion is not None:
            counts = self.confusion.counts.tolist()
            confusion = {"classes": list(self.confusion.classes), "counts": counts}
        return {
            "metrics": {
                name: {"value": e.value, "low": e.low, "high": e.high} for name, e in found.items()
            },
            "refused": dict(self.refused),
            "positive_class": self.positive,
            "confusion": confusion,
            "curves": {
                name: {part: getattr(curve, part).tolist() for part in ("x", "y", "low", "high")}
                for name, curve in self.curves.items()
            },
            "noise_std": self.noise_std,
            "statement": self.privacy_.statement(),
        }

    @property
    def about_positive(self) -> str:
        """A sentence that names the class of curves and calibration; empty without two classes."""
        if self.positive is None:
            return ""
        return f"Curves and calibration_bias are those of the class {self.positive}."

    def lines(self) -> list[str]:
        """Return the metrics and the refused ones, a line each."""
        lines = [f"{name}: {value}" for name, value in self.metrics.items()]
        lines += [f"{name}: refused. {why}" for name, why in self.refused.items()]
        return [*lines, f"records: {self.n_records}", *filter(None, [self.about_positive])]

    def __str__(self) -> str:
        return "\n".join([*self.lines(), str(self.privacy_)])
