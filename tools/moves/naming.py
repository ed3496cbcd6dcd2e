"""Rename identifiers by a table: in code, in examples, and in what describes them."""

from __future__ import annotations

import ast
import fnmatch
import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tree import text_files

KINDS = ("attribute", "keyword", "other")
# Functions that take a name as a word; `object` is mock.patch.object.
_NAMING = {"setattr", "getattr", "hasattr", "object", "parametrize"}
_LINE_ENDS = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT)


@dataclass(frozen=True)
class Row:
    """One rename, and where it holds."""

    old: str
    new: str
    where: tuple[
        str, ...
    ] = ()  # globs of paths below src/tacit, or whole paths; none is everywhere
    but: tuple[str, ...] = ()
    kinds: tuple[str, ...] = KINDS  # other holds for call and import too
    strings: bool = False  # literals that are this word and nothing else
    prose: bool = True  # `word` in docstrings and pages, and its line under Parameters

    def is_of(self, kind: str) -> bool:
        """Return whether such a use of the name is meant."""
        return kind in self.kinds or (kind in ("call", "import") and "other" in self.kinds)

    def holds(self, path: Path) -> bool:
        """Return whether a file is among those that the row is about."""
        name = path.as_posix()
        short = name.removeprefix("src/tacit/")

        def fits(globs: tuple[str, ...]) -> bool:
            return any(fnmatch.fnmatch(short, g) or fnmatch.fnmatch(name, g) for g in globs)

        return (not self.where or fits(self.where)) and not fits(self.but)


def rows_of(names: dict[str, Any]) -> list[Row]:
    """Return the rows of the table; ``[in."glob"]`` is short for many rows of one place."""
    found = [
        Row(
            row["old"],
            row["new"],
            tuple(row.get("in", ())),
            tuple(row.get("but", ())),
            tuple(row.get("kinds", KINDS)),
            row.get("strings", False),
            row.get("prose", True),
        )
        for row in names.get("name", [])
    ]
    for where, pairs in names.get("in", {}).items():
        found += [Row(old, new, (where,)) for old, new in pairs.items()]
    # What is said of some files goes before what is said of all.
    return sorted(found, key=lambda row: not row.where)


def apply(names: dict[str, Any], *, check: bool) -> None:
    """Rename in every file that a row is about."""
    rows = rows_of(names)
    met: set[Row] = set()
    found_in = homes()
    for path in text_files():
        here = [row for row in rows if row.holds(path)]
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            new = python(text, here, met)
        elif path.suffix == ".md":
            new = page(text, [row for row in here if not row.where])
            public = {row.old: row.new for row in rows if row.strings or not row.where}
            new = re.sub(
                r"^(::: tacit[\w.]*\.)(\w+)$",
                lambda m, public=public: m[1] + public.get(m[2], m[2]),  # type: ignore[misc]
                new,
                flags=re.M,
            )
        else:
            continue
        if new != text and not check:
            path.write_text(new, encoding="utf-8")
    if not check:
        mutants(rows, found_in)
    for row in rows:
        if row not in met:
            print(f"  skipped: {row.old} is gone {' '.join(row.where)}")


MUTANTS = Path("tests/mutants/accepted.toml")


def homes() -> dict[str, list[Path]]:
    """Return the files in which each function, method, class or assignment of src stands."""
    found: dict[str, list[Path]] = {}

    def walk(body: list[ast.stmt], prefix: str, path: Path) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(prefix + node.name, []).append(path)
                walk(node.body, f"{prefix}{node.name}.", path)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    found.setdefault(prefix + ast.unparse(target), []).append(path)

    for path in Path("src/tacit").rglob("*.py"):
        walk(ast.parse(path.read_text()).body, "", path)
    return found


def mutants(rows: list[Row], found_in: dict[str, list[Path]]) -> None:
    """Rename in the list of accepted mutants, by the file in which each function stood."""
    if not MUTANTS.is_file():
        return
    met: set[Row] = set()

    def entry(match: re.Match[str]) -> str:
        function = match[1]
        paths = found_in.get(function, [])
        # A function inside of another, or one of that name in several files.
        here = [r for r in rows if any(r.holds(p) for p in paths) or not r.where]
        inner = match[0][match[0].index("[") + 1 : -2]
        return "    [" + bare(inner, here, met, quoted=True) + "],"

    text = MUTANTS.read_text(encoding="utf-8")
    new = re.sub(r'^    \["([^"]+)", .*\],$', entry, text, flags=re.M)
    MUTANTS.write_text(new, encoding="utf-8")


def kind_of(tokens: list[tokenize.TokenInfo], i: int, brackets: list[str]) -> str:
    """Return what a name token is: an attribute, a keyword argument, or something else."""
    if tokens[i - 1].string == ".":
        return "attribute"
    if brackets and brackets[-1] == "call" and tokens[i + 1].string == "=":
        return "keyword"
    if tokens[i + 1].string == "(" and tokens[i - 1].string not in ("def", "class"):
        return "call"
    return "other"


def python(text: str, rows: list[Row], met: set[Row]) -> str:
    """Return a module with its names replaced."""
    if not rows or not any(row.old in text for row in rows):
        return text
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = text.splitlines(keepends=True)
    edits: list[tuple[tuple[int, int], tuple[int, int], str]] = []
    brackets: list[str] = []
    callees: list[str] = []
    defining = importing = listed = False
    for i, token in enumerate(tokens):
        # The modules of an import are moved by another table.
        if token.type == tokenize.NAME and token.string in ("from", "import", "as"):
            starts_line = tokens[i - 1].type in _LINE_ENDS or i == 0
            importing = starts_line
            listed = listed or (token.string == "import")
        elif token.type in _LINE_ENDS:
            importing = False
            listed = listed and token.type == tokenize.NL
        if importing:
            continue
        if token.type == tokenize.NAME and token.string == "def":
            defining = True
        if token.type == tokenize.OP and token.string in "([{":
            before = tokens[i - 1]
            called = token.string == "(" and (
                before.string in (")", "]") or before.type == tokenize.NAME
            )
            callees.append(before.string if called else "")
            brackets.append("def" if defining and not brackets else "call" if called else "other")
        elif token.type == tokenize.OP and token.string in ")]}":
            brackets.pop()
            callees.pop()
            defining = defining and bool(brackets)
        if token.type == tokenize.NAME:
            kind = "import" if listed else kind_of(tokens, i, brackets)
            for row in rows:
                if row.old == token.string and row.is_of(kind):
                    edits.append((token.start, token.end, row.new))
                    met.add(row)
                    break
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            new = literal(token.string, rows, met)
            if _NAMING & set(callees):  # names of attributes, and of a test's parameters
                for row in rows:
                    if token.string.strip("\"'") == row.old and row.kinds:
                        new = token.string.replace(row.old, row.new)
                        break
            if new != token.string:
                edits.append((token.start, token.end, new))
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for (r0, c0), (r1, c1), new in sorted(edits, reverse=True):
        text = text[: starts[r0 - 1] + c0] + new + text[starts[r1 - 1] + c1 :]
    return text


def literal(text: str, rows: list[Row], met: set[Row]) -> str:
    """Return a string or comment with names in it replaced, where they are surely names."""
    if text.startswith("#"):
        return ticked(text, rows)
    match = re.match(r"([a-zA-Z]*)(\"\"\"|'''|\"|')(.*)\2$", text, re.DOTALL)
    if match is None:
        return text
    prefix, quote, inner = match.groups()
    if "f" in prefix.lower():
        inner = re.sub(r"(?<!\{)\{([^{}]+)\}", lambda m: "{" + braces(m[1], rows, met) + "}", inner)
        return f"{prefix}{quote}{inner}{quote}"
    for row in rows:
        if row.strings and inner == row.old:
            met.add(row)
            return f"{prefix}{quote}{row.new}{quote}"
    if len(quote) == 3:
        inner = ticked(inner, rows)
        inner = example_lines(inner, rows, met)
        for row in rows:
            if row.prose:
                inner = re.sub(
                    rf"^([ \t]+){re.escape(row.old)}$", rf"\g<1>{row.new}", inner, flags=re.M
                )
                inner = re.sub(
                    rf"^([ \t]+(?:\w+, )*){re.escape(row.old)}((?:, \w+)*)(\n[ \t]+[A-Z])",
                    rf"\g<1>{row.new}\g<2>\g<3>",
                    inner,
                    flags=re.M,
                )
    return f"{prefix}{quote}{inner}{quote}"


def braces(code: str, rows: list[Row], met: set[Row]) -> str:
    """Return the expression of an f-string with its names replaced."""
    expression, colon, rest = code.partition(":")
    return bare(expression, rows, met) + colon + rest


def bare(code: str, rows: list[Row], met: set[Row], *, quoted: bool = False) -> str:
    """Return a line of code with its names replaced, found without a parser."""

    def new(match: re.Match[str]) -> str:
        before = code[: match.start()].rstrip()[-1:]
        after = code[match.end() :].lstrip()
        kind = (
            "attribute"
            if before == "."
            else "keyword"
            if before in ("(", ",") and re.match(r"=(?!=)", after)
            else "other"
        )
        for row in rows:
            if row.old == match[0] and row.is_of(kind):
                met.add(row)
                return row.new
        return match[0]

    # Names inside of quotes are words, not names; unless all of it is quoted code.
    if match := re.match(r"(\s*(?:from [\w.]+ )?import )(?=[\w(])", code):
        if not match[1].lstrip().startswith("from"):
            return code
        head = len(match[1])
        return code[:head] + bare(code[head:], rows, met)
    if quoted:
        return re.sub(r"(?<!\w)[A-Za-z_]\w*(?!\w)", new, code)
    return re.sub(r"(?<![\w\"'])[A-Za-z_]\w*(?![\w\"'])", new, code)


def example_lines(text: str, rows: list[Row], met: set[Row]) -> str:
    """Return a docstring whose examples use the new names."""
    return re.sub(
        r"^([ \t]*(?:>>>|\.\.\.) )(.*)$", lambda m: m[1] + bare(m[2], rows, met), text, flags=re.M
    )


def ticked(text: str, rows: list[Row]) -> str:
    """Return a text whose names in backticks are the new ones."""
    names = {row.old: row.new for row in reversed(rows) if row.prose}

    def new(match: re.Match[str]) -> str:
        if match[2].startswith("tacit."):  # a module's path, which another table changes
            home, dot, last = match[2].rpartition(".")
            renamed = names.get(last, last) if not last.islower() else last
            return match[1] + home + dot + renamed + match[1]
        parts = re.split(r"(\W+)", match[2])
        return match[1] + "".join(names.get(part, part) for part in parts) + match[1]

    return re.sub(r"(`{1,2})([A-Za-z_][\w.()=, ]*)\1", new, text)


def page(text: str, rows: list[Row]) -> str:
    """Return a page whose code blocks and names in backticks are the new ones."""
    met: set[Row] = set()
    pieces = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    for i, piece in enumerate(pieces):
        if piece.startswith("```python"):
            pieces[i] = "\n".join(bare(line, rows, met) for line in piece.split("\n"))
        elif not piece.startswith("```"):
            pieces[i] = ticked(piece, rows)
    return "".join(pieces)
