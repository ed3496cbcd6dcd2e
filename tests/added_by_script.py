"""A copy of tacit, its tests and its documentation, to which a script adds something."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import tacit

ROOT = Path(__file__).parents[1]
# Beside the package: tests, documentation, and the tools that write parts of both.
_COPIED = ("tests", "docs", "tools", "mkdocs.yml", "pyproject.toml", "conftest.py")
_IGNORED = shutil.ignore_patterns("__pycache__", "kept", "*.png")


class Copy:
    """A copy in a folder that notes which files a script touches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.touched: set[str] = set()
        shutil.copytree(Path(tacit.__file__).parent, folder / "src" / "tacit", ignore=_IGNORED)
        for name in (*_COPIED, *(page.name for page in ROOT.glob("*.md"))):
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=_IGNORED)
            else:
                shutil.copy(source, folder / name)

    def add_file(self, path: str, text: str) -> None:
        """Write a new file."""
        assert not (self.folder / path).exists(), path
        (self.folder / path).write_text(text.lstrip(), encoding="utf-8")
        self.touched.add(path)

    def add_line(self, path: str, line: str, before: str) -> None:
        """Write a line into a file, before another."""
        text = (self.folder / path).read_text(encoding="utf-8")
        assert before in text, before
        text = text.replace(before, f"{line}\n{before}", 1)
        (self.folder / path).write_text(text, encoding="utf-8")
        self.touched.add(path)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program of the copy."""
        return subprocess.run(
            [sys.executable, *words],
            env={**os.environ, "PYTHONPATH": str(self.folder / "src")},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def test(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run tests of the copy."""
        return self.run("-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", *words)


def failures(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines of tests that failed."""
    return [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
