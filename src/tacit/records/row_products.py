"""Compute scores row by row, for discontinuous gradients, which depend on a score's last bit.

A matrix product may round a score differently in the middle of a block and at its edge, so that one
record more can change the scores of others. Here every operation is on single numbers, each rounded
by IEEE arithmetic on its own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Terms held at once: a quarter of a megabyte, which stays in the cache.
_TERMS = 1 << 15


def row_products(rows: Array, weights: Array) -> Array:
    """Return <row, weights> for every row, as a function of that row and the weights alone.

    For several outputs, pass one column of weights each.

    Guarantee: the same bits for any position of the row, any rows around it, any number of rows and
    any memory layout. The terms x_j w_j are added in pairs, term j to term j + ceil(d / 2), until
    one is left.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.row_products import row_products
    >>> row_products(np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]), np.array([1.0, 10.0, 100.0]))
    array([321.,  10.])
    """
    n, d = rows.shape
    outputs = np.atleast_2d(weights.T)
    products = np.zeros((n, len(outputs)))
    step = max(1, _TERMS // max(d, 1))
    for start in range(0, n if d else 0, step):
        # Store columns contiguously, so that whole columns are added at once.
        columns = np.ascontiguousarray(rows[start : start + step].T)
        for made, output in zip(products.T, outputs, strict=True):
            terms = columns * output[:, None]
            while len(terms) > 1:
                kept = (len(terms) + 1) // 2
                terms[: len(terms) - kept] += terms[kept:]
                terms = terms[:kept]
            made[start : start + step] = terms[0]
    return products.reshape(n, *weights.shape[1:])
