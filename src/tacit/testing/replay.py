"""Replay fits and queries on neighbouring data: no value moves further than its sensitivity."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tacit.arrays import Array
from tacit.noise import recording, replaying
from tacit.noise.release import Entry
from tacit.privacy import Relation
from tacit.queries import Facts, NoisySum, Sensitivity
from tacit.records import MemoryRecords

Data = TypeVar("Data")


def replay(fit: Callable[[Data], object], data: Data, neighbour: Data) -> int:
    """Run ``fit`` on both data sets, the second with the mechanism outputs of the first.

    With the outputs held fixed, neighbours may differ only in the value that each mechanism
    receives, and that by no more than its declared sensitivity.

    Parameters
    ----------
    fit
        Runs the whole computation on one data set.
    data, neighbour
        Two data sets that are neighbours under the relation ``fit`` declares. Try extreme cases:
        one extreme record, opposite labels, an empty class.

    Returns
    -------
    int
        Number of compared releases.

    Raises
    ------
    tacit.noise.ReplayMismatch
        If a value moved by more than its sensitivity, or the sequence of releases, an event or a
        public decision differs.

    Notes
    -----
    Passing is evidence, not proof: only these two data sets and this run were compared. A fit
    that releases nothing is refused, since nothing would be compared.

    Examples
    --------
    >>> from tacit.noise import Norm
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.gaussian import gaussian
    >>> from tacit.privacy import Relation
    >>> from tacit.testing import replay
    >>> def total(ages):
    ...     clipped = float(sum(min(max(age, 0), 100) for age in ages))
    ...     return gaussian(Bounded(clipped, 100.0, Norm.L2, Relation.ADD_REMOVE), 1.0)
    >>> replay(total, [20, 50, 1000], [20, 50])
    1
    """
    with recording() as tape:
        fit(data)
    releases = sum(isinstance(entry, Entry) for entry in tape.entries)
    if releases == 0:
        raise AssertionError(
            "fit released nothing through tacit.noise, so there is nothing to compare; whatever "
            "it returned was not made private by tacit."
        )
    with replaying(tape):
        fit(neighbour)
    return releases


# Tolerance for the subtraction of two totals, not for the totals.
_SLACK = 1e-9
_N_RECORDS = 12


def check_query(query: NoisySum, facts: Facts, *, attained: float = 0.5, seed: int = 0) -> float:
    """Check the declared sensitivity of a noisy sum on neighbours of hard tables.

    Rows have the greatest norm or more, along an axis, along the diagonal, opposite to others, or
    are zeros. Labels, if bounds declare some, are at both ends and beyond. Each record is added to,
    removed from and, under REPLACE, exchanged in tables of other such rows.

    Parameters
    ----------
    query
        The query to check.
    facts
        The public facts of the records.
    attained
        The share of the sensitivity that some neighbours must reach: a sensitivity that is far too
        large costs accuracy.
    seed
        Seed of the random rows.

    Returns
    -------
    float
        The greatest change that was found, as a share of the sensitivity.

    Raises
    ------
    AssertionError
        If a total moved further than declared, if no neighbours reached ``attained``, if the
        sensitivity names no proof, or if the event has another relation than the facts.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts, GaussianNoise, NoisySum, PointSum
    >>> from tacit.records import Bounds
    >>> from tacit.testing import check_query
    >>> query = NoisySum(PointSum(), GaussianNoise(1.0))
    >>> check_query(query, Facts(Bounds(row_norm=2.0), 3, Relation.ADD_REMOVE)) > 0.99
    True
    """
    stated = query.statistic.sensitivity(facts)
    assert isinstance(stated, Sensitivity), f"{query} states no Sensitivity"
    assert stated.proof.partition("#")[0].endswith(".md"), f"{query} names no proof"
    assert query.event(facts).relation is facts.relation, f"{query} is priced for another relation"
    greatest = 0.0
    own = getattr(query.statistic, "neighbours", None)
    pairs = _neighbours(facts, np.random.default_rng(seed)) if own is None else own(facts)
    for one, other in pairs:
        difference = np.subtract(
            query.statistic.total(other, facts), query.statistic.total(one, facts)
        )
        greatest = max(greatest, stated.norm.length(difference) / stated.value)
        assert greatest <= 1.0 + _SLACK, (
            f"{query.statistic} moved by {greatest * stated.value:.9g} in {stated.norm.name}, and "
            f"its sensitivity is {stated.value:.9g}; see {stated.proof}"
        )
    assert greatest >= attained, (
        f"{query.statistic} moved by {greatest:.3g} of its sensitivity at most; either the "
        "sensitivity is far too large, or no neighbour is hard for it"
    )
    return greatest


def _neighbours(facts: Facts, rng: np.random.Generator) -> Any:
    """Yield pairs of record sources that are neighbours under the relation."""
    rows, labels = _odd_rows(facts, rng), _odd_labels(facts)
    # Empty, a few, and many in all directions but the first, in which a record then has most
    # weight.
    axes = facts.bounds.row_norm * np.eye(facts.n_features)[1:]
    lopsided = np.repeat(np.vstack([axes, -axes]), 100, axis=0)
    for few in (rows[:0], rows[rng.permutation(len(rows))[:_N_RECORDS]], lopsided):
        own = rng.choice(labels, len(few))
        odd = list(itertools.product(rows, labels))
        if facts.relation is Relation.REPLACE:
            for (x, y), (v, z) in itertools.product(odd, odd[:: max(1, len(odd) // 8)]):
                yield _records(few, own, x, y, facts), _records(few, own, v, z, facts)
        else:
            for x, y in odd:
                yield _records(few, own, None, None, facts), _records(few, own, x, y, facts)


def _records(rows: Array, labels: Array, x: Array | None, y: Any, facts: Facts) -> MemoryRecords:
    if x is not None:
        rows, labels = np.vstack([rows, x]), np.append(labels, y)
    has_labels = facts.bounds.label_range is not None or facts.bounds.n_classes is not None
    return MemoryRecords(rows, labels if has_labels else None, facts.bounds)


def _odd_rows(facts: Facts, rng: np.random.Generator) -> Array:
    d, norm = facts.n_features, facts.bounds.row_norm
    axes = np.vstack([np.eye(d), -np.eye(d)])
    even = np.ones((1, d)) / math.sqrt(d)
    some = rng.standard_normal((4, d))
    some /= np.linalg.norm(some, axis=1, keepdims=True)
    ways = np.vstack([axes, even, -even, some])
    return np.vstack([norm * ways, 1e6 * norm * ways[:3], 0.3 * norm * some, np.zeros((1, d))])


def _odd_labels(facts: Facts) -> Array:
    if facts.bounds.n_classes == 2:
        return np.array([-1.0, 1.0])
    if facts.bounds.n_classes is not None:
        return np.arange(float(facts.bounds.n_classes))
    if facts.bounds.label_range is None:
        return np.zeros(1)
    low, high = facts.bounds.label_range
    return np.array([low, high, (low + high) / 2, 10 * high + 1.0, 10 * low - 1.0])
