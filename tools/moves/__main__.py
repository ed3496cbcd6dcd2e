"""Apply the tables of moves and renames to the tree: ``python tools/moves``.

    python tools/moves                   # names, then modules, then ruff
    python tools/moves --only modules
    python tools/moves --only names
    python tools/moves --check           # say what would be refused, change nothing
    python tools/moves --rows later.toml # rows of another table of modules alone

Rows whose old module or name is gone are skipped with a note, so that it can be run again.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import naming
import wrapping
from merging import Collision, Part, merge
from rewriting import Moves, imports, rename_module_object, rewriter
from tree import exported_by, git, init_of, is_module, is_package, path_of, text_files

HERE = Path(__file__).parent


def table(name: str) -> dict[str, Any]:
    """Return one of the tables beside this file."""
    return tomllib.loads((HERE / name).read_text())


def note(words: str) -> None:
    """Print what a reader of the log should know."""
    print(f"  {words}")


def rows_of(modules: dict[str, Any]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the moves and the merges whose old modules are there."""
    moves = {}
    for old, new in modules.get("move", {}).items():
        if is_module(old):
            moves[old] = new
        else:
            note(f"skipped: {old} is gone")
    merges = []
    for row in modules.get("merge", []):
        parts = [m for m in row["of"] if is_module(m)]
        for gone in set(row["of"]) - set(parts):
            note(f"skipped: {gone} is gone")
        if parts and parts != [row["into"]]:
            merges.append({**row, "of": parts})
    return moves, merges


def check_targets(moves: dict[str, str], merges: list[dict[str, Any]]) -> list[str]:
    """Return what is wrong with the tables themselves."""
    wrong, leaving = [], set(moves) | {m for row in merges for m in row["of"]}
    targets = [*moves.values(), *(row["into"] for row in merges)]
    for target in targets:
        if targets.count(target) > 1:
            wrong.append(f"{target} is the target of several rows")
        if is_module(target) and target not in leaving:
            wrong.append(f"{target} is there and goes nowhere")
    everybody = [*moves, *(m for row in merges for m in row["of"])]
    wrong += [f"{m} stands in two rows" for m in set(everybody) if everybody.count(m) > 1]
    return sorted(set(wrong))


def apply_modules(check: bool, rows: Path | None = None) -> int:
    """Move and merge modules, rewrite who names them; return how many rows were refused.

    ``rows`` is a table to apply instead of ``modules.toml``, and without ``texts.toml``.
    """
    modules = table("modules.toml") if rows is None else tomllib.loads(rows.read_text())
    moves, merges = rows_of(modules)
    wrong = check_targets(moves, merges)
    places = dict(moves)
    for row in merges:
        places.update(dict.fromkeys(row["of"], row["into"]))
    places = {old: new for old, new in places.items() if old != new}
    packages = {old: new for old, new in modules.get("package", {}).items() if is_package(old)}
    exports = {
        (package, name): target
        for package, targets in modules.get("export", {}).items()
        for target, names in targets.items()
        for name in names
    }
    renamed = {
        (module, old): new
        for row in merges
        for module, names in row.get("rename", {}).items()
        for old, new in names.items()
        if module in row["of"]
    }
    all_moves = Moves(places, packages, exports, renamed)
    all_moves.tests = tests = test_moves(places, modules, merges)
    rewrite = rewriter(all_moves)

    # Everything is computed before anything is written.
    texts = {path: path.read_text(encoding="utf-8") for path in text_files()}
    written: dict[Path, str] = {}
    for path, text in texts.items():
        new = rewrite(path, text)
        if new != text:
            written[path] = new
    merged: dict[str, str] = {}
    definition = definitions(places, written, texts)
    for row in merges:
        parts = [
            Part(
                m,
                unpacked(written.get(path_of(m), texts[path_of(m)]), row["into"], written, texts),
                row.get("rename", {}).get(m, {}),
            )
            for m in row["of"]
        ]
        for part in parts:
            part.module = row["into"]
        try:
            merged[row["into"]] = merge(
                named(parts, row["of"]), row["doc"], row["into"], definition
            )
        except (Collision, SyntaxError) as why:
            wrong.append(str(why))
    for problem in wrong:
        print(f"REFUSED {problem}")
    if wrong or check:
        return len(wrong)

    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    # Where two rows change places, all leave before any arrives.
    arrivals: list[tuple[Path, Path]] = []
    for old, new in moves.items():
        if old != new:
            arrivals.append((leave(path_of(old)), path_of(new)))
    for row in merges:
        keep = row["into"] if row["into"] in row["of"] else longest(row["of"])
        for m in row["of"]:
            if m != keep:
                git("rm", "--quiet", "--force", str(path_of(m)))
        arrivals.append((leave(path_of(keep)), path_of(row["into"])))
    for old, new in tests.items():
        if Path(old).is_file():
            arrivals.append((leave(Path(old)), Path(new)))
    for waiting, path in arrivals:
        path.parent.mkdir(parents=True, exist_ok=True)
        git("mv", str(waiting), str(path))
    for into, text in merged.items():
        path_of(into).write_text(text, encoding="utf-8")
    make_packages(modules)
    drop_empty_packages(packages)
    if rows is None:
        replace_texts()
    return 0


def definitions(
    places: dict[str, str], written: dict[Path, str], texts: dict[Path, str]
) -> Callable[[str, str], str | None]:
    """Return what finds the assignment of a name in a module, by the module's new name."""
    sources: dict[str, list[Path]] = {}
    for path in texts:
        if path.parts[:2] == ("src", "tacit") and path.suffix == ".py":
            module = ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")
            sources.setdefault(places.get(module, module), []).append(path)

    def definition(module: str, name: str) -> str | None:
        for path in sources.get(module, []):
            for node in ast.parse(written.get(path, texts[path])).body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                    return ast.dump(node)
        return None

    return definition


def unpacked(text: str, into: str, written: dict[Path, str], texts: dict[Path, str]) -> str:
    """Return a part whose imports of another part through their package name that part."""
    package, _, own = into.rpartition(".")
    # A part that used another as an object is now beside it.
    if own not in exported_by(package):
        text = without_itself(text, package, own)
    init = init_of(package)
    if init not in texts or f"from {package} import" not in text:
        return text
    through = {
        (package, alias.asname or alias.name): into
        for node in ast.parse(written.get(init, texts[init])).body
        if isinstance(node, ast.ImportFrom) and node.module == into
        for alias in node.names
    }
    return imports(text, Moves({}, {}, through, {}), python=True)[0].replace("\0", "")


def without_itself(text: str, package: str, own: str) -> str:
    """Return a module that does not import itself as an object."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ImportFrom) or node.module != package:
            continue
        mine = [alias for alias in node.names if alias.name == own]
        if not mine:
            continue
        others = [ast.unparse(alias) for alias in node.names if alias.name != own]
        lines = text.splitlines(keepends=True)
        lead = " " * node.col_offset
        new = f"{lead}from {package} import {', '.join(others)}\n" if others else ""
        text = "".join([*lines[: node.lineno - 1], new, *lines[node.end_lineno :]])
        return without_itself(rename_module_object(text, mine[0].asname or own, ""), package, own)
    return text


def named(parts: list[Part], names: list[str]) -> list[Part]:
    """Return parts under their own names, for messages; imports already name the target."""
    for part, name in zip(parts, names, strict=True):
        part.module = name
    return parts


def longest(modules: list[str]) -> str:
    """Return the module with the most lines: history follows it."""
    return max(modules, key=lambda m: path_of(m).read_text().count("\n"))


def leave(path: Path) -> Path:
    """Move a file out of the way, and return where it waits."""
    waiting = path.with_name(f"moving__{path.name}")
    git("mv", str(path), str(waiting))
    return waiting


def test_moves(
    places: dict[str, str],
    modules: dict[str, Any],
    merges: list[dict[str, Any]],
) -> dict[str, str]:
    """Return where the tests of modules go: a moved module's with it, merged ones' beside it."""
    given = modules.get("tests", {})
    several = {row["into"] for row in merges}
    found: dict[str, str] = {}
    for old, new in places.items():
        a = test_path(old)
        if not a.is_file() or str(a) in given:
            continue
        b = test_path(new)
        tested = [m for m, n in places.items() if n == new and test_path(m).is_file()]
        if new in several and (len(tested) > 1 or (b != a and b.is_file())):
            last, own = new.rpartition(".")[2].strip("_"), old.rpartition(".")[2].strip("_")
            b = b.with_name(f"test_{own}.py" if own.startswith(last) else f"test_{last}_{own}.py")
        if a != b:
            found[str(a)] = str(b)
    found |= {old: new for old, new in given.items() if Path(old).is_file()}
    return found


def test_path(module: str) -> Path:
    """Return the path of a module's tests."""
    *folders, last = module.split(".")[1:]
    return Path("tests", *folders, f"test_{last.strip('_')}.py")


def make_packages(modules: dict[str, Any]) -> None:
    """Write the ``__init__`` files of new packages, in src and in tests."""
    for package, text in modules.get("init", {}).items():
        path = init_of(package)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.strip() + "\n", encoding="utf-8")
        git("add", str(path))
    for path in Path("tests").rglob("test_*.py"):
        init = path.parent / "__init__.py"
        if not init.is_file():
            init.write_text("")
            git("add", str(init))


def drop_empty_packages(packages: dict[str, str]) -> None:
    """Delete packages with nothing but an ``__init__`` that moved elsewhere or exports nothing."""
    for root in (Path("src/tacit"), Path("tests")):
        for init in sorted(root.rglob("__init__.py"), key=lambda p: -len(p.parts)):
            others = [
                p for p in init.parent.iterdir() if p.name not in ("__init__.py", "__pycache__")
            ]
            if others:
                continue
            package = ".".join(
                init.parent.relative_to("src" if root.parts[0] == "src" else ".").parts
            )
            body = ast.parse(init.read_text()).body
            if package in packages or all(isinstance(n, ast.Expr) for n in body):
                git("rm", "--quiet", "--force", str(init))


def replace_texts() -> None:
    """Replace what the table `texts.toml` says word for word, once in each file."""
    if not (HERE / "texts.toml").is_file():
        return
    for row in table("texts.toml").get("write", []):
        Path(row["file"]).write_text(row["text"].lstrip("\n"), encoding="utf-8")
    for row in table("texts.toml").get("end", []):
        path = Path(row["file"])
        text = path.read_text(encoding="utf-8")
        start = text.index(row["from"])
        path.write_text(text[:start] + row["new"].lstrip("\n"), encoding="utf-8")
    for row in table("texts.toml").get("replace", []):
        path = Path(row["file"])
        if not path.is_file():
            note(f"skipped: {path} is gone")
            continue
        text = path.read_text(encoding="utf-8")
        if row["new"] in text:
            continue
        if row["old"] not in text:
            print(f"NOT FOUND in {path}: {row['old'].strip().splitlines()[0]!r}")
            continue
        path.write_text(text.replace(row["old"], row["new"]), encoding="utf-8")


def tidy() -> None:
    """Sort imports and wrap lines."""
    ruff = [sys.executable, "-m", "ruff"]
    folders = ["src", "tests", "benchmarks", "tools", "conftest.py"]
    subprocess.run([*ruff, "check", "--fix", "--quiet", *folders], check=False, capture_output=True)
    subprocess.run([*ruff, "format", "--quiet", *folders], check=False)
    # Imports below other statements, of which two became one.
    late = ["check", "--quiet", "--select", "E402", "--add-noqa", "tests", "benchmarks"]
    subprocess.run([*ruff, *late], check=False, capture_output=True)
    for path in text_files():
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            new = wrapping.wrapped(text)
            if new != text:
                path.write_text(new, encoding="utf-8")
    subprocess.run(
        [*ruff, "check", "--fix", "--quiet", "--output-format=concise", *folders], check=False
    )
    git("add", "--all")


def main() -> int:
    """Apply the tables."""
    parser = argparse.ArgumentParser(prog="tools/moves", description=__doc__)
    parser.add_argument("--only", choices=["modules", "names"])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rows", type=Path, help="another table of modules, and nothing else")
    options = parser.parse_args()
    if options.only != "modules" and options.rows is None:
        naming.apply(table("names.toml"), check=options.check)
    if options.only != "names" and apply_modules(options.check, options.rows):
        return 1
    if not options.check:
        tidy()
    return 0


if __name__ == "__main__":
    sys.exit(main())
