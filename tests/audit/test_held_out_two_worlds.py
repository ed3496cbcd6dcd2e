"""Pipelines with records held out: what whoever sees all that is released finds out about one.

A pipeline scales a column privately, fits a classifier to it and counts mistakes on records held
out. The attacker knows all records but the canary and recovers the noise of each release: of the
scaler's sums from its mean and deviation, of the classifier's objective from its weight, and of the
counts.

A promise does not need that parts of the records are secret (`tacit.records.splits`), so that the
canary is put into the part that is asked about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tacit.queries.noise as noisy_sum_module
import tacit.queries.session as views_module
from tacit.audit import Audit
from tacit.audit.estimators import Inversion
from tacit.linear_model import LinearSVC
from tacit.metrics.predictions import answers_of
from tacit.noise.gaussian import gaussian
from tacit.noise.perturbed_minimizer import GaussianPerturbation
from tacit.pipeline import PipelinePlan, PrivatePipeline
from tacit.pipeline.planning import Planner
from tacit.preprocessing import PrivateStandardScaler
from tacit.privacy import Budget, Event
from tacit.queries.evaluation import Answered
from tacit.records import MemoryRecords
from tacit.table_facts import EncodedTable
from tests.audit.worlds import Array, audited, by_means, with_less

Table = tuple[Array, npt.NDArray[np.int64]]

N = 400  # fewer would not be evaluated
LEARN, TRY = 0, 1
# The greater delta is, the less noise there is at the same epsilon, and the more an audit sees.
CLAIM = Budget(2.0, 1e-3)
CANARY = np.ones((1, 1)), np.ones(1, np.int64)  # at an end of the bounds, whatever is learned


def known() -> Table:
    """Return the records that the attacker knows, of one column; every other pair is held out."""
    return np.linspace(-0.9, 0.9, N)[:, None], np.arange(N) % 2


PART = np.arange(N) // 2 % 2


def worlds() -> tuple[Table, Table]:
    rows, labels = known()
    return (rows, labels), (np.vstack([rows, CANARY[0]]), np.append(labels, CANARY[1]))


def pipeline(epsilon: float = CLAIM.epsilon, n: int = N) -> PrivatePipeline:
    scaler = PrivateStandardScaler(bounds=(-1.0, 1.0), clip=1.0, n_records=n)
    model = LinearSVC(classes=[0, 1], regularization=20.0, fit_intercept=False, n_records=n)
    steps = [("scale", scaler), ("model", model)]
    return PrivatePipeline(steps, epsilon, CLAIM.delta, shares={"scale": 0.5}, evaluate=0.5)


def recovered(table: Table) -> Array:
    """Fit, and return the noise of each of three releases along what the canary would add to it.

    In units of standard deviations, less what the canary cannot have done.
    """
    made = pipeline().fit(*table)
    rows, labels = known()
    to_learn = rows[PART == LEARN], labels[PART == LEARN]
    return np.array(
        [
            noise_of_sums(made, to_learn[0]),
            noise_of_objective(made, *to_learn),
            noise_of_counts(made, rows[PART == TRY], labels[PART == TRY]),
        ]
    )


def noise_of_sums(made: PrivatePipeline, rows: Array) -> float:
    """Return it of the sums of u and 2 u^2 - 5/4, along the canary's (1, 3/4), of length 5/4."""
    scaler, n = made.steps_["scale"], N // 2
    mean, variance = float(scaler.mean_[0]), float(scaler.scale_[0]) ** 2
    sums = np.array([n * mean, n * (2 * (variance + mean**2) - 1.25)])
    exact = np.array([rows.sum(), (2 * rows**2 - 1.25).sum()])
    std = 1.25 * made.plan_.steps["scale"].settings["noise_multiplier"]
    return float((sums - exact) @ [0.8, 0.6] / std)


def noise_of_objective(made: PrivatePipeline, rows: Array, labels: Any) -> float:
    """Return it of the tilt, along the canary's gradient, whose slope is 1 at small weights."""
    plan, scaled = made.plan_.steps["model"], made.steps_["scale"].transform(rows)
    bounds = plan.problem.objective.bounds
    records = MemoryRecords(scaled, 2.0 * labels - 1.0, bounds)
    along = -made.steps_["scale"].transform(CANARY[0])[0]
    return Inversion(plan, records, along)(made.estimator_.coef_.ravel())


def noise_of_counts(made: PrivatePipeline, rows: Array, labels: Any) -> float:
    """Return it of the cell in which the canary would be counted."""
    plan = made.plan_.evaluation
    exact, one = (
        np.asarray(plan.cells.total(Answered(said, of), plan.facts))
        for said, of in (
            (answers_of(made.estimator_, made.steps_["scale"].transform(x)), y)
            for x, y in ((rows, labels), CANARY)
        )
    )
    return float((made.evaluation_.sums - exact) @ one / plan.noise_std)


def learned(noise: Array) -> float:
    """Return what both steps that learn tell together: half of the budget is each's."""
    return float(noise[0] + noise[1])


def counted(noise: Array) -> float:
    """Return what the evaluation tells."""
    return float(noise[2])


@pytest.fixture(autouse=True)
def _planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pipelines of a budget are alike, and planning one costs more than fitting it."""
    planned, plans = Planner.planned, dict[tuple[Budget, Any], PipelinePlan]()

    def remembered(self: Planner, facts: Any, budget: Budget, n_records: Any) -> PipelinePlan:
        asked = budget, facts.n_records
        if asked not in plans:
            plans[asked] = planned(self, facts, budget, n_records)
        return plans[asked]

    monkeypatch.setattr(Planner, "planned", remembered)


def audit_of(
    part: int, score: Callable[[Array], float], runs: int, monkeypatch: pytest.MonkeyPatch
) -> Audit:
    """Return what is found with the canary in a part."""

    def put(shares: Any, key: Any, relation: Any, rows: Array, *rest: Any, **more: Any) -> Any:
        return np.append(PART, [part])[: len(rows)]

    def promised(epsilon: float) -> Event:
        # the same for any number of records; of few, little is evaluated at a small epsilon
        return pipeline(epsilon, 10**6).plan(1).event

    monkeypatch.setattr(views_module, "parts_of", put)
    return audited(recovered, worlds(), CLAIM, runs, score, promised)


@pytest.mark.slow
@pytest.mark.parametrize(("part", "score"), [(LEARN, learned), (TRY, counted)])
def test_all_that_is_released_tells_what_is_promised_and_no_more(
    part: int, score: Callable[[Array], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = audit_of(part, score, 1500, monkeypatch)
    assert not found.above_claim, str(found)
    # Scores are Gaussian. In the middle two thirds are found; this is five spreads of audits less.
    assert by_means(found).epsilon >= 0.3 * CLAIM.epsilon, str(found)


@pytest.mark.slow
@pytest.mark.parametrize(("part", "score"), [(LEARN, counted), (TRY, learned)])
def test_a_record_of_one_part_is_not_seen_in_the_other(
    part: int, score: Callable[[Array], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = audit_of(part, score, 400, monkeypatch)
    assert found.strongest.epsilon < 0.1 * CLAIM.epsilon, str(found)


@pytest.mark.slow
def test_a_record_in_both_parts_is_seen_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test before this one would find if parts were not disjoint."""
    some = EncodedTable.part

    def with_canary(table: Any, chosen: Any, share: float) -> Any:
        return some(table, chosen | (table.read()[0][:, 0] == CANARY[0][0, 0]), share)

    monkeypatch.setattr(EncodedTable, "part", with_canary)
    found = audit_of(LEARN, counted, 600, monkeypatch)
    assert by_means(found).epsilon > 0.0, str(found)


@pytest.mark.slow
def test_a_scaler_without_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_sum_module, "gaussian", with_less(gaussian, 0.0))
    found = audit_of(LEARN, lambda noise: float(noise[0]), 200, monkeypatch)
    assert by_means(found).epsilon > CLAIM.epsilon, str(found)


@pytest.mark.slow
def test_half_the_noise_of_both_steps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = GaussianPerturbation.draw
    monkeypatch.setattr(GaussianPerturbation, "draw", lambda self, bits: 0.5 * draw(self, bits))
    monkeypatch.setattr(noisy_sum_module, "gaussian", with_less(gaussian, 0.5))
    found = audit_of(LEARN, learned, 800, monkeypatch)
    assert by_means(found).epsilon > CLAIM.epsilon, str(found)


@pytest.mark.slow
def test_half_the_noise_of_an_evaluation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_sum_module, "gaussian", with_less(gaussian, 0.5))
    found = audit_of(TRY, counted, 800, monkeypatch)
    assert by_means(found).epsilon > CLAIM.epsilon, str(found)
