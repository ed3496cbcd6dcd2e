"""Products of two columns beside the columns themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.features.domain import Domain
from tacit.features.feature_map import FeatureMap

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Products:
    """The numbers of a row within a domain, then x_i x_j for i < j; each by itself."""

    domain: Domain

    @property
    def n_columns(self) -> int:
        """How many numbers a row has that it makes."""
        d = self.domain.n_columns
        return d + d * (d - 1) // 2

    def __call__(self, rows: Any, out: Array) -> None:
        """Write what it makes of finite rows."""
        d = self.domain.n_columns
        held = self.domain.held(rows)
        out[:, :d] = held
        first, second = np.triu_indices(d, 1)
        np.multiply(held[:, first], held[:, second], out=out[:, d:])


class Interactions(FeatureMap):
    """The columns, and the product of every two of them.

    Parameters
    ----------
    row_norm : float or None
        The greatest norm of the rows to come, to which they are scaled down; None counts as 1 where
        no ranges are declared.
    ranges : (float, float), sequence of such pairs, or None
        The least and greatest value of each column, to which they are clipped.

    Notes
    -----
    **Guarantee**. The norm that `facts_out` states is attained. Proof: with t_j = x_j^2 the square
    of a row's norm is sum t_j + sum_{i < j} t_i t_j = s + (s^2 - sum t_j^2) / 2, s = sum t_j. It
    grows with every t_j, so s is the greatest square norm of a row that may come; with s given it
    is greatest where sum t_j^2 is least: all t_j the same, t, but for those that end at the square
    of their reach before. Such a row is in the domain, or its mirror image is.

    Examples
    --------
    >>> from tacit.features import Interactions
    >>> features = Interactions(ranges=(-1, 1)).fit([[0.0, 0.0, 0.0]])
    >>> features.transform([[0.5, 1.0, -1.0]])
    array([[ 0.5,  1. , -1. ,  0.5, -0.5, -1. ]])
    >>> round(features.facts_out().row_norm ** 2, 9)  # three squares and three products of them
    6.0
    """

    def __init__(self, *, row_norm: float | None = None, ranges: Any = None) -> None:
        self.row_norm = row_norm
        self.ranges = ranges

    def row_map(self, domain: Domain) -> Products:
        """Return what makes a row of one in the domain."""
        return Products(domain)

    def output(self, domain: Domain) -> Domain:
        """Return where the rows it makes are."""
        names = domain.names
        pairs = [f"{a} {b}" for i, a in enumerate(names) for b in names[i + 1 :]]
        squares = _evenly(domain.longest**2, domain.reach**2)
        total = float(squares.sum())
        norm = math.sqrt(total + (total**2 - float(np.sum(squares**2))) / 2)
        return Domain((*names, *pairs), norm)


def _evenly(total: float, most: Array) -> Array:
    """Return parts of a total, no part beyond its most, as even as they can be.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.interactions import _evenly
    >>> _evenly(10.0, np.array([1.0, 9.0, 9.0]))
    array([1. , 4.5, 4.5])
    """
    parts, left = np.empty(most.size), total
    order = np.argsort(most)
    for k, j in enumerate(order):
        parts[j] = min(float(most[j]), left / (most.size - k))
        left -= parts[j]
    return parts
