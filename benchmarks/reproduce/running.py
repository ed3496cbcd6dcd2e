"""One run of the figures: kept cells, progress, files."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from reproduce.figure import Figure, Rows, Skipped, require_data

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "sources" / "figures"
SCRATCH = ROOT / ".bench" / "reproduce"
_HERE = Path(__file__).parent
_IMPORT = re.compile(r"^from reproduce\.(\w+) import", re.MULTILINE)


def fingerprint(file: Path) -> str:
    """Return a digest of the library, of a figure's file and of what it measures with."""
    digest = hashlib.sha256()
    for path in (*sorted((ROOT / "src" / "tacit").rglob("*.py")), *measured_with(file)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def measured_with(file: Path) -> list[Path]:
    """Return a file and those of this package that it imports, but for those that only draw."""
    names = set(_IMPORT.findall(file.read_text("utf-8"))) - {"drawing", "figure"}
    return [file, *(path for name in sorted(names) for path in measured_with(_HERE / f"{name}.py"))]


class Cells:
    """Measures cells of a figure, each once for as long as the code does not change."""

    def __init__(self, figure: Figure, folder: Path, code: str, quick: bool, say: Any) -> None:
        self.quick = quick
        self.rows: Rows = []
        self.seconds = 0.0
        self._figure, self._folder, self._code, self._say = figure, folder, code, say

    def cell(
        self, settings: dict[str, Any], measure: Callable[..., dict[str, Any]], *args: Any
    ) -> None:
        """Measure, or take what was measured with the same settings by the same code."""
        key = json.dumps([self._figure.name, self._code, settings], sort_keys=True)
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
        self._say(f"{self._figure.name}: {', '.join(f'{k} {v}' for k, v in settings.items())}")
        if path.exists():
            kept = json.loads(path.read_text())
        else:
            start = time.perf_counter()
            found = measure(*args)
            kept = {"found": found, "seconds": time.perf_counter() - start}
            self._folder.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(f".{os.getpid()}")
            unfinished.write_text(json.dumps(kept))
            unfinished.replace(path)
        self.seconds += kept["seconds"]
        self.rows.append({**settings, **kept["found"]})


def measure(figure: Figure, quick: bool, console: Console, scratch: Path = SCRATCH) -> Cells:
    """Return the rows of a figure; raise `Skipped` where it cannot be made."""
    require_data(figure.data)
    for package in figure.needs:
        if importlib.util.find_spec(package) is None:
            raise Skipped(f"the package {package!r} is not installed.")
    own = Path(inspect.getfile(figure.measure))
    with console.status(figure.name) as status:
        cells = Cells(figure, scratch / "cells", fingerprint(own), quick, status.update)
        figure.measure(cells)
    return cells


def keep(figure: Figure, cells: Cells, folder: Path, date: str, commit: str) -> None:
    """Write the values of a figure."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = ",\n  ".join(json.dumps(rounded(row)) for row in cells.rows)
    told = {"figure": figure.name, "date": date, "commit": commit, "quick": cells.quick}
    head = json.dumps({**told, "seconds": round(cells.seconds)})[1:-1]
    text = f'{{{head},\n "rows": [\n  {rows}\n ]}}\n'
    (folder / f"{figure.name}.json").write_text(text, encoding="utf-8")


def kept(figure: Figure, folder: Path = FIGURES) -> dict[str, Any]:
    """Return what was written of a figure."""
    found: dict[str, Any] = json.loads((folder / f"{figure.name}.json").read_text("utf-8"))
    return found


def rounded(value: Any) -> Any:
    """Return numbers with five digits, in whatever they are."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(v) for key, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list | tuple) else value
