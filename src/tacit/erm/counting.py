"""How many records there are, where that is private: asked with a hundredth of the budget."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.queries import Count, Noise, NoisySum, Session

# The part of mu^2 for a number, a count or a trace: a tenth of the mu.
NUMBER_SHARE = 0.01
# The part for a number of a pure epsilon, which adds up as it is.
PURE_SHARE = 1 / 50


class Counted(NamedTuple):
    """A number of records that was released, and one that is likely not above it.

    Where fewer records than there seem to be do more harm, ``at_least`` is to go by.
    """

    n_records: float
    at_least: float


def ask_count(session: Session, noise: Noise, slot: str) -> Counted:
    """Ask for the number of records; never below the noise in it, which would say nothing."""
    query = NoisySum(Count(), noise)
    std = query.noise_std(session.facts)
    n_records = max(float(np.asarray(session.ask(query, slot))), std, 1.0)
    # two standard deviations: of forty counts one is further above the truth
    return Counted(n_records, max(n_records - 2 * std, 1.0))
