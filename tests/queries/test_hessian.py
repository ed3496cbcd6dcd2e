"""Matrices and clipped norms: as noisy as stated, and no record adds more than is stated."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chi2

from tacit.erm import Objective
from tacit.erm.inference import Noisy, Total, _ask_matrix, hessian_statistic, squares_statistic
from tacit.erm.losses import HuberLoss, LogCoshLoss, LogisticLoss, PoissonLoss
from tacit.erm.plan import PerturbedMinimizerLaw
from tacit.noise import Source, recording, secure_source
from tacit.noise.release import Entry
from tacit.privacy import Event, Gaussian, Relation
from tacit.queries import (
    ClippedNorms,
    Facts,
    GaussianNoise,
    NoisySum,
    OuterProducts,
    Session,
    Slot,
)
from tacit.queries.moments import pack
from tacit.records import Bounds, MemoryRecords

RNG = np.random.default_rng(5)
ROWS = RNG.standard_normal((60, 3))
SCORES = ROWS @ [1.0, -1.0, 0.5]
BOUNDS = Bounds(row_norm=2.0, intercept=0.5, label_range=(-3.0, 3.0))


def session_of(records: MemoryRecords, planned: Gaussian, source: Source | None = None) -> Session:
    facts = Facts(records.bounds, records.n_features, planned.relation)
    return Session(records, facts, planned, {"asked": Slot(planned)}, source)


def noisy_matrix(
    products: OuterProducts,
    records: MemoryRecords,
    planned: Gaussian,
    source: Source | None = None,
) -> tuple[Noisy, Total, Event]:
    """Return the matrix and the total as standard errors ask for them, and what that cost."""
    session = session_of(records, planned, source)
    return *_ask_matrix(session, "asked", products, planned), session.close()


@pytest.mark.slow
@pytest.mark.parametrize("off", [1.0, 0.9, 1.1])
@pytest.mark.parametrize("has_total", [True, False])
def test_the_noise_is_as_stated(off: float, has_total: bool) -> None:
    """Symmetric, of the standard deviation stated beside it: neither less nor more."""
    bounds = Bounds(row_norm=1.5)
    records = MemoryRecords(ROWS, SCORES, bounds)
    law = PerturbedMinimizerLaw(Objective(HuberLoss(1.0), bounds), 1.0)
    statistic = replace(hessian_statistic(law, np.zeros(3)), has_total=has_total)
    exact, total = statistic.sums(records)
    source, drawn, sums = secure_source(), [], []
    for _ in range(6000):
        noisy, known, _ = noisy_matrix(statistic, records, Gaussian(2.0), source)
        assert np.all(noisy.matrix == noisy.matrix.T)
        gradient_scale = 1.5**2 * math.sqrt(
            1.25 if has_total else 1.0
        )  # R^2, and half of that beside it
        assert noisy.std == pytest.approx(2.0 * gradient_scale, rel=2e-4)
        away = (noisy.matrix - exact) / (off * noisy.std)
        drawn.append(np.append(np.diag(away), math.sqrt(2.0) * away[np.triu_indices(3, 1)]))
        sums.append((known.value - total) / (off * known.std) if has_total else 0.0)
    for values in (np.array(drawn), *((np.array(sums),) if has_total else ())):
        p = chi2.cdf(np.sum(values**2), values.size)
        fits = 1e-6 < p < 1 - 1e-6
        assert fits == (off == 1.0)


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_what_is_released_beside_squared_gradients(relation: Relation) -> None:
    """The sum of squared slopes with half of R^2: together as long as is stated, and no longer."""
    bounds = Bounds(row_norm=2.0, label_range=(-3.0, 3.0))
    law = PerturbedMinimizerLaw(Objective(HuberLoss(1.0), bounds), 1.0)
    far = MemoryRecords(np.array([[2.0, 0.0]]), np.array([3.0]), bounds)
    with recording() as tape:
        noisy_matrix(squares_statistic(law, np.zeros(2)), far, Gaussian(2.0, relation))
    (entry,) = tape.entries
    assert isinstance(entry, Entry)
    np.testing.assert_allclose(entry.bounded.value, [4.0, 0.0, 0.0, 2.0])
    # two such vectors are at most at a right angle
    longest = math.hypot(4.0, 2.0) * (math.sqrt(2.0) if relation is Relation.REPLACE else 1.0)
    assert entry.bounded.sensitivity == pytest.approx(longest * (1 + 1e-4), rel=1e-14, abs=0.0)


def test_a_record_counts_as_stated() -> None:
    """One record at the edge of every bound attains the sensitivities: they are not loose."""
    bounds = Bounds(row_norm=2.0, label_range=(-3.0, 3.0))
    law = PerturbedMinimizerLaw(Objective(HuberLoss(1.0), bounds), 1.0)
    near = MemoryRecords(np.array([[2.0, 0.0]]), np.array([0.5]), bounds)
    far = MemoryRecords(np.array([[2.0, 0.0]]), np.array([3.0]), bounds)
    clipped_second_derivative, pulling = (
        hessian_statistic(law, np.zeros(2)),
        squares_statistic(law, np.zeros(2)),
    )
    assert clipped_second_derivative.coefficients.greatest == pulling.coefficients.greatest == 1.0
    assert np.linalg.norm(clipped_second_derivative.sums(near)[0]) == pytest.approx(2.0**2)
    assert np.linalg.norm(pulling.sums(far)[0]) == pytest.approx(2.0**2)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("most", [0.3, 2.0, 100.0])
def test_a_record_adds_at_most_the_limit(most: float, sparse: bool) -> None:
    """Whatever its row is; one below the limit is as it was, and the limit is attained."""
    law = PerturbedMinimizerLaw(Objective(HuberLoss(9.0), BOUNDS), 9.0)
    whole = hessian_statistic(law, np.zeros(4))
    clipped = replace(whole, most=most)
    norms = []
    for row in (*ROWS[:20], [1e6, 0.0, -1e6], [0.0, 0.0, 0.0], [np.nan, 1.0, 1.0]):
        rows = csr_array([row]) if sparse else np.array([row])
        record = MemoryRecords(rows, np.zeros(1), BOUNDS)
        before, after = whole.sums(record)[0], clipped.sums(record)[0]
        norms.append(np.linalg.norm(after))
        if np.linalg.norm(before) <= most:
            np.testing.assert_allclose(after, before)
        assert norms[-1] <= most * (1 + 1e-12)
    assert max(norms) == pytest.approx(min(most, BOUNDS.total_norm**2))


LOSSES = [LogisticLoss(), HuberLoss(0.7), LogCoshLoss(0.5), PoissonLoss(1.5, 6.0)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_no_record_turns_or_pulls_beyond_its_bounds(loss: Any) -> None:
    """The longest row, at any score with any label; counts of a rate far above the usual too."""
    bounds = Bounds(row_norm=1.0, label_range=(0.0, 6.0))
    law = PerturbedMinimizerLaw(Objective(loss, bounds), loss.lipschitz)
    found = {"hessian": [0.0], "squares": [0.0]}
    for score in np.linspace(-3, 3, 61):
        for label in (0.0, 1.0, 3.0, 6.0):
            record = MemoryRecords(np.array([[1.0]]), np.array([label]), bounds)
            for name, made in (("hessian", hessian_statistic), ("squares", squares_statistic)):
                statistic = made(law, np.array([score]))
                matrix, total = statistic.sums(record)
                found[name].append(float(matrix[0, 0]))
                assert matrix[0, 0] <= statistic.largest * (1 + 1e-12)
                assert total <= statistic.coefficients.greatest * (1 + 1e-12)
                if isinstance(loss, PoissonLoss) and name == "hessian":
                    assert statistic.coefficients.greatest == 3.0
    assert max(found["hessian"]) == pytest.approx(
        hessian_statistic(law, np.zeros(1)).largest, rel=0.01
    )


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
def test_noise_follows_the_limit(relation: Relation) -> None:
    law = PerturbedMinimizerLaw(Objective(HuberLoss(9.0), BOUNDS), 9.0)
    statistic = replace(hessian_statistic(law, np.zeros(4)), has_total=False, most=0.5)
    records = MemoryRecords(ROWS, SCORES, BOUNDS)
    matrix, _, event = noisy_matrix(statistic, records, Gaussian(3.0, relation))
    two = math.sqrt(2.0) if relation is Relation.REPLACE else 1.0
    assert matrix.std == pytest.approx(3.0 * 0.5 * two, rel=2e-4)
    assert event == Gaussian(3.0, relation)


def test_a_clipped_descent_knows_its_clip() -> None:
    """A slope that is clipped does not turn, so that fewer records say where the truth is."""
    bounds = Bounds(row_norm=1.5, label_range=(-3.0, 3.0))
    law = PerturbedMinimizerLaw(Objective(HuberLoss(2.0), bounds), 0.5)
    records = MemoryRecords(ROWS, SCORES, bounds)
    clipped = replace(law, slope_limit=2.0)
    fewer, more = (hessian_statistic(one, np.zeros(3)).sums(records)[1] for one in (law, clipped))
    labels = np.clip(SCORES, -3, 3)
    assert fewer == np.sum(np.abs(labels) < 0.5)
    assert more == np.sum(np.abs(labels) < 2.0)


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize(("has_matrix", "has_total"), [(True, True), (True, False), (False, True)])
def test_the_reach_is_that_of_both_and_of_float_sums(
    relation: Relation, has_matrix: bool, has_total: bool
) -> None:
    bounds = Bounds(row_norm=1.5)
    records = MemoryRecords(ROWS, SCORES, bounds)
    law = PerturbedMinimizerLaw(Objective(HuberLoss(1.0), bounds), 1.0)
    statistic = replace(
        hessian_statistic(law, np.zeros(3)), has_matrix=has_matrix, has_total=has_total
    )
    session = session_of(records, Gaussian(2.0, relation))
    query = NoisySum(statistic, GaussianNoise(2.0))
    with recording() as tape:
        vector = np.asarray(session.ask(query, "asked"))
    assert session.close() == Gaussian(2.0, relation)
    assert vector.shape == (6 * has_matrix + 1,)
    # R^2 of the matrix and half of it of the total; floats may err by a ten-thousandth
    length = 1.5**2 * math.hypot(1.0 * has_matrix, 0.5 * has_total)
    two = math.sqrt(2.0) if relation is Relation.REPLACE else 1.0
    gradient_scale = two * length * (1 + 1e-4)
    (entry,) = tape.entries
    assert isinstance(entry, Entry)
    assert entry.bounded.sensitivity == pytest.approx(gradient_scale, rel=1e-12)
    assert query.noise_std(session.facts) == pytest.approx(2.0 * gradient_scale, rel=1e-12)
    assert statistic.total_weight == 0.5 * 1.5**2 * has_total
    if has_matrix:
        noisy, known, event = noisy_matrix(statistic, records, Gaussian(2.0, relation))
        assert event == Gaussian(2.0, relation)
        assert noisy.std == pytest.approx(2.0 * gradient_scale, rel=1e-12)
        if has_total:
            assert known.std == pytest.approx(noisy.std / (0.5 * 1.5**2), rel=1e-12)


FLAT = PerturbedMinimizerLaw(Objective(HuberLoss(9.0), BOUNDS), 9.0)
PRODUCTS = hessian_statistic(FLAT, np.zeros(4))
NORMS = ClippedNorms(PRODUCTS.coefficients, PRODUCTS.row_norm)
LARGEST = 2.0**2 + 0.5**2  # a second derivative of 1, the row and the intercept's coordinate


class Curve(NamedTuple):
    """What limits leave of the norms, with noise, and the sum of c."""

    sums: Any
    total: float
    std: float


def curve_of(
    norms: ClippedNorms, rows: Any, noise: float = 1e-9, source: Source | None = None
) -> Curve:
    records = MemoryRecords(rows, np.zeros(len(rows)), BOUNDS)
    session = session_of(records, Gaussian(noise), source)
    query = NoisySum(norms, GaussianNoise(noise))
    vector = np.asarray(session.ask(query, "asked"))
    session.close()
    total = vector[-1] / norms.total_weight if norms.has_total else 0.0
    return Curve(vector[:-1], total, query.noise_std(session.facts))


def test_clipped_norms_are_those_of_the_records() -> None:
    curve = curve_of(NORMS, ROWS)
    squared = np.sum(ROWS**2, axis=1)
    norms = np.minimum(squared, 4.0) + 0.25
    assert NORMS.limits[0] == pytest.approx(LARGEST)
    for limit, found in zip(NORMS.limits, curve.sums, strict=True):
        assert found == pytest.approx(np.minimum(norms, limit).sum(), rel=1e-5)
    assert curve.total == pytest.approx(60.0, rel=1e-5)


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize(("has_matrix", "has_total"), [(True, True), (True, False), (False, True)])
def test_one_record_moves_clipped_norms_as_far_as_stated(
    relation: Relation, has_matrix: bool, has_total: bool
) -> None:
    """The longest row attains the length that noise is for; none goes beyond."""
    norms = replace(NORMS, has_matrix=has_matrix, has_total=has_total)
    curve = curve_of(norms, np.array([[1e9, 0.0, 0.0]]))
    moved = np.append(curve.sums, curve.total * LARGEST if has_total else 0.0)
    stated = curve.std / 1e-9  # the noise's deviation over its multiplier
    assert np.linalg.norm(moved) == pytest.approx(stated, rel=2e-4)
    squares = 2 * (1 - 2.0**-13) * has_matrix + has_total
    assert stated == pytest.approx(LARGEST * math.sqrt(squares), rel=2e-4)
    two = math.sqrt(2.0) if relation is Relation.REPLACE else 1.0
    gradient_scale = norms.sensitivity(Facts(BOUNDS, 3, relation)).value
    assert gradient_scale == pytest.approx(
        two * LARGEST * math.sqrt(squares) * (1 + 1e-4), rel=1e-12
    )


@pytest.mark.parametrize("off", [1.0, 0.9, 1.1])
def test_the_noise_of_clipped_norms_is_as_stated(off: float) -> None:
    exact, source, away = curve_of(NORMS, ROWS), secure_source(), []
    for _ in range(600):
        curve = curve_of(NORMS, ROWS, 3.0, source)
        away += [*((curve.sums - exact.sums) / curve.std)]
        away.append((curve.total - exact.total) / (curve.std / LARGEST))
    p = chi2.cdf(np.sum((np.array(away) / off) ** 2), len(away))
    assert (1e-9 < p < 1 - 1e-9) == (off == 1.0)


def test_the_total_is_the_packed_matrix_and_the_weighted_sum() -> None:
    records = MemoryRecords(ROWS, SCORES, BOUNDS)
    facts = Facts(BOUNDS, 3, Relation.ADD_REMOVE)
    objective = Objective(HuberLoss(), BOUNDS)
    for statistic in OuterProducts.tried_on([objective]):
        matrix, total = statistic.sums(records)
        found = statistic.total(records, facts)
        np.testing.assert_allclose(found[:-1], pack(matrix), rtol=1e-12)
        assert total > 2.0
        assert found[-1] == pytest.approx(statistic.total_weight * total, rel=1e-12)
