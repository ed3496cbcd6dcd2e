"""Numbers: scikit-learn's errors without noise, intervals that hold them with it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from tacit.metrics import evaluation_plan
from tacit.metrics.evaluate import evaluation_of
from tacit.privacy import Budget, Guarantee, Relation
from tests.metrics.helpers import INFINITE, Array, coverage, exact, simulated, sums_of

RANGE = (10.0, 50.0)


def predicted(n_records: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(2)
    answers = rng.uniform(15, 45, n_records)
    return answers, np.clip(answers + rng.normal(0, 4, n_records), *RANGE)


def test_without_noise_it_says_what_scikit_learn_says() -> None:
    answers, labels = predicted(5_000)
    plan = evaluation_plan(INFINITE, label_range=RANGE)
    found = evaluation_of(plan, sums_of(plan, answers, labels), Guarantee(plan.event))
    assert found["mse"].value == pytest.approx(metrics.mean_squared_error(labels, answers))
    assert found["rmse"].value == pytest.approx(metrics.root_mean_squared_error(labels, answers))
    assert found["mae"].value == pytest.approx(metrics.mean_absolute_error(labels, answers))
    assert found["r2"].value == pytest.approx(metrics.r2_score(labels, answers))
    assert found.n_records.value == 5_000


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_intervals_cover_what_the_same_records_say_without_noise(relation: Relation) -> None:
    answers, labels = predicted(20_000)
    plan = evaluation_plan(Budget(0.3, 1e-6, relation), label_range=RANGE)
    sums = sums_of(plan, answers, labels)
    for name, share in coverage(simulated(plan, sums, 1_000), exact(plan, sums)).items():
        assert 0.93 <= share <= 0.97, (name, share)


def test_too_few_records_are_refused() -> None:
    plan = evaluation_plan(Budget(0.3, 1e-6), label_range=RANGE)
    with pytest.raises(ValueError, match="Use about"):
        simulated(plan, sums_of(plan, *predicted(100)), 1)
