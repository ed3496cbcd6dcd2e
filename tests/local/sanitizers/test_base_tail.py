from __future__ import annotations

import dataclasses
import math

import pytest

from tacit.local import Tail


def test_any_reach_by_default():
    assert Tail(2.0) == Tail(2.0, math.inf)
    assert Tail(0.0).variance == 0.0


@pytest.mark.parametrize("variance", [-1e-9, math.inf, math.nan])
def test_variance_is_refused(variance):
    with pytest.raises(ValueError, match="variance"):
        Tail(variance)


@pytest.mark.parametrize("largest_rate", [0.0, -1.0, math.nan, -math.inf])
def test_largest_rate_is_refused(largest_rate):
    with pytest.raises(ValueError, match="largest_rate"):
        Tail(1.0, largest_rate)


@pytest.mark.parametrize("value", [True, "1", None, 1j])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match="variance"):
        Tail(value)
    with pytest.raises(TypeError, match="largest_rate"):
        Tail(1.0, value)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Tail(1.0).variance = 2.0
