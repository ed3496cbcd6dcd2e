"""Mistakes that need no record to be seen: each is refused in a sentence, and costs nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression as Straight
from sklearn.linear_model import LogisticRegression as Line
from sklearn.naive_bayes import GaussianNB

from tacit.images import ScatteringClassifier
from tacit.kernel import KernelLogisticRegression
from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from tacit.location import GeometricMedian, Mean, Median
from tacit.metrics import evaluate
from tacit.pate import PATEClassifier, PATERegressor
from tacit.pipeline import PrivatePipeline
from tacit.preprocessing import (
    PrivateMissing,
    PrivatePCA,
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PrivateVocabulary,
)
from tacit.privacy import Accountant, Budget
from tacit.schema import ClassTarget, Number, NumberTarget, Schema
from tacit.table_model import TableModel
from tacit.tuning import DisjointSearch, HeldOut, PrivateSearch

N = 60
X = np.random.default_rng(0).uniform(-0.5, 0.5, (N, 3))
CODES = (X[:, 0] > 0).astype(int)
WORDS = np.where(CODES > 0, "yes", "no")
NUMBERS = X @ [1.0, 0.5, 0.0]
DATES = np.zeros(N, "M8[D]")
POOL = np.linspace(-1, 1, 30).reshape(10, 3)
SCHEMA = Schema((Number("a", -1, 1),), ClassTarget("ill", ("no", "yes")))
OF_NUMBERS = Schema((Number("a", -1, 1),), NumberTarget("b", -1, 1))
TABLE = {"a": X[:, 0], "ill": WORDS}

Call = Callable[[Accountant], Any]


def logistic(accountant: Any = None, **told: Any) -> LogisticRegression:
    known = {"row_norm": 1.0, "classes": ["no", "yes"], "accountant": accountant}
    return LogisticRegression(**{**known, **told})


def classes(y: Any = WORDS, x: Any = X, weights: Any = None, unit: Any = None, **told: Any) -> Call:
    return lambda a: logistic(a, **told).fit(x, y, weights, unit)


def numbers(y: Any = NUMBERS, cls: Any = LinearRegression, **told: Any) -> Call:
    known = {"row_norm": 1.0, "label_range": (-1, 1), **told}
    return lambda a: cls(accountant=a, **known).fit(X, y)


def on_rows(cls: Any, *args: Any, **told: Any) -> Call:
    return lambda a: cls(*args, **told, accountant=a).fit(X)


def on_frame(cls: Any, *args: Any, **told: Any) -> Call:
    return lambda a: cls(*args, **told, accountant=a).fit(pd.DataFrame({"a": X[:, 0]}))


def table(columns: Any = TABLE, unit: Any = None, schema: Schema = SCHEMA, **told: Any) -> Call:
    return lambda a: TableModel(schema, logistic(a), **told).fit(columns, unit=unit)


def teachers(y: Any = WORDS, pool: Any = POOL, **told: Any) -> Call:
    known = {"teacher": GaussianNB(), "n_teachers": 5, "student": Line(), "n_queries": 4}
    known |= {"epsilon": 8.0, "classes": ["no", "yes"]}
    return lambda a: PATEClassifier(**{**known, **told}, accountant=a).fit(X, y, pool)


def teachers_of_numbers(y: Any = NUMBERS, **told: Any) -> Call:
    known = {"teacher": Straight(), "n_teachers": 5, "student": Straight(), "n_queries": 4}
    known |= {"epsilon": 8.0, "label_range": (-1, 1)}
    return lambda a: PATERegressor(**{**known, **told}, accountant=a).fit(X, y, POOL)


TRIES = {"regularization": [1.0, 10.0]}


def search(
    space: Any = TRIES, y: Any = WORDS, cls: Any = PrivateSearch, model: Any = None, **told: Any
) -> Call:
    model = logistic() if model is None else model
    return lambda a: cls(model, space, accountant=a, **told).fit(X, y)


SCALER = ("scale", PrivateStandardScaler(bounds=(-1, 1)))


def pipeline(model: Any = None, y: Any = WORDS, steps: Any = None, **told: Any) -> Call:
    made = [SCALER, ("model", logistic() if model is None else model)] if steps is None else steps
    return lambda a: PrivatePipeline(made, accountant=a, **told).fit(X, y)


FITTED, FITTED_TO_NUMBERS = Line().fit(X, WORDS), Straight().fit(X, NUMBERS)


def evaluation(model: Any = FITTED, x: Any = X, y: Any = WORDS, **told: Any) -> Call:
    return lambda a: evaluate(model, x, y, **{"epsilon": 1.0, **told}, accountant=a)


def images(**told: Any) -> Call:
    known = {"image_shape": (8, 8), "classes": [0, 1], **told}
    return lambda a: ScatteringClassifier(**known, accountant=a).fit(np.zeros((N, 64)), CODES)


# Name: what is called, and a part of the error.
MISTAKES: dict[str, tuple[Call, str]] = {
    # labels and classes
    "one class twice": (classes(classes=["no", "no"]), "distinct labels"),
    "one class alone": (classes(classes=["no"]), "at least 2 classes"),
    "classes in one word": (classes(classes="yes"), "classes must be a list of labels, got 'yes'"),
    "no classes": (classes(classes=None), "classes is not declared"),
    "classes of numbers": (classes(classes=[0, 1]), "no record would count"),
    "labels of numbers": (classes(CODES), "no record would count"),
    "labels of dates": (classes(DATES, classes=[0, 1]), "no record would count"),
    "labels missing": (classes(None), "requires y"),
    "too few labels": (classes(WORDS[:-1]), "different lengths"),
    "two labels a record": (classes(np.stack([WORDS] * 2, axis=1)), "y should be a 1d array"),
    "complex labels": (numbers(NUMBERS + 0j), "y holds complex numbers"),
    "words for numbers": (numbers(WORDS), r"by its type \(text\)"),
    "dates for numbers": (numbers(DATES), r"by its type \(dates\)"),
    "weight of no class": (classes(class_weight={"maybe": 2}), "'maybe', which is not a class"),
    "weights in a wrong word": (classes(class_weight="balance"), "class_weight must be"),
    # rows, weights, people
    "rows of words": (classes(x=np.full((N, 3), "a")), "holds text, not numbers"),
    "rows of dates": (classes(x=np.zeros((N, 3), "M8[D]")), "not numbers"),
    "rows of complex numbers": (classes(x=X + 0j), "X holds complex numbers"),
    "one dimension": (classes(x=X[:, 0]), "Expected 2D array"),
    "no columns": (classes(x=X[:, :0]), "minimum of 1 is required"),
    "no rows at all": (classes(x=None), "Expected 2D array"),
    "too few weights": (classes(weights=np.ones(N - 1), max_weight=1.0), "another length than X"),
    "weights of words": (classes(weights=WORDS, max_weight=1.0), "something else than numbers"),
    "too few people": (classes(unit=np.arange(5)), "X and unit are of different lengths"),
    "people without a unit": (classes(relation="add_remove_person"), "have no unit"),
    # parameters
    "epsilon in words": (classes(epsilon="1"), "epsilon must be a real number"),
    "delta of 1": (classes(delta=1.0), "delta must be in"),
    "relation": (classes(relation="swap"), "relation must be"),
    "mechanism": (classes(mechanism="objective"), "mechanism 'objective' is unknown"),
    "regularization": (classes(regularization=math.nan), "regularization must be"),
    "constraint": (classes(constraint=3.0), "a constraint must be"),
    "intercept in words": (classes(fit_intercept="no"), "fit_intercept must be True or False"),
    "seed in words": (classes(random_state="x"), "random_state must be a whole number"),
    "inference": (classes(inference=2), "inference must be a share"),
    "accountant": (lambda a: logistic("a.ledger").fit(X, WORDS), "accountant must keep a budget"),
    "range in the wrong order": (numbers(label_range=(1, -1)), "label_range must be two finite"),
    "range of one number": (numbers(label_range=1.0), "label_range must be two numbers"),
    "range of words": (numbers(label_range=("a", "b")), "label_range must be two numbers"),
    "range of negative counts": (numbers(cls=PoissonRegressor), "counts are not negative"),
    "quantile": (numbers(cls=QuantileRegressor, quantile=1.5), "between 0 and 1"),
    "knot": (numbers(cls=HuberRegressor, knot=-1.0), "knot must be positive"),
    "ridge": (numbers(cls=Ridge, alpha=-1.0), "must be finite and not negative"),
    "smoothing": (
        lambda a: LinearSVC(smoothing=0, row_norm=1.0, classes=["no", "yes"], accountant=a).fit(
            X, WORDS
        ),
        "smoothing must be",
    ),
    "kernel": (
        lambda a: KernelLogisticRegression(kernel="rbf", classes=["no", "yes"], accountant=a).fit(
            X, WORDS
        ),
        "kernel must be",
    ),
    "shape of images": (images(image_shape=(9, 9)), "declare the image_shape"),
    "mirrored in words": (images(mirrored="no"), "mirrored must be True or False"),
    # locations and preprocessing
    "center of two": (on_rows(Mean, row_norm=1.0, center=[0, 0]), "center must be one number"),
    "center of words": (on_rows(GeometricMedian, row_norm=1.0, center="mid"), "center must be"),
    "bounds of a median": (on_rows(Median, bounds=(1, -1)), "bounds must be finite pairs"),
    "no bounds": (on_rows(PrivateStandardScaler), "are not declared"),
    "column of a scaler": (on_rows(PrivateStandardScaler, bounds=(-1, 1), columns=[7]), "column 7"),
    "components": (on_rows(PrivatePCA, 7, row_norm=1.0), "n_components must be in"),
    "quantiles": (
        on_rows(PrivateQuantileBounds, bounds=(-1, 1), quantiles=(0.9, 0.1)),
        "quantiles must be two levels in order",
    ),
    "column of words": (on_frame(PrivateVocabulary, {"z": 9}), "no column named 'z'"),
    "column with gaps": (on_frame(PrivateMissing, columns=["z"], bounds=(0, 1)), "no column 'z'"),
    # tables with a schema
    "column misspelt": (table({"A": X[:, 0], "ill": WORDS}), "no column named 'a'"),
    "target misspelt": (table({"a": X[:, 0], "iLl": WORDS}), "no column named 'ill'"),
    "target of numbers": (table({**TABLE, "ill": CODES}), "no record would count"),
    "column of dates": (table({**TABLE, "a": DATES}), "neither a number nor text"),
    "columns of two lengths": (table({**TABLE, "a": X[1:, 0]}), "different lengths"),
    "no table": (table([1, 2, 3]), "a table with named columns is needed"),
    "type of features": (table(dtype="float46"), "dtype must be a type of numbers"),
    "target of another kind": (table(schema=OF_NUMBERS), "needs a schema whose target has classes"),
    "no such file": (
        lambda a: TableModel(SCHEMA, logistic(a)).fit_file("no-such-file.csv"),
        "there is no such file",
    ),
    # teachers
    "no public rows": (teachers(pool=None), "X_public is missing"),
    "public rows of two columns": (teachers(pool=POOL[:, :2]), "X_public has 2 columns"),
    "few public rows": (teachers(n_queries=40), "X_public has 10 rows"),
    "teacher by name": (teachers(teacher="forest"), "teacher must be an estimator"),
    "teacher as a class": (teachers(teacher=GaussianNB), "the class GaussianNB itself"),
    "teacher of numbers": (teachers(teacher=Straight()), "teacher must predict classes"),
    "student of numbers": (teachers(student=Straight()), "student must predict classes"),
    "parameter of a teacher": (teachers(teacher=Line(C=-1.0)), "'C' parameter"),
    "parameter of a student": (teachers(student=Line(solver="x")), "'solver' parameter"),
    "jobs": (teachers(n_jobs=0), "n_jobs must be a whole number other than 0"),
    "jobs in words": (teachers(n_jobs="all"), "n_jobs must be a whole number"),
    "aggregator by name": (teachers(aggregator="max"), "aggregator must be an Aggregator"),
    "labels of teachers": (teachers(CODES), "no record would count"),
    "teacher of classes": (teachers_of_numbers(teacher=GaussianNB()), "must predict numbers"),
    "words for teachers of numbers": (teachers_of_numbers(WORDS), r"by its type \(text\)"),
    # searches
    "parameter of a search": (search({"regularisation": [1.0]}), "does not have"),
    "value in a search": (search({"regularization": [1.0, -2.0]}), "must be finite"),
    "value in a disjoint search": (
        search({"regularization": [1.0, -2.0]}, cls=DisjointSearch),
        "must be finite",
    ),
    "mechanism in a search": (search({"mechanism": ["auto", "best"]}), "'best' is unknown"),
    "nothing to try": (search({"regularization": []}), "regularization"),
    "score of a search": (search(scoring="accuracy"), "scoring"),
    "held out too much": (lambda a: search(scoring=HeldOut(2.0))(a), "share"),
    "search over epsilon": (search({"epsilon": [1.0]}), "the search decides"),
    "labels of a search": (search(y=CODES), "no record would count"),
    "model without a guarantee": (search({"C": [1.0]}, model=Line()), "of tacit"),
    # pipelines
    "no steps": (pipeline(steps=[]), "step"),
    "step without a guarantee": (pipeline(Line()), "estimator of tacit"),
    "share of no step": (pipeline(shares={"z": 0.5}), "z"),
    "share held out": (pipeline(evaluate=1.5), "evaluate must be a share"),
    "late weight of no class": (pipeline(logistic(class_weight={"q": 1})), "not a class"),
    "late kernel": (
        pipeline(KernelLogisticRegression(kernel=3, classes=["no", "yes"], row_norm=1.0)),
        "kernel must be",
    ),
    "late words for numbers": (
        pipeline(LinearRegression(label_range=(-1, 1), row_norm=1.0)),
        r"by its type \(text\)",
    ),
    "late constraint": (pipeline(logistic(constraint=3)), "a constraint must be"),
    "late components": (
        pipeline(steps=[SCALER, ("pca", PrivatePCA(9)), ("model", logistic())]),
        "n_components must be in",
    ),
    # evaluations
    "model that is no model": (evaluation("model"), "model must be a classifier"),
    "model not fitted": (evaluation(Line()), "not fitted yet"),
    "columns of an evaluation": (evaluation(x=X[:, :2]), "was fitted to 3"),
    "too few labels to evaluate": (evaluation(y=WORDS[:-1]), "different lengths"),
    "no labels to evaluate": (evaluation(y=None), "needs the labels"),
    "labels of another type": (evaluation(y=CODES), "no record would count"),
    "other classes": (evaluation(classes=["a", "b"]), "must be those of the model"),
    "bins": (evaluation(bins=0), "bins must be in"),
    "no range": (evaluation(FITTED_TO_NUMBERS, y=NUMBERS), "label_range is not declared"),
    "words against numbers": (
        evaluation(FITTED_TO_NUMBERS, label_range=(-1, 1)),
        r"by its type \(text\)",
    ),
    "too few records": (evaluation(n_records=3), "too few"),
}


def test_there_are_many() -> None:
    assert len(MISTAKES) >= 100


@pytest.mark.parametrize("name", MISTAKES)
def test_nothing_is_charged(name: str) -> None:
    call, part = MISTAKES[name]
    accountant = Accountant(Budget(100.0, 1e-3))
    with pytest.raises((ValueError, TypeError), match=part) as refusal:
        call(accountant)
    assert not accountant.events
    assert str(refusal.value).rstrip().endswith((".", "]", ")")), "a sentence"


def test_an_accountant_of_a_part_is_no_accountant_of_the_whole() -> None:
    # It would be charged nothing, and somebody thinks that it was.
    own = Accountant(Budget(100.0, 1e-3))
    with pytest.raises(ValueError, match="to the pipeline"):
        PrivatePipeline([SCALER, ("model", logistic(own))]).fit(X, WORDS)
    for cls in (PrivateSearch, DisjointSearch):
        with pytest.raises(ValueError, match="pass it to the search"):
            cls(logistic(own), TRIES).fit(X, WORDS)
