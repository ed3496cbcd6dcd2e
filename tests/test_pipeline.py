"""Facts go from step to step, and a Pipeline is saved and reported like any other model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import pipeline as sklearn_pipeline
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import tacit
from tacit.linear_model import LinearRegression, LinearSVC, LogisticRegression
from tacit.location import GeometricMedian, Mean
from tacit.privacy import Accountant, Budget, BudgetExceeded
from tacit.report import facts_of
from tacit.saving import CannotSave, NotAModel, inspect, load, save
from tacit.schema import (
    Category,
    ClassTarget,
    Number,
    NumberTarget,
    Schema,
    SchemaEncoder,
    SchemaError,
    TableError,
)
from tacit.table_facts import TableFacts
from tests.saving.helpers import edited

N = 3000
RNG = np.random.default_rng(0)
AGE = RNG.uniform(0, 100, N)
PEOPLE = pd.DataFrame({"age": AGE, "sex": RNG.choice(["f", "m"], N)})
ILL = np.where(AGE > 50, "yes", "no")
COLUMNS = (Number("age", 0, 100), Category("sex", ("f", "m")))
ILLNESS = Schema(COLUMNS, ClassTarget("ill", ("no", "yes")))
COST = Schema(COLUMNS, NumberTarget("cost", 0, 1000), n_records=N)


def pipeline(schema: Schema, model: Any, **encoding: Any) -> tacit.PrivatePipeline:
    return tacit.PrivatePipeline(
        [("encode", SchemaEncoder(schema, **encoding)), ("model", model)], epsilon=None
    )


class Halves(TransformerMixin, BaseEstimator):
    """A transformer of no data, as a random feature map is."""

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        assert facts is not None
        return replace(facts, row_norm=facts.row_norm / 2, names=facts.names[:1])

    def transform(self, X: Any) -> Any:
        return X[:, :1] / 2


@pytest.mark.parametrize(
    ("schema", "model", "target"),
    [
        (ILLNESS, LogisticRegression(2.0, random_state=0, row_norm=9.0), ILL),
        (ILLNESS, LinearSVC(2.0, random_state=0), ILL),
        (COST, LinearRegression(2.0, random_state=0, relation="replace"), 10 * AGE),
    ],
    ids=["logistic", "svc", "linear"],
)
def test_it_is_the_table_model(schema: Schema, model: Any, target: Any) -> None:
    made = pipeline(schema, clone(model)).fit(PEOPLE, target)
    table = tacit.TableModel(schema, model).fit(PEOPLE, target)
    assert made["model"].coef_.tobytes() == table.estimator_.coef_.tobytes()
    assert made.privacy_ == table.privacy_
    assert made.plan_ == table.plan_
    assert made.plan(n_records=N).event == table.plan(n_records=N).event
    assert made.predict(PEOPLE).tobytes() == table.predict(PEOPLE).tobytes()
    assert made.score(PEOPLE, target) == table.score(PEOPLE, target)
    assert made["model"].get_params() == model.get_params()


def test_the_target_may_be_a_column_or_odd() -> None:
    made = pipeline(ILLNESS, LogisticRegression(2.0, random_state=0))
    beside = clone(made).fit(PEOPLE, ILL)["model"]
    inside = clone(made).fit(PEOPLE.assign(ill=ILL))["model"]
    assert beside.coef_.tobytes() == inside.coef_.tobytes()
    strange = np.where(np.arange(N) == 7, "perhaps", ILL)
    without = clone(made).fit(PEOPLE.drop(index=7), np.delete(ILL, 7))["model"]
    assert clone(made).fit(PEOPLE, strange)["model"].coef_.tobytes() == without.coef_.tobytes()


@pytest.mark.parametrize("model", [Mean(2.0, 1e-6), GeometricMedian(2.0, 1e-6)])
def test_a_location_needs_no_target(model: Any) -> None:
    schema = Schema((Number("age", 0, 100),) * 1, ILLNESS.target)
    made = pipeline(schema, model.set_params(row_norm=1e-3)).fit(PEOPLE)
    assert np.linalg.norm(made["model"].location_) < 0.2
    # at the middle of the scale, where rows of norm 1/2, not 1/1000, are added up
    plan = made.plan_
    if plan is not None:
        assert plan.problem.objective.bounds.row_norm == 0.5


def test_a_transformer_hands_on_what_it_makes_of_the_facts() -> None:
    model = LogisticRegression(2.0, random_state=0)
    steps = [("encode", SchemaEncoder(ILLNESS)), ("halve", Halves()), ("model", model)]
    made = tacit.PrivatePipeline(steps, epsilon=None).fit(PEOPLE, ILL)
    rows = Halves().transform(SchemaEncoder(ILLNESS).transform(PEOPLE))
    by_hand = LogisticRegression(
        2.0, random_state=0, row_norm=ILLNESS.row_norm / 2, classes=["no", "yes"]
    ).fit(rows, ILL)
    assert made["model"].coef_.tobytes() == by_hand.coef_.tobytes()
    assert made["model"].row_norm_ == by_hand.row_norm_
    assert made.get_feature_names_out().tolist() == ["age"]
    with pytest.raises(CannotSave, match="type Halves"):
        save(made, "never written")


def test_guessed_lines_are_refused_or_said(tmp_path: Path) -> None:
    guessed = replace(ILLNESS, unconfirmed=("age",))
    with pytest.raises(SchemaError, match="are not confirmed"):
        pipeline(guessed, LogisticRegression()).fit(PEOPLE, ILL)
    with pytest.raises(SchemaError, match="are not confirmed"):
        SchemaEncoder(guessed).fit()
    made = pipeline(guessed, LogisticRegression(), allow_unconfirmed=True).fit(PEOPLE, ILL)
    assert "'age' was guessed from the data" in made.privacy_.statement()
    # scikit-learn's own hands nothing on, so its guarantee would be silent about the guess.
    known = {"row_norm": guessed.row_norm, "classes": ["no", "yes"]}
    silent = sklearn_pipeline.make_pipeline(
        SchemaEncoder(guessed, allow_unconfirmed=True), LogisticRegression(**known)
    ).fit(PEOPLE, ILL)
    with pytest.raises(CannotSave, match="guessed"):
        save(silent, tmp_path / "m.tacit")
    with pytest.raises(TypeError, match="guessed"):
        facts_of(silent)


def test_nothing_is_read_before_it_is_paid_for() -> None:
    accountant = Accountant(Budget(1.0, 1e-6))
    unreadable = {"age": object(), "sex": object(), "ill": object()}
    with pytest.raises(BudgetExceeded):
        pipeline(ILLNESS, LogisticRegression(5.0, accountant=accountant)).fit(unreadable)
    with pytest.raises(TableError, match="'sex'"):
        pipeline(ILLNESS, LogisticRegression(0.5, accountant=accountant)).fit({"age": [1]}, ["no"])
    assert accountant.events == ()


def test_it_is_searched_like_any_pipeline() -> None:
    search = GridSearchCV(
        pipeline(ILLNESS, LogisticRegression()), {"model__epsilon": [0.1, 5.0]}, cv=2
    ).fit(PEOPLE, ILL)
    assert search.best_estimator_.score(PEOPLE, ILL) > 0.9


def by_hand() -> Any:
    known = {"row_norm": ILLNESS.row_norm, "classes": ["no", "yes"]}
    steps = [("encode", SchemaEncoder(ILLNESS)), ("model", LogisticRegression(**known))]
    return sklearn_pipeline.Pipeline(steps).fit(PEOPLE, ILL)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pipeline(ILLNESS, LogisticRegression(1.0), dtype=np.float32).fit(PEOPLE, ILL),
        lambda: pipeline(COST, LinearRegression(1.0)).fit(PEOPLE, 10 * AGE),
        lambda: pipeline(Schema(COLUMNS), Mean(1.0)).fit(PEOPLE),
        by_hand,
    ],
    ids=["classes", "numbers", "location", "scikit-learn's"],
)
def test_saved_loaded_certified_and_reported(make: Any, tmp_path: Path) -> None:
    made, path = make(), tmp_path / "m.tacit"
    save(made, path)
    loaded, certificate = load(path), inspect(path)
    assert type(loaded) is tacit.PrivatePipeline
    assert [name for name, _ in loaded.steps] == ["encode", "model"]
    assert loaded["encode"].schema == made["encode"].schema
    assert loaded["encode"].dtype == made["encode"].dtype
    assert certificate.privacy == loaded.privacy_ == made["model"].privacy_
    names = list(made["encode"].schema.feature_names)
    assert certificate.to_dict()["feature_names"] == names
    assert certificate.to_dict()["parameters"]["row_norm"] == made["encode"].schema.row_norm
    assert str(certificate).startswith(type(made["model"]).__name__)
    if hasattr(made["model"], "predict"):
        assert loaded.predict(PEOPLE).tobytes() == made.predict(PEOPLE).tobytes()
    for model in (made, loaded):
        facts = facts_of(model)
        assert [row.name for row in facts.coefficients.rows][: len(names)] == names
        told = {fact.name: fact.value for fact in facts.public}
        assert told["Row norm"] == "1.11803"


def test_what_a_foreign_step_learned_is_refused_with_the_reason(tmp_path: Path) -> None:
    rows = SchemaEncoder(ILLNESS).transform(PEOPLE)
    model = LogisticRegression(classes=["no", "yes"])
    foreign = sklearn_pipeline.make_pipeline(StandardScaler(), model).fit(rows, ILL)
    with pytest.raises(CannotSave, match=r"StandardScaler.*use PrivateStandardScaler"):
        save(foreign, tmp_path / "m.tacit")
    with pytest.raises(TypeError, match=r"StandardScaler.*use PrivateStandardScaler"):
        facts_of(foreign)
    steps = [("encode", SchemaEncoder(ILLNESS)), ("scale", StandardScaler()), ("model", model)]
    with pytest.raises(TypeError, match=r"'scale' \(StandardScaler\) learns"):
        tacit.PrivatePipeline(steps, epsilon=None).fit(PEOPLE, ILL)
    with pytest.raises(ValueError, match="'sex' of X holds str"):
        tacit.PrivatePipeline([("model", model)], epsilon=None).fit(PEOPLE, ILL)


def test_an_unfitted_one_says_so(tmp_path: Path) -> None:
    made = pipeline(ILLNESS, LogisticRegression())
    for ask in (lambda: save(made, tmp_path / "m.tacit"), lambda: facts_of(made)):
        with pytest.raises(NotFittedError):
            ask()


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", 1], ["a", ""], "ab", {"a": 1, "b": 2}])
def test_damaged_names_of_steps_are_refused(names: Any) -> None:
    def edit(record: Any) -> None:
        record["schema"]["steps"] = names

    from tacit.saving.model_file import load_bytes

    with pytest.raises(NotAModel, match="a name each"):
        load_bytes(edited("pipeline", edit))
