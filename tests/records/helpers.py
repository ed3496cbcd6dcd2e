"""Rows of every kind, and every sum that is asked of them."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from tacit.records import Block


def make(kind, X):
    if kind == "csr":
        return scipy.sparse.csr_array(X)
    return X.astype(kind)


KINDS = ["float64", "float32", "csr"]


def everything(block: Block):
    ones = np.ones(block.n_rows)
    w = np.linspace(-1.0, 1.0, block.rows.shape[1] + (1 if block.intercept else 0))
    scores = block.scores(w)
    several = block.scores(np.stack([w, -2 * w], axis=1))
    return (
        block.weighted_sum(ones),
        block.weighted_sum(np.tanh(scores)),
        block.weighted_sum(np.tanh(several)),
        block.gram(1.0 / (1.0 + scores**2)),
        block.points().sum(axis=0),
        np.array(float(block.n_rows)),
        np.array(0.0 if block.labels is None else block.labels.sum()),
    )
