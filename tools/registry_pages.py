"""Write what follows from registries: names for type checkers, tables and lists of the docs.

    python tools/registry_pages.py           # `make registry`

Adding a mechanism is a file and a line in `tacit.erm.mechanisms`, its proof and its page; adding
a record source is a file and a line in `tacit.records`. This writes the rest.
`tests/test_registry_pages.py` fails if something is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tacit import records
from tacit.erm.mechanisms import CANDIDATES, KINDS, MECHANISMS
from tacit.erm.plan import Mechanism
from tacit.records import RecordSource

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_BLOCK = re.compile(
    r"(?P<head>^[ ]*(?:<!--|#) registry: (?P<name>[\w ]+?)(?: -->)?\n)"
    r".*?(?P<tail>^[ ]*(?:<!--|#) end(?: -->)?$)",
    re.MULTILINE | re.DOTALL,
)


def page_of(kind: type[Mechanism]) -> str:
    """Return the page of a mechanism, below docs."""
    return f"mechanisms/{kind.page or f'{kind.name}.md'}"


def proof_of(kind: type[Mechanism]) -> str:
    """Return the page of the proof of a mechanism, below docs."""
    return f"proofs/{kind.proof or f'{kind.name}.md'}"


def _names() -> str:
    rows = "".join(f'    "{name}",\n' for name in ("auto", *MECHANISMS))
    return f"MechanismName = Literal[\n{rows}]\n"


def _imports() -> str:
    lines = (
        f"from tacit.erm.mechanisms import {kind.__name__} as {kind.__name__}\n"
        for kind in sorted(KINDS.values(), key=lambda kind: kind.__name__)
    )
    return "".join(lines) + "\n"  # the formatter separates a comment from imports


def _tasks() -> str:
    """Return a row per task: the mechanism to choose and the reason."""
    rows = [
        (task, f"[{_lower(kind.title)}]({page_of(kind)})", why)
        for kind in KINDS.values()
        for task, why in kind.suits
    ]
    return _table("task | mechanism | reason", rows)


def _named() -> str:
    """Return a row per mechanism: its name, its class, and what it is proved for."""
    rows = [
        (
            f"`{kind.name}`" if kind.is_named else "",
            f"`{kind.__name__}`",
            "yes" if kind.name in CANDIDATES else "",
            "yes" if kind.has_law else "",
            f"[{_title(proof_of(kind))}]({proof_of(kind)})",
        )
        for kind in KINDS.values()
    ]
    head = '`mechanism=` | class in `tacit.erm` | tried by "auto" | standard errors | proof'
    return _table(head, rows)


def _reference() -> str:
    return "\n".join(f"::: tacit.erm.{kind.__name__}\n" for kind in KINDS.values()) + "\n"


def _sources() -> str:
    """Return what `tacit.records` exports and `fit` takes: sources of sums."""
    needed = {name for name in vars(RecordSource) if not name.startswith("_")} - {"bounds"}
    exported = {name: getattr(records, name) for name in sorted(records.__all__)}
    found = [name for name, value in exported.items() if needed <= set(dir(value))]
    return "\n".join(f"::: tacit.records.{name}\n" for name in found) + "\n"


def _list(place: Callable[[type[Mechanism]], str]) -> Callable[[], str]:
    return lambda: "".join(f"- [{_title(page)}]({page})\n" for page in _pages(place))


def _nav(place: Callable[[type[Mechanism]], str]) -> Callable[[], str]:
    def lines() -> str:
        titles = {page: _title(page) for page in _pages(place)}
        shown = {page: f'"{title}"' if ":" in title else title for page, title in titles.items()}
        return "".join(f"      - {title}: {page}\n" for page, title in shown.items())

    return lines


# By file: the blocks between its marks.
BLOCKS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "src/tacit/mechanism_names.py": {"names": _names},
    "src/tacit/erm/__init__.py": {"mechanisms": _imports},
    "docs/which_mechanism.md": {"tasks": _tasks, "mechanisms": _named},
    "docs/api/erm.md": {"mechanisms": _reference},
    "docs/api/records.md": {"sources": _sources},
    "docs/README.md": {"mechanisms": _list(page_of), "proofs": _list(proof_of)},
    "mkdocs.yml": {"mechanisms": _nav(page_of), "proofs": _nav(proof_of)},
}


def written(path: str) -> str:
    """Return a file as it should be: its blocks written anew, the rest as it is."""
    blocks = BLOCKS[path]
    text = (ROOT / path).read_text(encoding="utf-8")
    found = [match["name"] for match in _BLOCK.finditer(text)]
    if sorted(found) != sorted(blocks):
        raise ValueError(f"{path} has marks of {found}, and should have those of {sorted(blocks)}.")
    return _BLOCK.sub(lambda match: match["head"] + blocks[match["name"]]() + match["tail"], text)


def _pages(place: Callable[[type[Mechanism]], str]) -> list[str]:
    return list(dict.fromkeys(place(kind) for kind in KINDS.values()))


def _title(page: str) -> str:
    """Return the heading of a page."""
    return (DOCS / page).read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")


def _lower(title: str) -> str:
    return title[:1].lower() + title[1:]


def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    rule = "|".join("---" for _ in head.split("|"))
    lines = [f"| {head} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    for path in BLOCKS:
        (ROOT / path).write_text(written(path), encoding="utf-8")
