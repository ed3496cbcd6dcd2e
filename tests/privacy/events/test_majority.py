"""The cost of a noisy majority against the worst margin, found by trying many."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import log_ndtr

from tacit.privacy import NoisyMajority
from tacit.privacy.events import majority
from tacit.privacy.events.majority import majority_renyi

Array = npt.NDArray[np.float64]


def divergence(t: np.ndarray, shift: float, order: float) -> np.ndarray:
    """Return D_a(Bernoulli(Phi(t)) || Bernoulli(Phi(t + shift)))."""
    yes = order * log_ndtr(t) + (1 - order) * log_ndtr(t + shift)
    no = order * log_ndtr(-t) + (1 - order) * log_ndtr(-t - shift)
    return np.asarray(np.logaddexp(yes, no) / (order - 1))


@pytest.mark.parametrize("shift", [2e-4, 0.01, 0.3, 1.5, 5.0])
@pytest.mark.parametrize("order", [1.3, 2.0, 9.0, 64.0])
def test_it_is_the_worst_margin(shift: float, order: float) -> None:
    worst = divergence(np.linspace(-45.0, 45.0 + order * shift, 300_001), shift, order).max()
    found = majority_renyi(shift, np.array([order]))[0]
    assert worst * (1 - 1e-7) <= found
    assert found <= min(worst * 1.02 + 1e-9, order * shift**2 / 2 * (1 + 1e-12))
    event = NoisyMajority(np.sqrt(2.0) / shift)
    assert event.renyi(np.array([order]))[0] == pytest.approx(found, rel=1e-9, abs=0.0)
    assert event.gaussian_bound() == pytest.approx(shift)


def log_excess(t: float, shift: float, order: float) -> tuple[mpmath.mpf, ...]:
    """Return p, q and logarithms of f(p / q) and f((1 - p) / (1 - q))."""
    p, q = mpmath.ncdf(t), mpmath.ncdf(mpmath.mpf(t) + mpmath.mpf(shift))
    no, other = mpmath.ncdf(-t), mpmath.ncdf(-mpmath.mpf(t) - mpmath.mpf(shift))

    def log_f(ratio: mpmath.mpf) -> mpmath.mpf:
        return mpmath.log(ratio**order - 1 - order * (ratio - 1))

    return q, no, other, log_f(p / q), log_f(no / other)


def test_rounding_is_covered_as_stated() -> None:
    """1e-8 relative and 4e-15 of the exponents: up in bounds, down in what is attained."""
    order, shift, t = 1000.0, 0.01, 30.0
    sizes = float(-log_ndtr(-t) - log_ndtr(-t - shift))
    slack = np.log1p(1e-8) + 4e-15 * order * sizes
    upper, at = majority._cells(np.array([[order]]), shift, np.full((1, 2), t))
    with mpmath.workdps(400):
        q, no, other, first, second = log_excess(t, shift, order)
        exact = mpmath.log(q * mpmath.exp(first) + other * mpmath.exp(second))
        assert float(upper[0, 0] - exact) == pytest.approx(slack, abs=1e-9)
        assert float(exact - at[0, 0]) == pytest.approx(slack, abs=1e-9)
        tail = majority._right_tail(np.array([order]), shift, np.array([t]))
        exact = order * mpmath.log(no) + (1 - order) * mpmath.log(other)
        assert float(tail[0] - exact) == pytest.approx(4e-15 * order * sizes, abs=1e-9)


@pytest.mark.parametrize(("order", "shift"), [(2.0, 0.5), (8.0, 0.3), (1.5, 0.2)])
def test_the_tails_are_those_of_the_proof(order: float, shift: float) -> None:
    """docs/proofs/pate.md, section 3, at an end of a grid that everything else lies beyond."""
    for t in (-2.0, 0.0, 0.7):
        left = majority._left_tail(np.array([order]), shift, np.array([t]))[0]
        right = majority._right_tail(np.array([order]), shift, np.array([t]))[0]
        with mpmath.workdps(40):
            q, no, other, first, second = log_excess(t, shift, order)
            exact = mpmath.log(q * (order - 1) + mpmath.exp(second))
            assert left == pytest.approx(float(exact), abs=1e-9)
            exact = mpmath.log(mpmath.exp(first) + no**order * other ** (1 - order))
            assert right == pytest.approx(float(exact), abs=1e-9)


@pytest.mark.parametrize("name", ["_left_tail", "_right_tail"])
def test_either_tail_may_be_the_worst(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    order = np.array([2.0])
    assert majority_renyi(0.3, order)[0] < 0.08
    monkeypatch.setattr(majority, name, lambda a, shift, t: np.full(a.shape, 50.0))
    assert majority_renyi(0.3, order)[0] == 0.09  # all that a Gaussian would tell


def test_no_cell_that_may_hold_the_supremum_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, real = [], majority._cells

    def noticed(a: Array, shift: float, edges: Array) -> tuple[Array, Array]:
        seen.append((edges, *real(a, shift, edges)))
        return seen[-1][1:]

    monkeypatch.setattr(majority, "_cells", noticed)
    majority_renyi(0.3, np.array([1.3, 2.0, 9.0]))
    assert len(seen) > 1
    for (edges, upper, at), (finer, _, _) in itertools.pairwise(seen):
        for row, kept in enumerate(upper >= at.max(axis=1, keepdims=True)):
            assert finer[row, 0] <= edges[row, :-1][kept].min()
            assert finer[row, -1] >= edges[row, 1:][kept].max()
