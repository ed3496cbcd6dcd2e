"""Random Fourier features: rows of norm 1, functions of one record, near their kernel."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array

from tacit.features import (
    GaussianKernel,
    Kernel,
    LaplacianKernel,
    MaternKernel,
    RandomFourierFeatures,
)
from tacit.features.feature_map import declared_domain
from tacit.features.kernels import Uniforms, rounded_frequencies

Array = npt.NDArray[np.float64]
KERNELS: dict[str, Kernel] = {
    "gaussian": GaussianKernel(0.7),
    "laplacian": LaplacianKernel(1.5),
    "matern": MaternKernel(0.7),
    "rough matern": MaternKernel(0.7, nu=0.5),
}
ROWS = 0.5 * np.random.default_rng(0).standard_normal((60, 5))


def features(kernel: Kernel, n: int, rows: Any = ROWS, seed: int = 3) -> Array:
    return RandomFourierFeatures(kernel, n // 2, seed=seed).transform(rows)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", [2, 30, 2000])
def test_every_row_has_norm_1(name: str, n: int) -> None:
    wild = np.vstack(
        [
            ROWS,
            1e300 * ROWS,
            1e-300 * ROWS,
            np.zeros((1, 5)),
            2.0**60 * np.eye(5),
            np.full((1, 5), 1.7e308),
        ]
    )
    for rows in (wild, wild.clip(-1e30, 1e30).astype(np.float32), csr_array(wild)):
        norms = np.linalg.norm(features(KERNELS[name], n, rows), axis=1)
        np.testing.assert_allclose(norms, 1.0, rtol=0.0, atol=1e-12)


def error(kernel: Kernel, n: int, seeds: int) -> float:
    """Return the root of the mean squared error of all inner products."""
    assert kernel.bandwidth is not None
    differences = (ROWS[:, None] - ROWS[None]).reshape(-1, ROWS.shape[1]) / kernel.bandwidth
    true = kernel.value(differences).reshape(len(ROWS), -1)
    off = [features(kernel, n, seed=s) for s in range(seeds)]
    return math.sqrt(np.mean([(f @ f.T - true) ** 2 for f in off]))


@pytest.mark.parametrize("name", KERNELS)
def test_the_error_falls_as_one_over_the_root(name: str) -> None:
    kernel = KERNELS[name]
    sizes = np.array([32, 128, 512])
    scaled = np.sqrt(sizes) * [error(kernel, n, 24) for n in sizes]
    # a cosine and a sine estimate k with variance at most 1/2, and there are n / 2 pairs
    assert np.all(scaled < 1.1)
    # the same constant for every size: falling as n^-0.4 or n^-0.6 would be off by 1.5
    assert scaled.max() / scaled.min() < 1.25


def test_orthogonal_frequencies_vary_less() -> None:
    class Independent(GaussianKernel):
        def frequencies(self, n_columns: int, n_frequencies: int, draw: Uniforms) -> Array:
            return draw.normals(n_columns, n_frequencies)

    # of as many frequencies as columns, where it helps most
    assert error(GaussianKernel(1.5), 10, 100) < 0.8 * error(Independent(1.5), 10, 100)


def test_frequencies_are_orthogonal_where_the_kernel_is_round() -> None:
    for name, kernel in KERNELS.items():
        w = kernel.frequencies(5, 12, Uniforms(1))
        inner = np.abs(w[:, :5].T @ w[:, :5] - np.diag(np.sum(w[:, :5] ** 2, axis=0))).max()
        assert (inner < 1e-9) == (not isinstance(kernel, LaplacianKernel)), name


@pytest.mark.parametrize("name", KERNELS)
def test_a_row_is_made_of_its_record_alone(name: str) -> None:
    rows = 10.0 ** np.linspace(-3, 3, 300)[:, None] * np.random.default_rng(1).uniform(
        -1, 1, (300, 7)
    )
    whole = features(KERNELS[name], 66, rows)
    for at in (slice(0, 1), slice(5, 6), slice(3, 100), slice(None, None, 7), slice(299, 300)):
        assert features(KERNELS[name], 66, rows[at]).tobytes() == whole[at].tobytes()
    assert features(KERNELS[name], 66, np.asfortranarray(rows)).tobytes() == whole.tobytes()
    assert features(KERNELS[name], 66, csr_array(rows)).tobytes() == whole.tobytes()


def test_products_of_rows_and_frequencies_are_exact() -> None:
    draw = np.random.default_rng(4)
    frequencies = rounded_frequencies(10.0 ** draw.uniform(-8, 12, (9, 20)) * draw.choice([-1, 1]))
    function = RandomFourierFeatures(GaussianKernel(1.0), 2, seed=0).row_map(
        declared_domain(["x"] * 9, None, None)
    )
    rows = function._in_steps(10.0 ** draw.uniform(-6, 6, (4, 9)))
    exact = [
        [
            sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, w, strict=True))
            for w in frequencies.T
        ]
        for x in rows
    ]
    assert [[Fraction(float(v)) for v in line] for line in rows @ frequencies] == exact
    # a whole turn can be told from the next one: no frequency is beyond what waves can take
    assert np.abs(rows @ frequencies).max() < 2.0**51


def test_rounding_keeps_frequencies() -> None:
    w = np.random.default_rng(5).standard_normal((40, 100))
    np.testing.assert_allclose(rounded_frequencies(w), w, rtol=0.0, atol=1e-5)


def test_the_seed_decides_and_is_kept() -> None:
    first, second = RandomFourierFeatures(), RandomFourierFeatures()
    a, b = first.transform(ROWS), second.transform(ROWS)
    assert first.seed_ != second.seed_
    assert not np.allclose(a, b)
    assert np.array_equal(first.transform(ROWS), a)
    assert np.array_equal(RandomFourierFeatures(seed=first.seed_).transform(ROWS), a)
    drawn = Uniforms(7)(3)
    np.testing.assert_allclose(drawn, [0.625095466, 0.897213801, 0.775685693], atol=1e-8)


def test_the_bandwidth_comes_from_public_bounds() -> None:
    box = RandomFourierFeatures(ranges=(0, 12)).fit(np.zeros((1, 4)))
    assert box.bandwidth_ == pytest.approx(math.sqrt(4 * 144 / 12))
    ball = RandomFourierFeatures(row_norm=3.0).fit(np.zeros((1, 4)))
    assert ball.bandwidth_ == pytest.approx(3.0 * math.sqrt(4 / 6))
    declared = RandomFourierFeatures(MaternKernel(0.2), row_norm=3.0).fit(np.zeros((1, 4)))
    assert declared.bandwidth_ == 0.2
    # two rows spread evenly are usually apart by sqrt(2) bandwidths
    rng = np.random.default_rng(0)
    points = rng.standard_normal((2, 20_000, 4))
    points *= (3.0 * rng.random((2, 20_000, 1)) ** 0.25) / np.linalg.norm(points, axis=2)[..., None]
    apart = np.mean(np.sum((points[0] - points[1]) ** 2, axis=1))
    assert apart == pytest.approx(2 * ball.bandwidth_**2, rel=0.03)
    lines = np.mean(np.sum(np.abs(points[0] - points[1]), axis=1))
    laplace = RandomFourierFeatures(LaplacianKernel(), row_norm=3.0).fit(np.zeros((1, 4)))
    assert lines == pytest.approx(laplace.bandwidth_, rel=0.05)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_frequencies": 0}, "at least 1"),
        ({"n_frequencies": 2.0}, "whole number"),
        ({"kernel": "rbf"}, "must be a GaussianKernel"),
        ({"seed": -1}, "at least 0"),
        ({"ranges": (1, 0)}, "low before high"),
        ({"ranges": (0, math.inf)}, "finite"),
        ({"row_norm": -1.0}, "positive"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        RandomFourierFeatures(**wrong).fit(ROWS).transform(ROWS)
    with pytest.raises(ValueError, match="bandwidth"):
        GaussianKernel(-1.0)
    with pytest.raises(ValueError, match="nu"):
        MaternKernel(nu=0.0)
