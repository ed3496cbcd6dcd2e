"""Aggregate votes into answers, one aggregator per file.

A new aggregator is a file and a line of `AGGREGATORS`; plans, help and tests find it there.
"""

from tacit.pate.aggregators.base import UNANSWERED as UNANSWERED
from tacit.pate.aggregators.base import Aggregator
from tacit.pate.aggregators.base import Answers as Answers
from tacit.pate.aggregators.confident import Confident
from tacit.pate.aggregators.majority import Majority
from tacit.pate.aggregators.noisy_max import GNMax, LNMax

AGGREGATORS: tuple[type[Aggregator], ...] = (
    Majority,
    GNMax,
    LNMax,
    Confident,
)

__all__ = [
    "Aggregator",
    "Confident",
    "GNMax",
    "LNMax",
    "Majority",
]
