"""The column that says whose each record is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.preprocessing.schema.columns import Ignored


@dataclass(frozen=True)
class Unit(Ignored):
    """A column that tells people apart, such as a patient's number: never a feature.

    It is read in a fit alone, to find the records of each person, who is then protected with all
    of them. A prediction does not need it.

    Examples
    --------
    >>> from tacit.preprocessing import Unit
    >>> Unit("patient number").names()
    []
    """

    kind: ClassVar[str] = "unit"
