"""Weights of records and of classes: what they mean without noise, and what no weight can do."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
from scipy.sparse import csr_array
from sklearn.base import clone

import tacit.records.block as block_module
from tacit.erm import Balanced, CannotSolve, Objective
from tacit.erm.losses import DistanceLoss
from tacit.erm.mechanisms.balanced import balanced_shares
from tacit.estimators.parameters import UndeclaredWarning
from tacit.linear_model import LinearRegression, LinearSVC, LogisticRegression, Ridge
from tacit.privacy import Accountant, Budget, Guarantee
from tacit.records import Bounds, ChunkedRecords, MemoryRecords
from tacit.records.reweighted import ClassWeights, ReweightedRecords
from tacit.records.rows_and_labels import as_weights
from tacit.registry import MODELS, ModelSpec
from tests.declared import made

LINEAR = [spec for spec in MODELS if hasattr(spec.model(), "max_weight")]
HUGE = 1e5  # no row is as long
SECRET = 7777777.0


@pytest.fixture
def table() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((400, 3))
    labels = rows[:, 0] + rng.logistic(size=400) > 1.0
    return rows, labels, rng.integers(0, 4, 400).astype(float)


def exact(**more: Any) -> LogisticRegression:
    known = {"row_norm": HUGE, "fit_intercept": False, "regularization": 2.0, "max_weight": 4.0}
    return LogisticRegression(math.inf, classes=[False, True], **{**known, **more})


def reference(**more: Any) -> Any:
    return sklearn.linear_model.LogisticRegression(
        C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000, **more
    )


@pytest.mark.parametrize("of_classes", [None, {False: 1, True: 8}, {True: 3.0}, {False: 0.25}])
@pytest.mark.parametrize("own", [False, True])
def test_without_noise_it_is_scikit_learn(table: Any, of_classes: Any, own: bool) -> None:
    rows, labels, weights = table
    given = weights if own else None
    model = exact(class_weight=of_classes).fit(rows, labels, given)
    other = reference(class_weight=of_classes).fit(rows, labels, sample_weight=given)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)


def test_balanced_without_noise_is_scikit_learn(table: Any) -> None:
    rows, labels, _ = table
    model = exact(class_weight="balanced", regularization=1e-3).fit(rows, labels)
    # the greatest weight is 1, where scikit-learn's is n / (2 count)
    most = len(labels) / (2 * min(labels.sum(), (~labels).sum()))
    other = reference(class_weight="balanced").set_params(C=1e3 / most).fit(rows, labels)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)


def test_least_squares_without_noise_is_scikit_learn(table: Any) -> None:
    rows, labels, weights = table
    model = Ridge(math.inf, alpha=5.0, row_norm=HUGE, max_weight=4.0, fit_intercept=False)
    model.fit(rows, labels.astype(float), weights)
    other = sklearn.linear_model.Ridge(5.0, fit_intercept=False, tol=1e-12)
    other.fit(rows, labels.astype(float), sample_weight=weights)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-8)


@pytest.mark.parametrize("spec", LINEAR, ids=lambda spec: spec.word)
def test_without_noise_a_weight_is_so_many_records(spec: ModelSpec) -> None:
    example = spec.examples()[-1]
    n = len(example.rows)
    times = np.arange(n) % 4
    estimator = made(spec, example, epsilon=math.inf, max_weight=3.0)
    ridge = "alpha" if spec.word.endswith("ridge") else "regularization"
    estimator.set_params(**{ridge: 1.0})
    weighted = clone(estimator).fit(example.rows, example.labels, times)
    repeated = clone(estimator).fit(
        np.repeat(example.rows, times, axis=0), np.repeat(example.labels, times)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)


def test_weight_squared_is_caught(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shares: Any = block_module.shares_of
    monkeypatch.setattr(block_module, "shares_of", lambda w, bounds: shares(w, bounds) ** 2)
    rows, labels, weights = table
    model = exact().fit(rows, labels, weights)
    other = reference().fit(rows, labels, sample_weight=weights)
    assert np.abs(model.coef_ - other.coef_).max() > 1e-3


@pytest.mark.parametrize(
    "mechanism",
    ["objective_perturbation", "noisy_gradient", "output_perturbation", "sufficient_statistics"],
)
def test_with_the_same_noise_weight_0_is_no_record(table: Any, mechanism: str) -> None:
    rows, labels, weights = table
    known = {"row_norm": 2.0, "max_weight": 4.0, "mechanism": mechanism, "random_state": 1}
    model: Any = LinearRegression(1.0, 1e-6, label_range=(0.0, 1.0), **known)
    if mechanism != "sufficient_statistics":
        model = LogisticRegression(1.0, 1e-6, classes=[False, True], **known)
    kept = weights > 0
    whole = clone(model).fit(rows, labels, weights)
    part = clone(model).fit(rows[kept], labels[kept], weights[kept])
    # output noise is proportional to what is certified, 1e-4 of the noise
    np.testing.assert_allclose(whole.coef_, part.coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("sparse", [False, True])
def test_every_sum_has_a_weight_in_it_once(table: Any, sparse: bool) -> None:
    """Squared weights would be no danger, and another model."""
    rows, labels, weights = table
    records = MemoryRecords(
        *(csr_array(rows) if sparse else rows, labels.astype(float)),
        Bounds(row_norm=HUGE, intercept=0.5, max_weight=4.0),
        weights,
    )
    full, shares = np.column_stack([rows, np.full(400, 0.5)]), weights / 4.0
    one = lambda block: np.ones(block.n_rows)  # noqa: E731
    gram, total, each = records.sum(
        lambda b: (b.gram(one(b)), b.weighted_sum(one(b)), b.weighed(one(b)).sum())
    )
    np.testing.assert_allclose(gram, full.T @ (shares[:, None] * full))
    np.testing.assert_allclose(total, full.T @ shares)
    assert each == pytest.approx(shares.sum())


@pytest.mark.filterwarnings("ignore::tacit.privacy.budget.WeakPromiseWarning")
def test_moments_are_weighted_once(table: Any) -> None:
    rows, _, weights = table
    y = rows @ [1.0, -0.5, 0.2] + np.abs(rows[:, 0])  # no line, so that weights matter
    model = LinearRegression(1e6, 1e-6, mechanism="sufficient_statistics", fit_intercept=False)
    model.set_params(label_range=(-9.0, 9.0), row_norm=5.0, max_weight=3.0)
    expected = sklearn.linear_model.LinearRegression(fit_intercept=False).fit(rows, y, weights)
    np.testing.assert_allclose(model.fit(rows, y, weights).coef_, expected.coef_, atol=0.05)


def test_numbers_of_other_kinds_are_numbers() -> None:
    decimals = [Decimal("1.5"), Decimal("sNaN"), Decimal("1e999")]
    assert as_weights(decimals, 3).tolist() == [1.5, 0.0, math.inf]
    long = np.array([1, 2, 3], dtype=np.longdouble) ** 10_000
    assert as_weights(long, 3).tolist() == [1.0, math.inf, math.inf]


HOSTILE = [math.nan, -math.inf, math.inf, -5.0, 1e308, None, "4", "", 10**400, [1.0], object()]


@pytest.mark.parametrize("bad", HOSTILE, ids=lambda bad: repr(bad)[:12])
def test_one_odd_weight_harms_nobody_else(table: Any, bad: Any) -> None:
    rows, labels, weights = table
    odd = [bad, *weights[1:].tolist()]
    counts_as = 4.0 if bad in (math.inf, 1e308) else 0.0
    expected = exact().fit(rows, labels, np.append(counts_as, weights[1:]))
    found = exact().fit(rows, labels, odd)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize(
    "bad",
    [
        *(np.full(399, SECRET), np.full((400, 2), SECRET), SECRET, ["a"] * 3),
        *({SECRET: 1.0}, dict.fromkeys(range(400), 1.0), set(range(400))),
    ],
    ids=range(7),
)
def test_weights_that_are_not_one_each_are_refused(table: Any, bad: Any) -> None:
    rows, labels, _ = table
    accountant = Accountant(Budget(1.0, 1e-6))
    model = LogisticRegression(
        1.0, 1e-6, row_norm=1.0, classes=[False, True], max_weight=1.0, accountant=accountant
    )
    with pytest.raises(ValueError, match="one weight for each record") as refused:
        model.fit(rows, labels, bad)
    assert "7777777" not in str(refused.value)
    assert "400" not in str(refused.value)
    model.fit(rows, labels)  # nothing had been charged


def test_a_greatest_weight_that_nobody_declared_is_said(table: Any) -> None:
    rows, labels, weights = table
    model = exact(max_weight=None)
    with pytest.warns(UndeclaredWarning, match="max_weight is not declared"):
        model.fit(rows, labels, weights)
    known = exact(max_weight=1.0).fit(rows, labels, weights)
    np.testing.assert_array_equal(model.coef_, known.coef_)


@pytest.mark.parametrize("bad", ["balance", [1, 2], {0: -1.0}, {0: math.nan}, {0: 0.0}, {0: "1"}])
def test_class_weights_that_mean_nothing_are_refused(bad: Any) -> None:
    model = LogisticRegression(1.0, 1e-6, row_norm=1.0, classes=[0, 1], class_weight=bad)
    with pytest.raises(ValueError, match="class"):
        model.plan(3)


def test_a_weight_of_no_class_is_refused(table: Any) -> None:
    rows, labels, _ = table
    with pytest.raises(ValueError, match="not a class"):
        exact(class_weight={"yes": 2.0}).fit(rows, labels)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_a_greatest_weight_must_be_one(bad: float) -> None:
    model = LinearRegression(1.0, 1e-6, row_norm=1.0, label_range=(0, 1), max_weight=bad)
    with pytest.raises(ValueError, match="max_weight"):
        model.plan(3)


def test_the_unit_of_weights_does_not_matter(table: Any) -> None:
    rows, labels, weights = table

    def fitted(times: float) -> Any:
        known = {"row_norm": 2.0, "classes": [False, True], "random_state": 0}
        model = LogisticRegression(
            1.0,
            1e-6,
            class_weight={False: times, True: 8 * times},
            max_weight=4.0 * times,
            **known,
        )
        return model.fit(rows, labels, times * weights).coef_

    np.testing.assert_array_equal(fitted(1.0), fitted(1024.0))


def test_records_read_in_blocks_bring_their_weights(table: Any) -> None:
    rows, labels, weights = table
    signs = np.where(labels, 1.0, -1.0)
    model = exact(class_weight={True: 3.0})
    bounds = Bounds(row_norm=HUGE, n_classes=2, max_weight=4.0)

    def read() -> Any:
        for at in range(0, 400, 90):
            part = slice(at, at + 90)
            yield rows[part], signs[part], weights[part]

    found = clone(model).fit(ChunkedRecords(read, 3, bounds), None)
    expected = clone(model).fit(rows, labels, weights)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-7)


def test_samples_and_thinned_records_keep_their_weights() -> None:
    rows, weights = np.ones((50, 1)), np.arange(50.0)
    labels = np.resize([-1.0, 1.0], 50)
    bounds = Bounds(n_classes=2, max_weight=49.0)
    memory = MemoryRecords(rows, labels, bounds, weights)
    chunked = ChunkedRecords(lambda: [(rows, labels, weights)], 1, bounds)
    for records in (memory, chunked, ReweightedRecords(memory, ClassWeights((1.0, 0.5)))):
        half = 0.5 if isinstance(records, ReweightedRecords) else 1.0
        own = weights / 49 * np.where(labels > 0, half, 1.0)
        every = lambda n: np.full(n, 2**64 - 1, dtype=np.uint64)  # noqa: E731
        for some, at in ((records.every(7), slice(None, None, 7)), (records, slice(None))):
            (total,) = some.sum(lambda block: (block.weighed(np.ones(block.n_rows)).sum(),))
            assert total == pytest.approx(own[at].sum())
        nobody = records.poisson_sample(0.5, every).records
        assert nobody.count() == 0
        assert nobody.bounds == records.bounds


def test_weights_without_a_bound_are_refused() -> None:
    one = np.ones((1, 1)), np.ones(1)
    with pytest.raises(ValueError, match="max_weight"):
        MemoryRecords(*one, Bounds(), np.ones(1))
    with pytest.raises(ValueError, match="max_weight"):
        ChunkedRecords(lambda: [(*one, np.ones(1))], 1, Bounds()).sum(lambda b: (b.factors,))


def test_a_location_has_no_weights() -> None:
    with pytest.raises(ValueError, match="location"):
        Objective(DistanceLoss(), Bounds(max_weight=1.0))


# Balanced classes.


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("model", [LogisticRegression, LinearSVC])
def test_balanced_is_within_the_budget(model: Any, delta: float) -> None:
    known = {"row_norm": 2.0, "classes": [False, True], "class_weight": "balanced"}
    for epsilon in (0.1, 1.0, 5.0):
        plan = model(epsilon, delta, **known).plan(4)
        spent = Guarantee(plan.event).epsilon(delta)
        assert 0.97 * epsilon <= spent <= epsilon


def test_balanced_finds_the_rare_class() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20_000, 3))
    rare = rows[:, 0] + rng.logistic(size=20_000) > 3.5
    assert rare.mean() < 0.1
    known: dict[str, Any] = {"row_norm": 3.0, "classes": [False, True]}
    plain = LogisticRegression(1.0, 1e-6, **known).fit(rows, rare)
    balanced = LogisticRegression(1.0, 1e-6, class_weight="balanced", **known).fit(rows, rare)
    assert plain.predict(rows)[rare].mean() < 0.3
    assert balanced.predict(rows)[rare].mean() > 0.6
    assert isinstance(balanced.plan_.mechanism, Balanced)
    assert balanced.plan_.event == balanced.privacy_.event


def test_counts_below_their_noise_say_nothing() -> None:
    assert balanced_shares(np.array([-40.0, 1000.0]), 50.0) == (1.0, 0.05 * 1050 / 1000)
    assert balanced_shares(np.array([-40.0, -3.0, 1.0]), 50.0) == (1.0, 1.0, 1.0)


def test_numbers_have_no_classes_to_balance() -> None:
    with pytest.raises(CannotSolve, match="no classes"):
        LinearRegression(
            1.0, 1e-6, row_norm=1.0, label_range=(0, 1), mechanism=Balanced("auto")
        ).plan(3)


def test_shares_are_checked() -> None:
    records = MemoryRecords(np.ones((2, 1)), np.array([-1.0, 1.0]), Bounds(n_classes=2))
    for bad in ((1.0,), (1.0, 1.1), (math.nan, 1.0), (-0.1, 1.0)):
        with pytest.raises(ValueError, match="share"):
            ReweightedRecords(records, ClassWeights(bad))


def test_standard_errors_with_weights_are_refused_before_the_charge(table: Any) -> None:
    rows, labels, weights = table
    accountant = Accountant(Budget(5.0, 1e-5))
    shared = {"row_norm": 2.0, "inference": 0.1, "accountant": accountant}
    for known, own in (({"max_weight": 2.0}, weights), ({"class_weight": "balanced"}, None)):
        model = LogisticRegression(1.0, 1e-6, **shared, **known)
        with pytest.raises(ValueError, match="unweighted records"):
            model.fit(rows, labels, own)
    assert not accountant.events
