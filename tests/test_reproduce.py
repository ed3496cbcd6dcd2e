"""The figures of the sources: what is kept and skipped, and that the gallery is what was found."""

from __future__ import annotations

import importlib
import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "sources" / "index.md"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return lambda name: importlib.import_module(f"reproduce.{name}")


@pytest.fixture
def quiet() -> Console:
    return Console(file=io.StringIO())


class Counted:
    """A measurement that counts how often it is made."""

    def __init__(self) -> None:
        self.made = 0

    def measure(self, run: Any) -> None:
        for epsilon in (1.0,) if run.quick else (1.0, 2.0):
            run.cell({"epsilon": epsilon}, self.value, epsilon)

    def value(self, epsilon: float) -> dict[str, Any]:
        self.made += 1
        return {"values": [epsilon]}


def figure(load: Any, counted: Counted, **told: Any) -> Any:
    made = load("figure").Figure(
        name="tried", title="", original="", found="", measure=counted.measure,
        check=lambda rows: None, draw=lambda rows: None, **told,
    )  # fmt: skip
    return made


def test_a_cell_is_measured_once(load: Any, quiet: Console, tmp_path: Path) -> None:
    running, counted = load("running"), Counted()
    tried = figure(load, counted)
    small = running.measure(tried, True, quiet, tmp_path)
    whole = running.measure(tried, False, quiet, tmp_path)
    assert counted.made == 2
    assert small.rows == whole.rows[:1] == [{"epsilon": 1.0, "values": [1.0]}]


def test_code_that_changed_is_measured_again(
    load: Any, quiet: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, counted = load("running"), Counted()
    tried = figure(load, counted)
    running.measure(tried, True, quiet, tmp_path)
    monkeypatch.setattr(running, "fingerprint", lambda file: "another")
    running.measure(tried, True, quiet, tmp_path)
    assert counted.made == 2


def test_the_fingerprint_covers_what_is_measured_with(load: Any) -> None:
    running, folder = load("running"), ROOT / "benchmarks" / "reproduce"
    names = {path.name for path in running.measured_with(folder / "cms11_privacy.py")}
    assert names == {"cms11_privacy.py", "cms11.py"}


def test_missing_data_are_a_reason_to_skip(
    load: Any, quiet: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    counted = Counted()
    tried = figure(load, counted, data=("adult/adult.data.gz",))
    with pytest.raises(load("figure").Skipped, match=r"adult\.data\.gz.*TACIT_DATA"):
        load("running").measure(tried, True, quiet, tmp_path)
    assert counted.made == 0


def test_a_missing_package_is_a_reason_to_skip(load: Any, quiet: Console, tmp_path: Path) -> None:
    tried = figure(load, Counted(), needs=("no_such_package",))
    with pytest.raises(load("figure").Skipped, match="no_such_package"):
        load("running").measure(tried, True, quiet, tmp_path)


def test_what_is_kept_is_read_again(load: Any, quiet: Console, tmp_path: Path) -> None:
    running = load("running")
    tried = figure(load, Counted())
    running.keep(tried, running.measure(tried, False, quiet, tmp_path), tmp_path, "today", "abc")
    found = running.kept(tried, tmp_path)
    assert (found["date"], found["commit"], found["quick"]) == ("today", "abc", False)
    assert [row["values"] for row in found["rows"]] == [[1.0], [2.0]]


FIGURES = sorted(path.stem for path in (ROOT / "docs/sources/figures").glob("*.json"))


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_the_docs_hold(load: Any, name: str) -> None:
    # what was measured in full passes the checks of the small run, and is a small picture
    one = next(f for f in all_figures(load) if f.name == name)
    found = load("running").kept(one)
    assert not found["quick"]
    one.check(found["rows"])
    assert 5_000 < (ROOT / f"docs/sources/figures/{name}.png").stat().st_size < 100_000


def test_every_figure_is_in_the_docs(load: Any) -> None:
    assert sorted(f.name for f in all_figures(load)) == FIGURES
    files = {path.stem for path in (ROOT / "benchmarks/reproduce").glob("*.py")}
    assert set(FIGURES) <= files


def test_the_gallery_is_what_was_found(load: Any) -> None:
    pytest.importorskip("sklearn")
    assert GALLERY.read_text(encoding="utf-8") == load("gallery").page()


def test_a_check_can_fail(load: Any) -> None:
    moments, figures = load("moments"), load("figure")
    rows = load("running").kept(moments.FIGURE)["rows"]
    for row in rows:
        row["moments"] *= 1.01
    with pytest.raises(figures.NotReproduced, match="moments"):
        moments.check(rows)


def all_figures(load: Any) -> Any:
    return load("gallery").FIGURES
