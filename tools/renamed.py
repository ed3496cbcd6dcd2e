"""Write docs/renamed.md: public names and modules of tacit 0.1, and what they are called now.

    python tools/renamed.py           # writes the page; `make renamed`

`tests/test_docs.py` fails if the page is not what would be written, or names what does not exist.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tacit import features, metrics, tuning
from tacit.checks import RENAMED

TOOLS = Path(__file__).parent
PAGE = TOOLS.parent / "docs" / "renamed.md"
_PAGE = """\
# Renamed in 0.2

Public names and modules of tacit 0.1, and what they are called since 0.2. Old names are not kept.
Files that 0.1 wrote (models, schemas, ledgers, certificates, checkpoints) are read as before. What
is stable from 0.2 on is said on [another page](stability.md). Written by `make renamed` from
tables; a test fails if it is out of date.

## Packages

{packages}

## Classes and functions

{names}

## Parameters

Old parameters of searches, of `private_score` and of `Scattering` raise a TypeError that names the
new one.

{parameters}

## Methods and attributes

For losses, mechanisms and clips of your own. Classes that inherit from one of these have the new
names too.

{members}

## Moved to benchmarks/

Only benchmarks used these; they are in modules of the repository's folder, and not in the package.

{benchmarks}

## Modules

For code that imported from modules within packages, which [are not stable](stability.md).

{modules}
"""


def tables() -> dict[str, dict[str, dict[str, str]]]:
    """Return what was renamed beside modules: by kind, by package or class, old to new."""
    found: dict[str, Any] = tomllib.loads((TOOLS / "renamed.toml").read_text(encoding="utf-8"))
    homes = {name: home for home in (features, metrics, tuning) for name in home.__all__}
    named = {f"{homes[name].__name__}.{name}": dict(new) for name, new in RENAMED.items()}
    del found["removed"]
    return {**found, "parameters": dict(sorted({**found["parameters"], **named}.items()))}


def removed() -> dict[str, list[str]]:
    """Return the names that left a package, by package."""
    found = tomllib.loads((TOOLS / "renamed.toml").read_text(encoding="utf-8"))["removed"]
    return {package: list(names) for package, names in found.items()}


def modules() -> dict[str, Any]:
    """Return where modules went."""
    text = (TOOLS / "moves" / "modules.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def page() -> str:
    """Return the page as it should be."""
    renamed, moved = tables(), modules()
    packages = [(old, new, "all of it") for old, new in moved["package"].items()]
    for old, targets in moved["export"].items():
        packages += [(old, new, ", ".join(_code(names))) for new, names in targets.items()]
    gone = dict(moved["move"])
    for row in moved["merge"]:
        gone.update(dict.fromkeys(row["of"], row["into"]))
    for old, new in gone.items():  # a module may have gone on from where it went first
        while gone.get(new, new) != new:
            new = gone[new]
        gone[old] = new
    # The table has rows of modules that were gone before it was applied.
    found = sorted(row for row in gone.items() if row[0] != row[1] and _is_module(row[1]))
    return _PAGE.format(
        packages=_table("old | new | what", ((*_code((o, n)), what) for o, n, what in packages)),
        names=_by_class(renamed["names"]),
        parameters=_by_class(renamed["parameters"]),
        members=_by_class(renamed["members"]),
        benchmarks=_by_class(renamed["benchmarks"]),
        modules=_table("old | new", map(_code, found)),
    )


def _is_module(name: str) -> bool:
    path = TOOLS.parent / "src" / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def _by_class(renamed: Mapping[str, Mapping[str, str]]) -> str:
    rows = (_code((of, *row)) for of, names in renamed.items() for row in names.items())
    return _table("of | old | new", rows)


def _code(names: Iterable[str]) -> list[str]:
    return [f"`{name}`" for name in names]


def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    rule = "|".join("---" for _ in head.split("|"))
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
