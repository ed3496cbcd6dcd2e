"""How many records there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacit.noise import Norm
from tacit.queries.base import Facts, Sensitivity, View
from tacit.queries.session import total_of


@dataclass(frozen=True)
class Count:
    """The number of records; each counts 1, and so does each person of whom one record is used."""

    @classmethod
    def tried(cls) -> tuple[Count, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return (cls(),)

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return 1: a record that is added or removed. Replacing one changes nothing."""
        return Sensitivity(1.0, Norm.L2, "noisy_gradient.md#4-the-count")

    def total(self, view: View) -> float:
        """Return the number. Private."""
        return float(total_of(view, lambda records: records.count()))

    def held(self, view: View) -> float:
        """Return the number. Private."""
        return self.total(view)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return nothing: a record is one record."""
        return ()
