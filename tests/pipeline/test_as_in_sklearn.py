"""A pipeline is what scikit-learn's users expect: steps, slices, names, weights, routing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures

import tacit
from tacit.features import Interactions
from tacit.linear_model import LinearRegression, LinearSVC, LogisticRegression
from tacit.location import Mean
from tacit.pipeline import PrivatePipeline
from tacit.preprocessing import PrivatePCA, PrivateQuantileBounds, PrivateStandardScaler
from tacit.privacy import Accountant, Budget
from tacit.saving import load, save
from tacit.schema import (
    Category,
    ClassTarget,
    Number,
    NumberTarget,
    OpenNumber,
    Schema,
    SchemaEncoder,
    SchemaError,
)
from tacit.testing import replay
from tacit.tuning import DisjointSearch, FixedTries, PrivateSearch

N = 3000
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": RNG.uniform(0, 100, N), "sex": RNG.choice(["f", "m"], N)})
ILL = np.where(TABLE["age"] > 50, "yes", "no")
COLUMNS = (Number("age", 0, 100), Category("sex", ("f", "m")))
SCHEMA = Schema(COLUMNS, ClassTarget("ill", ("no", "yes")))
ROWS = pd.DataFrame(RNG.uniform(-1, 1, (N, 2)), columns=["a", "b"])
LABELS = ROWS["a"].to_numpy() > 0


def of_tables(model: Any = None, **given: Any) -> PrivatePipeline:
    model = LogisticRegression() if model is None else model
    curve = ("curve", PolynomialFeatures(2, include_bias=False))
    return PrivatePipeline(
        [("encode", SchemaEncoder(SCHEMA)), curve, ("model", model)], **{"epsilon": 8.0, **given}
    )


def of_rows(**given: Any) -> PrivatePipeline:
    model = LogisticRegression(classes=[False, True], max_weight=given.pop("max_weight", None))
    steps = [("scale", PrivateStandardScaler(bounds=(-1, 1))), ("model", model)]
    return PrivatePipeline(steps, **{"epsilon": 8.0, **given})


def test_after_a_fit_its_steps_are_the_fitted_ones() -> None:
    given = of_tables()
    made = clone(given).fit(TABLE, ILL)
    assert isinstance(made, Pipeline)
    assert len(made) == 3
    assert made[-1] is made["model"] is made.named_steps["model"] is made.named_steps.model
    assert made[-1] is made.steps_["model"] is made.estimator_
    assert made[-1].coef_.shape == (1, len(made.get_feature_names_out()))
    assert made[0].feature_names_in_.tolist() == made.feature_names_in_.tolist() == ["age", "sex"]
    assert made.n_features_in_ == 2
    assert made.classes_.tolist() == ["no", "yes"]
    assert is_classifier(made)
    assert not is_regressor(made)
    with pytest.raises(KeyError):
        made["nothing"]
    with pytest.raises(IndexError):
        made[3]
    # what was given stays as it was, and can be fitted again
    assert not hasattr(given[-1], "coef_")
    assert made.steps[-1][1].epsilon is None
    assert "LogisticRegression" in made._repr_html_()
    assert "PrivatePipeline" in repr(made)
    assert clone(made).fit(TABLE, ILL).score(TABLE, ILL) > 0.9


def test_before_a_fit_they_are_the_given_ones() -> None:
    made = of_tables()
    assert made[-1] is made.steps[-1][1]
    assert made["encode"] is made.named_steps.encode is made.steps[0][1]
    assert made.get_feature_names_out().tolist()[:3] == ["age", "sex=f", "sex=m"]
    for name in ("privacy_", "plan_", "evaluation_", "classes_", "estimator_", "n_features_in_"):
        with pytest.raises(NotFittedError):
            getattr(made, name)
    with pytest.raises(NotFittedError):
        of_rows().get_feature_names_out()


def test_a_slice_transforms_and_promises_nothing() -> None:
    made = of_tables().fit(TABLE, ILL)
    before = made[:-1]
    assert type(before) is PrivatePipeline
    rows = before.transform(TABLE)
    assert rows.shape == (N, 9)
    assert before.get_feature_names_out().tolist() == made.get_feature_names_out().tolist()
    assert made[:1].get_feature_names_out().tolist() == ["age", "sex=f", "sex=m"]
    assert made[:1].transform(TABLE).tolist() == made["encode"].transform(TABLE).tolist()
    assert made[-1].predict(rows).tolist() == made.predict(TABLE).tolist()
    rest = made[1:]
    assert rest.predict(made[:1].transform(TABLE)).tolist() == made.predict(TABLE).tolist()
    assert made[:].predict(TABLE).tolist() == made.predict(TABLE).tolist()
    for part in (before, rest, made[:]):
        for name in ("privacy_", "plan_", "evaluation_"):
            assert not hasattr(part, name)
        with pytest.raises(AttributeError, match="privacy_ of the whole pipeline"):
            part.privacy_  # noqa: B018
    assert not hasattr(before, "predict")
    assert not hasattr(made, "transform")
    with pytest.raises(TypeError, match="last step must be an estimator"):
        before.fit(TABLE, ILL)
    with pytest.raises(ValueError, match="third number"):
        made[::2]


def test_a_slice_is_not_saved(tmp_path: Any) -> None:
    made = of_rows().fit(ROWS, LABELS)
    with pytest.raises(AttributeError, match="whole pipeline"):
        save(made[:], tmp_path / "part.tacit")
    with pytest.raises(AttributeError, match="whole pipeline"):
        tacit.report.facts_of(made[-1:])


def test_what_learned_open_bounds_belongs_to_the_encoder() -> None:
    schema = Schema((OpenNumber("age", 0, 1000), COLUMNS[1]), SCHEMA.target)
    steps = [("encode", SchemaEncoder(schema)), ("model", LogisticRegression())]
    made = PrivatePipeline(steps, 8.0).fit(TABLE, ILL)
    assert list(made.steps_) == ["encode", "encode bounds", "model"]
    assert list(made[:-1].steps_) == ["encode", "encode bounds"]
    assert made["encode bounds"] is made.steps_["encode bounds"]
    rows = made[:-1].transform(TABLE)
    assert made[-1].predict(rows).tolist() == made.predict(TABLE).tolist()
    assert made[1].coef_ is made[-1].coef_
    assert made.row_model.predict(made[0].transform(TABLE)).tolist() == made.predict(TABLE).tolist()


def test_what_was_learned_is_not_declared() -> None:
    """A schema stays open after a fit that learned its bounds."""
    schema = Schema((OpenNumber("age", 0, 1000), COLUMNS[1]), SCHEMA.target)
    steps = [("encode", SchemaEncoder(schema)), ("model", LogisticRegression())]
    made = PrivatePipeline(steps, 8.0).fit(TABLE, ILL)
    with pytest.raises(SchemaError, match="PrivatePipeline"):
        made.set_params(epsilon=None).fit(TABLE, ILL)


def test_rows_and_their_names() -> None:
    made = of_rows().fit(ROWS, LABELS)
    assert made.feature_names_in_.tolist() == ["a", "b"]
    assert made.n_features_in_ == 2
    assert made.get_feature_names_out().tolist() == ["a", "b"]
    assert made[:-1].transform(ROWS).shape == (N, 2)
    with pytest.raises(ValueError, match="feature names"):
        made[:-1].transform(ROWS.rename(columns={"a": "c"}))
    plain = of_rows().fit(ROWS.to_numpy(), LABELS)
    assert not hasattr(plain, "feature_names_in_")
    assert plain.get_feature_names_out().tolist() == ["x0", "x1"]


def test_a_last_step_that_transforms() -> None:
    steps = [("bounds", PrivateQuantileBounds(bounds=(-1, 1))), ("pca", PrivatePCA(1))]
    made = PrivatePipeline(steps, 8.0, random_state=0)
    rows = made.fit(ROWS).transform(ROWS)
    assert rows.shape == (N, 1)
    assert made.fit_transform(ROWS).tolist() == rows.tolist()
    assert made.privacy_.voided_by  # a seed
    assert not hasattr(made, "predict")
    assert not hasattr(made, "fit_predict")


def test_nothing_of_scikit_learns_own_fit_is_reachable() -> None:
    """Its fit_transform, inherited, would fit a scaler without privacy."""
    purse = Accountant(Budget(8.0, 1e-6))
    made = PrivatePipeline(
        [("scale", sklearn.preprocessing.StandardScaler()), ("pca", PrivatePCA(1))],
        accountant=purse,
    )
    for fit in (made.fit, made.fit_transform):
        with pytest.raises(TypeError, match="PrivateStandardScaler"):
            fit(ROWS)
    assert purse.events == ()
    classes = of_rows(random_state=0)
    assert classes.fit_predict(ROWS, LABELS).tolist() == classes.predict(ROWS).tolist()


def test_parameters_clones_and_pickles() -> None:
    made = of_tables().set_params(model__fit_intercept=False, curve__degree=3, epsilon=4.0)
    assert made["model"].fit_intercept is False
    assert made["curve"].degree == 3
    again = clone(made.fit(TABLE, ILL))
    assert again.epsilon == 4.0
    assert not hasattr(again, "steps_")
    assert made.set_params(model=LogisticRegression(inference=0.1)).steps[-1][1].inference == 0.1
    loaded = pickle.loads(pickle.dumps(made))
    assert loaded.predict(TABLE).tolist() == made.predict(TABLE).tolist()
    assert loaded.privacy_ == made.privacy_


def test_probabilities_and_scores() -> None:
    made = of_tables().fit(TABLE, ILL)
    np.testing.assert_allclose(made.predict_log_proba(TABLE), np.log(made.predict_proba(TABLE)))
    assert cross_val_score(of_tables(), TABLE, ILL, cv=3).min() > 0.9
    found = GridSearchCV(of_tables(), {"model__regularization": [1.0, 30.0]}, cv=2).fit(TABLE, ILL)
    assert found.best_estimator_.score(TABLE, ILL) > 0.9


def test_the_summary_has_names() -> None:
    schema = SCHEMA.with_references()
    for whole in (True, False):
        model = LogisticRegression(inference=0.2)
        steps = [("encode", SchemaEncoder(schema)), ("model", model)]
        made = PrivatePipeline(steps, 8.0 if whole else None)
        found = made.set_params(model__epsilon=None if whole else 8.0).fit(TABLE, ILL).summary()
        assert list(found.to_frame().index) == ["age", "sex=m", "(intercept)"]
        assert "sex: compared with 'f'." in str(found)
    assert not hasattr(PrivatePipeline([("model", LinearSVC())]), "summary")


# Budgets: they are given once.


def test_a_budget_of_a_step_is_refused_where_the_pipeline_has_it() -> None:
    purse = Accountant(Budget(9.0, 1e-6))
    made = of_tables(LogisticRegression(2.0), accountant=purse)
    said = r"step 'model' \(LogisticRegression\) has epsilon=2\.0 .*shares=\{'model': \.\.\.\}"
    for ask in (lambda: made.fit(TABLE, ILL), made.plan):
        with pytest.raises(ValueError, match=said):
            ask()
    scaler = PrivateStandardScaler(1.0, bounds=(-1, 1))  # the default, but set
    with pytest.raises(ValueError, match=r"step 'scale' .* has epsilon=1\.0 of its own"):
        of_rows().set_params(scale=scaler).fit(ROWS, LABELS)
    with pytest.raises(ValueError, match="has accountant=a Accountant of its own"):
        of_tables(LogisticRegression(accountant=purse)).fit(TABLE, ILL)
    assert purse.events == ()


class Foreign(LogisticRegression):
    """A class of a user, whose default is a number."""

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        classes: Any = None,
        relation: Any = "add_remove",
        row_norm: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            classes=classes,
            relation=relation,
            row_norm=row_norm,
            accountant=accountant,
            random_state=random_state,
        )


def test_a_default_of_a_class_of_a_user_was_not_set() -> None:
    assert of_tables(Foreign()).fit(TABLE, ILL).score(TABLE, ILL) > 0.9
    with pytest.raises(ValueError, match=r"has epsilon=2\.0"):
        of_tables(Foreign(2.0)).fit(TABLE, ILL)


def test_the_estimator_may_have_the_budget() -> None:
    purse = Accountant(Budget(9.0, 1e-6))
    model = LogisticRegression(4.0, accountant=purse)
    made = of_tables(model, epsilon=None).fit(TABLE, ILL)
    assert purse.events == (made.privacy_.event,)
    assert made.privacy_ == made[-1].privacy_
    assert made.plan_ is made[-1].plan_
    assert made.budget_holder is made.steps[-1][1]
    # without a number it is 1.0, said in one place
    alone = of_tables(epsilon=None).fit(TABLE, ILL)
    assert alone.plan_.budget.epsilon == 1.0


@pytest.mark.parametrize(
    "given",
    [
        {"delta": 1e-5},
        {"relation": "replace"},
        {"shares": {"model": 1.0}},
        {"evaluate": 0.1},
        {"accountant": Accountant(Budget(9.0, 1e-6))},
        {"random_state": 3},
    ],
    ids=lambda given: next(iter(given)),
)
def test_what_would_have_no_effect_is_refused(given: Any) -> None:
    made = of_tables(LogisticRegression(4.0), epsilon=None, **given)
    for ask in (lambda: made.fit(TABLE, ILL), made.plan):
        with pytest.raises(ValueError, match=f"{next(iter(given))} of the pipeline is set"):
            ask()


def test_private_steps_need_a_budget_for_all() -> None:
    with pytest.raises(ValueError, match=r"step 'scale' .* learns from the records too"):
        of_rows(epsilon=None).fit(ROWS, LABELS)
    with pytest.raises(TypeError, match="a pipeline itself; put its steps into this one"):
        PrivatePipeline([("all", of_rows())]).fit(ROWS, LABELS)


def test_the_number_of_columns_is_not_the_number_of_records() -> None:
    with pytest.raises(ValueError, match=r"has 3 features; .*n_records="):
        of_tables().plan(3000)
    assert of_tables().plan(3).event == of_tables().plan().event


def test_an_undeclared_row_norm_is_warned_of_once() -> None:
    model = LogisticRegression(4.0, classes=[False, True])
    with pytest.warns(tacit.UndeclaredWarning) as said:
        PrivatePipeline([("model", model)], epsilon=None).fit(ROWS, LABELS)
    assert len(said) == 1


def test_rows_of_an_estimator_with_its_own_budget() -> None:
    model = LogisticRegression(4.0, classes=[False, True], row_norm=2.0, random_state=0)
    made = PrivatePipeline([("pairs", Interactions()), ("model", model)], epsilon=None)
    made.fit(ROWS, LABELS)
    by_hand = clone(model).fit(Interactions().fit(ROWS).transform(ROWS), LABELS)
    assert made[-1].coef_.shape == by_hand.coef_.shape
    assert made.score(ROWS, LABELS) > 0.9
    assert made.feature_names_in_.tolist() == ["a", "b"]


def test_public_steps_of_an_estimator_with_its_own_budget_are_saved(tmp_path: Any) -> None:
    made = of_tables(LogisticRegression(4.0), epsilon=None).fit(TABLE, ILL)
    save(made, tmp_path / "model.tacit")
    again: Any = load(tmp_path / "model.tacit")
    assert type(again) is PrivatePipeline
    assert again.epsilon is None
    assert again.predict(TABLE).tolist() == made.predict(TABLE).tolist()
    assert again.privacy_ == made.privacy_
    assert again[-1].plan_ == made.plan_
    assert again.get_feature_names_out().tolist() == made.get_feature_names_out().tolist()
    assert clone(again).set_params(model__epsilon=2.0).fit(TABLE, ILL).score(TABLE, ILL) > 0.9


def test_a_loaded_pipeline_is_fitted_again(tmp_path: Any) -> None:
    made = of_rows().fit(ROWS, LABELS)
    save(made, tmp_path / "model.tacit")
    again: Any = load(tmp_path / "model.tacit")
    assert again["scale"].epsilon == made["scale"].epsilon  # what its share was
    assert again.steps[0][1].epsilon is None
    assert clone(again).fit(ROWS, LABELS).score(ROWS, LABELS) > 0.8


# Weights, and scikit-learn's routing of them.

WEIGHTS = np.where(ROWS["b"] > 0, 1.0, 0.0)
HALF = ROWS["b"].to_numpy() > 0


@pytest.mark.parametrize("way", ["sample_weight", "model__sample_weight"])
def test_weights_are_the_estimators(way: str) -> None:
    labels = np.where(HALF, LABELS, ~LABELS)  # half of the records say the contrary
    made = of_rows(max_weight=1.0).fit(ROWS, labels, **{way: WEIGHTS})
    assert made.score(ROWS[HALF], labels[HALF]) > 0.9
    assert made.score(ROWS[~HALF], labels[~HALF]) < 0.1


@pytest.mark.parametrize("whole", [True, False])
def test_weights_follow_the_records_that_count(whole: bool) -> None:
    """Records of no class are left out of a table, and so are their weights."""
    odd = np.arange(N) % 3 == 0
    words, weights = np.where(odd, "perhaps", ILL), np.where(TABLE["sex"] == "f", 2.0, 0.5)
    labels = np.where((TABLE["sex"] == "f") | odd, words, np.where(words == "no", "yes", "no"))
    model = LogisticRegression(
        None if whole else 8.0, max_weight=2.0, random_state=None if whole else 0
    )
    given = {"epsilon": 8.0, "random_state": 0} if whole else {"epsilon": None}
    made = of_tables(model, **given)
    some = clone(made).fit(TABLE[~odd], labels[~odd], sample_weight=weights[~odd])
    both = made.fit(TABLE, labels, sample_weight=weights)
    np.testing.assert_array_equal(both[-1].coef_, some[-1].coef_)
    men = (TABLE["sex"] == "f").to_numpy() & ~odd
    assert both.score(TABLE[men], labels[men]) > 0.9


def test_weights_follow_the_records_that_are_held_out() -> None:
    labels = np.where(HALF, LABELS, ~LABELS)
    made = of_rows(max_weight=1.0, evaluate=0.3).fit(ROWS, labels, sample_weight=WEIGHTS)
    assert made.score(ROWS[HALF], labels[HALF]) > 0.9
    assert made.evaluation_ is not None
    assert made.evaluation_["accuracy"].value < 0.7  # of all records alike


@pytest.mark.parametrize("whole", [True, False])
def test_a_record_moves_what_is_released_by_its_sensitivity(whole: bool) -> None:
    """With its weight, whether it counts or not: it moves nobody else's weight."""
    n = 200
    rows, words, weights = TABLE[:n], ILL[:n].astype(object), RNG.uniform(0, 3, n)
    odd = words.copy()
    odd[0] = "perhaps"
    other = rows.assign(age=np.append(99.0, rows["age"][1:]))
    heavier = np.append(1e9, weights[1:])
    schema = replace(SCHEMA, n_records=n)
    own = {"epsilon": 2.0, "relation": "replace", "random_state": 1}
    model = LogisticRegression(max_weight=2.0).set_params(**({} if whole else own))
    steps = [("encode", SchemaEncoder(schema)), ("model", model)]
    made = PrivatePipeline(steps, **(own if whole else {"epsilon": None}))

    def fit(data: Any) -> Any:
        X, y, sample_weight = data
        return clone(made).fit(X, y, sample_weight=sample_weight)

    assert replay(fit, (rows, words, weights), (other, words, heavier)) >= 1
    assert replay(fit, (rows, words, weights), (rows, odd, heavier)) >= 1


@pytest.mark.parametrize(
    ("make", "weights", "error", "said"),
    [
        (lambda a: of_rows(accountant=a), WEIGHTS, ValueError, "max_weight of step 'model'"),
        (lambda a: of_rows(accountant=a, max_weight=1.0), WEIGHTS[1:], ValueError, "one weight"),
        (
            lambda a: PrivatePipeline([("model", Mean())], accountant=a),
            WEIGHTS,
            TypeError,
            r"'model' \(Mean\) takes no sample_weight",
        ),
    ],
    ids=["undeclared", "too few", "nobody"],
)
def test_weights_that_cannot_count_are_refused_before_the_charge(
    make: Any, weights: Any, error: Any, said: str
) -> None:
    purse = Accountant(Budget(9.0, 1e-6))
    with pytest.raises(error, match=said):
        make(purse).fit(ROWS, LABELS, sample_weight=weights)
    assert purse.events == ()


def test_weights_that_were_declared_and_not_given() -> None:
    assert of_rows(max_weight=2.0).fit(ROWS, LABELS).score(ROWS, LABELS) > 0.8


def test_other_words_are_refused() -> None:
    with pytest.raises(TypeError, match="no parameter 'scale__unit'"):
        of_rows().fit(ROWS, LABELS, scale__unit=WEIGHTS)


@pytest.fixture
def routed() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routed")
def test_metadata_is_routed() -> None:
    labels = np.where(HALF, LABELS, ~LABELS)
    made = of_rows(max_weight=1.0)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        made.fit(ROWS, labels, sample_weight=WEIGHTS)
    made["model"].set_fit_request(sample_weight=True)
    made.fit(ROWS, labels, sample_weight=WEIGHTS)
    assert made.score(ROWS[HALF], labels[HALF]) > 0.9
    made["model"].set_fit_request(sample_weight=False)
    # unit is the pipeline's own
    unit = np.arange(N) // 2
    assert of_rows().fit(ROWS, LABELS, unit=unit).privacy_.relation.by_person


@pytest.mark.usefixtures("routed")
def test_a_search_of_scikit_learns_routes_through_it() -> None:
    labels, unit = np.where(HALF, LABELS, ~LABELS), np.arange(N)
    made = of_rows(max_weight=1.0, epsilon=30.0)
    made["model"].set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    made.set_fit_request(unit=True)
    found = GridSearchCV(made, {"model__regularization": [1.0, 9.0]}, cv=2)
    found.fit(ROWS, labels, sample_weight=WEIGHTS, unit=unit)
    best = found.best_estimator_
    assert best.privacy_.relation.by_person
    assert best.score(ROWS[HALF], labels[HALF]) > 0.9


# Searches.


@pytest.mark.parametrize("kind", [PrivateSearch, DisjointSearch])
@pytest.mark.parametrize("way", ["rows", "infer", "table", "table model", "public steps"])
def test_a_regression_pipeline_is_searched_over(kind: Any, way: str) -> None:
    law = {} if kind is DisjointSearch else {"law": FixedTries(2)}
    space = {"model__regularization": [1.0, 3.0]}
    numbers = 10 * ROWS["a"].to_numpy()
    table, schema = ROWS, Schema((Number("a", -1, 1), Number("b", -1, 1)), NumberTarget("y", -9, 9))
    encode = ("encode", SchemaEncoder(schema))
    if way in ("rows", "infer"):
        given = "infer" if way == "infer" else (-9.0, 9.0)
        scale = ("scale", PrivateStandardScaler(bounds=(-1, 1)))
        model = PrivatePipeline([scale, ("model", LinearRegression(label_range=given))])
    elif way == "table":
        model = PrivatePipeline([encode, ("model", LinearRegression())])
    elif way == "table model":
        model = tacit.TableModel(schema, LinearRegression())
        space = {"estimator__regularization": [1.0, 3.0]}
    else:
        steps = [encode, ("pairs", Interactions()), ("model", LinearRegression())]
        model = PrivatePipeline(steps, epsilon=None)
    found = kind(model, space, epsilon=20.0, **law).fit(table, numbers)
    assert found.best_estimator_.privacy_ == found.privacy_
    assert found.score(table, numbers) > 0.5
    assert found.privacy_.within(20.0, 1e-6)
