"""What bounds refuse and say."""

from __future__ import annotations

import math

import pytest

from tacit.records import Bounds


@pytest.mark.parametrize(
    ("parameters", "remedy"),
    [
        ({"row_norm": 0.0}, "row_norm must be positive and finite.*pass the norm"),
        ({"row_norm": math.inf}, "row_norm"),
        ({"row_norm": math.nan}, "row_norm"),
        ({"intercept": -1.0}, "intercept must be finite"),
        ({"label_range": (1.0, 1.0)}, "label_range must be two finite numbers.*such as"),
        ({"label_range": (0.0, math.inf)}, "label_range"),
        ({"n_records": 0}, "n_records must be at least 1"),
    ],
)
def test_bounds_that_bound_nothing_are_refused(parameters, remedy):
    with pytest.raises(ValueError, match=remedy):
        Bounds(**parameters)


def test_what_bounds_say():
    assert Bounds(row_norm=3.0, intercept=4.0).total_norm == 5.0
    assert Bounds(label_range=(-3.0, 2.0)).label_bound == 3.0
    assert Bounds().label_bound == math.inf


def test_lengths_are_rounded_up():
    # 13 of 20, whose roots are whole: up by 8 roundings, more than the product, two roots (each
    # within a unit in the last place, two roundings), the quotient and the last product can take
    bounds = Bounds(row_norm=16.0, intercept=12.0)
    assert bounds.length(0.3125) == 13.0 / 20.0 * (1 + 2.0**-50)
    assert bounds.length(0.5) < 0.8
    assert bounds.length(1.0) == 1.0
