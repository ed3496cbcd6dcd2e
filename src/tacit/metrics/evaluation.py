"""What an evaluation says, with intervals for the noise, and what it refuses to say."""

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
_Z = 1.959963984540054  # the standard normal's 97.5 % point


@dataclass(frozen=True)
class Estimate:
    """A number and the interval in which it would be without noise, 19 times out of 20.

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
    half_width = math.sqrt(max(half * half - square * rest, 0.0))
    if not noise.any():
        half_width = 0.0
    low, high = (half - half_width) / square, (half + half_width) / square
    ends = [_within(end, least, greatest) for end in (low, high)]
    return Estimate(_within(value, least, greatest), *ends)


def counted(linear: Array, x: Array, noise: Array) -> Estimate:
    """Return a sum of counts with its interval; no count is below 0."""
    value = float(linear @ x)
    half_width = _Z * math.sqrt(float(linear**2 @ noise**2))
    return Estimate(max(value, 0.0), max(value - half_width, 0.0), max(value + half_width, 0.0))


def _within(value: float, least: float, greatest: float) -> float:
    return min(max(value, least), greatest) if not math.isnan(value) else value


class TooFewRecords(ValueError):
    """What was asked for would be noise."""


class NoEvaluationWarning(UserWarning):
    """A model is fitted as asked, and the records held out were too few to evaluate it on."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of a curve, and the interval in which each ``y`` would be without noise."""

    name: str
    x_name: str
    y_name: str
    x: Array
    y: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """How many records of each class (rows) were taken for which class (columns)."""

    classes: tuple[Any, ...]
    cells: tuple[tuple[Estimate, ...], ...]

    @property
    def counts(self) -> Array:
        """The counts alone."""
        return np.array([[cell.value for cell in row] for row in self.cells])


@dataclass(frozen=True)
class Draws:
    """Makes several curves; not a function, so that an evaluation can be pickled."""

    each: Mapping[str, Callable[[], Curve]]

    def __call__(self) -> Mapping[str, Curve]:
        """Return the curves by name."""
        return {name: draw() for name, draw in self.each.items()}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well a model does on records that are not shown.

    Intervals are about noise: in 95 % of evaluations they hold the value that the same records
    would have given without noise. How other records would do is another question.

    Parameters
    ----------
    privacy_
        What it promises about the records it was made from.
    metrics
        By name: accuracy, auc, brier, log_loss; mse, rmse, mae, r2.
    refused
        What would be noise, and how many records would do.
    confusion
        The confusion matrix, of a classifier.
    draw
        Makes the ``curves``, by name: roc, precision_recall, calibration.
    n_records
        How many records, or people, counted.
    noise_std
        The standard deviation of the noise on a count, or on a sum.
    sums
        What was released, from which all else follows.

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

    @cached_property
    def curves(self) -> Mapping[str, Curve]:
        """Curves by name, drawn when they are asked for."""
        return self.draw()

    def __getitem__(self, name: str) -> Estimate:
        """Return a metric; refuse one that would be noise."""
        if name in self.refused:
            raise TooFewRecords(self.refused[name])
        if name not in self.metrics:
            known = ", ".join([*self.metrics, *self.refused])
            raise KeyError(f"there is no metric {name!r}; there are {known}.")
        return self.metrics[name]

    def to_dict(self) -> dict[str, Any]:
        """Return what was found, ready for JSON."""
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
            "confusion": confusion,
            "curves": {
                name: {part: getattr(curve, part).tolist() for part in ("x", "y", "low", "high")}
                for name, curve in self.curves.items()
            },
            "noise_std": self.noise_std,
            "statement": self.privacy_.statement(),
        }

    def lines(self) -> list[str]:
        """Return what was found and what is refused, a line each."""
        lines = [f"{name}: {value}" for name, value in self.metrics.items()]
        lines += [f"{name}: refused. {why}" for name, why in self.refused.items()]
        return [*lines, f"records: {self.n_records}"]

    def __str__(self) -> str:
        return "\n".join([*self.lines(), str(self.privacy_)])
