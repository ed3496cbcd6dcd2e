"""A small table of people, and its schema."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.schema import Boolean, Category, ClassTarget, Intervals, Number, Schema

COLUMNS = (
    Number("age", 0, 100),
    Number("income", 1, 1e6, log=True),
    Category("ward", ("A", "B", "C")),
    Boolean("smoker"),
    Intervals("bmi", (18.5, 25, 30)),
)
SCHEMA = Schema(COLUMNS, ClassTarget("ill", ("no", "yes")))


def people(n: int = 6000, seed: int = 0) -> dict[str, Any]:
    """Return a table with missing values, undeclared words and numbers beyond their range."""
    rng = np.random.default_rng(seed)
    age = np.round(rng.normal(50, 15, n))
    ward = rng.choice(
        np.array(["A", "B", "C", "X", None], dtype=object), n, p=[0.4, 0.3, 0.2, 0.05, 0.05]
    )
    return {
        "age": np.where(rng.random(n) < 0.1, np.nan, age),
        "income": rng.lognormal(8, 1, n),
        "ward": ward,
        "smoker": rng.random(n) < 0.25,
        "bmi": rng.normal(26, 4, n),
        "ill": np.where(age + 10 * rng.standard_normal(n) > 60, "yes", "no"),
    }
