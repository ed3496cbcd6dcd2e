"""The page of what a checker reads is as long, and as complete, as it says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import tacit
from boundaries import SOURCES
from trusted_code import BESIDES, PAGE, code_lines, contributors, function_lines, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make trusted-code"


TACIT = Path(tacit.__file__).parent
CHECKED = ("queries", "noise", "privacy/events", "engine.py")


def _module_file(name: str) -> Path | None:
    """Return the file of a module, if there is one."""
    path = TACIT.parent.joinpath(*name.split("."))
    candidates = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in candidates if file.is_file()), None)


def _imported_files(file: Path) -> Iterator[Path]:
    """Yield the files of tacit that a file imports, at its head or within functions.

    `tacit/__init__.py` is left out: it loads a name's module when the name is used.
    """
    tree = ast.parse(file.read_text("utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            names = [node.module or ""]
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith("tacit.") and (found := _module_file(name)):
                yield found


def _loaded() -> set[str]:
    """Return all files that queries, noise, events and the engine load, by their imports alone."""
    waiting = [
        file
        for place in CHECKED
        for file in ([TACIT / place] if place.endswith(".py") else (TACIT / place).rglob("*.py"))
    ]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting.extend(_imported_files(file))
    return {file.relative_to(TACIT).as_posix() for file in found}


def test_the_page_names_every_file_that_the_checked_code_loads() -> None:
    """The page is compared with the imports, not with what its generator lists."""
    loaded = _loaded()
    written = set(re.findall(r"^\| `([\w/]+(?:\.py|/))` \|", PAGE.read_text("utf-8"), re.MULTILINE))
    folders = tuple(name for name in written if name.endswith("/"))
    checked = {name for name in loaded if name.startswith(("queries/", "noise/", "privacy/"))}
    assert {"noise/exact/lattice.py", "privacy/accounting/composition.py"} <= checked
    # The package's own file has no statement of a query.
    assert checked - written == {"queries/__init__.py"}
    assert not [name for name in loaded - written - checked if not name.startswith(folders)]
    assert not [name for name in written if not (TACIT / name).exists()]
    # Nothing is named as loaded that is not.
    assert not [name for name in BESIDES if not any(one.startswith(name) for one in loaded)]
    assert not set(CHECKED) & set(BESIDES)


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
