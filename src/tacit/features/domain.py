"""Where rows may be: within a ball, within ranges, or both; declared, never read off rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.row_clipping import clip_factors, row_norms
from tacit.table_facts import TableFacts

Array = npt.NDArray[np.float64]
Ranges = tuple[tuple[float, float], ...]

# What rows are held to where nobody declared anything, as in the estimators.
_UNDECLARED_NORM = 1.0


@dataclass(frozen=True)
class Domain:
    """The rows that may come: of norm at most ``row_norm``, each number within its range.

    Parameters
    ----------
    names
        The columns.
    row_norm
        The greatest norm of a row.
    ranges
        The least and the greatest value of each column, where that is known.

    Examples
    --------
    >>> from tacit.features import Domain
    >>> Domain(("a", "b"), 9.0, ((0.0, 3.0), (-4.0, 1.0))).longest
    5.0
    """

    names: tuple[str, ...]
    row_norm: float
    ranges: Ranges | None = None

    @property
    def n_columns(self) -> int:
        """How many numbers a row has."""
        return len(self.names)

    @property
    def reach(self) -> Array:
        """The greatest size of each number."""
        if self.ranges is None:
            return np.full(self.n_columns, self.row_norm)
        farthest = np.abs(np.array(self.ranges)).max(axis=1)
        return np.asarray(np.minimum(farthest, self.row_norm))

    @property
    def longest(self) -> float:
        """The greatest norm of a row in the domain."""
        # the corner of the ranges that is farthest out, or where the ball cuts the way to it
        return min(self.row_norm, math.hypot(*self.reach))

    @property
    def widths(self) -> Array:
        """How long the range of each number is."""
        if self.ranges is None:
            return np.full(self.n_columns, 2.0 * self.row_norm)
        low, high = np.array(self.ranges).T
        return np.asarray(high - low)

    def held(self, rows: Any) -> Array:
        """Return dense rows within the domain: numbers clipped, then rows scaled down."""
        dense = rows.toarray() if hasattr(rows, "tocsr") else rows
        dense = dense.astype(np.float64, copy=False)
        if self.ranges is not None:
            low, high = np.array(self.ranges).T
            dense = np.clip(dense, low, high)
        factors = clip_factors(row_norms(dense), self.row_norm, self.n_columns)
        return np.asarray(dense * factors[:, None] if np.any(factors < 1.0) else dense)


def declared_domain(names: Sequence[str], row_norm: Any, ranges: Any) -> Domain:
    """Return the domain that parameters say: a norm, one range for all columns, or one for each.

    Examples
    --------
    >>> from tacit.features.domain import declared_domain
    >>> declared_domain(["a", "b"], None, (0, 1)).ranges
    ((0.0, 1.0), (0.0, 1.0))
    """
    columns = tuple(map(str, names))
    if ranges is None:
        norm = _UNDECLARED_NORM if row_norm is None else checks.positive("row_norm", row_norm)
        return Domain(columns, norm)
    pairs = np.asarray(ranges, dtype=float)
    pairs = np.broadcast_to(pairs, (len(columns), 2)) if pairs.ndim == 1 else pairs
    if pairs.shape != (len(columns), 2) or not np.all(pairs[:, 0] < pairs[:, 1]):
        raise ValueError(
            f"ranges must be (low, high), or one such pair for each of the {len(columns)} columns, "
            f"low before high, got {ranges!r}."
        )
    if not np.all(np.isfinite(pairs)):
        raise ValueError(f"ranges must be finite, got {ranges!r}; pass what you vouch for.")
    bounds = tuple((float(low), float(high)) for low, high in pairs)
    norm = math.hypot(*np.abs(pairs).max(axis=1))
    # a ball around the whole box changes nothing; rounded up, so that its corners are within
    norm = norm * (1 + 2.0**-20) if row_norm is None else checks.positive("row_norm", row_norm)
    return Domain(columns, norm, bounds)


def domain_of(facts: TableFacts) -> Domain:
    """Return the domain of a table's rows."""
    return Domain(facts.names, facts.row_norm, facts.ranges)
