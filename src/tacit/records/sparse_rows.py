"""Convert sparse rows to a canonical form: no duplicates, sorted, indices within the shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.disk_arrays import own

Array = npt.NDArray[np.float64]


def canonical(matrix: Any) -> Any:
    """Return the rows as a CSR array without duplicate entries.

    Norms are per place and products are per entry: with two entries at one place a row could be
    short for the norm and long for the product. Duplicates are added up in double precision, once,
    before anything is computed. ``has_canonical_format`` may be out of date and is ignored. The
    matrix itself stays as it was. Its memory is shared if nothing changes and nobody else can write
    to it: indices that change after the check could be arbitrary.

    Raises
    ------
    ValueError
        If the index arrays do not describe a matrix of this shape.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from tacit.records.sparse_rows import canonical
    >>> canonical(csr_array(([1e200, -1e200, 1.0], [2, 2, 0], [0, 3]), shape=(1, 3))).toarray()
    array([[1., 0., 0.]])
    """
    from scipy.sparse import csr_array, issparse

    rows = matrix if issparse(matrix) else matrix.tocsr()
    try:
        rows = rows if rows.format == "csr" else _as_csr(rows)
        # A new array over the same memory has no cached flags and must check the indices.
        parts = (own(part) for part in (rows.data, rows.indices, rows.indptr))
        rows = csr_array(tuple(parts), shape=rows.shape)
        rows.check_format(full_check=True)
    except ValueError:
        raise ValueError(
            "the index arrays of the sparse rows do not describe a matrix of their shape; build "
            "it anew, for example with scipy.sparse.csr_array(X.toarray())."
        ) from None
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if not rows.has_canonical_format:
        rows = rows.astype(np.float64, copy=True)
        rows.sum_duplicates()
    return rows


def _as_csr(matrix: Any) -> Any:
    from scipy.sparse import coo_array

    if hasattr(matrix, "check_format"):  # check before the conversion, which trusts the indices
        matrix = matrix.copy()
        matrix.check_format(full_check=True)
    entries = matrix.tocoo()
    # In double precision before duplicates are added; a new array checks the indices.
    data, places = entries.data.astype(np.float64), tuple(map(own, entries.coords))
    return coo_array((data, places), shape=matrix.shape).tocsr()


def sparse_norms(rows: Any) -> Array:
    """Return the Euclidean norm of every row of a canonical CSR array, in double precision."""
    n, data = rows.shape[0], rows.data.astype(np.float64, copy=False)
    at = np.repeat(np.arange(n), np.diff(rows.indptr))
    largest = np.zeros(n)
    with np.errstate(over="ignore", invalid="ignore"):
        np.maximum.at(largest, at, np.abs(data))
        scaled = data / np.where(largest > 0.0, largest, 1.0)[at]
        norms: Array = largest * np.sqrt(np.bincount(at, scaled * scaled, minlength=n))
    return norms
