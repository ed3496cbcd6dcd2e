"""Four features, with every kind of target, and a table that must not be looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(11)
X = RNG.standard_normal((400, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * RNG.standard_normal(400)
LABELS = Y + RNG.standard_normal(400) > 0
CLASSES = np.digitize(Y, [-1.0, 1.0])
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0] + 0.5)).astype(float)
NORM = 100.0  # above every row, so that nothing is clipped
RANGE = (-50.0, 50.0)
CONSTANT = 0.25 * NORM  # the intercept's coordinate


def augmented(rows: Any) -> Any:
    return np.hstack([rows, np.full((len(rows), 1), CONSTANT)])


class Exploding:
    """A table that must not be looked at."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the table was read")

    @property
    def shape(self) -> Any:
        raise AssertionError("the table was read")
