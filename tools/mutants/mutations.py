"""List small changes of a module's source that would matter if no test noticed them.

A change replaces one node of the syntax tree: a number, a comparison, a sign, a factor, a rounding
call. What is left alone, because a change there says nothing about privacy:

- docstrings, annotations, strings, decorators, assertions and everything in a ``raise``;
- the condition of an ``if`` whose body only raises, and the arguments of ``checks.*``: they refuse
  arguments, and what they refuse has tests of its own;
- a plain number in brackets (``shape[0]``), ``axis=``, ``ndim``, ``maxsize=`` and ``stacklevel=``;
- what only describes: ``__repr__``, functions that return text, and ``tried``, examples for tests.

Of a module whose refusals are the promise (a session) these are changed too: conditions of what
only raises, ``isinstance``, each part of ``and`` and ``or`` left out, and whole statements that
call something or note something on an object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# A text of at most this many characters names the place of a change.
LONGEST_TEXT = 110

SWAPPED_CALLS = {
    "ceil": "floor",
    "floor": "ceil",
    "trunc": "rint",
    "rint": "trunc",
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "fmin": "fmax",
    "fmax": "fmin",
    "all": "any",
    "any": "all",
}
# math has no rint, and numpy's functions have no `any` of a generator: such a change dies at once.
DROPPED_CALLS = {"round_up", "nextafter", "abs", "sqrt", "expm1", "log1p"}
INSTEAD_OF_DROPPED = {"expm1": "exp", "log1p": "log"}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
SKIPPED_KEYWORDS = {"axis", "ndim", "maxsize", "stacklevel", "dtype", "order", "places", "remedy"}
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "bases"}


@dataclass(frozen=True)
class Mutant:
    """One change: which node is replaced by which, and how people and lists name it."""

    module: str
    path: Path
    tree: ast.Module
    qualname: str  # of the outermost function, or of the class or module around a constant
    scope: ast.AST
    statement: ast.stmt
    line: int
    before: str
    after: str
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST

    @property
    def key(self) -> tuple[str, str, str]:
        """Name the change without its file and line, so that a list of them outlives moves."""
        return self.qualname, self.before, self.after

    def apply(self) -> ast.AST:
        """Change the tree; return what was there."""
        return _put(self.parent, self.field, self.index, self.new)


def mutants(path: Path, module: str, refusals: bool = False) -> list[Mutant]:
    """Return every change of a file, in the order of its lines; those of refusals if wanted."""
    tree = ast.parse(path.read_text())
    found = list(_of_body(tree, tree, "", path, module, tree, refusals))
    return list({mutant.key: mutant for mutant in reversed(found)}.values())[::-1]


def names_of(statement: ast.stmt) -> set[str]:
    """Return the names that an assignment gives values to."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}


def _of_body(
    body_of: ast.AST,
    scope: ast.AST,
    name: str,
    path: Path,
    module: str,
    tree: ast.Module,
    refusals: bool,
) -> Iterator[Mutant]:
    """Go through the statements of a module or a class."""
    for statement in getattr(body_of, "body", []):
        if isinstance(statement, ast.ClassDef):
            inner = f"{name}.{statement.name}".lstrip(".")
            yield from _of_body(statement, statement, inner, path, module, tree, refusals)
        elif isinstance(statement, ast.FunctionDef):
            inner = f"{name}.{statement.name}".lstrip(".")
            if not _describes(statement):
                yield from _of_scope(statement, statement, inner, path, module, tree, refusals)
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            inner = f"{name}.{ast.unparse(target)}".lstrip(".")
            yield from _of_scope(statement, scope, inner, path, module, tree, refusals)


def _describes(function: ast.FunctionDef) -> bool:
    says = function.returns is not None and ast.unparse(function.returns) == "str"
    overload = any("overload" in ast.unparse(d) for d in function.decorator_list)
    return says or overload or function.name in ("__repr__", "__str__", "tried", "tried_on")


def _of_scope(
    root: ast.stmt,
    scope: ast.AST,
    name: str,
    path: Path,
    module: str,
    tree: ast.Module,
    refusals: bool,
) -> Iterator[Mutant]:
    for trail, node in _nodes(root, [], refusals):
        parent, field, index = trail[-1]
        changes = [*_changes(node, parent), *(_refused_less(node, parent) if refusals else ())]
        for new in changes:
            ast.copy_location(new, node)
            ast.fix_missing_locations(new)
            top = _largest_short(node, trail)
            before = _text(top)
            if top is node:
                after = _text(new)
            else:
                old = _put(parent, field, index, new)
                after = _text(top)
                _put(parent, field, index, old)
            if before == after:
                continue
            line = getattr(node, "lineno", getattr(parent, "lineno", 0))
            yield Mutant(
                module,
                path,
                tree,
                name,
                scope,
                root,
                line,
                before,
                after,
                parent,
                field,
                index,
                new,
            )


Trail = list[tuple[ast.AST, str, int | None]]


def _nodes(node: ast.AST, trail: Trail, refusals: bool) -> Iterator[tuple[Trail, ast.AST]]:
    """Yield every node below one that may be changed, with the way to it."""
    for field, value in ast.iter_fields(node):
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if not isinstance(child, ast.AST) or _is_skipped(node, field, child, refusals):
                continue
            way = [*trail, (node, field, index)]
            yield way, child
            yield from _nodes(child, way, refusals)


def _is_skipped(parent: ast.AST, field: str, child: ast.AST, refusals: bool) -> bool:
    if field in SKIPPED_FIELDS or _is_power_of_two(parent):
        return True
    if isinstance(parent, ast.While) and field == "test" and isinstance(child, ast.Constant):
        return True
    if isinstance(child, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
        return True
    if field == "slice" and isinstance(child, ast.Constant | ast.UnaryOp):
        return True
    if isinstance(parent, ast.If) and field == "test":
        return not refusals and _only_raises(parent)
    if isinstance(child, ast.If) and _only_raises(child):
        return not refusals and not child.orelse
    if isinstance(child, ast.keyword) and child.arg in SKIPPED_KEYWORDS:
        return True
    if isinstance(child, ast.Call):
        name = ast.unparse(child.func)
        if name == "isinstance":
            return not refusals
        return name.startswith(("checks.", "warnings.", "cast", "lru_cache"))
    if isinstance(parent, ast.Compare) and isinstance(child, ast.Constant):
        return ast.unparse(parent.left).endswith((".ndim", ".kind", "itemsize"))
    return False


def _only_raises(node: ast.If) -> bool:
    return all(isinstance(statement, ast.Raise) for statement in node.body)


def _refused_less(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """Yield what a module would do that refuses less, or forgets what it has seen."""
    if isinstance(parent, ast.If) and node is parent.test and _only_raises(parent):
        yield ast.Constant(False)
    if isinstance(node, ast.BoolOp):
        for i in range(len(node.values)):
            left = [*node.values[:i], *node.values[i + 1 :]]
            yield left[0] if len(left) == 1 else ast.BoolOp(node.op, left)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
        yield ast.Constant(True)
        yield ast.Constant(False)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    noted = node.targets if isinstance(node, ast.Assign) else ()
    noted = [node.target] if isinstance(node, ast.AugAssign) else noted
    if any(isinstance(target, ast.Attribute | ast.Subscript) for target in noted):
        yield ast.Pass()


def _changes(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node."""
    if isinstance(node, ast.Constant):
        yield from _other_numbers(node.value)
    elif isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            other = COMPARISONS.get(type(operator))
            if other is not None:
                ops = [*node.ops[:i], other(), *node.ops[i + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        if not isinstance(node.operand, ast.Constant):
            yield node.operand
    elif isinstance(node, ast.BinOp):
        yield from _other_operations(node)
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        yield ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
    elif isinstance(node, ast.Call):
        yield from _other_calls(node)
    if isinstance(node, ast.expr) and isinstance(parent, ast.If | ast.IfExp | ast.While):
        whole = isinstance(node, ast.Name | ast.Attribute | ast.Call) or _is_order(node)
        if node is parent.test and whole:
            yield ast.UnaryOp(ast.Not(), node)


def _is_order(node: ast.AST) -> bool:
    """Return whether this is a < b or the like, whose change to a <= b says little."""
    return isinstance(node, ast.Compare) and isinstance(
        node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE
    )


def _other_numbers(value: object) -> Iterator[ast.AST]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
    elif value == 0.0:
        yield ast.Constant(1.0)
    elif isinstance(value, float):
        yield ast.Constant(value * 2)
        yield ast.Constant(value / 2)


def _other_operations(node: ast.BinOp) -> Iterator[ast.AST]:
    left, right, kind = node.left, node.right, type(node.op)
    if _is_power_of_two(node):
        # A margin or a size: once twice as large, once half as large.
        for step in (ast.Add(), ast.Sub()):
            yield ast.BinOp(left, node.op, ast.BinOp(right, step, ast.Constant(1)))
    elif kind in OPERATORS:
        yield ast.BinOp(left, OPERATORS[kind](), right)
    elif kind in (ast.Mult, ast.Div, ast.Pow, ast.MatMult):
        if not isinstance(left, ast.Constant):
            yield left
        if kind is ast.Mult and not isinstance(right, ast.Constant):
            yield right


def _is_power_of_two(node: ast.AST) -> bool:
    """Return whether this is 2.0**-40 or 1 << 15."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.left, ast.Constant):
        return False
    number = 1 if isinstance(node.op, ast.LShift) else 2 if isinstance(node.op, ast.Pow) else None
    exponent = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
    return node.left.value == number and isinstance(exponent, ast.Constant | ast.Name)


def _other_calls(node: ast.Call) -> Iterator[ast.AST]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = node.func.id if isinstance(node.func, ast.Name) else name
    other = SWAPPED_CALLS.get(name, INSTEAD_OF_DROPPED.get(name))
    if other is not None:
        if isinstance(node.func, ast.Attribute):
            func: ast.expr = ast.Attribute(node.func.value, other, ast.Load())
        else:
            func = ast.Name(other, ast.Load())
        yield ast.Call(func, node.args, node.keywords)
    elif name in DROPPED_CALLS and node.args:
        yield node.args[0]


def _largest_short(node: ast.AST, trail: Trail) -> ast.AST:
    """Return the largest thing around a node whose text is short: its statement, if it is."""
    best = node
    for parent, _, _ in reversed(trail):
        if not isinstance(parent, ast.expr | ast.stmt | ast.keyword) or _is_compound(parent):
            break
        if len(_text(parent)) > LONGEST_TEXT:
            break
        best = parent
    return best


def _is_compound(node: ast.AST) -> bool:
    return isinstance(node, ast.stmt) and hasattr(node, "body")


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _put(parent: ast.AST, field: str, index: int | None, new: ast.AST) -> ast.AST:
    if index is None:
        old = getattr(parent, field)
        setattr(parent, field, new)
    else:
        items = getattr(parent, field)
        old = items[index]
        items[index] = new
    assert isinstance(old, ast.AST)
    return old
