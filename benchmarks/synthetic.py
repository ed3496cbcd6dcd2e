"""Draw data from a known distribution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.datasets.base import Dataset

LABEL_RANGE = (-2.0, 2.0)
NOISE_STD = 0.1
_N_TEST = 20_000


def make_linear_regression(
    n_records: int = 100_000, n_features: int = 50, seed: int = 0
) -> Dataset:
    """Draw a linear regression with known public bounds.

        y = x w + 0.1 z, clipped to [-2, 2]
        x uniform on [-1, 1]^n_features,  z ~ N(0, 1),  w uniform on the unit sphere

    Parameters
    ----------
    n_records
        The number of training records; 20,000 more are for the test.
    n_features
        The number of columns.
    seed
        The seed of w and all records.

    Returns
    -------
    Dataset
        float64 rows and labels.

    Examples
    --------
    >>> from synthetic import make_linear_regression
    >>> data = make_linear_regression(n_records=1000, n_features=5)
    >>> data.train_rows.shape, data.test_rows.shape
    ((1000, 5), (20000, 5))
    >>> bool(abs(data.train_rows).max() <= 1), bool(abs(data.train_labels).max() <= 2)
    (True, True)
    """
    generator = np.random.default_rng(seed)
    direction = generator.standard_normal(n_features)
    weights = direction / np.linalg.norm(direction)

    def draw(n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        rows = generator.uniform(-1.0, 1.0, (n, n_features))
        labels = rows @ weights + NOISE_STD * generator.standard_normal(n)
        return rows, np.clip(labels, *LABEL_RANGE)

    train_rows, train_labels = draw(n_records)
    test_rows, test_labels = draw(_N_TEST)
    return Dataset(
        train_rows=train_rows,
        train_labels=train_labels,
        test_rows=test_rows,
        test_labels=test_labels,
        feature_names=tuple(f"x{i}" for i in range(n_features)),
        description=f"y = x w + {NOISE_STD} noise, x uniform on the cube, |w| = 1, seed {seed}.",
    )
