"""What leaves a search, what it costs, and what it does where things go wrong."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import tacit
from tacit.checks import RENAMED
from tacit.features import GaussianKernel, RandomFourierFeatures
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.preprocessing import PrivateQuantileBounds, PrivateStandardScaler
from tacit.privacy import Accountant, BestOf, Budget, BudgetExceeded, Gaussian
from tacit.queries import noise as noisy_sum
from tacit.schema import ClassTarget, Number, OpenCategory, OpenNumber, Schema, SchemaEncoder, Unit
from tacit.schema.columns import Column
from tacit.table_facts import EncodedTable, TableFacts
from tacit.table_model import TableModel
from tacit.tuning import (
    Capped,
    DisjointSearch,
    FixedTries,
    HeldOut,
    Poisson,
    PrivateSearch,
    PublicScore,
    TruncatedNegativeBinomial,
)

SPACE = {"regularization": [3.0, 3000.0]}
LAW = Capped(TruncatedNegativeBinomial(1.0, 0.3), 6)


def records(n: int = 4000) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    return X, (X[:, 0] > 0).astype(int)


def logistic(**parameters: Any) -> LogisticRegression:
    return LogisticRegression(classes=[0, 1], row_norm=1.5, **parameters)


def search(model: Any = None, space: Any = None, **parameters: Any) -> PrivateSearch:
    settings: dict[str, Any] = {"law": LAW, "epsilon": 2.0, **parameters}
    return PrivateSearch(logistic() if model is None else model, space or SPACE, **settings)


@pytest.mark.parametrize("random_state", [None, 5])
def test_only_a_search_that_is_seeded_seeds_its_fits(random_state: int | None) -> None:
    """Noise of a fit from a seed of 31 bits would be no noise, and the search would not say so."""
    X, y = records(400)
    for found in (
        search(law=FixedTries(2), random_state=random_state),
        DisjointSearch(logistic(), SPACE, epsilon=2.0, random_state=random_state),
    ):
        found.fit(X, y)
        assert (found.best_estimator_.random_state is None) is (random_state is None)
        assert bool(found.privacy_.event.reasons_void()) is (random_state is not None)


def test_the_better_candidate_wins_and_only_it_leaves() -> None:
    X, y = records()
    found = search(law=FixedTries(24), epsilon=20.0).fit(X, y)
    assert found.best_params_ == {"regularization": 3.0}
    assert np.mean(found.predict(X) == y) > 0.9
    released = {name for name in vars(found) if name.endswith("_")}
    assert released == {
        "best_estimator_",
        "best_params_",
        "privacy_",
        "plan_",
        "n_features_in_",
    }
    assert found.predict_proba(X[:3]).shape == (3, 2)
    assert found.classes_.tolist() == [0, 1]


def test_the_guarantee_is_that_of_the_search_everywhere() -> None:
    found = search().fit(*records())
    assert isinstance(found.privacy_.event, BestOf)
    assert 1.9 <= found.privacy_.epsilon(1e-6) <= 2.0
    assert found.best_estimator_.privacy_ == found.privacy_
    assert "best of a secret number of fits" in found.privacy_.statement()
    assert found.best_estimator_.accountant is None


def test_a_plan_says_what_the_search_costs_and_is_what_is_charged() -> None:
    accountant = Accountant(Budget(2.0, 1e-6))
    found = search(accountant=accountant)
    plan = found.plan(2)
    assert 1.0 < plan.settings["noise_factor"] < 2.0
    assert "times that of one fit without a search" in str(plan)
    fitted = found.fit(*records())
    assert accountant.events == (plan.event,)
    assert fitted.plan_.event == plan.event


def test_twenty_tries_cost_about_half_as_much_noise_again() -> None:
    # tuning_and_evaluation.md, section 1: 1.57 at (1, 1e-6) for a geometric K of mean 20
    model = logistic(regularization=1e6, n_records=1000)
    plan = PrivateSearch(model, {"fit_intercept": [True, False]}, 20).plan(2)
    assert plan.settings["noise_factor"] * 0.97 == pytest.approx(1.57, abs=0.01)


class _Unreadable:
    """A table that nobody may read before the charge."""

    def __init__(self) -> None:
        facts = TableFacts(("a", "b"), 1.5, classes=(0, 1))
        self.table = EncodedTable(facts, self.read)

    def read(self) -> Any:
        raise AssertionError("the records were read")


@pytest.mark.parametrize(
    "wrong",
    [
        {"param_distributions": {"no_such_parameter": [1, 2]}},
        {"param_distributions": {"epsilon": [1, 2]}},
        {"param_distributions": {"regularization": []}},
        {"param_distributions": {"regularization": [-1.0, 1.0]}},
        {"mean_tries": 1.0, "law": None},
        {"mean_tries": -3, "law": None},
        {"law": 20},
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"delta": 2.0},
        {"relation": "neighbours"},
        {"relation": "add_remove_person"},
        {"relation": "replace"},
        {"scoring": "accuracy"},
        {"n_iter": 0},
        {"model": "no estimator"},
    ],
    ids=str,
)
def test_mistakes_are_told_before_records_are_read(wrong: dict[str, Any]) -> None:
    model, space = wrong.pop("model", logistic()), wrong.pop("param_distributions", SPACE)
    with pytest.raises((ValueError, TypeError)):
        search(model, space, **wrong).fit(_Unreadable().table)


def test_whose_a_record_is_has_no_place_in_a_search() -> None:
    schema = Schema((Number("age", 0, 1), Unit("who")), ClassTarget("ill", (0, 1)))
    frame = pd.DataFrame({"age": [0.0, 1.0] * 20, "who": range(40), "ill": [0, 1] * 20})
    resolved = (
        r"protects one record, and {} identifies people.*estimator\.fit\(X, y, unit=\.\.\.\)\.$"
    )
    for kind in (search(), DisjointSearch(logistic(), SPACE, epsilon=2.0)):
        with pytest.raises(ValueError, match=resolved.format("unit")):
            kind.fit(*records(40), unit=np.arange(40))  # type: ignore[arg-type]
        kind.set_params(estimator=TableModel(schema, logistic()))
        with pytest.raises(ValueError, match=resolved.format("the table")):
            kind.fit(frame)


def test_nothing_is_read_that_is_not_paid_for() -> None:
    for kind in (search(), DisjointSearch(logistic(), SPACE, epsilon=2.0)):
        kind.set_params(accountant=Accountant(Budget(1.0, 1e-6)))
        with pytest.raises(BudgetExceeded):
            kind.fit(_Unreadable().table)
        kind.set_params(accountant=None)
        with pytest.raises(AssertionError, match="were read"):
            kind.fit(_Unreadable().table)


class Fragile(LogisticRegression):
    """Fails after its charge, with some parameters, on some records."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, unit: Any = None) -> Any:
        super().fit(X, y, sample_weight, unit)
        if self.regularization == 3.0 and len(X.read()[0]) > 1:
            raise FloatingPointError("a number of the records: 42")
        return self


@pytest.mark.slow
def test_a_try_that_fails_is_the_worst_and_says_nothing() -> None:
    model = Fragile(classes=[0, 1], row_norm=1.5)
    for _ in range(3):
        found = search(model, law=FixedTries(6)).fit(*records(400))
        assert found.best_params_ in ({"regularization": 3000.0}, {"regularization": 3.0})
    only = search(model, {"regularization": [3.0]}, n_iter=2).fit(*records(400))
    assert only.best_params_ == {"regularization": 3.0}  # the fit to no records
    assert np.linalg.norm(only.best_estimator_.coef_) < 100.0


def test_no_tries_release_what_no_record_has_a_part_in() -> None:
    found = search(law=Poisson(1e-6), random_state=3).fit(*records(500))
    other = search(law=Poisson(1e-6), random_state=3).fit(records(800)[0] * 0.1, records(800)[1])
    assert found.best_params_ == other.best_params_
    assert "non-private" not in str(found.best_params_)


def test_noise_that_is_not_the_planned_one_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.noise.gaussian import gaussian as real

    monkeypatch.setattr(noisy_sum, "gaussian", lambda b, z, s: real(b, 0.9 * z, s))
    with pytest.raises(RuntimeError, match="'score' released"):
        search().fit(_Unreadable().table)


def test_public_scores_cost_nothing() -> None:
    X, y = records()
    found = search(scoring=PublicScore(X[:500], y[:500]), law=FixedTries(24), epsilon=20.0)
    assert found.fit(X, y).best_params_ == {"regularization": 3.0}
    assert "its score is public" in str(found.plan_)


@pytest.mark.slow
def test_regression_pure_budgets_and_replacing() -> None:
    X, _ = records()
    model = LinearRegression(label_range=(-1, 1), row_norm=1.5)
    found = search(model, law=FixedTries(24), epsilon=20.0).fit(X, X[:, 0])
    assert np.mean((found.predict(X) - X[:, 0]) ** 2) < 0.1
    pure = search(delta=0.0).fit(*records())
    assert pure.privacy_.epsilon(0.0) <= 2.0
    counted = search(logistic(n_records=4000), relation="replace").fit(*records())
    assert counted.privacy_.epsilon(1e-6) <= 2.0
    free = search(epsilon=math.inf).fit(*records())
    assert free.privacy_.voided_by == ("the budget is infinite",)


class Scaled(TransformerMixin, BaseEstimator):
    """Rows times a number that is searched over."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def fit(self, X: Any = None, y: Any = None) -> Any:
        return self

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        names = ("a", "b") if facts is None else facts.names
        norm = 1.5 if facts is None else facts.row_norm
        return TableFacts(names, norm * self.factor, classes=(0, 1))

    def transform(self, X: Any) -> Any:
        return np.asarray(X) * self.factor


def test_steps_before_the_estimator_are_searched_over() -> None:
    X, y = records()
    model = make_pipeline(Scaled(), logistic(regularization=3.0))
    found = search(model, {"scaled__factor": [1e-6, 1.0]}, law=FixedTries(24), epsilon=20.0)
    assert found.fit(X, y).best_params_ == {"scaled__factor": 1.0}
    assert np.mean(found.predict(X) == y) > 0.9


@pytest.mark.parametrize("kind", ["table model", "pipeline"])
def test_raw_tables(kind: str) -> None:
    X, y = records()
    schema = Schema((Number("a", -1, 1), Number("b", -1, 1)), ClassTarget("ill", ("no", "yes")))
    table = {"a": X[:, 0], "b": X[:, 1], "ill": np.where(y == 1, "yes", "no")}
    model: Any = TableModel(schema, LogisticRegression())
    space = {"estimator__regularization": [3.0, 3000.0]}
    if kind == "pipeline":
        model = tacit.PrivatePipeline(
            [("encode", SchemaEncoder(schema)), ("model", LogisticRegression())], epsilon=None
        )
        space = {"model__regularization": [3.0, 3000.0]}
    found = search(model, space, law=FixedTries(24), epsilon=20.0).fit(table)
    assert np.mean(found.predict(table) == table["ill"]) > 0.9
    assert found.best_estimator_.privacy_ == found.privacy_
    assert found.plan().event is not None
    parts = DisjointSearch(model, space, epsilon=20.0).fit(table)
    assert np.mean(parts.predict(table) == table["ill"]) > 0.9


def test_people_are_refused() -> None:
    facts = TableFacts(("a", "b"), 1.5, classes=(0, 1), of_people=True)
    table = EncodedTable(facts, _Unreadable().read, named=[])
    with pytest.raises(ValueError, match="one record"):
        search().fit(table)


def test_frames_are_asked_about_without_a_warning() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = records(600)
    frame = pandas.DataFrame(X, columns=["a", "b"])
    assert search().fit(frame, y).predict(frame).shape == (600,)


@pytest.mark.slow
def test_twenty_tries_read_no_more_than_twenty_two_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.estimators import linear
    from tacit.records import MemoryRecords

    read = [0]

    class Counted(MemoryRecords):
        def sum(self, *args: Any, **kwargs: Any) -> Any:
            read[0] += self.rows.shape[0]
            return super().sum(*args, **kwargs)

    monkeypatch.setattr(linear, "MemoryRecords", Counted)
    X, y = records(20_000)
    space = {"regularization": [30.0, 100.0]}
    single, whole = 0, 0
    for _ in range(5):
        read[0] = 0
        logistic(regularization=30.0, epsilon=0.6).fit(X, y)
        single += read[0]
        read[0] = 0
        search(space=space, law=FixedTries(20), scoring=HeldOut(0.1)).fit(X, y)
        whole += read[0]
    assert 0 < whole <= 22 * single


def _rings(n: int = 3000) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.5
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.where(y, 1.0, 0.4)
    return np.c_[radius * np.cos(angle), radius * np.sin(angle)], y


@pytest.mark.slow
@pytest.mark.parametrize("of_tables", [False, True])
def test_a_private_pipeline_is_searched_over_and_saved(of_tables: bool, tmp_path: Path) -> None:
    X, y = _rings()
    columns: tuple[Column, ...] = (OpenNumber("a", -5, 5), Number("b", -2, 2))
    schema = Schema(columns, ClassTarget("y", ("no", "yes")))
    bounds = PrivateQuantileBounds(bounds=(-5, 5), quantiles=(0.02, 0.98))
    first = ("encode", SchemaEncoder(schema)) if of_tables else ("bounds", bounds)
    model = LogisticRegression(classes=None if of_tables else [False, True])
    waves = RandomFourierFeatures(n_frequencies=10, seed=1)
    made = PrivateSearch(
        PrivatePipeline([first, ("waves", waves), ("model", model)]),
        {"waves__kernel": [GaussianKernel(0.4), GaussianKernel(9.0)]},
        mean_tries=4,
        epsilon=4.0,
    )
    table = {"a": X[:, 0], "b": X[:, 1]} if of_tables else X
    labels = np.where(y, "yes", "no") if of_tables else y
    made.fit(table, labels)
    assert made.privacy_.within(4.0, 1e-6)
    assert made.best_estimator_.privacy_ == made.privacy_
    assert made.best_estimator_.score(table, labels) > 0.4
    tacit.save(made.best_estimator_, tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit")
    assert again.privacy_ == made.privacy_
    assert np.all(again.predict(table) == made.predict(table))


def test_a_winner_is_saved_with_what_the_search_cost(tmp_path: Path) -> None:
    X, y = _rings()
    model = LogisticRegression(classes=[False, True], row_norm=2.0)
    best = PrivateSearch(model, SPACE, mean_tries=3).fit(X, y).best_estimator_
    tacit.save(best, tmp_path / "model.tacit")
    assert tacit.load(tmp_path / "model.tacit").privacy_ == best.privacy_
    # with the guarantee of another search it is not the same model
    other = copy.copy(best)
    other.privacy_ = replace(best.privacy_, event=BestOf(Gaussian(1.0), FixedTries(2)))
    with pytest.raises(tacit.saving.CannotSave, match=r"not about the release|another budget"):
        tacit.save(other, tmp_path / "model.tacit")


def test_words_that_a_fit_would_learn_are_refused_before_reading() -> None:
    schema = Schema((OpenCategory("t", 3),), ClassTarget("y", ("no", "yes")))
    steps = [("encode", SchemaEncoder(schema)), ("model", LogisticRegression())]
    with pytest.raises(TypeError, match="open categories"):
        PrivateSearch(PrivatePipeline(steps), {"model__regularization": [1.0, 9.0]}).fit(
            {"t": ["a"]}, ["no"]
        )


@pytest.mark.parametrize("kind", [PrivateSearch, DisjointSearch])
def test_a_private_pipeline_is_asked_and_promises_as_a_whole(kind: Any) -> None:
    """Its estimator_ alone takes other rows, and a try alone says less than the search cost."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(5, 7, (3000, 2))
    scaler = PrivateStandardScaler(bounds=(5, 7))
    model = PrivatePipeline([("scale", scaler), ("model", LogisticRegression(classes=[0, 1]))])
    law = {} if kind is DisjointSearch else {"law": FixedTries(2)}
    tried = kind(model, {"model__regularization": [3.0, 3000.0]}, epsilon=20.0, **law)
    found = tried.fit(rows, rows[:, 0] > 6)
    assert found.best_estimator_.privacy_ is found.privacy_
    asked: list[int] = []
    whole = PrivatePipeline.predict
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivatePipeline, "predict", lambda *a: asked.append(1) or whole(*a))
        tried.fit(rows, rows[:, 0] > 6)
    assert asked


class Remembering(LogisticRegression):
    """Keeps what it was fitted to in a list of its own, which a shallow copy shares."""

    def __init__(self, epsilon: float = 1.0, delta: float = 1e-6, **parameters: Any) -> None:
        super().__init__(epsilon, delta, **parameters)
        self.seen: list[int] = []

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Any:
        super().fit(X, y, sample_weight, unit)
        self.seen.append(len(X.read()[0]))
        return self

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return LogisticRegression._get_param_names()


def test_tries_share_no_object_of_the_space() -> None:
    model = Remembering(classes=[0, 1], row_norm=1.5)
    whole = PrivatePipeline([("model", logistic())])
    found = search(whole, {"model": [model]}, n_iter=2, law=FixedTries(3))
    found.fit(*records(400))
    assert model.seen == []
    assert model.epsilon == 1.0
    plain = make_pipeline(Scaled(), logistic())
    found = search(plain, {"logisticregression": [model]}, n_iter=2, law=FixedTries(3))
    best = found.fit(*records(400)).best_estimator_[-1]
    assert model.seen == []
    assert model.epsilon == 1.0
    assert len(best.seen) == 1


@pytest.mark.parametrize("kind", [PrivateSearch, DisjointSearch])
def test_a_search_scores_as_its_best_fit_does(kind: Any) -> None:
    X, y = records(800)
    made = kind(logistic(), SPACE, epsilon=20.0)
    assert made.__sklearn_tags__().estimator_type == "classifier"
    found = made.fit(X, y)
    assert found.score(X, y) == found.best_estimator_.score(X, y)
    assert found.score(X, y) == np.mean(found.predict(X) == y)
    with pytest.raises(NotFittedError):
        clone(found).score(X, y)


@pytest.mark.parametrize("kind", [PrivateSearch, DisjointSearch])
def test_an_old_name_of_a_parameter_is_refused_with_the_new_one(kind: Any) -> None:
    today = set(kind(logistic(), SPACE).get_params(deep=False))
    for old, new in RENAMED[kind.__name__].items():
        assert old not in today
        assert new in today
        with pytest.raises(TypeError, match=f"^{old} is called {new} since"):
            kind(logistic(), **{"param_distributions": SPACE, old: 3})
    made = clone(kind(logistic(), SPACE, n_iter=5).set_params(epsilon=3.0))
    assert made.n_iter == 5
    assert made.epsilon == 3.0
    with pytest.raises(ValueError, match="Invalid parameter 'space'"):
        made.set_params(space=SPACE)
    with pytest.raises(TypeError, match="unexpected keyword argument 'spaces'"):
        kind(logistic(), spaces=SPACE)


def test_a_search_cannot_change_the_encoder() -> None:
    """The table is encoded once: a model of other rows would predict nonsense."""
    age = np.random.default_rng(0).uniform(0, 100, 300)
    given, other = (
        SchemaEncoder(Schema((Number("age", 0, upper),), ClassTarget("ill", ("no", "yes"))))
        for upper in (100, 1000)
    )
    purse = Accountant(Budget(9.0, 1e-6))
    for epsilon in (None, 1.0):
        model = PrivatePipeline([("encode", given), ("model", LogisticRegression())], epsilon)
        for name, value in (
            ("encode__schema", other.schema),
            ("encode", other),
            ("steps", [("encode", other), *model.steps[1:]]),
        ):
            search = PrivateSearch(model, {name: [value]}, epsilon=1.0, accountant=purse)
            with pytest.raises(ValueError, match="changes the SchemaEncoder"):
                search.fit({"age": age}, np.where(age > 50, "yes", "no"))
    assert purse.events == ()
