"""Summaries: beside statsmodels without noise, covering with it, the same everywhere they show."""

from __future__ import annotations

import html
import importlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api
from sklearn.base import clone

from tacit.cli.models import make_estimator, model_kind
from tacit.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Summary
from tacit.pipeline import PrivatePipeline
from tacit.privacy import Accountant, Budget
from tacit.report import facts_of, render
from tacit.saving import NotAModel, inspect, load, save
from tacit.schema import (
    Category,
    ClassTarget,
    Number,
    OpenCategory,
    Schema,
    SchemaEncoder,
    SchemaError,
)
from tacit.table_model import TableModel
from tests.saving.helpers import edited

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RNG = np.random.default_rng(3)
ROWS = RNG.uniform(-1, 1, (4000, 2))
SCORES = ROWS @ [1.0, -0.5] + 0.3
FAMILY = statsmodels.api.families
WITHOUT_NOISE: dict[str, tuple[Any, Any, Any, str]] = {
    "logistic": (LogisticRegression, RNG.random(4000) < 1 / (1 + np.exp(-SCORES)), "Binomial", ""),
    "linear": (LinearRegression, SCORES + RNG.normal(0, 0.5, 4000), "Gaussian", "HC0"),
    "poisson": (PoissonRegressor, RNG.poisson(np.exp(SCORES)).astype(float), "Poisson", "HC0"),
}


@pytest.mark.parametrize("name", WITHOUT_NOISE)
def test_without_noise_it_is_statsmodels(name: str) -> None:
    model, labels, family, robust = WITHOUT_NOISE[name]
    ours = model(math.inf, row_norm=10.0, inference=0.1).fit(ROWS, labels).summary()
    design = np.column_stack([ROWS, np.ones(4000)])
    glm = statsmodels.api.GLM(labels.astype(float), design, getattr(FAMILY, family)())
    theirs = glm.fit(cov_type=robust or "nonrobust")
    frame = ours.to_frame()
    # statsmodels stops where its deviance stops to change; a ridge of 1e-6 R^2 is left in ours
    np.testing.assert_allclose(frame["coefficient"], theirs.params, rtol=1e-4)
    np.testing.assert_allclose(frame["standard_error"], theirs.bse, rtol=1e-4)
    np.testing.assert_allclose(frame["z"], theirs.tvalues, rtol=1e-3)
    np.testing.assert_allclose(frame[["low", "high"]], theirs.conf_int(), rtol=1e-3, atol=1e-5)


def private(**more: Any) -> LogisticRegression:
    labels = WITHOUT_NOISE["logistic"][1]
    return LogisticRegression(8.0, row_norm=1.5, **more).fit(ROWS, labels)


def test_a_fit_without_a_share_has_none() -> None:
    model = private(inference=0.1)
    assert len(model.summary().rows()) == 3
    model.set_params(inference=0.0).fit(ROWS, WITHOUT_NOISE["logistic"][1])
    with pytest.raises(ValueError, match=r"inference=0\.1"):
        model.summary()


def test_ratios_are_exponentials() -> None:
    row = private(inference=0.1).summary().rows()[0]
    assert row["odds_ratio"] == pytest.approx(math.exp(row["coefficient"]))
    assert row["odds_ratio_low"] == pytest.approx(math.exp(row["low"]))
    assert "odds ratio" in str(private(inference=0.1).summary())


def test_names_are_those_of_the_table(tmp_path: Path) -> None:
    """The same numbers in Python, in a file, in tacit inspect and in a report."""
    ages = RNG.uniform(0, 100, 20_000)
    people = pd.DataFrame({"age": ages, "ill": np.where(ages > RNG.uniform(0, 100), "yes", "no")})
    schema = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
    model = TableModel(schema, LogisticRegression(4.0, inference=0.1)).fit(people)
    found = model.summary()
    assert found.names == ("age", "(intercept)")
    save(model, tmp_path / "model.tacit")
    assert load(tmp_path / "model.tacit").summary() == found
    certificate = inspect(tmp_path / "model.tacit")
    assert str(found).splitlines()[1] in str(certificate)
    assert json.loads(json.dumps(certificate.to_dict()))["summary"][0]["term"] == "age"
    facts = facts_of(model)
    assert facts.summary == found
    assert "Standard errors and tests" in render(facts)
    assert "Standard errors and tests" not in render(facts_of(private()))


def test_errors_in_a_file_are_checked() -> None:
    from tacit.saving.model_file import load_bytes

    assert load_bytes(edited("logistic_errors", lambda record: None)).model.summary()

    def without(record: dict[str, Any]) -> None:
        del record["released"]["estimates_"]

    with pytest.raises(NotAModel):
        load_bytes(edited("logistic_errors", without))


def test_the_command_line_refuses_what_has_no_errors() -> None:
    assert make_estimator(model_kind("poisson"), 1.0, 1e-6, inference=0.2).inference == 0.2
    with pytest.raises(Exception, match="no standard errors"):
        make_estimator(model_kind("svc"), 1.0, 1e-6, inference=0.2)


def test_a_table_without_pandas() -> None:
    row = Summary("m", ("a",), (2.0,), (1.0,)).rows()[0]
    assert (row["z"], round(row["p"], 4)) == (2.0, 0.0455)


# Of 6 terms on so many tables, a coverage of 95 % is within these but for one run in a million.
CELLS = [
    ("logistic", "objective_perturbation", 2_000, 8.0),
    ("linear", "sufficient_statistics", 2_000, 8.0),
    ("huber", "noisy_gradient", 2_000, 8.0),
    ("poisson", "objective_perturbation", 2_000, 8.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mechanism", "n", "epsilon"), CELLS)
def test_intervals_hold_the_truth(
    name: str, mechanism: str, n: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    bench = importlib.import_module("inference")
    line = bench.measure(name, mechanism, n, epsilon, 100)
    assert 0.90 < line.coverage < 0.99


@pytest.mark.slow
def test_intervals_on_rand_agree_with_statsmodels(monkeypatch: pytest.MonkeyPatch) -> None:
    """At epsilon 3: of 60 intervals 95 in 100 overlap, and as many have the same sign."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    bench = importlib.import_module("inference")
    assert bench.agree(bench.rand(fits=3))


@pytest.mark.slow
def test_starved_intervals_are_wide() -> None:
    """Where nothing can be said, the interval says so; the truth is inside."""
    held = []
    for _ in range(40):
        rows = RNG.uniform(-1, 1, (300, 3))
        labels = RNG.random(300) < 1 / (1 + np.exp(-rows @ [2.0, 0.0, -1.0]))
        model = LogisticRegression(0.3, row_norm=1.8, inference=0.1).fit(rows, labels)
        held.append(
            np.abs(model.estimates_[:3] - [2.0, 0.0, -1.0]) < 1.96 * model.standard_errors_[:3]
        )
    assert np.mean(held) > 0.93


WARD = RNG.choice(["A", "B", "C"], 4000)
ON_WARD = np.select([WARD == "B", WARD == "C"], [0.5, -0.4])
ILL = np.where(RNG.random(4000) < 1 / (1 + np.exp(-2 * ROWS[:, 0] - ON_WARD)), "yes", "no")
VISITS = pd.DataFrame({"age": ROWS[:, 0], "ward": WARD, "ill": ILL})
TARGET = ClassTarget("ill", ("no", "yes"))
AGE = Number("age", -1, 1)
BY_WARD = Schema((AGE, Category("ward", ("A", "B", "C"))), TARGET)


def test_a_category_is_compared_with_its_reference_as_in_statsmodels() -> None:
    model = LogisticRegression(math.inf, inference=0.1)
    ours = TableModel(BY_WARD.with_references(), model).fit(VISITS).summary()
    design = np.column_stack([ROWS[:, 0] / 2, WARD == "B", WARD == "C", np.ones(4000)])
    theirs = statsmodels.api.GLM(ILL == "yes", design.astype(float), FAMILY.Binomial()).fit()
    frame = ours.to_frame()
    assert list(frame.index) == ["age", "ward=B", "ward=C", "(intercept)"]
    np.testing.assert_allclose(frame["coefficient"], theirs.params, rtol=1e-4)
    np.testing.assert_allclose(frame["standard_error"], theirs.bse, rtol=1e-4)
    assert "ward: compared with 'A'." in str(ours)


def test_a_category_leaves_the_standard_errors_of_others_as_they_are() -> None:
    found = {}
    for schema in (BY_WARD.with_references(), Schema((AGE,), TARGET)):
        model = LogisticRegression(8.0, inference=0.1, random_state=0)
        frame = TableModel(schema, model).fit(VISITS).summary().to_frame()
        found[schema] = frame["standard_error"]["age"]
    with_ward, without = found.values()
    assert with_ward < 1.3 * without


def _models(schema: Schema, estimator: Any) -> list[Any]:
    encoder, purse = ("schema", SchemaEncoder(schema)), estimator.accountant
    without = clone(estimator).set_params(epsilon=None, accountant=None)
    return [
        TableModel(schema, estimator),
        PrivatePipeline([encoder, ("model", estimator)], epsilon=None),
        PrivatePipeline([encoder, ("model", without)], 8.0, accountant=purse),
    ]


@pytest.mark.parametrize("place", range(3))
def test_all_levels_beside_an_intercept_are_refused_before_anything_is_charged(place: int) -> None:
    accountant = Accountant(Budget(9.0, 1e-6))
    estimator = LogisticRegression(8.0, inference=0.1, accountant=accountant)
    model = _models(BY_WARD, estimator)[place]
    for attempt in (lambda: model.fit(VISITS), model.plan):
        with pytest.raises(SchemaError, match=r"inference=0\.1.*'ward'.*with_references\(\)"):
            attempt()
    assert not accountant.events
    for schema, fit_intercept in ((BY_WARD, False), (BY_WARD.with_references(), True)):
        able = LogisticRegression(8.0, inference=0.1, fit_intercept=fit_intercept)
        assert _models(schema, able)[place].plan() is not None


def test_the_reference_is_saved_and_named_wherever_the_summary_is(tmp_path: Path) -> None:
    schema, said = BY_WARD.with_references(), "ward: compared with 'A'."
    for model in _models(schema, LogisticRegression(8.0, inference=0.1)):
        save(model.fit(VISITS), tmp_path / "model.tacit")
        loaded = load(tmp_path / "model.tacit")
        np.testing.assert_array_equal(loaded.predict(VISITS), model.predict(VISITS))
        certificate = inspect(tmp_path / "model.tacit")
        assert certificate.schema == schema
        assert said in str(certificate)
        assert "compared with <bdi>A</bdi>" in render(facts_of(model))
        assert html.escape(said) in render(facts_of(loaded))


def test_the_report_says_why_its_two_tables_of_coefficients_differ() -> None:
    schema = Schema((AGE,), TARGET)
    with_errors = TableModel(schema, LogisticRegression(8.0, inference=0.1)).fit(VISITS)
    without = TableModel(schema, LogisticRegression(8.0)).fit(VISITS)
    said = "the bias of the ridge, and their errors cover noise and sampling"
    assert said in render(facts_of(with_errors))
    assert said not in render(facts_of(without))


def test_a_model_saved_before_there_were_references_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(Schema, "check_references", lambda self, estimator: None)
        for place, model in enumerate(_models(BY_WARD, LogisticRegression(8.0, inference=0.1))):
            save(model.fit(VISITS), tmp_path / f"{place}.tacit")
    for place in range(3):
        assert load(tmp_path / f"{place}.tacit").predict(VISITS).shape == (4000,)
        assert "ward=A" in str(inspect(tmp_path / f"{place}.tacit"))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_words_to_be_learned_are_refused_before_anything_is_charged(fit_intercept: bool) -> None:
    schema = Schema((AGE, OpenCategory("ward", 5)), TARGET).with_references()
    accountant = Accountant(Budget(9.0, 1e-6))
    estimator = LogisticRegression(inference=0.1, fit_intercept=fit_intercept)
    steps = [("schema", SchemaEncoder(schema)), ("model", estimator)]
    with pytest.raises(SchemaError, match=r"inference=0\.1.*'ward'.*inference=0, or learn"):
        PrivatePipeline(steps, 8.0, accountant=accountant).fit(VISITS)
    assert not accountant.events
