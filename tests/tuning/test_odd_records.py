"""Searches among few records, odd records and candidates that fail, and what shows of it."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tacit.kernel import KernelLogisticRegression
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.preprocessing import PrivateQuantileBounds
from tacit.privacy import Accountant, Budget
from tacit.queries import session
from tacit.testing import replay
from tacit.tuning import DisjointSearch, FixedTries, PrivateSearch, PublicScore, trials
from tacit.tuning.trials import MistakesOfEach

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1.0, 1.0, (600, 2))
LABELS = (ROWS[:, 0] > 0.0).astype(int)
SPACE = {"regularization": [3.0, 300.0]}
MODEL = LogisticRegression(classes=[0, 1], row_norm=1.5)


def tries(model: Any = MODEL, space: Any = None, **parameters: Any) -> PrivateSearch:
    resolved: dict[str, Any] = {"law": FixedTries(3), "epsilon": 4.0, **parameters}
    return PrivateSearch(model, space or SPACE, **resolved)


def parts(model: Any = MODEL, **parameters: Any) -> DisjointSearch:
    return DisjointSearch(model, SPACE, **{"epsilon": 4.0, **parameters})


def all_in(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every record be of one part."""

    def chosen(shares: Any, key: Any, relation: Any, rows: Any, *_: Any, **__: Any) -> Any:
        return np.full(rows.shape[0], part, dtype=np.int64)

    monkeypatch.setattr(session, "parts_of", chosen)


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize(
    "model",
    [
        MODEL,
        pytest.param(
            LinearRegression(label_range=(0.0, 1.0), row_norm=1.5), marks=pytest.mark.slow
        ),
        KernelLogisticRegression(classes=[0, 1], row_norm=1.5, n_frequencies=4),
        pytest.param(
            PrivatePipeline(
                [("bounds", PrivateQuantileBounds(bounds=(-1, 1))), ("model", clone(MODEL))]
            ),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_part_without_records_is_like_any_other(
    part: int, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were tries to fail there, one record more would change what is released altogether."""
    all_in(part, monkeypatch)
    space = SPACE
    if isinstance(model, PrivatePipeline):
        space = {"model__regularization": SPACE["regularization"]}
    seen: list[Any] = []
    best = trials.Runner.best

    def noted(self: Any, *given: Any) -> Any:
        seen.append((best(self, *given), given[-1]))
        return seen[-1][0]

    monkeypatch.setattr(trials.Runner, "best", noted)
    tries(model, space).fit(ROWS[:2], LABELS[:2])
    ((won, default),) = seen
    assert won is not default
    assert math.isfinite(won.score)
    if space is SPACE:
        assert parts(model).fit(ROWS[:2], LABELS[:2]).best_params_


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [tries, parts])
def test_replay_where_a_part_has_one_record_or_none(
    make: Any, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last record alone is in the other part, and comes or goes."""

    def chosen(shares: Any, key: Any, relation: Any, rows: Any, *_: Any, **__: Any) -> Any:
        return np.where(rows[:, 0] == 0.75, 1 - part, part).astype(np.int64)

    monkeypatch.setattr(session, "parts_of", chosen)
    rows = np.vstack([ROWS[:20], [0.75, 0.5]])
    more, less = (rows, np.append(LABELS[:20], 1)), (ROWS[:20], LABELS[:20])
    made = make(random_state=3)
    for first, second in ((more, less), (less, more)):
        assert replay(lambda data: made.fit(*data), first, second) >= 3


@pytest.mark.parametrize("make", [tries, parts])
@pytest.mark.parametrize("odd", [np.nan, [4711]], ids=str)
def test_labels_that_are_no_numbers_are_refused_like_those_of_a_fit(make: Any, odd: Any) -> None:
    """And not answered with a fit to no records, which would look like any other."""
    model = LinearRegression(label_range=(0.0, 1.0), row_norm=1.5)
    labels = LABELS.astype(object)
    labels[4] = odd
    purse = Accountant(Budget(4.0, 1e-6))
    with pytest.raises(ValueError, match="y") as said:
        make(model, accountant=purse).fit(ROWS, labels)
    assert "4711" not in str(said.value)
    assert len(purse.events) == 1  # they were read


class Counted(LogisticRegression):
    """Counts the fits that are begun, and fails after every second one."""

    begun = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        super().fit(X, y, sample_weight, unit)
        Counted.begun += 1
        if Counted.begun % 2:
            raise FloatingPointError("the record is 4711")
        return self


def test_every_try_is_finished_whatever_another_one_does(capfd: pytest.CaptureFixture[str]) -> None:
    """One that is cut short would tell of K, and of who was there; and nothing is printed of it."""
    Counted.begun = 1
    model = Counted(classes=[0, 1], row_norm=1.5)
    found = tries(model, law=FixedTries(7)).fit(ROWS, LABELS)
    assert Counted.begun == 1 + 1 + 7  # one of the default
    assert found.predict(ROWS).shape == (600,)
    out, err = capfd.readouterr()
    assert out + err == ""


@pytest.mark.parametrize("make", [tries, parts])
def test_no_try_speaks(make: Any, capfd: pytest.CaptureFixture[str]) -> None:
    make(clone(MODEL).set_params(verbose=True)).fit(ROWS, LABELS)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_no_step_says_how_often_it_was_fitted(capfd: pytest.CaptureFixture[str]) -> None:
    speaking = clone(MODEL).set_params(verbose=True)
    bounds = PrivateQuantileBounds(bounds=(-1, 1))
    model = PrivatePipeline([("bounds", bounds), ("model", speaking)], verbose=True)
    tries(speaking).fit(ROWS, LABELS)
    tries(model, {"model__regularization": [3.0, 30.0]}).fit(ROWS, LABELS)
    parts(speaking).fit(ROWS, LABELS)
    assert capfd.readouterr() == ("", "")
    assert model.verbose
    assert speaking.verbose


def test_the_guarantee_repeats_that_scores_are_of_public_records() -> None:
    found = tries(scoring=PublicScore(ROWS[:100], LABELS[:100])).fit(ROWS[100:], LABELS[100:])
    assert any("compared need no protection" in said for said in found.privacy_.assumptions)
    plain = tries().fit(ROWS, LABELS)
    assert not any("compared" in said for said in plain.privacy_.assumptions)


@pytest.mark.slow
def test_a_pipeline_that_holds_records_out_is_searched_over() -> None:
    """All that leaves with the winner says what the search cost, and not what one try did."""
    model = PrivatePipeline(
        [("bounds", PrivateQuantileBounds(bounds=(-1, 1))), ("model", clone(MODEL))], evaluate=0.3
    )
    rows, labels = np.tile(ROWS, (20, 1)), np.tile(LABELS, 20)
    rows += RNG.normal(0.0, 1e-3, rows.shape)
    found = tries(model, {"model__regularization": [3.0, 30.0]}, epsilon=8.0).fit(rows, labels)
    best = found.best_estimator_
    assert best.privacy_ == best.evaluation_.privacy_ == found.privacy_
    assert best.evaluation_["accuracy"].value > 0.5
    for step in best.steps_.values():
        assert "best of them was released" in step.privacy_.statement()


def test_searches_are_pickled_and_cloned() -> None:
    found = tries().fit(ROWS, LABELS)
    again = pickle.loads(pickle.dumps(found))
    assert again.privacy_ == found.privacy_
    np.testing.assert_array_equal(again.predict(ROWS), found.predict(ROWS))
    assert not hasattr(clone(found), "best_estimator_")


def test_a_warning_of_one_record_does_not_make_a_try_wrong_about_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.linspace(-1.0, 1.0, 40)[:, None]
    labels = rows[:, 0] > 0
    fitted = LogisticRegression(epsilon=np.inf, row_norm=1.0, classes=[False, True])
    view = MistakesOfEach([fitted.fit(rows, labels)])
    quiet, predict = view._mistakes(fitted, rows, labels).sum(), LogisticRegression.predict

    def loud(model: Any, rows: Any) -> Any:
        warnings.warn("one record overflows", RuntimeWarning, stacklevel=1)
        return predict(model, rows)

    monkeypatch.setattr(LogisticRegression, "predict", loud)
    assert view._mistakes(fitted, rows, labels).sum() == quiet < 40


class Loud(LogisticRegression):
    """Warns of its records: after its charge, and where it is asked about them."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        super().fit(X, y, sample_weight, unit)
        warnings.warn(f"a record is {X.read()[0][0]}", RuntimeWarning, stacklevel=1)
        return self

    def predict(self, X: Any) -> Any:
        warnings.warn(f"there are {len(X)} of them", RuntimeWarning, stacklevel=1)
        return super().predict(X)


@pytest.mark.parametrize("heard_as", ["always", "error"])
@pytest.mark.parametrize("make", [tries, parts])
def test_no_warning_of_a_try_is_heard_and_none_makes_it_fail(
    make: Any, heard_as: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many there are would tell of K, and what they say of records.

    One that is an error would make every try fail, or only those that meet an odd record.
    """
    runs, real = list[trials.Run](), trials.Runner.run

    def noted(self: Any, *given: Any) -> trials.Run:
        runs.append(real(self, *given))
        return runs[-1]

    monkeypatch.setattr(trials.Runner, "run", noted)
    public = {} if make is parts else {"scoring": PublicScore(ROWS[:100], LABELS[:100])}
    for more in ({}, public):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter(heard_as)
            made = make(Loud(classes=[0, 1], row_norm=1.5), **more).fit(ROWS, LABELS)
        assert [str(one.message) for one in heard if one.category is RuntimeWarning] == []
        assert isinstance(made.best_estimator_, Loud)
    assert runs
    assert all(run.model is not None for run in runs)
