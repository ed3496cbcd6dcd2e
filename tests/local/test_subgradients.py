from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.erm.losses import AbsoluteLoss, DistanceLoss, HingeLoss, HuberLoss, LogisticLoss
from tacit.local import Absolute, Distance, Hinge, Huber, Logistic, SumOfDistances
from tacit.local._compiled import machine_code

pytest.importorskip("numba")

# Each loss with the one of tacit.erm that it is, and the factor between them.
ON_SCORES = [
    (Logistic(), LogisticLoss(), 1.0),
    (Hinge(), HingeLoss(), 1.0),
    (Absolute(), AbsoluteLoss(), 1.0),
    (Huber(), HuberLoss(), 1.0),
    (Huber(0.2), HuberLoss(0.2), 1.0 / 0.2),
    (Huber(30.0), HuberLoss(30.0), 1.0 / 30.0),
]
ALL: list[Any] = [loss for loss, _, _ in ON_SCORES] + [Distance(), SumOfDistances()]


def pull(loss, point, features, label):
    return type(loss).pull(point, features, label, loss.width)


def people(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    return rng.normal(size=(n, d)) * 3.0, rows, rng.choice([-1.0, 1.0], size=n)


@pytest.mark.parametrize(("loss", "same", "factor"), ON_SCORES, ids=str)
def test_pull_is_the_negative_slope(loss, same, factor):
    for point, row, label in zip(*people(), strict=True):
        score = np.array([point @ row])
        expected = -factor * same.d1(score, np.array([label])) * row
        np.testing.assert_allclose(pull(loss, point, row, label), expected, rtol=1e-12)


def test_pull_of_the_distance():
    points, rows, _ = people()
    for point, row in zip(points, rows, strict=True):
        expected = -DistanceLoss().gradients(point, row[None])[0]
        np.testing.assert_allclose(pull(Distance(), point, row, 0.0), expected, rtol=1e-12)


def test_pull_of_the_sum_of_distances():
    points, rows, _ = people()
    for point, row in zip(points, rows, strict=True):
        expected = -AbsoluteLoss().d1(point, row)
        np.testing.assert_array_equal(pull(SumOfDistances(), point, row, 0.0), expected)


def test_corners():
    one = np.ones(1)
    # at margin 1 the hinge is flat to the right: 0 is a subgradient
    np.testing.assert_array_equal(pull(Hinge(), one, one, 1.0), [0.0])
    np.testing.assert_array_equal(pull(Absolute(), one, one, 1.0), [0.0])
    np.testing.assert_array_equal(pull(Huber(), one, one, 1.0), [0.0])
    np.testing.assert_array_equal(pull(Distance(), one, one, 0.0), [0.0])
    np.testing.assert_array_equal(pull(SumOfDistances(), one, one, 0.0), [0.0])


@pytest.mark.parametrize("loss", ALL, ids=repr)
@pytest.mark.parametrize("row_norm", [0.1, 1.0, 20.0])
def test_norm_is_a_bound_and_tight(loss, row_norm):
    points, rows, labels = people(n=400, d=3)
    # long rows, and points that reach both sides of every corner
    rows = rows * (row_norm / np.linalg.norm(rows, axis=1, keepdims=True))
    longest = max(
        float(np.linalg.norm(pull(loss, point * 300.0 / row_norm, row, label)))
        for point, row, label in zip(points, rows, labels, strict=True)
    )
    bound = loss.norm(3, row_norm)
    assert 0.99 * bound <= longest <= bound * (1.0 + 1e-14)


SIZES = st.floats(-1e150, 1e150)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(ALL),
    arrays(np.float64, 3, elements=SIZES),
    arrays(np.float64, 3, elements=st.floats(-1.0, 1.0)),
    st.sampled_from([-1.0, 1.0]),
)
def test_finite_and_bounded_at_any_point(loss, point, row, label):
    row = row / max(1.0, float(np.linalg.norm(row)))
    answer = pull(loss, point, row, label)
    assert np.all(np.isfinite(answer))
    assert np.linalg.norm(answer) <= loss.norm(3, 1.0) * (1.0 + 1e-14)


@pytest.mark.parametrize("gap", [1e-300, 1e-170, 2.7e-162, 1e-161, 5e-324, 1e-10, 1e155, 1e300])
def test_distance_is_a_unit_vector_however_near_or_far(gap):
    # squares of these underflow or overflow
    answer = pull(Distance(), np.zeros(2), np.array([gap, -gap]), 0.0)
    np.testing.assert_allclose(answer, [math.sqrt(0.5), -math.sqrt(0.5)], rtol=1e-14)


@pytest.mark.parametrize("margin", [1e3, 1e6, 1e150, 1e300])
def test_logistic_far_away(margin):
    one = np.ones(1)
    assert 0.0 <= pull(Logistic(), np.array([margin]), one, 1.0)[0] < 1e-300
    assert pull(Logistic(), np.array([-margin]), one, 1.0)[0] == 1.0


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_pull_leaves_its_arguments_alone(loss):
    point, row = np.array([1.0, 2.0]), np.array([0.6, 0.8])
    answer = pull(loss, point, row, 1.0)
    assert not np.shares_memory(answer, row)
    assert not np.shares_memory(answer, point)
    np.testing.assert_array_equal(point, [1.0, 2.0])
    np.testing.assert_array_equal(row, [0.6, 0.8])


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_compiled_pull_is_the_python_pull(loss):
    compiled = machine_code(type(loss).pull)
    for point, row, label in zip(*people(n=30), strict=True):
        np.testing.assert_allclose(
            compiled(point, row, label, loss.width), pull(loss, point, row, label), rtol=1e-13
        )


@pytest.mark.parametrize("width", [0.0, -1.0, math.inf, math.nan])
def test_width_is_refused(width):
    with pytest.raises(ValueError, match="width"):
        Huber(width)


def test_kinds_are_distinct():
    assert len({loss.kind for loss in ALL}) == len({type(loss) for loss in ALL})
