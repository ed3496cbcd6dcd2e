"""How many records there are, in all and of each class."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.noise import Norm
from tacit.noise.bounded import round_up
from tacit.privacy import Relation
from tacit.queries.base import Array, Facts, Private, Sensitivity, total_of
from tacit.records import RecordSource
from tacit.records.exact_moments import exact_totals
from tacit.records.lattice_block import LatticeBlock
from tacit.records.person_sums import MOST_COUNTED
from tacit.records.reweighted import class_codes


@dataclass(frozen=True)
class Count:
    """The number of records, or what they weigh together, each at most 1.

    Of a person all of whose records are used at most `MOST_COUNTED` are counted.

    Parameters
    ----------
    norm
        In which its sensitivity is stated; of one number all are the same.
    """

    norm: Norm = Norm.L2

    @classmethod
    def tried(cls) -> tuple[Count, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return cls(), cls(Norm.L1)

    def applies(self, facts: Facts) -> bool:
        """Return whether it can change: it does not where a record takes another's place."""
        return facts.relation is not Relation.REPLACE

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1, or as many records of a person as count. Replacing a record counts as one."""
        most = float(MOST_COUNTED) if facts.sums_by_person else 1.0
        return Sensitivity(most, self.norm, "noisy_gradient.md#4-the-count")

    def total(self, records: Private, facts: Facts) -> float:
        """Return the number. Private."""
        return float(total_of(records, lambda records: _count(records, facts)))

    def held(self, records: Private, facts: Facts) -> float:
        """Return the number. Private."""
        return self.total(records, facts)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what adds up weights of at most 1."""
        return (exact_totals,)


def _count(records: Any, facts: Facts) -> float:
    if facts.sums_by_person:
        return float(records.counted())
    if records.bounds.max_weight is None:
        return float(records.count())
    return float(exact_totals(records, lambda block: block.weighed(np.ones(block.n_rows)), 1.0))


@dataclass(frozen=True)
class ClassCounts:
    """The number of records of each class, or what they weigh, one number a class.

    A record is in one count, with a weight of at most 1; one that is replaced may be in another
    after.

    Parameters
    ----------
    norm
        L2 for Gaussian noise, L1 for Laplace noise.
    """

    norm: Norm = Norm.L2

    @classmethod
    def tried(cls) -> tuple[ClassCounts, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return cls(), cls(Norm.L1)

    def applies(self, facts: Facts) -> bool:
        """Return whether there are classes."""
        return facts.bounds.n_classes is not None

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1; for a record that is replaced 2 in L1 and sqrt(2) in L2."""
        value = facts.n_changed
        if self.norm is Norm.L2:
            value = round_up(math.sqrt(value))
        return Sensitivity(value, self.norm, "weights.md#5-weights-of-classes")

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the counts. Private."""
        return np.asarray(total_of(records, self._counts))

    def _counts(self, records: RecordSource) -> Array:
        n_classes = records.bounds.n_classes or 0

        def of_block(block: LatticeBlock) -> Array:
            return block.weighed(np.eye(n_classes)[class_codes(block, n_classes)])

        return exact_totals(records, of_block, 1.0)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what adds up weights of at most 1, and what says which class a record is of."""
        return exact_totals, class_codes
