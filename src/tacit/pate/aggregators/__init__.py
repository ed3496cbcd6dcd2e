"""Ways of turning votes into answers, one a file."""

from tacit.pate.aggregators.base import UNANSWERED, Aggregator, Answers
from tacit.pate.aggregators.confident import Confident
from tacit.pate.aggregators.gnmax import GNMax
from tacit.pate.aggregators.lnmax import LNMax
from tacit.pate.aggregators.majority import Majority

__all__ = ["UNANSWERED", "Aggregator", "Answers", "Confident", "GNMax", "LNMax", "Majority"]
