"""Compute B-splines of declared columns, so that a linear model fits smooth curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.features.feature_map import Domain, FeatureMap

Array = npt.NDArray[np.float64]

# The greatest sum of squares of the B-splines at one point; `SplineFeatures` proves it.
_GREATEST = {1: 1.0, 2: 19 / 32, 3: 1 / 2}


@dataclass(frozen=True)
class Bumps:
    """Cardinal B-splines of some columns, and the other columns unchanged.

    An output row depends on its input row alone: every operation is elementwise.
    """

    domain: Domain
    places: tuple[int, ...]
    n_pieces: int
    degree: int

    @property
    def n_bumps(self) -> int:
        """The number of B-splines per column."""
        return self.n_pieces + self.degree

    @property
    def others(self) -> list[int]:
        """The columns that stay unchanged."""
        return [j for j in range(self.domain.n_columns) if j not in self.places]

    @property
    def n_columns(self) -> int:
        """The number of output columns."""
        return self.n_bumps * len(self.places) + len(self.others)

    def __call__(self, rows: Any, out: Array) -> None:
        """Write the features of finite rows to ``out``."""
        dense = rows.toarray() if hasattr(rows, "tocsr") else rows
        out[:] = 0.0
        for k, j in enumerate(self.places):
            low, high = self.range_of(j)
            share = (np.clip(dense[:, j].astype(np.float64), low, high) - low) / (high - low)
            self._write(share * self.n_pieces, out[:, k * self.n_bumps : (k + 1) * self.n_bumps])
        if self.others:
            rest = self.rest()
            out[:, -len(self.others) :] = rest.held(dense[:, self.others])

    def _write(self, at: Array, out: Array) -> None:
        piece = np.minimum(np.floor(at), self.n_pieces - 1)
        values, lines = _values(at - piece, self.degree), np.arange(len(at))
        for i, value in enumerate(values):
            out[lines, piece.astype(int) + i] = value

    def range_of(self, j: int) -> tuple[float, float]:
        """Return the range of a column."""
        largest = float(self.domain.largest_values[j])
        return (-largest, largest) if self.domain.ranges is None else self.domain.ranges[j]

    def rest(self) -> Domain:
        """Return the domain of the unchanged columns."""
        domain, others = self.domain, self.others
        ranges = None if domain.ranges is None else tuple(domain.ranges[j] for j in others)
        return Domain(tuple(domain.names[j] for j in others), domain.row_norm, ranges)


def _values(u: Array, degree: int) -> list[Array]:
    """Return the nonzero B-splines at a share ``u`` of a piece, from left to right."""
    v = 1.0 - u
    if degree == 1:
        return [v, u]
    if degree == 2:
        return [v * v / 2, 0.5 + u * v, u * u / 2]
    return [
        v * v * v / 6,
        (4.0 - 3.0 * u * u * (1.0 + v)) / 6,
        (4.0 - 3.0 * v * v * (1.0 + u)) / 6,
        u * u * u / 6,
    ]


class SplineFeatures(FeatureMap):
    """B-splines of declared columns, on equal pieces of their ranges; other columns stay.

    Parameters
    ----------
    n_pieces : int, default=8
        The number of equal pieces of a range; a column becomes n_pieces + degree B-splines.
    degree : 1, 2 or 3, default=3
        The degree of the polynomial on each piece.
    columns : sequence of int or str, or None
        The columns, by index or by name; None is all of them.
    row_norm : float or None
        The greatest norm of a row; None counts as 1 if no ranges are declared.
    ranges : (float, float), sequence of such pairs, or None
        The least and greatest value of each column; values outside are clipped. Without ranges a
        column has the range from -row_norm to row_norm.

    Notes
    -----
    **Guarantee**. k columns become rows of norm at most sqrt(k c), in addition to the norm of the
    unchanged columns, with c = 1, 19/32, 1/2 for degree 1, 2, 3; some row attains it. Proof: with u
    the share of a piece and q = u (1 - u), which goes from 0 at a knot to 1/4 between two, the
    squares of the B-splines sum to 1 - 2 q, to 1/2 + 3 q^2 / 2, and to 1/2 - q^2 / 2 - 5 q^3 / 9.

    Examples
    --------
    >>> from tacit.features import SplineFeatures
    >>> features = SplineFeatures(n_pieces=2, degree=1, ranges=(0, 1)).fit([[0.0]])
    >>> features.transform([[0.25], [0.5], [7.0]])
    array([[0.5, 0.5, 0. ],
           [0. , 1. , 0. ],
           [0. , 0. , 1. ]])
    >>> features.facts_out().row_norm
    1.0
    """

    def __init__(
        self,
        n_pieces: int = 8,
        degree: int = 3,
        *,
        columns: Sequence[int | str] | None = None,
        row_norm: float | None = None,
        ranges: Any = None,
    ) -> None:
        self.n_pieces = n_pieces
        self.degree = degree
        self.columns = columns
        self.row_norm = row_norm
        self.ranges = ranges

    def row_map(self, domain: Domain) -> Bumps:
        """Return the row map on a domain."""
        degree = checks.count("degree", self.degree, most=max(_GREATEST))
        n_pieces = checks.count("n_pieces", self.n_pieces)
        return Bumps(domain, self._places(domain), n_pieces, degree)

    def output(self, domain: Domain) -> Domain:
        """Return the domain of the output rows."""
        bumps = self.row_map(domain)
        names = [f"{domain.names[j]} bump {i}" for j in bumps.places for i in range(bumps.n_bumps)]
        rest = bumps.rest()
        longest = rest.longest if rest.names else 0.0
        norm = math.sqrt(len(bumps.places) * _GREATEST[bumps.degree] + longest**2)
        ranges = None
        if rest.ranges is not None:
            ranges = ((0.0, 1.0),) * len(names) + rest.ranges
        return Domain((*names, *rest.names), norm, ranges)

    def _places(self, domain: Domain) -> tuple[int, ...]:
        if self.columns is None:
            return tuple(range(domain.n_columns))
        place = {name: j for j, name in enumerate(domain.names)}
        found = [place.get(c, -1) if isinstance(c, str) else int(c) for c in self.columns]
        if len(set(found)) < len(found) or not all(0 <= j < domain.n_columns for j in found):
            raise ValueError(
                f"columns must be different columns, by place or by name, got {self.columns!r}; "
                f"there are {domain.n_columns}."
            )
        return tuple(found)
