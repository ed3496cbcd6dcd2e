"""Kernel machines: what no line can do, what is kept of the map, and Algorithm 3 of CMS11."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge as ExactKernelRidge

import tacit
from tacit.features import GaussianKernel, LaplacianKernel, MaternKernel, RandomFourierFeatures
from tacit.kernel import KernelLogisticRegression, KernelRidge, KernelSVC
from tacit.linear_model import LinearSVC, LogisticRegression, Ridge
from tacit.privacy import Accountant, BudgetExceeded, Relation
from tacit.records import Bounds, ChunkedRecords, MemoryRecords
from tacit.records import memory as memory_module
from tacit.records.lazy_table import MappedRows
from tacit.testing import replay

DELTA = 1e-6
CLASSES = [False, True]


def rings(n: int, seed: int) -> tuple[Any, Any]:
    """Return points on two rings and on which of them each is."""
    rng = np.random.default_rng(seed)
    outer = rng.random(n) < 0.5
    radius = np.where(outer, 1.0, 0.5) + 0.05 * rng.standard_normal(n)
    angle = rng.uniform(0.0, 2.0 * math.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), outer


@pytest.fixture(scope="module")
def table() -> tuple[Any, Any]:
    return rings(20_000, 0)


@pytest.mark.parametrize("kind", [KernelLogisticRegression, KernelSVC])
def test_two_rings(kind: Any, table: tuple[Any, Any]) -> None:
    test = rings(5000, 1)
    model = kind(1.0, DELTA, row_norm=1.25, n_frequencies=32).fit(*table)
    assert model.score(*test) >= 0.95
    assert model.privacy_.epsilon(DELTA) <= 1.0
    linear = LogisticRegression if kind is KernelLogisticRegression else LinearSVC
    assert abs(linear(1.0, DELTA, row_norm=1.25).fit(*table).score(*test) - 0.5) < 0.2


@pytest.mark.parametrize("mechanism", ["objective_perturbation", "output_perturbation"])
@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize(
    "relation", [Relation.ADD_REMOVE, pytest.param(Relation.REPLACE, marks=pytest.mark.slow)]
)
def test_algorithm_3(
    table: tuple[Any, Any], mechanism: str, delta: float, relation: Relation
) -> None:
    """Either perturbation on top, pure or not, under either relation."""
    n = {} if relation is Relation.ADD_REMOVE else {"n_records": 20_000}
    told: dict[str, Any] = {"mechanism": mechanism, "relation": relation, "classes": CLASSES, **n}
    model = KernelLogisticRegression(
        2.0, delta, kernel=GaussianKernel(0.8), n_frequencies=16, seed=2, **told
    ).fit(*table)
    assert model.privacy_.epsilon(delta) <= 2.0
    assert model.privacy_.relation is relation
    # what the linear estimator would do to the features, of norm 1
    features = RandomFourierFeatures(GaussianKernel(0.8), 16, seed=2).transform(table[0])
    by_hand = LogisticRegression(2.0, delta, row_norm=1.0, **told)
    assert by_hand.plan(32).event == model.plan(2).event == model.privacy_.event
    by_hand.set_params(random_state=1).fit(features, table[1])
    again = clone(model).set_params(random_state=1).fit(*table)
    np.testing.assert_array_equal(again.coef_, by_hand.coef_)
    np.testing.assert_array_equal(
        again.predict_proba(table[0][:9]), by_hand.predict_proba(features[:9])
    )
    assert again.score(*table) > 0.9


PAIRS: dict[str, tuple[Any, Any]] = {
    "logistic": (KernelLogisticRegression(kernel=MaternKernel(0.5)), LogisticRegression()),
    "svc": (KernelSVC(kernel=LaplacianKernel(0.5)), LinearSVC()),
    "ridge": (
        KernelRidge(kernel=GaussianKernel(0.5), label_range=(0, 1)),
        Ridge(label_range=(0, 1)),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_one_record_moves_what_is_released_by_no_more_than_a_row_of_norm_1(name: str) -> None:
    model = PAIRS[name][0].set_params(n_frequencies=3, seed=4)
    X, y = rings(60, 3)
    far = np.array([[1e9, -1e7]])
    model = clone(model).set_params(**({} if name == "ridge" else {"classes": CLASSES}))
    more = np.vstack([far, X]), np.append(True, y)
    for data, neighbour in (((X, y), more), (more, (X, y))):
        assert replay(lambda records: clone(model).fit(*records), data, neighbour) >= 1


def test_rows_made_in_every_pass_give_the_same_fit(
    table: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = KernelLogisticRegression(
        1.0, DELTA, row_norm=1.0, n_frequencies=5, seed=0, random_state=3
    )
    X, y = table[0][:3000], table[1][:3000]
    kept = clone(model).fit(X, y)
    monkeypatch.setattr(memory_module, "CACHED_BYTES", 0)
    monkeypatch.setattr(MappedRows, "__array__", None)  # never all at once
    made = clone(model).fit(X, y)
    assert made.coef_.tobytes() == kept.coef_.tobytes()
    assert made.predict(X).tolist() == kept.predict(X).tolist()


def test_without_noise_it_is_kernel_ridge_regression() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    y = np.sin(3 * X[:, 0]) * X[:, 1]
    known = {"fit_intercept": False, "label_range": (-1, 1), "alpha": 0.1}
    model = KernelRidge(
        math.inf, kernel=GaussianKernel(0.7), n_frequencies=1000, seed=0, **known
    ).fit(X, y)
    exact = ExactKernelRidge(alpha=0.1, kernel="rbf", gamma=1 / (2 * 0.7**2)).fit(X, y)
    assert np.abs(model.predict(X) - exact.predict(X)).max() < 0.06


def test_the_map_is_kept_with_the_model(table: tuple[Any, Any], tmp_path: Any) -> None:
    model = KernelSVC(1.0, DELTA, kernel=MaternKernel(nu=2.5), n_frequencies=6, row_norm=1.0)
    X, y = table
    model.fit(X[:2000], y[:2000])
    tacit.save(model, tmp_path / "m.tacit")
    again = tacit.load(tmp_path / "m.tacit")
    assert (again.seed_, again.bandwidth_, again.kernel) == (
        model.seed_,
        model.bandwidth_,
        model.kernel,
    )
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert clone(model).fit(X[:2000], y[:2000]).seed_ != model.seed_


def test_the_row_norm_is_for_the_bandwidth(table: tuple[Any, Any]) -> None:
    X, y = table[0][:500], table[1][:500]
    model = KernelLogisticRegression(1.0, DELTA, n_frequencies=2)
    for work in (
        lambda: clone(model).fit(X, y),
        lambda: clone(model).set_params(classes=CLASSES).plan(2),
    ):
        with pytest.warns(tacit.UndeclaredWarning, match="the bandwidth is derived from it"):
            work()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        declared = clone(model).set_params(kernel=GaussianKernel(0.3)).fit(X, y)
        wide = clone(model).set_params(row_norm=2.0).fit(X, y)
    assert (declared.bandwidth_, wide.bandwidth_) == (0.3, pytest.approx(math.sqrt(2)))


def test_nothing_is_read_before_it_is_charged() -> None:
    accountant = Accountant(tacit.Budget(0.5, DELTA))
    model = KernelSVC(1.0, DELTA, row_norm=1.0, classes=CLASSES, accountant=accountant)

    class Hidden:
        shape = (10, 2)

        def __array__(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("read")

    with pytest.raises(BudgetExceeded):
        model.fit(Hidden(), np.zeros(10, dtype=bool))
    assert accountant.spent() == 0.0


def test_a_record_source_is_refused_with_the_way_to_do_it(table: tuple[Any, Any]) -> None:
    X, y = table
    with pytest.raises(TypeError, match="RandomFourierFeatures"):
        KernelSVC(classes=CLASSES).fit(MemoryRecords(X, y, Bounds()), None)
    features = RandomFourierFeatures(GaussianKernel(0.8), 16, seed=0)
    linear = LogisticRegression(1.0, DELTA, row_norm=1.0, classes=CLASSES)
    signs = np.where(y, 1.0, -1.0)

    def read() -> Any:
        for at in range(0, len(X), 5000):
            yield features.transform(X[at : at + 5000]), signs[at : at + 5000]

    bounds = linear.plan(32).problem.objective.bounds
    linear.fit(ChunkedRecords(read, 32, bounds), None)
    assert linear.score(features.transform(X), y) > 0.9


@pytest.mark.parametrize("kind", [KernelLogisticRegression, KernelSVC])
def test_the_name_of_a_kernel_is_refused_with_what_to_pass(kind: Any) -> None:
    model = kind(1.0, DELTA, kernel="rbf", row_norm=1.25)
    with pytest.raises(TypeError, match=r"kernel must be .*, got 'rbf'; pass GaussianKernel\(\)"):
        model.fit(*rings(20, 0))
    without = kind(1.0, DELTA, kernel="rbf")
    with pytest.raises(TypeError, match="got 'rbf'"):
        without.fit(*rings(20, 0))
