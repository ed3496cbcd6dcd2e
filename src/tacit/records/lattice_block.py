"""Hold a few rows in integer steps of a lattice; their scores and sums have no float error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tacit.records.block import Block
from tacit.records.bounds import Bounds
from tacit.records.lattice_kernels import small_rows
from tacit.records.lattice_rows import ROW_BITS, in_steps, power_above, row_step
from tacit.records.lattice_tiles import Tiles
from tacit.records.source import RecordSource

Array = npt.NDArray[np.float64]

# Bits of gradient coefficients, which are integers (`tacit.erm.exact_gradient`): 2^20 rows of 2^15
# steps times coefficients of 2^18 add up below 2^53.
COEFFICIENT_BITS = 18
# Bits of weights below a power of two above their norm. The rounding moves the point at which a
# gradient is evaluated by less than the noise moves it (docs/proofs/exact_sums.md, section 5).
WEIGHT_BITS = 28
MOST_ROWS = 2 ** (53 - ROW_BITS - COEFFICIENT_BITS)


@dataclass(frozen=True)
class LatticeBlock:
    """Rows k_i in steps, labels and weights; the record's vector is (step k_i, intercept).

    Losses use it like a `Block`: it has scores, labels and weights.

    Notes
    -----
    **Guarantee** (docs/proofs/exact_sums.md)

    1. A score depends on its own row and the weights alone, to the last bit. It is the same with
    any BLAS, with numba and without.
    2. Sums of integers times rows are exact.
    """

    rows: Any  # int16, `Tiles` of int16 for compiled loops, or a CSR array of integer float64
    step: float
    labels: Array | None
    intercept: float
    weights: Array | None = None
    buffer: Array | None = None  # the rows in double precision
    people: None = None  # a person's records are summed in ordinary blocks

    @property
    def n_rows(self) -> int:
        """Number of records in the block."""
        return int(self.rows.shape[0])

    def scores(self, weights: Array) -> Array:
        """Return <w, x> for every record, for weights rounded to 28 bits."""
        whole, unit, constant = self.lattice_weights(weights)
        scores = self._along(whole)
        scores *= unit  # a power of two
        if self.intercept:
            scores += constant
        return scores

    def lattice_weights(self, weights: Array) -> tuple[Array, float, Any]:
        """Return the rows' weights as integers, and the numbers that turn their sums into scores.

        score = unit sum_j k_j whole_j + constant
        """
        constant = self.intercept * weights[-1] if self.intercept else 0.0
        _refuse_unless(np.all(np.isfinite(constant)))
        inner = np.asarray(weights[:-1] if self.intercept else weights, dtype=np.float64)
        whole, spacing = _known_on_lattice(inner.tobytes(), inner.shape)
        return whole, spacing * self.step, constant

    def steady_scores(self, weights: Array) -> Array:
        """Return `scores`: no score depends on other rows."""
        return self.scores(weights)

    def weighed(self, values: Array) -> Array:
        """Return each record's number, or row of numbers, times the record's weight."""
        if self.weights is None:
            return values
        return values * (self.weights if values.ndim == 1 else self.weights[:, None])

    def squared_norms(self) -> Array:
        """Return the squared norm of every row, without the intercept's coordinate; exact."""
        if hasattr(self.rows, "tocsr"):
            squares = np.asarray(self.rows.multiply(self.rows).sum(axis=1)).reshape(-1)
        else:
            rows = self._doubles()
            squares = np.einsum("ij,ij->i", rows, rows)
        result: Array = squares * self.step**2
        return result

    def whole_sum(self, coefficients: Array) -> Array:
        """Return sum_i c_i k_i, for integers c_i of at most `COEFFICIENT_BITS`; exact."""
        d, n = self.rows.shape[1], self.n_rows
        total = np.zeros((d, *coefficients.shape[1:]))
        if hasattr(self.rows, "tocsr"):
            for at in _slices(n, MOST_ROWS):
                total += self.rows[at].T @ coefficients[at]
        elif isinstance(self.rows, Tiles):
            return self.rows.down(coefficients)
        else:
            rows = self._doubles()
            for at in _slices(n, small_rows(d, total.size // max(d, 1))):
                total += rows[at].T @ coefficients[at]
        return total

    def doubles(self) -> Array:
        """Return the rows in steps as doubles, dense."""
        return self.rows.toarray() if hasattr(self.rows, "tocsr") else self._doubles()

    def _along(self, weights: Array) -> Array:
        if hasattr(self.rows, "tocsr"):
            return np.asarray(self.rows @ weights)
        if isinstance(self.rows, Tiles):
            return self.rows.along(weights)
        scores = np.empty((self.n_rows, *weights.shape[1:]))
        rows = self._doubles()
        for at in _slices(self.n_rows, small_rows(*weights.reshape(len(weights), -1).shape)):
            np.matmul(rows[at], weights, out=scores[at])
        return scores

    def _doubles(self) -> Array:
        if self.buffer is not None:
            return self.buffer  # filled by `LatticeTable`
        rows = self.rows.rows() if isinstance(self.rows, Tiles) else self.rows
        return np.asarray(rows, dtype=np.float64)


def _slices(n: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


@lru_cache(maxsize=8)
def _known_on_lattice(weights: bytes, shape: tuple[int, ...]) -> tuple[Array, float]:
    """Return `on_lattice`, computed once for all blocks of a pass; nobody writes to the result."""
    return on_lattice(np.frombuffer(weights).reshape(shape))


def on_lattice(weights: Array) -> tuple[Array, float]:
    """Return weights as integer multiples of a spacing; products with lattice rows are then exact.

        spacing = 2^(e - 28),   ||w|| < 2^e for every column;
        sum_j |k_j w_j| <= ||k|| ||w|| <= 2^(15 + e)

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records.lattice_block import on_lattice
    >>> whole, spacing = on_lattice(np.array([0.1, 3.0]))
    >>> bool(np.abs(whole * spacing - [0.1, 3.0]).max() < 2.0**-25)
    True
    """
    size = float(np.sqrt(np.max(np.sum(weights * weights, axis=0), initial=0.0)))
    _refuse_unless(size < 2.0**400)
    if size < 2.0**-400:
        return np.zeros_like(weights), 1.0
    # One bit more than the norm needs, since the norm and the weights are rounded.
    spacing = math.ldexp(1.0, power_above(size) + 1 - WEIGHT_BITS)
    return np.rint(weights / spacing), spacing


def _refuse_unless(are_usable: Any) -> None:
    if not are_usable:
        raise ValueError("the weights are not finite or too large to compute with; add a ridge.")


def check_few_rows(n_rows: int) -> None:
    """Raise if a block has more rows than floats add up exactly.

    Examples
    --------
    >>> from tacit.records.lattice_block import check_few_rows
    >>> check_few_rows(1000)
    """
    if n_rows > MOST_ROWS:
        raise ValueError(
            f"a block has more than {MOST_ROWS} rows; let the source cut smaller ones."
        )


def lattice_block(block: Block, bounds: Bounds) -> LatticeBlock:
    """Return a block in lattice steps."""
    check_few_rows(block.n_rows)
    rows = in_steps(block.rows, block.factors, bounds.row_norm)
    return LatticeBlock(
        rows, row_step(bounds.row_norm), block.labels, block.intercept, block.weights
    )


@runtime_checkable
class OnLattice(Protocol):
    """A source that stores its rows in lattice steps, or wraps one that does."""

    def sum_in_steps(
        self,
        function: Callable[[LatticeBlock], tuple[Array, ...]],
        *,
        n_outputs: int = 1,
        keep: bool = True,
    ) -> tuple[Array, ...]:
        """Add up ``function`` over lattice blocks, for ``n_outputs`` scores per record."""


def sum_in_steps(
    records: RecordSource,
    function: Callable[[LatticeBlock], tuple[Array, ...]],
    *,
    n_outputs: int = 1,
    keep: bool = True,
) -> tuple[Array, ...]:
    """Add up ``function`` over lattice blocks of any source.

    ``keep`` announces more such sums, so that a source may store the rows in steps.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, MemoryRecords
    >>> from tacit.records.lattice_block import sum_in_steps
    >>> records = MemoryRecords(np.array([[0.5, 0.25], [0.25, 0.0]]), None, Bounds(row_norm=1.0))
    >>> sum_in_steps(records, lambda block: (block.whole_sum(np.ones(block.n_rows)),))
    (array([24576.,  8192.]),)
    """
    if isinstance(records, OnLattice):
        return records.sum_in_steps(function, n_outputs=n_outputs, keep=keep)
    bounds = records.bounds
    return records.sum(lambda block: function(lattice_block(block, bounds)))
