"""Sum each person's records, and clip the sums (docs/proofs/people.md, section 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tacit.records.block import Block
    from tacit.records.coordinates import Coordinates

Array = npt.NDArray[np.float64]

# A person's records count as at most this many. Gradients of well-fitted records are about half the
# greatest norm, of either sign, so k of them add up to about sqrt(k) / 2 times the clip. From 4 on,
# more records would only be clipped, but raise the curvature of the sum beyond the step size.
MOST_COUNTED = 4


def clipped_by_person(
    block: Block, coefficients: Array, clip: float, coordinates: Coordinates | None = None
) -> Array:
    """Return the sum over people of sum_i coefficient_i x_i, each of norm at most ``clip``.

    The norm is taken in ``coordinates``, if given; the sum itself is not. Numbers are in units of
    the clip, so that no square overflows. ``coefficients`` have one column per output.
    """
    scaled = (coefficients[:, None] if coefficients.ndim == 1 else coefficients) / clip
    parts = [_of_each_person(block, column) for column in scaled.T]
    if coordinates is None:
        squares = sum(_squares(inner) + last**2 for inner, last in parts)
    else:
        squares = sum(coordinates.squares(*part, block.intercept) for part in parts)
    factors = clip * _factors(np.sqrt(squares), _sizes(block))
    sums = [_in_all(inner, last, factors, block.intercept) for inner, last in parts]
    return sums[0] if coefficients.ndim == 1 else np.stack(sums, axis=1)


def clipped_vectors(block: Block, vectors: Array, clip: float) -> Array:
    """Return the clipped sum over people of vectors, one vector per record."""
    sums = _selection(block, np.full(block.n_rows, 1 / clip)) @ vectors
    result: Array = sums.T @ (clip * _factors(np.sqrt(_squares(sums)), _sizes(block)))
    return result


def summed_by_person(block: Block, coefficients: Array) -> Array:
    """Return each person's sum_i coefficient_i x_i, scaled as if from `MOST_COUNTED` records.

    The result has one row per person, or a matrix with one column per output. It does not depend on
    other people.
    """
    columns = coefficients[:, None] if coefficients.ndim == 1 else coefficients
    sums = [_dense_sums(block, column) for column in columns.T]
    shares = _shares(_sizes(block))
    if coefficients.ndim == 1:
        return sums[0] * shares[:, None]
    return np.stack(sums, axis=2) * shares[:, None, None]


def vectors_by_person(block: Block, vectors: Array) -> Array:
    """Return each person's sum of vectors, one vector per record, scaled likewise."""
    sums: Array = _selection(block, np.ones(block.n_rows)) @ vectors
    return sums * _shares(_sizes(block))[:, None]


def _dense_sums(block: Block, coefficients: Array) -> Array:
    inner, last = _of_each_person(block, coefficients)
    dense: Array = inner.toarray() if hasattr(inner, "tocsr") else inner
    return np.hstack([dense, last[:, None]]) if block.intercept else dense


def _shares(sizes: npt.NDArray[np.int64]) -> Array:
    """Return min(MOST_COUNTED / k, 1) for each person's k records."""
    shares: Array = np.minimum(1.0, MOST_COUNTED / np.maximum(sizes, 1))
    return shares


def _factors(norms: Array, sizes: npt.NDArray[np.int64]) -> Array:
    """Return min(MOST_COUNTED / k, 1 / norm, 1) for each person's k records."""
    factors: Array = np.minimum(_shares(sizes), 1 / np.maximum(norms, 1e-300))
    return factors


def _sizes(block: Block) -> npt.NDArray[np.int64]:
    assert block.people is not None
    return np.diff(block.people, append=block.n_rows)


def _selection(block: Block, coefficients: Array) -> Any:
    """Return the matrix, one row per person, that sums their records with these coefficients."""
    from scipy.sparse import csr_array

    assert block.people is not None
    n = block.n_rows
    edges = np.append(block.people, n)
    return csr_array((coefficients, np.arange(n), edges), shape=(len(edges) - 1, n))


def _of_each_person(block: Block, coefficients: Array) -> tuple[Any, Array]:
    """Return the sums of the rows, and of the intercept coordinate."""
    # Each person's records are summed separately, in their own order: others have no effect.
    inner = _selection(block, block.factors * coefficients) @ block.rows
    last = _selection(block, coefficients) @ np.full(block.n_rows, block.intercept)
    return inner, last


def _squares(sums: Any) -> Array:
    squared = sums.multiply(sums) if hasattr(sums, "tocsr") else sums * sums
    return np.asarray(squared.sum(axis=1)).reshape(-1)


def _in_all(inner: Any, last: Array, factors: Array, intercept: float) -> Array:
    total = np.asarray(inner.T @ factors)
    return np.append(total, last @ factors) if intercept else total
