"""Weights of records and of classes, people with several records, and standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.erm import NoisyGradient, NoisySGD
from tacit.registry import Example
from tests.declared import PROBLEMS
from tests.golden.cases.fitting import RELATIONS, fitted, known_number
from tests.golden.cases.mechanisms import LINEAR, LOCATION
from tests.golden.pinning import Case

MOST = 2.0
DESCENT = NoisyGradient(n_steps=4)
TRIED: dict[str, Any] = {
    "objective_perturbation": "objective_perturbation",
    "noisy_gradient": DESCENT,
    "output_perturbation": "output_perturbation",
    "sufficient_statistics": "sufficient_statistics",
}
CLASSIFIERS = ("logistic-binary", "logistic-three", "svc-binary")
WITH_ERRORS = [
    name for name, (spec, _) in PROBLEMS.items() if "inference" in spec.model().get_params()
]


def own_weights(example: Example) -> dict[str, Any]:
    """Return weights that differ, some beyond what is declared and one that is no number."""
    weights = np.linspace(0.0, 1.5 * MOST, len(example.rows))
    weights[7] = np.nan
    return {"sample_weight": weights}


def people(example: Example) -> dict[str, Any]:
    """Return whose each record is: some people have one, some three, and one record is nobody's."""
    n = len(example.rows)
    unit = np.array([f"p{place % (n // 3) if place % 2 else place}" for place in range(n)], object)
    unit[5] = None
    return {"unit": unit}


def _weights() -> dict[str, Case]:
    made: dict[str, Case] = {}
    for problem in (name for name in LINEAR if not name.startswith("kernel")):
        for word, mechanism in TRIED.items():
            for relation in RELATIONS:
                number = known_number(problem, relation)
                made[f"weights-{problem}-{word}-{relation}"] = fitted(
                    problem, mechanism=mechanism, max_weight=MOST, given=own_weights, **number
                )
    for problem in CLASSIFIERS:
        odd = PROBLEMS[problem][1].odd
        for tag, of_classes in {"balanced": "balanced", "numbers": {odd[0]: 8.0}}.items():
            for word in ("objective_perturbation", "noisy_gradient", "output_perturbation"):
                told = {"mechanism": TRIED[word], "class_weight": of_classes}
                made[f"classes-{problem}-{tag}-{word}"] = fitted(problem, **told)
                made[f"classes-{problem}-{tag}-{word}-pure"] = fitted(problem, delta=0.0, **told)
            made[f"classes-{problem}-{tag}-with_weights"] = fitted(
                problem, class_weight=of_classes, max_weight=MOST, given=own_weights
            )
    sampled = NoisySGD(sampling_rate=0.5, n_steps=4)
    made["weights-logistic-binary-noisy_sgd"] = fitted(
        "logistic-binary", mechanism=sampled, n_records=60, max_weight=MOST, given=own_weights
    )
    return made


def _people() -> dict[str, Case]:
    made: dict[str, Case] = {}
    for problem in (*LINEAR, *LOCATION):
        few = problem.startswith("kernel") or problem in LOCATION
        for word, mechanism in ({"auto": "auto"} if few else TRIED).items():
            made[f"people-{problem}-{word}"] = fitted(problem, mechanism=mechanism, given=people)
    for problem in ("logistic-binary", "linear-number"):
        for word in ("noisy_gradient", "objective_perturbation"):
            told: dict[str, Any] = {"mechanism": TRIED[word], "max_weight": MOST}
            made[f"people-weights-{problem}-{word}"] = fitted(
                problem, given=lambda e: {**people(e), **own_weights(e)}, **told
            )
    made["people-balanced"] = fitted("logistic-binary", class_weight="balanced", given=people)
    made["people-counted"] = fitted("logistic-binary", n_records=40, given=people)
    return made


def _errors() -> dict[str, Case]:
    made: dict[str, Case] = {}
    words = {"auto": "auto", "objective": "objective_perturbation", "descent": DESCENT}
    for problem in WITH_ERRORS:
        linear = problem in LINEAR
        for word, mechanism in (words if linear else {"own": None}).items():
            for relation in RELATIONS:
                told: dict[str, Any] = {"inference": 0.2, **known_number(problem, relation)}
                if linear:
                    told["mechanism"] = mechanism
                made[f"errors-{problem}-{word}-{relation}"] = fitted(problem, **told)
        made[f"errors-{problem}-people"] = fitted(problem, inference=0.2, given=people)
    for problem in ("linear-number", "ridge-number"):
        made[f"errors-{problem}-statistics"] = fitted(
            problem, inference=0.2, mechanism="sufficient_statistics"
        )
    return made


def _counts() -> dict[str, Case]:
    """The number of records: declared and other than it is, or read off the data."""
    made: dict[str, Case] = {}
    for problem in (*LINEAR[:8], "mean-ball", "geometric_median-ball"):
        made[f"count-{problem}-declared"] = fitted(problem, n_records=75)
    for problem in ("logistic-binary", "linear-number", "mean-ball"):
        made[f"count-{problem}-inferred"] = fitted(problem, n_records="infer")
    return made


def cases() -> dict[str, Case]:
    """Return all of them by name."""
    return {**_weights(), **_people(), **_errors(), **_counts()}
