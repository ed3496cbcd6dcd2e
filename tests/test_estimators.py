"""What the estimators promise their users, beyond scikit-learn's own checks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model as sk
from sklearn.base import clone

from tacit.erm import CannotSolve, NotCertified
from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from tacit.location import GeometricMedian, Mean, Median
from tacit.privacy import Accountant, Budget, BudgetExceeded, Relation

RNG = np.random.default_rng(11)
X = RNG.standard_normal((400, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * RNG.standard_normal(400)
LABELS = Y + RNG.standard_normal(400) > 0
CLASSES = np.digitize(Y, [-1.0, 1.0])
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0] + 0.5)).astype(float)
NORM = 100.0  # above every row, so that nothing is clipped
RANGE = (-50.0, 50.0)
CONSTANT = 0.25 * NORM  # the intercept's coordinate


def augmented(rows: Any) -> Any:
    return np.hstack([rows, np.full((len(rows), 1), CONSTANT)])


# --- an infinite budget is scikit-learn ---------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_infinite_budget_is_logistic_regression(intercept: bool) -> None:
    ours = LogisticRegression(
        math.inf, row_norm=NORM, regularization=2.0, fit_intercept=intercept
    ).fit(X, LABELS)
    rows = augmented(X) if intercept else X
    theirs = sk.LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    theirs.fit(rows, LABELS)
    coef = theirs.coef_[0]
    np.testing.assert_allclose(ours.coef_[0], coef[:4], atol=1e-5)
    if intercept:
        np.testing.assert_allclose(ours.intercept_[0], CONSTANT * coef[4], atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(rows), atol=1e-5)
    assert ours.privacy_.epsilon(1e-6) == math.inf
    assert ours.plan_ is None


def test_infinite_budget_is_multinomial_regression() -> None:
    ours = LogisticRegression(
        math.inf, row_norm=NORM, regularization=2.0, fit_intercept=False, classes=[0, 1, 2]
    ).fit(X, CLASSES)
    theirs = sk.LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, CLASSES).coef_, atol=1e-5)


def test_infinite_budget_is_least_squares() -> None:
    ours = LinearRegression(math.inf, row_norm=NORM).fit(X, Y)
    theirs = sk.LinearRegression().fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


def test_infinite_budget_is_ridge() -> None:
    ours = Ridge(math.inf, alpha=3.0, row_norm=NORM, fit_intercept=False, label_range=RANGE)
    theirs = sk.Ridge(alpha=3.0, fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(ours.fit(X, Y).coef_, theirs.coef_, atol=1e-5)


def test_infinite_budget_is_poisson_regression() -> None:
    ours = PoissonRegressor(
        math.inf, row_norm=NORM, regularization=4.0, fit_intercept=False, label_range=(0, 100)
    ).fit(X, COUNTS)
    # scikit-learn: mean deviance / 2 + (alpha / 2) ||w||^2
    theirs = sk.PoissonRegressor(alpha=4.0 / len(X), fit_intercept=False, tol=1e-10, max_iter=9999)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, COUNTS).coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)


def test_infinite_budget_is_quantile_regression() -> None:
    # the minimiser of a piecewise linear loss need not be unique: compare what it minimises
    ours = QuantileRegressor(
        math.inf, quantile=0.7, smoothing=0.0, row_norm=NORM, label_range=RANGE
    ).fit(X, Y)
    theirs = sk.QuantileRegressor(quantile=0.7, alpha=0.0).fit(X, Y)

    def pinball(model: Any) -> float:
        r = Y - model.predict(X)
        return float(np.maximum(0.7 * r, -0.3 * r).mean())

    assert pinball(ours) <= pinball(theirs) * (1 + 1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.05)


@pytest.mark.parametrize("kind", ["svc", "huber"])
def test_infinite_budget_minimises_the_stated_objective(kind: str) -> None:
    # no same objective in scikit-learn: compare with SciPy on the formula itself
    from scipy.optimize import minimize

    if kind == "svc":
        model: Any = LinearSVC(math.inf, row_norm=NORM, regularization=2.0, fit_intercept=False)
        signs = np.where(LABELS, 1.0, -1.0)

        def risk(w: Any) -> float:
            gap, h = 1 - signs * (X @ w), 0.5
            return float(np.where(gap > h, gap, np.clip(gap + h, 0, None) ** 2 / (4 * h)).sum())

        found = model.fit(X, LABELS).coef_[0]
    else:
        model = HuberRegressor(
            math.inf,
            knot=0.4,
            row_norm=NORM,
            regularization=2.0,
            fit_intercept=False,
            label_range=RANGE,
        )

        def risk(w: Any) -> float:
            r = np.abs(X @ w - Y)
            return float(np.where(r <= 0.4, r**2 / 2, 0.4 * (r - 0.2)).sum())

        found = model.fit(X, Y).coef_
    best = minimize(lambda w: risk(w) + w @ w, np.zeros(4), tol=1e-14, method="BFGS")
    np.testing.assert_allclose(found, best.x, atol=1e-4)


def test_infinite_budget_of_location() -> None:
    assert np.allclose(Mean(math.inf, row_norm=NORM).fit(X).location_, X.mean(axis=0))
    assert np.allclose(Median(math.inf, bounds=(-9, 9)).fit(X).location_, np.median(X, axis=0))
    middle = GeometricMedian(math.inf, row_norm=NORM).fit(X).location_
    away = middle - X
    pull = (away / np.linalg.norm(away, axis=1, keepdims=True)).sum(axis=0)
    assert np.linalg.norm(pull) < 1e-2


# --- what is public -----------------------------------------------------------------------------


class Exploding:
    """A table that must not be looked at."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the table was read")

    @property
    def shape(self) -> Any:
        raise AssertionError("the table was read")


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (LogisticRegression(), "classes is not declared"),
        (LogisticRegression(epsilon=0.0, classes=[0, 1]), "epsilon must be above 0"),
        (LogisticRegression(epsilon=math.nan, classes=[0, 1]), "NaN"),
        (LogisticRegression(delta=1.0, classes=[0, 1]), "delta"),
        (LogisticRegression(relation="swap", classes=[0, 1]), "add_remove"),
        (LinearSVC(), "classes is not declared"),
        (LinearRegression(), "label_range is not declared"),
        (QuantileRegressor(epsilon=-1.0, label_range=(0, 1)), "above 0"),
        (Mean(row_norm=0.0), "row_norm"),
        (GeometricMedian(row_norm=-1.0), "row_norm"),
        (Median(quantile=1.0), "level"),
    ],
)
def test_missing_facts_are_refused_before_the_table_is_read(estimator: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        estimator.fit(Exploding(), np.arange(5))


def test_number_of_records_is_a_public_fact_under_replacement() -> None:
    model = LogisticRegression(relation=Relation.REPLACE, row_norm=3.0)
    with pytest.raises(ValueError, match="n_records"):
        model.fit(X, LABELS)
    fitted = model.set_params(n_records="infer").fit(X, LABELS)
    assert "number of records" in fitted.privacy_.statement()
    assert model.set_params(n_records=400).fit(X, LABELS).privacy_.assumptions == ()


def test_typed_labels_declare_their_classes() -> None:
    import pandas as pd
    import polars as pl

    words = np.where(LABELS, "yes", "no")
    for labels in (
        LABELS,
        pd.Series(LABELS).astype("boolean"),
        pl.Series(LABELS),
        pl.Series(words, dtype=pl.Enum(["no", "yes"])),
    ):
        model = LogisticRegression(row_norm=3.0).fit(X, labels)
        assert len(model.classes_) == 2
        assert model.privacy_.assumptions == ()
    inferred = LogisticRegression(row_norm=3.0, classes="infer").fit(X, words)
    assert "list of classes" in inferred.privacy_.statement()


def test_a_class_that_does_not_occur_is_kept_and_an_unknown_one_does_not_count() -> None:
    model = LogisticRegression(10.0, classes=[0, 1, 2, 7], row_norm=3.0).fit(X, CLASSES)
    assert model.coef_.shape == (4, 4)
    stray = np.append(CLASSES, 99)
    more = np.vstack([X, 1e9 * np.ones(4)])
    quiet = LogisticRegression(math.inf, classes=[0, 1, 2], row_norm=3.0, regularization=1.0)
    assert np.allclose(
        clone(quiet).fit(X, CLASSES).coef_, clone(quiet).fit(more, stray).coef_, atol=1e-6
    )
    words = np.array(["no", "yes", "yesterday"] * 100, dtype=object)
    declared = LogisticRegression(math.inf, classes=np.array(["no", "yes"]), regularization=1.0)
    kept = words != "yesterday"
    assert np.allclose(
        clone(declared).fit(X[:300], words).coef_,
        clone(declared).fit(X[:300][kept], words[kept]).coef_,
    )
    with pytest.raises(ValueError, match="labels' own type"):
        LogisticRegression(classes=[0, 1]).fit(X, np.where(LABELS, "a", "b"))


ALLOWED = {
    "coef_",
    "intercept_",
    "classes_",
    "n_features_in_",
    "feature_names_in_",
    "privacy_",
    "plan_",
    "row_norm_",
    "location_",
}
FITTED = [
    LogisticRegression(1.0, row_norm=3.0).fit(X, LABELS),
    LinearSVC(1.0, row_norm=3.0).fit(X, LABELS),
    LinearRegression(1.0, row_norm=3.0, label_range=RANGE).fit(X, Y),
    Mean(1.0, row_norm=3.0).fit(X),
    Median(1.0, bounds=(-3, 3)).fit(X),
    GeometricMedian(1.0, row_norm=3.0).fit(X),
]


@pytest.mark.parametrize("model", FITTED, ids=lambda m: type(m).__name__)
def test_only_released_or_public_attributes_are_kept(model: Any) -> None:
    kept = {name for name in vars(model) if name not in model.get_params()}
    assert kept <= ALLOWED
    for value in vars(model.plan_).values() if getattr(model, "plan_", None) else ():
        assert not isinstance(value, np.ndarray)


def test_a_seed_repeats_the_fit_and_voids_the_guarantee() -> None:
    models = [LogisticRegression(1.0, row_norm=3.0, random_state=4).fit(X, LABELS) for _ in "ab"]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert models[0].privacy_.epsilon(1e-6) == math.inf
    assert "seeded" in models[0].privacy_.statement()
    free = [LogisticRegression(1.0, row_norm=3.0).fit(X, LABELS) for _ in "ab"]
    assert not np.array_equal(free[0].coef_, free[1].coef_)
    assert free[0].privacy_.epsilon(1e-6) <= 1.0


# --- budgets ------------------------------------------------------------------------------------


def test_shared_accountant_refuses_before_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.records import MemoryRecords

    accountant = Accountant(Budget(1.0, 1e-5))
    first = LogisticRegression(0.7, 1e-6, row_norm=3.0, accountant=accountant).fit(X, LABELS)
    assert accountant.spent() == pytest.approx(0.7, rel=1e-3)

    def explode(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("records were read")

    monkeypatch.setattr(MemoryRecords, "sum", explode)
    monkeypatch.setattr(MemoryRecords, "clip_factors", explode)
    with pytest.raises(BudgetExceeded, match="Nothing was read"):
        clone(first).fit(X, LABELS)
    with pytest.raises(BudgetExceeded):
        LogisticRegression(math.inf, accountant=accountant).fit(X, LABELS)

    class Wide(Exploding):
        shape = (400, 4)  # type: ignore[assignment]

    with pytest.raises(BudgetExceeded):
        clone(first).fit(Wide(), LABELS)
    assert len(accountant.events) == 1


def test_clones_share_one_budget() -> None:
    accountant = Accountant(Budget(1.0, 1e-5))
    assert clone(LogisticRegression(accountant=accountant)).accountant is accountant


def test_a_failed_minimisation_leaves_the_budget_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    import tacit.erm.newton as module

    monkeypatch.setattr(module, "_MAX_STEPS", 0)
    accountant = Accountant(Budget(1.0, 1e-5))
    model = LogisticRegression(0.5, 1e-6, row_norm=3.0, accountant=accountant)
    with pytest.raises(NotCertified, match="Nothing was released"):
        model.fit(X, LABELS)
    assert len(accountant.events) == 1
    assert not hasattr(model, "coef_")


def test_plan_needs_no_data() -> None:
    model = LogisticRegression(0.5, 1e-6, classes=[0, 1])
    plan = model.plan(n_features=30, n_records=10_000)
    assert plan.mechanism.name == "objective_perturbation"
    assert "also considered" in str(plan)
    assert plan.event == model.plan(30).event
    assert plan.excess_risk > model.plan(30, 100_000).excess_risk
    with pytest.raises(ValueError, match="declare them"):
        LogisticRegression(classes="infer").plan(3)
    with pytest.raises(ValueError, match="declare label_range"):
        LinearRegression(label_range="infer").plan(3)
    with pytest.raises(ValueError, match="infinite"):
        LogisticRegression(math.inf, classes=[0, 1]).plan(3)
    under = LinearRegression(relation="replace", n_records=5000, label_range=RANGE)
    assert under.plan(3).mechanism.name == "noisy_gradient"
    better = LogisticRegression(5.0, 1e-6, classes=[0, 1]).plan(30, 10_000)
    assert better.excess_risk < plan.excess_risk
    fitted = model.set_params(row_norm=3.0).fit(X, LABELS.astype(int))
    assert fitted.plan_.event == fitted.privacy_.event


def test_mechanisms_say_when_they_do_not_apply() -> None:
    with pytest.raises(CannotSolve, match="delta"):
        LogisticRegression(1.0, 0.0, mechanism="noisy_gradient").fit(X, LABELS)
    with pytest.raises(CannotSolve, match="SquaredLoss"):
        LogisticRegression(mechanism="sufficient_statistics").fit(X, LABELS)
    with pytest.raises(CannotSolve, match="too weak"):
        LogisticRegression(0.01, regularization=1e-3, mechanism="objective_perturbation").fit(
            X, LABELS
        )
    with pytest.raises(CannotSolve, match="no mechanism applies"):
        LinearRegression(1.0, 0.0, label_range=RANGE, regularization=0.0).fit(X, Y)
    with pytest.raises(ValueError, match="unknown"):
        LogisticRegression(mechanism="magic").fit(X, LABELS)


# --- tables -------------------------------------------------------------------------------------


def test_every_kind_of_table_gives_the_same_fit() -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    quiet = LogisticRegression(math.inf, row_norm=1.5, regularization=1.0)
    base = clone(quiet).fit(X, LABELS)
    tables: list[Any] = [
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        frame,
        pl.DataFrame(frame.to_dict("list")),
        pa.table(frame.to_dict("list")),
        np.asfortranarray(X),
        X.tolist(),
    ]
    for table in tables:
        model = clone(quiet).fit(table, LABELS)
        np.testing.assert_allclose(model.coef_, base.coef_, atol=1e-7)
        np.testing.assert_allclose(model.predict_proba(table), base.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(
        clone(quiet).fit(X.astype(np.float32), LABELS).coef_, base.coef_, atol=1e-4
    )
    for table in (frame, pl.DataFrame(frame.to_dict("list")), pa.table(frame.to_dict("list"))):
        assert list(clone(quiet).fit(table, LABELS).feature_names_in_) == names


def test_rows_beyond_the_norm_are_scaled_in_fit_and_predict() -> None:
    quiet = LogisticRegression(math.inf, row_norm=1.0, regularization=1.0)
    short = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    a, b = clone(quiet).fit(X, LABELS), clone(quiet).fit(short, LABELS)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(short), atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_a_number_is_refused(bad: float) -> None:
    broken = X.copy()
    broken[3, 1] = bad
    for model in (LogisticRegression(), Mean()):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model.fit(broken, LABELS)


# --- what shipped wrong elsewhere ---------------------------------------------------------------


def test_labels_beyond_their_range_are_clipped_at_both_ends() -> None:
    # an upper bound ignored, or a lower bound used twice, would show here
    wild = Y.copy()
    wild[0], wild[1] = 1e9, -1e9
    tame = np.clip(wild, -4.0, 4.0)
    for intercept in (True, False):
        quiet = LinearRegression(
            math.inf, row_norm=NORM, label_range=(-4.0, 4.0), fit_intercept=intercept
        )
        np.testing.assert_allclose(
            clone(quiet).fit(X, wild).coef_, clone(quiet).fit(X, tame).coef_, atol=1e-8
        )


def test_features_are_clipped_without_an_intercept_too() -> None:
    outlier = np.vstack([X, 1e6 * np.ones((1, 4))])
    quiet = LinearRegression(math.inf, row_norm=3.0, fit_intercept=False, label_range=RANGE)
    a = clone(quiet).fit(X, Y).coef_
    b = clone(quiet).fit(outlier, np.append(Y, 50.0)).coef_
    assert np.linalg.norm(a - b) < 1.0


def test_moments_are_never_released_exactly() -> None:
    # bounds (0, 10) once gave a sensitivity of 0
    rows = np.abs(X)
    fits = [
        LinearRegression(
            1.0, 1e-5, row_norm=10.0, label_range=(0, 10), mechanism="sufficient_statistics"
        )
        .fit(rows, np.abs(Y))
        .coef_
        for _ in range(3)
    ]
    assert not np.allclose(fits[0], fits[1])
    assert not np.allclose(fits[1], fits[2])


def test_more_budget_gives_a_better_fit() -> None:
    # "epsilon changes nothing" is a bug elsewhere: the error must fall as epsilon grows
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((5000, 5))
    labels = rows @ [1, -1, 1, -1, 0.5] > 0
    errors = []
    for epsilon in (0.05, 0.5, 5.0):
        scores = [
            LogisticRegression(epsilon, 1e-6, row_norm=3.0).fit(rows, labels).score(rows, labels)
            for _ in range(6)
        ]
        errors.append(1 - np.mean(scores))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.03


def test_null_columns_cost_no_accuracy() -> None:
    # the rank bound: padding with zero columns must not change the risk
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4000, 3))
    labels = rows[:, 0] > 0
    padded = np.hstack([rows, np.zeros((4000, 200))])
    options: Any = {"row_norm": 3.0, "mechanism": "noisy_gradient", "n_records": 4000}

    def error(table: Any) -> float:
        fits = [LogisticRegression(0.5, 1e-6, **options).fit(table, labels) for _ in range(8)]
        return float(np.mean([1 - model.score(table, labels) for model in fits]))

    assert error(padded) < error(rows) + 0.02


def test_noise_is_fresh_and_never_from_a_weak_seed() -> None:
    weights = {float(LogisticRegression(1.0).fit(X, LABELS).coef_[0, 0]) for _ in range(20)}
    assert len(weights) == 20


def test_verbose_prints_the_plan_and_the_promise(capsys: pytest.CaptureFixture[str]) -> None:
    LogisticRegression(1.0, row_norm=3.0, verbose=1).fit(X, LABELS)
    shown = capsys.readouterr().err
    assert "objective_perturbation" in shown
    assert "differentially private" in shown


@pytest.mark.parametrize("mechanism", ["noisy_gradient", "sufficient_statistics"])
def test_a_release_that_is_not_the_planned_one_is_withheld(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    module = importlib.import_module(f"tacit.erm.{mechanism}")
    honest = module.gaussian
    monkeypatch.setattr(module, "gaussian", lambda b, z, source: honest(b, 0.9 * z, source))
    model = LinearRegression(1.0, 1e-5, row_norm=3.0, label_range=RANGE, mechanism=mechanism)
    with pytest.raises(RuntimeError, match="withheld"):
        model.fit(X, Y)
    assert not hasattr(model, "coef_")
