"""Names that one reads rather than builds: results are of their class, and protocols hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Student
from sklearn.naive_bayes import GaussianNB

import tacit
from tacit.additive import AdditiveClassifier, AdditivePlan, Term
from tacit.datasets import Dataset
from tacit.erm import (
    Box,
    FeasibleSet,
    L1Ball,
    L2Ball,
    Objective,
    Result,
    Simplex,
    WholeSpace,
    minimize,
)
from tacit.erm.losses import LogisticLoss
from tacit.features import Domain, PolynomialFeatures
from tacit.io import LineCounts, line_counts
from tacit.ledger import Ledger, LedgerStatus, status
from tacit.linear_model import Summary, WaldTest
from tacit.location import Mean
from tacit.pate import (
    AllQueries,
    GNMax,
    KMeansQueries,
    PATEClassifier,
    PublishedStudent,
    WorstCase,
    published,
)
from tacit.pate.aggregators import Aggregator
from tacit.privacy import Budget, PureEpsilon, Relation
from tacit.queries import Count, Facts, GaussianNoise, NoisySum, Query, Statistic
from tacit.records import Bounds, MemoryRecords, RowMap
from tacit.saving import Certificate, inspect
from tacit.schema import ClassTarget, Number, Schema

ROWS = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
LABELS = np.where(ROWS[:, 0] > 0, 1.0, -1.0)


def test_a_data_set_has_rows_to_train_on_and_to_test_on() -> None:
    found = Dataset(ROWS[:9], LABELS[:9], ROWS[9:], LABELS[9:], ("a", "b"), "Made.")
    assert len(found.train_rows) + len(found.test_labels) == len(ROWS)
    assert found.train_unit is None, "each row is a person of its own"


def test_minimising_returns_weights_and_their_promise() -> None:
    bounds = Bounds(row_norm=1.5)
    records = MemoryRecords(ROWS, LABELS, bounds)
    result = minimize(records, Objective(LogisticLoss(), bounds), Budget(1.0, 1e-6))
    assert isinstance(result, Result)
    assert result.weights.shape == (2,)


@pytest.mark.parametrize(
    "kind", [L1Ball(2.0), L2Ball(2.0), Box(-1.0, 1.0), Simplex(2.0), WholeSpace()]
)
def test_sets_of_weights_project_into_themselves(kind: Any) -> None:
    assert isinstance(kind, FeasibleSet)
    inside = kind.project(np.array([3.0, -4.0]))
    np.testing.assert_allclose(kind.project(inside), inside)
    assert np.linalg.norm(inside) <= kind.radius(2) * (1 + 1e-12)


def test_a_domain_knows_its_longest_row() -> None:
    domain = Domain(("a", "b"), 9.0, ((0.0, 3.0), (-4.0, 1.0)))
    assert domain.longest == 5.0
    row_map: RowMap = PolynomialFeatures().row_map(domain)
    out = np.empty((1, row_map.n_columns))
    row_map(np.array([[2.0, -1.0]]), out)
    assert {2.0, -1.0, 4.0, 1.0} <= set(np.round(np.abs(out[0]), 9)) | {-1.0}


def test_a_ledger_has_its_status(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", Budget(1.0))
    ledger.charge(PureEpsilon(0.75))
    found = status(ledger)
    assert isinstance(found, LedgerStatus)
    assert (found.spent, found.left) == pytest.approx((0.75, 0.25))


def test_a_file_has_its_certificate(tmp_path: Path) -> None:
    model = Mean(1.0, row_norm=1.0).fit(ROWS)
    tacit.save(model, tmp_path / "mean.tacit")
    found = inspect(tmp_path / "mean.tacit")
    assert isinstance(found, Certificate)
    assert found.statement == model.privacy_.statement()


def test_a_question_has_its_price_and_a_statistic_its_sensitivity() -> None:
    facts = Facts(Bounds(), 2, Relation.ADD_REMOVE)
    statistic: Statistic = Count()
    question: Query[Any] = NoisySum(Count(), GaussianNoise(3.0))
    assert statistic.sensitivity(facts).value == 1.0
    assert question.event(facts).gaussian_mu() == pytest.approx(1 / 3)


def test_all_rows_of_a_pool_or_the_middles_of_its_clusters() -> None:
    pool = np.repeat([[0.0], [5.0], [9.0]], 20, axis=0)
    assert AllQueries().places(pool, 60).tolist() == list(range(60))
    assert sorted(pool[KMeansQueries().places(pool, 3), 0]) == [0.0, 5.0, 9.0]


def test_a_student_is_published_as_arrays() -> None:
    pool = np.random.default_rng(1).uniform(-1, 1, (60, 2))
    told: dict[str, Any] = {"epsilon": 9.0, "accounting": WorstCase()}
    model = PATEClassifier(GaussianNB(), 40, Student(), 20, aggregator=GNMax(), **told)
    assert isinstance(model.aggregator, Aggregator)
    model.fit(ROWS, ROWS[:, 0] > 0, pool)
    student = published(model)
    assert isinstance(student, PublishedStudent)
    assert np.array_equal(student.predict(pool), model.predict(pool))


def test_an_additive_model_has_a_plan_and_a_term_for_each_column() -> None:
    schema = Schema((Number("a", -1, 1),), ClassTarget("b", (False, True)))
    model = AdditiveClassifier(schema, 4.0, 1e-6, random_state=0)
    assert isinstance(model.plan(2000), AdditivePlan)
    model.fit({"a": ROWS[:, 0], "b": ROWS[:, 0] > 0})
    assert isinstance(model.terms_["a"], Term)


def test_several_terms_are_tested_together() -> None:
    found = Summary("M", ("a", "b"), (1.0, 2.0), (1.0, 1.0), covariance=np.eye(2))
    test = found.wald_test(["a", "b"])
    assert isinstance(test, WaldTest)
    assert test.statistic == 5.0


def test_lines_that_are_no_records_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,b\n1,2\n3\n")
    counts = line_counts(file)
    assert isinstance(counts, LineCounts)
    assert (counts.records, counts.wrong_fields) == (1, 1)
