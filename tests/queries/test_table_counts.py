"""Counts of a table: exact sums, the length of a record, odd codes and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit.noise import Norm
from tacit.privacy import Relation
from tacit.queries.base import plain_facts
from tacit.queries.table_counts import CountedColumn, TableCounts, moment_steps
from tacit.records.coded_table import CodedBlock

FACTS = plain_facts(Relation.ADD_REMOVE)


class Blocks:
    """Records in blocks of a size."""

    def __init__(self, codes: np.ndarray, units: np.ndarray, size: int) -> None:
        self.blocks = [
            CodedBlock(codes[i : i + size], units[i : i + size]) for i in range(0, len(codes), size)
        ]

    def sum(self, function: Callable[[CodedBlock], Any]) -> Any:
        return sum(map(function, self.blocks))


def test_any_blocks_and_any_order_give_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    codes, units = rng.integers(0, 5, (4000, 3)), rng.uniform(-1, 1, (4000, 3))
    columns = (
        CountedColumn(5, 1.0625),
        CountedColumn(5, 3.9375, by_group=True, numbers=True),
        CountedColumn(5, 0.0625, by_group=True),
    )
    counts = TableCounts(columns, 0)
    order = rng.permutation(4000)
    one = counts.total(Blocks(codes, units, 4000), FACTS)
    other = counts.total(Blocks(codes[order], units[order], 7), FACTS)
    assert np.array_equal(one, other)
    assert one[:5].sum() == 4000 * 1.0625
    assert len(one) == 5 + 5 * 5 + 5 * 2 + 5 * 5


def test_a_replaced_record_moves_two_cells() -> None:
    plain = TableCounts((CountedColumn(3), CountedColumn(3)))
    assert plain.sensitivity(plain_facts(Relation.REPLACE)).value == pytest.approx(2.0)
    assert plain.sensitivity(FACTS).value == pytest.approx(math.sqrt(2))
    pure = TableCounts(plain.columns, None, Norm.L1)
    assert pure.sensitivity(FACTS).value == pytest.approx(2.0)
    assert pure.sensitivity(plain_facts(Relation.REPLACE)).value == pytest.approx(4.0)


def test_no_number_is_longer_than_stated() -> None:
    u = np.linspace(-1.5, 1.5, 20_001)
    first, second = (steps / 2**16 for steps in moment_steps(u))
    assert np.hypot(first, second).max() <= 1.25 + 2**-16
    assert (np.abs(first) + np.abs(second)).max() <= 1.75 + 2**-16
    # Both are attained: a smaller constant would be wrong.
    assert np.hypot(first, second).max() >= 1.25
    assert (np.abs(first) + np.abs(second)).max() >= 1.75


def test_weights_that_would_not_add_up_exactly_are_refused() -> None:
    for weight in (0.1, 0.0, -1.0, 5.0):
        with pytest.raises(ValueError, match="weight must be a multiple"):
            CountedColumn(3, weight)


def test_codes_out_of_range_count_as_missing() -> None:
    codes = np.array([[-1], [7], [2], [0]])
    units = np.array([[math.inf], [math.nan], [9.0], [0.5]])
    counts = TableCounts((CountedColumn(3, numbers=True),))
    total = counts.total(Blocks(codes, units, 2), FACTS)
    assert total[:3].tolist() == [1.0, 0.0, 3.0]
    assert total[3:].tolist() == [0.5 * 1.5, 0.5 * (0.75 - 0.75)]
