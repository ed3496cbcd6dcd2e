"""How many records there are, where that is private: asked with a hundredth of the budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.noise import Bounded, Norm, Release, Source, gaussian, laplace
from tacit.privacy import Event, Gaussian, PureEpsilon, Relation
from tacit.records import RecordSource
from tacit.records.exact_moments import exact_totals
from tacit.records.people_in_memory import PeopleInMemory
from tacit.records.person_sums import MOST_COUNTED

Array = npt.NDArray[np.float64]

# A count is released with a tenth of the mu: a hundredth of the cost.
COUNT_MULTIPLE = 10.0
# Of a pure epsilon, which adds up as it is, a number gets this share.
PURE_SHARE = 1 / 50


@dataclass(frozen=True)
class GaussianQuestion:
    """A number asked for with Gaussian noise of so many sensitivities."""

    multiplier: float
    relation: Relation

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise, in sensitivities."""
        return self.multiplier

    @property
    def event(self) -> Event:
        """What asking costs."""
        return Gaussian(self.multiplier, self.relation)

    def ask(self, bounded: Bounded, source: Source) -> Release[float | Array]:
        """Release the number."""
        return gaussian(bounded, self.multiplier, source)


@dataclass(frozen=True)
class LaplaceQuestion:
    """A number asked for with Laplace noise, for a pure epsilon."""

    epsilon: float
    relation: Relation

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise, in sensitivities."""
        return math.sqrt(2.0) / self.epsilon

    @property
    def event(self) -> Event:
        """What asking costs."""
        return PureEpsilon(self.epsilon, self.relation)

    def ask(self, bounded: Bounded, source: Source) -> Release[float | Array]:
        """Release the number."""
        return laplace(bounded, self.epsilon, source)


Question = GaussianQuestion | LaplaceQuestion


class Counted(NamedTuple):
    """A number of records that was released, one that is likely not above it, and the cost.

    Where fewer records than there seem to be do more harm, ``at_least`` is to go by.
    """

    n_records: float
    at_least: float
    event: Event


def noisy_count(records: RecordSource, question: Question, source: Source) -> Counted:
    """Release the number of records; never below the noise in it, which would say nothing.

    Of records with weights it is what they weigh together, each at most 1; of a person with several
    records at most `MOST_COUNTED` are counted.
    """
    weight = _weight(records, question.relation)
    counted = question.ask(weight, source)
    std = weight.sensitivity * question.noise_std
    n_records = max(float(np.asarray(counted.value)), std, 1.0)
    # two standard deviations: of forty counts one is further above the truth
    return Counted(n_records, max(n_records - 2 * std, 1.0), counted.event)


def _weight(records: RecordSource, relation: Relation) -> Bounded:
    """Return what is counted, and how far one record, or one person, moves it."""
    if isinstance(records, PeopleInMemory):
        return Bounded(float(records.counted()), float(MOST_COUNTED), Norm.L2, relation)
    if records.bounds.max_weight is None:
        return Bounded(float(records.count()), 1.0, Norm.L2, relation)
    total = exact_totals(records, lambda block: block.weighed(np.ones(block.n_rows)), 1.0)
    return Bounded(float(total), 1.0, Norm.L2, relation)
