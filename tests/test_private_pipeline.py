"""Several steps under one budget: planned, charged once, and held to what was paid for."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import sklearn.linear_model
from sklearn import preprocessing
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import tacit
from tacit.engine import Plan
from tacit.features import (
    RandomFourierFeatures,
)
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.location import Mean
from tacit.pipeline import PrivatePipeline, Vouched
from tacit.pipeline.budget_shares import checked_shares
from tacit.pipeline.sklearn_adapters import Stateless
from tacit.preprocessing import (
    PrivateQuantileBounds,
)
from tacit.privacy import Accountant, Budget, BudgetExceeded, Relation
from tacit.privacy.accounting.gaussian_profile import gaussian_mu
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder
from tacit.table_facts import EncodedTable, TableFacts
from tacit.testing import replay

RNG = np.random.default_rng(7)
ROWS = RNG.uniform(-1.0, 1.0, (400, 3))
LABELS = ROWS[:, 0] + 0.3 * RNG.standard_normal(400) > 0


class Centred(TransformerMixin, BaseEstimator):
    """A step of a user's own: subtracts the private mean."""

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: Relation | str = "add_remove",
        accountant: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon, self.delta, self.relation = epsilon, delta, relation
        self.accountant, self.random_state = accountant, random_state

    def _mean(self) -> Mean:
        return Mean(**self.get_params(), row_norm=2.0, n_records=400)

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        return self._mean().plan(n_features, n_records)

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        if isinstance(X, EncodedTable):
            X = EncodedTable(replace(X.facts, n_records=400, row_norm=2.0), X.read)
        mean = self._mean().fit(X)
        self.location_, self.privacy_ = mean.location_, mean.privacy_
        return self

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        assert facts is not None
        return replace(facts, row_norm=4.0, ranges=None)

    def transform(self, X: Any) -> Any:
        return X - self.location_


def pipeline(*steps: Any, **parameters: Any) -> PrivatePipeline:
    named = [(f"step{place}", step) for place, step in enumerate(steps)]
    model = LogisticRegression(classes=[False, True])
    return PrivatePipeline([*named, ("model", model)], **parameters)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_all_steps_together_cost_the_budget(delta: float, relation: str) -> None:
    made = pipeline(Centred(), epsilon=1.5, delta=delta, relation=relation)
    made.set_params(model__n_records=400)
    made.fit(ROWS, LABELS)
    assert 0.998 * 1.5 <= made.privacy_.epsilon(delta) <= 1.5
    assert made.privacy_.event == made.plan(n_features=3).event
    # each alone costs less than all, and what is composed is what each released
    alone = [step.privacy_ for step in made.steps_.values()]
    assert list(made.privacy_.event.leaves()) == [
        leaf for one in alone for leaf in one.event.leaves()
    ]
    assert all(one.epsilon(delta) < 1.5 for one in alone)


def test_the_plan_says_each_share_before_data() -> None:
    made = pipeline(Centred(), epsilon=1.0, shares={"step0": 0.25})
    plan = made.plan(n_features=3, n_records=400)
    assert plan.shares == {"step0": 0.25, "model": 0.75}
    assert "step0: 25% of the budget" in str(plan)
    assert "predicted excess risk" in str(plan)
    assert plan.steps["step0"].event.gaussian_mu() == pytest.approx(
        0.5 * gaussian_mu(1.0, 1e-6), rel=5e-3
    )


def test_one_charge_pays_for_all_or_nothing_is_read() -> None:
    purse = Accountant(Budget(1.0, 1e-6))
    made = pipeline(Centred(), epsilon=1.0, accountant=purse).fit(ROWS, LABELS)
    assert purse.events == (made.privacy_.event,)

    class Untouchable:
        """An array that shows its shape, and tells if anybody reads it."""

        shape, ndim, dtype = ROWS.shape, 2, ROWS.dtype

        def __len__(self) -> int:
            return len(ROWS)

        def __array__(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("the records were read")

    with pytest.raises(BudgetExceeded):
        clone(made).fit(Untouchable(), LABELS)


class Greedy(Centred):
    """Releases another mean than was planned."""

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        self.epsilon *= 2
        return super().fit(X)


class Twice(Centred):
    """Makes its release a second time, and would keep the better."""

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        return super().fit(X) and super().fit(X)


class Unpaid(Centred):
    """Looks at the records without a charge."""

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        paid, self.accountant = self.accountant, None
        super().fit(X)
        self.accountant = paid
        return self


@pytest.mark.parametrize(
    ("step", "why"), [(Greedy(), "paid for"), (Twice(), "used up"), (Unpaid(), "without a charge")]
)
def test_a_step_is_held_to_what_was_paid_for_it(step: Any, why: str) -> None:
    with pytest.raises(RuntimeError, match=why):
        pipeline(step).fit(ROWS, LABELS)


@pytest.mark.parametrize(
    ("step", "instead"),
    [
        (preprocessing.StandardScaler(), "PrivateStandardScaler"),
        (preprocessing.MinMaxScaler(), "PrivateQuantileBounds"),
        (SimpleImputer(), "PrivateMissing"),
        (SelectKBest(), "PrivatePCA"),
        (PCA(2), "PrivatePCA"),
        (preprocessing.OneHotEncoder(), "PrivateVocabulary"),
        (preprocessing.OneHotEncoder(categories=[[0.0]]), "handle_unknown='ignore'"),
        (preprocessing.FunctionTransformer(np.log1p), "Vouched"),
        (preprocessing.LabelBinarizer(), "Vouched"),
    ],
)
def test_what_learns_without_privacy_is_refused_before_reading(step: Any, instead: str) -> None:
    with pytest.raises(TypeError, match=instead):
        pipeline(step).fit(ROWS, LABELS)
    with pytest.raises(TypeError, match=instead):
        pipeline(step).plan(n_features=3)


@pytest.mark.parametrize(
    "step",
    [
        preprocessing.PolynomialFeatures(2),
        preprocessing.PolynomialFeatures(3, interaction_only=True, include_bias=False),
        preprocessing.Normalizer(),
        preprocessing.Normalizer("l1"),
        preprocessing.Normalizer("max"),
        preprocessing.Binarizer(),
        preprocessing.OneHotEncoder(categories=[[0.0, 1.0]] * 3, handle_unknown="ignore"),
    ],
)
def test_no_row_of_a_step_that_learns_nothing_is_longer_than_it_says(step: Any) -> None:
    made = pipeline(preprocessing.Normalizer(), step).fit(ROWS, LABELS)
    *before, _ = made.steps_.values()
    facts, rows = TableFacts(("a", "b", "c"), math.inf), RNG.standard_cauchy((2000, 3))
    rows[:8] = np.array(np.meshgrid(*[[-1e9, 1e9]] * 3)).reshape(3, 8).T
    for ready in before:
        facts, rows = facts.through(ready), ready.transform(rows)
    assert np.linalg.norm(rows, axis=1).max() <= facts.row_norm * (1 + 1e-12)
    assert made.estimator_.row_norm_ == facts.row_norm
    assert len(facts.names) == rows.shape[1]
    low, high = np.array(facts.ranges).T
    assert np.all((low <= rows) & (rows <= high))


def test_what_is_vouched_for_is_repeated() -> None:
    halved = Vouched(preprocessing.FunctionTransformer(lambda X: X / 2), row_norm=1.0)
    made = pipeline(halved).fit(ROWS, LABELS)
    assert any("vouches" in said for said in made.privacy_.assumptions)
    assert made.estimator_.row_norm_ == 1.0

    def doubled(rows: Any) -> Any:
        return np.hstack([rows, rows])

    with pytest.raises(ValueError, match="n_features_out"):
        pipeline(Vouched(preprocessing.FunctionTransformer(doubled), row_norm=1.0)).fit(
            ROWS, LABELS
        )


def test_without_noise_it_is_scikit_learns_pipeline() -> None:
    steps = preprocessing.Normalizer(), preprocessing.PolynomialFeatures(2, include_bias=False)
    numbers = ROWS @ [1.0, -2.0, 0.5]
    model = LinearRegression(label_range=(-4, 4))
    named = [("a", steps[0]), ("b", steps[1]), ("model", model)]
    ours = PrivatePipeline(named, epsilon=math.inf).fit(ROWS, numbers)
    theirs = make_pipeline(*steps, sklearn.linear_model.LinearRegression()).fit(ROWS, numbers)
    np.testing.assert_allclose(ours.predict(ROWS), theirs.predict(ROWS), atol=1e-6)
    assert ours.privacy_.voided_by == ("the budget is infinite",)


def test_people_are_protected_with_all_their_records() -> None:
    made = pipeline(preprocessing.Normalizer()).fit(ROWS, LABELS, unit=np.arange(400) % 50)
    assert made.privacy_.relation is Relation.ADD_REMOVE_PERSON
    assert made.estimator_.privacy_.relation is Relation.ADD_REMOVE_PERSON


def test_a_seeded_pipeline_repeats_itself_and_promises_nothing() -> None:
    made = [pipeline(Centred(), random_state=3).fit(ROWS, LABELS) for _ in range(2)]
    assert np.all(made[0].estimator_.coef_ == made[1].estimator_.coef_)
    assert made[0].privacy_.voided_by
    # steps do not draw the same noise
    assert made[0].steps_["step0"].random_state != made[0].estimator_.random_state
    with pytest.raises(BudgetExceeded):
        pipeline(random_state=3, accountant=Accountant(Budget(9.0, 1e-5))).fit(ROWS, LABELS)


def test_a_table_goes_through_its_schema() -> None:
    columns = tuple(Number(name, -1, 1) for name in "abc")
    schema = Schema(columns, ClassTarget("ill", ("no", "yes")))
    table = dict(zip("abc", ROWS.T, strict=True))
    words = np.where(LABELS, "yes", "no")
    steps = [("encode", SchemaEncoder(schema)), ("model", LogisticRegression())]
    made = PrivatePipeline(steps, epsilon=2.0).fit(table, words)
    assert made.estimator_.row_norm_ == schema.row_norm
    assert made.score(table, words) > 0.6
    assert made.predict(table).tolist()[0] in ("no", "yes")
    assert made.plan().event == made.privacy_.event


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_replay(relation: Relation) -> None:
    n, odd = 60, np.array([[9.0, -9.0, 3.0]])
    more = np.vstack([ROWS[:n], odd]), np.append(LABELS[:n], True)
    less = ROWS[:n], LABELS[:n]
    if relation is Relation.REPLACE:
        less = np.vstack([ROWS[:n], -odd]), np.append(LABELS[:n], False)

    def fit(data: Any) -> Any:
        made = pipeline(preprocessing.Normalizer(), Centred(), relation=relation)
        return made.set_params(model__n_records=n + 1).fit(*data)

    # the mean, the weights, and the curvature by which these are shrunk
    assert replay(fit, more, less) == replay(fit, less, more) == 3


@pytest.mark.parametrize(
    ("shares", "why"),
    [
        ({"modle": 0.1}, "not a step with a budget"),
        ({"step0": 0.0}, "must be in"),
        ({"step0": 0.7, "model": 0.7}, "more than the whole"),
        ({"step0": math.nan}, "must be in"),
    ],
)
def test_impossible_shares_are_refused(shares: dict[str, float], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        pipeline(Centred(), shares=shares).plan(n_features=3)


def test_default_shares() -> None:
    many = checked_shares(None, [*"abcdef", "model"])
    assert sum(many.values()) == pytest.approx(1.0)
    assert many["model"] == pytest.approx(0.7)


def test_it_is_a_citizen_of_scikit_learn() -> None:
    made = pipeline(Centred(), shares={"step0": 0.2}, epsilon=3.0)
    assert clone(made).get_params()["shares"] == {"step0": 0.2}
    made.set_params(model__regularization=2.0)
    assert made.steps[-1][1].regularization == 2.0
    with pytest.raises(TypeError, match="last step must be an estimator"):
        PrivatePipeline([("scale", preprocessing.Normalizer())]).fit(ROWS, LABELS)


def test_private_bounds_are_learned_under_the_same_budget(tmp_path: Path) -> None:
    rows = np.exp(RNG.standard_normal((4000, 2)))
    labels = rows[:, 0] > 1.0
    rows[7, 1] = np.nan  # missing: not an error, which would tell of a record
    bounds = PrivateQuantileBounds(bounds=(0, 100), quantiles=(0.05, 0.9))
    made = pipeline(bounds, epsilon=8.0).fit(rows, labels)
    learned = made.steps_["step0"]
    assert np.all(learned.high_ < 20)
    assert made.estimator_.row_norm_ == pytest.approx(math.sqrt(2) / 2)
    assert made.score(rows, labels) > 0.8
    assert 0.998 * 8.0 <= made.privacy_.epsilon(1e-6) <= 8.0
    tacit.save(made, tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit")
    assert np.all(again.predict(rows) == made.predict(rows))


def test_a_map_goes_by_what_it_declares_where_the_table_says_nothing() -> None:
    waves = RandomFourierFeatures(n_frequencies=5, row_norm=3.0, seed=1)
    made = pipeline(waves).fit(ROWS, LABELS)
    assert made.steps_["step0"].bandwidth_ == waves.fit(ROWS).bandwidth_ < math.inf
    assert made.estimator_.row_norm_ == 1.0
    with pytest.raises(TypeError, match="kernel must be"):
        pipeline(RandomFourierFeatures("rbf"), accountant=Accountant(Budget(1e-9))).fit(
            ROWS, LABELS
        )


@pytest.mark.parametrize(
    "step",
    [
        Vouched(preprocessing.FunctionTransformer(np.log1p), row_norm=2.0),
        Stateless(preprocessing.PolynomialFeatures(2)),
    ],
)
def test_no_warning_of_a_step_tells_of_one_record(step: Any) -> None:
    """Warnings are errors here."""
    rows = step.transform(np.array([[-5.0, 1.7e308], [0.5, 0.5]]))
    np.testing.assert_array_equal(rows[1:], step.transform(np.array([[0.5, 0.5]])))


@pytest.mark.parametrize(
    "step", [LogisticRegression(), "model", ("model",), (LogisticRegression(), "model")]
)
def test_steps_that_are_no_pairs_of_a_name_and_a_step_are_refused(step: Any) -> None:
    with pytest.raises(TypeError, match="steps must be pairs of a name and a step, got a "):
        PrivatePipeline([step]).fit([[1.0]], [True])
