"""Records grouped by person, so that what one person adds to a sum can be bounded.

The rule (docs/proofs/people.md): one record of each person counts (`one_each`), or all of them, and
the person's sum of gradients is clipped to C (`Gradient.total` in `queries/gradient.py`).
`_bound_people` of `erm/minimization.py` chooses between the two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tacit.arrays import Array, Integers, Mask
from tacit.disk_arrays import is_on_disk, own, rows_at
from tacit.records.block import Block, Coordinates, of_a_class, some_of
from tacit.records.bounds import Bounds
from tacit.records.memory import MemoryRecords
from tacit.records.privacy_unit import People, n_identifiers, people_of
from tacit.records.source import RecordSource
from tacit.records.splits import DrawsWords as Words
from tacit.records.splits import Sample, poisson_choice

# A person's records count as at most this many. Gradients of well-fitted records are about half the
# greatest norm, of either sign, so k of them add up to about sqrt(k) / 2 times the clip. From 4 on,
# more records would only be clipped, but raise the curvature of the sum beyond the step size.
MOST_COUNTED = 4


def clipped_by_person(
    block: Block, coefficients: Array, clip: float, coordinates: Coordinates | None = None
) -> Array:
    """Return the sum over people of sum_i coefficient_i x_i, each of norm at most ``clip``.

    Only releases of preconditioned gradients use it (`PreconditionedGradient`), with their
    ``coordinates``: the norm is taken in these, the sum itself is not. `Gradient` clips people's
    sums on its lattice instead. Numbers are in units of the clip, so that no square overflows.
    ``coefficients`` have one column per output.
    """
    scaled = (coefficients[:, None] if coefficients.ndim == 1 else coefficients) / clip
    parts = [_of_each_person(block, column) for column in scaled.T]
    if coordinates is None:
        squares = sum(_squares(inner) + last**2 for inner, last in parts)
    else:
        squares = sum(coordinates.squares(*part, block.intercept) for part in parts)
    factors = clip * _factors(np.sqrt(squares), _sizes(block))
    sums = [_in_all(inner, last, factors, block.intercept) for inner, last in parts]
    return sums[0] if coefficients.ndim == 1 else np.stack(sums, axis=1)


def clipped_vectors(block: Block, vectors: Array, clip: float) -> Array:
    """Return the clipped sum over people of vectors, one vector per record."""
    sums = _selection(block, np.full(block.n_rows, 1 / clip)) @ vectors
    result: Array = sums.T @ (clip * _factors(np.sqrt(_squares(sums)), _sizes(block)))
    return result


def summed_by_person(block: Block, coefficients: Array) -> Array:
    """Return each person's sum_i coefficient_i x_i, scaled as if from `MOST_COUNTED` records.

    The result has one row per person, or a matrix with one column per output. It does not depend on
    other people.
    """
    columns = coefficients[:, None] if coefficients.ndim == 1 else coefficients
    sums = [_dense_sums(block, column) for column in columns.T]
    shares = _shares(_sizes(block))
    if coefficients.ndim == 1:
        return sums[0] * shares[:, None]
    return np.stack(sums, axis=2) * shares[:, None, None]


def vectors_by_person(block: Block, vectors: Array) -> Array:
    """Return each person's sum of vectors, one vector per record, scaled likewise."""
    sums: Array = _selection(block, np.ones(block.n_rows)) @ vectors
    return sums * _shares(_sizes(block))[:, None]


def _dense_sums(block: Block, coefficients: Array) -> Array:
    inner, last = _of_each_person(block, coefficients)
    dense: Array = inner.toarray() if hasattr(inner, "tocsr") else inner
    return np.hstack([dense, last[:, None]]) if block.intercept else dense


def _shares(sizes: Integers) -> Array:
    """Return min(MOST_COUNTED / k, 1) for each person's k records."""
    shares: Array = np.minimum(1.0, MOST_COUNTED / np.maximum(sizes, 1))
    return shares


def _factors(norms: Array, sizes: Integers) -> Array:
    """Return min(MOST_COUNTED / k, 1 / norm, 1) for each person's k records."""
    factors: Array = np.minimum(_shares(sizes), 1 / np.maximum(norms, 1e-300))
    return factors


def _sizes(block: Block) -> Integers:
    assert block.people is not None
    return np.diff(block.people, append=block.n_rows)


def _selection(block: Block, coefficients: Array) -> Any:
    """Return the matrix, one row per person, that sums their records with these coefficients."""
    from scipy.sparse import csr_array

    assert block.people is not None
    n = block.n_rows
    edges = np.append(block.people, n)
    return csr_array((coefficients, np.arange(n), edges), shape=(len(edges) - 1, n))


def _of_each_person(block: Block, coefficients: Array) -> tuple[Any, Array]:
    """Return the sums of the rows, and of the intercept coordinate."""
    # Each person's records are summed separately, in their own order: others have no effect.
    inner = _selection(block, block.factors * coefficients) @ block.rows
    last = _selection(block, coefficients) @ np.full(block.n_rows, block.intercept)
    return inner, last


def _squares(sums: Any) -> Array:
    squared = sums.multiply(sums) if hasattr(sums, "tocsr") else sums * sums
    return np.asarray(squared.sum(axis=1)).reshape(-1)


def _in_all(inner: Any, last: Array, factors: Array, intercept: float) -> Array:
    total = np.asarray(inner.T @ factors)
    return np.append(total, last @ factors) if intercept else total


@runtime_checkable
class Choosing(Protocol):
    """A source that can return some of its records, in its own order."""

    def chosen(self, mask: Mask) -> RecordSource:
        """Return the marked records; one mark per record."""


class PeopleInSource:
    """A source, and an identifier for each of its records in the source's order.

    A person's records may be in several blocks, so only one of them can be used.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds, ChunkedRecords
    >>> from tacit.records.grouped import PeopleInSource
    >>> records = ChunkedRecords(lambda: [(np.eye(2), None), (np.eye(2), None)], 2, Bounds())
    >>> PeopleInSource(records, ["ann", "bob", "ann", None]).one_each().count()
    2
    """

    def __init__(self, records: RecordSource, identifiers: Any) -> None:
        n_identifiers(identifiers)
        if not isinstance(records, Choosing):
            raise ValueError(
                "this record source gives sums over records and cannot return one record of "
                "each person; give it a method chosen(marks), pass the rows themselves with unit, "
                "or one record a person without."
            )
        self._records, self._choose, self._identifiers = records, records.chosen, identifiers

    def everybody(self) -> RecordSource:
        """Return all records."""
        return self._records

    def one_each(self) -> RecordSource:
        """Return one record of each person, chosen by the person's word."""
        people = people_of(self._identifiers)
        # Identifiers belong to the records as given, before records of other classes are dropped.
        counting = getattr(self._records, "counting", lambda: None)()
        if len(people) != (self._records.count() if counting is None else len(counting)):
            raise ValueError(
                "the records and unit are of different lengths; pass one identifier for each "
                "record, in the order in which the source gives them."
            )
        people = people if counting is None else people.where(counting)
        mask = np.zeros(len(people), dtype=bool)
        mask[people.one_each()] = True
        return self._choose(mask)


class PeopleInMemory(MemoryRecords):
    """Rows and labels in memory, sorted by person; a block knows the first row of each person.

    Parameters
    ----------
    rows, labels, bounds, weights
        As in `MemoryRecords`.
    people
        The person of each row; rows without a person are dropped.

    Notes
    -----
    **Guarantee**. All rows of a person are in one block, and a block has no more people than an
    ordinary block has rows: its edges move to the start of the next person. Rows on disk are sorted
    on disk.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.records import Bounds
    >>> from tacit.records.privacy_unit import people_of
    >>> from tacit.records.grouped import PeopleInMemory
    >>> rows = np.array([[1.0], [2.0], [3.0]])
    >>> records = PeopleInMemory(rows, None, Bounds(3.0), people_of(["ann", "bob", "ann"]))
    >>> records.rows.ravel(), records.one_each().count()
    (array([1., 3., 2.]), 2)
    """

    def __init__(
        self,
        rows: Any,
        labels: Any | None,
        bounds: Bounds,
        people: People,
        weights: Any | None = None,
    ) -> None:
        if len(people) != rows.shape[0]:
            raise ValueError(
                "rows and identifiers are of different lengths; pass one identifier for each row."
            )
        labels = None if labels is None else own(np.asarray(labels))
        weights = None if weights is None else np.asarray(weights)
        counting = of_a_class(labels, bounds)
        if counting is not None:
            people, at = people.where(counting), np.flatnonzero(counting)
            rows = rows_at(rows, at) if is_on_disk(rows) else rows[at]
            labels, weights = some_of(labels, at), some_of(weights, at)
        order = people.order()
        if not np.array_equal(order, np.arange(len(people))):
            if is_on_disk(rows):
                rows = rows_at(rows, order)
            else:
                rows = rows.tocsr()[order] if hasattr(rows, "tocsr") else rows[order]
            labels, weights = some_of(labels, order), some_of(weights, order)
        super().__init__(rows, labels, bounds, weights)
        self._people = People(people.owner[order], people.words)
        self._sizes = people.sizes()
        self._starts = np.cumsum(self._sizes) - self._sizes

    def counted(self) -> int:
        """Return the number of records, counting at most `MOST_COUNTED` of each person. Private."""
        return int(np.minimum(self._sizes, MOST_COUNTED).sum())

    def everybody(self) -> PeopleInMemory:
        """Return all records."""
        return self

    def one_each(self) -> MemoryRecords:
        """Return one record of each person, chosen by the person's word."""
        return self.where(self._people.one_each())

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return each person, with all their records, independently with probability ``rate``."""
        mask = np.repeat(poisson_choice(rate, len(self._sizes), words), self._sizes)
        labels, weights = some_of(self._labels, mask), some_of(self._weights, mask)
        people = self._people.where(mask)
        return Sample(PeopleInMemory(self.rows[mask], labels, self.bounds, people, weights), rate)

    def _block(self, start: int, stop: int) -> Block:
        first, last = np.searchsorted(self._starts, [start, stop])
        begin, end = np.append(self._starts, self.count())[[first, last]]
        block = super()._block(begin, end)
        return replace(block, people=self._starts[first:last] - begin)
