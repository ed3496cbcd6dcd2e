"""Searches among parameters, by both ways, of estimators, tables and pipelines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.features import GaussianKernel, RandomFourierFeatures
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.preprocessing import PrivateStandardScaler
from tacit.schema import SchemaEncoder
from tacit.table_model import TableModel
from tacit.tuning import (
    Capped,
    DisjointSearch,
    FixedTries,
    HeldOut,
    LogUniform,
    Made,
    Poisson,
    PrivateSearch,
    PublicScore,
    TruncatedNegativeBinomial,
    Uniform,
)
from tests.golden.cases.tables import COST, ILL, N, labels, numbers, people
from tests.golden.pinning import SEED, Case, Pins, pinned

DELTA = 1e-5
SPACE = {"regularization": [3.0, 300.0]}


def logistic(**told: Any) -> LogisticRegression:
    """Return what is searched for most cases."""
    return LogisticRegression(classes=[False, True], row_norm=1.5, **told)


def _best(search: Any, X: Any, y: Any) -> Pins:
    found = search.fit(X, y) if y is not None else search.fit(X)
    best = found.best_estimator_
    parameters = {name: repr(value) for name, value in found.best_params_.items()}
    made = pinned(found, best_params_=parameters, predicted=found.predict(X)[:12])
    own = getattr(best, "estimator_", best)
    for name in ("coef_", "intercept_"):
        made["released"][f"best.{name}"] = pinned(own)["released"][name]
    return made


def _search(law: Any, **told: Any) -> Case:
    def case() -> Pins:
        known: dict[str, Any] = {"epsilon": 2.0, "delta": DELTA, "random_state": SEED}
        n_records = {"n_records": N} if told.get("relation") == "replace" else {}
        search = PrivateSearch(logistic(**n_records), SPACE, law=law(), **{**known, **told})
        return _best(search, numbers(), labels())

    return case


LAWS: dict[str, Callable[[], Any]] = {
    "geometric": lambda: TruncatedNegativeBinomial(1.0, 0.3),
    "logarithmic": lambda: TruncatedNegativeBinomial(0.0, 0.3),
    "half": lambda: TruncatedNegativeBinomial(0.5, 0.3),
    "poisson": lambda: Poisson(3.0),
    "capped": lambda: Capped(TruncatedNegativeBinomial(1.0, 0.3), 4),
    "fixed": lambda: FixedTries(3),
}


def _of(
    search: type[Any], estimator: Callable[[], Any], space: Any, data: Any, **told: Any
) -> Case:
    def case() -> Pins:
        known: dict[str, Any] = {"epsilon": 2.0, "delta": DELTA, "random_state": SEED, **told}
        if search is PrivateSearch:
            known.setdefault("law", Capped(TruncatedNegativeBinomial(1.0, 0.5), 3))
        return _best(search(estimator(), space, **known), *data())

    return case


def _arrays() -> tuple[Any, Any]:
    return numbers(), labels()


def _public() -> PublicScore:
    rng = np.random.default_rng(1)
    rows = rng.normal(0.3, 1.0, (50, 3))
    return PublicScore(rows, rows[:, 0] > 0)


def cases() -> dict[str, Case]:
    """Return all of them by name."""
    made = {f"law-{name}": _search(law) for name, law in LAWS.items()}
    made["replace"] = _search(LAWS["fixed"], relation="replace")
    made["pure"] = _search(LAWS["geometric"], delta=0.0)
    made["held_out"] = _search(LAWS["fixed"], scoring=HeldOut(0.4))
    made["public"] = lambda: _search(LAWS["capped"], scoring=_public())()
    laws = {"regularization": LogUniform(1.0, 100.0), "fit_intercept": [True, False]}
    waves = {"waves__kernel": Made(GaussianKernel, Uniform(0.5, 3.0))}

    def line() -> Any:
        return LinearRegression(row_norm=1.5, label_range=(-3.0, 3.0))

    def table() -> Any:
        return TableModel(ILL, LogisticRegression())

    def pipeline() -> Any:
        steps = [
            ("encode", SchemaEncoder(ILL)),
            ("waves", RandomFourierFeatures(GaussianKernel(1.0), 3, seed=1)),
            ("model", LogisticRegression()),
        ]
        return PrivatePipeline(steps)

    def scaled() -> Any:
        scaler = PrivateStandardScaler(bounds=(-3.0, 3.0))
        return PrivatePipeline([("scale", scaler), ("model", logistic())])

    for word, search in {"private": PrivateSearch, "disjoint": DisjointSearch}.items():
        few: dict[str, Any] = {"n_iter": 3}
        made[f"{word}-space"] = _of(search, logistic, laws, _arrays, **few)
        made[f"{word}-numbers"] = _of(
            search, line, SPACE, lambda: (numbers(), numbers() @ [1.0, -1.0, 0.5])
        )
        made[f"{word}-table"] = _of(
            search, table, {"estimator__regularization": [3.0, 300.0]}, lambda: (people(), None)
        )
        made[f"{word}-cost"] = _of(
            search,
            lambda: TableModel(COST, LinearRegression()),
            {"estimator__fit_intercept": [True, False]},
            lambda: (people(), None),
        )
        made[f"{word}-pipeline"] = _of(
            search, pipeline, waves, lambda: (people(), people()["ill"]), n_iter=2
        )
        made[f"{word}-scaled"] = _of(
            search, scaled, {"model__regularization": [3.0, 300.0]}, _arrays
        )
    made["disjoint-replace"] = _of(
        DisjointSearch, lambda: logistic(n_records=N), SPACE, _arrays, relation="replace"
    )
    made["disjoint-pure"] = _of(DisjointSearch, logistic, SPACE, _arrays, delta=0.0)
    return made
