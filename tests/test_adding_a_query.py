"""What CONTRIBUTING says of adding a query, done by script: a file, a line, and it is audited."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.added_by_script import Copy

QUERY = '''
"""How many records are long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacit.noise import Norm
from tacit.queries.base import Facts, Private, Sensitivity
from tacit.records.exact.lattice import exact_totals
from tacit.row_clipping import clip_factors


@dataclass(frozen=True)
class LongRecords:
    """The number of records of more than half of the greatest length, each counted {most} times.

    Examples
    --------
    >>> from tacit.queries import LongRecords
    >>> LongRecords()
    LongRecords()
    """

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1: one that is replaced counts once at most."""
        return Sensitivity(1.0, Norm.L2, "noisy_gradient.md#4-the-count")

    def total(self, records: Private, facts: Facts) -> float:
        """Return the number. Private."""
        half = facts.bounds.row_norm**2 / 4

        def long(block: Any) -> Any:
            return {most} * (block.squared_norms() > half)

        return float(exact_totals(records, long, {most}))

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what clips a row and what adds up."""
        return clip_factors, exact_totals
'''
LINE = "from tacit.queries.long_records import LongRecords as LongRecords\n"
FIRST = "from tacit.queries.noise import"
ROOT = Path(__file__).parents[1]


def audited(folder: Path, most: float) -> subprocess.CompletedProcess[str]:
    """Write the file and the line into a copy of tacit, and run the conformance tests on it."""
    copy = Copy(folder)
    copy.add_file("src/tacit/queries/long_records.py", QUERY.format(most=most))
    copy.add_line("src/tacit/queries/__init__.py", LINE, FIRST)
    return copy.test("tests/queries/test_every_statistic.py", "-k", "LongRecords")


@pytest.mark.slow
def test_one_file_and_one_line_are_enough(tmp_path: Path) -> None:
    done = audited(tmp_path, most=1.0)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "deselected" in done.stdout
    assert " passed" in done.stdout


@pytest.mark.slow
def test_a_wrong_sensitivity_is_caught(tmp_path: Path) -> None:
    done = audited(tmp_path, most=2.0)
    assert done.returncode == 1, done.stdout[-3000:]
    assert "test_no_total_moves_further_than_declared" in done.stdout
    assert "moved by" in done.stdout
