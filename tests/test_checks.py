"""Argument checks: each error names the parameter, its value and the remedy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit import checks
from tacit.features import Scattering
from tacit.metrics import private_score


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (lambda: checks.real("a", "1"), r"a must be a real number, got '1' \(str\); .*a=1\.0"),
        (lambda: checks.real("a", True), "a must be a real number, got True"),
        (lambda: checks.real("a", math.nan), "a is NaN, which bounds nothing; pass the number"),
        (
            lambda: checks.positive("a", math.nan, remedy="do this."),
            "finite, got nan; do this",
        ),
        (lambda: checks.positive("a", math.inf), "a must be positive and finite, got inf; pass"),
        (lambda: checks.positive("a", 0), r"a must be positive and finite, got 0\.0"),
        (lambda: checks.positive("a", 3, most=2), r"finite, from 0 to 2, got 3\.0"),
        (lambda: checks.positive("a", 1, least=2), r"finite, from 2 to inf, got 1\.0"),
        (lambda: checks.above_zero("a", 0.0), r"a must be above 0, got 0\.0: pass"),
        (lambda: checks.at_least("a", 1, 2.0), r"a must be finite and at least 2, got 1\.0"),
        (lambda: checks.count("a", 1.0), r"a must be a whole number, got 1\.0; pass an int"),
        (lambda: checks.count("a", True), "a must be a whole number, got True"),
        (lambda: checks.count("a", 0), "a must be at least 1, got 0"),
        (lambda: checks.count("a", 4, most=3), r"a must be in \[1, 3\], got 4"),
        (lambda: checks.vector("a", [1.0], 2), r"a must be 2 real numbers.*\(1,\)"),
        (lambda: checks.vector("a", [1.0, math.inf], 2), "a has a coordinate that is not finite"),
        (lambda: checks.epsilon(0), "epsilon must be above 0.*math.inf for no privacy"),
        (lambda: checks.epsilon(-1), "epsilon must be above 0, got -1.0: already at 0 the output"),
        (lambda: checks.finite_epsilon(math.inf), "epsilon must be positive and finite.*calibrate"),
        (lambda: checks.delta(1.0), r"delta must be in \[0, 1\), got 1\.0.*such as 1e-6"),
    ],
)
def test_a_refusal_names_parameter_value_and_remedy(check: Callable[[], object], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        check()


def test_what_is_in_order_comes_back_as_a_plain_number() -> None:
    assert type(checks.positive("a", np.float32(0.5))) is float
    assert type(checks.count("a", np.int64(3), most=3)) is int
    assert checks.above_zero("a", math.inf) == checks.epsilon(math.inf) == math.inf
    assert checks.at_least("a", 0, 0.0) == checks.delta(0) == 0.0
    assert checks.vector("a", [1, 2], 2).dtype == np.float64


@pytest.mark.parametrize(
    ("called", "old", "new"),
    [
        (lambda **old: private_score(None, **old), "people", "unit"),
        (lambda **old: private_score(None, **old), "rows", "X"),
        (Scattering, "centred", "centered"),
    ],
)
def test_an_old_parameter_names_the_new_one(called: Any, old: str, new: str) -> None:
    with pytest.raises(TypeError, match=f"{old} is called {new} since tacit 0.2"):
        called(**{old: None})
