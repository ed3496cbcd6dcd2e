from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.erm import Box, L1Ball, L2Ball, Simplex, WholeSpace

SETS = [
    WholeSpace(),
    L2Ball(1.0),
    L2Ball(0.03),
    L1Ball(1.0),
    L1Ball(70.0),
    Box(-1.0, 1.0),
    Box(0.5, 20.0),
    Simplex(),
    Simplex(5.0),
]
BOUNDED = SETS[1:]


def inside(feasible, n, d, rng):
    """Return n points of the set, spread over it and its border, without using project."""
    signs = rng.choice([-1.0, 1.0], (n, d))
    corners = np.eye(d)[rng.integers(d, size=n)]
    if isinstance(feasible, L2Ball):
        x = rng.standard_normal((n, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return feasible.bound * x * rng.uniform(size=(n, 1)) ** rng.choice([0, 1 / d], (n, 1))
    if isinstance(feasible, L1Ball):
        share = rng.dirichlet(np.ones(d), n)
        share = np.where(rng.uniform(size=(n, 1)) < 0.3, corners, share)
        return feasible.bound * signs * share * rng.choice([1.0, 0.5], (n, 1))
    if isinstance(feasible, Box):
        share = rng.uniform(size=(n, d))
        share = np.where(rng.uniform(size=(n, 1)) < 0.3, share.round(), share)
        return feasible.low + (feasible.high - feasible.low) * share
    if isinstance(feasible, Simplex):
        share = rng.dirichlet(np.full(d, 0.5), n)
        return feasible.total * np.where(rng.uniform(size=(n, 1)) < 0.3, corners, share)
    return 10 * rng.standard_normal((n, d))


def outside(n, d, rng):
    return rng.standard_normal((n, d)) * rng.choice([0.1, 1.0, 30.0, 1e6], (n, 1))


@pytest.mark.parametrize("seed", [0, 57])
@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("feasible", SETS, ids=str)
def test_the_projection_is_the_nearest_point(feasible, d, seed):
    rng = np.random.default_rng(seed)
    points = inside(feasible, 2000, d, rng)
    for x in outside(30, d, rng):
        nearest = feasible.project(x)
        assert feasible.contains(nearest)
        assert np.allclose(feasible.project(nearest), nearest, rtol=1e-12, atol=1e-12)
        distance = np.linalg.norm(x - nearest)
        assert distance <= np.linalg.norm(x - points, axis=1).min() * (1 + 1e-9)
        # the definition: <x - p, z - p> <= 0 for every z of the set
        angles = (points - nearest) @ (x - nearest)
        assert angles.max() <= 1e-8 * (1 + distance) * (1 + np.linalg.norm(nearest))


@pytest.mark.parametrize("feasible", SETS, ids=str)
def test_points_of_the_set_stay(feasible):
    rng = np.random.default_rng(3)
    for x in inside(feasible, 200, 5, rng):
        assert feasible.contains(x)
        assert np.allclose(feasible.project(x), x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("feasible", BOUNDED, ids=str)
def test_points_beyond_the_set_are_not_in_it(feasible):
    rng = np.random.default_rng(4)
    for x in inside(feasible, 100, 5, rng):
        middle = np.full(5, 10.25) if feasible == Box(0.5, 20.0) else np.zeros(5)
        beyond = middle + (x - middle) * 1e3
        if np.linalg.norm(x - middle) > 1e-2:
            assert not feasible.contains(beyond)
    assert not feasible.contains(np.full(5, 1e3))
    assert not feasible.contains(np.full(5, np.nan))


@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("feasible", BOUNDED, ids=str)
def test_a_radius_is_a_supremum(feasible, d):
    rng = np.random.default_rng(5)
    points = inside(feasible, 500, d, rng)
    if isinstance(feasible, Box):
        points = np.vstack([points, np.full(d, feasible.low), np.full(d, feasible.high)])
    if isinstance(feasible, L1Ball | L2Ball):
        points = np.vstack([points, -points])
    radius = np.linalg.norm(points, axis=1).max()
    assert radius <= feasible.radius(d) * (1 + 1e-12)
    assert radius >= 0.999 * feasible.radius(d)


def test_the_whole_space_has_no_size():
    assert WholeSpace().radius(3) == math.inf


@pytest.mark.parametrize("feasible", SETS, ids=str)
def test_matrices_are_projected_as_one_vector(feasible):
    x = np.random.default_rng(6).standard_normal((3, 4)) * 10
    whole = feasible.project(x)
    assert whole.shape == (3, 4)
    assert np.allclose(whole.ravel(), feasible.project(x.ravel()))
    assert feasible.contains(whole)


@pytest.mark.parametrize("feasible", BOUNDED, ids=str)
@pytest.mark.parametrize("size", [1e16, 1e100, 1e300])
def test_noise_of_any_size_is_brought_back(feasible, size):
    x = size * np.array([1.0, -0.5, 0.25])
    with np.errstate(over="ignore"):
        nearest = feasible.project(x)
    assert np.all(np.isfinite(nearest))
    assert feasible.contains(nearest)
    if isinstance(feasible, L1Ball | Simplex):
        assert nearest[0] == pytest.approx(feasible.radius(3))


@pytest.mark.parametrize("feasible", SETS, ids=str)
def test_projecting_leaves_its_argument_alone(feasible):
    x = np.array([3.0, -4.0, 5.0])
    feasible.project(x)
    assert x.tolist() == [3.0, -4.0, 5.0]


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: L2Ball(0.0), r"bound must be positive and finite, got 0\.0; .*WholeSpace\(\)"),
        (lambda: L2Ball(math.inf), "WholeSpace"),
        (lambda: L1Ball(-1.0), "bound must be positive"),
        (lambda: L1Ball(math.nan), "bound must be positive"),
        (lambda: Simplex(0.0), "total must be positive"),
        (lambda: Box(1.0, 1.0), r"finite low < high, got \(1\.0, 1\.0\); .*such as Box"),
        (lambda: Box(-math.inf, 1.0), "finite low < high"),
        (lambda: Box(0.0, math.nan), "finite low < high"),
    ],
)
def test_sets_without_a_size_are_refused(make, remedy):
    with pytest.raises(ValueError, match=remedy):
        make()
