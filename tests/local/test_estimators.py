"""The local estimators: what they learn, what they promise, what they refuse."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.local import (
    Absolute,
    Banco,
    GaussianNoise,
    GradientDescent,
    HalfSphere,
    Huber,
    LocalGeometricMedian,
    LocalLinearSVC,
    LocalLogisticRegression,
    LocalMedian,
    LocalRegressor,
    Logistic,
    PosterBanco,
    PrivUnit,
    SphereNoise,
    Tail,
    state_from_bytes,
    state_to_bytes,
)
from tacit.local.sanitizers.additive import NoNoise
from tacit.privacy import NonPrivate, PureEpsilon, Relation
from tacit.testing import replay

CLASSIFIERS = [LocalLogisticRegression, LocalLinearSVC]
LOCATIONS = [LocalMedian, LocalGeometricMedian]
ALL: list[Any] = [*CLASSIFIERS, LocalRegressor, *LOCATIONS]


def table(n: int = 3000, d: int = 3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] - 0.5 * X[:, 1] > 0.3


def labels_for(estimator: Any, y: Any) -> Any:
    if isinstance(estimator, LocalRegressor):
        return y.astype(float)
    return y


@pytest.mark.parametrize("kind", ALL)
def test_the_promise_is_local(kind: Any) -> None:
    X, y = table(200)
    model = kind(epsilon=1.5)
    model.fit(X, labels_for(model, y))
    promise = model.privacy_
    assert promise.event == PureEpsilon(1.5, Relation.REPLACE)
    assert promise.epsilon(0.0) == 1.5
    words = promise.statement()
    assert "against the server itself" in words
    assert "answers once" in words
    assert model.n_reports_ == 200
    assert type(promise).from_json(promise.to_json()) == promise


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classifiers_learn_without_noise(kind: Any) -> None:
    X, y = table(4000)
    model = kind(epsilon=math.inf, row_norm=3.0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert isinstance(model.privacy_.event, NonPrivate)
    assert isinstance(model.sanitizer_, NoNoise)


def test_regression_learns_without_noise() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (6000, 2))
    y = 3.0 * X[:, 0] - X[:, 1] + 0.5 + rng.laplace(0, 0.05, 6000)
    for loss in (Absolute(), Huber(0.2)):
        model = LocalRegressor(epsilon=math.inf, row_norm=2.0, loss=loss).fit(X, y)
        np.testing.assert_allclose(model.coef_, [3.0, -1.0], atol=0.1)
        assert abs(model.intercept_ - 0.5) < 0.1


@pytest.mark.parametrize("kind", LOCATIONS)
def test_medians_learn(kind: Any) -> None:
    X = np.random.default_rng(0).normal([2.0, -1.0], 1.0, (8000, 2))
    X[:400] = 1e6  # outliers hardly pull
    free = kind(epsilon=math.inf, row_norm=2.0).fit(X).location_
    np.testing.assert_allclose(free, np.median(X, axis=0), atol=0.15)
    private = kind(epsilon=8.0, row_norm=2.0).fit(X).location_
    np.testing.assert_allclose(private, free, atol=0.6)


def test_partial_fit_goes_on_where_it_stopped() -> None:
    X, y = table(1200)
    whole = LocalLogisticRegression(random_state=3).fit(X, y)
    parts = LocalLogisticRegression(random_state=3)
    for start in range(0, 1200, 400):
        parts.partial_fit(X[start : start + 400], y[start : start + 400], classes=[False, True])
    assert parts.n_reports_ == whole.n_reports_ == 1200
    # Other batches of words, so another draw; but the very same learner.
    assert parts.learner_ == whole.learner_
    state = state_from_bytes(state_to_bytes(parts.state_))
    np.testing.assert_array_equal(state.estimate, parts.state_.estimate)


def test_a_sorted_table_is_shuffled() -> None:
    X, y = table(4000)
    order = np.argsort(y)
    kept = LocalLogisticRegression(epsilon=math.inf, row_norm=3.0, shuffle=False)
    mixed = LocalLogisticRegression(epsilon=math.inf, row_norm=3.0)
    assert mixed.fit(X[order], y[order]).score(X, y) > 0.95
    assert kept.fit(X[order], y[order]).score(X, y) < 0.9


def test_a_second_fit_begins_anew() -> None:
    X, y = table(300)
    model = LocalLogisticRegression().fit(X, y)
    assert model.fit(X, y).n_reports_ == 300


def test_auto_has_the_least_noise_and_classes_are_taken() -> None:
    X, y = table(50)
    auto = LocalLogisticRegression(epsilon=1.0).fit(X, y).sanitizer_
    assert isinstance(auto, PrivUnit)
    for chosen in (PrivUnit, HalfSphere, SphereNoise):
        made = LocalLogisticRegression(epsilon=1.0, sanitizer=chosen).fit(X, y).sanitizer_
        assert type(made) is chosen
        assert auto.rms_norm <= made.rms_norm
    gaussian = LocalLogisticRegression(1.0, 1e-6, sanitizer=GaussianNoise).fit(X, y)
    assert gaussian.privacy_.epsilon(1e-6) <= 1.0
    assert gaussian.privacy_.epsilon(0.0) == math.inf


def test_the_norm_covers_the_intercept() -> None:
    X, y = table(50)
    model = LocalLogisticRegression(row_norm=2.0).fit(X, y)
    assert model.sanitizer_.norm == pytest.approx(math.hypot(2.0, 0.5), rel=1e-12)
    assert model.sanitizer_.n_features == 4
    bare = LocalLogisticRegression(row_norm=2.0, fit_intercept=False).fit(X, y)
    assert bare.sanitizer_.norm == 2.0
    assert bare.intercept_ == [0.0]


def test_learners_can_be_configured() -> None:
    X, y = table(100)
    for learner in (GradientDescent(0.1), PosterBanco(Tail(9.0)), Banco(Tail(9.0), unit=2.0)):
        assert LocalLogisticRegression(learner=learner).fit(X, y).learner_ == learner


def test_rescaling_rows_and_row_norm_changes_nothing() -> None:
    X, y = table(500)
    one = LocalLogisticRegression(row_norm=1.0, random_state=1).fit(X, y)
    four = LocalLogisticRegression(row_norm=4.0, random_state=1).fit(4.0 * X, y)
    np.testing.assert_allclose(four.coef_ * 4.0, one.coef_, rtol=1e-9)


def test_sparse_rows_are_rows() -> None:
    X, y = table(200)
    X[np.abs(X) < 0.5] = 0.0
    dense = LocalLogisticRegression(random_state=0).fit(X, y)
    thin = LocalLogisticRegression(random_state=0).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(dense.coef_, thin.coef_, rtol=1e-9)


def test_somebody_of_no_class_answers_too() -> None:
    X, _ = table(300)
    y = np.array(["a", "b", "c"] * 100)
    model = LocalLogisticRegression(classes=["a", "b"]).fit(X, y)
    assert model.n_reports_ == 300
    # What they send is the sanitised zero.
    assert Logistic.pull(np.ones(3), X[0], 0.0, 0.0).tolist() == [0.0] * 3


def test_a_seed_voids_the_promise() -> None:
    X, y = table(50)
    promise = LocalLogisticRegression(random_state=0).fit(X, y).privacy_
    assert "NO privacy guarantee" in promise.statement()


@pytest.mark.parametrize("kind", ALL)
def test_replay_on_neighbours(kind: Any) -> None:
    """Any one record may change: all that leaves is covered by the noise."""
    X, y = table(30)
    labels = y.astype(float) if kind is LocalRegressor else y
    neighbour, other = X.copy(), labels.copy()
    neighbour[7] = -50.0
    other[7] = 1 - labels[7] if kind is LocalRegressor else not labels[7]
    replay(
        lambda data: kind(epsilon=1.0, row_norm=1.0).fit(data[0], data[1]),
        (X, labels),
        (neighbour, other),
    )


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"epsilon": math.nan}, "epsilon is NaN"),
        ({"delta": 1.5}, "delta must be in"),
        ({"row_norm": 0.0}, "row_norm must be positive"),
        ({"learner": "adam"}, "learner must be 'banco'"),
        ({"sanitizer": "laplace"}, "sanitizer must be 'auto'"),
        ({"classes": [1, 2, 3]}, "exactly 2 classes"),
    ],
)
def test_nonsense_is_refused(parameters: dict[str, Any], words: str) -> None:
    X, y = table(20)
    with pytest.raises((ValueError, TypeError), match=words):
        LocalLogisticRegression(**parameters).fit(X, y)


def test_a_record_beyond_all_floats_answers_with_a_zero() -> None:
    X = np.random.default_rng(0).standard_normal((40, 2))
    X[3] = [1.7e308, 1.0]
    model = LocalGeometricMedian(center=-1e308).fit(X)
    assert model.n_reports_ == 40
    assert np.all(np.isfinite(model.state_.estimate))


def test_a_fitted_model_can_be_copied_and_goes_on() -> None:
    X, y = table(60)
    copy = pickle.loads(pickle.dumps(LocalLogisticRegression().fit(X, y)))
    assert copy.partial_fit(X, y).n_reports_ == 120


def test_a_refused_centre_leaves_nothing_behind() -> None:
    X, _ = table(20)
    model = LocalMedian(center=math.nan)
    with pytest.raises(ValueError, match="center must be finite"):
        model.partial_fit(X)
    assert model.set_params(center=0.0).partial_fit(X).n_reports_ == 20


def test_undeclared_classes_and_bad_losses_are_refused() -> None:
    X, y = table(20)
    with pytest.raises(ValueError, match="classes is not declared"):
        LocalLogisticRegression().fit(X, y.astype(int))
    with pytest.raises(TypeError, match="loss must be Absolute"):
        LocalRegressor(loss=Logistic()).fit(X, y.astype(float))
    with pytest.raises(ValueError, match="NaN"):
        LocalMedian().fit(np.full((3, 1), np.nan))
    with pytest.raises(ValueError, match="center must be finite"):
        LocalMedian(center=math.inf).fit(X)


def test_verbose_shows_public_facts_only(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = table(64)
    LocalLogisticRegression(verbose=1).fit(X, y)
    shown = capsys.readouterr().err
    assert "64/64" in shown
    assert "size of the point" in shown
