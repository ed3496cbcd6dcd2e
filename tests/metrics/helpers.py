"""Records that are judged, and how often an interval holds what it should."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.metrics import Evaluation, EvaluationPlan, evaluation_plan
from tacit.metrics.evaluate import evaluation_of
from tacit.metrics.predictions import answered
from tacit.noise import Release
from tacit.privacy import Budget, Guarantee, Relation
from tacit.queries import Session
from tacit.queries.base import plain_facts
from tacit.queries.evaluation import Answered, NumberSums

Array = npt.NDArray[np.float64]
INFINITE = Budget(float("inf"))


def scored(n_records: int, n_ones: int, seed: int = 0) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return probabilities and labels, of which ``n_ones`` are 1 and score higher."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([1, 0], [n_ones, n_records - n_ones])
    # log odds of a normal score with unit spread in both classes, 1.2 apart: calibrated
    share = n_ones / n_records
    score = rng.normal(1.2 * labels, 1.0)
    odds = 1.2 * score - 0.72 + np.log(share / (1 - share))
    return 1 / (1 + np.exp(-odds)), labels


def sums_of(plan: EvaluationPlan, answers: Any, labels: Any) -> Array:
    """Return the sums without noise."""
    held = Answered(np.asarray(answers), np.asarray(labels))
    return plan.cells.total(held, plain_facts(Relation.ADD_REMOVE))


def counted_on(plan: EvaluationPlan, model: Any, rows: Any, labels: Any) -> Release[Array]:
    """Return the noisy sums of a plan over records."""
    held = answered(model, rows, labels, relation=plan.budget.relation)
    session = Session(held, plan.facts, plan.event, plan.slots())
    return session.release(plan.sums(session))


def exact(plan: EvaluationPlan, sums: Array) -> Evaluation:
    """Return what the same cells say without noise."""
    cells: Any = plan.cells
    if isinstance(cells, NumberSums):
        quiet = evaluation_plan(INFINITE, label_range=(cells.low, cells.high))
    else:
        quiet = evaluation_plan(INFINITE, classes=cells.classes, bins=cells.edges)
    return evaluation_of(quiet, sums, Guarantee(quiet.event))


def simulated(plan: EvaluationPlan, sums: Array, n_runs: int, seed: int = 1) -> list[Evaluation]:
    """Return evaluations of the same records, each with noise of its own."""
    rng = np.random.default_rng(seed)
    promise = Guarantee(plan.event)
    return [
        evaluation_of(plan, sums + rng.normal(0.0, plan.noise_std, sums.shape), promise)
        for _ in range(n_runs)
    ]


def coverage(runs: list[Evaluation], truth: Evaluation) -> dict[str, float]:
    """Return how often each metric's interval holds the value without noise."""
    return {
        name: float(np.mean([run[name].low <= true.value <= run[name].high for run in runs]))
        for name, true in truth.metrics.items()
    }
