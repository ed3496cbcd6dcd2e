"""A partial sum that is missing, late, doubled or from another machine's arithmetic is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.cluster.dask_records import Partial, arithmetic, one_of_each


def partial(part: int, pass_number: int = 7, **changes: Any) -> Partial:
    usual = Partial(pass_number, part, 10, 0, arithmetic(), (np.full(2, float(part)),))
    return usual._replace(**changes)


def test_one_of_each_comes_back_in_order() -> None:
    found = one_of_each([partial(2), partial(0), partial(1)], 3, 7)
    assert [each.part for each in found] == [0, 1, 2]


@pytest.mark.parametrize(
    ("partials", "why"),
    [
        ([partial(0), partial(1)], "1 of 3 partial sums are missing"),
        ([partial(0), partial(1), partial(1)], "came twice"),
        ([partial(0), partial(1), partial(2), partial(2)], "came twice"),
        ([partial(0), partial(1), partial(3)], "1 of 3 partial sums are missing"),
        ([partial(0), partial(1), partial(2), partial(3)], "missing"),
        ([partial(0), partial(1), partial(2, pass_number=6)], "another pass"),
        ([partial(0), partial(1), (7, 2, np.zeros(2))], "another pass"),
        ([partial(0), partial(1), partial(2, arithmetic=1)], "computes exp or log differently"),
        ([partial(0), partial(1), partial(2, sums=None, failure="ValueError")], "ValueError"),
    ],
)
def test_anything_else_is_refused(partials: list[Any], why: str) -> None:
    with pytest.raises(RuntimeError, match=why):
        one_of_each(partials, 3, 7)
