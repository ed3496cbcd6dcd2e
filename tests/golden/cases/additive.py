"""Additive models: two classes, three classes and a number; small tables, people, REPLACE."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.schema import Schema
from tests.additive.test_estimators import CASES, table
from tests.golden.pinning import SEED, Case, Pins, pinned

N_RECORDS = 500


def fitted(name: str, epsilon: float, given: dict[str, Any], **told: Any) -> Case:
    """Return a case: a model of an example table, and what it predicts for ten records."""

    def case() -> Pins:
        cls, schema = CASES[name]
        known = Schema(schema.columns, schema.target, n_records=N_RECORDS)
        model = cls(known, epsilon, 1e-5, random_state=SEED, **told)
        model.fit(table(N_RECORDS), **given)
        scores = np.array(list(model.explain(table(10, 1)).values()))
        return pinned(model, scores=scores)

    return case


def cases() -> dict[str, Case]:
    """Return all of them by name."""
    made: dict[str, Case] = {}
    unit = np.arange(N_RECORDS) % 300
    for name in CASES:
        for size, epsilon in {"small": 0.5, "curves": 30.0}.items():
            for relation in ("add_remove", "replace"):
                made[f"{name}-{size}-{relation}"] = fitted(name, epsilon, {}, relation=relation)
        made[f"{name}-people"] = fitted(name, 30.0, {"unit": unit})
    return made
