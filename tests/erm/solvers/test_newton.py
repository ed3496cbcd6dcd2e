"""Newton's method from samples: the same minimum, in fewer passes, whatever the records' order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from tacit.erm import Objective
from tacit.erm.losses import HuberLoss, LogisticLoss, SmoothHingeLoss
from tacit.erm.solvers import certified as newton_module
from tacit.erm.solvers.certified import minimize_certified, newton
from tacit.erm.solvers.perturbed_objective import Perturbed
from tacit.records import Bounds, MemoryRecords

N, D = 20_000, 6


def problem_of(rows: Any, y: Any, loss: Any = None, lam: float = 3.0) -> Perturbed:
    bounds = Bounds(row_norm=2.0, label_range=(-1.0, 1.0), intercept=0.5)
    objective = Objective(loss or LogisticLoss(), bounds, regularization=lam)
    perturbation = np.random.default_rng(9).standard_normal(D + 1) * 5
    return Perturbed(objective, MemoryRecords(rows, y, bounds), perturbation)


def table(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((N, D)) * rng.choice([0.1, 1.0, 9.0], (N, 1))
    y = np.where(rows @ np.arange(D) + rng.standard_normal(N) > 0, 1.0, -1.0)
    return rows, y


def passes(problem: Perturbed, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return the records looked at on the way to the minimum, over N; a Hessian counts as 4."""
    looked = [0.0]
    gradient, hessian = Perturbed.value_and_gradient, Perturbed.hessian

    def count(times: float, method: Any) -> Any:
        def counted(self: Perturbed, w: Any) -> Any:
            looked[0] += times * self.records.count()
            return method(self, w)

        return counted

    with monkeypatch.context() as patched:
        patched.setattr(Perturbed, "value_and_gradient", count(1.0, gradient))
        patched.setattr(Perturbed, "hessian", count(4.0, hessian))
        newton(problem, np.zeros(D + 1), 1e-7)
    return looked[0] / N


@pytest.mark.parametrize("loss", [LogisticLoss(), SmoothHingeLoss(), HuberLoss(0.5)])
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
def test_the_minimum_is_the_one_found_without_samples(
    loss: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, y = table()
    rows = {
        "dense": lambda: rows,
        "float32": lambda: rows.astype(np.float32),
        "sparse": lambda: scipy.sparse.csr_array(rows),
    }[kind]()
    problem = problem_of(rows, y, loss)
    found, _ = minimize_certified(problem, np.zeros(D + 1), 1e-7)
    monkeypatch.setattr(newton_module, "_RECORDS_A_WEIGHT", np.inf)
    plain, _ = minimize_certified(problem, np.zeros(D + 1), 1e-7)
    # strong convexity: both are within 1e-7 / lam of the minimiser
    assert np.linalg.norm(found - plain) <= 2e-7 / 3.0


@pytest.mark.parametrize("loss", [LogisticLoss(), SmoothHingeLoss()])
def test_samples_save_passes(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(*table(), loss)
    few = passes(problem, monkeypatch)
    monkeypatch.setattr(newton_module, "_RECORDS_A_WEIGHT", np.inf)
    many = passes(problem, monkeypatch)
    assert few < 0.6 * many


@pytest.mark.parametrize("thinned", ["one class", "zeros", "one row", "huge"])
def test_a_misleading_sample_costs_time_only(thinned: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # every eighth record, which is the sample, is unlike the others
    rows, y = table()
    step = newton_module._THINNING
    if thinned == "one class":
        y[::step] = 1.0
    elif thinned == "zeros":
        rows[::step] = 0.0
    elif thinned == "one row":
        rows[::step] = rows[1]
    else:
        rows[::step] = 1e300
    problem = problem_of(rows, y)
    _, norm = minimize_certified(problem, np.zeros(D + 1), 1e-7)
    assert norm <= 1e-7
    found = passes(problem, monkeypatch)
    monkeypatch.setattr(newton_module, "_RECORDS_A_WEIGHT", np.inf)
    assert found < 2 * passes(problem, monkeypatch)


def test_a_thinned_problem_is_a_share_of_the_whole() -> None:
    rows, y = table()
    same = np.repeat(rows[:100], 8, axis=0), np.repeat(y[:100], 8)
    whole = problem_of(*same)
    w = np.linspace(-1, 1, D + 1)
    value, gradient = whole.value_and_gradient(w)
    share, part = whole.thinned(8).value_and_gradient(w)
    assert share == pytest.approx(value / 8, rel=1e-12)
    assert part == pytest.approx(gradient / 8, rel=1e-12, abs=0.0)
    assert whole.thinned(8).hessian(w) == pytest.approx(whole.hessian(w) / 8, rel=1e-12, abs=0.0)


def test_rows_are_not_copied_for_a_sample() -> None:
    rows, y = table()
    records = MemoryRecords(rows, y, Bounds(row_norm=2.0))
    assert np.shares_memory(records.every(8).rows, rows)
    assert records.every(8).count() == N // 8


def test_the_hessian_of_a_sample_is_scaled_up() -> None:
    problem = problem_of(*table())
    w, inverse = newton_module._start_from_sample(problem, np.zeros(D + 1))
    assert inverse is not None
    gradient = np.linspace(-1.0, 2.0, D + 1)
    whole = problem.hessian(w) + problem.ridge * np.eye(D + 1)
    step = inverse(gradient)
    assert np.linalg.norm(whole @ step - gradient) < 0.3 * np.linalg.norm(gradient)
