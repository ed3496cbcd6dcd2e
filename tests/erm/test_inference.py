"""Standard errors: charged, as noisy as stated, refused where they are not derived."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.base import clone

import tacit.erm.inference as inference_module
import tacit.location.mean as mean_module
from tacit.erm import CannotSolve, L2Ball, NoisyGradient, Objective, Problem
from tacit.erm.inference import PlanWithErrors, Statistic, hessian, plan_with_errors, squares
from tacit.erm.laws import TiltLaw
from tacit.erm.losses import HuberLoss, LogisticLoss
from tacit.erm.point_sum import point_sum
from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from tacit.location import Mean
from tacit.noise import SensitivityViolation, secure_source
from tacit.privacy import Budget, Gaussian, Guarantee, Relation
from tacit.records import Bounds, MemoryRecords
from tacit.testing import replay

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


def replayed(estimator: Any, one: Any, other: Any) -> int:
    return replay(lambda records: clone(estimator).fit(*records), one, other)


@pytest.mark.parametrize(("model", "mechanism", "relation"), CASES)
@pytest.mark.parametrize("far", [1e6, pytest.param(0.2, marks=pytest.mark.slow)])
def test_replay(model: str, mechanism: str, relation: Relation, far: float) -> None:
    public = {"n_records": 61} if relation is Relation.REPLACE else {}
    estimator = clone(MODELS[model][0]).set_params(mechanism=mechanism, relation=relation, **public)
    fewer, more = neighbours(model, relation, far)
    without = clone(estimator).set_params(inference=0.0)
    own = 1 if model == "logistic" else 2
    assert replayed(estimator, fewer, more) >= own + 1
    assert replayed(estimator, more, fewer) >= own + 1
    if mechanism not in (NG, "auto"):  # steps may differ with the budget, and with the count
        assert replayed(estimator, fewer, more) == replayed(without, fewer, more) + own


def stiff() -> HuberRegressor:
    """Weights are next to 0, where every record turns, and pulls, as hard as it may."""
    return HuberRegressor(**RANGE, regularization=1e9, mechanism=OP, fit_intercept=False)


@pytest.mark.parametrize("which", ["hessian", "squares"])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_halved_sensitivity_is_caught(
    which: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = getattr(inference_module, which)

    def halved(law: Any, weights: Any) -> Statistic:
        statistic: Statistic = made(law, weights)
        return replace(statistic, greatest=share * statistic.greatest)

    monkeypatch.setattr(inference_module, which, halved)
    rows, labels = ROWS, np.zeros(60)
    # a long row: its residual is small enough to turn, or large enough to pull
    label = 0.1 if which == "hessian" else 3.0
    more = np.vstack([rows, [[1e6, 0.0, 0.0]]]), np.append(labels, label)
    if share == 1.0:
        assert replayed(stiff(), (rows, labels), more) >= 3
        return
    with pytest.raises(SensitivityViolation):
        replayed(stiff(), (rows, labels), more)


def test_a_matrix_that_was_not_charged_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    made = inference_module._together

    def uncharged(weights: Any, budget: Budget, share: float) -> PlanWithErrors:
        return replace(made(weights, budget, share), event=weights.event)

    monkeypatch.setattr(inference_module, "_together", uncharged)
    with pytest.raises(RuntimeError, match="withheld"):
        LogisticRegression(**KNOWN, mechanism=OP).fit(ROWS, SCORES > 0)


@pytest.mark.parametrize("off", [1.0, 0.9, 1.1])
@pytest.mark.parametrize("has_total", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_noise_is_as_stated(off: float, has_total: bool) -> None:
    """Symmetric, of the standard deviation stated beside it: neither less nor more."""
    bounds = Bounds(row_norm=1.5)
    records = MemoryRecords(ROWS, SCORES, bounds)
    law = TiltLaw(Objective(HuberLoss(1.0), bounds), 1.0)
    statistic = replace(hessian(law, np.zeros(3)), has_total=has_total)
    exact, total = statistic.sums(records)
    source, drawn, sums = secure_source(), [], []
    for _ in range(6000):
        noisy, known, _ = statistic.noisy(records, Gaussian(2.0), source)
        assert np.all(noisy.matrix == noisy.matrix.T)
        reach = 1.5**2 * math.sqrt(1.25 if has_total else 1.0)  # R^2, and half of that beside it
        assert noisy.std == pytest.approx(2.0 * reach, rel=2e-4)
        away = (noisy.matrix - exact) / (off * noisy.std)
        drawn.append(np.append(np.diag(away), math.sqrt(2.0) * away[np.triu_indices(3, 1)]))
        sums.append((known.value - total) / (off * known.std) if has_total else 0.0)
    for values in (np.array(drawn), *((np.array(sums),) if has_total else ())):
        p = chi2.cdf(np.sum(values**2), values.size)
        fits = 1e-6 < p < 1 - 1e-6
        assert fits == (off == 1.0)


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
    spent = 1 / plan.each.noise_multiplier**2 * Gaussian(1.0).gaussian_mu() ** 2
    whole = plan_with_errors(problem, Budget(epsilon, 1e-6), NG, 0.0).event
    assert spent == pytest.approx(share * whole.gaussian_mu() ** 2)  # type: ignore[operator]


def test_a_record_counts_as_stated() -> None:
    """One record at the edge of every bound attains the sensitivities: they are not loose."""
    bounds = Bounds(row_norm=2.0, label_range=(-3.0, 3.0))
    law = TiltLaw(Objective(HuberLoss(1.0), bounds), 1.0)
    near = MemoryRecords(np.array([[2.0, 0.0]]), np.array([0.5]), bounds)
    far = MemoryRecords(np.array([[2.0, 0.0]]), np.array([3.0]), bounds)
    turning, pulling = hessian(law, np.zeros(2)), squares(law, np.zeros(2))
    assert turning.greatest == pulling.greatest == 1.0
    assert np.linalg.norm(turning.sums(near)[0]) == pytest.approx(2.0**2)
    assert np.linalg.norm(pulling.sums(far)[0]) == pytest.approx(2.0**2)


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


def test_a_clipped_descent_knows_its_clip() -> None:
    """A slope that is clipped does not turn, so that fewer records say where the truth is."""
    bounds = Bounds(row_norm=1.5, label_range=(-3.0, 3.0))
    law = TiltLaw(Objective(HuberLoss(2.0), bounds), 0.5)
    records = MemoryRecords(ROWS, SCORES, bounds)
    clipped = replace(law, slope_limit=2.0)
    fewer, more = (hessian(one, np.zeros(3)).sums(records)[1] for one in (law, clipped))
    labels = np.clip(SCORES, -3, 3)
    assert fewer == np.sum(np.abs(labels) < 0.5)
    assert more == np.sum(np.abs(labels) < 2.0)
    assert NoisyGradient().has_law


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
    small = 0.1 * 2.0**2
    monkeypatch.setattr(
        mean_module, "point_sum", lambda *told: replace(point_sum(*told), sensitivity=small)
    )
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
