"""Every statistic of `tacit.queries`, found by itself: replayed on neighbours, with its proof."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import tacit.queries
from tacit.erm import Objective
from tacit.erm.losses import DistanceLoss, HuberLoss, LogisticLoss, SmoothHingeLoss, SoftmaxLoss
from tacit.erm.solvers import certified_solver
from tacit.privacy import Relation
from tacit.queries import Facts, GaussianNoise, NoisySum
from tacit.queries.minimizer import CertifiedSolver
from tacit.records import Bounds
from tacit.testing import check_query

PROOFS = Path(__file__).parents[2] / "docs" / "proofs"
BOUNDS = {
    "two classes": Bounds(row_norm=1.2, intercept=0.3, n_classes=2, n_records=100),
    "classes": Bounds(row_norm=1.0, n_classes=3),
    "plain": Bounds(row_norm=2.0),
    "intercept": Bounds(row_norm=1.5, intercept=0.7, n_records=100),
    "labels": Bounds(row_norm=1.0, label_range=(-2.0, 3.0), intercept=0.25),
}


class Solved(Objective):
    """An objective whose slopes are steep at its minimum, however few records there are."""

    def certified_solver(self) -> CertifiedSolver:
        return certified_solver(self)


OBJECTIVES = (
    Objective(LogisticLoss(), BOUNDS["two classes"], 2.0),
    Objective(SoftmaxLoss(3), BOUNDS["classes"], 2.0),
    Solved(SmoothHingeLoss(1.0), BOUNDS["two classes"], 2.0),
    Solved(HuberLoss(0.5), BOUNDS["labels"], 2.0),
    Objective(DistanceLoss(), BOUNDS["plain"], 2.0),
)


def classes(*methods: str) -> list[Any]:
    """Return the classes of modules of `tacit.queries` that have some methods."""
    modules = pkgutil.iter_modules(tacit.queries.__path__, "tacit.queries.")
    found: set[Any] = {
        cls
        for module in modules
        for cls in vars(importlib.import_module(module.name)).values()
        if inspect.isclass(cls) and all(hasattr(cls, method) for method in methods)
        if not getattr(cls, "_is_protocol", False)
    }
    return sorted(found, key=lambda cls: str(cls.__name__))


def statistics() -> list[Any]:
    """Return the statistics that modules of `tacit.queries` define, and what they try."""
    return [one for cls in classes("sensitivity", "total") for one in tried(cls)]


def tried(cls: Any) -> tuple[Any, ...]:
    """Return examples of a class, or the one that there is without parameters."""
    if hasattr(cls, "tried_on"):
        return tuple(cls.tried_on(OBJECTIVES))
    return tuple(cls.tried()) if hasattr(cls, "tried") else (cls(),)


def applies(statistic: Any, facts: Facts) -> bool:
    """Return whether a statistic can be asked of such records."""
    if hasattr(statistic, "applies"):
        return bool(statistic.applies(facts))
    objective = getattr(statistic, "objective", None)
    return objective is None or bool(objective.bounds == facts.bounds)


def name_of(statistic: Any) -> str:
    """Return a test's name: the statistic's, with its loss."""
    objective = getattr(statistic, "objective", None)
    return type(statistic).__name__ + (type(objective.loss).__name__ if objective else "")


def some_facts(statistic: Any) -> Facts:
    """Return facts of records of which a statistic can be asked."""
    relations = Relation.ADD_REMOVE, Relation.REPLACE
    some = (Facts(bounds, 3, relation) for relation in relations for bounds in BOUNDS.values())
    return next(facts for facts in some if applies(statistic, facts))


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize("statistic", statistics(), ids=name_of)
def test_no_total_moves_further_than_declared(
    statistic: Any, relation: Relation, bounds: str
) -> None:
    facts = Facts(BOUNDS[bounds], 3, relation)
    if applies(statistic, facts):
        check_query(NoisySum(statistic, GaussianNoise(1.0)), facts)


@pytest.mark.parametrize("statistic", statistics(), ids=name_of)
def test_half_a_sensitivity_is_caught(statistic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    stated = type(statistic).sensitivity

    def half(self: Any, facts: Facts) -> Any:
        whole = stated(self, facts)
        return replace(whole, value=whole.value / 2)

    monkeypatch.setattr(type(statistic), "sensitivity", half)
    facts = some_facts(statistic)
    with pytest.raises(AssertionError, match="moved by"):
        check_query(NoisySum(statistic, GaussianNoise(1.0)), facts)


@pytest.mark.parametrize("statistic", statistics(), ids=name_of)
def test_its_proof_is_there(statistic: Any) -> None:
    proof = statistic.sensitivity(some_facts(statistic)).proof
    page, _, anchor = proof.partition("#")
    text = (PROOFS / page).read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert anchor in anchors


def test_statistics_are_found() -> None:
    assert {type(one).__name__ for one in statistics()} >= {
        "CandidateMistakes",
        "ClassCounts",
        "ClippedNorms",
        "ClippedSum",
        "ClippedSumAndCount",
        "Count",
        "Gradient",
        "HessianTrace",
        "MistakeBalance",
        "NumberSums",
        "OrderedSum",
        "OuterProducts",
        "PointSum",
        "PreconditionedGradient",
        "RegularizedMinimizer",
        "SecondMoment",
        "SeveralClassCells",
        "SquaredResiduals",
        "TwoClassCells",
        "WrongAnswers",
    }


@pytest.mark.parametrize("query", classes("event", "answer"))
def test_every_query_has_a_test_that_catches_a_wrong_constant(query: Any) -> None:
    """A noisy sum is tried above; others need a file that replays them on neighbours."""
    if query is not NoisySum:
        texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py")]
        tried = [text for text in texts if re.search(rf"\b{query.__name__}\b", text)]
        assert any("replay(" in text and "SensitivityViolation" in text for text in tried)
