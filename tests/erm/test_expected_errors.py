"""Expected standard errors: those of simulated fits, for every law; and the share they choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit.erm import Objective, Problem
from tacit.erm.expected_errors import TypicalTable, best_share
from tacit.erm.inference import PlanWithErrors, plan_with_errors
from tacit.erm.losses import LogisticLoss
from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
)
from tacit.privacy import Budget
from tacit.records import Bounds
from tacit.schema import Category, ClassTarget, Number, Schema
from tacit.table_model import TableModel

OP, NG, SS = "objective_perturbation", "noisy_gradient", "sufficient_statistics"
RNG = np.random.default_rng(7)
Labels = Callable[[np.ndarray], np.ndarray]


def classes(scores: np.ndarray) -> np.ndarray:
    return RNG.random(scores.size) < 1 / (1 + np.exp(1.1 - scores))


def numbers(scores: np.ndarray) -> np.ndarray:
    """Labels within 3, half of whose variance is explained, as a plan assumes."""
    return 0.5 * scores + 3 / np.sqrt(8) * RNG.standard_normal(scores.size)


def counts(scores: np.ndarray) -> np.ndarray:
    return RNG.poisson(2 * np.exp(0.3 * scores)).astype(float)


KINDS: dict[str, tuple[Any, Labels, dict[str, Any]]] = {
    "logistic": (LogisticRegression, classes, {"classes": [False, True]}),
    "linear": (LinearRegression, numbers, {"label_range": (-3, 3)}),
    "huber": (HuberRegressor, numbers, {"label_range": (-3, 3)}),
    "poisson": (PoissonRegressor, counts, {"label_range": (0, 16)}),
}
CELLS = [
    ("logistic", OP, 2_000, 5, 1.0),
    ("logistic", OP, 20_000, 20, 1.0),
    ("logistic", NG, 5_000, 5, 1.0),
    ("linear", OP, 10_000, 5, 0.5),
    ("linear", NG, 10_000, 5, 1.0),
    ("linear", SS, 10_000, 5, 1.0),
    ("huber", OP, 10_000, 8, 1.0),
    ("poisson", OP, 20_000, 5, 1.0),
]


@pytest.mark.parametrize(("name", "mechanism", "n", "d", "epsilon"), CELLS)
def test_a_plan_foresees_the_errors_of_fits(
    name: str, mechanism: str, n: int, d: int, epsilon: float
) -> None:
    kind, labels, facts = KINDS[name]
    model = kind(epsilon, row_norm=np.sqrt(d), inference=0.2, mechanism=mechanism, **facts)
    plan = model.plan(d, n)
    expected = plan.expected_errors()
    assert plan.standard_error(n) == expected.standard_error
    weights, found = np.resize([0.7, -0.5, 0.3, 0.0], d), []
    for _ in range(3):
        rows = RNG.uniform(-1, 1, (n, d))
        errors = model.fit(rows, labels(rows @ weights)).standard_errors_
        found.append(np.median(errors[:d]) / np.sqrt(3))  # the effect of one standard deviation
    assert expected.standard_error == pytest.approx(np.median(found), rel=0.5)
    assert np.median(found) < 1.5 * expected.standard_error


def test_errors_fall_with_records_and_budget_to_those_of_sampling() -> None:
    def errors(epsilon: float, n: int) -> Any:
        model = LogisticRegression(epsilon, row_norm=3.0, classes=[0, 1], inference=0.2)
        return model.plan(9).expected_errors(n)

    sizes = [errors(1.0, n).standard_error for n in (1_000, 10_000, 100_000, 1_000_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert [errors(1.0, n).verdict for n in (300, 1_000_000)] == ["useless", "good"]
    rich = errors(50.0, 100_000)
    assert rich.standard_error == pytest.approx(rich.sampling_error, rel=0.02)
    # a balanced logistic model has 2 / sqrt(n); the rarer class is a quarter, and scores vary
    assert 2.0 < rich.sampling_error * np.sqrt(100_000) < 3.0


def test_a_table_of_a_schema_has_rare_levels() -> None:
    ward = Category("ward", ("A", "B", "C"), reference="A")
    table = TypicalTable.of_columns([Number("age", 0, 100).ranges(), ward.ranges()], 0.1)
    np.testing.assert_allclose(table.means[1:], [9 / 49, 4 / 49])
    np.testing.assert_allclose(table.covariance[1:, 1:], np.array([[360, -36], [-36, 180]]) / 49**2)
    # one number has the geometric mean of the assumed standard deviations, near its lower bound
    assert table.stds[0] == pytest.approx(np.sqrt(0.3 * 0.015))
    assert table.means[0] == pytest.approx(2 * table.stds[0] - 0.5)
    assert np.linalg.eigvalsh(table.covariance).min() > 0.0
    schema = Schema((Number("age", 0, 100), ward))
    moment = table.second_moment(Bounds(row_norm=schema.facts.row_norm, intercept=0.5))
    assert moment.shape == (4, 4)
    assert np.linalg.eigvalsh(moment).min() > 0.0


PROBLEM = Problem(Objective(LogisticLoss(), Bounds(row_norm=3.0, intercept=1.0)), n_features=9)


def test_auto_takes_the_share_of_the_shortest_intervals() -> None:
    budget = Budget(1.0, 1e-6)
    chosen = plan_with_errors(PROBLEM, budget, OP, "auto")
    share = chosen.settings["inference_share"]
    assert share == best_share(PROBLEM, budget, OP, PROBLEM.n_records)
    table = TypicalTable.of_rows(3.0, 9, spread=400.0)

    def size(at: float) -> float:
        plan = plan_with_errors(PROBLEM, budget, OP, at)
        assert isinstance(plan, PlanWithErrors)
        return plan.expected_errors(PROBLEM.n_records, table).standard_error

    assert all(size(share) <= 1.001 * size(other) for other in (0.02, 0.5, 0.8))


def test_auto_is_the_same_in_plan_and_fit_and_is_kept() -> None:
    rows = RNG.uniform(-1, 1, (3000, 2))
    model = LogisticRegression(2.0, row_norm=1.5, classes=[False, True], inference="auto")
    model.fit(rows, classes(rows @ [1.0, -1.0]))
    assert model.plan_.settings == model.plan(2, 3000).settings
    assert len(model.summary().rows()) == 3
    with pytest.raises(ValueError, match=r"set inference=0\.1"):
        model.set_params(inference=0.0).plan(2).standard_error(1000)
    with pytest.raises(ValueError, match="inference must be a share"):
        model.set_params(inference="much").plan(2)


def test_useless_intervals_of_a_hospital_table_are_foreseen() -> None:
    """Counts with generous ranges and rare levels: a plan must not promise what a fit cannot."""
    rng, n = np.random.default_rng(2), 20_000
    levels = tuple("ABCDEFGH")
    shares = 1 / np.arange(1, 9) ** 2
    table: dict[str, Any] = {f"count {i}": rng.poisson(0.5 + i, n) for i in range(5)}
    table["ward"] = rng.choice(levels, n, p=shares / shares.sum())
    table["ill"] = np.where(rng.random(n) < 0.2, "yes", "no")
    columns = [Number(f"count {i}", 0, 80) for i in range(5)]
    schema = Schema(
        (*columns, Category("ward", levels, reference="A")), ClassTarget("ill", ("no", "yes"))
    )
    ranges = [column.ranges() for column in schema.columns]
    for epsilon, verdicts in ((0.5, {"useless"}), (50.0, {"good", "fair"})):
        model = TableModel(schema, LogisticRegression(epsilon, inference=0.2, random_state=0))
        expected = model.plan().expected_errors(n, TypicalTable.of_columns(ranges, 0.2))
        assert expected.verdict in verdicts
        exact = TableModel(schema, LogisticRegression(np.inf, inference=0.2)).fit(table).summary()
        found = np.array(model.fit(table).summary().standard_errors) / exact.standard_errors
        assert expected.ratio / 4 < np.median(found) < 4 * expected.ratio
