"""Evaluations of fitted models: charged, private whatever the record, and of any model."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression as SklearnLinear
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.metrics import accuracy_score, r2_score

import tacit
from tacit.linear_model import LinearSVC, LogisticRegression, Ridge
from tacit.location import Mean
from tacit.metrics import Evaluation, TooFewRecords, evaluate
from tacit.metrics.evaluate import plan_for
from tacit.metrics.predictions import answers_of
from tacit.noise import Norm, ReplayMismatch
from tacit.privacy import Accountant, Budget, BudgetExceeded, Relation, SumOfEpsilons
from tacit.queries import Sensitivity
from tacit.queries.evaluation import Answered, TwoClassCells
from tacit.schema import Category, ClassTarget, Number, Schema, SchemaEncoder
from tacit.table_model import TableModel
from tacit.testing import replay
from tests.metrics.helpers import counted_on

INF = float("inf")
Data = tuple[Any, Any, Any]


def records(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (n, 2))
    return rows, (rows[:, 0] + rng.normal(0, 0.5, n) > 0).astype(int)


@pytest.fixture(scope="module")
def classifier() -> Any:
    return SklearnLogistic().fit(*records(200, seed=9))


@pytest.fixture(scope="module")
def regressor() -> Any:
    rows, _ = records(200, seed=9)
    return SklearnLinear().fit(rows, 2 * rows[:, 0])


@pytest.fixture(scope="module")
def of_three() -> Any:
    rows, labels = records(300, seed=9)
    return SklearnLogistic().fit(rows, labels + (rows[:, 1] > 0.3))


def judged(model: Any, relation: str, **more: Any) -> Any:
    """Return a function that evaluates (rows, labels, unit) with much noise on few records."""

    def run(data: Data) -> Evaluation | None:
        rows, labels, unit = data
        try:
            return evaluate(
                model, rows, labels, unit=unit, epsilon=2.0, relation=relation, bins=4, **more
            )
        except TooFewRecords:  # which is said in view of what was released
            return None

    return run


ODD = [(np.nan, 1), (np.inf, 0), (1e300, 1), (0.5, None), (0.5, "text"), (-0.5, 7), (0.5, math.nan)]


def neighbours(relation: str) -> list[tuple[Data, Data]]:
    """Return pairs of data sets that differ in one odd record, or person."""
    rows, labels = records(50)
    found: list[tuple[Data, Data]] = []
    for value, label in ODD:
        more = np.vstack([rows, [value, 0.0]])
        named = [*labels.tolist(), label]
        here: Data = (more, named, None)
        there: Data = (rows, labels.tolist(), None)
        if relation == "replace":
            other = more.copy()
            other[-1] = [-0.9, 0.4]
            there = (other, [*labels.tolist(), 0], None)
        if relation == "add_remove_person":
            people = [str(i % 20) for i in range(50)]
            thrice = (np.vstack([more, more[-1:], more[:1]]), [*named, label, 1])
            here, there = (*thrice, [*people, "x", "x", "x"]), (rows, labels.tolist(), people)
        found.append((here, there))
    return found


@pytest.mark.parametrize("relation", ["add_remove", "replace", "add_remove_person"])
@pytest.mark.parametrize("name", ["classifier", "regressor", "of_three"])
def test_replay_on_neighbours(name: str, relation: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(name)
    more = {"label_range": (-2.0, 2.0)} if name == "regressor" else {}
    run = judged(model, relation, **more)
    for here, there in neighbours(relation):
        assert replay(run, here, there) == 1
        assert replay(run, there, here) == 1


def test_replay_catches_a_sensitivity_of_one_under_replace(
    classifier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Sensitivity(1.0, Norm.L2, "evaluation.md#1-sensitivity")
    monkeypatch.setattr(TwoClassCells, "sensitivity", lambda self, facts: one)
    here, there = neighbours("replace")[2]
    with pytest.raises(ReplayMismatch):
        replay(judged(classifier, "replace"), here, there)


def test_noise_is_what_it_says_and_neither_less_nor_more(classifier: Any) -> None:
    rows, labels = records(500)
    plan = plan_for(classifier, Budget(1.0, 1e-6), bins=4096)
    answers = answers_of(classifier, rows)
    exact = plan.cells.total(Answered(answers, labels), plan.facts)
    noise = counted_on(plan, classifier, rows, labels).value - exact
    low, high = chi2.ppf([1e-9, 1 - 1e-9], noise.size)
    square = float(np.sum((noise / plan.noise_std) ** 2))
    assert low < square < high
    for factor in (0.9, 1.1):
        assert not low < square * factor**2 < high


def test_it_is_charged_before_records_are_read(classifier: Any) -> None:
    accountant = Accountant(Budget(1.0, 1e-6), SumOfEpsilons())
    rows, labels = records(9_000)
    found = evaluate(classifier, rows, labels, epsilon=0.6, accountant=accountant)
    assert accountant.spent() == pytest.approx(0.6, rel=1e-6)
    assert found.privacy_.within(0.6, 1e-6)
    assert "the model that was evaluated is public" in str(found)

    class Unreadable:
        shape = (10, 2)

        def __getitem__(self, place: Any) -> Any:
            raise AssertionError("read before it was paid for")

    with pytest.raises(BudgetExceeded):
        evaluate(classifier, Unreadable(), [0] * 10, epsilon=0.6, accountant=accountant)


def test_what_would_be_noise_is_refused_before_it_is_paid_for(classifier: Any) -> None:
    accountant = Accountant(Budget(1.0, 1e-6))
    rows, labels = records(100)
    with pytest.raises(TooFewRecords, match=r"Use about \d+ records.*bins\.$"):
        evaluate(
            classifier, rows, labels, epsilon=0.1, n_records=100, accountant=accountant, bins=16
        )
    assert accountant.spent() == 0.0
    # where the number is private, the noisy counts tell
    with pytest.raises(TooFewRecords, match=r"Use about.* is spent all the same.*n_records"):
        evaluate(classifier, rows, labels, epsilon=0.1, accountant=accountant, bins=16)
    assert accountant.spent() > 0.0
    with pytest.raises(TooFewRecords, match=r"noisy counts can tell\."):  # a number far too large
        evaluate(classifier, rows, labels, epsilon=0.1, n_records=10**6, bins=16)


def test_seeded_noise_promises_nothing(classifier: Any) -> None:
    rows, labels = records(9_000)
    one, other = (evaluate(classifier, rows, labels, epsilon=1.0, random_state=3) for _ in range(2))
    assert one.privacy_.voided_by
    assert one["auc"] == other["auc"]


def test_models_of_every_kind() -> None:
    rows, labels = records(20_000)
    for model in (
        LogisticRegression(1.0, row_norm=1.5, classes=[0, 1]),
        LinearSVC(1.0, row_norm=1.5, classes=[0, 1]),
        RandomForestClassifier(5, max_depth=3, random_state=0),
    ):
        fitted = model.fit(rows[:10_000], labels[:10_000])
        found = evaluate(fitted, rows[10_000:], labels[10_000:], epsilon=INF)
        share = accuracy_score(labels[10_000:], fitted.predict(rows[10_000:]))
        assert found["accuracy"].value == pytest.approx(share, abs=1e-12)
        assert ("brier" in found.metrics) == hasattr(fitted, "predict_proba")
    numbers = np.clip(2 * rows[:, 0] + np.random.default_rng(0).normal(size=20_000), -3, 3)
    ridge = Ridge(1.0, row_norm=1.5, label_range=(-3.0, 3.0)).fit(rows, numbers)
    found = evaluate(ridge, rows, numbers, epsilon=INF)
    assert found["r2"].value == pytest.approx(r2_score(numbers, ridge.predict(rows)), abs=1e-5)
    with pytest.raises(TypeError, match="classifier or a regressor"):
        evaluate(Mean(row_norm=1.0).fit(rows), rows, labels, epsilon=1.0)


def schema() -> Schema:
    columns = (Number("age", 0, 100), Category("town", ("a", "b")))
    return Schema(columns, ClassTarget("ill", ("no", "yes")))


def people(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    age = rng.uniform(0, 100, n)
    return pd.DataFrame(
        {
            "age": age,
            "town": rng.choice(["a", "b"], n),
            "ill": np.where(age + rng.normal(0, 20, n) > 50, "yes", "no"),
            "who": [f"p{i // 2}" for i in range(n)],
        }
    )


@pytest.mark.parametrize("kind", ["table model", "pipeline"])
def test_models_of_raw_tables(kind: str) -> None:
    table = people(20_000)
    estimator = LogisticRegression(1.0, 1e-6)
    model: Any = TableModel(schema(), estimator)
    if kind == "pipeline":
        model = tacit.PrivatePipeline(
            [("encode", SchemaEncoder(schema())), ("model", estimator)], epsilon=None
        )
    model = model.fit(table)
    table.loc[0, "ill"] = None
    table.loc[1, "ill"] = "perhaps"
    table.loc[2, "age"] = np.nan
    found = evaluate(model, table, epsilon=INF)
    assert found.n_records.value == 19_998
    kept = table[table["ill"].isin(["no", "yes"])]
    assert found["accuracy"].value == pytest.approx(model.score(kept))
    by_person = evaluate(model, table, unit=table["who"], epsilon=INF)
    assert 9_998 <= by_person.n_records.value <= 10_000
    assert by_person.privacy_.relation is Relation.ADD_REMOVE_PERSON


def test_people_need_names(classifier: Any) -> None:
    rows, labels = records(100)
    with pytest.raises(ValueError, match="no unit"):
        evaluate(classifier, rows, labels, epsilon=1.0, relation="add_remove_person")
    with pytest.raises(ValueError, match="'replace'"):
        evaluate(classifier, rows, labels, epsilon=1.0, relation="replace", unit=np.arange(100))
    with pytest.raises(ValueError, match="different lengths"):
        evaluate(classifier, rows, labels, epsilon=1.0, unit=np.arange(99))


def test_a_record_the_model_fails_on_does_not_count(classifier: Any) -> None:
    rows, labels = records(1_000)
    rows[[3, 500, 999], 0] = np.nan, np.inf, -np.inf
    found = evaluate(classifier, rows, labels, epsilon=INF)
    assert found.n_records.value == 997
    kept = np.isfinite(rows).all(axis=1)
    share = accuracy_score(labels[kept], classifier.predict(rows[kept]))
    assert found["accuracy"].value == pytest.approx(share)


def test_pure_budgets_have_laplace_noise(classifier: Any) -> None:
    rows, labels = records(20_000)
    found = evaluate(classifier, rows, labels, epsilon=1.0, delta=0.0)
    assert found.privacy_.epsilon(0.0) == 1.0
    assert found.noise_std == pytest.approx(math.sqrt(2.0))


def test_what_is_refused(classifier: Any, regressor: Any) -> None:
    rows, labels = records(100)
    with pytest.raises(ValueError, match="pass y"):
        evaluate(classifier, rows, epsilon=1.0)
    with pytest.raises(ValueError, match="different lengths"):
        evaluate(classifier, rows, labels[:-1], epsilon=1.0)
    accountant = Accountant(Budget(1.0, 1e-6))
    with pytest.raises(ValueError, match="X has 1 columns, and the model was fitted to 2"):
        evaluate(classifier, rows[:, :1], labels, epsilon=1.0, accountant=accountant)
    assert accountant.spent() == 0.0
    with pytest.raises(ValueError, match="label_range"):
        evaluate(regressor, rows, labels, epsilon=1.0)
    with pytest.raises(ValueError, match="rising"):
        evaluate(regressor, rows, labels, epsilon=1.0, label_range=(1.0, 1.0))
    with pytest.raises(ValueError, match="edges that rise"):
        evaluate(classifier, rows, labels, epsilon=1.0, bins=[0.0, 0.4, 1.0])


@pytest.mark.parametrize("odd", ["a word", None, 1.7e308])
def test_one_odd_record_in_a_list_changes_no_other(classifier: Any, odd: Any) -> None:
    """A word turned all numbers into words, and a number that overflows was warned of."""
    rows, labels = records(400)
    several: list[list[Any]] = rows.tolist()
    several[0] = [odd, odd]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = evaluate(classifier, several, labels, epsilon=INF)
    assert not said
    assert 399 <= found.n_records.value <= 400


def test_an_evaluation_is_pickled_with_its_curves(classifier: Any) -> None:
    found = evaluate(classifier, *records(4000), epsilon=math.inf)
    again = pickle.loads(pickle.dumps(found))
    assert again.metrics == found.metrics
    np.testing.assert_array_equal(again.curves["roc"].y, found.curves["roc"].y)


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(row_norm=2.0), Ridge(label_range=(0, 1)), SklearnLinear()],
    ids=["logistic", "ridge", "of scikit-learn"],
)
def test_a_model_that_is_not_fitted_is_refused_before_the_charge(model: Any) -> None:
    accountant = Accountant(Budget(1.0, 1e-5))
    rows, labels = records(50)
    with pytest.raises(NotFittedError, match=r"not fitted yet.*Nothing was charged"):
        evaluate(model, rows, labels, epsilon=1.0, label_range=(0, 1), accountant=accountant)
    assert accountant.events == ()
