"""The default student: what it says of a row comes from the others, and wrong answers lose."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from numpy.testing import assert_allclose

from tacit.pate import SemiSupervised
from tacit.pate import student as module
from tacit.pate.student import _kernel, _Ridge


def blobs(n_each: int, n_classes: int = 3) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return rows around corners, and whose corner each is."""
    rng = np.random.default_rng(3)
    truth = np.repeat(np.arange(n_classes), n_each)
    return 6.0 * np.eye(n_classes)[truth] + rng.standard_normal((len(truth), n_classes)), truth


@pytest.mark.parametrize("n_centres", [9, 40])
def test_a_row_is_judged_by_a_fit_without_it(n_centres: int) -> None:
    rng = np.random.default_rng(0)
    rows, targets = rng.standard_normal((40, 2)), rng.standard_normal((40, 3))
    centres = rows[:n_centres]
    said = _Ridge(rows, centres, 0.3, 0.1).of_the_others(targets)
    for i in (0, 8, 39):
        rest = np.arange(40) != i
        weights = _Ridge(rows[rest], centres, 0.3, 0.1).weights(targets[rest])
        assert_allclose(said[i], _kernel(rows[i : i + 1], centres, 0.3)[0] @ weights, rtol=1e-6)


def test_with_all_rows_as_centres_it_is_kernel_ridge() -> None:
    rng = np.random.default_rng(1)
    rows, targets = rng.standard_normal((30, 2)), rng.standard_normal((30, 1))
    kernel = _kernel(rows, rows, 0.5)
    plain = np.linalg.solve(kernel + 0.2 * np.eye(30), targets)
    found = _Ridge(rows, rows, 0.5, 0.2).weights(targets)
    assert_allclose(kernel @ found, kernel @ plain, atol=1e-4)  # but for the jitter


def test_a_wrong_answer_is_outvoted() -> None:
    pool, truth = blobs(200)
    places = np.concatenate([np.flatnonzero(truth == c)[:8] for c in range(3)])
    answers = truth[places].copy()
    answers[3], answers[12] = 1, 2
    student = SemiSupervised().learn(pool, places, answers)
    assert np.mean(student.predict(pool) == truth) > 0.99
    assert np.array_equal(student.predict(pool[places[[3, 12]]]), truth[places[[3, 12]]])


def test_rows_that_no_answer_reaches_count_for_no_class() -> None:
    pool, truth = blobs(60)
    far = pool.mean(axis=0) + 1e3 + np.random.default_rng(0).standard_normal((40, 3))
    whole = np.concatenate([pool, far])  # an island of its own
    places = np.array([0, 1, 60, 61, 120, 121])
    student = SemiSupervised(n_rounds=0).learn(whole, places, truth[places])
    assert np.all(np.isfinite(student.decision_function(whole)))
    assert_allclose(student.decision_function(far), 0.0, atol=1e-9)


def test_a_pool_beyond_what_is_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CENTRES", 20)
    monkeypatch.setattr(module, "_MOST_ROWS", 90)
    pool, truth = blobs(200)
    places = np.array([0, 1, 200, 201, 400, 401])
    student = SemiSupervised().learn(pool, places, truth[places])
    assert student.centres_.shape == (20, 3)
    assert np.mean(student.predict(pool) == truth) > 0.95
