"""Fifty records, and what is public about them."""

from __future__ import annotations

import numpy as np

from tacit.privacy import Relation
from tacit.queries import Facts
from tacit.records import Bounds, MemoryRecords

BOUNDS = Bounds(row_norm=1.0)
FACTS = Facts(BOUNDS, 2, Relation.ADD_REMOVE)


def records() -> MemoryRecords:
    """Return fifty records of two columns, without labels."""
    return MemoryRecords(np.full((50, 2), 0.5), None, BOUNDS)
