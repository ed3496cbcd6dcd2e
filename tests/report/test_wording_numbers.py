from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.report.wording import MINUS, NARROW, aligned, probability, rounded_up, short

TIMES = f"{NARROW}\N{MULTIPLICATION SIGN}{NARROW}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (3790.4, "3,790"),
        (-12.345, f"{MINUS}12.35"),
        (1e-6, "10⁻⁶"),
        (2.34e-5, f"2.34{TIMES}10⁻⁵"),
        (3e9, f"3{TIMES}10⁹"),
        (math.inf, "∞"),
        (-math.inf, f"{MINUS}∞"),
        (math.nan, "not a number"),
    ],
)
def test_short(value: float, text: str) -> None:
    assert short(value) == text


def test_probabilities_are_powers() -> None:
    assert [probability(p) for p in (0.0, 1e-4, 0.01, 0.5)] == ["0", "10⁻⁴", "10⁻²", "0.5"]


@given(st.floats(0.0, 1e6))
def test_a_cost_is_never_rounded_down(value: float) -> None:
    # The statement forgives the same millionth of the last digit.
    assert float(rounded_up(value, 3)) >= value - 1e-9 * max(value, 1.0)
    assert float(rounded_up(value, 3)) <= value + 1.001e-3


def test_a_column_has_one_number_of_decimals() -> None:
    assert aligned([1.0, -0.00001, 12.3456]) == ["1.00", "0.00", "12.35"]
    assert aligned([0.0]) == ["0.000"]
    assert aligned([]) == []
