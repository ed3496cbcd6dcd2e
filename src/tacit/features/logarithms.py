"""Logarithms of numbers, so that faint ones count beside great ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.features.domain import Domain
from tacit.features.feature_map import FeatureMap

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SignedLogarithms:
    """The logarithm of every number, with its sign; one row at a time."""

    domain: Domain
    unit: float

    @property
    def n_columns(self) -> int:
        """How many numbers a row has that it makes."""
        return self.domain.n_columns

    def __call__(self, rows: Any, out: Array) -> None:
        """Write what it makes of finite rows."""
        for row, made in zip(self.domain.held(rows), out, strict=True):
            made[:] = np.copysign(np.log1p(np.abs(row) / self.unit), row)


class Logarithms(FeatureMap):
    """Every number by its logarithm, sign(x) log(1 + |x| / unit): rows keep their columns.

    Numbers far below the unit stay in proportion, those far above it are told apart by their ratio:
    for features such as scatterings, whose size spans several powers of ten.

    Parameters
    ----------
    unit : float, default=1.0
        Below what size a number is faint.
    row_norm, ranges
        As in `Scattering`.

    Notes
    -----
    **Guarantee**. No row is longer than `longest_logarithms`, which is attained.

    Examples
    --------
    >>> from tacit.features import Logarithms
    >>> Logarithms(0.1, ranges=(-1, 1)).fit([[0.0] * 3]).transform([[0.9, -0.1, 0.0]]).round(3)
    array([[ 2.303, -0.693,  0.   ]])
    """

    def __init__(
        self, unit: float = 1.0, *, row_norm: float | None = None, ranges: Any = None
    ) -> None:
        self.unit = unit
        self.row_norm = row_norm
        self.ranges = ranges

    def row_map(self, domain: Domain) -> SignedLogarithms:
        """Return what makes a row of one in the domain."""
        remedy = "pass the size below which numbers are faint."
        return SignedLogarithms(domain, checks.positive("unit", self.unit, remedy=remedy))

    def output(self, domain: Domain) -> Domain:
        """Return where the rows it makes are."""
        unit = self.row_map(domain).unit
        ranges = None
        if domain.ranges is not None:
            ends = np.array(domain.ranges)
            ends = np.copysign(np.log1p(np.abs(ends) / unit), ends)
            ranges = tuple((float(low), float(high)) for low, high in ends)
        return Domain(domain.names, longest_logarithms(domain, unit), ranges)


def longest_logarithms(domain: Domain, unit: float) -> float:
    """Return the greatest norm of the logarithms of a row in a domain.

    log(1 + sqrt(t) / u)^2 is concave in t = x^2, since log(1 + s) / (s (1 + s)) falls with s. So
    the sum over columns, at a given sum of squares, is greatest where all numbers are of one size,
    or at the end of their range where that is nearer.

    Examples
    --------
    >>> from tacit.features.domain import Domain
    >>> from tacit.features.logarithms import longest_logarithms
    >>> round(longest_logarithms(Domain(("a", "b"), 2.0**0.5), 1.0), 3)  # of (1, 1)
    0.98
    """
    left, most = domain.longest**2, 0.0
    reach = np.sort(domain.reach)
    for place, end in enumerate(reach):
        size = min(float(end), math.sqrt(left / (len(reach) - place)))
        left = max(left - size**2, 0.0)
        most += math.log1p(size / unit) ** 2
    return math.sqrt(most) * (1 + 1e-12)
