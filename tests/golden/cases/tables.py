"""Tables and their schemas, private steps alone, pipelines of both kinds, and evaluations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.linear_model
from sklearn import preprocessing
from sklearn.naive_bayes import GaussianNB

from tacit.features import (
    GaussianKernel,
    Interactions,
    Logarithms,
    MaternKernel,
    PolynomialFeatures,
    RandomFourierFeatures,
    SplineFeatures,
)
from tacit.kernel import KernelLogisticRegression
from tacit.linear_model import LinearRegression, LinearSVC, LogisticRegression, PoissonRegressor
from tacit.local import LocalLogisticRegression
from tacit.location import GeometricMedian, Mean, Median
from tacit.metrics import evaluate, private_score
from tacit.noise import seeded_source
from tacit.pipeline import PrivatePipeline, Vouched
from tacit.preprocessing import (
    PrivateMissing,
    PrivatePCA,
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PrivateVocabulary,
)
from tacit.privacy import Relation
from tacit.schema import (
    Category,
    ClassTarget,
    Ignored,
    Indicator,
    Number,
    NumberTarget,
    OpenCategory,
    OpenNumber,
    Schema,
    SchemaEncoder,
)
from tacit.table_model import TableModel
from tests.golden.pinning import SEED, Case, Pins, encoded, event_pins, pinned, unheard

N = 240
DELTA = 1e-5


def people() -> dict[str, Any]:
    """Return a table of people, with their illness and what it costs."""
    rng = np.random.default_rng(9)
    age = rng.uniform(0, 110, N).round(3)
    return {
        "age": age,
        "sex": rng.choice(["f", "m", "?"], N),
        "income": rng.lognormal(10, 1, N).round(2),
        "town": rng.choice(["Oslo", "Bergen", "Moss"], N, p=[0.5, 0.3, 0.2]),
        "ill": np.where(age + rng.normal(0, 20, N) > 55, "yes", "no"),
        "cost": (8 * age + rng.uniform(0, 90, N)).round(3),
    }


UNIT = np.array([f"p{place // 2}" for place in range(N)])
CLOSED = (
    Number("age", 0, 100, missing=Indicator()),
    Category("sex", ("f", "m")),
    Ignored("income"),
    Ignored("town"),
    Ignored("cost"),
)
ILL = Schema(CLOSED, ClassTarget("ill", ("no", "yes")))
COST = Schema((Number("age", 0, 100), Category("sex", ("f", "m"))), NumberTarget("cost", 0, 1000))
OPEN = Schema(
    (
        OpenNumber("income", 1, 10_000_000, log=True),
        Number("age", 18, 90),
        OpenCategory("town", max_values=4),
    ),
    ClassTarget("ill", ("no", "yes")),
)
MODELS: dict[str, tuple[Schema, Callable[[], Any]]] = {
    "logistic": (ILL, lambda: LogisticRegression(1.0, DELTA, random_state=SEED)),
    "svc": (ILL, lambda: LinearSVC(1.0, DELTA, random_state=SEED)),
    "local": (ILL, lambda: LocalLogisticRegression(2.0, random_state=SEED)),
    "kernel": (
        ILL,
        lambda: KernelLogisticRegression(
            1.0, DELTA, kernel=GaussianKernel(1.5), n_frequencies=4, seed=5, random_state=SEED
        ),
    ),
    "linear": (COST, lambda: LinearRegression(1.0, DELTA, random_state=SEED)),
    "linear-errors": (
        COST.with_references(),
        lambda: LinearRegression(1.0, DELTA, inference=0.2, random_state=SEED),
    ),
    "poisson": (COST, lambda: PoissonRegressor(1.0, DELTA, random_state=SEED)),
    "mean": (COST, lambda: Mean(1.0, DELTA, random_state=SEED)),
    "geometric_median": (COST, lambda: GeometricMedian(1.0, DELTA, random_state=SEED)),
    "median": (COST, lambda: Median(1.0, bounds=(-0.5, 0.5), random_state=SEED)),
}


def _asked(model: Any) -> Any:
    return model.predict(people())[:6] if hasattr(model, "predict") else []


def _tables() -> dict[str, Case]:
    made: dict[str, Case] = {}

    def one(name: str, schema: Schema, estimator: Callable[[], Any], **given: Any) -> None:
        def by_table_model() -> Pins:
            model = TableModel(schema, estimator()).fit(people(), **given)
            return pinned(model.estimator_, predicted=_asked(model))

        def by_pipeline() -> Pins:
            steps = [("encode", SchemaEncoder(schema)), ("model", estimator())]
            model = PrivatePipeline(steps, epsilon=None).fit(
                people(), **({"model__" + k: v for k, v in given.items()})
            )
            return pinned(model["model"], predicted=_asked(model))

        if hasattr(estimator(), "predict"):
            made[f"table-{name}"] = by_table_model
        if not given:
            made[f"pipeline-{name}"] = by_pipeline
        if name == "local":
            unheard(by_table_model)
            unheard(by_pipeline)

    for name, (schema, estimator) in MODELS.items():
        one(name, schema, estimator)
        if name != "local":
            one(f"{name}-people", schema, estimator, unit=UNIT)
    return made


def numbers() -> Any:
    """Return rows of three columns."""
    return np.random.default_rng(4).normal(0.3, 1.0, (N, 3))


def labels() -> Any:
    """Return which of two classes they are of."""
    return numbers()[:, 0] + 0.5 * np.random.default_rng(5).standard_normal(N) > 0


def _gaps() -> Any:
    rows = numbers()
    rows[::5, 1] = np.nan
    return rows


STEPS: dict[str, Callable[[], Any]] = {
    "quantile_bounds": lambda: PrivateQuantileBounds(bounds=(-3.0, 3.0), quantiles=(0.1, 0.9)),
    "standard_scaler": lambda: PrivateStandardScaler(bounds=(-3.0, 3.0)),
    "missing": lambda: PrivateMissing(bounds=(-3.0, 3.0)),
    "pca": lambda: PrivatePCA(2, row_norm=4.0),
    "centered_pca": lambda: PrivatePCA(2, row_norm=4.0, centered=True),
    "some_columns": lambda: PrivateQuantileBounds(bounds=(-3.0, 3.0), columns=[0, 2]),
}
ALONE = ("some_columns",)  # how long its rows are does not follow
PURE = ("quantile_bounds", "standard_scaler", "missing", "some_columns")


def _step(name: str, given: dict[str, Any], told: dict[str, Any]) -> Case:
    def case() -> Pins:
        step = STEPS[name]()
        known = {"epsilon": 1.0, "random_state": SEED, **told}
        step.set_params(**{k: v for k, v in known.items() if k in step.get_params()})
        rows = _gaps() if name == "missing" else numbers()
        step.fit(rows, **given)
        return pinned(step, step.plan(3), transformed=np.asarray(step.transform(rows))[:2])

    return case


def _steps() -> dict[str, Case]:
    made: dict[str, Case] = {}
    for name in STEPS:
        for relation in ("add_remove", "replace"):
            for tag, delta in {"": DELTA, "-pure": 0.0}.items():
                if delta or name in PURE:
                    told = {"relation": relation, "delta": delta}
                    if relation == "replace":
                        told["n_records"] = N
                    made[f"step-{name}-{relation}{tag}"] = _step(name, {}, told)
        delta = 0.0 if name in PURE else DELTA
        made[f"step-{name}-people"] = _step(name, {"unit": UNIT}, {"delta": delta})
    return {**made, "step-vocabulary": _words(), "step-vocabulary-people": _words(unit=UNIT)}


def _words(**given: Any) -> Case:
    def case() -> Pins:
        table = {name: people()[name] for name in ("town", "sex")}
        step = PrivateVocabulary({"town": 4, "sex": 2}, 2.0, 1e-3, random_state=SEED)
        step.fit(table, **given)
        return pinned(step, step.plan(), transformed=np.asarray(step.transform(table))[:2])

    return case


def _whole(model: PrivatePipeline, asked: Any) -> Pins:
    """Return what a pipeline and each of its steps released, and what it was planned as."""
    made = pinned(model, predicted=model.predict(asked)[:6] if hasattr(model, "predict") else [])
    made["released"].pop("feature_names_in_", None)
    steps = {
        name: pinned(step, None) for name, step in model.steps_.items() if hasattr(step, "privacy_")
    }
    # what they cost is in the event of the whole
    made["plan"]["steps"] = {
        name: {k: v for k, v in step["plan"].items() if k != "event"}
        for name, step in steps.items()
        if "plan" in step
    }
    for name, step in steps.items():
        made["released"] |= {f"{name}.{key}": value for key, value in step["released"].items()}
    if model.evaluation_ is not None:
        made["released"]["evaluation_"] = _found(model.evaluation_)
    return made


def _found(evaluation: Any) -> Any:
    told: dict[str, Any] = {
        "metrics": {name: [e.low, e.value, e.high] for name, e in evaluation.metrics.items()},
        "refused": sorted(evaluation.refused),
        "n_records": [evaluation.n_records.low, evaluation.n_records.value],
        "noise_std": evaluation.noise_std,
    }
    if evaluation.confusion is not None:
        told["confusion"] = evaluation.confusion.counts
    if evaluation.sums is not None:
        told["sums"] = np.asarray(evaluation.sums).ravel()[:12]
    return encoded(told)


STEPS_OF_OTHERS: dict[str, Callable[[], Any]] = {
    "polynomials": lambda: PolynomialFeatures(),
    "waves": lambda: RandomFourierFeatures(GaussianKernel(1.5), 4, seed=1),
    "matern": lambda: RandomFourierFeatures(MaternKernel(1.5, 1.0), 4, seed=1),
    "splines": lambda: SplineFeatures(4, 2),
    "interactions": lambda: Interactions(),
    "logarithms": lambda: Logarithms(0.3),
    "sklearn_polynomials": lambda: preprocessing.PolynomialFeatures(2, include_bias=False),
    "normalizer": lambda: preprocessing.Normalizer(),
    "binarizer": lambda: preprocessing.Binarizer(),
    "vouched": lambda: Vouched(preprocessing.FunctionTransformer(np.tanh), row_norm=1.8),
}


def _pipelines() -> dict[str, Case]:
    made: dict[str, Case] = {}

    def numeric(
        name: str, steps: list[tuple[str, Any]], given: dict[str, Any], **told: Any
    ) -> None:
        def case() -> Pins:
            known = {"n_records": N} if told.get("relation") == "replace" else {}
            last = LogisticRegression(classes=[False, True], **known)
            fresh = [(word, make()) for word, make in steps]
            model = PrivatePipeline([*fresh, ("model", last)], random_state=SEED, **told)
            rows = _gaps() if any(word == "missing" for word, _ in steps) else numbers()
            return _whole(model.fit(rows, labels(), **given), rows)

        made[f"private-{name}"] = case

    for name, step in STEPS.items():
        if name in ALONE:
            continue
        for relation in ("add_remove", "replace"):
            if relation == "add_remove" or name != "centered_pca":
                numeric(f"{name}-{relation}", [(name, step)], {}, delta=DELTA, relation=relation)
        numeric(f"{name}-people", [(name, step)], {"unit": UNIT}, delta=DELTA)
        if name in PURE:
            numeric(f"{name}-pure", [(name, step)], {}, delta=0.0)
    bounded = ("bounds", STEPS["standard_scaler"])
    for name, step in STEPS_OF_OTHERS.items():
        numeric(name, [bounded, (name, step)], {}, delta=DELTA)
    three = [(word, STEPS[word]) for word in ("missing", "standard_scaler", "pca")]
    numeric("three", three, {}, delta=DELTA)
    numeric("shares", [bounded], {}, delta=DELTA, shares={"bounds": 0.3})
    numeric("held_out", [bounded], {}, delta=DELTA, evaluate=0.4, epsilon=8.0)
    numeric("held_out-people", [bounded], {"unit": UNIT}, delta=DELTA, evaluate=0.4, epsilon=8.0)
    numeric(
        "held_out-replace",
        [bounded],
        {},
        delta=DELTA,
        evaluate=0.4,
        epsilon=9.0,
        relation="replace",
    )
    numeric("held_out-pure", [bounded], {}, delta=0.0, evaluate=0.4, epsilon=8.0)

    def open_columns(**told: Any) -> Case:
        def case() -> Pins:
            steps = [("encode", SchemaEncoder(OPEN)), ("model", LogisticRegression())]
            model = PrivatePipeline(steps, 4.0, 1e-3, random_state=SEED, **told)
            return _whole(model.fit(people()), people())

        return case

    made["private-open"] = open_columns()
    made["private-open-held_out"] = open_columns(evaluate=0.3)
    return made


def _evaluated(of: str, **told: Any) -> Case:
    def case() -> Pins:
        rows, two = numbers(), labels()
        three = np.digitize(rows[:, 1], [-0.4, 0.9])
        models: dict[str, tuple[Callable[[], Any], Any, dict[str, Any]]] = {
            "two": (lambda: GaussianNB().fit(rows, two), two, {"classes": [False, True]}),
            "three": (lambda: GaussianNB().fit(rows, three), three, {"classes": [0, 1, 2]}),
            "numbers": (
                lambda: sklearn.linear_model.LinearRegression().fit(rows, rows[:, 2] ** 2),
                rows[:, 2] ** 2,
                {"label_range": (0.0, 6.0)},
            ),
        }
        model, truth, known = models[of]
        found = evaluate(
            model(), rows, truth, random_state=SEED, **{**known, "epsilon": 8.0, **told}
        )
        return {"event": event_pins(found.privacy_.event), "released": {"found": _found(found)}}

    return case


def _scored() -> Pins:
    model = sklearn.linear_model.LogisticRegression().fit(numbers(), labels())
    found = [
        private_score(model, numbers(), labels(), 3.0, relation=relation, source=seeded_source(3))
        for relation in (Relation.ADD_REMOVE, Relation.REPLACE)
    ]
    return {
        "event": [event_pins(each.event) for each in found],
        "released": {"scores": encoded([float(each.value) for each in found])},
    }


def _evaluations() -> dict[str, Case]:
    made: dict[str, Case] = {"score": _scored}
    for of in ("two", "three", "numbers"):
        made[f"evaluate-{of}"] = _evaluated(of)
        made[f"evaluate-{of}-pure"] = _evaluated(of, delta=0.0)
        made[f"evaluate-{of}-people"] = _evaluated(of, unit=UNIT)
        made[f"evaluate-{of}-replace"] = _evaluated(of, relation="replace", n_records=N)
    made["evaluate-bins"] = _evaluated("two", bins=16)
    made["evaluate-few"] = _evaluated("two", epsilon=2.0)
    return made


def cases() -> dict[str, Case]:
    """Return all of them by name."""
    return {**_tables(), **_steps(), **_pipelines(), **_evaluations()}
