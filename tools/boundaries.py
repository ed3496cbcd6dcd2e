"""Refuse sensitivities, noise and events outside of the packages that a checker reads.

A statistic in `tacit.queries` states its sensitivity, its noise and its event. Whoever states one
beside it can be wrong without a test noticing, so `make lint` looks for that in the syntax tree of
every file (docs/decisions/0058-where-events-are-built.md). Names are resolved by import: a local
function called `select` is none of ours, and `import tacit.noise as n; n.select` is.

    python tools/boundaries.py
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src"
# Their code is read by whoever checks a promise, or releases nothing (testing, audit).
HOMES = {"audit", "noise", "privacy", "queries", "testing"}

SENSITIVITIES = {"tacit.noise.bounded.Bounded", "tacit.queries.base.Sensitivity"}
# Of `tacit.noise` everybody may use these: they draw no noise for a release. Whatever else is
# there is refused, so that a new noise function is refused by itself.
OPEN_MODULES = {"tacit.noise", "tacit.noise.source"}
OPEN_NAMES = {
    "tacit.noise.bounded.Norm",
    "tacit.noise.bounded.round_up",
    "tacit.noise.selection.ball.MOST_DIMENSIONS",
    "tacit.noise.gaussian.draw_ahead",
    "tacit.noise.selection.line.Grid",
    "tacit.noise.exact.lattice.Ahead",
    "tacit.noise.exact.lattice.lattice_spacing",
    "tacit.noise.release.Release",
    "tacit.noise.release.ReplayMismatch",
    "tacit.noise.release.SEEDED",
    "tacit.noise.release.current",
    "tacit.noise.release.decide",
    "tacit.noise.release.priced",
    "tacit.noise.release.recording",
    "tacit.noise.release.replaying",
}
EVENTS_PACKAGE = "tacit.privacy.events"
# The protocol of events, and what compares relations: neither is an event.
NO_EVENTS = {"Event", "common_relation"}


@dataclass(frozen=True)
class Allowed:
    """What a file, or a folder (it ends with /), may use all the same, and why."""

    path: str
    names: frozenset[str]
    reason: str


def _allowed(path: str, names: str, reason: str) -> Allowed:
    return Allowed(path, frozenset(names.split()), reason)


ALLOWED = (
    _allowed(
        "engine.py",
        "NonPrivate",
        "`without_noise` is the plan of an infinite budget: nothing is promised.",
    ),
    _allowed(
        "erm/losses/",
        "LinearModelObjective LogCoshObjective LogisticObjective MonotoneObjective "
        "SoftmaxObjective",
        "A loss names the event of its perturbed minimum; `queries.minimizer` hands it the sizes "
        "and the noise, which follow from the plan's facts.",
    ),
    _allowed(
        "erm/mechanisms/objective_perturbation/perturbation.py",
        "Composed",
        "The events of a plan's slots, together; the session compares them leaf by leaf.",
    ),
    _allowed(
        "erm/mechanisms/balanced.py",
        "Composed",
        "The counts' event and the inner plan's, together, while the rest of a budget is searched.",
    ),
    _allowed(
        "erm/inference.py",
        "Composed Gaussian",
        "Shares of mu^2 for standard errors; the session refuses a question at another price.",
    ),
    _allowed(
        "deep/planning.py",
        "Repeated",
        "Calibration: steps of a training by noise, of which the least that fits is searched.",
    ),
    _allowed(
        "deep/checkpoint.py",
        "event_from_dict",
        "Reads the event of a training that was interrupted, to compare it with the plan's.",
    ),
    _allowed(
        "pipeline/budget_shares.py",
        "Gaussian",
        "Calibration: the epsilon of a share of mu^2, for the budget of one step.",
    ),
    _allowed(
        "tuning/planning.py",
        "BestOf Gaussian PureEpsilon",
        "Calibration: the best of K runs by their noise, of which the least that fits is searched.",
    ),
    _allowed(
        "tuning/search.py",
        "draw_tries",
        "Draws the secret number of tries, which no record decides; the session holds the search "
        "to it (`BestOfTries`).",
    ),
    _allowed(
        "ledger/",
        "Gaussian PureEpsilon event_from_dict",
        "Reads stored events back, and says how many releases of one kind still fit.",
    ),
    _allowed(
        "cli/ledger.py",
        "Gaussian PureEpsilon Repeated ZeroConcentrated",
        "Charges what another program releases, in the words of `tacit ledger charge`.",
    ),
    _allowed(
        "saving/codec.py",
        "event_from_dict",
        "Reads stored events back; they must be written as they were read.",
    ),
    _allowed(
        "local/",
        "Cap Gaussian Kernel NonPrivate PreparedRows PureEpsilon Steps add_row norm_tolerance "
        "prepare_cap prepare_gaussian prepare_sphere release_rows",
        "People sanitise at home, before there are records to ask: each sanitizer is a mechanism "
        "with its proof (docs/proofs/local_sanitizers.md).",
    ),
)


@dataclass(frozen=True, order=True)
class Finding:
    """A use of something that belongs elsewhere."""

    path: str  # below src/tacit
    line: int
    kind: str
    name: str

    def __str__(self) -> str:
        return f"src/tacit/{self.path}:{self.line}: {self.kind}: {self.name}"


class Package:
    """All modules of a package, parsed; knows where each name is defined."""

    def __init__(self, sources: Path = SOURCES) -> None:
        self.paths: dict[str, str] = {}
        self.trees: dict[str, ast.Module] = {}
        self._bound: dict[str, dict[str, str]] = {}
        for path in sorted((sources / "tacit").rglob("*.py")):
            self.add(path.relative_to(sources).as_posix(), path.read_text("utf-8"))

    def add(self, path: str, text: str) -> str:
        """Add a file by its path below the sources; return its module's name."""
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.paths[module], self.trees[module] = path, ast.parse(text)
        return module

    def bound(self, module: str) -> dict[str, str]:
        """Return what each name that a module imports or defines stands for, wherever it does."""
        if module not in self._bound:
            names: dict[str, str] = {}
            for node in ast.walk(self.trees[module]):
                names |= dict(self.imported(module, node))
            for statement in self.trees[module].body:
                if isinstance(statement, ast.ClassDef | ast.FunctionDef):
                    names[statement.name] = f"{module}.{statement.name}"
            self._bound[module] = names
        return self._bound[module]

    def imported(self, module: str, node: ast.AST) -> Iterator[tuple[str, str]]:
        """Yield (name, what it stands for) of an import statement."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                # `import a.b` binds a, `import a.b as c` binds a.b.
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                yield alias.asname or whole, whole
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                parts = module.split(".")
                kept = len(parts) - node.level + self.paths[module].endswith("__init__.py")
                origin = ".".join([*parts[:kept], *filter(None, [node.module])])
            for alias in node.names:
                yield alias.asname or alias.name, f"{origin}.{alias.name}"

    def resolve(self, dotted: str) -> str:
        """Return the module in which a name is defined, and the name there."""
        seen = set()
        while dotted not in seen:
            seen.add(dotted)
            owner, _, name = dotted.rpartition(".")
            owner = self.resolve(owner) if "." in owner and owner not in self.trees else owner
            dotted = f"{owner}.{name}".lstrip(".")
            # A function hides the module of its name, as `tacit.noise.gaussian` does.
            dotted = self.bound(owner).get(name, dotted) if owner in self.trees else dotted
        return dotted

    @cached_property
    def events(self) -> set[str]:
        """The names by which events are made, in the modules that define them."""
        exported = self.bound(EVENTS_PACKAGE)
        return {self.resolve(dotted) for name, dotted in exported.items() if name not in NO_EVENTS}

    def kind(self, dotted: str) -> str | None:
        """Return why a name is refused outside of the homes, or None."""
        if dotted in SENSITIVITIES:
            return "states a sensitivity"
        if dotted in self.events:
            return "builds an event"
        if dotted == "tacit.noise" or not dotted.startswith("tacit.noise."):
            return None
        owner = dotted if dotted in self.trees else dotted.rpartition(".")[0]
        # An attribute of an open class, as Norm.L1, is open too.
        if owner in OPEN_MODULES or {dotted, owner} & OPEN_NAMES:
            return None
        return "draws noise"

    def findings(self) -> Iterator[Finding]:
        """Yield what files outside of the homes use, allowed or not."""
        for module in self.trees:
            if self.paths[module].split("/")[1] not in HOMES:
                yield from self.uses(module)

    def uses(self, module: str) -> list[Finding]:
        """Return what one module uses."""
        return sorted(_Uses(self, module).found)


class _Uses(ast.NodeVisitor):
    """Finds the names in a module that are refused."""

    def __init__(self, package: Package, module: str) -> None:
        self.package, self.module = package, module
        self.path = package.paths[module].removeprefix("tacit/")
        self.found: set[Finding] = set()
        self.visit(package.trees[module])

    def _note(self, dotted: str, node: ast.AST, *, is_import: bool = False) -> None:
        name = self.package.resolve(dotted)
        kind = self.package.kind(name)
        # To import an event is no release: types are compared, and annotated. Noise is refused
        # where it is imported already.
        if kind and not (is_import and kind == "builds an event"):
            line = getattr(node, "lineno", 0)
            self.found.add(Finding(self.path, line, kind, name.rpartition(".")[2]))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._note(alias.name, node, is_import=True)
            # The module itself, if a function of its name hides it.
            kind = self.package.kind(alias.name) if alias.name in self.package.trees else None
            if kind == "draws noise":
                self.found.add(Finding(self.path, node.lineno, kind, alias.name))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for _, dotted in self.package.imported(self.module, node):
            self._note(dotted, node, is_import=True)
            if dotted.endswith(".*"):
                self.found.add(Finding(self.path, node.lineno, "imports unnamed", dotted))

    def visit_Name(self, node: ast.Name) -> None:
        dotted = self.package.bound(self.module).get(node.id)
        if dotted is not None and dotted != f"{self.module}.{node.id}":
            self._note(dotted, node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, base = [node.attr], node.value
        while isinstance(base, ast.Attribute):
            parts.append(base.attr)
            base = base.value
        bound = self.package.bound(self.module)
        if isinstance(base, ast.Name) and base.id in bound:
            dotted = bound[base.id]
            self._note(dotted, node)  # a method of an event's class makes one too
            for part in reversed(parts):
                dotted = f"{self.package.resolve(dotted)}.{part}"
                self._note(dotted, node)
        else:
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        # What is imported by its name as text.
        if isinstance(node.value, str) and node.value.startswith("tacit."):
            self._note(node.value, node)

    # Where a class is named and nothing is made of it.

    def visit_Call(self, node: ast.Call) -> None:
        self.visit(node.func)
        asks = isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass")
        for argument in node.args[:1] if asks else node.args:
            self.visit(argument)
        for keyword in node.keywords:
            self.visit(keyword.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        if not all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for pattern in (*node.patterns, *node.kwd_patterns):
            self.visit(pattern)

    def visit_arg(self, node: ast.arg) -> None:
        """Leave out annotations."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.decorator_list, node.args, *node.body):
            self.visit(part)


def _covers(path: str, file: str) -> bool:
    return file.startswith(path) if path.endswith("/") else file == path


def problems(package: Package, allowed: tuple[Allowed, ...] = ALLOWED) -> list[str]:
    """Return what is refused, and what is allowed though nobody needs it."""
    found = list(package.findings())
    refused = [
        finding
        for finding in found
        if not any(_covers(a.path, finding.path) and finding.name in a.names for a in allowed)
    ]
    unused = [
        f"tools/boundaries.py: {entry.path} no longer uses {name}; take it from ALLOWED"
        for entry in allowed
        for name in sorted(entry.names)
        if not any(_covers(entry.path, f.path) and f.name == name for f in found)
    ]
    return [*map(str, sorted(refused)), *unused]


def main() -> int:
    """Print what is refused; return 1 if there is something."""
    found = problems(Package())
    for line in found:
        print(line)
    if found:
        print(
            "Ask a session instead: a statistic in tacit.queries states sensitivity, noise and "
            "event (docs/decisions/0058-where-events-are-built.md)."
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
