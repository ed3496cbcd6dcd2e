"""Run the tests that belong to a change, in a fork of a process that has collected them all.

Starting Python, importing and collecting take 15 seconds, a test takes a few milliseconds. So one
pytest session imports and collects everything once. A child of it is forked for every change: it
puts the changed code into the living functions, runs the tests that call them, quickest first,
and stops at the first that fails.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any

import pytest

from mutants.mutations import Mutant, names_of

Function = tuple[str, str]  # file and qualified name of an outermost function
_MEMORY = 12 << 30  # of address space: a changed size must not fill the machine
_LEAST_LIMIT, _SLOWER = 8.0, 6.0  # seconds of a change's tests, and times what they take
_LONGEST_TEST = 90.0  # seconds of one test while what it calls is measured


@dataclass
class Called:
    """What a test calls and how long it takes."""

    seconds: float = 0.0
    passed: bool = False
    functions: set[Function] = field(default_factory=set)


@dataclass(frozen=True)
class Outcome:
    """What became of a change."""

    verdict: str  # killed, timeout, survived or untested
    by: str
    n_tests: int
    seconds: float


def outermost(code: types.CodeType) -> Function:
    """Name the function of a file that a comprehension or an inner function belongs to."""
    return code.co_filename, code.co_qualname.split(".<locals>")[0]


class _Reports:
    """Remember the first test that fails."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


class Runner:
    """A session whose tests are collected, from which children are forked."""

    def __init__(self, session: pytest.Session, sources: Path) -> None:
        self.session, self.sources = session, sources
        self.items = {item.nodeid: item for item in session.items}
        self.reports = _Reports()
        self._told = Path(os.devnull)
        session.config.pluginmanager.register(self.reports)
        self._living: dict[tuple[str, str], list[types.FunctionType]] = {}
        self._caches: list[Any] = []
        for thing in gc.get_objects():
            if type(thing) is types.FunctionType:
                if thing.__code__.co_filename.startswith(str(sources)):
                    key = thing.__code__.co_filename, thing.__code__.co_qualname
                    self._living.setdefault(key, []).append(thing)
            elif type(thing) is _lru_cache_wrapper and str(thing.__module__).startswith("tacit"):
                self._caches.append(thing)
        gc.collect()
        gc.freeze()  # children do not touch, and so do not copy, what is there

    def in_children(
        self,
        tasks: Iterable[tuple[Any, Callable[[], None], float]],
        workers: int,
    ) -> Iterator[tuple[Any, list[Any], bool, float]]:
        """Yield (name, what its child told, whether it ended by itself, seconds).

        A child that tells nothing for longer than its limit is killed with all it has started: in a
        fork, whatever waits for threads of the parent (polars, pyarrow) waits for ever.
        """
        running: dict[int, tuple[Any, Path, float, float]] = {}
        heard: dict[int, tuple[int, float]] = {}  # how much a child has told, and since when
        waiting = iter(tasks)
        done = False
        while running or not done:
            while not done and len(running) < workers:
                try:
                    name, work, limit = next(waiting)
                except StopIteration:
                    done = True
                    break
                folder = Path(tempfile.mkdtemp(prefix="mutant-"))
                pid = os.fork()
                if pid == 0:
                    self._be_child(folder, work)
                running[pid] = name, folder, time.monotonic(), limit
                heard[pid] = 0, time.monotonic()
            for pid in list(running):
                name, folder, start, limit = running[pid]
                now, told = time.monotonic(), folder / "told"
                size = told.stat().st_size if told.exists() else 0
                if size > heard[pid][0]:
                    heard[pid] = size, now
                ended = os.waitpid(pid, os.WNOHANG)[0] == pid
                if not ended and now - heard[pid][1] <= limit:
                    continue
                del running[pid], heard[pid]
                # Whatever a test left running ends with it: the child leads its group.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                if not ended:
                    os.waitpid(pid, 0)
                lines = told.read_text().split("\n")[:-1] if told.exists() else []
                shutil.rmtree(folder, ignore_errors=True)
                yield name, [json.loads(line) for line in lines], ended, now - start
            time.sleep(0.005)

    def _be_child(self, folder: Path, work: Callable[[], None]) -> None:
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
            config: Any = self.session.config
            config._tmp_path_factory._given_basetemp = folder / "tests"
            # Keys follow from the names of tests in the process that conftest.py knows.
            sys.modules["conftest"]._KEYS._process = os.getpid()
            self._told = folder / "told"
            work()
        except BaseException as error:
            self._tell({"error": repr(error)[:300]})
        finally:
            os._exit(0)

    def _tell(self, what: object) -> None:
        """Hand something from a child to its parent."""
        with self._told.open("a") as told:
            told.write(json.dumps(what) + "\n")

    def _run(self, items: list[pytest.Item], until_failure: bool = True) -> None:
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if until_failure and self.reports.failed:
                return

    # What each test calls.

    def measure(self, nodeids: list[str], workers: int) -> Iterator[tuple[str, Called]]:
        """Run tests unchanged, a file in a child; yield what each calls.

        A test that hangs, or ends its process, has failed; those after it get another child.
        """
        files: dict[str, list[str]] = {}
        for nodeid in nodeids:
            files.setdefault(nodeid.split("::")[0], []).append(nodeid)
        waiting = list(files.values())
        while waiting:
            tasks = [(ids, self._measuring(ids), _LONGEST_TEST) for ids in waiting]
            waiting = []
            for ids, told, _, _ in self.in_children(tasks, workers):
                rows = [row for row in told if "test" in row]
                for row in rows:
                    functions = {(f, q) for f, q in row["functions"]}
                    yield row["test"], Called(row["seconds"], row["passed"], functions)
                if len(rows) < len(ids):
                    yield ids[len(rows)], Called(_LONGEST_TEST, False)
                    if left := ids[len(rows) + 1 :]:
                        waiting.append(left)

    def _measuring(self, nodeids: list[str]) -> Callable[[], None]:
        def work() -> None:
            shared: dict[str, dict[int, types.CodeType]] = {}
            current: dict[int, types.CodeType] = {}
            fixtures = _FixtureCalls(shared)
            self.session.config.pluginmanager.register(fixtures)

            def look(frame: types.FrameType, _event: str, _argument: object) -> None:
                code = frame.f_code
                fixtures.target[id(code)] = code

            items = [self.items[nodeid] for nodeid in nodeids]
            for item, following in zip(items, [*items[1:], None], strict=True):
                for cache in self._caches:
                    cache.cache_clear()
                current = fixtures.target = {}
                self.reports.failed = ""
                start = time.perf_counter()
                sys.settrace(look)
                threading.settrace(look)
                try:
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                finally:
                    sys.settrace(None)
                    threading.settrace(None)
                codes = list(current.values())
                for name in getattr(item, "fixturenames", ()):
                    codes += shared.get(name, {}).values()
                functions = {outermost(code) for code in codes}
                ours = [f for f in functions if f[0].startswith(str(self.sources))]
                seconds = time.perf_counter() - start
                passed = not self.reports.failed
                row = {"test": item.nodeid, "seconds": seconds, "passed": passed}
                self._tell({**row, "functions": sorted(ours)})

        return work

    # Changes.

    def run(
        self, chosen: Iterable[tuple[Mutant, list[str], float]], workers: int
    ) -> Iterator[tuple[Mutant, Outcome]]:
        """Try changes, each with its tests and how long these take unchanged."""

        def tasks() -> Iterator[tuple[Any, Callable[[], None], float]]:
            for mutant, nodeids, seconds in chosen:
                limit = max(_LEAST_LIMIT, _SLOWER * seconds)
                yield (mutant, nodeids), self._trying(mutant, nodeids), limit

        for (mutant, nodeids), told, ended, seconds in self.in_children(tasks(), workers):
            if not ended:
                outcome = Outcome("timeout", "", len(nodeids), seconds)
            elif not told or "error" in told[0]:
                why = told[0]["error"] if told else "its process ended"
                outcome = Outcome("killed", why, len(nodeids), seconds)
            elif told[0]["failed"]:
                outcome = Outcome("killed", told[0]["failed"], len(nodeids), seconds)
            else:
                outcome = Outcome("survived", "", len(nodeids), seconds)
            yield mutant, outcome

    def _trying(self, mutant: Mutant, nodeids: list[str]) -> Callable[[], None]:
        def work() -> None:
            self._change(mutant)
            self._run([self.items[nodeid] for nodeid in nodeids])
            self._tell({"failed": self.reports.failed})

        return work

    def _change(self, mutant: Mutant) -> None:
        mutant.apply()
        if isinstance(mutant.statement, ast.Assign | ast.AnnAssign):
            return _assign_again(mutant)
        code = compile(mutant.tree, str(mutant.path), "exec", dont_inherit=True)
        n_changed = 0
        for changed in _functions_of(code):
            if changed.co_qualname.split(".<locals>")[0] != mutant.qualname:
                continue
            for function in self._living.get((str(mutant.path), changed.co_qualname), []):
                if function.__code__.co_firstlineno == changed.co_firstlineno:
                    function.__code__ = changed
                    n_changed += 1
        _set_defaults_again(mutant, self._living)
        if n_changed == 0:
            raise LookupError(f"no living function {mutant.qualname} of {mutant.path}")


class _FixtureCalls:
    """Count what a fixture of many tests calls for each of them."""

    def __init__(self, shared: dict[str, dict[int, types.CodeType]]) -> None:
        self.shared = shared
        self.target: dict[int, types.CodeType] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Any:
        if fixturedef.scope == "function":
            return (yield)
        before = self.target
        self.target = self.shared.setdefault(fixturedef.argname, {})
        try:
            return (yield)
        finally:
            self.target = before


def _functions_of(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _functions_of(constant)


def _set_defaults_again(mutant: Mutant, living: dict[Any, list[types.FunctionType]]) -> None:
    node = mutant.statement
    if not isinstance(node, ast.FunctionDef) or mutant.parent is not node.args:
        return
    module = vars(sys.modules[mutant.module])
    for function in living.get((str(mutant.path), mutant.qualname), []):
        values = [_value(default, module) for default in node.args.defaults]
        function.__defaults__ = tuple(values) or None
        pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        named = {a.arg: _value(default, module) for a, default in pairs if default is not None}
        function.__kwdefaults__ = named or None


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "changed", "eval"), names)


def _assign_again(mutant: Mutant) -> None:
    """Give a constant of a module or a class its changed value, wherever it was imported."""
    module = sys.modules[mutant.module]
    owner: Any = module
    if isinstance(mutant.scope, ast.ClassDef):
        for name in mutant.qualname.split(".")[:-1]:
            owner = getattr(owner, name)
    changed = names_of(mutant.statement)
    body = mutant.scope.body  # type: ignore[attr-defined]
    for statement in body[body.index(mutant.statement) :]:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        used = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
        if statement is not mutant.statement and not used & changed:
            continue
        changed |= names_of(statement)
        fresh: dict[str, Any] = {}
        names = {**vars(module), **vars(owner)}
        plain = ast.Module([statement], [])
        if isinstance(statement, ast.AnnAssign):
            again = ast.Assign([statement.target], statement.value)
            plain = ast.Module([ast.fix_missing_locations(ast.copy_location(again, statement))], [])
        exec(compile(plain, "changed", "exec"), names, fresh)
        for name, value in fresh.items():
            _bind_again(owner, name, value)


def _bind_again(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, types.ModuleType):
        old = getattr(owner, name)
        for other in list(sys.modules.values()):
            ours = getattr(other, "__name__", "").startswith(("tacit", "tests"))
            if ours and vars(other).get(name) is old:
                setattr(other, name, value)
        return
    old = vars(owner).get(name)
    # Dataclasses keep a field's default in their __init__, and their heirs' too.
    heirs: list[Any] = [owner, *_heirs(owner)]
    for heir in heirs:
        function: Any = vars(heir).get("__init__")
        defaults = getattr(function, "__defaults__", None)
        if defaults:
            names = function.__code__.co_varnames[: function.__code__.co_argcount][-len(defaults) :]
            pairs = zip(names, defaults, strict=True)
            function.__defaults__ = tuple(
                value if parameter == name and default is old else default
                for parameter, default in pairs
            )
    setattr(owner, name, value)


def _heirs(owner: Any) -> Iterator[Any]:
    for heir in owner.__subclasses__():
        yield heir
        yield from _heirs(heir)
