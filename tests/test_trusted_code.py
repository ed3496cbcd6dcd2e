"""The page of what a checker reads is as long, and as complete, as it says."""

from __future__ import annotations

from pathlib import Path

from boundaries import SOURCES
from trusted_code import PAGE, code_lines, contributors, function_lines, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make trusted-code"


def test_lines_of_code_are_counted(tmp_path: Path) -> None:
    written = tmp_path / "some.py"
    written.write_text(
        '"""Two lines\n\nof text."""\n\n# a comment\nclass A:\n    """What."""\n\n'
        '    def b(self):  # one\n        """Why."""\n        return (\n            1\n        )\n'
    )
    assert code_lines(written) == {6, 9, 11, 12, 13}
    assert function_lines((written, "A.b")) == 4


def test_contributors_are_found_behind_losses_and_closures() -> None:
    found = {(path.name, name) for path, name in contributors()}
    assert ("row_clipping.py", "clip_factors") in found
    assert ("solvers.py", "certified_solver") in found
    assert ("poisson.py", "PoissonLoss.d1") in found  # of a loss that no statistic is tried with


def test_every_contributor_is_of_tacit() -> None:
    for path, _ in contributors():
        assert path.is_relative_to(SOURCES)
