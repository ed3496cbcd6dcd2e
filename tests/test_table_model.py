from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tacit.estimators.parameters import with_table_facts
from tacit.kernel import KernelLogisticRegression
from tacit.linear_model import LinearRegression, LinearSVC, LogisticRegression
from tacit.local import LocalLogisticRegression, LocalRegressor
from tacit.location import Mean
from tacit.privacy import Accountant, Budget, BudgetExceeded
from tacit.schema import (
    Category,
    ClassTarget,
    Ignored,
    Indicator,
    Intervals,
    Number,
    NumberTarget,
    Schema,
    SchemaEncoder,
    SchemaError,
    TableError,
    encode_file,
    encode_table,
)
from tacit.schema import encoding as encoder_module
from tacit.table_model import TableModel

RNG = np.random.default_rng(3)
N = 4000
AGE = RNG.uniform(0, 110, N)
TABLE = pd.DataFrame(
    {
        "id": np.arange(N),
        "age": AGE,
        "sex": RNG.choice(["f", "m", "?"], N),
        "ill": np.where(AGE > 50, "yes", "no"),
        "cost": 10 * AGE,
    }
)
COLUMNS = (Ignored("id"), Number("age", 0, 100), Category("sex", ("f", "m")))
ILL = Schema(COLUMNS, ClassTarget("ill", ("yes", "no")))
COST = Schema(COLUMNS, NumberTarget("cost", 0, 1000))


def test_it_is_the_estimator_on_the_encoded_table() -> None:
    estimator = LogisticRegression(2.0, 1e-6, random_state=0)
    model = TableModel(ILL, estimator).fit(TABLE)
    rows = SchemaEncoder(ILL).fit().transform(TABLE)
    by_hand = LogisticRegression(
        2.0, 1e-6, random_state=0, row_norm=1.25**0.5, classes=["no", "yes"]
    ).fit(rows, TABLE["ill"].to_numpy())
    assert model.estimator_.coef_.tobytes() == by_hand.coef_.tobytes()
    assert model.predict_proba(TABLE).tobytes() == by_hand.predict_proba(rows).tobytes()
    assert model.decision_function(TABLE).tobytes() == by_hand.decision_function(rows).tobytes()
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.privacy_ == by_hand.privacy_
    assert model.plan_ == by_hand.plan_
    assert len(model.get_feature_names_out()) == model.estimator_.coef_.shape[1]
    assert not hasattr(estimator, "coef_")
    assert estimator.row_norm is None


@pytest.mark.parametrize(
    ("schema", "model"),
    [
        (ILL, LogisticRegression(2.0, 1e-6, random_state=0)),
        (ILL, LinearSVC(2.0, 1e-6, random_state=0)),
        (COST, LinearRegression(2.0, 1e-6, random_state=0)),
        (ILL, LocalLogisticRegression(2.0, random_state=0)),
        (COST, LocalRegressor(2.0, random_state=0)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_schema_s_facts_count_whatever_the_parameters_say(schema: Schema, model: Any) -> None:
    odd = clone(model).set_params(row_norm=1e-3)
    by_hand = with_table_facts(model, schema.facts)
    rows, labels = encode_table(TABLE, schema)
    by_hand.fit(rows, labels)
    fitted = TableModel(schema, odd).fit(TABLE).estimator_
    assert fitted.coef_.tobytes() == by_hand.coef_.tobytes()
    assert fitted.privacy_.event == by_hand.privacy_.event
    assert fitted.row_norm_ == schema.row_norm
    assert fitted.row_norm == 1e-3


def test_it_learns() -> None:
    ill = TableModel(ILL, LogisticRegression(2.0)).fit(TABLE)
    assert (ill.predict(TABLE) == TABLE["ill"]).mean() > 0.9
    cost = TableModel(COST, LinearRegression(2.0)).fit(TABLE)
    assert np.abs(cost.predict(TABLE) - TABLE["cost"].clip(0, 1000)).mean() < 60


def test_every_kind_of_table_gives_the_same_answer() -> None:
    model = TableModel(ILL, LogisticRegression(2.0)).fit(pl.from_pandas(TABLE))
    expected = model.predict_proba(TABLE).tobytes()
    for table in (pl.from_pandas(TABLE), TABLE.drop(columns="ill"), TABLE.to_dict("list")):
        assert model.predict_proba(table).tobytes() == expected


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_file_is_the_table_in_it(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"people.{ending}"
    if ending == "csv":
        TABLE.to_csv(path, index=False)
    elif ending == "parquet":
        TABLE.to_parquet(path)
    else:
        pl.from_pandas(TABLE).write_ipc(path, compression="uncompressed")
    shares: list[float] = []
    model = TableModel(ILL, LogisticRegression(2.0, random_state=0))
    from_file = clone(model).fit_file(path, progress=shares.append)
    in_memory = clone(model).fit(TABLE)
    assert from_file.estimator_.coef_.tobytes() == in_memory.estimator_.coef_.tobytes()
    assert shares[-1] == 1.0
    assert shares == sorted(shares)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(2.0, 1e-6, random_state=0),
        LogisticRegression(2.0, 1e-6, random_state=0, mechanism="noisy_gradient", n_records=N),
        LogisticRegression(float("inf")),
        LinearSVC(2.0, 1e-6, random_state=0),
        KernelLogisticRegression(2.0, 1e-6, random_state=0),
        LocalLogisticRegression(2.0, random_state=0),
    ],
    ids=str,
)
def test_a_file_of_indicators_has_the_same_bits_in_an_eighth_of_the_memory(
    estimator: Any, dtype: Any, tmp_path: Path
) -> None:
    TABLE.to_csv(tmp_path / "people.csv", index=False)
    columns = (Intervals("age", (20.0, 50.0)), Category("sex", ("f", "m"), Indicator()))
    schema = Schema(columns, ClassTarget("ill", ("yes", "no")))
    assert schema.has_indicators_alone
    assert not ILL.has_indicators_alone
    assert not schema.with_references().has_indicators_alone
    model = TableModel(schema, estimator, dtype=dtype)
    with mock.patch.object(encoder_module, "encode_file", wraps=encode_file) as encoded:
        from_file = clone(model).fit_file(tmp_path / "people.csv")
    assert encoded.call_args.args[2] == (np.int8 if hasattr(estimator, "plan") else dtype)
    in_memory = clone(model).fit(TABLE)
    scores = (each.decision_function(TABLE).tobytes() for each in (from_file, in_memory))
    assert len(set(scores)) == 1


def test_facts_come_from_the_schema() -> None:
    estimator = LinearRegression(1.0, label_range=(0, 1), row_norm=9.0, n_records=3)
    fitted = TableModel(replace(COST, n_records=N), estimator).fit(TABLE).estimator_
    bounds = fitted.plan_.problem.objective.bounds
    assert (bounds.label_range, bounds.n_records) == ((-500.0, 500.0), N)
    assert bounds.row_norm == fitted.row_norm_ == 1.25**0.5
    # The parameters stay what the user wrote.
    assert fitted.get_params() == estimator.get_params()


def test_half_precision_features() -> None:
    model = TableModel(ILL, LinearSVC(2.0), dtype=np.float32).fit(TABLE)
    assert (model.predict(TABLE) == TABLE["ill"]).mean() > 0.9
    assert not hasattr(model, "predict_proba")


def test_guessed_lines_are_refused_or_said() -> None:
    guessed = replace(ILL, unconfirmed=("age", "ill"))
    with pytest.raises(SchemaError, match=r"'age', 'ill'.*allow_unconfirmed=True"):
        TableModel(guessed, LogisticRegression(1.0)).fit(None)
    model = TableModel(guessed, LogisticRegression(1.0), allow_unconfirmed=True).fit(TABLE)
    assert "'age', 'ill' was guessed from the data" in model.privacy_.statement()
    assert "guessed" not in TableModel(ILL, LogisticRegression(1.0)).fit(TABLE).privacy_.statement()


def test_the_accountant_is_asked_before_the_file_is_opened() -> None:
    accountant = Accountant(Budget(1.0, 1e-6))
    model = TableModel(ILL, LogisticRegression(5.0, 1e-6, accountant=accountant))
    with pytest.raises(BudgetExceeded):
        model.fit_file("no such file.csv")
    assert accountant.events == ()
    TableModel(ILL, LogisticRegression(0.5, 1e-7, accountant=accountant)).fit(TABLE)
    assert len(accountant.events) == 1


def test_nothing_is_charged_for_a_file_that_is_not_there() -> None:
    accountant = Accountant(Budget(5.0, 1e-5))
    with pytest.raises(TableError, match="no such file"):
        TableModel(ILL, LogisticRegression(1.0, accountant=accountant)).fit_file("nothing.csv")
    assert accountant.events == ()


@pytest.mark.parametrize(
    ("schema", "estimator", "error", "why"),
    [
        (COST, LogisticRegression(), SchemaError, "needs a schema whose target has classes"),
        (ILL, LinearRegression(), SchemaError, "target has lower and upper"),
        (Schema(COLUMNS), LogisticRegression(), SchemaError, "target has classes"),
        (COST, Mean(), TypeError, "for a classifier or a regressor, and Mean is none"),
        (ILL, LogisticRegression(-1.0), ValueError, "epsilon"),
        (ILL, LogisticRegression(mechanism="magic"), ValueError, "magic"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_reading(
    schema: Schema, estimator: Any, error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        TableModel(schema, estimator).fit_file("no such file.csv")


@pytest.mark.parametrize("n", [10, 11])  # as many records as the name has letters, or not
def test_a_name_is_not_whose_the_records_are(n: int) -> None:
    table = TABLE[:n].assign(patient_id=np.arange(n))
    model = TableModel(ILL, LogisticRegression())
    for given, way in (("unit", "unit"), ("y", "target")):
        with pytest.raises(TableError) as error:
            model.fit(table, **{given: "patient_id"})
        assert f"table['patient_id'], or declare it in the schema: schema.with_{way}(" in str(error)
    remedied = TableModel(ILL.with_unit("patient_id"), LogisticRegression()).fit(table)
    for fitted in (remedied, model.fit(table, unit=table["patient_id"])):
        assert fitted.privacy_.relation.by_person


def test_an_unfitted_model_says_so() -> None:
    model = TableModel(ILL, LogisticRegression())
    for ask in (lambda: model.predict(TABLE), lambda: model.privacy_, lambda: model.plan_):
        with pytest.raises(NotFittedError):
            ask()


def test_a_plan_needs_no_data() -> None:
    plan = TableModel(ILL, LogisticRegression(1.0, 1e-6)).plan(n_records=100_000)
    assert plan.problem.n_features == 3
    assert plan.event == TableModel(ILL, LogisticRegression(1.0, 1e-6)).fit(TABLE).plan_.event


def test_without_a_budget_there_is_no_plan() -> None:
    model = TableModel(ILL, LogisticRegression(np.inf)).fit(TABLE)
    assert model.plan_ is None
    assert model.privacy_.voided_by


@pytest.mark.parametrize("schema", ["schema.toml", {"age": "number"}, None])
def test_what_is_no_schema_is_refused_with_how_to_make_one(schema: Any) -> None:
    model = TableModel(schema, LogisticRegression(1.0, 1e-6))
    for fit in (model.fit, model.fit_file, model.fit_records):
        with pytest.raises(TypeError, match=r"schema must be a Schema, got .*Schema\.from_file"):
            fit(None)
    with pytest.raises(TypeError, match=r"schema must be a Schema, got .*Schema\.from_file"):
        SchemaEncoder(schema).facts_out()


def test_what_keeps_no_budget_is_refused_before_the_table_is_opened() -> None:
    model = TableModel(ILL, LogisticRegression(1.0, 1e-6, accountant="survey.ledger"))
    with pytest.raises(TypeError, match="accountant must keep a budget, got a str"):
        model.fit_file("not_there.csv")
