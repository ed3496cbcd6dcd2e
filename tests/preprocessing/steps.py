"""Every private step of numbers, as the tests of all of them try it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.preprocessing import (
    PrivateMissing,
    PrivatePCA,
    PrivateQuantileBounds,
    PrivateStandardScaler,
)
from tacit.privacy import Relation

N = 60
DELTA = 1e-5
RELATIONS = (Relation.ADD_REMOVE, Relation.REPLACE)

STEPS: dict[str, Callable[[], Any]] = {
    "quantile_bounds": lambda: PrivateQuantileBounds(bounds=(-3.0, 3.0)),
    "standard_scaler": lambda: PrivateStandardScaler(bounds=(-3.0, 3.0)),
    "missing": lambda: PrivateMissing(bounds=(-3.0, 3.0)),
    "pca": lambda: PrivatePCA(2, row_norm=4.0),
    "centered_pca": lambda: PrivatePCA(2, row_norm=4.0, centered=True),
}
# Steps that have a pure release.
PURE = {"missing", "quantile_bounds", "standard_scaler"}


def made(name: str, relation: Relation = Relation.ADD_REMOVE, **told: Any) -> Any:
    """Return a step for N records and three columns."""
    step = STEPS[name]()
    # a delta for several choices takes long to calibrate
    delta = 0.0 if step.delta == 0.0 else DELTA
    known = {"epsilon": 1.0, "delta": delta, "relation": relation}
    if relation is Relation.REPLACE:
        known["n_records"] = N + 1
    known |= told
    own = step.get_params()
    return step.set_params(**{key: value for key, value in known.items() if key in own})


def rows(n: int = N) -> Any:
    return np.random.default_rng(0).normal(0, 1, (n, 3))
