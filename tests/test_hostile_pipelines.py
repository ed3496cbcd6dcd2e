"""What one odd record, one odd step or too few records do to a private pipeline: nothing.

Steps of scikit-learn that learn are refused, all of them; what is wrong whatever the records are is
told before anything is charged; what is wrong about one record changes no other.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.sparse
import sklearn
from sklearn import linear_model, preprocessing
from sklearn.utils import all_estimators

from tacit.estimators.parameters import NobodyCountedWarning
from tacit.features import GaussianKernel, RandomFourierFeatures
from tacit.linear_model import LogisticRegression
from tacit.pipeline import PrivatePipeline, Vouched
from tacit.pipeline.sklearn_adapters import KNOWN, Stateless
from tacit.pipeline.steps import admitted
from tacit.preprocessing import (
    PrivateMissing,
    PrivatePCA,
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PrivateVocabulary,
)
from tacit.privacy import Accountant, Budget
from tacit.records import Bounds, MemoryRecords
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder
from tacit.table_facts import TableFacts

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1.0, 1.0, (300, 3))
LABELS = ROWS[:, 0] > 0.0
FACTS = TableFacts(("a", "b", "c"), 2.0)


def pipeline(*steps: Any, **parameters: Any) -> PrivatePipeline:
    named = [(f"step{place}", step) for place, step in enumerate(steps)]
    model = LogisticRegression(classes=[False, True], row_norm=2.0)
    return PrivatePipeline([*named, ("model", model)], **parameters)


def vouched(function: Any, **parameters: Any) -> Vouched:
    transformer = preprocessing.FunctionTransformer(function)
    return Vouched(transformer, **{"row_norm": 1.0, **parameters})


# What a transformer cannot be made without.
_NEEDED: dict[str, Any] = {
    "estimator": linear_model.LogisticRegression(),
    "estimators": [("one", linear_model.LogisticRegression())],
    "transformers": [("one", preprocessing.Normalizer(), [0])],
    "transformer_list": [("one", preprocessing.Normalizer())],
    "dictionary": np.eye(3),
}


def _every_transformer() -> list[Any]:
    found = []
    for _, kind in all_estimators(type_filter="transformer"):
        needed = {
            name: _NEEDED[name]
            for name, parameter in inspect.signature(kind).parameters.items()
            if parameter.default is inspect.Parameter.empty and name in _NEEDED
        }
        found.append(kind(**needed))
    return found


def _is_admitted(transformer: Any) -> bool:
    with contextlib.suppress(TypeError):
        return isinstance(admitted("step", transformer), Stateless)
    return False


def test_every_transformer_of_scikit_learn_is_refused_or_known_to_learn_nothing() -> None:
    """With their defaults: what is admitted here was read, and is on a list."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what scikit-learn will rename
        transformers = _every_transformer()
    assert len(transformers) > 60
    passed = {type(one) for one in transformers if _is_admitted(one)}
    assert passed == set(KNOWN) - {preprocessing.OneHotEncoder}


@pytest.mark.parametrize("kind", sorted(KNOWN, key=str))
def test_what_is_known_to_learn_nothing_learns_nothing(kind: Any) -> None:
    """Fitted to other rows it makes the same of a row, to the last bit."""
    if kind is preprocessing.OneHotEncoder:
        made = kind(categories=[[0.0, 1.0]] * 3, handle_unknown="ignore")
    else:
        made = kind()
    ours = Stateless(made).transform(ROWS)
    for seed in (1, 2):
        other = np.random.default_rng(seed).uniform(-9.0, 9.0, (50, 3))
        if kind is preprocessing.OneHotEncoder:
            other = (other > 0).astype(float)
        theirs = made.fit(other).transform(ROWS)
        np.testing.assert_array_equal(
            ours, theirs.toarray() if hasattr(theirs, "toarray") else theirs
        )
    # and what it makes of a row does not depend on the rows beside it
    np.testing.assert_array_equal(ours[7:8], Stateless(made).transform(ROWS[7:8]))


class Subclass(preprocessing.OneHotEncoder):
    """May do anything."""


@pytest.mark.parametrize(
    "step",
    [
        preprocessing.OneHotEncoder(categories=[[0.0]] * 3, handle_unknown="error"),
        preprocessing.OneHotEncoder(categories=[[0.0]] * 3, handle_unknown="infrequent_if_exist"),
        preprocessing.OneHotEncoder(
            categories=[[0.0]] * 3, handle_unknown="ignore", min_frequency=3
        ),
        preprocessing.KBinsDiscretizer(),
        preprocessing.SplineTransformer(knots=np.array([[0.0] * 3, [1.0] * 3])),
        Subclass(categories=[[0.0]] * 3, handle_unknown="ignore"),
    ],
    ids=str,
)
def test_what_would_raise_on_one_record_or_may_learn_is_refused(step: Any) -> None:
    """With handle_unknown="error" a single record of an unknown word stops the fit for all."""
    with pytest.raises(TypeError, match="learns from the records"):
        admitted("step", step)


def _encoder() -> SchemaEncoder:
    return SchemaEncoder(Schema((Number("a", 0, 1),), ClassTarget("t", ("0", "1"))))


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([], "at least an estimator"),
        ([("model", PrivateQuantileBounds(bounds=(-1, 1)))], "not unique"),
        ([("epsilon", PrivateQuantileBounds(bounds=(-1, 1)))], "conflict"),
        ([("held__out", PrivateQuantileBounds(bounds=(-1, 1)))], "must not contain __"),
        ([("bounds", PrivateQuantileBounds(bounds=(-1, 1))), ("encode", _encoder())], "first"),
        ([("words", PrivateVocabulary({0: 3}))], "open category"),
        ([("one", LogisticRegression())], "learns from the records"),
        ([("one", "passthrough")], "leave it out"),
        (
            [
                (
                    "words",
                    preprocessing.OneHotEncoder(categories=[["a"]] * 3, handle_unknown="ignore"),
                )
            ],
            "must be numbers",
        ),
        ([("unfitted", Vouched(preprocessing.StandardScaler(), row_norm=1.0))], "made-up record"),
        ([("wide", vouched(lambda rows: np.hstack([rows, rows])))], "n_features_out"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_whatever_the_records_are_is_told_before_the_charge(
    steps: list[Any], said: str
) -> None:
    purse = Accountant(Budget(1.0, 1e-6))
    last = [("model", LogisticRegression(classes=[False, True], row_norm=2.0))] if steps else []
    with pytest.raises((ValueError, TypeError), match=said):
        PrivatePipeline([*steps, *last], accountant=purse).fit(ROWS, LABELS)
    assert purse.events == ()


@pytest.mark.parametrize(
    "step", [PrivateQuantileBounds(bounds=(-1, 1)), preprocessing.Normalizer()]
)
def test_a_record_source_is_refused_before_the_charge(step: Any) -> None:
    purse = Accountant(Budget(1.0, 1e-6))
    records = MemoryRecords(ROWS, 2.0 * LABELS - 1.0, Bounds(row_norm=2.0))
    with pytest.raises(TypeError, match="record source"):
        pipeline(step, accountant=purse).fit(records)
    assert purse.events == ()


@pytest.mark.parametrize(
    "step", [PrivateQuantileBounds(bounds=(-1, 1)), preprocessing.Normalizer()]
)
def test_frames_are_asked_about_by_the_names_of_their_columns(step: Any) -> None:
    """Warnings are errors here."""
    frame = pandas.DataFrame(ROWS, columns=["a", "b", "c"])
    made = pipeline(step, epsilon=4.0).fit(frame, LABELS)
    assert made.predict(frame).shape == (300,)
    with pytest.raises(ValueError, match="feature names"):
        made.predict(frame[["c", "b", "a"]])
    with pytest.raises(ValueError, match="2 features"):
        pipeline(step, epsilon=4.0).fit(ROWS, LABELS).predict(ROWS[:, :2])


def test_sparse_rows_are_refused_before_the_charge_by_a_step_that_fills_gaps() -> None:
    purse = Accountant(Budget(1.0, 1e-6))
    step = PrivateQuantileBounds(bounds=(-1, 1))
    with pytest.raises(TypeError, match="dense data is required"):
        pipeline(step, accountant=purse).fit(scipy.sparse.csr_array(ROWS), LABELS)
    assert purse.events == ()


@pytest.mark.parametrize(
    "step",
    [
        preprocessing.PolynomialFeatures(2),
        preprocessing.Normalizer(),
        RandomFourierFeatures(GaussianKernel(1.0), 4, seed=1),
        vouched(lambda rows: rows),
    ],
    ids=lambda step: type(step).__name__,
)
def test_sparse_rows_give_what_dense_ones_do(step: Any) -> None:
    dense, sparse = (
        pipeline(step, random_state=1).fit(rows, LABELS).estimator_.coef_
        for rows in (ROWS, scipy.sparse.csr_array(ROWS))
    )
    np.testing.assert_allclose(dense, sparse, rtol=1e-9)


@pytest.mark.parametrize("odd", [1e200, -1.7e308, 5e-324])
@pytest.mark.parametrize(
    "steps",
    [
        (preprocessing.PolynomialFeatures(2), preprocessing.PolynomialFeatures(2)),
        (vouched(lambda rows: rows * 1e150), preprocessing.PolynomialFeatures(3)),
        (preprocessing.PolynomialFeatures(3), preprocessing.Normalizer()),
        (preprocessing.Normalizer("max"), preprocessing.PolynomialFeatures(2)),
        (preprocessing.Binarizer(), preprocessing.Normalizer("l1")),
    ],
    ids=lambda steps: "-".join(type(step).__name__ for step in steps),
)
def test_a_value_that_overflows_on_the_way_stops_nobody(steps: Any, odd: float) -> None:
    """scikit-learn refuses what is not finite, and a step before it may have made it so."""
    rows = ROWS.copy()
    rows[7] = [odd, 0.5, odd]
    pipeline(*steps).fit(rows, LABELS)


@pytest.mark.parametrize("kind", sorted(KNOWN, key=str))
def test_a_row_that_is_not_finite_is_zeros_and_changes_no_other(kind: Any) -> None:
    known = kind is preprocessing.OneHotEncoder
    made = kind(categories=[[0.0, 1.0]] * 3, handle_unknown="ignore") if known else kind()
    rows = ROWS.copy()
    rows[5, 1], rows[6, 2] = np.nan, -np.inf
    found = Stateless(made).transform(rows)
    assert not found[5:7].any()
    rest = np.setdiff1d(np.arange(300), [5, 6])
    np.testing.assert_array_equal(found[rest], Stateless(made).transform(ROWS)[rest])


def _touchy(rows: Any) -> Any:
    if np.any(rows == 0.25):
        raise ValueError(f"the record with {rows[rows == 0.25]} is odd")
    return rows / 2


def test_a_record_that_a_vouched_step_fails_on_counts_as_zeros_and_is_not_repeated() -> None:
    rows = ROWS.copy()
    rows[3, 1] = 0.25
    step = vouched(_touchy)
    found = step.transform(rows)
    assert not found[3].any()
    rest = np.setdiff1d(np.arange(300), [3])
    np.testing.assert_array_equal(found[rest], step.transform(ROWS)[rest])
    pipeline(step).fit(rows, LABELS)


def test_rows_of_a_vouched_step_are_as_short_as_declared() -> None:
    found = vouched(lambda rows: rows * 1e9).transform(ROWS)
    assert np.linalg.norm(found, axis=1).max() <= 1.0


STEPS = {
    "quantile_bounds": PrivateQuantileBounds(bounds=(-1, 1)),
    "standard_scaler": PrivateStandardScaler(bounds=(-1, 1)),
    "missing": PrivateMissing(bounds=(-1, 1)),
    "pca": PrivatePCA(2, row_norm=2.0),
    "centered_pca": PrivatePCA(2, row_norm=2.0, centered=True),
    "polynomial": preprocessing.PolynomialFeatures(2),
    "waves": RandomFourierFeatures(GaussianKernel(1.0), 8, seed=1),
    "vouched": vouched(np.sin),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("part", [0, 1])
def test_a_part_without_records_is_like_any_other(
    name: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of few records none may be held out, or all: an error would tell how few there are."""
    from tacit.queries import session

    monkeypatch.setattr(
        session, "parts_of", lambda *given, **more: np.full(len(given[3]), part, np.int64)
    )
    with pytest.warns(UserWarning, match="has no result") as said:
        made = pipeline(STEPS[name], epsilon=1.0, evaluate=0.4).fit(ROWS[:2], LABELS[:2])
    others = [w for w in said if w.category is not NobodyCountedWarning]  # two records are few
    assert len(others) == 1
    assert made.evaluation_ is None
    assert made.predict(ROWS).shape == (300,)


def test_directions_of_an_array_have_the_norm_that_they_declare() -> None:
    made = pipeline(PrivatePCA(2, row_norm=2.0), epsilon=8.0).fit(ROWS, LABELS)
    assert made.estimator_.row_norm_ == 2.0
    with pytest.raises(ValueError, match="row norm after this step is unknown"):
        pipeline(PrivatePCA(2)).plan(n_features=3)


def test_frames_between_steps_are_rows() -> None:
    """Warnings are errors here."""
    steps = PrivateQuantileBounds(bounds=(-1, 1)), preprocessing.PolynomialFeatures(2)
    with sklearn.config_context(transform_output="pandas"):
        made = pipeline(*steps, epsilon=4.0).fit(ROWS, LABELS)
        assert made.predict(ROWS).shape == (300,)
