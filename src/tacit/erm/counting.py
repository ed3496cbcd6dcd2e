"""How many records there are, where that is private: asked with a hundredth of the budget."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.erm.objective import needs_fine_sums
from tacit.noise import Bounded, Norm, Source, gaussian
from tacit.privacy import Event, Relation
from tacit.records import RecordSource
from tacit.records.people_in_memory import PeopleInMemory
from tacit.records.person_sums import MOST_COUNTED

# A count is released with a tenth of the mu: a hundredth of the cost.
COUNT_MULTIPLE = 10.0
# Charged to the sensitivity for the float error of a sum of weights.
_FLOAT_SLACK = 1e-4


class Counted(NamedTuple):
    """A number of records that was released, and what that cost."""

    n_records: float
    event: Event


def noisy_count(
    records: RecordSource, multiplier: float, relation: Relation, source: Source
) -> Counted:
    """Release the number of records; never below the noise in it, which would say nothing.

    Of records with weights it is what they weigh together, each at most 1; of a person with several
    records at most `MOST_COUNTED` are counted.
    """
    weight = _weight(records, relation)
    counted = gaussian(weight, multiplier, source)
    least = weight.sensitivity * multiplier
    return Counted(max(float(np.asarray(counted.value)), least, 1.0), counted.event)


def _weight(records: RecordSource, relation: Relation) -> Bounded:
    """Return what is counted, and how far one record, or one person, moves it."""
    if isinstance(records, PeopleInMemory):
        return Bounded(float(records.counted()), float(MOST_COUNTED), Norm.L2, relation)
    if records.bounds.max_weight is None:
        return Bounded(float(records.count()), 1.0, Norm.L2, relation)
    fine = needs_fine_sums(records, _FLOAT_SLACK)
    (total,) = records.sum(lambda b: (b.weighed(np.ones(b.n_rows)).sum(),), fine=fine)
    return Bounded(float(total), 1.0 + _FLOAT_SLACK, Norm.L2, relation)
