"""Features of MNIST for teachers and student: scattering where tacit has it, projected."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import harness
import numpy as np
from sklearn.utils.extmath import randomized_svd

from tacit.datasets import load_mnist

# Chosen by the labels of the public images: how often eight neighbours are of one digit.
N_DIMENSIONS, POWER, N_PUBLIC = 200, -0.25, 9000


def mnist_features() -> tuple[Any, Any, Any, Any, str]:
    """Return train rows, labels, test rows, labels, and what the rows are.

    All from the first 9,000 test images, which are public: each path of the scattering divided by
    its standard deviation, a basis of 200 directions, each of which is divided by its variance to
    the power 1/4; rows are brought to length 1.
    """
    data = load_mnist()
    try:
        found: Any = import_module("tacit.features.images")
        scattered, what = found.scattered, "scattering"
    except ImportError:
        scattered, what = None, "pixels (scattering is not there)"
    cache = harness.SCRATCH / "pate" / f"mnist-{what.partition(' ')[0]}.npz"
    if not cache.exists():
        public = _raw(data.test_rows[:N_PUBLIC], scattered)
        mean = public.mean(axis=0)
        scale = np.sqrt(np.mean((public - mean) ** 2, axis=(0, 2)))[:, None]
        flat = ((public - mean) / scale).reshape(len(public), -1)
        _, sizes, vectors = randomized_svd(flat, N_DIMENSIONS, random_state=0)
        basis = (vectors.T * (sizes**2 / len(public)) ** POWER).astype(np.float32)
        train, test = (
            _projected(rows, scattered, mean, scale, basis)
            for rows in (data.train_rows, data.test_rows)
        )
        cache.parent.mkdir(parents=True, exist_ok=True)
        np.savez(cache, train=train, test=test)
    with np.load(cache) as kept:
        train, test = kept["train"].astype(np.float64), kept["test"].astype(np.float64)
    return train, data.train_labels, test, data.test_labels, what


def _raw(rows: Any, scattered: Any) -> Any:
    """Return (image, path, place); pixels are one path."""
    if scattered is None:
        return rows.astype(np.float32)[:, None, :]
    images = rows.reshape(-1, 28, 28, 1)
    return np.stack([scattered(image)[0] for image in images]).astype(np.float32)


def _projected(rows: Any, scattered: Any, mean: Any, scale: Any, basis: Any) -> Any:
    parts = []
    for start in range(0, len(rows), 2000):
        raw = (_raw(rows[start : start + 2000], scattered) - mean) / scale
        block = raw.reshape(len(raw), -1) @ basis
        parts.append(block / np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-9))
    return np.concatenate(parts)
