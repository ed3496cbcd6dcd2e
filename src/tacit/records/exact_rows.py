"""Sum rows times bounded coefficients on a public lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.records.bounds import Bounds
from tacit.records.lattice_block import COEFFICIENT_BITS, LatticeBlock
from tacit.records.lattice_rows import ROW_BITS, power_above, row_step
from tacit.row_clipping import clipped_rows

Array = npt.NDArray[np.float64]

# Bits of one row-coordinate x coefficient product.
TERM_BITS = ROW_BITS + COEFFICIENT_BITS


@dataclass(frozen=True)
class RowLattice:
    """Rows x with their intercept, and coefficients a (or rows of them) of norm at most ``limit``.

    Guarantee (docs/proofs/exact_sums.md, section 2): the norm of a record's term is at most
    ``limit`` R in real numbers, with R the norm of a row with its intercept.

    Examples
    --------
    >>> from tacit.records.exact_rows import RowLattice
    >>> from tacit.records import Bounds
    >>> RowLattice(Bounds(row_norm=1.0), 1.0).units((3,)) * 2.0**33
    array([1., 1., 1.])
    """

    bounds: Bounds
    limit: float

    @property
    def step(self) -> float:
        """Step of the coefficients: a power of two, 2^-18 of the limit or a little more."""
        return math.ldexp(1.0, power_above(self.limit) - COEFFICIENT_BITS)

    def units(self, shape: tuple[int, ...]) -> Array:
        """Return the value of one integer step, on each coordinate of a sum."""
        units = np.full(shape, row_step(self.bounds.row_norm))
        if self.bounds.intercept:
            units[-1] = row_step(self.bounds.intercept)
        return units * self.step

    def whole_sum(self, block: LatticeBlock, numbers: Array) -> Array:
        """Return sum_i a_i x_i over a block, in integers."""
        whole = self.whole(numbers)
        return self.with_constant(block.whole_sum(whole), whole.sum(axis=0, keepdims=True))

    def with_constant(self, inner: Array, total: Array) -> Array:
        """Append the intercept's sum, which is the total of the coefficients."""
        if not self.bounds.intercept:
            return inner
        return np.concatenate([inner, constant_steps(self.bounds) * total])

    @property
    def most(self) -> int:
        """The greatest integer whose value is at most the limit."""
        return math.floor(self.limit / self.step)

    def whole(self, numbers: Array) -> Array:
        """Return coefficients in integer steps, each (or each row of them) within the limit.

        Examples
        --------
        >>> import numpy as np
        >>> from tacit.records.exact_rows import RowLattice
        >>> from tacit.records import Bounds
        >>> RowLattice(Bounds(), 0.75).whole(np.array([0.25, -9.0])) / 2.0**18
        array([ 0.25, -0.75])
        """
        if numbers.ndim == 1:
            steps = numbers * (1 / self.step)  # a power of two
            return np.clip(np.rint(steps, out=steps), -self.most, self.most, out=steps)
        # Rounding towards zero makes no row longer.
        whole: Array = np.trunc(clipped_rows(numbers, self.limit) / self.step)
        return whole


def constant_steps(bounds: Bounds) -> int:
    """Return the intercept's coordinate in steps of its own, rounded down.

    Its relative error is at most 2^-14, and only sums contain it: the zero of a sum does not move.
    """
    if not bounds.intercept:
        return 0
    return math.floor(bounds.intercept / row_step(bounds.intercept))
