"""Every estimator with every mechanism and relation that applies."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.erm import (
    Balanced,
    Box,
    ExponentialInABall,
    L1Ball,
    L2Ball,
    NoisePace,
    NoisyGradient,
    NoisySGD,
    PublicCandidates,
    SecondMoment,
    Simplex,
)
from tacit.local import GaussianNoise, HalfSphere, PrivUnit, SphereNoise
from tests.declared import PROBLEMS
from tests.golden.cases.fitting import DELTA, RELATIONS, fitted, known_number
from tests.golden.pinning import Case

MECHANISMS: dict[str, Any] = {
    "auto": "auto",
    "objective_perturbation": "objective_perturbation",
    "noisy_gradient": "noisy_gradient",
    "output_perturbation": "output_perturbation",
    "sufficient_statistics": "sufficient_statistics",
    "noisy_sgd": NoisySGD(sampling_rate=0.5, n_steps=4),
}
BUDGETS: dict[str, dict[str, Any]] = {
    "": {"fit_intercept": True},
    "-plain": {"fit_intercept": False},
    "-pure": {"fit_intercept": True, "delta": 0.0},
}
LINEAR = [name for name, (spec, _) in PROBLEMS.items() if hasattr(spec.model(), "max_weight")]
LOCAL = [name for name, (spec, _) in PROBLEMS.items() if hasattr(spec.model(), "sanitizer")]
LOCATION = [name for name in PROBLEMS if name not in (*LINEAR, *LOCAL)]


def _linear() -> dict[str, Case]:
    made: dict[str, Case] = {}
    for problem in LINEAR:
        for word, mechanism in MECHANISMS.items():
            for relation in RELATIONS:
                for tag, told in BUDGETS.items():
                    if _is_told_by_others(problem, word, relation, tag):
                        continue
                    number = known_number(problem, relation, always=word == "noisy_sgd")
                    name = f"{problem}-{word}-{relation}{tag}"
                    made[name] = fitted(problem, mechanism=mechanism, **number, **told)
    return made


def _is_told_by_others(problem: str, word: str, relation: str, tag: str) -> bool:
    """Return whether a case is left out: what applies to no problem, or is alike and costly."""
    if word == "noisy_sgd":
        return relation == "replace" or tag == "-pure" or (tag == "-plain" and "binary" in problem)
    if tag == "-plain" and relation == "replace":
        return True
    if problem.startswith("kernel"):
        return tag == "-plain" or (relation == "replace" and word != "noisy_gradient")
    return False


def _locations() -> dict[str, Case]:
    made: dict[str, Case] = {}
    for problem in LOCATION:
        for relation in RELATIONS:
            for tag, delta in {"": DELTA, "-pure": 0.0}.items():
                number = known_number(problem, relation)
                made[f"{problem}-{relation}{tag}"] = fitted(problem, delta=delta, **number)
    return made


def _locally() -> dict[str, Case]:
    laws: tuple[Any, ...] = (SphereNoise, HalfSphere, PrivUnit, GaussianNoise)
    made: dict[str, Case] = {}
    for problem in LOCAL:
        for law in ("auto", *laws):
            word = law if isinstance(law, str) else str(law.kind)
            for tag, delta in {"": DELTA, "-pure": 0.0}.items():
                needs = "delta" in getattr(law, "__dataclass_fields__", {})
                if (delta and word == "auto") or bool(delta) == needs:
                    name = f"{problem}-{word}{tag}"
                    made[name] = fitted(problem, delta=delta, sanitizer=law)
    return made


def _special() -> dict[str, Case]:
    """Sets, candidates, settings and preconditioners that one asks for by themselves."""
    corners = np.vstack([np.eye(3), -np.eye(3)])
    pure: dict[str, Any] = {"delta": 0.0}
    descent = {"mechanism": NoisyGradient(n_steps=5)}
    turned = {"mechanism": NoisyGradient(n_steps=4, preconditioner=SecondMoment(0.1, always=True))}
    paced = {"mechanism": NoisyGradient(n_steps=6, clip=0.05, pace=NoisePace())}
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "ball": ("logistic-binary", {"constraint": L2Ball(2.0)}),
        "ball-descent": ("logistic-binary", {"constraint": L2Ball(2.0), **descent}),
        "l1_ball": ("logistic-binary", {"constraint": L1Ball(2.0)}),
        "box": ("linear-number", {"constraint": Box(-0.5, 0.5), **descent}),
        "simplex": ("linear-number", {"constraint": Simplex(), "fit_intercept": False, **descent}),
        "balanced": ("logistic-binary", {"mechanism": Balanced("auto")}),
        "balanced-pure": (
            "logistic-binary",
            {"mechanism": Balanced("output_perturbation"), **pure},
        ),
        "candidates": (
            "logistic-binary",
            {"mechanism": PublicCandidates(corners), "fit_intercept": False, **pure},
        ),
        **{
            f"in_a_ball-{problem}": (
                problem,
                {"mechanism": ExponentialInABall(), "constraint": L2Ball(3.0), **pure},
            )
            for problem in ("logistic-binary", "svc-binary", "huber-number")
        },
        **{f"preconditioned-{problem}": (problem, turned) for problem in LINEAR[:8]},
        **{f"paced-{problem}": (problem, paced) for problem in LINEAR[:8:3]},
        **{
            f"ridge-{word}": ("logistic-binary", {"mechanism": word, "regularization": 5.0})
            for word in MECHANISMS
            if word not in ("noisy_sgd", "sufficient_statistics")
        },
        **{
            f"infinite-{problem}": (problem, {"epsilon": float("inf")})
            for problem in ("logistic-binary", "linear-number", "mean-ball", "median-middle")
        },
        **{
            f"large-{problem}": (problem, {"epsilon": 50.0})
            for problem in (*LINEAR[:8:2], "mean-ball")
        },
        **{
            f"large-{problem}-pure": (problem, {"epsilon": 50.0, **pure})
            for problem in LINEAR[:8:2]
        },
    }
    replaced = {
        f"preconditioned-{problem}-replace": (
            problem,
            {**turned, "relation": "replace", "n_records": 60},
        )
        for problem in ("logistic-binary", "linear-number")
    }
    return {name: fitted(problem, **told) for name, (problem, told) in (asked | replaced).items()}


def cases() -> dict[str, Case]:
    """Return all of them by name."""
    return {**_linear(), **_locations(), **_locally(), **_special()}
