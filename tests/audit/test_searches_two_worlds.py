"""Whole searches: what whoever sees the best model and its parameters finds out about a record.

All records but the canary are rows of zeros, which move nothing: what differs is the canary's. In
one column a minimiser times its regularization is the noise, Laplace's at a pure epsilon, less the
canary's slope: ``u`` is that in units of slopes, about 0 without the canary and 1 with it.

A promise does not need that parts of the records are secret (`tacit.records.splits`), so that the
canary is put into the part that is asked about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tacit.queries.evaluation as evaluation_module
import tacit.queries.noise as noisy_sum_module
import tacit.queries.session as views_module
import tacit.tuning.search as search_module
from tacit.audit import Audit
from tacit.linear_model import HuberRegressor, LinearSVC
from tacit.noise import Release
from tacit.noise.bounded import Bounded
from tacit.noise.gaussian import gaussian
from tacit.noise.perturbed_minimizer import SpherePerturbation
from tacit.noise.selection.finite import select
from tacit.privacy import Budget, Event
from tacit.records.splits import parts_of
from tacit.tuning import DisjointSearch, FixedTries, HeldOut, PrivateSearch, PublicScore
from tacit.tuning.planning import Tries, plan_tries
from tests.audit.worlds import LEVEL, LEVEL_FAR_FROM_THE_CLAIM, Array, audited, by_errors, with_less

Table = tuple[Array, npt.NDArray[Any]]

N = 24
CLAIM = Budget(2.0)
RIDGES = (100.0, 120.0)  # so strong that little of a budget goes to the curvature
SLOPE = {HuberRegressor: 0.25, LinearSVC: 1.0}  # of the canary's loss, at any weight in sight


def worlds(label: float, others: float) -> tuple[Table, Table]:
    """Return a table of one column without and with the canary."""
    rows, labels = np.zeros((N + 1, 1)), np.full(N + 1, others)
    rows[N], labels[N] = 1.0, label
    return (rows[:N], labels[:N]), (rows, labels)


@pytest.fixture(autouse=True)
def planned_once(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tries]:
    """A test's searches are all alike, and planning one costs more than it."""
    plans: dict[str, Tries] = {}

    def remembered(found: Any, plan_fit: Any, budget: Any, law: Any, *, scored: bool) -> Tries:
        known = f"{budget} {law}"
        if known not in plans:
            plans[known] = plan_tries(found, plan_fit, budget, law, scored=scored)
        return plans[known]

    monkeypatch.setattr(search_module, "plan_tries", remembered)
    return remembered


def put_canary(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    """Let the canary be in a part, and all others where their hashes say."""

    def put(shares: Any, key: Any, relation: Any, rows: Any, *rest: Any, **more: Any) -> Any:
        found = parts_of(shares, key, relation, rows, *rest, **more)
        return np.where(rows[:, 0] != 0, part, found) if rows.shape[1] else found

    monkeypatch.setattr(views_module, "parts_of", put)


def released(search: Any) -> Array:
    """Return what a fitted search shows: the best weight and its ridge."""
    best = search.best_estimator_
    return np.array([*best.coef_.ravel(), search.best_params_["regularization"]])


def slopes(seen: Array, of: type) -> float:
    """Return u."""
    return float(seen[0] * seen[1] / SLOPE[of])


def right(seen: Array) -> float:
    """Return whether the best classifier is right about the canary, which is of class 1."""
    return float(seen[0] > 0)


# The best of K with public records


def public_records() -> PublicScore:
    """Return records with which low weights are best, then high ones, and then all others.

    That is the order that tells the most: with the canary fewer tries are low, so that oftener none
    of all K is, and a high one wins. A prediction is 0.06 u, or less.
    """
    labels = np.array([-0.5] * 20 + [0.6])
    return PublicScore(np.full((21, 1), 24.0), labels)


def best_of_eight(epsilon: float = CLAIM.epsilon) -> PrivateSearch:
    model = HuberRegressor(row_norm=1.0, label_range=(-1.0, 1.0), fit_intercept=False)
    space = {"regularization": list(RIDGES)}
    return PrivateSearch(model, space, 8.0, scoring=public_records(), epsilon=epsilon, delta=0.0)


def audit_best_of_eight(runs: int) -> Audit:
    def promised(epsilon: float) -> Event:
        return best_of_eight(epsilon).plan(1).event

    return audited(
        lambda table: released(best_of_eight().fit(*table)),
        worlds(1.0, 0.0),
        CLAIM,
        runs,
        lambda seen: slopes(seen, HuberRegressor),
        promised,
        LEVEL_FAR_FROM_THE_CLAIM,
    )


@pytest.mark.slow
def test_the_best_of_k_tells_what_is_promised_and_no_more() -> None:
    found = audit_best_of_eight(1500)
    assert not found.above_claim, str(found)
    # With nothing assumed, a third in the middle; this is five spreads of audits less.
    assert by_errors(found).epsilon >= 0.05 * CLAIM.epsilon, str(found)


@pytest.mark.slow
def test_tries_that_are_not_charged_are_found(
    planned_once: Callable[..., Tries], monkeypatch: pytest.MonkeyPatch
) -> None:
    def one(found: Any, plan_fit: Any, budget: Budget, law: Any, *, scored: bool) -> Tries:
        del law
        return planned_once(found, plan_fit, budget, FixedTries(1), scored=scored)

    monkeypatch.setattr(search_module, "plan_tries", one)
    found = audit_best_of_eight(2000)
    assert by_errors(found).epsilon > CLAIM.epsilon, str(found)


def cut_minimizers(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """Leave so much of the noise on objectives."""
    draw = SpherePerturbation.draw
    monkeypatch.setattr(SpherePerturbation, "draw", lambda self, bits: share * draw(self, bits))


# Records held out, on which tries are compared


# A fixed number of tries has no pure promise.
APPROXIMATE = Budget(2.0, 1e-3)


def held_out(epsilon: float = CLAIM.epsilon) -> PrivateSearch:
    model = LinearSVC(row_norm=1.0, classes=[0, 1], fit_intercept=False)
    return PrivateSearch(
        model,
        {"regularization": list(RIDGES)},
        law=FixedTries(8),
        scoring=HeldOut(0.5),
        epsilon=epsilon,
        delta=APPROXIMATE.delta,
    )


def audit_held_out(runs: int, monkeypatch: pytest.MonkeyPatch) -> Audit:
    put_canary(monkeypatch, search_module.HELD_OUT)
    return audited(
        lambda table: released(held_out().fit(*table)),
        worlds(1.0, 0.0),
        APPROXIMATE,
        runs,
        right,
        lambda epsilon: held_out(epsilon).plan(1).event,
        LEVEL_FAR_FROM_THE_CLAIM,
    )


@pytest.mark.slow
def test_records_that_are_held_out_tell_no_more_than_is_promised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = audit_held_out(1000, monkeypatch)
    # Next to nothing is found: of eight tries many are right, and noise hides which of them are.
    assert by_errors(found).epsilon <= APPROXIMATE.epsilon, str(found)


@pytest.mark.slow
def test_scores_without_noise_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_sum_module, "gaussian", with_less(gaussian, 0.0))
    found = audit_held_out(450, monkeypatch)
    assert by_errors(found).epsilon > CLAIM.epsilon, str(found)


# Candidates on parts of their own


def disjoint(n: int, epsilon: float = CLAIM.epsilon) -> DisjointSearch:
    model = LinearSVC(row_norm=1.0, classes=[0, 1], fit_intercept=False)
    space = {"regularization": [100.0 + place for place in range(n)]}
    return DisjointSearch(model, space, epsilon=epsilon, delta=0.0)


def audit_disjoint(n: int, runs: int, score: Callable[[Array], float], level: float) -> Audit:
    return audited(
        lambda table: released(disjoint(n).fit(*table)),
        worlds(1.0, 0.0),
        CLAIM,
        runs,
        score,
        lambda epsilon: disjoint(n, epsilon).plan(1).event,
        level,
    )


def of_first(seen: Array) -> float:
    """Return u where the first candidate, whose part the canary is in, was chosen."""
    return slopes(seen, LinearSVC) if seen[1] == 100.0 else -1000.0


def audit_a_fit(runs: int, monkeypatch: pytest.MonkeyPatch) -> Audit:
    put_canary(monkeypatch, 0)
    return audit_disjoint(2, runs, of_first, LEVEL)


def audit_the_choice(runs: int, monkeypatch: pytest.MonkeyPatch) -> Audit:
    put_canary(monkeypatch, 8)
    return audit_disjoint(8, runs, right, LEVEL_FAR_FROM_THE_CLAIM)


@pytest.mark.slow
def test_a_fit_to_a_part_tells_what_is_promised_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = audit_a_fit(1500, monkeypatch)
    assert not found.above_claim, str(found)
    assert by_errors(found).epsilon >= 0.2 * CLAIM.epsilon, str(found)  # 0.5 in the middle


@pytest.mark.slow
def test_a_choice_on_a_part_tells_what_is_promised_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = audit_the_choice(1000, monkeypatch)
    assert not found.above_claim, str(found)
    assert by_errors(found).epsilon >= 0.2 * CLAIM.epsilon, str(found)  # 0.5 in the middle


@pytest.mark.slow
def test_a_third_of_the_noise_of_a_part_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_minimizers(monkeypatch, 1 / 3)
    found = audit_a_fit(1500, monkeypatch)
    assert by_errors(found).epsilon > CLAIM.epsilon, str(found)


@pytest.mark.slow
def test_a_choice_without_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def best(utilities: Bounded, epsilon: float, **more: Any) -> Release[int]:
        event = select(utilities, epsilon, **more).event
        exact = np.asarray(utilities.value)
        return Release(int(np.argmax(exact + 1e-9 * rng.random(exact.size))), event)

    rng = np.random.default_rng(0)
    monkeypatch.setattr(evaluation_module, "select", best)
    found = audit_the_choice(450, monkeypatch)
    assert by_errors(found).epsilon > CLAIM.epsilon, str(found)
