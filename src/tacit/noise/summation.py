"""Sum rows with a sensitivity that holds in float arithmetic, too."""

from __future__ import annotations

import math

import numpy as np

from tacit import checks
from tacit.arrays import Array
from tacit.disk_arrays import may_change
from tacit.noise.bounded import Bounded, Norm, round_up
from tacit.privacy.budget import Relation
from tacit.row_clipping import clip_factors, row_norms

_MOST_ROWS = 2**31
_BLOCK_NUMBERS = 1 << 16  # numbers processed at once; they fit into a cache


def bounded_sum(
    rows: Array,
    row_bound: float,
    norm: Norm,
    relation: Relation,
    *,
    max_rows: int = _MOST_ROWS,
) -> Bounded:
    """Return the sum of rows, each clipped to a norm, with its sensitivity.

    Float sums depend on the order of the rows, and one row can move a sum by far more than its own
    norm (Casacuberta et al. 2022). Here every clipped row is rounded to multiples of a power of
    two, so each partial sum is an integer below 2^53 of them. Floats add such integers exactly, in
    any order.

    Parameters
    ----------
    rows : array of shape (n, d) or (n,)
        The records. A row of larger norm is scaled down to the bound; one 2^300 times too long
        counts as zeros.
    row_bound : float
        The norm that no row may exceed; public.
    norm : Norm
        The norm of rows and of the sensitivity.
    relation : Relation
        Relation of the neighbours.
    max_rows : int
        A public bound on the number of rows, up to 2^31. The smaller, the finer the rounding.

    Returns
    -------
    Bounded
        The sum, shape (d,) or a float, with

            step = 2^(ceil(log2(row_bound)) - bits),   bits = 52 - ceil(log2(max_rows))
            sensitivity = row_bound + (step / 2) c(d), doubled for REPLACE

        where c(d) = d for L1, sqrt(d) for L2, 1 for LINF, and the result is rounded up.

    Notes
    -----
    **Guarantee**

    1. The value is a function of the multiset of rows: no order, block size or thread matters.
    2. Adding or removing a row moves it by at most the sensitivity, exactly. Proof: the value is
       a sum of one vector q(row) for each row, added without rounding; q(row) is within step / 2
       on each coordinate of the clipped row, whose norm is at most row_bound in real numbers
       (`tacit.row_clipping`). Replacing a row removes one and adds one.
    3. Rows that are not finite, or too many rows, are refused.

    **Assumes** nothing beyond IEEE arithmetic.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import Norm
    >>> from tacit.noise.summation import bounded_sum
    >>> from tacit.privacy import Relation
    >>> rows = np.array([[3.0, 4.0], [0.5, 0.0], [0.0, -0.25]])
    >>> total = bounded_sum(rows, 1.0, Norm.L2, Relation.ADD_REMOVE)
    >>> np.round(total.value, 3), round(total.sensitivity, 5)
    (array([1.1 , 0.55]), 1.0)
    """
    bound = checks.positive("row_bound", row_bound, remedy="pass the norm no row may exceed.")
    if not 2.0**-400 <= bound <= 2.0**400:
        raise ValueError(f"row_bound must be in [2^-400, 2^400], got {bound!r}; change units.")
    limit = checks.count(
        "max_rows", max_rows, least=1, most=_MOST_ROWS, remedy="sum larger data in parts."
    )
    if not isinstance(norm, Norm):
        raise TypeError(f"norm must be a Norm, got {norm!r}; pass Norm.L1, L2 or LINF.")
    table = _as_table(rows, limit)
    step = _step(bound, limit)
    total = np.zeros(table.shape[1])
    block = max(1, _BLOCK_NUMBERS // max(1, table.shape[1]))
    for start in range(0, table.shape[0], block):
        # Integers below 2^53: exact.
        total += _whole_steps(table[start : start + block], bound, norm, step).sum(axis=0)
    total *= step  # exact: a power of two
    value = total if np.ndim(rows) == 2 else float(total[0])
    return Bounded(value, _sensitivity(bound, table.shape[1], norm, step, relation), norm, relation)


def sum_sensitivity(row_bound: float, n_columns: int, norm: Norm, relation: Relation) -> float:
    """Return the sensitivity of `bounded_sum` for rows of so many numbers.

    Examples
    --------
    >>> from tacit.noise import Norm
    >>> from tacit.noise.summation import sum_sensitivity
    >>> from tacit.privacy import Relation
    >>> round(sum_sensitivity(1.0, 2, Norm.L2, Relation.REPLACE), 5)
    2.0
    """
    return _sensitivity(row_bound, n_columns, norm, _step(row_bound, _MOST_ROWS), relation)


def _as_table(rows: Array, limit: int) -> Array:
    if not isinstance(rows, np.ndarray) or rows.dtype.kind != "f" or rows.dtype.itemsize > 8:
        kind = rows.dtype if isinstance(rows, np.ndarray) else type(rows).__name__
        raise TypeError(f"rows must be an array of floats, got {kind}; use .astype(np.float64).")
    if rows.ndim not in (1, 2) or (rows.ndim == 2 and rows.shape[1] == 0):
        raise ValueError("rows must have shape (n, d) with d from 1 on, or (n,); reshape them.")
    if rows.shape[0] > limit:
        raise ValueError(
            f"there are more rows than max_rows={limit}; pass a public bound on the number of "
            "rows that holds."
        )
    table: Array = np.atleast_2d(rows.T).T.astype(np.float64, copy=False)
    if not np.all(np.isfinite(table)):
        raise ValueError(
            "rows hold NaN or infinity, which no clipping can bound; drop or replace them first."
        )
    return table


def _step(bound: float, limit: int) -> float:
    # One row is at most 2^bits steps (and half a step of rounding) on a coordinate, so all rows
    # together are at most max_rows (2^bits + 1) <= 2^53.
    bits = 52 - (limit - 1).bit_length()
    mantissa, exponent = math.frexp(bound)
    return math.ldexp(1.0, (exponent - 1 if mantissa == 0.5 else exponent) - bits)


def _whole_steps(rows: Array, bound: float, norm: Norm, step: float) -> Array:
    """Return each row, clipped to the bound, in integer steps."""
    # Store each row contiguously, so that its computed norm depends on nothing around it.
    rows = np.require(rows, np.float64, ["C", "A"])
    if may_change(rows):  # the memory may change after it was checked: copy, then check again
        rows = np.array(rows)
        rows[~np.isfinite(rows).all(axis=1)] = 0.0
    with np.errstate(over="ignore"):
        if norm is Norm.L1:
            lengths = np.abs(rows).sum(axis=1)
        elif norm is Norm.L2:
            lengths = row_norms(rows)
        else:
            lengths = np.abs(rows).max(axis=1)
    factors = clip_factors(lengths, bound, rows.shape[1])
    whole: Array = np.rint(rows * factors[:, None] / step)  # step is a power of two
    return whole


def _sensitivity(bound: float, d: int, norm: Norm, step: float, relation: Relation) -> float:
    spread = {Norm.L1: float(d), Norm.L2: math.sqrt(d), Norm.LINF: 1.0}[norm]
    one = round_up(round_up(bound + 0.5 * step * spread))
    return 2.0 * one if relation is Relation.REPLACE else one
