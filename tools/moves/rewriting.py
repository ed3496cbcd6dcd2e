"""Rewrite what names modules: imports, dotted paths in any text, and paths of files."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tree import exported_by

# `from tacit.a import b, c`, on one line or in brackets; after `>>>` in a docstring too.
IMPORT = re.compile(
    r"^(?P<lead>[ \t]*(?:>>> |\.\.\. )?)from (?P<module>tacit(?:\.\w+)*) import "
    r"(?P<names>\((?P<many>[^)]*)\)|[^\n(#\\]+)(?P<tail>[ \t]*#[^\n]*)?$",
    re.MULTILINE,
)


# Before a module's name that is already the new one.
DONE = "\0"


@dataclass
class Moves:
    """Where modules, packages and exported names go."""

    modules: Mapping[str, str]  # of one file each
    packages: Mapping[str, str]  # whose __init__ goes elsewhere, or nowhere
    exports: Mapping[tuple[str, str], str]  # (package, name) -> package
    renamed: Mapping[tuple[str, str], str]  # (old module, name) -> name, where merges need it
    tests: Mapping[str, str] = field(default_factory=dict)  # paths of test files

    def everything(self) -> dict[str, str]:
        """Return old dotted path -> new dotted path."""
        return {**self.packages, **self.modules}


def dotted_test(path: str) -> str:
    """Return a test file as a module."""
    return path.removesuffix(".py").replace("/", ".")


def one_pass(table: Mapping[str, str], before: str, after: str) -> Callable[[str], str]:
    """Return what replaces all keys at once, the longest first."""
    if not table:
        return lambda text: text
    keys = sorted(table, key=len, reverse=True)
    pattern = re.compile(before + "(" + "|".join(map(re.escape, keys)) + ")" + after)

    def new(match: re.Match[str]) -> str:
        key = match[1]
        if "/" not in key and key.rpartition(".")[2] in exported_by(key.rpartition(".")[0]):
            # A module and something that its package exports have one name: which is meant?
            rest = match.string[match.end() : match.end() + 8]
            if not re.match(r"\.[A-Za-z_]| import| as |[\"']\]", rest):
                return key
        return table[key]

    return lambda text: pattern.sub(new, text)


def rewriter(moves: Moves) -> Callable[[Path, str], str]:
    """Return what rewrites one text."""
    dotted = one_pass(
        {
            **{
                f"{m}.{old}": f"{moves.modules.get(m, m)}.{new}"
                for (m, old), new in moves.renamed.items()
            },
            **{f"{p}.{name}": f"{new}.{name}" for (p, name), new in moves.exports.items()},
            **{dotted_test(old): dotted_test(new) for old, new in moves.tests.items()},
            **moves.everything(),
        },
        r"(?<![\w.\0])",
        r"(?![\w])(?!\.py\b)",
    )
    files: dict[str, str] = {}
    for old, new in moves.modules.items():
        a, b = (m.removeprefix("tacit.").replace(".", "/") + ".py" for m in (old, new))
        files[f"src/tacit/{a}"] = f"src/tacit/{b}"
        files[f"tacit/{a}"] = f"tacit/{b}"
        if "/" in a:
            files[a] = b
    for old, new in moves.packages.items():
        a, b = (m.removeprefix("tacit.").replace(".", "/") + "/" for m in (old, new))
        if "/" in a or a.rstrip("/") not in ("files", "schema"):
            files.setdefault(f"src/tacit/{a}", f"src/tacit/{b}")
            if "/" in a:
                files.setdefault(a, b)
    paths = one_pass(files, r"(?<![\w-])(?<!\w/)", "")
    tests = one_pass(
        {
            **moves.tests,
            **{
                k.removeprefix("tests/"): v.removeprefix("tests/")
                for k, v in moves.tests.items()
                if k.count("/") > 1
            },
        },
        r"(?<![\w-])(?<!\w/)",
        r"(?!\w)",
    )
    root_files = one_pass(
        {
            f"`{old[6:]}.py`": f"`{new[6:].replace('.', '/')}.py`"
            for old, new in moves.modules.items()
            if old.count(".") == 1
        },
        "",
        "",
    )

    def rewrite(path: Path, text: str) -> str:
        text, local = imports(text, moves, path.suffix == ".py")
        for old, new in local.items():
            text = rename_module_object(text, old, new)
        if path.as_posix() in moves.tests:
            package = ".".join(path.parent.parts)
            deeper = moves.tests[path.as_posix()].count("/") - path.as_posix().count("/")
            text = re.sub(
                r"(__file__\)\.parents)\[(\d)\]",
                lambda m: f"{m[1]}[{int(m[2]) + deeper}]",
                text,
            )
            text = re.sub(r"^from \.(\w+) import", rf"from {package}.\1 import", text, flags=re.M)
        text = dotted(text).replace(DONE, "")
        text = tests(paths(text))
        return root_files(text) if path.suffix == ".md" else text

    return rewrite


def imports(text: str, moves: Moves, python: bool) -> tuple[str, dict[str, str]]:
    """Return a text whose from-imports name the new places, and module objects to rename."""
    local: dict[str, str] = {}
    words = set(re.findall(r"\w+", text)) if python else set()

    def replaced(match: re.Match[str]) -> str:
        module = match["module"]
        names = match["many"] if match["many"] is not None else match["names"]
        tail = match["tail"] or ""
        if found := re.search(r"#\s*noqa[^\n]*", names):
            tail = "  " + found[0]
        names = re.sub(r"#[^\n]*", "", names)
        names = re.sub(r"^\s*\.\.\.", "", names, flags=re.MULTILINE)
        groups: dict[str, list[str]] = {}
        changed = False
        for entry in (n.strip() for n in names.split(",")):
            if not entry:
                continue
            name, _, alias = (w.strip() for w in entry.partition(" as "))
            full = f"{module}.{name}"
            if (module, name) in moves.exports:
                groups.setdefault(DONE + moves.exports[module, name], []).append(entry)
                changed = True
            elif (
                full in {**moves.modules, **moves.packages}
                and name not in exported_by(module)
                and module not in moves.modules
            ):
                home, _, new = moves.everything()[full].rpartition(".")
                if alias and alias != name:
                    new = f"{new} as {alias}"
                elif new != name:
                    if python and new not in words and not match["lead"].strip():
                        local[name] = new
                    else:
                        new = f"{new} as {name}"
                groups.setdefault(DONE + home, []).append(new)
                if new.partition(" ")[0] in exported_by(home):
                    print(f"  {full}: {home} exports something else of its new name")
                changed = True
            elif (module, name) in moves.renamed:
                new = moves.renamed[module, name]
                groups.setdefault(module, []).append(f"{new} as {alias or name}")
                changed = True
            else:
                groups.setdefault(module, []).append(entry)
        if not changed:
            return match[0]
        lines = []
        for home, entries in groups.items():
            line = f"{match['lead']}from {home} import {', '.join(entries)}{tail}"
            if len(line) > 100 and not match["lead"].strip():
                inner = "".join(f"{match['lead']}    {e},\n" for e in entries)
                line = f"{match['lead']}from {home} import ({tail}\n{inner}{match['lead']})"
            lines.append(line)
        return "\n".join(lines)

    return IMPORT.sub(replaced, text), local


def rename_module_object(text: str, old: str, new: str) -> str:
    """Return a Python text in which a module's local name is another, or none."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError):
        return text
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    edits: list[tuple[int, int, str]] = []
    for i, token in enumerate(tokens):
        start, end = (starts[r - 1] + c for r, c in (token.start, token.end))
        if token.type == tokenize.NAME and token.string == old and tokens[i - 1].string != ".":
            if tokens[i + 1].string == "=" and tokens[i - 1].string in "(,":
                continue
            if new:
                edits.append((start, end, new))
            elif tokens[i + 1].string == ".":
                edits.append((start, end + 1, ""))
        elif token.type == tokenize.STRING and re.match("[rR]?[fF]", token.string):
            dot = new + "." if new else ""
            inner = re.sub(rf"(?<=[{{( ]){re.escape(old)}\.", dot, token.string)
            if inner != token.string:
                edits.append((start, end, inner))
    for start, end, word in sorted(edits, reverse=True):
        text = text[:start] + word + text[end:]
    return text
