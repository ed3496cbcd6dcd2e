"""Cosines and sines of turns: right, of norm 1, and the same bits however they are made."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf

from tacit.features import kernels
from tacit.features.kernels import waves

T = np.concatenate(
    [
        np.linspace(-3, 3, 1001),
        np.random.default_rng(0).uniform(-(2.0**30), 2.0**30, 1001),
        [0.0, 0.25, -0.25, 0.5, -0.5, 2.0**50, 2.0**50 + 0.25, 5e-324, -1e-300],
    ]
)


def made(t: np.ndarray, *, compiled: bool = False) -> np.ndarray:
    out = np.empty((t.shape[0], 2 * t.shape[1]))
    waves(t, 1.0, out, compiled=compiled)
    return out


def test_they_are_right() -> None:
    found = made(T[None])
    with mp.workdps(60):
        angles = [2 * mp.pi * mpf(float(t)) for t in T]
        expected = [float(mp.cos(a)) for a in angles] + [float(mp.sin(a)) for a in angles]
    np.testing.assert_allclose(found[0], expected, rtol=0.0, atol=1e-15)
    x, y = np.split(found[0], 2)
    np.testing.assert_allclose(x**2 + y**2, 1.0, rtol=0.0, atol=2e-15)


@pytest.mark.parametrize("shape", [(1, 7), (3, 5), (130, 129), (2, 20_000)])
def test_compiled_or_not_the_bits_are_the_same(shape: tuple[int, int]) -> None:
    if kernels._compiled() is None:
        pytest.skip("needs numba")
    t = np.random.default_rng(1).uniform(-1e6, 1e6, shape)
    assert made(t).tobytes() == made(t, compiled=True).tobytes()


def test_a_number_is_the_same_whatever_is_around_it() -> None:
    t = np.random.default_rng(2).uniform(-10, 10, (40, 33))
    whole = made(t)
    for i in (0, 17, 39):
        assert made(t[i : i + 1]).tobytes() == whole[i : i + 1].tobytes()
