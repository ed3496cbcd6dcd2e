"""Whole numbers in two parts: the sum is exact, or rounded once, and never depends on the order."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.records import Bounds, MemoryRecords
from tacit.records.exact.lattice import Rounding, check_not_too_many, split

EXACT, ROUNDED = Rounding(33, 1000), Rounding(33)


def parts_of(total: int, n_parts: int, seed: int):
    """Return whole numbers below 2^53 that add up to a total."""
    rng = np.random.default_rng(seed)
    parts = [int(k) for k in rng.integers(-(2**52), 2**52, n_parts)]
    rest = total - sum(parts)
    while abs(rest) >= 2**53:
        step = max(-(2**52), min(2**52, rest))
        parts.append(step)
        rest -= step
    return [*parts, rest]


def joined(parts: list[int], rounding: Rounding) -> float:
    high, low = np.sum([split(np.array([float(k)])) for k in parts], axis=0)
    return float(rounding.joined((high, low))[0])


@pytest.mark.parametrize("total", [0, 1, -1, 2**53, -(2**53), 2**53 - 1, -(2**40) + 3, 12345])
def test_sums_below_2_to_the_53_are_exact(total: int) -> None:
    for seed, n_parts in enumerate((0, 1, 5, 40)):
        parts = parts_of(total, n_parts, seed)
        assert joined(parts, EXACT) == total
        assert joined(parts[::-1], ROUNDED) == total


@pytest.mark.parametrize("total", [2**60 + 1, -(2**62) - 12345, 2**53 + 1, 2**60 + 2**20])
def test_larger_sums_are_rounded_once(total: int) -> None:
    for seed, n_parts in enumerate((0, 3, 30)):
        found = joined(parts_of(total, n_parts, seed), ROUNDED)
        assert found == float(total)  # Python rounds once, too


def test_a_sum_held_back_moves_no_further_than_its_terms() -> None:
    # around the limits, where holding one part back and not the other would jump
    for limit in (2**53, -(2**53)):
        totals = [limit + k for k in (-(2**27), -(2**26), -1, 0, 1, 2**26 - 1, 2**26, 2**27 + 5)]
        found = [
            joined([t], EXACT) if abs(t) <= 2**53 else joined([limit, t - limit], EXACT)
            for t in totals
        ]
        for (t, a), (u, b) in zip(
            zip(totals, found, strict=True), zip(totals[1:], found[1:], strict=True), strict=False
        ):
            assert 0 <= b - a <= u - t
        assert max(map(abs, found)) == 2.0**53


def test_what_is_charged_covers_the_rounding() -> None:
    assert EXACT.slack == 0.0
    assert Rounding(33, 2**18).slack == 0.0
    assert Rounding(33, 2**18 + 1).slack == Rounding(33).slack == 2.0**-21
    assert Rounding(20).is_exact  # of 2^33 records
    # n terms C long are off by 2^-53 n C, on either side, with n at most 2^31
    assert Rounding(33).slack >= 2 * 2**31 * 2.0**-53


def test_more_records_than_were_charged_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    records = MemoryRecords(np.ones((2, 1)), None, Bounds())
    check_not_too_many(records, ROUNDED)
    monkeypatch.setattr(MemoryRecords, "count", lambda self: 2**31 + 1)
    check_not_too_many(records, EXACT)
    with pytest.raises(ValueError, match="fit on a part"):
        check_not_too_many(records, ROUNDED)
