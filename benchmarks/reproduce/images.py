"""MNIST in small: every 4 by 4 block of pixels becomes its mean, a map that learns nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tacit.datasets import load_mnist

FILES = tuple(
    f"mnist/{name}-ubyte.gz"
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
)


@lru_cache(maxsize=2)
def pooled(block: int) -> tuple[Any, Any, Any, Any]:
    """Return rows and labels to train on and to test on, pixels between 0 and 1."""
    data = load_mnist()
    train, test = (means(rows, block) for rows in (data.train_rows, data.test_rows))
    return train, data.train_labels, test, data.test_labels


def means(rows: Any, block: int) -> Any:
    side = 28 // block
    cut = np.asarray(rows, dtype=np.float32).reshape(-1, side, block, side, block)
    return cut.mean(axis=(2, 4)).reshape(len(rows), side * side)
