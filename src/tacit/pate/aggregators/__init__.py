"""Aggregate votes into answers, one aggregator per file.

A new aggregator is a file and a line here. Plans, error messages, the table in docs/pate.md and the
conformance tests find it in `AGGREGATORS`.
"""

from inspect import isabstract

from tacit.pate.aggregators.base import UNANSWERED as UNANSWERED
from tacit.pate.aggregators.base import Aggregator as Aggregator
from tacit.pate.aggregators.base import Answers as Answers
from tacit.pate.aggregators.confident import Confident as Confident
from tacit.pate.aggregators.majority import Majority as Majority
from tacit.pate.aggregators.noisy_max import GNMax as GNMax
from tacit.pate.aggregators.noisy_max import LNMax as LNMax

_NAMED = tuple(vars().values())
_FOUND = [kind for kind in _NAMED if isinstance(kind, type) and issubclass(kind, Aggregator)]
AGGREGATORS: tuple[type[Aggregator], ...] = tuple(kind for kind in _FOUND if not isabstract(kind))

__all__ = sorted(kind.__name__ for kind in _FOUND)
