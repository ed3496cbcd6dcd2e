"""Add a record source by script: a file and a line; tests of sources and the reference find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.added_by_script import Copy, failures

SOURCE = '''
"""Read records from several arrays, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.records.bounds import Bounds
from tacit.records.chunked import ChunkedRecords


class StackedRecords(ChunkedRecords):
    """Rows and labels of several arrays, as one source.

    Parameters
    ----------
    parts
        Pairs of rows and labels.
    bounds
        Public bounds on every record.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, StackedRecords
    >>> StackedRecords([(np.eye(2), None), (np.eye(2), None)], Bounds()).count()
    4
    """

    def __init__(self, parts: Sequence[tuple[Any, Any]], bounds: Bounds) -> None:
        super().__init__(lambda: iter(parts), parts[0][0].shape[1], bounds)

    @classmethod
    def tried(cls, rows: Any, labels: Any, bounds: Bounds) -> StackedRecords:
        """Return rows and labels in two parts, for tests."""
        cut = slice(0, 50), slice(50, None)
        return cls([(rows[at], None if labels is None else labels[at]) for at in cut], bounds)

    def sum_error(self, *, fine: bool = False) -> float:
        """Return the error of sums of the regrouped records."""
        return {share} * super().sum_error(fine=fine)
'''
LINE = "from tacit.records.stacked import StackedRecords as StackedRecords"
BEFORE = "from tacit.records.source import"
TOUCHED = {"src/tacit/records/stacked.py", "src/tacit/records/__init__.py"}
FIT = """
import numpy as np
from tacit.linear_model import LogisticRegression
from tacit.records import StackedRecords

rows = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
labels = np.where(rows[:, 0] > 0, 1.0, -1.0)
model = LogisticRegression(1.0, 1e-6, row_norm=2.0, classes=["no", "yes"])
bounds = model.plan(n_features=3).problem.objective.bounds
model.fit(StackedRecords([(rows[:900], labels[:900]), (rows[900:], labels[900:])], bounds), None)
print(model.predict([[0.9, 0.0, 0.0]]))
"""

pytestmark = pytest.mark.slow


def added(folder: Path, share: float) -> Copy:
    copy = Copy(folder)
    copy.add_file("src/tacit/records/stacked.py", SOURCE.replace("{share}", str(share)))
    copy.add_line("src/tacit/records/__init__.py", LINE, BEFORE)
    done = copy.run("tools/registry_pages.py")
    assert done.returncode == 0, done.stderr
    return copy


def test_a_file_and_a_line_are_enough(tmp_path: Path) -> None:
    copy = added(tmp_path, share=1.0)
    assert copy.touched == TOUCHED
    named = ["-k", "StackedRecords or left_out or records or nav or out_of_date"]
    pages = ["tests/test_site.py", "tests/test_registry_pages.py"]
    done = copy.test("tests/records/test_sources.py", *pages, *named)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "::: tacit.records.StackedRecords" in (tmp_path / "docs/api/records.md").read_text()
    done = copy.run("-c", FIT)
    assert done.stdout.strip() == "['yes']", done.stderr


def test_a_float_error_that_is_too_small_is_caught(tmp_path: Path) -> None:
    done = added(tmp_path, share=0.5).test("tests/records/test_sources.py", "-k", "StackedRecords")
    assert failures(done) == [line for line in failures(done) if "[StackedRecords]" in line] != []
