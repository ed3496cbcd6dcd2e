"""Rare traits: what becomes of people with a capital loss of 1,825 to 1,980 dollars in Adult.

They are 2 % of the records, and mostly earn more than 50,000. How many of those who do are found,
by the votes of teachers, by the student, by a student whose queries are aimed at the group, and by
private logistic regression with the same columns? And if they were a tenth as many?
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier

from tacit.datasets import adult, load_adult
from tacit.datasets.base import find_file
from tacit.engine import release_answers
from tacit.linear_model import LogisticRegression
from tacit.pate import WorstCase
from tacit.pate.classifier import ask_teachers
from tacit.pate.plan import make_plan
from tacit.pate.student import learned
from tacit.privacy import Budget

LEAST, MOST = 1825, 1980
EPSILON, DELTA, N_QUERIES, N_AIMED = 1.0, 1e-5, 500, 100
TEACHERS = (10, 50, 250, 1000)
REPEATS = 3


def run_rare(all_votes: Callable[..., Any], keep: Any) -> None:
    """Measure recall in the group, for all its records and for a tenth of them."""
    data = load_adult(schema=adult.PLAIN)
    column = "capital-loss"
    losses = [
        adult.read_table(find_file(f"adult/adult.{part}.gz", None))[column]
        for part in ("data", "test")
    ]
    group, group_test = ((loss >= LEAST) & (loss <= MOST) for loss in losses)
    # the same column for everybody: whether a record is of the group
    rows = np.column_stack([data.train_rows, group])
    others = np.column_stack([data.test_rows, group_test])
    pool, test = others[:5000], others[5000:]
    found_of = group_test[5000:] & data.test_labels[5000:]
    found: dict[str, Any] = {"group_test": int(found_of.sum()), "cases": []}
    rng = np.random.default_rng(0)
    for share in (1.0, 0.1):
        kept = ~group | (rng.uniform(size=len(rows)) < share)
        case: dict[str, Any] = {"share": float(np.mean(group[kept])), "teachers": {}}
        train, labels = rows[kept], data.train_labels[kept]
        boosting = GradientBoostingClassifier(n_estimators=50, max_depth=2).fit(train, labels)
        case["without_privacy"] = _recall(boosting.predict(test), found_of)
        case["logistic"] = float(
            np.mean([_logistic(train, labels, test, found_of) for _ in range(3)])
        )
        for n in TEACHERS:
            teacher = GradientBoostingClassifier(n_estimators=50, max_depth=2)
            votes = all_votes(teacher, train, labels, others, n)
            line = [_recall(votes[:, 5000:].mean(axis=0) > 0.5, found_of)]
            for aimed in (0, N_AIMED):
                each = [
                    _student(votes, pool, test, found_of, aimed, seed) for seed in range(REPEATS)
                ]
                line.append(float(np.mean(each)))
            case["teachers"][str(n)] = line
            print(share, n, line, flush=True)
        found["cases"].append(case)
        keep("rare", found)


def _student(votes: Any, pool: Any, test: Any, found_of: Any, aimed: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    group = np.flatnonzero(pool[:, -1] > 0)
    chosen = rng.permutation(group)[:aimed]
    rest = np.setdiff1d(rng.permutation(len(pool)), chosen, assume_unique=True)
    places = np.concatenate([chosen, rng.permutation(rest)[: N_QUERIES - len(chosen)]])
    budget = Budget(EPSILON, DELTA)
    plan = make_plan(budget, len(votes), len(places), 2, None, WorstCase())
    answers, _ = release_answers(
        plan, lambda: votes[:, places], lambda session: ask_teachers(session, plan)
    ).value
    trees = GradientBoostingClassifier(
        n_estimators=60, max_depth=2, subsample=0.7, random_state=seed
    )
    fitted = learned(trees, pool, places, answers.astype(bool))
    return _recall(fitted.predict(test), found_of)


def _logistic(train: Any, labels: Any, test: Any, found_of: Any) -> float:
    model = LogisticRegression(EPSILON, DELTA, row_norm=3.5, classes=[False, True])
    return _recall(model.fit(train, labels).predict(test), found_of)


def _recall(said: Any, found_of: Any) -> float:
    return float(np.mean(np.asarray(said, dtype=bool)[found_of]))
