"""What `fit(X, y, unit=...)` promises, refuses and leaves behind."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import GridSearchCV

from tacit.erm import Objective, minimize
from tacit.erm.losses import LogisticLoss
from tacit.linear_model import LogisticRegression, Ridge
from tacit.local import LocalLogisticRegression
from tacit.location import Mean, Median
from tacit.pipeline import PrivatePipeline
from tacit.privacy import Accountant, Budget, Guarantee, Relation
from tacit.records import Bounds, MemoryRecords
from tacit.records.grouped import PeopleInMemory
from tacit.records.privacy_unit import people_of
from tacit.registry import MODELS, ModelSpec
from tacit.report import facts_of, render
from tacit.saving import inspect, load, save
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder, SchemaError, Unit
from tacit.table_facts import TableFacts
from tacit.table_model import TableModel
from tests.declared import PROBLEMS, made

SECRET = "Zebulon"
CENTRAL = {
    name: problem
    for name, problem in PROBLEMS.items()
    if Relation.ADD_REMOVE in problem[0].relations
}
PERSON = "one person with all their records"


def people(n: int) -> list[Any]:
    return [SECRET, *(f"{SECRET}{place % (n // 2)}" for place in range(1, n))]


def fitted(spec: ModelSpec, example: Any, **parameters: Any) -> Any:
    told = {} if example.labels is None else {"y": example.labels}
    estimator = made(spec, example, epsilon=1.0, delta=1e-5, **parameters)
    return estimator.fit(example.rows, unit=people(len(example.rows)), **told)


@pytest.mark.parametrize("name", CENTRAL)
def test_the_promise_names_the_person_and_survives_a_file(name: str, tmp_path: Path) -> None:
    spec, example = CENTRAL[name]
    model = fitted(spec, example)
    assert f"adding or removing {PERSON}" in model.privacy_.statement()
    assert "any one person" in model.privacy_.statement()
    assert model.privacy_.relation is Relation.ADD_REMOVE_PERSON
    assert SECRET.encode() not in pickle.dumps(model)
    save(model, tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    assert again.privacy_ == model.privacy_
    assert f"adding or removing {PERSON}" in inspect(tmp_path / "model.tacit").statement
    page = render(facts_of(model))
    assert PERSON in page
    assert "A person with several records is protected less" not in page
    for text in (page, (tmp_path / "model.tacit").read_bytes().decode("latin-1"), repr(model)):
        assert SECRET not in text


def test_a_certificate_says_it_and_older_readers_cannot_mistake_it() -> None:
    model = fitted(*CENTRAL["logistic-binary"])
    text = model.privacy_.to_json()
    assert '"relation": "add_remove_person"' in text
    assert Guarantee.from_json(text) == model.privacy_


@pytest.mark.parametrize("name", ["logistic-binary", "mean-ball", "median-middle"])
def test_replacing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="brings any number"):
        fitted(*CENTRAL[name], relation="replace", n_records=50)


@pytest.mark.parametrize("name", CENTRAL)
def test_a_relation_of_people_needs_them(name: str) -> None:
    spec, example = CENTRAL[name]
    model = made(spec, example, relation="add_remove_person")
    told = {} if example.labels is None else {"y": example.labels}
    with pytest.raises(ValueError, match="unit="):
        model.fit(example.rows, **told)


def test_how_many_people_is_not_read_off() -> None:
    with pytest.raises(ValueError, match="not known before"):
        fitted(*CENTRAL["logistic-binary"], n_records="infer")


def test_an_accountant_of_records_does_not_pay_for_people() -> None:
    model, example = LogisticRegression, CENTRAL["logistic-binary"][1]
    unit = people(len(example.rows))
    for relation, works in ((Relation.ADD_REMOVE, False), (Relation.ADD_REMOVE_PERSON, True)):
        accountant = Accountant(Budget(2.0, 1e-4, relation))
        told = model(1.0, 1e-5, classes=[0, 1], row_norm=2.0, accountant=accountant)
        if works:
            told.fit(example.rows, example.labels, unit=unit)
            assert accountant.spent() > 0.0
        else:
            with pytest.raises(ValueError, match="ADD_REMOVE_PERSON"):
                told.fit(example.rows, example.labels, unit=unit)
            assert accountant.spent() == 0.0


@pytest.mark.parametrize(
    "unit", [[SECRET] * 3, SECRET, np.array([[SECRET]] * 50), iter([SECRET] * 50), {SECRET: 1}]
)
def test_wrong_units_are_refused_before_the_charge_and_not_quoted(unit: Any) -> None:
    example = CENTRAL["logistic-binary"][1]
    accountant = Accountant(Budget(2.0, 1e-4, Relation.ADD_REMOVE_PERSON))
    model = LogisticRegression(1.0, 1e-5, classes=[0, 1], row_norm=2.0, accountant=accountant)
    with pytest.raises((TypeError, ValueError)) as error:
        model.fit(example.rows, example.labels, unit=unit)
    assert SECRET not in str(error.value)
    assert accountant.spent() == 0.0


def test_sources_and_relations_go_together() -> None:
    rows, labels = np.ones((6, 2)), np.ones(6)
    bounds = Bounds(row_norm=2.0)
    plain = MemoryRecords(rows, labels, bounds)
    of_people = PeopleInMemory(rows, labels, bounds, people_of([1, 1, 2, 2, 3, 3]))
    objective = Objective(LogisticLoss(), bounds)
    for records, relation in (
        (plain, Relation.ADD_REMOVE_PERSON),
        (of_people, Relation.ADD_REMOVE),
        (of_people, Relation.REPLACE),
    ):
        with pytest.raises(ValueError, match="ADD_REMOVE_PERSON"):
            minimize(records, objective, Budget(1.0, 1e-5, relation))


def test_a_plan_says_whom_it_protects() -> None:
    model = LogisticRegression(classes=[0, 1], row_norm=2.0, relation="add_remove_person")
    assert f"protects {PERSON}; one record of each" in str(model.plan(4))
    model.set_params(mechanism="noisy_gradient")
    assert f"protects {PERSON}; the sum over a person's records" in str(model.plan(4))
    assert PERSON not in str(model.set_params(relation="add_remove").plan(4))


def test_records_of_no_class_are_nobodys() -> None:
    """Their identifiers go with them: what is left is what would have been without them."""
    rng = np.random.default_rng(0)
    rows, unit = rng.standard_normal((300, 2)), rng.integers(0, 60, 300)
    labels = rng.integers(0, 3, 300)
    told: dict[str, Any] = {"classes": [0, 1], "row_norm": 2.0, "random_state": 1}
    for mechanism in ("noisy_gradient", "objective_perturbation"):
        model = LogisticRegression(**told, mechanism=mechanism)
        one = model.fit(rows, labels, unit=unit).coef_
        kept = labels < 2
        other = model.fit(rows[kept], labels[kept], unit=unit[kept]).coef_
        np.testing.assert_allclose(one, other, rtol=1e-7)


def test_without_noise_every_record_counts() -> None:
    rng = np.random.default_rng(0)
    rows, unit = rng.standard_normal((300, 2)), rng.integers(0, 20, 300)
    y = rows @ [1.0, -1.0]
    told: dict[str, Any] = {"row_norm": 9.0, "label_range": (-9, 9), "alpha": 1.0}
    models = [Ridge(math.inf, 0.0, **told).fit(rows, y, unit=u) for u in (None, unit)]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_)


def test_many_records_a_person_do_no_harm() -> None:
    """The slope of a sum of a hundred turns fast; a step for as many people would overshoot."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (200_000, 2))
    labels = rows @ [2.0, -1.0] > rng.logistic(scale=0.2, size=200_000)
    unit = np.arange(200_000) % 2000
    model = LogisticRegression(4.0, 1e-6, row_norm=1.5, mechanism="noisy_gradient")
    assert model.fit(rows, labels, unit=unit).score(rows, labels) > 0.75


def test_locations_of_people() -> None:
    unit = np.repeat(np.arange(2000), np.where(np.arange(2000) < 10, 500, 1))
    # ten people have most of the records
    rows = np.where(unit < 10, 1.0, -1.0) + np.random.default_rng(0).uniform(-0.1, 0.1, unit.size)
    rows = rows[:, None]
    assert Mean(5.0, 1e-5, row_norm=2.0).fit(rows, unit=unit).location_[0] < -0.8
    assert Median(5.0, bounds=(-2, 2)).fit(rows, unit=unit).location_[0] < -0.8
    assert Median(5.0, bounds=(-2, 2)).fit(rows).location_[0] > 0.8


def test_scikit_learn_passes_a_unit_on() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((400, 2)), rng.integers(0, 2, 400)
    model = LogisticRegression(1.0, 1e-5, classes=[0, 1], row_norm=2.0)
    search = GridSearchCV(model, {"regularization": [10.0, 20.0]}, cv=2)
    search.fit(rows, labels, unit=np.arange(400) % 100)
    assert search.best_estimator_.privacy_.relation.by_person


SCHEMA = Schema(
    (Number("age", 0, 100), Unit("patient")), ClassTarget("ill", ("no", "yes")), n_records=None
)


def table(n: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 100, n)
    ill = np.where(age > 50, "yes", np.where(age > 10, "no", "?"))
    return pd.DataFrame({"age": age, "patient": people(n), "ill": ill})


def test_a_table_model_takes_its_unit_from_the_schema(tmp_path: Path) -> None:
    model = TableModel(SCHEMA, LogisticRegression(1.0, 1e-5)).fit(table())
    assert f"adding or removing {PERSON}" in model.privacy_.statement()
    assert model.get_feature_names_out().tolist() == ["age"]
    assert PERSON in str(model.plan())
    save(model, tmp_path / "m.tacit")
    assert load(tmp_path / "m.tacit").schema.unit == "patient"
    assert SECRET.encode() not in (tmp_path / "m.tacit").read_bytes()
    assert SECRET.encode() not in pickle.dumps(model)
    asked = table().drop(columns="patient")  # nobody has to be named for a prediction
    assert set(model.predict(asked)) <= {"no", "yes"}
    assert model.score(asked) > 0.5


def test_a_table_model_takes_a_unit_beside_the_table() -> None:
    frame = table()
    bare = Schema((Number("age", 0, 100),), SCHEMA.target)
    model = TableModel(bare, LogisticRegression(1.0, 1e-5))
    for told in ({}, {"y": frame["ill"]}):
        left = frame.drop(columns=["patient", *(["ill"] if told else [])])
        fit = model.fit(left, unit=frame["patient"], **told)
        assert fit.privacy_.relation.by_person
    with pytest.raises(SchemaError, match="unit"):
        TableModel(SCHEMA, LogisticRegression()).fit(frame, unit=frame["patient"])
    with pytest.raises(ValueError, match="identifier"):
        model.fit(frame, unit=frame["patient"][:3])


def test_a_table_model_refuses_replace_and_a_table_without_the_unit() -> None:
    with pytest.raises(ValueError, match="brings any number"):
        TableModel(SCHEMA, LogisticRegression(relation="replace")).fit(table())
    with pytest.raises(ValueError, match="'patient'"):
        TableModel(SCHEMA, LogisticRegression()).fit(table().drop(columns="patient"))


@pytest.mark.parametrize("mechanism", ["auto", "noisy_gradient"])
@pytest.mark.parametrize("told", [{"max_weight": 2.0}, {"class_weight": "balanced"}])
def test_with_weights_one_record_of_each_is_used(mechanism: str, told: dict[str, Any]) -> None:
    model = LogisticRegression(classes=[0, 1], row_norm=2.0, mechanism=mechanism, **told)
    model.set_params(relation="add_remove_person")
    assert f"protects {PERSON}; one record of each" in str(model.plan(4))


def test_weights_of_classes_and_a_unit_in_a_schema() -> None:
    model = TableModel(SCHEMA, LogisticRegression(1.0, 1e-5, class_weight="balanced")).fit(table())
    assert f"adding or removing {PERSON}" in model.privacy_.statement()


def test_weights_stay_with_their_records() -> None:
    """Without noise weights of 0 and 1 are a choice of records, however people are sorted."""
    rng = np.random.default_rng(0)
    rows, unit = rng.standard_normal((300, 2)), rng.integers(0, 20, 300)
    labels, weights = rows[:, 0] + rng.standard_normal(300) > 0, rng.integers(0, 2, 300)
    known: dict[str, Any] = {"row_norm": 9.0, "classes": [False, True], "max_weight": 1.0}
    model = LogisticRegression(math.inf, 0.0, **known, regularization=1.0)
    whole = model.fit(rows, labels, weights, unit).coef_
    kept = weights > 0
    part = model.fit(rows[kept], labels[kept], weights[kept], unit[kept]).coef_
    np.testing.assert_allclose(whole, part, atol=1e-8)


def test_a_local_estimator_takes_no_table_of_people() -> None:
    local = TableModel(SCHEMA, LocalLogisticRegression(1.0))
    with pytest.raises(ValueError, match="take its unit out"):
        local.fit(table())
    bare = TableModel(Schema((Number("age", 0, 100),), SCHEMA.target), LocalLogisticRegression(1.0))
    with pytest.raises(ValueError, match="take its unit out"):
        bare.fit(table(), unit=people(500))


class Halved(TransformerMixin, BaseEstimator):
    """A public step that says nothing of people."""

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        assert facts is not None
        return TableFacts(facts.names, facts.row_norm / 2, classes=facts.classes)

    def transform(self, X: Any) -> Any:
        return X / 2


@pytest.mark.parametrize("estimator", [LogisticRegression(1.0, 1e-5), Mean(1.0, 1e-5)], ids=str)
def test_people_go_through_a_pipeline(estimator: Any) -> None:
    steps = [("encode", SchemaEncoder(SCHEMA)), ("halve", Halved()), ("model", estimator)]
    model = PrivatePipeline(steps, epsilon=None).fit(table())
    assert model.privacy_.relation.by_person
    assert model.plan().budget.relation.by_person
    bare = SchemaEncoder(Schema((Number("age", 0, 100),), SCHEMA.target))
    model = PrivatePipeline([("encode", bare), *steps[1:]], epsilon=None)
    assert model.fit(table(), unit=people(500)).privacy_.relation.by_person
    assert not model.fit(table()).privacy_.relation.by_person
    replacing = estimator.__class__(1.0, 1e-5, relation="replace", n_records=500)
    with pytest.raises(ValueError, match="brings any number"):
        PrivatePipeline([*steps[:2], ("model", replacing)], epsilon=None).fit(table())


def test_a_pipeline_is_scored_without_naming_anybody() -> None:
    steps = [("encode", SchemaEncoder(SCHEMA)), ("model", LogisticRegression(1.0, 1e-5))]
    model = PrivatePipeline(steps, epsilon=None).fit(table())
    assert model.score(table().drop(columns="patient")) > 0.5


def test_a_table_of_people_can_be_read_again() -> None:
    unread = SchemaEncoder(SCHEMA).unread(table())
    for _ in range(2):
        rows, _ = unread.read()
        assert len(unread.identifiers()) == len(rows) < 500
    assert SECRET not in repr(unread)


def test_every_central_model_is_here() -> None:
    words = {spec.word for spec in MODELS if Relation.ADD_REMOVE in spec.relations}
    assert words == {spec.word for spec, _ in CENTRAL.values()}


INTERVALS = [
    LogisticRegression(8.0, 1e-6, row_norm=2.0, inference=0.1),
    LogisticRegression(8.0, 1e-6, row_norm=2.0, inference=0.1, mechanism="noisy_gradient"),
    LogisticRegression(math.inf, 0.0, row_norm=2.0, inference=0.1),
    Mean(8.0, 1e-6, row_norm=2.0, inference=0.1),
    Mean(math.inf, 0.0, row_norm=2.0, inference=0.1),
]


@pytest.mark.parametrize("model", INTERVALS, ids=lambda m: f"{type(m).__name__}-{m.epsilon}")
def test_standard_errors_are_those_of_as_many_people(model: Any) -> None:
    """A person's records, all alike, say no more than one of them."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (4000, 2))
    labels = rows[:, 0] > rng.logistic(size=4000)
    once = model.fit(rows, labels).standard_errors_
    again = model.fit(np.tile(rows, (5, 1)), np.tile(labels, 5), unit=np.tile(np.arange(4000), 5))
    assert again.privacy_.relation.by_person
    assert np.all(again.standard_errors_ / once > 0.8)
    assert np.all(again.standard_errors_ / once < 1.25)
