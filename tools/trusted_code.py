"""Write docs/trusted_code.md: all that somebody must read who checks a promise, and how long it is.

    python tools/trusted_code.py           # writes the page; `make trusted-code`

`tests/test_trusted_code.py` fails if the page is not what would be written.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from boundaries import ALLOWED, SOURCES, Package

ROOT = SOURCES.parent
PAGE = ROOT / "docs" / "trusted_code.md"
PROOFS = ROOT / "docs" / "proofs"
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}

# What queries, noise, events and the engine load besides themselves and `privacy/`;
# tests/test_trusted_code.py compares this with their imports.
BESIDES = {
    "records/": "Opens records, clips them and sums them; the contributors below are part of it.",
    "io/": "Reads tables: files, data frames and arrays.",
    "schema/": "Turns columns into numbers by a public schema.",
    "table_facts.py": "Public facts of a table that estimators and schemas share.",
    "column_values.py": "Reads values of one column.",
    "row_clipping.py": "Clips rows to their declared norm.",
    "disk_arrays.py": "Arrays in temporary files.",
    "arrays.py": "Type names of arrays.",
    "checks.py": "Checks of parameters, with their messages.",
}

_HEAD = ["file", "lines", "what"]
_PAGE = """\
# What a checker reads

A promise of tacit holds if the code on this page is right: what is asked, how far one record or
person moves it, which noise it gets, what that costs, and who compares the cost with what was
charged. Nothing else may state a sensitivity, draw noise or build an event; `make lint` refuses it
([decision 0058](decisions/0058-where-events-are-built.md)). Written by `make trusted-code`; a test
fails if it is out of date. Lines are those of code, without docstrings, comments and blank ones.

## In all

{counts}

What turns events into epsilon and adds them up ([accounting](#accounting), {n_accounting} lines)
is checked against exact computations ([what would notice](audited_events.md)). That each record
stays one record on its way from a file or a table is the part of `records/` and of the readers
([known limits](known_limits.md)). The code above also loads the following, which draws no noise and
builds no event:

{besides}

## Statistics

What is computed, the proof of how far one unit moves it, and the functions that bound one unit's
part. `NoisySum` joins a statistic with Gaussian, Laplace or spherical noise.

{statistics}

## Queries

{queries}

## Engine

{engine}

## Noise

{noise}

## Events

{events}

## Accounting

`privacy/` beside its events.

{accounting}

## Contributors

Functions outside of the files above that bound what one unit adds to a total. Of a loss all
versions are listed; what a function calls is not counted.

{contributors}

## Events that are built elsewhere

Who may do so, and why: the table of `tools/boundaries.py`.

{allowed}
"""

Function = tuple[Path, str]  # its file and the qualified name of the outermost function


@cache
def code_lines(path: Path) -> frozenset[int]:
    """Return which lines of a file are code: no docstrings, no comments, not blank."""
    text = path.read_text("utf-8")
    found = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            text_node = node.body[0]
            found -= set(range(text_node.lineno, (text_node.end_lineno or 0) + 1))
    return frozenset(found)


@cache
def _functions(path: Path) -> dict[str, ast.FunctionDef]:
    def below(node: ast.AST, prefix: str) -> Iterable[tuple[str, ast.FunctionDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                yield f"{prefix}{child.name}", child
            elif isinstance(child, ast.ClassDef):
                yield from below(child, f"{prefix}{child.name}.")

    return dict(below(ast.parse(path.read_text("utf-8")), ""))


def function_lines(function: Function) -> int:
    """Return how many lines of code a function has."""
    node = _functions(function[0])[function[1]]
    return len([n for n in code_lines(function[0]) if node.lineno <= n <= (node.end_lineno or 0)])


def first_line(path: Path) -> str:
    """Return what a file says it is."""
    told = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return told.split("\n")[0]


def files(folder: str) -> list[Path]:
    """Return the files of a package and of the packages in it."""
    return sorted((SOURCES / "tacit" / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    """Return how the page names a file."""
    return f"`{path.relative_to(SOURCES / 'tacit').as_posix()}`"


def named(function: Callable[..., Any]) -> Function:
    """Return where a function is; that of a function within another is the other's."""
    code = inspect.unwrap(getattr(function, "__func__", function)).__code__
    return Path(code.co_filename).resolve(), code.co_qualname.split(".<locals>")[0]


def contributors() -> dict[Function, set[str]]:
    """Return the functions that bound one unit's part, and the statistics that name them.

    What a statistic names of one loss, another loss may define anew: all of them are listed.
    """
    from tests.declared import concrete
    from tests.queries.test_every_statistic import statistics

    from tacit.erm.losses import AnyLoss

    losses = concrete(under=AnyLoss)
    found: dict[Function, set[str]] = {}
    for statistic in statistics():
        for function in statistic.contributors():
            owner = getattr(function, "__self__", None)
            same = [function]
            if isinstance(owner, AnyLoss):
                same = [getattr(loss, function.__name__, function) for loss in losses]
            for one in same:
                found.setdefault(named(one), set()).add(type(statistic).__name__)
    return {
        function: names for function, names in found.items() if function[0].is_relative_to(SOURCES)
    }


def _statistics() -> list[list[str]]:
    from tests.queries.test_every_statistic import some_facts, statistics

    rows: dict[str, tuple[str, set[str], set[str]]] = {}
    for one in statistics():
        cls = type(one)
        path = Path(inspect.getfile(cls)).resolve()
        _, proofs, names = rows.setdefault(cls.__name__, (name_of(path), set(), set()))
        proofs.add(one.sensitivity(some_facts(one)).proof)
        names.update(f"`{f.__name__}`" for f in one.contributors())
    return [
        [
            f"`{name}`",
            path,
            ", ".join(
                f"[{proof.partition('.md#')[0]}](proofs/{proof})" for proof in sorted(proofs)
            ),
            ", ".join(sorted(names)),
        ]
        for name, (path, proofs, names) in sorted(rows.items())
    ]


def _queries(package: Package) -> list[list[str]]:
    rows = []
    for module in sorted(m for m in package.trees if m.startswith("tacit.queries.")):
        path = SOURCES / package.paths[module]
        uses = package.uses(module)
        noise = sorted({f"`{use.name}`" for use in uses if use.kind == "draws noise"})
        events = sorted({f"`{use.name}`" for use in uses if use.kind == "builds an event"})
        pages = set(re.findall(r"\b(\w+)\.md\b", path.read_text("utf-8")))
        proofs = [f"[{p}](proofs/{p}.md)" for p in sorted(pages) if (PROOFS / f"{p}.md").exists()]
        cells = [first_line(path), ", ".join(noise), ", ".join(events), ", ".join(proofs)]
        rows.append([name_of(path), str(len(code_lines(path))), *cells])
    return rows


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    made = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in r] for r in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in made)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")


def _listed(paths: Iterable[Path]) -> list[list[str]]:
    return [[name_of(path), str(len(code_lines(path))), first_line(path)] for path in paths]


def page() -> str:
    """Return the page."""
    package = Package()
    engine = [SOURCES / "tacit" / "engine.py"]
    parts = {
        "[Queries, sessions and their rules](#queries)": files("queries"),
        "[The engine](#engine)": engine,
        "[Noise](#noise)": files("noise"),
        "[Events](#events)": files("privacy/events"),
    }
    read = {path for paths in parts.values() for path in paths}
    bounding = contributors()
    elsewhere = {f: names for f, names in bounding.items() if f[0] not in read}
    counts = [
        [name, _counted(len(paths), "file"), f"{sum(len(code_lines(p)) for p in paths):,}"]
        for name, paths in parts.items()
    ]
    lines = sum(function_lines(function) for function in elsewhere)
    n_functions = _counted(len(elsewhere), "function")
    counts.append(["[Contributors elsewhere](#contributors)", n_functions, f"{lines:,}"])
    total = sum(int(row[2].replace(",", "")) for row in counts)
    accounting = [path for path in files("privacy") if path not in read]
    of_functions = [
        [f"`{name}`", name_of(path), str(function_lines((path, name))), ", ".join(sorted(by))]
        for (path, name), by in sorted(elsewhere.items(), key=lambda item: item[0])
    ]
    tables = {
        "counts": _table(["part", "", "lines"], [*counts, ["**together**", "", f"**{total:,}**"]]),
        "n_accounting": f"{sum(len(code_lines(path)) for path in accounting):,}",
        "besides": _table(
            ["files", "what they do"], ([f"`{name}`", what] for name, what in BESIDES.items())
        ),
        "statistics": _table(
            ["statistic", "file", "sensitivity's proof", "contributors"], _statistics()
        ),
        "queries": _table(
            ["file", "lines", "what", "noise", "events", "proofs"], _queries(package)
        ),
        "engine": _table(_HEAD, _listed(engine)),
        "noise": _table(_HEAD, _listed(files("noise"))),
        "events": _table(_HEAD, _listed(files("privacy/events"))),
        "accounting": _table(_HEAD, _listed(accounting)),
        "contributors": _table(["function", "file", "lines", "named by"], of_functions),
        "allowed": _table(
            ["file", "names", "why"],
            [
                [f"`{a.path}`", ", ".join(f"`{name}`" for name in sorted(a.names)), a.reason]
                for a in ALLOWED
            ],
        ),
    }
    return _PAGE.format(**tables)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written")
