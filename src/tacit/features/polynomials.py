"""Compute interactions and polynomials of columns, with an exact bound on the row norm."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.features.feature_map import Domain, FeatureMap

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Products:
    """The numbers of a row within a domain, then x_i x_j for i < j; elementwise."""

    domain: Domain

    @property
    def n_columns(self) -> int:
        """The number of output columns."""
        d = self.domain.n_columns
        return d + d * (d - 1) // 2

    def __call__(self, rows: Any, out: Array) -> None:
        """Write the features of finite rows to ``out``."""
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
        The greatest norm of a row; longer rows are scaled down to it. None counts as 1 if no ranges
        are declared.
    ranges : (float, float), sequence of such pairs, or None
        The least and greatest value of each column; values outside are clipped.

    Notes
    -----
    **Guarantee**. The norm that `facts_out` states is attained. Proof: with t_j = x_j^2 and s = sum
    t_j, the squared norm of a row is sum t_j + sum_{i < j} t_i t_j = s + (s^2 - sum t_j^2) / 2. It
    grows with every t_j, so s is the greatest squared norm of an input row. For given s it is
    greatest if sum t_j^2 is least: all t_j are equal, except those bounded earlier by the square of
    their greatest value. Such a row, or its mirror image, is in the domain.

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
        """Return the row map on a domain."""
        return Products(domain)

    def output(self, domain: Domain) -> Domain:
        """Return the domain of the output rows."""
        names = domain.names
        pairs = [f"{a} {b}" for i, a in enumerate(names) for b in names[i + 1 :]]
        squares = _evenly(domain.longest**2, domain.largest_values**2)
        total = float(squares.sum())
        norm = math.sqrt(total + (total**2 - float(np.sum(squares**2))) / 2)
        return Domain((*names, *pairs), norm)


def _evenly(total: float, most: Array) -> Array:
    """Divide a total into parts as equal as possible, none above its limit in ``most``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.polynomials import _evenly
    >>> _evenly(10.0, np.array([1.0, 9.0, 9.0]))
    array([1. , 4.5, 4.5])
    """
    parts, left = np.empty(most.size), total
    order = np.argsort(most)
    for k, j in enumerate(order):
        parts[j] = min(float(most[j]), left / (most.size - k))
        left -= parts[j]
    return parts


Term = tuple[int, ...]

_MOST_TERMS = 1_000_000


@dataclass(frozen=True)
class Monomials:
    """Products of up to ``degree`` numbers of a row within a domain.

    An output row depends on its input row alone: every product is of two numbers at a time.
    """

    domain: Domain
    degree: int

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Return for each feature the columns of its product, in order of degree."""
        columns = range(self.domain.n_columns)
        degrees = range(1, self.degree + 1)
        return tuple(t for k in degrees for t in combinations_with_replacement(columns, k))

    @property
    def n_columns(self) -> int:
        """The number of output columns."""
        return len(self.terms)

    def __call__(self, rows: Any, out: Array) -> None:
        """Write the features of finite rows to ``out``."""
        held = self.domain.held(rows)
        place = {term: i for i, term in enumerate(self.terms)}
        for term, i in place.items():
            column = held[:, term[-1]]
            if len(term) == 1:
                out[:, i] = column
            else:
                out[:, i] = out[:, place[term[:-1]]] * column
        out *= [_weight(term) for term in self.terms]


def _weight(term: Term) -> float:
    """Return the square root of the number of orderings of a product."""
    orders = math.factorial(len(term))
    for times in Counter(term).values():
        orders //= math.factorial(times)
    return math.sqrt(orders)


class PolynomialFeatures(FeatureMap):
    """All products of up to ``degree`` columns, without the constant.

    A product is weighted by the square root of the number of its orderings, as in the polynomial
    kernel: sqrt(2) for x_1 x_2, and 1 for powers of one column.

    Parameters
    ----------
    degree : int, default=2
        The highest degree.
    row_norm : float or None
        The greatest norm of a row; longer rows are scaled down to it. None counts as 1 if no ranges
        are declared.
    ranges : (float, float), sequence of such pairs, or None
        The least and greatest value of each column; values outside are clipped.

    Notes
    -----
    **Guarantee**. Output rows have norm at most sqrt(r^2 + r^4 + ... + r^(2 degree)), where r is
    the greatest norm of an input row, and a row of norm r attains it. Proof: with these weights,
    the squares of the products of degree k sum to (sum_j x_j^2)^k, by the multinomial theorem.

    Examples
    --------
    >>> from tacit.features import PolynomialFeatures
    >>> features = PolynomialFeatures(degree=3, ranges=(-2, 2)).fit([[1.0]])
    >>> features.transform([[0.5], [-9.0]])
    array([[ 0.5  ,  0.25 ,  0.125],
           [-2.   ,  4.   , -8.   ]])
    >>> features.get_feature_names_out().tolist(), round(features.facts_out().row_norm ** 2, 9)
    (['x0', 'x0^2', 'x0^3'], 84.0)
    """

    def __init__(
        self, degree: int = 2, *, row_norm: float | None = None, ranges: Any = None
    ) -> None:
        self.degree = degree
        self.row_norm = row_norm
        self.ranges = ranges

    def row_map(self, domain: Domain) -> Monomials:
        """Return the row map on a domain."""
        degree = checks.count("degree", self.degree)
        n_terms = math.comb(domain.n_columns + degree, degree)
        if n_terms > _MOST_TERMS:
            raise ValueError(
                f"{domain.n_columns} columns have {n_terms} products of degree {degree} or less; "
                "pass a lower degree, or RandomFourierFeatures."
            )
        return Monomials(domain, degree)

    def output(self, domain: Domain) -> Domain:
        """Return the domain of the output rows."""
        terms = self.row_map(domain).terms
        norm = math.hypot(*(domain.longest**k for k in range(1, self.degree + 1)))
        return Domain(tuple(_name(term, domain.names) for term in terms), norm)


def _name(term: Term, names: tuple[str, ...]) -> str:
    powers = ((names[j], times) for j, times in Counter(term).items())
    return " ".join(name if times == 1 else f"{name}^{times}" for name, times in powers)
