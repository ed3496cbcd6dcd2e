"""Diabetes-130 by patient: five splits, each with teachers of its own and five draws; AUC.

Of the patients 80 % are the teachers', 10 % the public pool, and 10 % are judged. Teacher, student,
how many teachers and queries, and the way of asking were chosen by labels of pool rows that were
not asked about, on other splits of the same patients (seeds 100 to 104). So no label was looked at
where it is judged here, but a patient who is judged may have been in one of those pools.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import diabetes130
import numpy as np
from diabetes130 import load_diabetes130
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.metrics import roc_auc_score

from tacit.engine import release_answers
from tacit.linear_model import LogisticRegression
from tacit.pate import DesignedQueries, Majority, RandomQueries, WorstCase
from tacit.pate.classifier import ask_teachers
from tacit.pate.plan import make_plan
from tacit.pate.query_points import Queries
from tacit.pate.student import learned
from tacit.privacy import Budget

DELTA, SEEDS = 1e-5, 5
# Of queries and noise, on each split: what settings are compared by is then mostly the splits.
DRAWS = 5
# The share of stays after which a patient is back within 30 days, by public labels of the pools.
PRIOR = 0.11


@dataclass(frozen=True)
class Setting:
    """How teachers are asked."""

    epsilon: float
    n_teachers: int
    cut: float
    queries: str
    n_queries: int = 1000


# The first is what is aimed for, the fourth what was measured before on one split, and between them
# is what either change is worth.
SETTINGS = (
    Setting(1.44, 1000, PRIOR, "designed"),
    Setting(1.44, 1000, PRIOR, "random"),
    Setting(1.44, 250, 0.5, "designed"),
    Setting(1.44, 250, 0.5, "random"),
    Setting(0.5, 1000, PRIOR, "designed"),
    Setting(0.5, 250, 0.5, "random"),
)


@dataclass(frozen=True)
class Split:
    """The rows of teachers, pool and judged patients."""

    train: tuple[Any, Any, Any]
    pool: tuple[Any, Any]
    judged: tuple[Any, Any]


def run_diabetes(path: Path, all_votes: Callable[..., Any], keep: Any) -> None:
    """Measure each split once; what was measured before is kept, so that a stopped run goes on."""
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"splits": []}
    data = load_diabetes130(schema=diabetes130.SCHEMA)
    for seed in range(len(found["splits"]), SEEDS):
        split = _split(data, seed)
        one: dict[str, Any] = {"pool": len(split.pool[0]), "settings": {}, **_others(split, seed)}
        for n_teachers in sorted({setting.n_teachers for setting in SETTINGS}):
            rows, labels, unit = split.train
            votes = all_votes(_teacher(), rows, labels, split.pool[0], n_teachers, unit)
            share = roc_auc_score(split.pool[1], votes.mean(axis=0))
            one[f"votes_of_{n_teachers}"] = float(share)
            for place, setting in enumerate(SETTINGS):
                if setting.n_teachers == n_teachers:
                    one["settings"][str(place)] = [
                        _student(split, votes, setting, DRAWS * seed + draw)
                        for draw in range(DRAWS)
                    ]
        found["splits"].append(one)
        keep("diabetes", found)


def _split(data: Any, seed: int) -> Split:
    """Return a split by patient."""
    rows = np.vstack([data.train_rows, data.test_rows])
    labels = np.concatenate([data.train_labels, data.test_labels])
    unit = np.concatenate([np.asarray(data.train_unit), np.asarray(data.test_unit)])
    patients = np.unique(unit)
    order = np.random.default_rng(seed).permutation(patients)
    tenth = len(patients) // 10
    judged, pool = np.isin(unit, order[:tenth]), np.isin(unit, order[tenth : 2 * tenth])
    ours = ~(judged | pool)
    return Split(
        (rows[ours], labels[ours], unit[ours]),
        (rows[pool], labels[pool]),
        (rows[judged], labels[judged]),
    )


def _teacher() -> PlainLogisticRegression:
    return PlainLogisticRegression(C=0.05, class_weight="balanced", max_iter=200)


def _student(split: Split, votes: Any, how: Setting, seed: int) -> float:
    """Return the AUC of a student on the patients who are judged."""
    pool, _ = split.pool
    ways: dict[str, Queries] = {"designed": DesignedQueries(), "random": RandomQueries(seed)}
    places = ways[how.queries].places(pool, how.n_queries)
    budget, rule = Budget(how.epsilon, DELTA), Majority(cut=how.cut)
    plan = make_plan(budget, len(votes), how.n_queries, 2, rule, WorstCase())
    answers, _ = release_answers(
        plan, lambda: votes[:, places], lambda session: ask_teachers(session, plan)
    ).value
    fitted = learned(PlainLogisticRegression(C=0.01), pool, places, answers.astype(bool))
    rows, truth = split.judged
    return float(roc_auc_score(truth, fitted.predict_proba(rows)[:, -1]))


def _others(split: Split, seed: int) -> dict[str, float]:
    """Return the AUC of a forest without privacy, and of private logistic regression by patient."""
    (rows, labels, unit), (judged, truth) = split.train, split.judged
    forest = RandomForestClassifier(60, min_samples_leaf=20, max_samples=0.4, random_state=seed)
    whole = forest.fit(rows, labels).predict_proba(judged)[:, 1]
    model = LogisticRegression(1.44, DELTA, row_norm=diabetes130.ROW_NORM, classes=[False, True])
    private = model.fit(rows, labels, unit=unit).decision_function(judged)
    return {
        "ceiling": float(roc_auc_score(truth, whole)),
        "logistic": float(roc_auc_score(truth, private)),
    }
