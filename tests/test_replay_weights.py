"""Weighted fits, replayed on neighbouring data: one record more, of the greatest weight and beyond.

Every linear model with every mechanism, with weights of the records, of the classes, and classes
that are counted first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit.queries.count as count_module
import tacit.records.block as block_module
import tacit.records.exact.lattice as lattice_table_module
from tacit.erm import (
    CannotSolve,
    ExponentialInABall,
    L2Ball,
    NoisyGradient,
    NoisySGD,
    PublicCandidates,
)
from tacit.erm.minimization import MECHANISMS
from tacit.linear_model import LinearSVC, LogisticRegression
from tacit.noise import SensitivityViolation
from tacit.privacy import Relation
from tacit.queries import ClassCounts, Facts, Sensitivity
from tacit.registry import Example, ModelSpec, Predicts
from tests.declared import PROBLEMS, made, replayed, with_slow

MOST = 2.0
DELTA = 1e-5
LINEAR = {
    name: problem for name, problem in PROBLEMS.items() if hasattr(problem[0].model(), "max_weight")
}
TRIED: dict[str, Any] = {name: name for name in MECHANISMS} | {
    "noisy_gradient": NoisyGradient(n_steps=4),
    "noisy_sgd": NoisySGD(sampling_rate=1.0, n_steps=4),
}
# What is replayed of each kind at the least, so that nothing stops to apply unnoticed.
GENERAL = ("objective_perturbation", "noisy_gradient", "output_perturbation")


def weighted(example: Example, weight: float, label: Any) -> tuple[Any, Any, Any]:
    """Return the records of an example with one more, far out and of this weight, at the end."""
    rows = np.vstack([example.rows, [[1e6, -3e5, 1e6]]])
    own = np.append(np.linspace(0.0, MOST, len(example.rows)), weight)
    return rows, np.append(example.labels, label), own


def estimator_of(spec: ModelSpec, example: Example, **told: Any) -> Any:
    return made(spec, example, max_weight=MOST, fit_intercept=True, **told)


def cases() -> list[Any]:
    return [
        pytest.param(
            name,
            mechanism,
            delta,
            id=f"{name}-{mechanism}-{delta:g}",
            marks=pytest.mark.slow if name.startswith("kernel") else (),
        )
        for name in LINEAR
        for mechanism in TRIED
        for delta in (DELTA, 0.0)
    ]


def applies(estimator: Any, needed: bool) -> None:
    try:
        estimator.plan(3)
    except CannotSolve:
        assert not needed
        pytest.skip("does not apply")


@pytest.mark.parametrize(("name", "mechanism", "delta"), cases())
def test_add_remove(name: str, mechanism: str, delta: float) -> None:
    spec, example = LINEAR[name]
    told = {"n_records": len(example.rows)} if mechanism == "noisy_sgd" else {}
    estimator = estimator_of(spec, example, mechanism=TRIED[mechanism], delta=delta, **told)
    applies(estimator, mechanism in GENERAL and delta > 0)
    more = weighted(example, 1e9, example.odd[0])
    fewer = tuple(part[:-1] for part in more)
    assert replayed(estimator, fewer, more) >= 1
    assert replayed(estimator, more, fewer) >= 1


@pytest.mark.parametrize(("name", "mechanism", "delta"), cases())
def test_replace(name: str, mechanism: str, delta: float) -> None:
    spec, example = LINEAR[name]
    told = {"n_records": len(example.rows) + 1, "relation": Relation.REPLACE}
    estimator = estimator_of(spec, example, mechanism=TRIED[mechanism], delta=delta, **told)
    applies(estimator, mechanism in ("noisy_gradient", "output_perturbation") and delta > 0)
    rows, labels, own = weighted(example, 1e9, example.odd[0])
    others = [rows.copy(), labels.copy(), own.copy()]
    for part, value in zip(others, ([-1e6, 1e6, 0.0], example.odd[1], 0.1), strict=True):
        part[-1] = value
    assert replayed(estimator, (rows, labels, own), tuple(others)) >= 1


CLASSES = {
    name: problem for name, problem in LINEAR.items() if problem[0].predicts is Predicts.CLASSES
}
OF_CLASSES = ("balanced", "numbers")


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize("delta", [DELTA, 0.0])
@pytest.mark.parametrize("mechanism", GENERAL)
@pytest.mark.parametrize("of_classes", OF_CLASSES)
@pytest.mark.parametrize("name", with_slow(CLASSES, ("kernel",)))
def test_classes(
    name: str, of_classes: str, mechanism: str, delta: float, relation: Relation
) -> None:
    spec, example = CLASSES[name]
    rows, labels, own = weighted(example, 1e9, example.odd[0])
    numbers = {example.odd[0]: 8.0, example.odd[1]: 0.5}
    told: dict[str, Any] = {"class_weight": numbers if of_classes == "numbers" else of_classes}
    if relation is Relation.REPLACE:
        told |= {"relation": relation, "n_records": len(rows)}
    estimator = estimator_of(spec, example, mechanism=TRIED[mechanism], delta=delta, **told)
    applies(estimator, needed=False)
    if relation is Relation.ADD_REMOVE:
        neighbour = tuple(part[:-1] for part in (rows, labels, own))
    else:
        neighbour = rows, np.append(labels[:-1], example.odd[1]), own
    assert replayed(estimator, (rows, labels, own), neighbour) >= 1
    # and without weights of the records' own
    assert replayed(estimator, neighbour[:2], (rows, labels)) >= 1


def test_public_candidates() -> None:
    spec, example = PROBLEMS["logistic-binary"]
    candidates = PublicCandidates(np.vstack([np.eye(4), -np.eye(4)]))
    estimator = estimator_of(spec, example, mechanism=candidates, delta=0.0)
    more = weighted(example, 1e9, example.odd[0])
    assert replayed(estimator, more, tuple(part[:-1] for part in more)) >= 1


def test_weights_in_a_ball() -> None:
    spec, example = PROBLEMS["logistic-binary"]
    told = {"mechanism": ExponentialInABall(), "constraint": L2Ball(2.0)}
    estimator = estimator_of(spec, example, delta=0.0, **told)
    more = weighted(example, 1e9, example.odd[0])
    assert replayed(estimator, more, tuple(part[:-1] for part in more)) >= 1


# Mutants.

SCORES: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA, "row_norm": 1.5, "max_weight": MOST}
STIFF = {"regularization": 1e4, "fit_intercept": False}


def mutants() -> list[Any]:
    return [
        LinearSVC(**SCORES, mechanism=NoisyGradient(n_steps=3)),
        LinearSVC(**SCORES, **STIFF, mechanism="objective_perturbation"),
        LinearSVC(**SCORES, **STIFF, mechanism="output_perturbation"),
    ]


@pytest.mark.parametrize("estimator", mutants(), ids=lambda m: str(m.mechanism)[:9])
@pytest.mark.parametrize("mutant", ["not clipped", "greatest forgotten"])
def test_mutants_are_caught(estimator: Any, mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (block_module, lattice_table_module):
        if mutant == "not clipped":
            monkeypatch.setattr(module, "shares_of", lambda w, bounds: w / bounds.max_weight)
        else:
            monkeypatch.setattr(module, "shares_of", lambda w, b: np.clip(w, 0, b.max_weight))
    # the total weight must not be what gives a mutant away
    monkeypatch.setattr(count_module, "_count", lambda records, facts: 60.0)
    example = PROBLEMS["logistic-binary"][1]
    more = weighted(example, 100.0 if mutant == "not clipped" else MOST, True)
    fewer = tuple(part[:-1] for part in more)
    if isinstance(estimator.mechanism, NoisyGradient):  # slopes are held once more, weight and all
        assert replayed(estimator, fewer, more) >= 1
        return
    with pytest.raises(SensitivityViolation):
        replayed(estimator, fewer, more)


def test_counts_of_classes_with_half_the_sensitivity_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stated = ClassCounts.sensitivity

    def half(self: ClassCounts, facts: Facts) -> Sensitivity:
        whole = stated(self, facts)
        return replace(whole, value=whole.value / 2)

    monkeypatch.setattr(ClassCounts, "sensitivity", half)
    model = LogisticRegression(**SCORES, class_weight="balanced")
    example = PROBLEMS["logistic-binary"][1]
    more = weighted(example, MOST, True)
    with pytest.raises(SensitivityViolation):
        replayed(model, tuple(part[:-1] for part in more), more)
