"""Additive models: plans, guarantees, replay, predictions that add up, errors before data."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from tacit.additive import AdditiveClassifier, AdditiveRegressor
from tacit.additive import bins as bins_module
from tacit.noise import ReplayMismatch
from tacit.privacy import Accountant, Budget, BudgetExceeded, Gaussian, Relation
from tacit.schema import (
    Boolean,
    Category,
    ClassTarget,
    Fill,
    Intervals,
    Number,
    NumberTarget,
    OpenCategory,
    Schema,
)
from tacit.testing import replay

N = 6_000
WIDE = (-1e7, 1e7)
COLUMNS = (
    Number("age", *WIDE),
    Number("income", *WIDE),
    Category("town", ("a", "b", "c", "rare")),
    Boolean("smoker"),
    Number("noise", *WIDE),
)
TWO = Schema(COLUMNS, ClassTarget("ill", ("no", "yes")))
THREE = Schema(COLUMNS, ClassTarget("grade", ("high", "low", "mid")))
NUMBER = Schema(COLUMNS, NumberTarget("cost", 0.0, 100.0))


def table(n: int = N, seed: int = 0) -> dict[str, Any]:
    """Return a table with a curve, a spike at 0, words and a column of noise."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n).astype(np.float64)
    income = np.where(rng.random(n) < 0.6, 0.0, np.exp(rng.normal(9.0, 1.0, n)))
    town = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    smoker = rng.random(n) < 0.3
    score = np.abs(age - 50) / 12 - 2 + 1.5 * (income == 0) + smoker - (town == "b")
    yes = rng.random(n) < 1 / (1 + np.exp(-score))
    age[rng.random(n) < 0.05] = np.nan
    return {
        "age": age,
        "income": income,
        "town": town,
        "smoker": np.where(smoker, "yes", "no"),
        "noise": rng.standard_normal(n),
        "ill": np.where(yes, "yes", "no"),
        "grade": np.where(score > 1, "high", np.where(score < -1, "low", "mid")),
        "cost": np.clip(50 + 10 * score + rng.normal(0, 5, n), 0, 100),
    }


CASES = {
    "two": (AdditiveClassifier, TWO),
    "three": (AdditiveClassifier, THREE),
    "number": (AdditiveRegressor, NUMBER),
}


def made(case: str, **parameters: Any) -> Any:
    """Return an unfitted model of a case."""
    cls, schema = CASES[case]
    return cls(parameters.pop("schema", schema), **{"epsilon": 2.0, "delta": 1e-6, **parameters})


@pytest.mark.parametrize("case", CASES)
def test_the_guarantee_is_one_gaussian_event_within_the_budget(case: str) -> None:
    model = made(case)
    plan = model.plan(N)
    model.fit(table())
    assert isinstance(plan.event, Gaussian)
    assert model.privacy_.event == plan.event
    assert model.privacy_.epsilon(1e-6) <= 2.0
    assert math.isclose(model.privacy_.epsilon(1e-6), 2.0, rel_tol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_explanations_add_up_to_the_score(case: str) -> None:
    model, new = made(case).fit(table()), table(50, 1)
    parts = model.explain(new)
    assert list(parts) == [column.name for column in COLUMNS]
    total = model.intercept_ + sum(parts.values())
    if case == "number":
        np.testing.assert_allclose(model.predict(new), np.clip(total, 0, 100))
        return
    np.testing.assert_allclose(model.decision_function(new), total)
    shares = model.predict_proba(new)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(new), model.classes_[shares.argmax(axis=1)])


@pytest.mark.parametrize("case", CASES)
def test_it_learns_curves_from_wide_bounds(case: str) -> None:
    train, test = table(20_000), table(5_000, 1)
    model = made(case).fit(train)
    if case == "number":
        truth = test["cost"]
        assert 1 - np.mean((model.predict(test) - truth) ** 2) / truth.var() > 0.6
    else:
        truth = test[model.schema.target.name]
        found = np.mean(model.predict(test) == truth)
        most = max(np.mean(truth == word) for word in np.unique(truth))
        assert found > most + 0.05
    assert "age" in model.kept_
    zero = model.explain({**{k: v[:2] for k, v in test.items()}, "income": [0.0, 9000.0]})
    assert np.abs(np.diff(zero["income"], axis=0)).max() > 0.3  # the spike has a bin of its own


def test_a_column_of_noise_is_removed() -> None:
    # One in thirteen is kept by chance; more than 12 of 30 are less than once in a million runs.
    kept = sum("noise" in made("two").fit(table(seed=i)).kept_ for i in range(30))
    assert kept <= 12


def test_a_missing_value_is_a_bin() -> None:
    data = table(20_000)
    data["ill"] = np.where(np.isnan(data["age"]), "yes", "no")
    model = made("two", epsilon=4.0).fit(data)
    new = {**{k: v[:2] for k, v in data.items()}, "age": [np.nan, 40.0]}
    age = model.explain(new)["age"]
    assert age[0] > age[1] + 1


def neighbours(relation: Relation) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two tables that differ in one odd record."""
    one = table(600)
    odd = {
        "age": 1e300,
        "income": -1e7,
        "town": "rare",
        "smoker": "perhaps",
        "noise": np.nan,
        "ill": "yes",
        "grade": "low",
        "cost": 1e9,
    }
    more = {k: np.append(v, [odd[k]]).astype(v.dtype) for k, v in one.items()}
    if relation is Relation.REPLACE:
        return {k: np.append(v, v[:1]) for k, v in one.items()}, more
    return one, more


@pytest.mark.parametrize("epsilon", [0.5, 20.0])  # a small table, and one of curves
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize("case", CASES)
def test_replay_on_neighbours(case: str, relation: Relation, epsilon: float) -> None:
    one, other = neighbours(relation)
    schema = Schema(CASES[case][1].columns, CASES[case][1].target, n_records=601)
    model = made(case, schema=schema, epsilon=epsilon, relation=relation)
    assert replay(lambda data: model.fit(data), one, other) >= 5
    assert replay(lambda data: model.fit(data), other, one) >= 5


def test_a_level_that_is_not_counted_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: the noise of the tree is that of three levels, and four are asked."""
    honest = bins_module.level_noise

    def forgetful(whole: Any, sensitivities: Any) -> Any:
        noises = honest(whole, list(sensitivities)[:-1])
        return [*noises, noises[-1]]

    monkeypatch.setattr(bins_module, "level_noise", forgetful)
    with pytest.raises(RuntimeError, match="what was paid for it"):
        made("two", epsilon=20.0).fit(table())


def test_a_count_of_two_nodes_a_record_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: a record counts under its node and under the node beside it."""
    from tacit.queries.table_cells import Grouping

    honest = Grouping.totals

    def twice(self: Any, records: Any, values: Any = None) -> Any:
        totals = honest(self, records, values)
        return totals + np.roll(totals, 1)

    monkeypatch.setattr(Grouping, "totals", twice)
    with pytest.raises(ReplayMismatch):
        replay(lambda data: made("two").fit(data), *neighbours(Relation.ADD_REMOVE))


def test_a_person_counts_once() -> None:
    data = table(2_000)
    people = np.arange(2_000) % 700
    model = made("two", epsilon=10.0).fit(data, unit=people)
    assert model.privacy_.relation is Relation.ADD_REMOVE_PERSON
    assert abs(model.n_records_ - 700) < 150
    # All records of one person are added: the replay sees one of them.
    more = {k: np.append(v, v[:5]) for k, v in data.items()}
    whose = np.append(people, np.full(5, 10_000))
    fit = lambda pair: made("two").fit(pair[0], unit=pair[1])  # noqa: E731
    assert replay(fit, (data, people), (more, whose)) >= 5


def test_label_means_are_covered_by_their_intervals() -> None:
    data = table(20_000)
    yes, covered = data["ill"] == "yes", []
    for _ in range(8):
        model = made("two", epsilon=1.0).fit(data)
        for name in ("age", "income"):
            term = model.terms_[name]
            found = np.searchsorted(term.edges, data[name], side="right")
            for k in np.flatnonzero(term.can_be_seen[:-1]):
                low, high = term.label_mean_interval[k, 0]
                mean = yes[(found == k) & ~np.isnan(data[name])].mean()
                covered.append(low <= mean <= high)
    assert 0.85 < np.mean(covered) < 0.999  # 0.95 are expected, of some 400 that are correlated


def test_the_plan_states_branch_shares_and_noise() -> None:
    small, large = made("two").plan(200), made("two").plan(50_000)
    assert "small table" in str(small)
    assert "joint fit" in str(large).split("branch")[1]
    assert math.isclose(sum(large.shares.values()), 1.0)
    assert large.settings["smallest_bin"] == 3 * large.settings["count_std"]
    assert small.event == large.event  # the expected number decides nothing


def test_a_small_table_takes_its_branch() -> None:
    model = made("two", epsilon=0.5).fit(table(500))
    assert model.is_small_
    assert model.predict_proba(table(10)).shape == (10, 2)


def test_all_kinds_of_columns_and_tables() -> None:
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    data = table(3_000)
    columns = (
        Intervals("age", (30.0, 60.0), missing=Fill(40)),
        Number("income", 0, 1e6, log=True, missing=Fill(0)),
        Category("town", ("a", "b"), missing=Fill("a")),
        Boolean("smoker", missing=Fill(True)),
        OpenCategory("noise", 3, ("x", "y")),
    )
    schema = Schema(columns, TWO.target)
    seeds = {"schema": schema, "random_state": 3}
    forms = data, pd.DataFrame(data), pa.table(data)
    scores = [made("two", **seeds).fit(form).decision_function(form) for form in forms]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_a_file_gives_the_bits_of_a_table(tmp_path: Any) -> None:
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame(table(2_000))
    path = tmp_path / "people.csv"
    data.to_csv(path, index=False)
    one = made("number", random_state=5).fit(data)
    other = made("number", random_state=5).fit_file(path)
    np.testing.assert_array_equal(one.predict(data), other.predict(data))


def test_y_may_be_given_apart() -> None:
    data = table(2_000)
    ill = data.pop("ill")
    model = made("two").fit(data, ill)
    assert set(model.classes_) == {"no", "yes"}


def test_an_accountant_is_charged_once_and_refuses() -> None:
    accountant = Accountant(Budget(1.0, 1e-6))
    model = made("two", epsilon=1.0, accountant=accountant).fit(table(1_000))
    assert math.isclose(accountant.spent(), 1.0, rel_tol=1e-6)
    with pytest.raises(BudgetExceeded):
        model.fit(table(1_000))


class Unread(dict[str, Any]):
    """A table that counts how often a column is taken."""

    taken = 0

    def __getitem__(self, name: str) -> Any:
        type(self).taken += 1
        return super().__getitem__(name)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"delta": 0.0}, "delta is 0.*pass a delta"),
        ({"epsilon": math.inf}, "epsilon is infinite.*pass a finite"),
        ({"max_bins": 1}, "max_bins"),
        ({"passes": 0}, "passes"),
        ({"shares": {"bin": 1.0}}, "shares must be.*leave shares out"),
        ({"shares": {"bins": 0.9, "label sums": 0.9}}, "at most 1"),
        ({"shares": {"bins": 1.0}}, "must be above 0"),
        ({"relation": "replace"}, "n_records"),
        ({"schema": "schema.toml"}, "Schema.from_file"),
        ({"schema": NUMBER}, "AdditiveRegressor"),
        ({"schema": Schema((OpenCategory("town", 3),), TWO.target)}, "PrivateVocabulary"),
        ({"accountant": "ledger"}, "accountant must keep a budget"),
    ],
)
def test_errors_come_before_data(parameters: dict[str, Any], message: str) -> None:
    model = made("two", **parameters)
    with pytest.raises((ValueError, TypeError), match=re.compile(message, re.DOTALL)):
        model.plan()
    Unread.taken = 0
    data = Unread(table(10))
    accountant = Accountant(Budget(1.0, 1e-6))
    model.set_params(accountant=parameters.get("accountant", accountant))
    with pytest.raises((ValueError, TypeError), match=re.compile(message, re.DOTALL)):
        model.fit(data)
    assert not hasattr(model, "terms_")
    assert accountant.spent() == 0.0
    assert Unread.taken <= 1  # the type of the target alone


def test_a_table_without_a_column_is_refused() -> None:
    data = table(10)
    del data["town"]
    with pytest.raises(ValueError, match="town"):
        made("two").fit(data)


def test_unconfirmed_lines_are_refused_or_said() -> None:
    schema = Schema(COLUMNS, TWO.target, unconfirmed=("age",))
    with pytest.raises(ValueError, match="not confirmed"):
        made("two", schema=schema).fit(table(100))
    model = made("two", schema=schema, allow_unconfirmed=True).fit(table(100))
    assert "age" in model.privacy_.assumptions[0]
