"""The page with all figures: picture, command, date and commit."""

from __future__ import annotations

from pathlib import Path

from reproduce import (
    banco,
    bst14,
    cms11_kernel,
    cms11_privacy,
    cms11_records,
    cms11_tuning,
    dpsgd,
    expmech,
    leaks,
    moments,
    pate_votes,
    polynomial,
    rank,
)
from reproduce.figure import Figure
from reproduce.running import FIGURES as FOLDER
from reproduce.running import kept

PAGE = FOLDER.parent / "index.md"
FIGURES: tuple[Figure, ...] = tuple(
    module.FIGURE
    for module in (
        cms11_privacy,
        cms11_records,
        cms11_kernel,
        cms11_tuning,
        moments,
        dpsgd,
        pate_votes,
        leaks,
        polynomial,
        bst14,
        rank,
        expmech,
        banco,
    )
)
HEAD = """\
# Every figure, run again

The five documents that tacit started from, each walked through in order, with the name of every
algorithm, theorem and figure in tacit:

- [Differentially private ML](slides.md): slides on CMS11, DP-SGD and PATE
- [Private ERM](kamath.md): lecture notes of Gautam Kamath
- [Noisy gradients of generalised linear models](brown.md): lecture notes of Gavin Brown
- [ERM by the exponential mechanism](smith_ullman.md): notes of Adam Smith and Jonathan Ullman
- [BANCO](banco.md): a poster of Kwang-Sung Jun and Francesco Orabona

`make reproduce` measures and draws all of this page; `make reproduce QUICK=1` is a small version
that asserts the order and the key values of each figure, and runs with the tests. Noise is seeded
here, so that a figure can be made again; a release never is.
"""


def page() -> str:
    """Return the gallery in Markdown, from what was measured."""
    measured = [f for f in FIGURES if (FOLDER / f"{f.name}.json").exists()]
    return "\n".join([HEAD, *map(section, measured)])


def section(figure: Figure) -> str:
    """Return one figure, with what the document shows and what is seen here."""
    found = kept(figure)
    return (
        f"## {figure.title}\n\n![{figure.title}](figures/{figure.name}.png)\n\n"
        f"*Original.* {figure.original}\n\n*Here.* {figure.caption(found['rows'])}\n\n"
        f"`make reproduce FIGURES={figure.name}`, {found['date']}, commit {found['commit']}, "
        f"{found['seconds']} s; [values](figures/{figure.name}.json)\n"
    )


def write(path: Path = PAGE) -> None:
    """Write the page."""
    path.write_text(page(), encoding="utf-8")
