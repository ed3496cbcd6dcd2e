"""Standard errors: charged, as noisy as stated, refused where they are not derived."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import tacit.erm.inference as inference_module
from tacit.erm import CannotSolve, L2Ball, Objective, Problem
from tacit.erm.inference import PlanWithErrors, clipping_norm, plan_with_errors
from tacit.erm.losses import LogisticLoss
from tacit.erm.minimization import make_plan
from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from tacit.location import Mean
from tacit.noise import SensitivityViolation
from tacit.privacy import Budget, Guarantee, Relation
from tacit.queries import Facts, PointSum, Sensitivity
from tacit.queries.hessian import ClippedNorms, Coefficients, OuterProducts
from tacit.records import Block, Bounds
from tacit.testing import replay
from tests.declared import replayed

DELTA = 1e-5
OP, NG, SS = "objective_perturbation", "noisy_gradient", "sufficient_statistics"
RNG = np.random.default_rng(5)
ROWS = RNG.standard_normal((60, 3))
SCORES = ROWS @ [1.0, -1.0, 0.5]
COUNTS = np.floor(np.exp(SCORES / 2))
KNOWN: dict[str, Any] = {"delta": DELTA, "row_norm": 1.5, "inference": 0.2}
RANGE: dict[str, Any] = {**KNOWN, "label_range": (-3.0, 3.0)}
MODELS: dict[str, tuple[Any, Any, Any]] = {
    "logistic": (LogisticRegression(**KNOWN, classes=[False, True]), SCORES > 0, True),
    "linear": (LinearRegression(**RANGE), SCORES, 1e6),
    "ridge": (Ridge(**RANGE, alpha=30.0), SCORES, -1e6),
    "huber": (HuberRegressor(**RANGE), SCORES, 1e6),
    "poisson": (PoissonRegressor(**{**RANGE, "label_range": (0, 9)}), COUNTS, 1e6),
}
CASES = [
    (model, mechanism, Relation.ADD_REMOVE)
    for model in MODELS
    for mechanism in ("auto", OP, NG, *((SS,) if model in {"linear", "ridge"} else ()))
] + [
    ("logistic", OP, Relation.REPLACE),
    ("huber", NG, Relation.REPLACE),
    ("linear", SS, Relation.REPLACE),
]


def neighbours(model: str, relation: Relation, far: float = 1e6) -> tuple[Any, Any]:
    _, labels, odd = MODELS[model]
    rows = np.vstack([ROWS, [[far, 0.3 * far, -far]]])
    more = rows, np.append(labels, odd)
    if relation is Relation.ADD_REMOVE:
        return (ROWS, labels), more
    other = rows.copy()
    other[-1] = [-far, far, 1e-3]
    return (other, np.append(labels, labels[0])), more


@pytest.mark.parametrize(("model", "mechanism", "relation"), CASES)
@pytest.mark.parametrize("far", [1e6, pytest.param(0.2, marks=pytest.mark.slow)])
def test_replay(model: str, mechanism: str, relation: Relation, far: float) -> None:
    public = {"n_records": 61} if relation is Relation.REPLACE else {}
    estimator = clone(MODELS[model][0]).set_params(mechanism=mechanism, relation=relation, **public)
    fewer, more = neighbours(model, relation, far)
    # what is asked first, H unless it is known already, M
    own = 2 + (model != "logistic") - (mechanism == SS)
    assert replayed(estimator, fewer, more) >= own + 1
    assert replayed(estimator, more, fewer) >= own + 1


def stiff() -> HuberRegressor:
    """Weights are next to 0, where every record turns, and pulls, as hard as it may."""
    return HuberRegressor(**RANGE, regularization=1e9, mechanism=OP, fit_intercept=False)


@dataclass(frozen=True, eq=False)
class SaidToBeSmaller:
    """Coefficients that exceed what is said of them."""

    right: Coefficients
    share: float

    @property
    def greatest(self) -> float:
        return self.share * self.right.greatest

    def of(self, block: Block) -> Any:
        return self.right.of(block)


@pytest.mark.parametrize("which", ["hessian_statistic", "squares_statistic"])
@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
def test_halved_sensitivity_is_caught(
    which: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = getattr(inference_module, which)

    def halved(law: Any, weights: Any) -> OuterProducts:
        right: OuterProducts = made(law, weights)
        return replace(right, coefficients=SaidToBeSmaller(right.coefficients, share))

    monkeypatch.setattr(inference_module, which, halved)
    rows, labels = ROWS, np.zeros(60)
    # a long row: its residual is small enough to turn, or large enough to pull
    label = 0.1 if which == "hessian_statistic" else 3.0
    more = np.vstack([rows, [[1e6, 0.0, 0.0]]]), np.append(labels, label)
    if share == 1.0:
        assert replayed(stiff(), (rows, labels), more) >= 4
        return
    with pytest.raises(SensitivityViolation):
        replayed(stiff(), (rows, labels), more)


@pytest.mark.parametrize("share", [0.9, 1.0])
def test_less_noise_on_what_is_asked_first_is_caught(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = ClippedNorms.sensitivity

    def less(self: ClippedNorms, facts: Facts) -> Sensitivity:
        whole = stated(self, facts)
        return replace(whole, value=share * whole.value)

    monkeypatch.setattr(ClippedNorms, "sensitivity", less)
    more = np.vstack([ROWS, [[1e6, 0.0, 0.0]]]), np.zeros(61)
    if share == 1.0:
        assert replayed(stiff(), (ROWS, np.zeros(60)), more) >= 4
        return
    with pytest.raises(SensitivityViolation):
        replayed(stiff(), (ROWS, np.zeros(60)), more)


@pytest.mark.parametrize("share", [0.9, 1.0])
@pytest.mark.parametrize("label", [0.1, 3.0])
def test_less_noise_on_matrices_is_caught(
    label: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = OuterProducts.sensitivity

    def less(self: OuterProducts, facts: Facts) -> Sensitivity:
        whole = stated(self, facts)
        return replace(whole, value=share * whole.value)

    monkeypatch.setattr(OuterProducts, "sensitivity", less)
    more = np.vstack([ROWS, [[1e6, 0.0, 0.0]]]), np.append(np.zeros(60), label)
    if share == 1.0:
        assert replayed(stiff(), (ROWS, np.zeros(60)), more) >= 4
        return
    with pytest.raises(SensitivityViolation):
        replayed(stiff(), (ROWS, np.zeros(60)), more)


def test_a_matrix_that_was_not_charged_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = inference_module._together

    def uncharged(weights: Any, budget: Budget, share: float) -> PlanWithErrors:
        return replace(made(weights, budget, share), event=weights.event)

    monkeypatch.setattr(inference_module, "_together", uncharged)
    monkeypatch.setattr(inference_module, "_remembered", inference_module._searched)
    with pytest.raises(RuntimeError, match="not what was charged"):
        LogisticRegression(**KNOWN, mechanism=OP).fit(ROWS, SCORES > 0)


@pytest.mark.parametrize("mechanism", [OP, NG])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.7])
def test_weights_and_errors_are_within_the_budget(
    mechanism: str, epsilon: float, share: float
) -> None:
    problem = Problem(Objective(LogisticLoss(), Bounds(row_norm=2.0)), 5)
    plan = plan_with_errors(problem, Budget(epsilon, 1e-6), mechanism, share)
    assert 0.999 * epsilon <= Guarantee(plan.event).epsilon(1e-6) <= epsilon
    assert isinstance(plan, PlanWithErrors)
    spent = sum(part.gaussian_mu() ** 2 for part in (plan.clipping_norms, plan.hessian))
    whole = make_plan(problem, Budget(epsilon, 1e-6), NG).event
    assert spent == pytest.approx(share * whole.gaussian_mu() ** 2)  # type: ignore[operator]


def limit(kept: list[float], noise_multiplier: float, std: float = 0.0) -> float:
    """Return what is chosen if thirteen limits leave so much of 100; the last stands for the rest.

    For a matrix of three columns.
    """
    sums = 100.0 * np.array(kept + [kept[-1]] * (13 - len(kept)))
    return clipping_norm(2.0 ** (-np.arange(13) / 2), sums, std, noise_multiplier, 3)


def test_the_least_limit_that_loses_little_is_taken() -> None:
    kept = [1.0, 1.0, 0.99, 0.9, 0.8]
    assert limit(kept, 1e-9) == pytest.approx(0.5)  # 1 % is nothing
    # z 2^(-3/2) sqrt(6) 6 / 100 is more than 10 % from z = 1.93 on
    assert limit(kept, 1.9) == pytest.approx(0.5)
    assert limit(kept, 2.0) == pytest.approx(2**-1.5)
    assert limit([1.0], 1e-9) == pytest.approx(1 / 64)


def test_sums_that_are_all_noise_clip_nothing_below_their_noise() -> None:
    """Going down it ends with the first limit that may lose more, whatever comes after."""
    assert limit([1.0, 0.5, 1.0], 1e-9, std=1.0) == 1.0
    assert limit([1.0], 1e-9, std=50.0) == 1.0
    assert limit([-1.0], 1e-9, std=50.0) == 1.0


REFUSED: dict[str, tuple[Any, str]] = {
    "pure": (LogisticRegression(delta=0.0, row_norm=1.5, inference=0.1), "delta > 0"),
    "share": (LogisticRegression(**{**KNOWN, "inference": 1.0}), "share"),
    "negative": (LogisticRegression(**{**KNOWN, "inference": -0.1}), "share"),
    "constraint": (LogisticRegression(**KNOWN, constraint=L2Ball(1.0)), "constraint"),
    "output": (LogisticRegression(**KNOWN, mechanism="output_perturbation"), "not derived"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_derived_is_refused(name: str) -> None:
    estimator, why = REFUSED[name]
    with pytest.raises(ValueError, match=why):
        clone(estimator).fit(ROWS, SCORES > 0)


def test_three_classes_are_refused() -> None:
    with pytest.raises(CannotSolve, match="two classes"):
        LogisticRegression(**KNOWN, classes=[0, 1, 2]).fit(ROWS, np.arange(60) % 3)


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize("n_records", [None, 61])
def test_a_mean_with_errors_is_replayed(
    relation: Relation, n_records: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if relation is Relation.REPLACE and n_records is None:
        return
    estimator = Mean(1.0, DELTA, row_norm=2.0, relation=relation, inference=0.1)
    estimator.set_params(n_records=n_records)
    (fewer, _), (more, _) = neighbours("linear", relation)
    count = replay(lambda rows: clone(estimator).fit(rows), fewer, more)
    assert count == 2 + (n_records is None)
    stated = PointSum.sensitivity

    def smaller(self: PointSum, facts: Facts) -> Sensitivity:
        return replace(stated(self, facts), value=0.1 * 2.0**2)

    monkeypatch.setattr(PointSum, "sensitivity", smaller)
    with pytest.raises(SensitivityViolation):
        replay(lambda rows: clone(estimator).fit(rows), fewer, more)


def test_intervals_of_a_mean_hold_it() -> None:
    held = []
    for epsilon in (0.5, 8.0):
        for _ in range(150):
            rows = RNG.normal(0.5, 0.4, (1000, 2))
            model = Mean(epsilon, DELTA, row_norm=3.0, inference=0.1).fit(rows)
            assert model.privacy_.epsilon(DELTA) <= epsilon
            held.append(np.abs(model.location_ - 0.5) < 1.96 * model.standard_errors_)
    # 600 times; one run in a million is outside
    assert 0.90 < np.mean(held) < 0.99
    assert len(model.summary().rows()) == 2
    with pytest.raises(ValueError, match="delta > 0"):
        Mean(1.0, 0.0, row_norm=3.0, inference=0.1).fit(rows)
