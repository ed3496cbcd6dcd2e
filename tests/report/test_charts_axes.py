from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.report.charts import linear_axis, log_axis, log_axis_at


@given(st.floats(-1e6, 1e6), st.floats(0.0, 1e6))
def test_everything_lies_between_the_ends(low: float, width: float) -> None:
    axis = linear_axis("x", low, low + width)
    assert -1e-6 <= axis.share(low) <= 1 + 1e-6
    assert -1e-6 <= axis.share(low + width) <= 1 + 1e-6
    assert 2 <= len(axis.ticks) <= 9


def test_log_axes() -> None:
    axis = log_axis("delta", 1e-12, 1e-2, every=2)
    assert axis.ticks == pytest.approx([1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2], rel=1e-6, abs=0.0)
    assert axis.share(1e-7) == pytest.approx(0.5)
    assert axis.label(1e-4) == "10⁻⁴"
    room = log_axis_at("epsilon", (0.1, 10.0))
    assert 0 < room.share(0.1) < 0.1
    assert room.share(1.0) == pytest.approx(0.5)
    assert room.label(0.1) == "0.1"
    assert log_axis_at("epsilon", (1.0,)).share(1.0) == pytest.approx(0.5)
