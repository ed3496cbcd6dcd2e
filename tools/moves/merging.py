"""Write several modules as one: one docstring, one block of imports, the bodies in turn."""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field

from tree import bound_names

# From a module and a name to the dump of the assignment that makes it, if there is one.
Definition = Callable[[str, str], str | None]


class Collision(Exception):
    """Two parts of a merge bind one name to different things."""


@dataclass
class Part:
    """One of the modules that are merged."""

    module: str
    text: str
    rename: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rename:
            self.text = rename_globals(self.text, self.rename)
        self.tree = ast.parse(self.text)
        self.lines = self.text.splitlines()


def rename_globals(text: str, names: dict[str, str]) -> str:
    """Return a module with names of its top level replaced, wherever they mean that."""
    lines = text.splitlines(keepends=True)
    edits: set[tuple[int, int, str]] = set()

    def visit(node: ast.AST, hidden: frozenset[str]) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            local = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
            if not isinstance(node, ast.Lambda):
                local |= {
                    n.id
                    for n in ast.walk(node)
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                }
                local |= set(bound_names(node.body))
            hidden = hidden | (local & set(names))
        if isinstance(node, ast.Name) and node.id in names and node.id not in hidden:
            edits.add((node.lineno, node.col_offset, node.id))
        if isinstance(node, ast.alias) and (node.asname or node.name) in names and not node.asname:
            edits.add((node.lineno, node.col_offset, node.name))
        for child in ast.iter_child_nodes(node):
            visit(child, hidden)

    tree = ast.parse(text)
    visit(tree, frozenset())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names:
            first = lines[node.lineno - 1]
            edits.add((node.lineno, first.index(node.name, node.col_offset + 4), node.name))
    for row, column, old in sorted(edits, reverse=True):
        line = lines[row - 1].encode()
        if line[column : column + len(old)] != old.encode():
            raise Collision(f"cannot rename {old} inside of a formatted string in line {row}")
        new = line[:column] + names[old].encode() + line[column + len(old) :]
        lines[row - 1] = new.decode()
    return "".join(lines)


def is_typing_block(node: ast.AST) -> bool:
    """Return whether a statement is ``if TYPE_CHECKING:`` with imports alone."""
    return (
        isinstance(node, ast.If)
        and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        and not node.orelse
        and all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in node.body)
    )


def origin(alias: ast.alias, node: ast.Import | ast.ImportFrom) -> tuple[str, ...]:
    """Return what an import's name stands for."""
    if isinstance(node, ast.Import):
        return ("module", alias.name if alias.asname else alias.name.split(".")[0])
    return ("name", "." * node.level + (node.module or ""), alias.name)


def meanings(part: Part, among: set[str]) -> dict[str, tuple[str, ...]]:
    """Return what each name of a part's top level means; those of other parts are left out."""
    found: dict[str, tuple[str, ...]] = {}
    for name, node in bound_names(part.tree.body).items():
        if is_typing_block(node) or isinstance(node, ast.Import | ast.ImportFrom):
            inner = node.body if isinstance(node, ast.If) else [node]
            for statement in inner:
                assert isinstance(statement, ast.Import | ast.ImportFrom)
                for alias in statement.names:
                    if (alias.asname or alias.name.split(".")[0]) == name:
                        what = origin(alias, statement)
                        if what[0] == "name" and what[1] in among:
                            if alias.asname not in (None, alias.name):
                                found[name] = ("alias", *what)
                            continue
                        found[name] = what
        else:
            found[name] = ("defined", ast.dump(node))
    return found


def merge(parts: list[Part], docstring: str, target: str, definition: Definition) -> str:
    """Return one module's text; raise `Collision` where a name would mean two things."""
    among = {part.module for part in parts} | {target}
    seen: dict[str, tuple[Part, tuple[str, ...]]] = {}
    clashes: list[str] = []
    doubled: set[tuple[str, str]] = set()
    for part in parts:
        for name, what in meanings(part, among).items():
            if what[0] == "alias":
                clashes.append(f"{part.module} imports {what[2:]} of another part as {name}")
            if name not in seen:
                seen[name] = (part, what)
                continue
            first, meant = seen[name]
            if what == meant:
                if what[0] == "defined":
                    doubled.add((part.module, name))
            elif what[0] == "defined" and meant[0] == "name" and definition(*meant[1:]) == what[1]:
                doubled.add((part.module, name))  # a type alias that is imported, and written again
            elif meant[0] == "defined" and what[0] == "name" and definition(*what[1:]) == meant[1]:
                doubled.add((first.module, name))
                seen[name] = (part, what)
            elif name != "__all__":
                clashes.append(f"{name}: {first.module} and {part.module}")
    # A name of Python's own that one part binds is then another thing in the parts beside it.
    for name, (part, what) in seen.items():
        if hasattr(builtins, name) and what[0] in ("defined", "name"):
            for other in parts:
                if other is not part and name not in bound_names(other.tree.body):
                    used = {n.id for n in ast.walk(other.tree) if isinstance(n, ast.Name)}
                    if name in used:
                        clashes.append(
                            f"{name}: of {part.module}, and Python's own in {other.module}"
                        )
    if clashes:
        raise Collision(f"{target}: " + "; ".join(clashes))
    imports, bodies, paragraphs, future = [], [], [], False
    for part in parts:
        head, body, uses_future = split(part, among, {n for m, n in doubled if m == part.module})
        future |= uses_future
        imports += head
        bodies.append(body)
        paragraphs += beyond_first_line(part)
    text = quoted(docstring, paragraphs) + "\n\n"
    if future:
        text += "from __future__ import annotations\n\n"
    text += "\n".join(dict.fromkeys(imports)) + "\n\n\n" + "\n\n\n".join(b for b in bodies if b)
    return text.rstrip() + "\n"


def beyond_first_line(part: Part) -> list[str]:
    """Return the paragraphs of a module's docstring after its first."""
    words = ast.get_docstring(part.tree) or ""
    return [p for p in words.split("\n\n")[1:] if p.strip()]


def quoted(docstring: str, paragraphs: list[str]) -> str:
    """Return a module's docstring as it stands in a file."""
    first, *more = docstring.strip().split("\n\n")
    kept = [first, *more, *paragraphs]
    raw = "r" if any("\\" in p for p in kept) else ""
    if len(kept) == 1:
        return f'{raw}"""{first}"""'
    return f'{raw}"""' + "\n\n".join(kept) + '\n"""'


def split(part: Part, among: set[str], doubled: set[str]) -> tuple[list[str], str, bool]:
    """Return a module's imports, and what is left of it without docstring and imports."""
    gone: set[int] = set()
    imports: list[str] = []
    future = False
    body = part.tree.body
    if ast.get_docstring(part.tree) is not None:
        gone |= set(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    for node in body:
        span = range(node.lineno, (node.end_lineno or 0) + 1)
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            future = True
            gone |= set(span)
        elif isinstance(node, ast.Import | ast.ImportFrom) or is_typing_block(node):
            above = comments_above(part.lines, node.lineno)
            gone |= set(span) | set(above)
            if not (isinstance(node, ast.ImportFrom) and node.module in among):
                imports.append("\n".join(part.lines[i - 1] for i in (*above, *span)))
        elif doubled & set(bound_names([node])):
            above = comments_above(part.lines, node.lineno)
            decorated = getattr(node, "decorator_list", [])
            start = min([node.lineno, *(d.lineno for d in decorated)])
            gone |= set(range(start, (node.end_lineno or 0) + 1)) | set(above)
    # Inside of functions: nothing is imported from where one already is.
    for inner in ast.walk(part.tree):
        if isinstance(inner, ast.ImportFrom) and inner.module in among and inner.lineno not in gone:
            gone |= set(range(inner.lineno, (inner.end_lineno or 0) + 1))
    left = [line for i, line in enumerate(part.lines, 1) if i not in gone]
    return imports, "\n".join(left).strip("\n"), future


def comments_above(lines: list[str], row: int) -> list[int]:
    """Return the rows of the comment that stands directly above one."""
    found = []
    while row > 1 and lines[row - 2].startswith("#"):
        row -= 1
        found.append(row)
    return sorted(found)


def wrap(text: str) -> str:
    """Return a sentence that fits a docstring's line."""
    return "\n".join(textwrap.wrap(text, 96))
