import numpy as np
import pytest
from synthetic import make_linear_regression


@pytest.fixture(scope="module")
def data():
    return make_linear_regression()


def test_shapes_and_bounds(data):
    assert data.train_rows.shape == (100_000, 50)
    assert data.test_rows.shape == (20_000, 50)
    assert np.abs(data.train_rows).max() <= 1.0
    assert np.abs(data.train_labels).max() <= 2.0


def test_the_law_is_the_stated_one(data):
    weights, residuals, *_ = np.linalg.lstsq(data.train_rows, data.train_labels)
    assert np.linalg.norm(weights) == pytest.approx(1.0, abs=0.01)
    assert np.sqrt(residuals[0] / 100_000) == pytest.approx(0.1, abs=0.002)
    assert np.mean(data.train_rows**2) == pytest.approx(1 / 3, abs=0.001)


def test_the_seed_decides():
    first, again, other = (make_linear_regression(50, 4, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.train_rows, again.train_rows)
    assert np.array_equal(first.test_labels, again.test_labels)
    assert not np.array_equal(first.train_rows, other.train_rows)
