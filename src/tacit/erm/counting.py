"""How many records there are, where that is private: asked with a hundredth of the budget."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.noise import Bounded, Norm, Source, gaussian
from tacit.privacy import Event, Relation
from tacit.records import RecordSource

# A count is released with a tenth of the mu: a hundredth of the cost.
COUNT_MULTIPLE = 10.0


class Counted(NamedTuple):
    """A number of records that was released, and what that cost."""

    n_records: float
    event: Event


def noisy_count(
    records: RecordSource, multiplier: float, relation: Relation, source: Source
) -> Counted:
    """Release the number of records; never below the noise in it, which would say nothing."""
    one = Bounded(float(records.count()), 1.0, Norm.L2, relation)
    counted = gaussian(one, multiplier, source)
    return Counted(max(float(np.asarray(counted.value)), multiplier, 1.0), counted.event)
