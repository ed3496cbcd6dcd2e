"""Every estimator and mechanism, replayed on neighbouring data under its relations.

Cases are made from `tacit.registry`: each example problem with each mechanism, or sanitizer, with
and without an intercept and a delta. Which of them apply is asked, and for most it is also known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tacit.erm import (
    Balanced,
    CannotSolve,
    ExponentialInABall,
    L1Ball,
    L2Ball,
    NoisyGradient,
    NoisySGD,
    PublicCandidates,
    QuantileOnALine,
)
from tacit.erm.minimization import MECHANISMS
from tacit.linear_model import LinearSVC, LogisticRegression
from tacit.local import Sanitizer
from tacit.local.sanitizers.additive import NoNoise
from tacit.noise import SensitivityViolation
from tacit.privacy import Relation
from tacit.queries import Facts, Gradient, PerturbedMinimizer, RegularizedMinimizer, Sensitivity
from tacit.queries.moments import LabelMoment
from tacit.registry import Example, ModelSpec
from tacit.testing import replay
from tests.declared import MADE_OF_OTHERS, PROBLEMS, concrete, fit, made, replayed

DELTA = 1e-5


@dataclass(frozen=True)
class Case:
    """An estimator, and records for it."""

    spec: ModelSpec
    example: Example
    parameters: dict[str, Any] = field(default_factory=dict)

    def estimator(self, relation: Relation) -> Any:
        # replacing a record is a promise for a public number of them
        known = {} if relation is Relation.ADD_REMOVE else {"n_records": self.n_records + 1}
        parameters = {"relation": relation, **known, **self.parameters}
        return made(self.spec, self.example, **parameters)

    @property
    def n_records(self) -> int:
        return len(self.example.rows)

    def skip_unless_it_applies(self, relation: Relation, known: bool) -> None:
        """Skip a case without a plan, unless it is known to have one; no record is read to tell."""
        estimator = self.estimator(relation)
        if "accountant" not in estimator.get_params():
            return
        try:
            estimator.set_params(accountant=EmptyPurse())
            fit(estimator, self.example.rows, self.example.labels)
        except CannotSolve:
            if known:
                raise
            pytest.skip("does not apply")
        except Planned:
            return
        raise AssertionError("nothing was charged")


class Planned(Exception):
    pass


class EmptyPurse:
    """An accountant that refuses whatever was planned."""

    def charge(self, event: Any, delta: float | None = None) -> float:
        raise Planned


# How each mechanism is tried: a sample of all records, since words that sample cannot be replayed.
TRIED: dict[str, Any] = {"auto": "auto", **{name: name for name in MECHANISMS}}
TRIED["noisy_sgd"] = NoisySGD(sampling_rate=1.0, n_steps=5)
LAWS = sorted(concrete(under=Sanitizer) - {NoNoise}, key=lambda law: str(law.kind))
SANITIZERS = {law.kind: law for law in LAWS}
DELTAS = {"": DELTA, "-pure": 0.0}
INTERCEPTS = {"": True, "-plain": False}


def choices(spec: ModelSpec, example: Example) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every combination of what an estimator can be told to do; not all of them apply."""
    known = spec.model().get_params()
    for delta_tag, delta in DELTAS.items():
        if "sanitizer" in known:
            for kind, law in {"auto": "auto", **SANITIZERS}.items():
                if delta or "delta" not in getattr(law, "__dataclass_fields__", {}):
                    yield f"{kind}{delta_tag}", {"delta": delta, "sanitizer": law}
        elif "fit_intercept" not in known:
            yield f"its_own{delta_tag}", {"delta": delta}
        else:
            for name, mechanism in TRIED.items():
                told = {"delta": delta, "mechanism": mechanism}
                if name == "noisy_sgd":
                    told["n_records"] = len(example.rows)
                for tag, intercept in INTERCEPTS.items():
                    if intercept or delta:
                        yield f"{name}{tag}{delta_tag}", {**told, "fit_intercept": intercept}


LOGISTIC = PROBLEMS["logistic-binary"]
CASES = {
    f"{name}-{tag}": Case(*problem, told)
    for name, problem in PROBLEMS.items()
    for tag, told in choices(*problem)
} | {
    "ball": Case(*LOGISTIC, {"delta": DELTA, "constraint": L2Ball(2.0)}),
    "balanced": Case(*LOGISTIC, {"delta": DELTA, "mechanism": Balanced("auto")}),
    "l1-ball": Case(*LOGISTIC, {"delta": DELTA, "constraint": L1Ball(2.0)}),
    "candidates": Case(
        *LOGISTIC,
        {
            "delta": 0.0,
            "fit_intercept": False,
            "mechanism": PublicCandidates(np.vstack([np.eye(3), -np.eye(3)])),
        },
    ),
    **{
        f"{name.split('-')[0]}-in_a_ball": Case(
            *PROBLEMS[name],
            {"delta": 0.0, "constraint": L2Ball(3.0), "mechanism": ExponentialInABall()},
        )
        for name in ("logistic-binary", "svc-binary", "huber-number")
    },
}

# What theory allows, so that nothing stops to apply unnoticed.
GENERAL = ("auto", "noisy_gradient", "output_perturbation")
EITHER = {
    *(f"{problem}-{name}{tag}" for problem in PROBLEMS for name in GENERAL for tag in INTERCEPTS),
    *(f"{problem}-{name}-pure" for problem in PROBLEMS for name in ("auto", "output_perturbation")),
    *(f"{problem}-objective_perturbation-pure" for problem in PROBLEMS),
    *(
        f"{name}-binary-objective_perturbation{tag}"
        for name in ("logistic", "svc")
        for tag in INTERCEPTS
    ),
    *(
        f"{name}-number-sufficient_statistics{tag}"
        for name in ("linear", "ridge")
        for tag in INTERCEPTS
    ),
    *(
        f"{name}-its_own{tag}"
        for name in ("mean-ball", "median-middle", "median-ninth_tenth")
        for tag in DELTAS
    ),
    "geometric_median-ball-its_own",
    *("ball", "balanced", "l1-ball", "candidates"),
    *(f"{name}-in_a_ball" for name in ("logistic", "svc", "huber")),
}
KNOWN = {
    Relation.REPLACE: EITHER,
    Relation.ADD_REMOVE: EITHER
    | {f"{problem}-objective_perturbation{tag}" for problem in PROBLEMS for tag in INTERCEPTS}
    | {f"{problem}-noisy_sgd{tag}" for problem in PROBLEMS for tag in INTERCEPTS},
}


# Mechanisms of which nothing is known: all that applies is replayed.
NEW = tuple(
    f"{problem}-{name}"
    for name in MECHANISMS
    for problem in PROBLEMS
    if not any(f"-{name}" in known for known in KNOWN[Relation.ADD_REMOVE])
)


def cases(relation: Relation) -> list[Any]:
    """Every case, those slow that nobody would miss: of what is known to apply, all are here."""
    return [
        name
        if (name in KNOWN[relation] or name.startswith(NEW)) and not name.startswith(MADE_OF_OTHERS)
        else pytest.param(name, marks=pytest.mark.slow)
        for name, case in CASES.items()
        if relation in case.spec.relations
    ]


def extended(example: Example, extreme: float) -> tuple[Any, Any]:
    """Return the records of an example and one more: as far out as one can be."""
    rows = np.vstack([example.rows, [[extreme, 0.3 * extreme, -extreme]]])
    return rows, None if example.labels is None else np.append(example.labels, example.odd[0])


@pytest.mark.parametrize("name", cases(Relation.ADD_REMOVE))
# A record that is clipped, and, slow, one that is not.
@pytest.mark.parametrize("extreme", [1e6, pytest.param(0.2, marks=pytest.mark.slow)])
def test_add_remove(name: str, extreme: float) -> None:
    case, relation = CASES[name], Relation.ADD_REMOVE
    case.skip_unless_it_applies(relation, name in KNOWN[relation])
    fewer, more = (case.example.rows, case.example.labels), extended(case.example, extreme)
    assert replayed(case.estimator(relation), fewer, more) >= 1
    assert replayed(case.estimator(relation), more, fewer) >= 1


@pytest.mark.parametrize("name", cases(Relation.REPLACE))
def test_replace(name: str) -> None:
    case, relation = CASES[name], Relation.REPLACE
    case.skip_unless_it_applies(relation, name in KNOWN[relation])
    rows, labels = extended(case.example, 1e6)
    other_rows = rows.copy()
    other_rows[-1] = [-1e6, 1e6, 1e-3]
    other_labels = None if labels is None else np.append(labels[:-1], case.example.odd[1])
    estimator = case.estimator(relation)
    assert replayed(estimator, (rows, labels), (other_rows, other_labels)) >= 1


def test_every_mechanism_has_a_case() -> None:
    """One that the planner does not know needs a case of its own."""
    own = {type(case.parameters.get("mechanism")) for case in CASES.values()}
    by_name = {type(mechanism) for mechanism in MECHANISMS.values()}
    of_medians = {QuantileOnALine}
    assert concrete(having=("plan", "solve")) == by_name | of_medians | own - {str, type(None)}


def test_every_model_has_cases() -> None:
    for spec, _ in PROBLEMS.values():
        assert any(case.spec is spec for case in CASES.values())
    # as many as were listed by hand before they were made
    known = [len(names & set(CASES)) for names in (KNOWN[Relation.ADD_REMOVE], EITHER)]
    assert known >= [57, 49], known


MUTANTS: dict[str, tuple[Any, str]] = {
    "noisy_gradient": (Gradient, "logistic-binary-noisy_gradient"),
    "objective_perturbation": (PerturbedMinimizer, "logistic-binary-objective_perturbation"),
    "output_perturbation": (RegularizedMinimizer, "logistic-binary-output_perturbation"),
}
SCORES: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA, "row_norm": 1.5}


def halve(question: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make questions of a kind state half of their sensitivity."""
    stated = question.sensitivity

    def half(self: Any, facts: Facts) -> Sensitivity:
        whole: Sensitivity = stated(self, facts)
        return replace(whole, value=whole.value / 2)

    monkeypatch.setattr(question, "sensitivity", half)


def test_a_halved_sensitivity_of_a_moment_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    halve(LabelMoment, monkeypatch)
    case = CASES["linear-number-sufficient_statistics"]
    estimator = case.estimator(Relation.ADD_REMOVE)
    fewer, more = (case.example.rows, case.example.labels), extended(case.example, 1e6)
    with pytest.raises(SensitivityViolation):
        replay(lambda data: clone(estimator).fit(*data), fewer, more)


@pytest.mark.parametrize("name", MUTANTS)
def test_halved_sensitivity_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    question, case_name = MUTANTS[name]
    halve(question, monkeypatch)
    case = CASES[case_name]
    estimator = case.estimator(Relation.ADD_REMOVE)
    if name in {"objective_perturbation", "output_perturbation"}:
        # the noise may carry the logistic loss to where the record's slope is below a half; with
        # a stiff ridge every margin is below 1, where the hinge has its full slope, whatever
        # the noise
        estimator = LinearSVC(**SCORES, mechanism=name, regularization=1e4, fit_intercept=False)
    fewer, more = (case.example.rows, case.example.labels), extended(case.example, 1e6)
    with pytest.raises(SensitivityViolation):
        replayed(estimator, fewer, more)


def test_rows_used_unclipped_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.records import MemoryRecords

    monkeypatch.setattr(MemoryRecords, "clip_factors", lambda self: np.ones(self.rows.shape[0]))
    estimator = LogisticRegression(**SCORES, mechanism=NoisyGradient(n_steps=3))
    example = LOGISTIC[1]
    with pytest.raises(SensitivityViolation):
        replayed(estimator, (example.rows, example.labels), extended(example, 1e6))
