"""Teachers who vote: both estimators, every aggregator, ways to choose rows, and sites."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from tacit.pate import (
    Confident,
    GNMax,
    LNMax,
    Majority,
    PATEClassifier,
    PATERegressor,
    RandomQueries,
    Sanitised,
    SemiSupervised,
)
from tacit.pate.sites import Round, TeacherSite, VoteCollector, digest_of
from tests.golden.pinning import SEED, Case, Pins, encoded, event_pins, pinned

DELTA = 1e-5
N = 240
UNIT = np.array([f"p{place // 3}" for place in range(N)])


def _rows() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    rows, pool = rng.standard_normal((N, 3)), rng.standard_normal((30, 3))
    return rows, np.digitize(rows[:, 0], [-0.4, 0.4]), pool


AGGREGATORS: dict[str, Callable[[], Any]] = {
    "gnmax": GNMax,
    "gnmax-noise": lambda: GNMax(noise_std=9.0),
    "lnmax": LNMax,
    "confident": lambda: Confident(n_answers=5, threshold=0.3),
}
TWO: dict[str, Callable[[], Any]] = {
    "majority": Majority,
    "majority-cut": lambda: Majority(cut=0.3),
    "gnmax": GNMax,
    "auto": lambda: None,
}


def _asked(n_classes: int, aggregator: Callable[[], Any], given: Any = None, **told: Any) -> Case:
    def case() -> Pins:
        rows, three, pool = _rows()
        labels, classes = (three, [0, 1, 2]) if n_classes == 3 else (three > 0, [False, True])
        known: dict[str, Any] = {
            "teacher": GaussianNB(),
            "n_teachers": 12,
            "student": LogisticRegression(),
            "n_queries": 10,
            "epsilon": 8.0,
            "delta": DELTA,
            "queries": "random",
            "random_state": SEED,
        }
        model = PATEClassifier(classes=classes, aggregator=aggregator(), **{**known, **told}).fit(
            rows, labels, pool, **(given or {})
        )
        made = pinned(model, predicted=model.predict(pool))
        if hasattr(model, "sanitised_"):
            cost = {k: v for k, v in vars(model.sanitised_).items() if isinstance(v, int | float)}
            made["released"]["sanitised_"] = encoded(cost)
        return made

    return case


def _numbers(given: Any = None, **told: Any) -> Case:
    def case() -> Pins:
        rows, _, pool = _rows()
        known: dict[str, Any] = {"epsilon": 8.0, "delta": DELTA, "queries": "random", **told}
        model = PATERegressor(
            LinearRegression(),
            12,
            LinearRegression(),
            10,
            label_range=(-3.0, 3.0),
            random_state=SEED,
            **known,
        )
        model.fit(rows, rows @ [1.0, -1.0, 0.5], pool, **(given or {}))
        return pinned(model, predicted=model.predict(pool))

    return case


def _sites(masked: bool, n_missing: int) -> Case:
    def case() -> Pins:
        rows, labels, pool = _rows()
        with tempfile.TemporaryDirectory() as folder:
            sites = [
                TeacherSite(
                    name,
                    GaussianNB(),
                    6,
                    f"{folder}/{name}",
                    classes=[0, 1, 2],
                    random_state=SEED + place,
                )
                for place, name in enumerate(("north", "south", "west"))
            ]
            agreed = Round(
                name="may",
                sites=tuple(site.entry(masked=masked) for site in sites),
                n_classes=3,
                queries=digest_of(pool),
                n_queries=len(pool),
                noise_std=4.0,
                n_missing=n_missing,
                masked=masked,
            )
            collector = VoteCollector(agreed)
            for place, site in enumerate(sites[: 3 - n_missing]):
                own = slice(80 * place, 80 * (place + 1))
                collector.add(site.answer(agreed, rows[own], labels[own], pool))
            event = collector.guarantee(DELTA).event
            return {
                "event": event_pins(event),
                "released": {"answers": encoded(collector.answers())},
            }

    return case


def cases() -> dict[str, Case]:
    """Return all of them by name."""
    made: dict[str, Case] = {}
    for relation in ("add_remove", "replace"):
        for name, aggregator in AGGREGATORS.items():
            pure = {"delta": 0.0} if name == "lnmax" else {}
            made[f"three-{name}-{relation}"] = _asked(3, aggregator, relation=relation, **pure)
        for name, aggregator in TWO.items():
            made[f"two-{name}-{relation}"] = _asked(2, aggregator, relation=relation)
        made[f"numbers-{relation}"] = _numbers(relation=relation)
    made["three-people"] = _asked(3, GNMax, {"unit": UNIT})
    made["two-people"] = _asked(2, Majority, {"unit": UNIT})
    made["numbers-people"] = _numbers({"unit": UNIT})
    made["sanitised"] = _asked(3, GNMax, accounting=Sanitised(noise_multiplier=10.0), epsilon=9.0)
    made["sanitised-two"] = _asked(2, Majority, accounting="sanitised")
    for queries in ("kmeans", "designed", "all", [3, 1, 4, 15, 9]):
        word = queries if isinstance(queries, str) else "places"
        n_queries = {"all": 30, "places": 5}.get(word, 10)
        made[f"queries-{word}"] = _asked(3, GNMax, queries=queries, n_queries=n_queries)
    made["queries-object"] = _asked(3, GNMax, queries=RandomQueries(7))
    made["student-spread"] = _asked(3, GNMax, student=SemiSupervised())
    made["teacher-tree"] = _asked(3, GNMax, teacher=DecisionTreeClassifier(max_features=1))
    made["infinite"] = _asked(3, GNMax, epsilon=float("inf"))
    made["sites"] = _sites(masked=False, n_missing=0)
    made["sites-missing"] = _sites(masked=False, n_missing=1)
    made["sites-masked"] = _sites(masked=True, n_missing=0)
    return made
