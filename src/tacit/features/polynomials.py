"""Compute interactions and polynomials of columns, with an exact bound on the row norm."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, product
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.features.feature_map import Domain, FeatureMap, GroupedDomain
from tacit.table_facts import TableFacts

Array = npt.NDArray[np.float64]


Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Products:
    """The numbers of a row within a domain, then x_i x_j for each pair; elementwise."""

    domain: Domain
    pairs: Pairs

    @property
    def n_columns(self) -> int:
        """The number of output columns."""
        return self.domain.n_columns + len(self.pairs)

    def __call__(self, rows: Any, out: Array) -> None:
        """Write the features of finite rows to ``out``."""
        d = self.domain.n_columns
        held = self.domain.held(rows)
        out[:, :d] = held
        first, second = np.array(self.pairs, dtype=np.int64).reshape(-1, 2).T
        np.multiply(held[:, first], held[:, second], out=out[:, d:])


ALL = "all"


class Interactions(FeatureMap):
    """The columns, and the products of pairs of them.

    Parameters
    ----------
    pairs : sequence of pairs, None or "all"
        The pairs of columns to multiply, each by name or by place. The name of a column of the
        schema stands for all its features: ("sex", "ward") multiplies each sex by each ward. None
        multiplies every two columns, except features of one column of the schema: a record has one
        level of a category, so that products of two levels are 0. "all" multiplies these too.
    row_norm : float or None
        The greatest norm of a row; longer rows are scaled down to it. None counts as 1 if no ranges
        are declared.
    ranges : (float, float), sequence of such pairs, or None
        The least and greatest value of each column; values outside are clipped.

    Notes
    -----
    **Guarantee**. No output row is longer than the norm that `facts_out` states. It is attained
    without ``pairs``, and with them if the bound on the row norm follows from the ranges.

    Proof: let t_j = x_j^2, let T_g be the sum of t_j over the features of one column g of the
    schema (over one feature, without a schema), and let E be the multiplied pairs of columns. The
    squared norm of a row is at most F = sum_g T_g + sum_{(g, h) in E} T_g T_h, with equality if all
    features of g and h are multiplied. F grows with every T_g, each of which has a greatest value
    c_g, and s = sum T_g is at most the squared norm of an input row.

    1. If E has every pair, F = s + (s^2 - sum T_g^2) / 2. For given s it is greatest if sum T_g^2
       is least: all T_g are equal, except those bounded earlier by c_g. Such a row, or its mirror
       image, is in the domain.
    2. Otherwise the second sum is at most sum_{(g, h) in E} c_g c_h, which is attained if
       sum c_g <= s. It is also at most the value of 1 for all pairs of the columns in E. The lesser
       of the two is taken.

    Examples
    --------
    >>> from tacit.features import Interactions
    >>> features = Interactions(ranges=(-1, 1)).fit([[0.0, 0.0, 0.0]])
    >>> features.transform([[0.5, 1.0, -1.0]])
    array([[ 0.5,  1. , -1. ,  0.5, -0.5, -1. ]])
    >>> round(features.facts_out().row_norm ** 2, 9)  # three squares and three products of them
    6.0
    >>> from tacit.schema import Category, Number, Schema
    >>> columns = (Number("age", 0, 100), Category("sex", ("f", "m")), Number("hours", 0, 80))
    >>> facts = Interactions(pairs=[("age", "sex")]).facts_out(Schema(columns).facts)
    >>> facts.names
    ('age', 'sex=f', 'sex=m', 'hours', 'age sex=f', 'age sex=m')
    """

    def __init__(
        self,
        pairs: Sequence[tuple[int | str, int | str]] | str | None = None,
        *,
        row_norm: float | None = None,
        ranges: Any = None,
    ) -> None:
        self.pairs = pairs
        self.row_norm = row_norm
        self.ranges = ranges

    def row_map(self, domain: Domain) -> Products:
        """Return the row map on a domain."""
        return Products(domain, self._pairs(domain))

    def output(self, domain: Domain) -> Domain:
        """Return the domain of the output rows."""
        names, groups = domain.names, domain.groups
        pairs = self._pairs(domain)
        products = [f"{names[i]} {names[j]}" for i, j in pairs]
        total, most = domain.longest**2, domain.largest_squares
        if self.pairs is None or self._takes_all():
            total, added = _all_products(total, most)
        else:
            columns = {(int(groups[i]), int(groups[j])) for i, j in pairs}
            chosen = sorted({group for pair in columns for group in pair})
            direct = sum(float(most[g] * most[h]) for g, h in columns)
            added = min(direct, _all_products(total, most[chosen])[1])
        return Domain((*names, *products), math.sqrt(total + added))

    def _takes_all(self) -> bool:
        return isinstance(self.pairs, str) and self.pairs == ALL

    def _domain_of(self, facts: TableFacts) -> Domain:
        found = super()._domain_of(facts)
        sources = facts.sources
        # If every column has one feature, there is nothing to group.
        if sources is None or self._takes_all() or all(s.n_features == 1 for s in sources):
            return found
        return GroupedDomain(found.names, found.row_norm, found.ranges, sources)

    def _pairs(self, domain: Domain) -> Pairs:
        """Return the places of the features to multiply, the first before the second."""
        groups = domain.groups
        if self.pairs is None or self._takes_all():
            first, second = np.triu_indices(domain.n_columns, 1)
            differ = groups[first] != groups[second]
            return tuple(zip(first[differ].tolist(), second[differ].tolist(), strict=True))
        if isinstance(self.pairs, str) or not hasattr(self.pairs, "__len__"):
            raise ValueError(f"pairs must be a list of pairs, None or 'all', got {self.pairs!r}.")
        found: dict[tuple[int, int], None] = {}
        for pair in self.pairs:
            if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
                raise ValueError(
                    f"pairs must be pairs of columns, got {pair!r}; pass (one, other)."
                )
            one, other = (self._places(domain, column) for column in pair)
            if set(groups[one].tolist()) & set(groups[other].tolist()):
                raise ValueError(
                    f"pairs has {pair!r}, two times the same column; pass two different columns."
                )
            for i, j in product(one, other):
                place = (min(i, j), max(i, j))
                if place in found:
                    raise ValueError(f"pairs has {pair!r} a second time; leave it out.")
                found[place] = None
        return tuple(found)

    def _places(self, domain: Domain, column: int | str) -> list[int]:
        """Return the places of the features of a column."""
        if isinstance(column, str):
            names = [source.name for source in getattr(domain, "sources", ())]
            if column in names:
                return np.flatnonzero(domain.groups == names.index(column)).tolist()
            if column in domain.names:
                return [domain.names.index(column)]
        elif isinstance(column, Integral) and 0 <= column < domain.n_columns:
            return [int(column)]
        raise ValueError(
            f"pairs names the column {column!r}, and there is none; pass names or places of the "
            f"{domain.n_columns} columns: {', '.join(domain.names[:8])}"
            f"{', ...' if domain.n_columns > 8 else ''}."
        )


def _all_products(total: float, most: Array) -> tuple[float, float]:
    """Return the greatest sum of parts and, for it, the sum of products of two parts.

    ``total`` bounds the sum and ``most`` each part: case 1 of the proof of `Interactions`.
    """
    parts = _evenly(total, most)
    total = float(parts.sum())
    return total, (total**2 - float(np.sum(parts**2))) / 2


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
