"""Command line: see `make mutants`.

python -m mutants                          # everything; what survives must be in accepted.toml
python -m mutants tacit.noise.gaussian     # a module, a package, a function: what it begins with
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mutants.mutations import Mutant, mutants, names_of
from mutants.running import Called, Function, Outcome, Runner

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"
ACCEPTED = ROOT / "tests" / "mutants" / "accepted.toml"
SUMMARY = ROOT / "benchmarks" / "results" / "mutants.md"
KEPT = ROOT / ".mutants"
# In the order in which they are tried: the ones that every promise stands on come first.
TARGETS = (
    "privacy/events/*.py",
    "noise/gaussian.py",
    "noise/laplace.py",
    "noise/exact/lattice.py",
    "noise/bounded.py",
    "noise/selection/finite.py",
    "noise/perturbed_minimizer.py",
    "noise/summation.py",
    "privacy/filters.py",
    "privacy/guarantee.py",
    "privacy/accounting/*.py",
    "queries/*.py",
    "engine.py",
    "STATED",
    "erm/mechanisms/objective_perturbation/*.py",
    "erm/solvers.py",
    "records/exact/*.py",
    "row_clipping.py",
    "records/bounds.py",
    "noise/*.py",
    "noise/exact/*.py",
    "noise/selection/*.py",
    "privacy/*.py",
    "erm/plan.py",
)
# Compiled loops are not functions whose code can be changed.
COMPILED = {"records/exact/compiled.py"}
# What they refuse is the promise: their refusals are changed too.
REFUSING = {
    *("engine.py", "queries/base.py", "queries/session.py"),
    "queries/noise.py",
}
# Tests that notice changes of a module without the others: if only it is changed, only they are
# collected and measured, in a minute or a few. Whatever else is changed is tried with all tests.
_REFUSALS = ["tests/queries", "src/tacit/queries"]
_VOTES = [*_REFUSALS, "tests/pate"]
_BATCHES = [*_REFUSALS, "tests/deep/clipping", "tests/deep/test_ordered_trainer.py"]
_PREPROCESSING = [f"tests/preprocessing/test_{s}.py" for s in ("pca", "standard_scaler")]
OWN_TESTS = {
    "tacit.engine": ["tests/test_engine.py", "src/tacit/engine.py", *_REFUSALS],
    "tacit.queries.base": _REFUSALS,
    "tacit.queries.session": _REFUSALS,
    "tacit.queries.noise": _REFUSALS,
    "tacit.queries.votes": _VOTES,
    "tacit.queries.votes_cost": _VOTES,
    "tacit.queries.clipped_sum": _BATCHES,
    "tacit.queries.evaluation": [*_REFUSALS, "tests/metrics"],
    "tacit.queries": [*_REFUSALS, "tests/erm", *_PREPROCESSING],
    "tacit.privacy": ["tests/privacy", "src/tacit/privacy"],
}
# A file outside of these that calls one of these names states a sensitivity.
STATING = {"Bounded", "Sensitivity"}
HOMES = {"noise", "privacy", "testing", "audit"}
# They start programs, servers or browsers, or are about text: no change is looked for there.
IGNORED = [
    *("tests/cli", "tests/report", "tests/ledger", "tests/cluster", "tests/datasets"),
    "tests/golden",  # they call everything, and one of them waits for a cluster
    *("tests/preprocessing", "tests/saving", "tests/test_wheel.py", "tests/test_site.py"),
    *("tests/test_docs.py", "tests/test_reproduce.py", "tests/test_regret_benchmark.py"),
    *("tests/test_sklearn_checks.py", "tests/test_import.py", "tests/test_adding_a_loss.py"),
    *("src/tacit/cli", "src/tacit/report", "src/tacit/cluster"),
]


def targets() -> list[Path]:
    """Return the files to change."""
    root = SOURCES / "tacit"
    found: dict[Path, None] = {}
    for pattern in TARGETS:
        files = sorted(_stating(root) if pattern == "STATED" else root.glob(pattern))
        files = [f for f in files if f.relative_to(root).as_posix() not in COMPILED]
        if not files:
            raise SystemExit(f"no file is {pattern}: mend TARGETS")
        found |= dict.fromkeys(files)
    return list(found)


def _stating(root: Path) -> Iterator[Path]:
    for path in root.rglob("*.py"):
        if path.relative_to(root).parts[0] in HOMES:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            function = node.func if isinstance(node, ast.Call) else None
            if getattr(function, "id", getattr(function, "attr", "")) in STATING:
                yield path
                break


def changes_of(path: Path) -> list[Mutant]:
    """Return every change of a file."""
    refusals = path.relative_to(SOURCES / "tacit").as_posix() in REFUSING
    return mutants(path, module_of(path), refusals)


def tests_of(only: list[str]) -> list[str]:
    """Return where the tests of such modules are: all tests, unless they have some of their own."""
    found: dict[str, None] = {}
    for name in only or [""]:
        own = (t for m, t in OWN_TESTS.items() if name == m or name.startswith(f"{m}."))
        found |= dict.fromkeys(next(own, ["tests", "src"]))
    return ["tests", "src"] if "tests" in found else list(found)


def module_of(path: Path) -> str:
    """Return the name a file is imported by."""
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class References:
    """Which functions name a constant, or call what is remembered instead of called."""

    def __init__(self) -> None:
        self.of: dict[str, set[Function]] = {}
        self.remembered: set[Function] = set()
        self.derived: dict[str, set[str]] = {}
        for path in (SOURCES / "tacit").rglob("*.py"):
            self._read(ast.parse(path.read_text()), "", str(path))

    def _read(self, node: ast.AST, name: str, path: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = f"{name}.{getattr(child, 'name', '')}".lstrip(".")
            if isinstance(child, ast.Assign | ast.AnnAssign) and child.value is not None:
                for part in ast.walk(child.value):
                    if isinstance(part, ast.Name):
                        self.derived.setdefault(part.id, set()).update(names_of(child))
            elif isinstance(child, ast.ClassDef):
                self._read(child, inner, path)
            elif isinstance(child, ast.FunctionDef):
                function = path, inner
                if any("cache" in ast.unparse(d) for d in child.decorator_list):
                    self.remembered.add(function)
                for part in ast.walk(child):
                    used = part.id if isinstance(part, ast.Name) else getattr(part, "attr", None)
                    if used:
                        self.of.setdefault(used, set()).add(function)

    def _following(self, names: set[str]) -> set[str]:
        """Return constants and what other constants are computed from them."""
        while more := {n for name in names for n in self.derived.get(name, ())} - names:
            names |= more
        return names

    def around(self, mutant: Mutant) -> set[Function]:
        """Return the functions whose tests may notice a change."""
        last = mutant.qualname.split(".")[-1]
        here = str(mutant.path), mutant.qualname
        if not isinstance(mutant.statement, ast.Assign | ast.AnnAssign):
            return {here} | (self.of.get(last, set()) if here in self.remembered else set())
        names = self._following(names_of(mutant.statement))
        found = {function for name in names for function in self.of.get(name, set())}
        if isinstance(mutant.scope, ast.ClassDef):
            name = mutant.scope.name
            found |= self.of.get(name, set())
            found |= {(here[0], f"{name}.{m}") for m in ("__post_init__", "__init__")}
        # What is remembered is not called again.
        for _, qualname in list(found & self.remembered):
            found |= self.of.get(qualname.split(".")[-1], set())
        return found


class Mutating:
    """The pytest plugin: instead of running the collected tests, try changes with them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.results: list[tuple[Mutant, Outcome]] = []
        self.noticed: dict[str, Counter[str]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        runner = Runner(session, SOURCES / "tacit")
        calls = self._calls(runner)
        if self.options.measure_only:
            return True
        chosen = list(self._chosen())
        print(f"{len(chosen)} changes", flush=True)
        by_function: dict[Function, list[str]] = {}
        for nodeid, called in calls.items():
            if called.passed and nodeid in runner.items:
                for function in called.functions:
                    by_function.setdefault(function, []).append(nodeid)
        references = References()
        passing = [n for n, called in calls.items() if called.passed and n in runner.items]
        texts = {f: (ROOT / f).read_text() for f in {n.split("::")[0] for n in passing}}

        @cache
        def said_in(name: str) -> tuple[str, ...]:
            word = re.compile(rf"\b{re.escape(name)}\b")
            return tuple(f for f, text in texts.items() if len(name) > 4 and word.search(text))

        for row in _lines(KEPT / "results.jsonl"):
            self._learn(row["module"], row["by"])

        def plan() -> Iterator[tuple[Mutant, list[str], float]]:
            # One after the other: which tests notice changes is learned on the way.
            for mutant in chosen:
                around = references.around(mutant)
                nodeids = {n for function in around for n in by_function.get(function, ())}
                if isinstance(mutant.statement, ast.Assign | ast.AnnAssign):
                    # Tests may read a constant without calling anything that uses it.
                    readers = {f for name in names_of(mutant.statement) for f in said_in(name)}
                    nodeids |= {n for n in passing if n.split("::")[0] in readers}
                if nodeids:
                    direct = by_function.get((str(mutant.path), mutant.qualname), [])
                    yield mutant, *self._order(mutant, nodeids, set(direct), calls)
                else:
                    self._note(mutant, Outcome("untested", "", 0, 0.0))

        for mutant, outcome in runner.run(plan(), self.options.workers):
            self._note(mutant, outcome)
            self._learn(mutant.module, outcome.by)
        return True

    def _learn(self, module: str, test: str) -> None:
        if test:
            self.noticed.setdefault(module, Counter())[test] += 1

    def _order(
        self, mutant: Mutant, nodeids: set[str], direct: set[str], calls: dict[str, Called]
    ) -> tuple[list[str], float]:
        """Return tests: first those that noticed other changes of the module, then the quickest.

        Those of the file's own name count as quicker than they are, and what only calls those who
        call a function that is remembered comes last.
        """
        own = f"/test_{mutant.path.stem}.py"
        noticed = self.noticed.get(mutant.module, Counter())
        proven = [n for n, _ in noticed.most_common() if n in nodeids]

        def seconds_of(nodeid: str) -> tuple[bool, float, str]:
            seconds = calls[nodeid].seconds * (0.2 if own in nodeid else 1.0)
            return nodeid not in direct, seconds, nodeid

        kept: dict[str, None] = {}
        total = 0.0
        for some, limit in (
            (proven, self.options.seconds),
            (sorted(nodeids, key=seconds_of), 2 * self.options.seconds),
        ):
            for nodeid in some:
                if nodeid not in kept and (not kept or total + calls[nodeid].seconds <= limit):
                    kept[nodeid] = None
                    total += calls[nodeid].seconds
        return list(kept), total

    def _chosen(self) -> Iterator[Mutant]:
        known = set()
        if self.options.resume:
            known = {tuple(r["key"]) for r in _lines(KEPT / "results.jsonl")}
        again = None
        if self.options.keys:
            again = {tuple(key) for key in json.loads(self.options.keys.read_text())}
        elif self.options.again:
            again = {
                tuple(r["key"])
                for r in _latest(KEPT / "results.jsonl").values()
                if r["verdict"] in ("survived", "untested")
            }
        if not self.options.accepted:
            known |= set(accepted())
        for path in targets():
            module = module_of(path)
            for mutant in _some(changes_of(path), self.options.per_line if again is None else 0):
                name = f"{module}.{mutant.qualname}"
                wanted = not self.options.only or any(
                    name == only or name.startswith(f"{only}.") for only in self.options.only
                )
                if wanted and mutant.key not in known and (again is None or mutant.key in again):
                    yield mutant

    def _calls(self, runner: Runner) -> dict[str, Called]:
        """Measure what tests call, where that is not known since the last time."""
        kept = KEPT / "calls.jsonl"
        calls = {}
        digests: dict[str, int] = {}
        for nodeid in runner.items:
            file = nodeid.split("::")[0]
            if file not in digests:
                digests[file] = (ROOT / file).stat().st_mtime_ns
        for row in _lines(kept):
            file = row["test"].split("::")[0]
            if digests.get(file) == row["changed"]:
                functions = {(str(SOURCES / f), q) for f, q in row["functions"]}
                calls[row["test"]] = Called(row["seconds"], row["passed"], functions)
        left = [nodeid for nodeid in runner.items if nodeid not in calls]
        print(f"{len(runner.items)} tests, {len(left)} to be measured", flush=True)
        with kept.open("a") as out:
            for nodeid, called in runner.measure(left, self.options.workers):
                calls[nodeid] = called
                if not called.passed:
                    print(f"left out, since it fails unchanged: {nodeid}", flush=True)
                named = ((str(Path(f).relative_to(SOURCES)), q) for f, q in called.functions)
                row = {
                    "test": nodeid,
                    "changed": digests[nodeid.split("::")[0]],
                    "seconds": round(called.seconds, 4),
                    "passed": called.passed,
                    "functions": sorted(named),
                }
                print(json.dumps(row), file=out, flush=True)
        return calls

    def _note(self, mutant: Mutant, outcome: Outcome) -> None:
        self.results.append((mutant, outcome))
        row = {
            "module": mutant.module,
            "line": mutant.line,
            "key": mutant.key,
            "verdict": outcome.verdict,
            "by": outcome.by,
            "tests": outcome.n_tests,
            "seconds": round(outcome.seconds, 2),
        }
        with (KEPT / "results.jsonl").open("a") as out:
            print(json.dumps(row), file=out)
        if outcome.verdict in ("survived", "untested"):
            print(f"{outcome.verdict}: {mutant.module}:{mutant.line} {mutant.qualname}")
            print(f"    {mutant.before}\n    {mutant.after}", flush=True)


def _some(found: list[Mutant], per_line: int) -> list[Mutant]:
    """Return so many changes of each line, of every kind some; 0: all."""
    lines: dict[int, list[Mutant]] = {}
    for mutant in found:
        lines.setdefault(mutant.line, []).append(mutant)
    kept = []
    for of_line in lines.values():
        n = len(of_line)
        if per_line and n > per_line:
            of_line = [of_line[i * (n - 1) // max(per_line - 1, 1)] for i in range(per_line)]
        kept += of_line
    return kept


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open() as lines:
            for line in lines:
                yield json.loads(line)


def _latest(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(row["key"]): row for row in _lines(path)}


def accepted() -> dict[tuple[str, str, str], str]:
    """Return the reasons of changes that may survive."""
    if not ACCEPTED.exists():
        return {}
    found = {}
    for group in tomllib.loads(ACCEPTED.read_text())["group"]:
        for name, before, after in group["changes"]:
            found[name, before, after] = group["reason"]
    return found


def report() -> int:
    """Write how many changes of each module were noticed, as last tried; return how many were not.

    Changes that are no longer there, since the code is another one, do not count.
    """
    last, reasons = _latest(KEPT / "results.jsonl"), accepted()
    rows, totals, listed = [], Counter[str](), set()
    unknown: list[str] = []
    for path in targets():
        counts: Counter[str] = Counter()
        for mutant in changes_of(path):
            row = last.get(mutant.key)
            listed.add(mutant.key)
            counts["all"] += 1
            if row is None and mutant.key in reasons:
                counts["tried"] += 1
                counts["accepted"] += 1
            elif row is not None:
                counts["tried"] += 1
                survives = row["verdict"] in ("survived", "untested")
                where = "accepted" if mutant.key in reasons else "open"
                counts[where if survives else "noticed"] += 1
                if survives and where == "open":
                    place = f"{mutant.module} {mutant.qualname}"
                    unknown.append(f"{place}\n    {mutant.before}\n    {mutant.after}")
        totals += counts
        rows.append(_table_row(f"`{module_of(path)}`", counts))
    for key in sorted(set(reasons) - listed):
        print("accepted, but no longer there:", *key, sep="\n    ")
    groups = Counter(reason for key, reason in reasons.items() if key in listed)
    head = ["module", "possible", "tried", "noticed", "accepted", "open"]
    lines = [
        "# Changes of privacy code that tests notice",
        "",
        "Written by `python -m mutants --report`, from the last result of each change that was",
        "tried (`make mutants`, docs/decisions/0055). Possible are all changes of a module, tried",
        "those of them that were run, two of a line or more. What survives is accepted in",
        "`tests/mutants/accepted.toml`, for these reasons:",
        "",
        *(f"- {n}: {reason}" for reason, n in groups.most_common()),
        "",
        f"| {' | '.join(head)} |",
        f"| {' | '.join('---' for _ in head)} |",
        _table_row("all", totals),
        *rows,
        "",
        "Open: they survived, and wait for a test or a reason.",
        "",
        "```",
        *unknown,
        "```",
    ]
    SUMMARY.write_text("\n".join(lines) + "\n")
    print(f"{SUMMARY.relative_to(ROOT)}: {dict(totals)}")
    return 1 if unknown else 0


def _table_row(name: str, counts: Counter[str]) -> str:
    numbers = (counts[word] for word in ("all", "tried", "noticed", "accepted", "open"))
    return f"| {name} | {' | '.join(f'{n:,}' for n in numbers)} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("only", nargs="*", help="what the qualified name begins with")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for a change")
    parser.add_argument("--per-line", type=int, default=2, help="changes of a line, 0: all")
    parser.add_argument("--accepted", action="store_true", help="try accepted ones too")
    parser.add_argument("--resume", action="store_true", help="leave out what was tried before")
    parser.add_argument("--again", action="store_true", help="only what survived the last time")
    parser.add_argument("--keys", type=Path, help="only these: JSON of [name, before, after]")
    parser.add_argument("--measure-only", action="store_true")
    parser.add_argument("--report", action="store_true", help="only write the summary of all runs")
    options = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    os.chdir(ROOT)
    if options.report:
        return report()
    start = time.monotonic()
    plugin = Mutating(options)
    wanted = tests_of(options.only)
    ignored = [
        f"--ignore={path}"
        for path in IGNORED
        if (ROOT / path).exists() and not any(name.startswith(f"{path}/") for name in wanted)
    ]
    words = ["-q", "-s", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", *ignored]
    pytest.main([*words, *wanted], plugins=[plugin])
    reasons = accepted()
    counts = Counter(outcome.verdict for _, outcome in plugin.results)
    left = [m for m, o in plugin.results if o.verdict in ("survived", "untested")]
    unknown = [mutant for mutant in left if mutant.key not in reasons]
    print(f"{sum(counts.values())} changes in {time.monotonic() - start:.0f} s: {dict(counts)}")
    print(f"{len(left) - len(unknown)} survivors are accepted, {len(unknown)} are not")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
