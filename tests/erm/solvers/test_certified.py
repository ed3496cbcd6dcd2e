from __future__ import annotations

import re

import mpmath
import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression, Ridge

from tacit.erm import NotCertified, Objective
from tacit.erm.losses import (
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
    SmoothHingeLoss,
    SoftmaxLoss,
    SquaredLoss,
)
from tacit.erm.solvers import certified as minimizer
from tacit.erm.solvers.certified import minimize_certified, minimize_exactly
from tacit.erm.solvers.perturbed_objective import Perturbed
from tacit.records import Bounds, MemoryRecords

CLASSES = (-1.0, 1.0)
CASES = [
    (LogisticLoss(), CLASSES),
    (SmoothHingeLoss(0.1), CLASSES),
    (HuberLoss(0.3), (-2.0, 2.0)),
    (SquaredLoss(3.0, 2.0), (-2.0, 2.0)),
    (QuantileLoss(0.8, smoothing=0.05), (-2.0, 2.0)),
    (PoissonLoss(4.0, 6.0), (0.0, 6.0)),
    (PoissonLoss(0.01, 6.0), (0.0, 6.0)),
    (SoftmaxLoss(3), (0.0, 2.0)),
]


def slope(loss, z, y):
    """Return d1 in exact arithmetic, from the formula in the loss's docstring."""
    if isinstance(loss, LogisticLoss):
        return [-y / (1 + mpmath.exp(y * z[0]))]
    if isinstance(loss, SmoothHingeLoss):
        h = mpmath.mpf(loss.smoothing)
        return [-y * min(max((1 + h - y * z[0]) / (2 * h), 0), 1)]
    if isinstance(loss, HuberLoss):
        knot = mpmath.mpf(loss.knot)
        return [min(max(z[0] - y, -knot), knot)]
    if isinstance(loss, SquaredLoss):
        return [min(max(z[0], -loss.score_bound), loss.score_bound) - y]
    if isinstance(loss, QuantileLoss):
        h, level = mpmath.mpf(loss.smoothing), mpmath.mpf(loss.level)
        return [mpmath.mpf(1) / 2 - level + min(max((z[0] - y) / h, -1), 1) / 2]
    if isinstance(loss, PoissonLoss):
        bound = mpmath.mpf(loss.slope_bound)
        return [min(max(mpmath.exp(z[0]) - y, -bound), bound)]
    weights = [mpmath.exp(x - max(z)) for x in z]
    return [w / sum(weights) - (1 if k == int(y) else 0) for k, w in enumerate(weights)]


def exact_norm(problem, w):
    """Return the gradient norm at w in 60 digits, from the records one by one."""
    records, loss = problem.records, problem.objective.loss
    block = records._block(0, records.count())
    rows = block.rows.toarray() if hasattr(block.rows, "toarray") else block.rows
    columns = w.reshape(len(w), -1)
    with mpmath.workdps(60):
        exactly = np.vectorize(lambda x: mpmath.mpf(float(x)), otypes=[object])
        W = exactly(columns)
        total = exactly(problem.perturbation.reshape(columns.shape)) + mpmath.mpf(problem.ridge) * W
        for row, factor, label in zip(rows, block.factors, block.labels, strict=True):
            x = exactly(row) * mpmath.mpf(float(factor))
            if block.intercept:
                x = np.append(x, mpmath.mpf(block.intercept))
            d1 = slope(loss, list(x @ W), mpmath.mpf(float(label)))
            total = total + np.outer(x, np.array(d1, dtype=object))
        return mpmath.sqrt(sum(g * g for g in total.ravel()))


def problem_of(
    loss, labels, *, n=30, d=4, row_norm=1.0, intercept=0.25, lam=0.3, seed=0, sparse=False
):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)) * rng.choice([0.01, 1.0, 30.0], (n, 1)) * row_norm
    if labels == CLASSES:
        y = rng.choice(CLASSES, n)
    elif isinstance(loss, SoftmaxLoss):
        y = rng.integers(0, loss.n_classes, n).astype(float)
    else:
        y = rng.uniform(labels[0], labels[1], n)
    bounds = Bounds(row_norm=row_norm, label_range=labels, intercept=intercept * row_norm)
    objective = Objective(loss, bounds, regularization=lam)
    records = MemoryRecords(scipy.sparse.csr_array(rows) if sparse else rows, y, bounds)
    return Perturbed(objective, records, rng.standard_normal(objective.shape(d)))


# The certificate


@pytest.mark.parametrize("row_norm", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(("loss", "labels"), CASES, ids=lambda case: str(case)[:30])
def test_the_certificate_is_above_the_true_gradient_norm(loss, labels, row_norm):
    for seed, sparse in [(0, False), (1, True)]:
        lam = 0.3 * row_norm**2
        problem = problem_of(loss, labels, row_norm=row_norm, lam=lam, seed=seed, sparse=sparse)
        rng = np.random.default_rng(seed)
        nearly = minimize_exactly(problem, np.zeros_like(problem.perturbation))
        for w in [
            np.zeros_like(nearly),
            nearly,
            nearly * (1 + 1e-9),
            rng.standard_normal(nearly.shape) * 1e-3 / row_norm,
            rng.standard_normal(nearly.shape) * 30 / row_norm,
        ]:
            true, certified = exact_norm(problem, w), problem.certified_norm(w)
            assert true <= certified
            # and not by being far too careful: rounding of 30 terms of size L
            scale = problem.objective.lipschitz + problem.objective.smoothness * np.linalg.norm(w)
            assert certified - true <= 1e-12 * (30 * 50 * scale + float(true))


def test_the_certificate_covers_rounding_of_a_single_record():
    # nothing to hide behind: one record, many weights
    for loss, labels in CASES:
        problem = problem_of(loss, labels, n=1, d=1, lam=1e-3, intercept=0.0)
        quiet = Perturbed(problem.objective, problem.records, 0.0 * problem.perturbation)
        rng = np.random.default_rng(3)
        for size in 10.0 ** rng.uniform(-8, 2, 60):
            w = rng.standard_normal(problem.perturbation.shape) * size
            assert exact_norm(quiet, w) <= quiet.certified_norm(w)


def test_the_certificate_covers_a_slope_that_is_a_small_difference():
    # exp(z) - y near exp(z) = y = 1: off by u, and its bound of 0.01 says nothing about that
    bounds = Bounds(row_norm=1.0, label_range=(0.0, 6.0))
    objective = Objective(PoissonLoss(0.01, 6.0), bounds, regularization=1e-9)
    records = MemoryRecords(np.array([[0.99]]), np.array([1.0]), bounds)
    problem = Perturbed(objective, records, np.zeros(1))
    for z in np.geomspace(1e-6, 9e-3, 100):
        assert exact_norm(problem, np.array([z])) <= problem.certified_norm(np.array([z]))


def test_without_room_for_rounding_the_norm_would_be_no_bound(monkeypatch):
    monkeypatch.setattr(Perturbed, "_float_error", lambda self, w: 0.0)
    below = 0
    for seed in range(20):
        problem = problem_of(*CASES[seed % len(CASES)], seed=seed)
        w = minimize_exactly(problem, np.zeros_like(problem.perturbation))
        below += exact_norm(problem, w) > problem.certified_norm(w)
    assert below > 0


def test_the_certificate_covers_cancellation():
    # gradients of size 1 that cancel to 1e-17 of their sum of sizes
    n = 400
    rows = np.ones((n, 1)) * (1 - 1e-9) * np.linspace(0.9, 1.0, n)[:, None]
    labels = np.resize([1.0, -1.0], n)
    bounds = Bounds(row_norm=1.0)
    objective = Objective(LogisticLoss(), bounds, regularization=1e-9)
    problem = Perturbed(objective, MemoryRecords(rows, labels, bounds), np.zeros(1))
    w = minimize_exactly(problem, np.zeros(1))
    assert exact_norm(problem, w) <= problem.certified_norm(w)


def test_every_source_of_rounding_is_in_the_certificate():
    # rounding hardly ever comes near its bound, so each term is held to its formula
    unit = 2.0**-53
    problem = problem_of(LogisticLoss(), CLASSES, n=3000, d=4, row_norm=3.0, lam=7.0)
    records, objective, w = problem.records, problem.objective, np.full(5, 2.0)
    sums = records.sum_error(fine=True) * objective.lipschitz
    slopes = records.count() * unit * objective.smoothness * (5 + 4) * np.linalg.norm(w)
    ends = 4 * unit * (7.0 * np.linalg.norm(w) + np.linalg.norm(problem.perturbation))
    own = records.count() * unit * 8 * objective.lipschitz
    assert problem._float_error(w) >= (sums + slopes + ends + own) * (1 - 1e-12)
    (total,) = records.sum(lambda block: (objective.gradient(block, w),), fine=True)
    computed = np.linalg.norm(total + 7.0 * w + problem.perturbation)
    assert problem.certified_norm(w) >= computed + problem._float_error(w)


# The minimisers


@pytest.fixture(params=["newton", "l-bfgs"])
def solver(request, monkeypatch):
    if request.param == "l-bfgs":
        monkeypatch.setattr(minimizer, "_NEWTON_DIMENSION", 0)
    return request.param


@pytest.mark.parametrize("row_norm", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(("loss", "labels"), CASES, ids=lambda case: str(case)[:30])
def test_minimisers_reach_what_the_proofs_need(loss, labels, row_norm, solver):
    lam = 0.1 * row_norm**2
    problem = problem_of(loss, labels, n=2000, d=12, row_norm=row_norm, lam=lam)
    target = 1e-7 * row_norm
    w, certified = minimize_certified(problem, np.zeros_like(problem.perturbation), target)
    assert certified <= target
    assert certified == problem.certified_norm(w)
    assert w.shape == problem.perturbation.shape
    # strong convexity: any other certified point is within (tau + tau') / lam
    start = np.random.default_rng(1).standard_normal(w.shape) / row_norm
    other, _ = minimize_certified(problem, start, target)
    assert np.linalg.norm(w - other) <= 2 * target / lam


def test_more_weights_than_newton_takes():
    problem = problem_of(LogisticLoss(), CLASSES, n=200, d=700, lam=1.0)
    w, certified = minimize_certified(problem, np.zeros(701), 1e-7)
    assert w.shape == (701,)
    assert certified <= 1e-7


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize(("loss", "labels"), CASES[:1] + CASES[-1:], ids=["logistic", "softmax"])
def test_no_records_or_one(loss, labels, n):
    problem = problem_of(loss, labels, n=n, lam=2.0)
    w, _ = minimize_certified(problem, np.zeros_like(problem.perturbation), 1e-9)
    if n == 0:
        assert np.allclose(w, -problem.perturbation / 2.0)


def test_not_certified_names_the_remedy(solver):
    problem = problem_of(LogisticLoss(), CLASSES, n=500)
    with pytest.raises(NotCertified, match=r"at most 1e-30, which.*Raise regularization") as info:
        minimize_certified(problem, np.zeros(5), 1e-30)
    # the limit is public, how near the records came to it is not
    assert re.findall(r"\d[\d.e+-]*", str(info.value)) == ["1e-30"]
    with pytest.raises(NotCertified, match="mechanism='noisy_gradient'"):
        minimize_certified(problem, np.zeros(5), 0.0)


def test_records_that_are_not_numbers_are_never_certified():
    problem = problem_of(LogisticLoss(), CLASSES)
    broken = Perturbed(problem.objective, problem.records, np.full(5, np.nan))
    with pytest.raises((NotCertified, ValueError)):
        minimize_certified(broken, np.zeros(5), 1e-7)


def test_a_ridge_must_be_set():
    problem = problem_of(LogisticLoss(), CLASSES, lam=None)
    with pytest.raises(ValueError, match="regularization must be set"):
        minimize_certified(problem, np.zeros(5), 1e-7)


# Against scikit-learn


def plain(loss, X, y, lam, labels=None):
    bounds = Bounds(row_norm=20.0, label_range=labels)  # nothing is clipped
    objective = Objective(loss, bounds, regularization=lam)
    return Perturbed(objective, MemoryRecords(X, y, bounds), np.zeros(objective.shape(X.shape[1])))


def certified(problem, target):
    return minimize_certified(problem, np.zeros_like(problem.perturbation), target)[0]


@pytest.mark.parametrize("seed", [0, 63])
@pytest.mark.parametrize("lam", [0.1, 10.0])
def test_logistic_is_scikit_learns(lam, seed, solver):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((500, 6))
    y = np.where(X[:, 0] + rng.standard_normal(500) > 0, 1.0, -1.0)
    theirs = LogisticRegression(
        C=1 / lam, fit_intercept=False, solver="newton-cholesky", tol=1e-12
    ).fit(X, y)
    ours = certified(plain(LogisticLoss(), X, y, lam), 1e-7)
    assert np.allclose(ours, theirs.coef_[0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("lam", [0.1, 10.0])
def test_ridge_is_scikit_learns(lam, solver):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 6))
    y = X @ rng.standard_normal(6) + rng.standard_normal(500)
    theirs = Ridge(alpha=lam, fit_intercept=False, solver="cholesky").fit(X, y).coef_
    bounded = plain(SquaredLoss(30.0, 30.0), X, y, lam, labels=(-30.0, 30.0))
    assert np.allclose(certified(bounded, 1e-7), theirs, rtol=1e-6, atol=1e-7)
    free = plain(SquaredLoss(), X, y, lam)
    assert np.allclose(minimize_exactly(free, np.zeros(6)), theirs, rtol=1e-8)


@pytest.mark.parametrize("lam", [0.5, 10.0])
def test_softmax_is_scikit_learns(lam):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((600, 5))
    y = np.argmax(X[:, :4] + rng.standard_normal((600, 4)), axis=1)
    theirs = LogisticRegression(
        C=1 / lam, fit_intercept=False, solver="newton-cg", tol=1e-10, max_iter=1000
    ).fit(X, y)
    ours = certified(plain(SoftmaxLoss(4), X, y.astype(float), lam), 1e-6)
    assert np.allclose(ours.T, theirs.coef_, atol=1e-5)
