"""Sensitivities, noise and events stand where a checker reads them: tools/boundaries.py."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from boundaries import ALLOWED, HOMES, SOURCES, Package, problems

MADE_UP = "tacit/linear_model/made_up.py"


@pytest.fixture(scope="module")
def package() -> Package:
    return Package()


def found(package: Package, source: str, path: str = MADE_UP) -> list[tuple[str, str]]:
    """Return what made-up source is refused for."""
    module = package.add(path, source)
    try:
        return sorted({(finding.kind, finding.name) for finding in package.uses(module)})
    finally:
        for known in (package.paths, package.trees, package._bound):
            known.pop(module, None)


def test_the_tree_has_none_elsewhere(package: Package) -> None:
    assert problems(package) == []


@pytest.mark.parametrize(
    "source",
    [
        "from tacit.noise.bounded import Bounded\nBounded(1.0, 1.0, None, None)",
        "from tacit.noise.bounded import Bounded as Value\nValue(1.0, 1.0, None, None)",
        "from tacit.queries.noise import Bounded",
        "import tacit.noise.bounded as n\nn.Bounded(1.0, 1.0, None, None)",
        "from tacit import noise\ndef f():\n    return noise.bounded.Bounded(1.0, 1.0, None, None)",
        "import tacit.noise.bounded\ntacit.noise.bounded.Bounded(1.0, 1.0, None, None)",
        "from ..noise.bounded import Bounded",
    ],
)
def test_a_bounded_value_is_found(package: Package, source: str) -> None:
    assert ("states a sensitivity", "Bounded") in found(package, source)


@pytest.mark.parametrize(
    "source",
    [
        "from tacit.queries import Sensitivity",
        "from tacit.queries.base import Sensitivity as S\nS(1.0, None, '')",
        "from tacit import queries as q\nq.Sensitivity(1.0, None, '')",
    ],
)
def test_a_sensitivity_is_found(package: Package, source: str) -> None:
    assert ("states a sensitivity", "Sensitivity") in found(package, source)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from tacit.noise import gaussian", "gaussian"),
        ("from tacit.noise import gaussian as normal\nnormal(1, 2)", "gaussian"),
        ("from tacit.noise.gaussian import gaussian", "gaussian"),
        ("import tacit.noise.gaussian as g\ng.gaussian(1, 2)", "gaussian"),
        ("import tacit.noise\ntacit.noise.laplace(1, 2)", "laplace"),
        ("from tacit import noise\ndraw = noise.sphere", "sphere"),
        ("def f():\n    from tacit.noise.selection.finite import select as choose", "select"),
        ("from tacit.noise.selection.ball import BallLattice as Lattice", "BallLattice"),
        ("from tacit.noise.perturbed_minimizer import release_minimizer", "release_minimizer"),
        ("from tacit.noise import perturbed_minimizer", "perturbed_minimizer"),
        ("from tacit.noise.release import emit", "emit"),
        ("from tacit.queries.noise import gaussian", "gaussian"),
        ("from importlib import import_module\nimport_module('tacit.noise.gaussian')", "gaussian"),
        ("from tacit.noise.selection.finite import gaussian_winners", "gaussian_winners"),
    ],
)
def test_noise_is_found(package: Package, source: str, name: str) -> None:
    assert ("draws noise", name) in found(package, source)


@pytest.mark.parametrize(
    "module",
    ["gaussian", "selection.finite", "perturbed_minimizer", "stable_histogram", "summation"],
)
def test_a_module_of_noise_is_found(package: Package, module: str) -> None:
    kinds = {kind for kind, _ in found(package, f"import tacit.noise.{module}")}
    assert kinds == {"draws noise"}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from tacit.privacy import Gaussian\nGaussian(2.0)", "Gaussian"),
        ("from tacit.privacy import Gaussian as G\nG(2.0)", "Gaussian"),
        ("from tacit.privacy.events import Repeated\nf = [Repeated]", "Repeated"),
        ("from tacit.privacy.events.composed import OneOf\nOneOf(())", "OneOf"),
        ("import tacit.privacy as p\np.PureEpsilon(1.0)", "PureEpsilon"),
        ("from tacit import privacy\nmap(privacy.events.Composed, [])", "Composed"),
        ("import tacit\ntacit.privacy.NonPrivate('')", "NonPrivate"),
        ("from tacit.privacy import event_from_dict as read\nread({})", "event_from_dict"),
        ("from tacit.privacy import Gaussian\nGaussian.from_dict({})", "Gaussian"),
        ("from tacit.privacy import BestOf\nisinstance(BestOf(), int)", "BestOf"),
    ],
)
def test_an_event_is_found(package: Package, source: str, name: str) -> None:
    assert ("builds an event", name) in found(package, source)


@pytest.mark.parametrize(
    "source",
    [
        "def choose(n):\n    return n\nchoose(2)",
        "from numpy import select\nselect([], [])",
        "import math as noise\nnoise.gaussian(1)",
        "class Gaussian: pass\nGaussian()",
        "from tacit.noise import Norm, Release, Source, secure_source\nsecure_source(), Norm.L1",
        "from tacit.noise.release import recording\nwith recording() as tape: pass",
        "from tacit.privacy import Event, Gaussian\n"
        "def f(e: Event) -> Gaussian | None:\n    return e if isinstance(e, Gaussian) else None",
        "from tacit.privacy import NonPrivate\ntype(1) is NonPrivate",
        "from tacit.privacy import Gaussian\nmatch 1:\n    case Gaussian(): pass",
        "from tacit.privacy import Budget, Relation\nBudget(1.0, 1e-6)",
    ],
)
def test_what_is_not_ours_or_makes_nothing_is_left_alone(package: Package, source: str) -> None:
    assert found(package, source) == []


def test_every_event_is_known(package: Package) -> None:
    names = {name.rpartition(".")[2] for name in package.events}
    assert {"Gaussian", "BestOf", "SoftmaxObjective", "ZeroConcentrated"} <= names
    assert not {"Event", "common_relation"} & names


def test_what_is_allowed_and_not_used_is_told(package: Package) -> None:
    (entry,) = (a for a in ALLOWED if a.path == "engine.py")
    wider = type(entry)(entry.path, entry.names | {"Gaussian"}, entry.reason)
    (problem,) = problems(package, (*(a for a in ALLOWED if a is not entry), wider))
    assert "engine.py no longer uses Gaussian" in problem


def test_what_is_not_allowed_is_told(package: Package) -> None:
    without = tuple(a for a in ALLOWED if a.path != "engine.py")
    (problem,) = problems(package, without)
    assert problem.startswith("src/tacit/engine.py:")
    assert problem.endswith("builds an event: NonPrivate")


def test_the_import_contract_names_every_package() -> None:
    """Those it does not name are the homes; what is forbidden to them is there."""
    written = tomllib.loads((SOURCES.parent / "pyproject.toml").read_text())
    (contract,) = (
        c for c in written["tool"]["importlinter"]["contracts"] if "Noise is drawn" in c["name"]
    )
    found = {f"tacit.{path.stem}" for path in Path(SOURCES, "tacit").glob("[!_]*")}
    assert set(contract["source_modules"]) == found - {f"tacit.{home}" for home in HOMES} - {
        "tacit.py"  # py.typed
    }
    for module in contract["forbidden_modules"]:
        assert Path(SOURCES, *module.split(".")).with_suffix(".py").exists()


def test_the_decision_lists_whoever_is_allowed() -> None:
    page = SOURCES.parent / "docs" / "decisions" / "0058-where-events-are-built.md"
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    assert [row.split("`")[1] for row in rows] == [entry.path for entry in ALLOWED]
